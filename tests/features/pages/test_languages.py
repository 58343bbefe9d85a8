"""The pages in the language of the reader: nothing on a German page is English but what people and programs wrote."""

import gettext
import re
from http import HTTPStatus
from typing import Any

import pytest
import pytest_asyncio
from lxml import etree, html

from smartfeeds.app.site import feed_forms
from smartfeeds.core.options import EVERY_CHOICE, OPTIONS, NodeKind
from smartfeeds.core.token import TokenScope
from smartfeeds.features.pages.problem_page import TITLES
from smartfeeds.http.http_errors import STATUSES
from smartfeeds.texts import DOMAIN, LOCALE
from support.bearer import bearer
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, bare, entry
from support.routes import TABLE, document
from support.versions import B1, version
from support.web import Got, Web

pytestmark = pytest.mark.needs(
    "administration", "authoring", "bot", "conflicts", "embedding", "following", "mirrors", "prefetch"
)

GERMAN = gettext.translation(DOMAIN, LOCALE, ["de"])
SHOWN_ATTRIBUTES = ("aria-label", "title", "placeholder", "alt")
# Texts that are the same in all languages: what people and programs wrote, names of formats, and values of protocols.
SAME = {
    "UTC",
    *(
        "Notes of Alice",
        "Words",
        "Other words",
        *("Other", "words"),  # the same where a search has marked a word
        "Other words - Notes of Alice",
        "theirs",
        "mine",
        "notes",
        "news",
        "old",
    ),
    *(
        "Smart Feeds",
        "Firefox",
        "curl",
        "push",
        "openapi.json",
        "Atom",
        "RSS",
        "JSON",
        "JSON Feed",
        "HTML",
        "Markdown",
        "XMPP",
        "ESS",
        "(OpenAPI 3.1)",
    ),
    *(
        "https://",
        "http://127.0.0.1:9/",
        "JSON Schema",
        *(kind.value for kind in NodeKind),
        *document()["components"]["schemas"],
    ),
    *(choice for option in OPTIONS.values() for choice in option.choices(EVERY_CHOICE)),
}
_SAME = re.compile(
    r"smartfeeds [\w.+]+ ·|\S*example\.(?:org|net)\S*|\d\d:\d\d UTC|.* \((?:Atom|JSON|RSS|JSON Feed|ESS|NNO|OPML)\)"
)
# The page of each route.
PAGES = {
    "/": "/",
    "/feeds/": "/feeds/",
    "/feeds/{name}/": "/feeds/notes/",
    "/entries/{name}/{id}": "/entries/notes/a",
    "/conflicts/{name}/": "/conflicts/notes/",
    "/conflicts/{name}/{id}": "/conflicts/notes/c",
    "/embed/{name}/": "/embed/notes/",
    "/guests/{name}/": "/guests/notes/",
    "/outline/{name}/": "/outline/notes/",
    "/search": "/search?q=words",
    "/docs": "/docs",
    "/login": "/login",
    "/login/wait": "/login/wait",
    "/account": "/account",
    "/follow": "/follow",
    "/follow/entries": "/follow/entries",
    "/write/{name}/": "/write/notes/",
    "/write/{name}/{id}": "/write/notes/a",
    "/delete/{name}/{id}": "/delete/notes/a",
    "/admin/": "/admin/",
    "/admin/feeds/": "/admin/feeds/",
    "/admin/feeds/{name}/": "/admin/feeds/notes/",
    "/admin/members/{name}/": "/admin/members/notes/",
    "/admin/subscriptions/{name}/": "/admin/subscriptions/notes/",
    "/admin/tokens/": "/admin/tokens/",
    "/admin/consumers/": "/admin/consumers/",
    "/admin/mirrors/": "/admin/mirrors/",
    "/admin/enclosures/": "/admin/enclosures/",
    "/admin/sources/": "/admin/sources/",
    "/admin/log/": "/admin/log/",
}
# Other states of pages.
STATES = [
    *("/feeds/?sort=changed", "/feeds/?max=1", "/entries/notes/gone", "/search", "/search?q=nothing"),
    *("/follow?url=nothing", "/follow?url=http://127.0.0.1:9/", "/follow?done=followed"),
    *("/write/notes/?reply=a", "/admin/feeds/?done=saved", "/admin/tokens/?done=revoked"),
]
GUESTS = ("/login", "/login/wait")


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, Any]:
    return {"pubsub": {"admins": [bare(ALICE)]}}


