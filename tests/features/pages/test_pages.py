"""Pages over HTTP: who gets one, under which policy, and the files that it loads."""

import gzip
import re
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote

import pytest
from lxml import html

from smartfeeds.core.token import ALL_FEEDS, TokenScope
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.problem_page import problem
from support.browsing import sign_in
from support.chat import write
from support.component import ALICE, BOB
from support.guests import Guest
from support.web import Web, WebStarter

pytestmark = pytest.mark.shared

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def test_browser_gets_a_page_others_get_data(web: Web) -> None:
    """[SF-058] The same address is a page for a browser and JSON for programs."""
    await web.component.create(ALICE, "notes", title="Notes")
    await web.component.publish(ALICE, "notes", "a")
    page = await web.get("/feeds/notes/", accept=BROWSER)
    assert page.header("Content-Type") == "text/html; charset=utf-8"
    assert "<h1" in page.text
    assert "Accept" in page.header("Vary")
    assert (await web.get("/feeds/notes/", accept="*/*")).json["items"][0]["id"] == "a"


async def test_page_is_kept_until_something_changes(web: Web) -> None:
    """A page asked for again with its tag is not sent again, and is once the feed changed."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a")
    page = await web.get("/feeds/notes/", accept=BROWSER)
    again = await web.get("/feeds/notes/", accept=BROWSER, If_None_Match=page.header("ETag"))
    assert (again.status, again.body) == (304, b"")
    await web.component.publish(ALICE, "notes", "b")
    assert (await web.get("/feeds/notes/", accept=BROWSER, If_None_Match=page.header("ETag"))).status == 200


async def test_every_page_has_the_policy(web: Web) -> None:
    """A feed, the list and an error forbid everything that is not ours, and tell nobody where the reader came from."""
    await web.component.create(ALICE, "notes")
    for path, status in (("/feeds/notes/", 200), ("/feeds/", 200), ("/feeds/none/", 404), ("/nothing", 404)):
        page = await web.get(path, accept=BROWSER)
        assert (page.status, page.header("Content-Type")) == (status, "text/html; charset=utf-8")
        policy = page.header("Content-Security-Policy")
        assert "script-src 'self'" in policy
        assert "trusted-types 'none'" in policy
        assert page.header("Referrer-Policy") == "same-origin"
        assert page.header("X-Content-Type-Options") == "nosniff"


async def test_files_of_a_page_are_kept_for_ever(web: Web) -> None:
    """Each file is under the name that its contents have, compressed for who takes that, and not sent twice."""
    page = await web.get("/feeds/", accept=BROWSER)
    paths = set(re.findall(r'"(/static/[^"]+)"', page.text))
    assert {path.rpartition(".")[2] for path in paths} == {"css", "js", "png", "svg"}
    for path in paths:
        file = await web.get(path)
        zipped = await web.get(path, Accept_Encoding="gzip")
        assert "immutable" in file.header("Cache-Control")
        assert zipped.body == file.body or gzip.decompress(zipped.body) == file.body
        assert (await web.get(path, Accept_Encoding="gzip;q=0, br")).header("Content-Encoding") == ""
        assert (await web.get(path, If_None_Match=file.header("ETag"))).status == 304
    assert (await web.get("/static/app.0000000000000000.js")).status == 404
    assert (await web.get("/static/../http/pages.py")).status == 404


@pytest.mark.needs("administration", "authoring", "conflicts")
@pytest.mark.parametrize("path", ["/", "/account", "/admin/", "/conflicts/notes/", "/docs", "/feeds/", "/write/notes/"])
async def test_page_loads_each_file_once(notes: Web, path: str) -> None:
    """A script that is loaded twice handles each key and each click twice."""
    page = await (await sign_in(notes, ALICE)).get(path, BROWSER)
    paths = re.findall(r'(?:src|href)="(/static/[^"]+(?:js|css))"', page.text)
    assert page.status == 200
    assert sorted(paths) == sorted(set(paths)) != []
    assert page.text.startswith("<!doctype html>"), "without it browsers lay the page out as those of 1998"
    assert page.text.count('name="csrf"') >= 2, "the forms to sign out and to change the theme"


@pytest.mark.parametrize(
    ("theme", "cookie"), [("dark", "theme=dark; Path=/; Max-Age=31536000"), ("pink", "theme=; Path=/; Max-Age=0")]
)
async def test_theme_is_kept_in_a_cookie_and_the_reader_stays_on_the_page(web: Web, theme: str, cookie: str) -> None:
    """A theme that there is not ends the choice. A page of another site is never returned to."""
    browser = Guest(web)
    await browser.get("/login")
    got = await browser.post("/theme", f"theme={theme}", Referer=f"{web.origin}/feeds/?sort=new")
    assert (got.status, got.header("Location")) == (303, "/feeds/?sort=new")
    assert got.header("Set-Cookie").startswith(cookie)
    assert browser.cookies["theme"] == theme.removeprefix("pink")
    page = await browser.get("/feeds/")
    assert ('data-theme="dark"' in page.text) is (theme == "dark")
    got = await browser.post("/theme", f"theme={theme}", Referer="https://evil.example/feeds/")
    assert got.header("Location") == "/"


@pytest.mark.needs("administration", "accounts")
async def test_page_behind_a_sign_in_leads_there_and_back(web: Web) -> None:
    """[RFC 9110 15.5.2] In words for people; programs get the problem as before."""
    got = await web.get("/admin/tokens/?after=x&y=%26", BROWSER)
    page = html.document_fromstring(got.text)
    assert (got.status, page.xpath("string(//h1)")) == (401, "Please sign in")
    assert "bearer" not in page.xpath("string(//main)")
    (path,) = page.xpath("//main//a[text()='Sign in']/@href")
    assert path == "/login?next=%2Fadmin%2Ftokens%2F%3Fafter%3Dx%26y%3D%2526"
    form = html.document_fromstring((await web.get(path, BROWSER)).text)
    assert set(form.xpath("//input[@name='next']/@value")) == {"/admin/tokens/?after=x&y=%26"}
    assert (await web.get("/admin/tokens/")).json["title"] == "Unauthorized"


@pytest.mark.needs("authoring", "accounts")
async def test_page_without_a_right_says_who_is_signed_in(web: Web) -> None:
    await web.component.create(ALICE, "notes", title="Notes")
    got = await (await sign_in(web, BOB)).get("/write/notes/", BROWSER)
    page = html.document_fromstring(got.text)
    assert (got.status, page.xpath("string(//h1)")) == (403, "You have no right to do this")
    assert "You are signed in as bob@example.org." in " ".join(page.xpath("string(//main)").split())
    assert page.xpath("//main//a/@href") == ["/account", "/feeds/"]


@pytest.mark.needs("authoring", "accounts", "administration", "following")
@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("/follow", "scope admin for all feeds"),
        ("/follow?url=https%3A%2F%2Fblog.example", "scope admin for all feeds"),
        ("/follow/entries", "scope admin for all feeds"),
        ("/admin/", "scope admin for all feeds"),
        ("/admin/tokens/", "scope admin for all feeds"),
        ("/write/notes/", "scope publish on this feed"),
    ],
)
@pytest.mark.parametrize(("scope", "feed"), [(TokenScope.READ, ALL_FEEDS), (TokenScope.ADMIN, "another")])
async def test_page_says_which_token_suffices(web: Web, path: str, needed: str, scope: TokenScope, feed: str) -> None:
    """A token for one feed has its scope there only. The owner of a feed cannot give more rights to a token."""
    await web.component.create(ALICE, "notes", title="Notes")
    got = await (await sign_in(web, ALICE, scope, feed)).get(path, BROWSER)
    text = " ".join(html.document_fromstring(got.text).xpath("string(//main)").split())
    assert (got.status, f"this takes a token with the {needed}" in text) == (403, True), text
    assert "Sign in through XMPP, or with a token that has these rights." in text
    assert "owner of a feed" not in text and (needed.endswith("this feed") or "this feed" not in text)
    word = needed.split()[1]
    allowed = await sign_in(web, ALICE, {"admin": TokenScope.ADMIN, "publish": TokenScope.PUBLISH}[word])
    assert "this takes a token" not in (await allowed.get(path, BROWSER)).text


async def test_latest_is_the_first_tab_of_a_feed(web: Web) -> None:
    await web.component.create(ALICE, "notes", title="Notes")
    page = html.document_fromstring((await web.get("/feeds/notes/", BROWSER)).text)
    assert page.xpath("//nav[@aria-label='Views']/a/text()") == ["Latest", "Recently edited", "With deletions"]


@pytest.mark.needs("bot")
@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/feeds/notes/", "subscribe notes"),
        ("/feeds/notes/?author=Bob+B", "subscribe notes?author=Bob+B"),
        ("/feeds/two%20words/", 'subscribe "two words"'),
    ],
)
async def test_chat_opens_with_the_message_filled_in(web: Web, path: str, command: str) -> None:
    """[XEP-0147] The bot understands the message: it follows the feed of the page."""
    for name in ("notes", "two words"):
        await web.component.create(ALICE, name)
    page = html.document_fromstring((await web.get(path, BROWSER)).text)
    (address,) = page.xpath("//a[text()='Get it by chat']/@href")
    assert address.startswith("xmpp:feeds.example.org?message;type=chat;body=")
    text = unquote(address.partition("body=")[2])
    assert text == command
    answer = await write(web.component, BOB, text)
    assert "You follow" in answer[0]


async def test_icon_is_where_browsers_look(web: Web) -> None:
    """The icon has its old name too."""
    found = await web.get("/favicon.ico")
    assert (found.status, found.header("Content-Type")) == (200, "image/svg+xml")


async def test_feed_that_is_not_for_everybody_is_told_as_a_page(web: Web) -> None:
    """Who may not read gets a page that says so, and nothing of the feed."""
    await web.component.create(ALICE, "inner", title="Inner circle", access_model="authorize")
    await web.component.publish(ALICE, "inner", "secret")
    page = await web.get("/feeds/inner/", accept=BROWSER)
    assert page.status == 401
    assert page.header("WWW-Authenticate")
    assert "secret" not in page.text
    assert "Inner circle" not in page.text


async def test_page_shows_a_date_as_its_publisher_wrote_it(web: Web) -> None:
    """A date that the service had to replace is shown beside the valid one, as text."""
    entry = (
        "<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><published>&lt;soon&gt; &quot;</published></entry>"
    )
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", entry)

    page = await web.get("/feeds/notes/", accept=BROWSER)

    assert 'title="&lt;soon&gt; &#34;"' in page.text


async def test_site_has_the_colour_and_the_logo_of_the_operator(start_web: WebStarter, tmp_path: Path) -> None:
    """Both are files with a hash in their names. The logo runs no script, whatever it contains."""
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    (tmp_path / "Logo.SVG").write_bytes(svg)
    web = await start_web(
        http={"base_url": "https://example.org/town"}, site={"accent": "#c02060", "logo": tmp_path / "Logo.SVG"}
    )
    page = html.fromstring((await web.get("/town/", "text/html")).text)
    (logo,) = page.xpath("//link[@rel = 'icon']/@href")
    assert page.xpath("//header//img/@src") == [logo]
    style = page.xpath("//link[@rel = 'stylesheet']/@href")[-1]
    for path, media_type, words in ((logo, "image/svg+xml", svg), (style, "text/css; charset=utf-8", b"#c02060")):
        got = await web.get(path)
        assert (got.status, got.header("Content-Type")) == (200, media_type)
        assert got.header("Cache-Control") == "public, max-age=31536000, immutable"
        assert got.header("X-Content-Type-Options") == "nosniff"
        assert words in got.body
        assert (await web.get(path, If_None_Match=got.header("ETag"))).status == 304
    policy = (await web.get(logo)).header("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert (await web.get("/town/favicon.ico")).body == svg


@pytest.mark.parametrize(
    ("status", "heading", "advice"),
    [
        (413, "This is too large", ""),
        (429, "Too Many Requests", "Please wait a moment"),
        (500, "Internal Server Error", "the number of the incident"),
        (503, "Service Unavailable", "Please wait a moment"),
        (404, "Not Found", ""),
    ],
)
def test_error_says_what_to_do(status: int, heading: str, advice: str) -> None:
    page = html.document_fromstring(problem(Frame(), HTTPStatus(status), HTTPStatus(status).phrase, "the detail"))
    text = " ".join(page.xpath("string(//main)").split())
    assert page.xpath("string(//h1)") == heading
    assert "the detail" in text and advice in text
