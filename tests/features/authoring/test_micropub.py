"""Micropub: entries created, changed and deleted by blog editors (W3C Recommendation of 23 May 2017)."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from lxml import etree
from yarl import URL

from smartfeeds.core.token import TokenScope
from smartfeeds.features.authoring.routes import AuthoringHandlers
from support.bearer import bearer
from support.component import ALICE, BOB
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
FORM = "application/x-www-form-urlencoded"
A = "{http://www.w3.org/2005/Atom}"
NOTE = {"type": ["h-entry"], "properties": {"content": ["hello"]}}


async def send(web: Web, token: str, body: Any, path: str = "/micropub/notes", **headers: str) -> Got:
    """JSON for an object, a form for pairs. Without a token, `token` is empty."""
    as_json = isinstance(body, dict)
    data = json.dumps(body) if as_json else urlencode(body)
    kind = "application/json" if as_json else FORM
    sent = {"Authorization": token} if token else {}
    return await web.ask("POST", path, data.encode(), Content_Type=kind, **sent, **headers)


async def made(web: Web, token: str, body: Any, **headers: str) -> str:
    """The address of a new entry."""
    got = await send(web, token, body, **headers)
    assert (got.status, got.body) == (201, b""), got.text
    assert got.header("Location").startswith(f"{web.origin}/entries/notes/")
    return got.header("Location")


async def entry_at(web: Web, url: str) -> etree._Element:
    """The Atom entry with an address."""
    got = await web.get(URL(url).raw_path, accept=ATOM)
    assert got.status == 200, got.text
    return etree.fromstring(got.body)


async def source(web: Web, token: str, url: str, *names: str) -> dict[str, Any]:
    """The answer to q=source."""
    query = urlencode([("q", "source"), ("url", url), *(("properties[]", name) for name in names)])
    got = await web.get(f"/micropub/notes?{query}", Authorization=token)
    assert got.status == 200, got.text
    answer: dict[str, Any] = got.json
    return answer


# Creating.


async def test_form_creates_an_entry(notes: Web, token: str) -> None:
    """[MP-01] 201 with Location; a property may be repeated, with or without brackets."""
    pairs = [("h", "entry"), ("name", "T"), ("content", "a\r\nb"), ("category[]", "x"), ("category[]", "y")]
    root = await entry_at(notes, await made(notes, token, pairs))
    assert (root.findtext(f"{A}title"), root.findtext(f"{A}content")) == ("T", "a\nb")
    assert [category.get("term") for category in root.findall(f"{A}category")] == ["x", "y"]


async def test_json_creates_an_entry(notes: Web, token: str) -> None:
    """[MP-02] An h-entry in JSON; HTML content, dates, replies, bookmarks and photos with a text."""
    properties = {
        "name": ["T"],
        "content": [{"html": "<b>c</b>"}],
        "summary": ["S"],
        "published": ["2026-01-02T03:04:05+01:00"],
        "category": ["x"],
        "in-reply-to": ["https://other.example/1"],
        "bookmark-of": ["https://other.example/2"],
        "photo": [{"value": "https://other.example/p.png", "alt": "A cat"}, "https://other.example/q"],
        "unknown": ["ignored"],
    }
    url = await made(notes, token, {"type": ["h-entry"], "properties": properties})
    root = await entry_at(notes, url)
    content = root.find(f"{A}content")
    assert content is not None and (content.get("type"), content.text) == ("html", "<b>c</b>")
    assert root.findtext(f"{A}published") == "2026-01-02T02:04:05Z"
    links = [(link.get("rel"), link.get("href"), link.get("type")) for link in root.findall(f"{A}link")]
    assert links == [
        ("related", "https://other.example/2", None),
        ("enclosure", "https://other.example/p.png", "image/png"),
        ("enclosure", "https://other.example/q", "image/jpeg"),
    ]
    answer = await source(notes, token, url)
    del properties["unknown"]
    assert answer["type"] == ["h-entry"]
    assert answer["properties"] == properties | {
        "content": [{"html": "<b>c</b>", "value": "c"}],
        "published": ["2026-01-02T02:04:05Z"],
        "url": [url],
    }


def multipart(*parts: tuple[str, bytes]) -> bytes:
    """A body with these parts."""
    body = b"".join(
        b"--x\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (h.encode(), data) for h, data in parts
    )
    return body + b"--x--\r\n"


async def test_multipart_creates_an_entry_with_a_photo(notes: Web, token: str) -> None:
    """[MP-03] The file is stored and served."""
    body = multipart(('name="h"', b"entry"), ('name="content"', b"c"), ('name="photo"; filename="p.jpg"', b"jpeg"))
    got = await notes.ask(
        "POST", "/micropub/notes", body, Authorization=token, Content_Type="multipart/form-data; boundary=x"
    )
    assert got.status == 201, got.text
    (photo,) = (await source(notes, token, got.header("Location"), "photo"))["properties"]["photo"]
    assert photo["alt"] == "p.jpg"
    assert (await notes.get(URL(photo["value"]).raw_path)).body == b"jpeg"


async def test_media_endpoint(notes: Web, token: str) -> None:
    """[MP-04] 201 with the address of the file; the entry follows."""
    config = await notes.get("/micropub/notes?q=config", Authorization=token)
    endpoint = URL(config.json["media-endpoint"])
    for parts, status in (
        ([('name="file"; filename="p.jpg"', b"jpeg")], 201),
        ([('name="x"', b"no file")], 400),
        ([('name="file"; filename="a"', b"1"), ('name="file"; filename="b"', b"2")], 400),
    ):
        got = await notes.ask(
            "POST",
            endpoint.raw_path,
            multipart(*parts),
            Authorization=token,
            Content_Type="multipart/form-data; boundary=x",
        )
        assert got.status == status
        if status == 201:
            assert (await notes.get(URL(got.header("Location")).raw_path)).body == b"jpeg"


async def test_slug(notes: Web, token: str) -> None:
    """[MP-05] A wish: with one that is taken, the entry gets another address, and nothing is overwritten."""
    body = {"type": ["h-entry"], "properties": {"content": ["one"], "mp-slug": ["my-post"]}}
    first, second = await made(notes, token, body), await made(notes, token, body)
    assert first == f"{notes.origin}/entries/notes/my-post" != second


# Changing.


async def test_update(notes: Web, token: str) -> None:
    """[MP-06] Replaces, adds and deletes; everything else of the entry stays."""
    await notes.component.publish(
        ALICE,
        "notes",
        "a",
        f"<entry xmlns='{A[1:-1]}'><title>T</title><content>c</content><category term='x'/><category term='y'/>"
        "<author><name>Ann</name></author><o xmlns='urn:own'>kept</o></entry>",
    )
    url = f"{notes.origin}/entries/notes/a"
    for change in (
        {"replace": {"content": ["new"]}},
        {"add": {"category": ["z", "x"]}},
        {"delete": {"category": ["y"]}},
        {"add": {"photo": ["https://other.example/p.jpg"]}},
    ):
        got = await send(notes, token, {"action": "update", "url": url, **change})
        assert (got.status, got.body) == (204, b""), got.text
    properties = (await source(notes, token, url))["properties"]
    assert {name: properties[name] for name in ("name", "content", "category", "photo")} == {
        "name": ["T"],
        "content": ["new"],
        "category": ["x", "z"],
        "photo": ["https://other.example/p.jpg"],
    }
    root = await entry_at(notes, url)
    assert (root.findtext(f"{A}author/{A}name"), root.findtext("{urn:own}o")) == ("Ann", "kept")
    assert (await send(notes, token, {"action": "update", "url": url, "delete": ["category", "photo"]})).status == 204
    assert "category" not in (await source(notes, token, url))["properties"]


async def test_update_of_a_note(notes: Web, token: str) -> None:
    """[MP-06] A note has no name: its title is the beginning of its text, which stays whole, and follows it."""
    url = await made(notes, token, NOTE)
    assert await source(notes, token, url, "name", "content") == {"properties": {"name": [], "content": ["hello"]}}
    update = {"action": "update", "url": url, "replace": {"content": ["other\nlines"]}}
    assert (await send(notes, token, update)).status == 204
    assert (await entry_at(notes, url)).findtext(f"{A}title") == "other…"
    assert (await send(notes, token, {"action": "update", "url": url, "add": {"name": ["N"]}})).status == 204
    properties = (await source(notes, token, url, "name", "content"))["properties"]
    assert properties == {"name": ["N"], "content": ["other\nlines"]}
    named = await made(notes, token, NOTE)
    assert (await send(notes, token, {"action": "update", "url": named, "add": {"name": ["N"]}})).status == 204
    assert (await source(notes, token, named, "content"))["properties"] == {"content": ["hello"]}


@pytest.mark.parametrize("value", ["file:///home/ann/p.jpg", {"value": "ftp://other.example/p.jpg", "alt": "A cat"}])
async def test_files_are_on_the_web(notes: Web, token: str, value: object) -> None:
    """The rule of posts: `https:` or `http:`, in a new entry and in an update."""
    url = await made(notes, token, NOTE)
    for body in (
        {"type": ["h-entry"], "properties": {"content": ["c"], "photo": [value]}},
        {"action": "update", "url": url, "add": {"photo": [value]}},
    ):
        got = await send(notes, token, body)
        assert (got.status, got.json["error"]) == (400, "invalid_request")
        assert "it begins with https://" in got.json["error_description"]


@pytest.mark.parametrize("as_json", [True, False])
async def test_delete(notes: Web, token: str, as_json: bool) -> None:
    """[MP-07] The entry becomes a tombstone. It cannot come back, because nothing of it is stored."""
    url = await made(notes, token, NOTE)
    body = {"action": "delete", "url": url}
    assert (await send(notes, token, body if as_json else list(body.items()))).status == 204
    assert (await notes.get(URL(url).raw_path)).status == 410
    again = await send(notes, token, {"action": "undelete", "url": url})
    assert (again.status, again.json["error"]) == (400, "invalid_request")


# Queries.


async def test_configuration_lists_the_feeds_of_the_token(notes: Web, token: str) -> None:
    """[MP-08] Only those in which it may publish."""
    await notes.component.create(ALICE, "other")
    everywhere = await bearer(notes, ALICE, TokenScope.PUBLISH)
    for text, names in ((token, ["notes"]), (everywhere, ["notes", "other"])):
        got = await notes.get("/micropub/notes?q=config", Authorization=text)
        assert sorted(one["name"] for one in got.json["destination"]) == names
        assert got.json["syndicate-to"] == []
    assert (await notes.get("/micropub/notes?q=syndicate-to", Authorization=token)).json == {"syndicate-to": []}
    assert (await notes.get("/micropub/notes?q=other", Authorization=token)).status == 400


async def test_source_of_another_feed(notes: Web, token: str) -> None:
    """A token for one feed does not read the entries of another, whatever its JID may read."""
    url = await made(notes, token, NOTE | {"properties": {"content": ["plan"]}})
    other = await bearer(notes, ALICE, TokenScope.ADMIN, feed="other")
    got = await notes.get(f"/micropub/other?q=source&url={url}", Authorization=other)
    assert (got.status, got.json["error"]) == (403, "insufficient_scope")
    assert "plan" not in got.text


@pytest.mark.parametrize("by_address", [True, False])
async def test_destination(notes: Web, by_address: bool) -> None:
    """[MP-09] mp-destination chooses another feed, by its address or its name."""
    await notes.component.create(ALICE, "a b/other")
    everywhere = await bearer(notes, ALICE, TokenScope.PUBLISH)
    uid = f"{notes.origin}/feeds/a%20b/other/" if by_address else "a b/other"
    got = await send(notes, everywhere, [("content", "x"), ("mp-destination", uid)])
    assert got.header("Location").startswith(f"{notes.origin}/entries/a%20b/other/")
    own = await bearer(notes, ALICE, TokenScope.PUBLISH, "notes")
    refused = await send(notes, own, [("content", "x"), ("mp-destination", uid)])
    assert (refused.status, refused.json["error"]) == (403, "insufficient_scope")


async def test_pages_name_the_endpoint(notes: Web) -> None:
    """[MP-10] A Link header of the feed."""
    for path in ("/feeds/notes/", "/feeds/notes.rss"):
        link = (await notes.get(f"{path}?timeout=0" if path.endswith("/") else path)).header("Link")
        assert f'<{notes.origin}/micropub/notes>; rel="micropub"' in link


# Tokens and errors.


async def test_token_in_the_form(notes: Web, token: str) -> None:
    """[MP-11] In one place: the header or the field."""
    text = token.removeprefix("Bearer ")
    assert (await send(notes, "", [("access_token", text), ("content", "x")])).status == 201
    both = await send(notes, token, [("access_token", text), ("content", "x")])
    assert (both.status, both.json["error"]) == (400, "invalid_request")
    parts = multipart(('name="access_token"', text.encode()), ('name="file"; filename="p.jpg"', b"jpeg"))
    media = await notes.ask("POST", "/media/notes", parts, Content_Type="multipart/form-data; boundary=x")
    assert media.status == 201


async def test_token_in_the_form_is_checked_before_the_file(start_web: WebStarter) -> None:
    """[MP-11] A file before the token, or without one, is not stored."""
    notes = await start_web()
    await notes.component.create(ALICE, "notes")
    for parts in ([], [('name="access_token"', b"sf_wrong")]):
        body = multipart(*parts, ('name="file"; filename="p.jpg"', b"jpeg"))
        got = await notes.ask("POST", "/media/notes", body, Content_Type="multipart/form-data; boundary=x")
        assert (got.status, got.json["error"]) == (401, "unauthorized")
    assert not notes.component.app.files.path.exists()


async def test_errors(notes: Web, token: str) -> None:
    """[MP-12] 401 unauthorized, 403 forbidden and insufficient_scope, 400 invalid_request, each with a description."""
    reader = await bearer(notes, ALICE, TokenScope.READ)
    stranger = await bearer(notes, BOB, TokenScope.PUBLISH)
    table = [
        (await send(notes, "", NOTE), 401, "unauthorized"),
        (await send(notes, "", [("content", "x")]), 401, "unauthorized"),
        (await notes.get("/micropub/notes?q=config"), 401, "unauthorized"),
        (await send(notes, reader, NOTE), 403, "insufficient_scope"),
        (await send(notes, stranger, NOTE), 403, "forbidden"),
    ]
    for got, status, error in table:
        assert (got.status, got.json["error"], bool(got.json["error_description"])) == (status, error, True), got.text
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"type": ["h-event"], "properties": {}},
        {"type": ["h-entry"], "properties": {"content": "hello"}},
        {"type": ["h-entry"], "properties": {"content": [5]}},
        {"type": ["h-entry"], "properties": {"photo": ["javascript:alert(1)"]}},
        {"type": ["h-entry"], "properties": {"published": ["yesterday"], "content": ["x"]}},
        {"type": ["h-entry"], "properties": {"content": ["x"], "post-status": ["draft"]}},
        {"type": ["h-entry"], "properties": {"content": ["x"], "visibility": ["private"]}},
        {"type": ["h-entry"], "properties": {}},
        {"type": ["h-entry"]},
        {"action": "explode", "url": "SELF/entries/notes/a"},
        {"action": "update", "url": "https://other.example/1", "replace": {}},
        {"action": "update", "url": "SELF/entries/notes/a", "replace": {"content": "x"}},
        {"action": "update", "url": "SELF/entries/notes/a", "replace": [], "delete": 5},
        {"action": "delete", "url": "SELF/feeds/notes/"},
        {"action": "delete", "url": ["a", "b"]},
        {"action": "delete"},
        [("h", "event"), ("content", "x")],
        [("content", "x"), ("post-status", "draft")],
        [("h", "entry")],
        [("action", "delete")],
    ],
)
async def test_invalid_requests(notes: Web, token: str, body: Any) -> None:
    """[MP-12] Nothing is published, and a draft least of all."""
    await notes.component.publish(ALICE, "notes", "a")
    if isinstance(body, dict) and isinstance(body.get("url"), str):
        body = body | {"url": body["url"].replace("SELF", notes.origin)}
    got = await send(notes, token, body)
    assert (got.status, got.json["error"]) == (400, "invalid_request"), got.text
    assert len((await notes.get("/feeds/notes/?timeout=0")).json["items"]) == 1


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"{", "application/json"), (b"[]", "application/json"), (b"\xff", FORM)],
)
async def test_unreadable_requests(notes: Web, token: str, body: bytes, media_type: str) -> None:
    """[MP-12] No incident."""
    got = await notes.ask("POST", "/micropub/notes", body, Authorization=token, Content_Type=media_type)
    assert (got.status, got.json["error"]) == (400, "invalid_request"), got.text


@pytest.mark.parametrize("path", ["/micropub/notes", "/media/notes"])
async def test_other_media_types(notes: Web, token: str, path: str) -> None:
    """[MP-12] 415 names what is accepted."""
    for media_type in ("text/plain", ""):
        got = await notes.ask("POST", path, b"x", Authorization=token, Content_Type=media_type)
        assert (got.status, "multipart/form-data" in got.header("Accept")) == (415, True)


async def test_missing_entries(notes: Web, token: str) -> None:
    """[MP-12] An entry that is gone cannot be changed."""
    url = await made(notes, token, NOTE)
    await send(notes, token, {"action": "delete", "url": url})
    for gone, status in ((url, 400), (f"{notes.origin}/entries/notes/none", 404)):
        got = await send(notes, token, {"action": "update", "url": gone, "replace": {"content": ["x"]}})
        assert got.status == status


async def test_pages_of_other_hosts(notes: Web, token: str) -> None:
    """[MP-13] An editor in a browser sends a bearer token; a browser that knows the password sends nothing."""
    elsewhere = {"Origin": "https://editor.example", "Sec_Fetch_Site": "cross-site"}
    got = await send(notes, token, [("content", "x")], **elsewhere)
    assert (got.status, got.header("Access-Control-Allow-Origin")) == (201, "*")
    password = "Basic " + base64.b64encode(f":{token.removeprefix('Bearer ')}".encode()).decode()
    refused = await send(notes, password, [("content", "x")], **elsewhere)
    assert (refused.status, refused.json["error"]) == (403, "forbidden")


async def test_update_waits_for_nobody(notes: Web, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[MP-06] Somebody else changes the entry between the reading and the writing: both changes are in it."""
    url = await made(notes, token, {"type": ["h-entry"], "properties": {"name": ["T"], "content": ["c"]}})
    site = notes.component.app.site
    assert site is not None
    micropub = site.handlers.get(AuthoringHandlers).micropub
    read, races = micropub._item, [1]

    async def raced(*arguments: Any, **options: Any) -> Any:
        answer = await read(*arguments, **options)
        if races:
            races.pop()
            await send(notes, token, {"action": "update", "url": url, "add": {"category": ["first"]}})
        return answer

    monkeypatch.setattr(micropub, "_item", raced)
    assert (await send(notes, token, {"action": "update", "url": url, "add": {"category": ["second"]}})).status == 204
    assert (await source(notes, token, url, "category"))["properties"] == {"category": ["first", "second"]}