@pytest_asyncio.fixture(loop_scope="module")
async def alice(shared_web: Web) -> SignedIn:
    """The browser of Alice, an admin, with a feed that has an entry, a deleted entry, an edited one and a conflict."""
    web = shared_web
    await web.component.create(ALICE, "notes", title="Notes of Alice")
    await web.component.create(ALICE, "news", access_model="whitelist")
    await web.component.subscribe(BOB, "notes")
    await web.component.publish(ALICE, "notes", "a", entry("Words"))
    picture = "<content type='html'>&lt;img alt=''/>&lt;p>Words&lt;/p></content>"
    await web.component.publish(ALICE, "notes", "a", entry("Other words", picture))
    await web.component.publish(ALICE, "notes", "gone", entry("Words"))
    await web.component.retract(ALICE, "notes", "gone")
    await web.component.publish(ALICE, "notes", "c", entry("mine"))
    token = await bearer(web, ALICE, TokenScope.PUBLISH, "notes")
    payload = version(B1, title="theirs", sync_id="c").encode()
    await web.ask("PUT", "/entries/notes/c", payload, Authorization=token, Content_Type="application/atom+xml")
    return await sign_in(web, ALICE)


async def see(browser: SignedIn, path: str, language: str) -> Got:
    """A page in a language. A guest waits for the confirmation of a sign-in."""
    if path not in GUESTS:
        return await browser.get(path, "text/html", Accept_Language=language)
    page = await browser.web.get("/login", "text/html", Accept_Language=language)
    if path == "/login":
        return page
    cookie = page.header("Set-Cookie").partition(";")[0]
    (csrf,) = html.fromstring(page.text).xpath("(//input[@name = 'csrf'])[1]/@value")
    form = f"csrf={csrf}&jid={bare(BOB)}".encode()
    sent = {"Cookie": cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": "application/x-www-form-urlencoded"}
    begun = await browser.web.ask("POST", "/login", form, **sent)
    assert begun.status == 303
    cookie = begun.header("Set-Cookie").partition(";")[0]  # a sign-in belongs to a new cookie
    return await browser.web.get(path, "text/html", Accept_Language=language, Cookie=cookie)


def texts(got: Got) -> set[str]:
    """What a page shows and a screen reader speaks, without code and parts that are marked as another language."""
    shown: list[str | None] = []
    for one in html.fromstring(got.text).iter(etree.Element):
        if _is_own(one):
            shown += [one.text, *(one.get(name) for name in SHOWN_ATTRIBUTES)]
        if one.getparent() is not None and _is_own(one.getparent()):
            shown.append(one.tail)
    return {" ".join(text.split()) for text in shown if text and re.search("[A-Za-z]{2}", text)}


def _is_own(element: etree._Element) -> bool:
    language, page_language = (
        element.xpath("string(ancestor-or-self::*[@lang][1]/@lang)"),
        element.xpath("string(/*/@lang)"),
    )
    return language == page_language and not element.xpath(
        "ancestor-or-self::*[self::code or @class = 'method'] or self::script or self::style or self::textarea"
    )


def foreign(german: set[str], english: set[str]) -> set[str]:
    """The texts that a German page shares with the English page although they can be translated."""
    return {text for text in german & english if not _is_same(text)}


def _is_same(text: str) -> bool:
    in_catalogue = text in GERMAN._catalog  # type: ignore[attr-defined]
    return text in SAME or _SAME.fullmatch(text) is not None or (in_catalogue and GERMAN.gettext(text) == text)


def test_every_page_is_in_the_list() -> None:
    """A new page must be added to the list, so that its texts are checked."""
    routes = {
        route.path for route in TABLE if route.method == "GET" and _is_page(route.operation.with_forms(feed_forms()))
    }
    assert routes == set(PAGES)


def _is_page(operation: object) -> bool:
    answers = getattr(operation, "answers", {})
    return getattr(operation, "for_people", False) or "text/html" in answers.get(200, {})


@pytest.mark.parametrize("path", [*PAGES.values(), *STATES])
async def test_german_page_has_no_english_text(alice: SignedIn, path: str) -> None:
    german, english = await see(alice, path, "de-AT, en;q=0.5"), await see(alice, path, "en")
    assert german.status == english.status
    assert (html.fromstring(german.text).get("lang"), html.fromstring(english.text).get("lang")) == ("de", "en")
    german_texts, english_texts = texts(german), texts(english)
    assert len(german_texts - english_texts) > 2
    assert foreign(german_texts, english_texts) == set()


async def test_page_in_an_unknown_language_is_english(alice: SignedIn) -> None:
    for path in ("/", "/feeds/", "/account"):
        unknown, english = await see(alice, path, "tlh, x-none"), await see(alice, path, "en")
        assert html.fromstring(unknown.text).get("lang") == "en"
        assert texts(unknown) == texts(english)


@pytest.mark.parametrize(
    ("path", "status", "title", "detail"),
    [
        ("/feeds/none/", 404, "Nicht gefunden", "diesen Feed gibt es nicht, oder er ist geschlossen"),
        ("/none", 404, "Nicht gefunden", "diese Seite gibt es nicht; die Feeds sind unter /feeds/"),
        ("/admin/", 401, "Bitte anmelden", ""),
        ("/feeds/old/", 410, "Nicht mehr vorhanden", "der Knoten ist umgezogen nach xmpp:new.example?;node=x"),
    ],
)
async def test_problem_is_german_on_a_page_and_english_as_json(
    alice: SignedIn, path: str, status: int, title: str, detail: str
) -> None:
    """Programs read the JSON, so its texts do not depend on the language of a request."""
    await alice.web.component.create(ALICE, "old")
    await alice.web.component.owner_set(ALICE, "<delete node='old'><redirect uri='xmpp:new.example?;node=x'/></delete>")
    page = await alice.web.get(path, "text/html", Accept_Language="de")
    english = await alice.web.get(path, "text/html", Accept_Language="en")
    assert page.status == english.status == status
    root = html.fromstring(page.text)
    assert root.xpath("string(//h1)") == root.xpath("string(//title)") == title
    assert foreign(texts(page), texts(english)) == set()
    if detail:
        assert detail in root.xpath("//div[@class = 'problem']/p/text()")
    problem = await alice.web.get(path, "application/json", Accept_Language="de")
    assert (problem.status, problem.json["title"]) == (status, HTTPStatus(status).phrase)


def test_every_problem_has_a_title() -> None:
    assert {status.phrase for status in STATUSES.values()} <= set(TITLES)


async def test_dates_and_numbers_have_the_form_of_the_language(alice: SignedIn) -> None:
    german, english = await see(alice, "/entries/notes/a", "de"), await see(alice, "/entries/notes/a", "en")
    time = "string((//time)[1])"
    assert re.fullmatch(r"\d+\. [\w.]+ \d{4}, \d\d:\d\d UTC", html.fromstring(german.text).xpath(time))
    assert re.fullmatch(r"\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC", html.fromstring(english.text).xpath(time))


async def test_error_of_a_form_is_german_with_its_values(alice: SignedIn) -> None:
    """A page of the administration shows the error of its use case."""
    form = f"action=affiliate&jid={bare(ALICE)}&affiliation=none"
    page = await alice.post("/admin/members/notes/", form, Accept_Language="de")
    assert page.status == HTTPStatus.CONFLICT
    expected = f"{bare(ALICE)} ist der letzte Besitzer des Knotens; bitte zuerst einen anderen Besitzer hinzufügen"
    assert expected in html.fromstring(page.text).xpath("string(//main)")
