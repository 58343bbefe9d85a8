"""What pages of other hosts may read (the Fetch standard, CORS), and which methods OPTIONS and 405 name."""

import base64

import pytest

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.component import ALICE, CAROL
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ELSEWHERE = {"Origin": "https://elsewhere.example"}
JSON = "application/json"


def readable(got: Got) -> bool:
    return got.header("Access-Control-Allow-Origin") == "*"


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"x:{token.removeprefix('Bearer ')}".encode()).decode()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/feeds/notes/?max=x", {}, 400),
        ("GET", "/feeds/notes/", {"Authorization": "Bearer unknown"}, 401),
        ("PUT", "/entries/notes/a", {}, 401),
        ("GET", "/feeds/missing/", {}, 404),
        ("GET", "/nothing", {}, 404),
        ("POST", "/entries/notes/a", {}, 405),
        ("GET", "/feeds/notes/", {"Accept": "image/png"}, 406),
        ("GET", "/feeds/notes/", {"Accept": "text/html", "Authorization": "Bearer unknown"}, 401),
    ],
)
async def test_every_error_is_readable_elsewhere(
    notes: Web, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    got = await notes.ask(method, path, **ELSEWHERE, **headers)

    assert (got.status, readable(got)) == (status, True)
    assert got.header("Access-Control-Allow-Credentials") == ""
    assert got.header("Cache-Control") == "no-store"


async def test_rights_that_are_missing_are_readable_elsewhere(notes: Web, token: str) -> None:
    """[SF-111]: 403 for a token of another scope."""
    got = await notes.ask("DELETE", "/feeds/notes/", Authorization=token, **ELSEWHERE)
    assert (got.status, readable(got)) == (403, True)


@pytest.mark.parametrize(
    "path",
    [
        "/feeds/closed/",
        "/feeds/closed.atom",
        "/feeds/closed.atom?sync=true&max=all",
        "/entries/closed/a",
        "/entries/closed/gone",
        "/feeds/",
    ],
)
async def test_closed_feed_is_readable_elsewhere_with_a_bearer_token_only(web: Web, path: str) -> None:
    """A browser adds Basic by itself, so such a response must not be readable: not now, not from the cache."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    for item_id in ("a", "gone"):
        await web.component.publish(ALICE, "closed", item_id)
    await web.component.retract(ALICE, "closed", "gone")
    token = await bearer(web, ALICE, TokenScope.READ)

    with_token = await web.get(path, Authorization=token, **ELSEWHERE)
    with_password = await web.get(path, Authorization=basic(token), **ELSEWHERE)

    assert with_token.body == with_password.body
    assert (readable(with_token), readable(with_password)) == (True, False)
    if tag := with_token.header("ETag"):
        assert readable(await web.get(path, Authorization=token, If_None_Match=tag, **ELSEWHERE))
    assert "Authorization" in with_token.header("Vary")
    assert with_token.header("Access-Control-Allow-Credentials") == ""


@pytest.mark.needs("authoring")
async def test_file_of_a_closed_feed_is_readable_elsewhere_with_a_bearer_token_only(web: Web) -> None:
    await web.component.create(ALICE, "closed", access_model="whitelist")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    post = await web.ask("POST", "/entries/closed/", b"GIF89a", Authorization=token, Content_Type="image/gif")
    path = post.json["object"]["attachments"][0]["url"].removeprefix(web.origin)

    with_token = await web.get(path, Authorization=token, **ELSEWHERE)
    with_password = await web.get(path, Authorization=basic(token), **ELSEWHERE)

    assert (with_token.status, with_password.status) == (200, 200)
    assert (readable(with_token), readable(with_password)) == (True, False)


@pytest.mark.parametrize("path", ["/feeds.opml", pytest.param("/feeds.nno", marks=pytest.mark.needs("documents"))])
async def test_cached_list_is_not_readable_elsewhere_with_a_password(web: Web, path: str) -> None:
    """The service caches the list for some seconds; the headers belong to one request."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    token = await bearer(web, ALICE, TokenScope.READ)

    with_token = await web.get(path, Authorization=token, **ELSEWHERE)
    with_password = await web.get(path, Authorization=basic(token), **ELSEWHERE)

    assert with_token.body == with_password.body
    assert (readable(with_token), readable(with_password)) == (True, False)


async def test_page_of_an_entry_is_private_after_its_feed_was_closed(notes: Web) -> None:
    """The page is cached, and is the same before and after."""
    await notes.component.publish(ALICE, "notes", "a")
    token = await bearer(notes, ALICE, TokenScope.READ)
    before = await notes.get("/entries/notes/a", "text/html", **ELSEWHERE)
    await notes.component.configure(ALICE, "notes", access_model="whitelist")
    after = await notes.get("/entries/notes/a", "text/html", Authorization=basic(token), **ELSEWHERE)

    assert before.body == after.body
    assert (before.header("Cache-Control"), readable(before)) == ("no-cache", True)
    assert (after.header("Cache-Control"), readable(after)) == ("private, no-cache", False)


async def test_held_pull_and_stream_of_a_closed_feed_are_readable_elsewhere(web: Web) -> None:
    """Written past the router."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    await web.component.publish(ALICE, "closed", "a")
    token = await bearer(web, ALICE, TokenScope.READ)
    for authorization, expected in ((token, "*"), (basic(token), None)):
        headers = {"Authorization": authorization, "Accept": "text/event-stream", **ELSEWHERE}
        async with web.session.get(f"{web.origin}/feeds/closed/", headers=headers) as stream:
            assert stream.headers.get("Access-Control-Allow-Origin") == expected


async def test_description_is_readable_elsewhere(web: Web) -> None:
    got = await web.get("/openapi.json", **ELSEWHERE)
    assert (got.status, readable(got)) == (200, True)
    assert (await web.ask("OPTIONS", "/openapi.json", **ELSEWHERE)).header(
        "Access-Control-Allow-Methods"
    ) == "GET, HEAD"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        (None, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        (TokenScope.READ, "GET, HEAD, OPTIONS"),
        (TokenScope.PUBLISH, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
    ],
)
async def test_options_names_what_the_scope_of_the_token_allows(
    notes: Web, scope: TokenScope | None, allowed: str
) -> None:
    """The same as Allow of 405. Without a token the scope is unknown."""
    headers = {} if scope is None else {"Authorization": await bearer(notes, ALICE, scope)}
    told = await notes.ask("OPTIONS", "/entries/notes/a", **headers)
    refused = await notes.ask("POST", "/entries/notes/a", **headers)
    assert (told.status, told.header("Allow")) == (204, allowed)
    assert (refused.status, refused.header("Allow")) == (405, allowed)


async def test_options_of_another_feed_than_that_of_the_token(notes: Web) -> None:
    token = await bearer(notes, ALICE, TokenScope.ADMIN, "notes")
    assert (await notes.ask("OPTIONS", "/feeds/other/", Authorization=token)).header("Allow") == "OPTIONS"
    assert "DELETE" in (await notes.ask("OPTIONS", "/feeds/notes/", Authorization=token)).header("Allow")
    assert (await notes.ask("OPTIONS", "/feeds/notes/", Authorization="Bearer unknown")).status == 401


@pytest.mark.parametrize("accept", ["application/xml", "text/xml", "application/xml;q=0.9, image/png"])
@pytest.mark.parametrize("path", ["/feeds/notes/?timeout=0", "/entries/notes/a"])
async def test_xml_is_atom(notes: Web, path: str, accept: str) -> None:
    """[SF-058]."""
    await notes.component.publish(ALICE, "notes", "a")
    got = await notes.get(path, accept)
    assert (got.status, got.header("Content-Type").partition(";")[0]) == (200, "application/atom+xml")


async def test_browser_that_takes_xml_too_gets_a_page(notes: Web) -> None:
    got = await notes.get("/feeds/notes/", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    assert got.header("Content-Type").startswith("text/html")


async def put(web: Web, token: str, body: bytes) -> Got:
    return await web.ask("PUT", "/feeds/news/", body, Authorization=token, Content_Type=JSON)


async def test_put_of_a_feed_may_be_repeated(start_web: WebStarter) -> None:
    """[SF-114] [rfc 9110 9.3.4]: a client that got no response sends it again. Another value is a conflict."""
    web = await start_web()
    token, carol = await bearer(web, ALICE, TokenScope.ADMIN), await bearer(web, CAROL, TokenScope.ADMIN)
    body = b'{"title": "News", "max_payload_size": 2000}'

    assert [(await put(web, token, body)).status for _ in range(2)] == [201, 204]
    assert (await put(web, token, b'{"title": "News"}')).status == 204
    other = await put(web, token, b'{"title": "Olds", "max_payload_size": 2000}')
    kind = await put(web, token, b'{"kind": "generic"}')
    theirs = await put(web, carol, body)

    assert (other.status, other.json["detail"]) == (409, "news exists already, with title 'News'")
    assert (kind.status, kind.json["detail"]) == (409, "news exists already, with the kind feed")
    assert (theirs.status, theirs.json["detail"]) == (409, "there is a node news already")
    assert (await put(web, token, b'{"access_model": "roster"}')).status == 400
