"""Frames of feeds for pages of other sites: who may frame them, what they show, and their parameters."""

import re

import pytest
from lxml import html

from smartfeeds.core.token import TokenScope
from smartfeeds.features.embedding.frames import MOST, FrameQuery, read_frame_query
from smartfeeds.features.pages.frame import PAGE_POLICY
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE
from support.prose import author, html_entry, note
from support.web import Got, Web

POLICY = "Content-Security-Policy"
BLOG = "https://blog.example"


async def comments(web: Web, *origins: str, **options: str) -> None:
    """The feed `comments` of Alice, which pages of these sites may show."""
    await web.component.create(ALICE, "comments", title="Comments", **options)
    await allow(web, *origins)


async def allow(web: Web, *origins: str) -> None:
    """Lists the sites in the options of the feed."""
    headers = {"Authorization": await bearer(web, ALICE, TokenScope.ADMIN), "Content_Type": "application/json"}
    body = f'{{"frame_origins": [{", ".join(f"{chr(34)}{origin}{chr(34)}" for origin in origins)}]}}'
    answer = await web.ask("PATCH", "/feeds/comments/", body.encode(), **headers)
    assert (answer.status, answer.json["frame_origins"]) == (200, list(origins))


def ancestors(answer: Got) -> str:
    """The sources of the directive frame-ancestors."""
    (sources,) = re.findall(r"frame-ancestors ([^;]*)", answer.header(POLICY))
    return str(sources)


async def test_nobody_may_frame_a_feed_unless_its_owner_lists_the_site(web: Web) -> None:
    await comments(web)
    assert ancestors(await web.get("/embed/comments/")) == "'none'"

    await allow(web, BLOG, "http://localhost:8000")
    answer = await web.get("/embed/comments/")
    assert ancestors(answer) == f"{BLOG} http://localhost:8000"
    assert answer.header(POLICY).replace(ancestors(answer), "'none'") == PAGE_POLICY
    assert "X-Frame-Options" not in answer.headers and "Set-Cookie" not in answer.headers

    await allow(web)
    assert ancestors(await web.get("/embed/comments/")) == "'none'"


@pytest.mark.parametrize(
    "path", ["/feeds/comments/", "/entries/comments/a", "/", "/embed/missing/", "/embed/comments/?max=x"]
)
async def test_no_other_page_can_be_framed(web: Web, path: str) -> None:
    await comments(web, BLOG)
    await web.component.publish(ALICE, "comments", "a")

    assert ancestors(await web.get(path, "text/html")) == "'none'"


async def test_frame_shows_entries_newest_first_without_the_deleted_ones(web: Web) -> None:
    await comments(web, BLOG)
    for item_id, payload in (
        ("a", note("First words", author("Ann"))),
        ("b", html_entry("Second", "<p>With <b>bold</b> text</p><script>alert(1)</script>", author("<Ben>"))),
        ("c", note("Third words")),
        ("d", note("Fourth words")),
    ):
        web.component.clock.advance(60)
        await web.component.publish(ALICE, "comments", item_id, payload)
    await web.component.retract(ALICE, "comments", "c")
    await web.component.publish(ALICE, "comments", "a", note("First words, edited", author("Ann")))

    page = (await web.get("/embed/comments/")).text
    shown = [page.index(text) for text in ("Fourth words", "With <b>bold</b> text", "First words, edited")]
    assert shown == sorted(shown)
    assert "Third words" not in page and "alert" not in page and "<Ben>" not in page and "&lt;Ben&gt;" in page
    assert page.count("<article") == 3
    assert (await web.get("/embed/comments/?max=1")).text.count("<article") == 1
    assert (await web.get("/embed/comments/?author=ann")).text.count("<article") == 1
    assert "First words, edited" in (await web.get("/embed/comments/?order=modified&max=1")).text


async def test_answer_of_one_line_looks_like_a_text(web: Web) -> None:
    await comments(web)
    reply = "<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='q'/>"
    await web.component.publish(
        ALICE, "comments", "a", f"<entry xmlns='http://www.w3.org/2005/Atom'><title>I agree</title>{reply}</entry>"
    )
    page = html.fromstring((await web.get("/embed/comments/")).text)
    assert page.xpath("//article/h2[not(@class)]") == []
    assert page.xpath("string(//article/div[@class='body'])").strip() == "I agree"


async def test_entry_in_the_name_of_somebody_else_names_its_publisher(web: Web) -> None:
    await comments(web)
    other = "<author><name>bob</name><uri>xmpp:bob@example.org</uri></author>"
    await web.component.publish(ALICE, "comments", "a", html_entry("One", "<p>Two</p>", other))
    page = html.fromstring((await web.get("/embed/comments/")).text)
    assert page.xpath("string(//article//*[@class='publisher']/bdi)") == "alice@example.org"
    await web.component.configure(ALICE, "comments", itemreply="owner")
    page = html.fromstring((await web.get("/embed/comments/")).text)
    assert page.xpath("//article//*[@class='publisher']") == []


async def test_comment_that_became_its_title_is_shown_once(web: Web) -> None:
    await comments(web, BLOG)
    headers = {"Authorization": await bearer(web, ALICE, TokenScope.PUBLISH)}
    await web.ask("POST", "/entries/comments/", b"Short and good", Content_Type="text/plain", **headers)
    await web.ask("POST", "/entries/comments/", b"Two lines\nof text", Content_Type="text/plain", **headers)

    page = (await web.get("/embed/comments/")).text
    assert (page.count("Short and good"), page.count("Two lines")) == (1, 1)


@pytest.mark.parametrize(
    ("title", "text", "heading"),
    [
        ("A", "About boats", ["A"]),
        ("Boats", "Boatswain wanted", ["Boats"]),
        ("Boats…", "Boats and more boats", []),
        ("Boats are slow.", "Boats are slow. Trains are not.", []),
        ("Boats", "Boats", []),
        ("Boats", "Trains", ["Boats"]),
    ],
)
async def test_title_is_left_out_only_if_the_text_has_its_words(
    web: Web, title: str, text: str, heading: list[str]
) -> None:
    await comments(web)
    await web.component.publish(ALICE, "comments", "a", html_entry(title, f"<p>{text}</p>"))

    page = html.fromstring((await web.get("/embed/comments/")).text)
    assert page.xpath("//article/h2[not(@class)]//text()") == heading


@pytest.mark.parametrize(
    ("options", "statuses"), [({"access_model": "authorize"}, {401, 403}), ({"access_model": "whitelist"}, {404})]
)
async def test_closed_feed_is_not_framed_for_anybody(web: Web, options: dict[str, str], statuses: set[int]) -> None:
    """Its owner, who is signed in and has a token, sees no more than everybody."""
    await comments(web, BLOG, **options)
    await web.component.publish(ALICE, "comments", "a", note("Secret words"))
    cookie = (await sign_in(web, ALICE)).cookie
    token = await bearer(web, ALICE, TokenScope.ADMIN)

    for headers in ({}, {"Cookie": cookie}, {"Authorization": token}):
        answer = await web.get("/embed/comments/", "text/html", **headers)
        assert (answer.status in statuses, ancestors(answer)) == (True, "'none'")
        assert "Secret words" not in answer.text


async def test_frame_has_nothing_of_a_session(web: Web) -> None:
    """A page that frames it could make its visitors press a button that they do not see."""
    await comments(web, BLOG)
    await web.component.publish(ALICE, "comments", "a")
    anonymous = await web.get("/embed/comments/")

    signed_in = await web.get("/embed/comments/", Cookie=(await sign_in(web, ALICE)).cookie)
    assert signed_in.body == anonymous.body
    assert "csrf" not in signed_in.text and "alice" not in signed_in.text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", FrameQuery("order=created")),
        ("in-reply-to=a&in-reply-to=b", FrameQuery("in-reply-to=a&in-reply-to=b&order=created")),
        ("order=modified", FrameQuery("order=modified")),
        ("sync=true&order=modified", FrameQuery("order=modified")),
        ("utm_source=x&theme=dark", FrameQuery("order=created", theme="dark")),
        ("max=5&language=de&lang=en", FrameQuery("lang=en&order=created", 5, language="de")),
        ("max=999", FrameQuery("order=created", MOST)),
        ("max=0", FrameQuery("order=created", 1)),
        ("site=https%3A%2F%2FBlog.example%2F", FrameQuery("order=created", site=BLOG)),
        ("site=null", FrameQuery("order=created")),
        ("site=*", FrameQuery("order=created")),
    ],
)
def test_query_of_a_frame(query: str, expected: FrameQuery) -> None:
    assert read_frame_query(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        *("since=time:0", "until=", "timeout=9", "callback=f", "max=-1", "max=x", "max=1&max=2", "max=all"),
        *("theme=pink", "theme=dark&theme=light", "language=xx", "order=x", "autor=a", "themes=dark", "site=a&site=b"),
        *("%ff=1&order=%ff", f"q={'x' * 9_000}"),
    ],
)
async def test_wrong_query_of_a_frame_is_refused(web: Web, query: str) -> None:
    await comments(web, BLOG)

    assert (await web.get(f"/embed/comments/?{query}")).status == 400


async def test_frame_speaks_only_to_a_site_that_may_show_it(web: Web) -> None:
    await comments(web, BLOG)

    for site, told in ((BLOG, BLOG), ("https://evil.example", ""), ("*", ""), ("", "")):
        page = (await web.get(f"/embed/comments/?site={site}")).text
        assert f'data-site="{told}"' in page and "evil" not in page


async def test_theme_and_language(web: Web) -> None:
    await comments(web, BLOG)

    page = (await web.get("/embed/comments/?theme=dark&language=de", Accept_Language="en")).text
    assert '<html lang="de" data-theme="dark">' in page and "Hier wurde noch nichts veröffentlicht." in page
    page = (await web.get("/embed/comments/", Accept_Language="de", Cookie="theme=light")).text
    assert '<html lang="de">' in page


async def test_script_and_files_are_cached_and_name_no_other_host(web: Web) -> None:
    await comments(web, BLOG)
    script = await web.get("/embed.js")
    assert (script.status, script.header("Content-Type")) == (200, "text/javascript; charset=utf-8")
    assert script.header("Cross-Origin-Resource-Policy") == "cross-origin"
    assert (await web.get("/embed.js", If_None_Match=script.header("ETag"))).status == 304

    page = (await web.get("/embed/comments/")).text
    files = re.findall(r'(?:src|href)="(/embed/[^"/]+)"', page)
    assert len(files) == 2
    for file in files:
        answer = await web.get(file)
        assert (answer.status, "immutable" in answer.header("Cache-Control")) == (200, True)
        assert (await web.get(file, If_None_Match=answer.header("ETag"))).status == 304
    assert (await web.get("/embed/frame.0123456789abcdef.js")).status == 404
