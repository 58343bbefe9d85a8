"""Items over HTTP: read, published, replaced, retracted; and that both wires agree."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lxml import etree

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import entry_path
from smartfeeds.errors import StoreError
from smartfeeds.http import bodies
from smartfeeds.service.requests import GetItem
from smartfeeds.store.base import Work
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, NS, bare, entry, ok, refusal
from support.waiting import until
from support.web import Got, Web
from support.xml_work import xml_work

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
JSON = "application/json"
ATOM_NS = "http://www.w3.org/2005/Atom"
FO = "{http://fanout.org/protocol/atom}"
SYNC = "{http://feedsync.org/2007/feedsync}sync"


async def put(web: Web, token: str, item_id: str, title: str = "hello", **headers: str) -> Got:
    body = entry(title).encode()
    path = entry_path("notes", item_id)
    return await web.ask("PUT", path, body, Authorization=token, Content_Type=ATOM, **headers)


async def stored(web: Web, item_id: str) -> etree._Element:
    """The payload of an item over XMPP."""
    answer = ok(await web.component.get(ALICE, f"<items node='notes'><item id='{item_id}'/></items>"))
    found = answer.find("ps:pubsub/ps:items/ps:item", NS)
    assert found is not None
    return found[0]


def title_of(body: bytes) -> str | None:
    return etree.fromstring(body).findtext(f"{{{ATOM_NS}}}title")


# Reading.


async def test_an_item_is_an_entry_of_its_own(notes: Web) -> None:
    """[SF-053] [SF-070] An Atom entry document with its item id, under a strong tag."""
    await notes.component.publish(ALICE, "notes", "a", entry("first & second"))
    got = await notes.get("/entries/notes/a")
    root = etree.fromstring(got.body)
    assert (got.status, got.header("Content-Type")) == (200, "application/atom+xml; charset=utf-8")
    assert (root.tag, root.findtext(f"{FO}id")) == (f"{{{ATOM_NS}}}entry", "a")
    assert root.findtext(f"{{{ATOM_NS}}}title") == "first & second"
    assert got.header("ETag").startswith('"')
    assert got.header("Vary") == "Accept, Authorization"
    assert got.header("Access-Control-Allow-Origin") == "*"


@pytest.mark.parametrize("inside", ["", "<updated>2011-05-09T12:00:00Z</updated><id>urn:x:1</id>"])
async def test_put_parses_and_writes_an_entry_once(
    notes: Web, token: str, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """Also where the service has to complete it; the answer repeats stored bytes."""
    body = f"<entry xmlns='{ATOM_NS}'><title>T</title><content>c</content>{inside}</entry>".encode()
    await notes.component.settle()  # what is sent because of former requests is read in this process, too
    with xml_work(monkeypatch) as work:
        got = await notes.ask("PUT", entry_path("notes", "a"), body, Authorization=token, Content_Type=ATOM)
    assert (got.status, title_of(got.body)) == (201, "T")
    assert work.counts == (1, 1, 0)


async def test_an_item_is_an_activity_where_that_is_wanted(notes: Web) -> None:
    """[SF-058] [SF-065] [A-35] The same JSON object as in a page of the feed."""
    await notes.component.publish(ALICE, "notes", "a")
    got = await notes.get("/entries/notes/a", accept=JSON)
    assert got.header("Content-Type") == "application/json; charset=utf-8"
    assert got.json == (await notes.get("/feeds/notes/")).json["items"][0]
    assert got.header("ETag") != (await notes.get("/entries/notes/a", accept=ATOM)).header("ETag")


@pytest.mark.parametrize("accept", [ATOM, JSON])
async def test_an_item_is_sent_again_only_when_it_has_changed(notes: Web, accept: str) -> None:
    """[SF-053] If-None-Match with its tag, weak or in a list or as *, is answered with 304 until the item changes."""
    await notes.component.publish(ALICE, "notes", "a")
    tag = (await notes.get("/entries/notes/a", accept=accept)).header("ETag")
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = await notes.get("/entries/notes/a", accept=accept, If_None_Match=known)
        assert (again.status, again.body, again.header("ETag")) == (304, b"", tag)
    await notes.component.publish(ALICE, "notes", "b")
    assert (await notes.get("/entries/notes/a", accept=accept, If_None_Match=tag)).status == 304
    await notes.component.publish(ALICE, "notes", "a")
    assert (await notes.get("/entries/notes/a", accept=accept, If_None_Match=tag)).status == 200


async def test_head_of_an_item_is_get_without_the_body(notes: Web) -> None:
    await notes.component.publish(ALICE, "notes", "a")
    got, head = await notes.get("/entries/notes/a"), await notes.ask("HEAD", "/entries/notes/a")
    assert (head.status, head.body) == (200, b"")
    for name in ("ETag", "Content-Type", "Content-Length"):
        assert head.header(name) == got.header(name)


async def test_a_deleted_item_is_gone_and_its_tombstone_says_so(notes: Web) -> None:
    """[SF-013] [A-18] 410 with what is left of it, in both forms; what was never there is 404."""
    await notes.component.publish(ALICE, "notes", "a")
    await notes.component.retract(ALICE, "notes", "a")
    got = await notes.get("/entries/notes/a")
    root = etree.fromstring(got.body)
    sync = root.find(SYNC)
    assert (got.status, root.findtext(f"{FO}id")) == (410, "a")
    assert sync is not None and sync.get("deleted") == "true"
    as_json = await notes.get("/entries/notes/a", accept=JSON, If_None_Match="*")
    assert (as_json.status, as_json.json["id"], as_json.json["deleted"]) == (410, "a", True)
    for path in ("/entries/notes/b", "/entries/none/a", "/entries/notes", "/entries/", "/entries/%FF/a"):
        assert (await notes.get(path)).status == 404


async def test_an_item_is_one_of_two_forms(notes: Web) -> None:
    """[SF-058] Nothing else is offered."""
    await notes.component.publish(ALICE, "notes", "a")
    assert (await notes.get("/entries/notes/a", accept="text/plain")).status == 406


@pytest.mark.parametrize("item_id", ["a b", "a/b", "a:b", "?", "ü", "..", "%", "tag:example.org,2026:x"])
async def test_any_id_has_an_address(notes: Web, token: str, item_id: str) -> None:
    """[SF-025] Whatever is in an id: what is put under its address is found under it, here and over XMPP."""
    made = await put(notes, token, item_id)
    assert (made.status, made.header("Location")) == (201, f"{notes.origin}{entry_path('notes', item_id)}")
    assert (await notes.get(entry_path("notes", item_id))).body == made.body
    assert await notes.component.item_ids(ALICE, "notes") == [item_id]


async def test_items_of_closed_feeds_are_for_their_readers(start_web: Any) -> None:
    """[SF-111] Who may not read the feed is told neither of its items nor whether they are there."""
    web = await start_web()
    await web.component.create(ALICE, "closed", access_model="whitelist")
    await web.component.publish(ALICE, "closed", "a")
    await web.component.affiliate(ALICE, "closed", BOB, "member")
    for path in ("/entries/closed/a", "/entries/closed/none"):
        assert (await web.get(path)).status == 404
        assert (await web.get(path, Authorization=await bearer(web, CAROL, TokenScope.READ))).status == 403
    got = await web.get("/entries/closed/a", Authorization=await bearer(web, BOB, TokenScope.READ))
    assert (got.status, got.header("Cache-Control")) == (200, "private, no-cache")


# Publishing.


async def test_what_is_put_is_there_on_both_wires(notes: Web, token: str) -> None:
    """[SF-001] [SF-009] [SF-110] 201, where it is, its tag, and the entry as it was stored, completed."""
    await notes.component.subscribe(BOB, "notes?order=modified")
    made = await put(notes, token, "a", "hello")
    got = await notes.get("/entries/notes/a")
    assert (made.status, made.header("Location")) == (201, f"{notes.origin}/entries/notes/a")
    assert (made.body, made.header("ETag")) == (got.body, got.header("ETag"))
    assert made.header("Content-Location") == made.header("Location")
    assert (await stored(notes, "a")).findtext(f"{{{ATOM_NS}}}title") == "hello"
    assert len(await notes.component.events(bare(BOB))) == 1


async def test_a_second_put_replaces(notes: Web, token: str) -> None:
    """[SF-009] [SF-005] 200 with the new state; the item keeps its place in created order."""
    first = await put(notes, token, "a", "one")
    await put(notes, token, "b", "other")
    second = await put(notes, token, "a", "two")
    assert (second.status, "Location" in second.headers) == (200, False)
    assert second.header("Content-Location") == f"{notes.origin}/entries/notes/a"
    assert (title_of(second.body), second.header("ETag") != first.header("ETag")) == ("two", True)
    in_order = (await notes.get("/feeds/notes/?order=created")).json["items"]
    assert [item["id"] for item in in_order] == ["a", "b"]


@pytest.mark.needs("authoring")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (ATOM, entry("hello").encode()),
        (JSON, b'{"verb":"post","object":{"objectType":"note","content":"hello"}}'),
    ],
)
async def test_identical_put_is_no_change(notes: Web, token: str, media_type: str, body: bytes) -> None:
    """200, the same ETag and no push, as often as it is repeated; over XMPP too."""
    await notes.component.subscribe(BOB, "notes")

    async def again(**headers: str) -> Got:
        path = entry_path("notes", "a")
        return await notes.ask("PUT", path, body, Authorization=token, Content_Type=media_type, **headers)

    first = await again()
    page = (await notes.get("/feeds/notes/")).header("ETag")
    notes.component.clock.advance(60)
    assert len(await notes.component.events(bare(BOB))) == 1
    second, third = await again(), await again(If_Match=first.header("ETag"))

    assert (first.status, second.status, third.status) == (201, 200, 200)
    assert second.body == third.body == first.body
    assert {first.header("ETag")} == {second.header("ETag"), third.header("ETag")}
    assert "Location" in first.headers and "Location" not in second.headers
    assert (await notes.get("/feeds/notes/")).header("ETag") == page
    assert (await again(If_None_Match="*")).status == 412
    payload = etree.tostring(await stored(notes, "a"), encoding="unicode")
    await notes.component.publish(ALICE, "notes", "a", payload)
    assert await notes.component.events(bare(BOB)) == []
    assert (await notes.get("/feeds/notes/")).header("ETag") == page


async def test_repeated_put_of_an_entry_of_nobody_is_no_change(notes: Web, token: str) -> None:
    """Its author is the owner of the token, each time in the same place. What was got can be put again, too."""
    body = f"<entry xmlns='{ATOM_NS}'><title>hello</title></entry>".encode()
    first = await notes.ask("PUT", "/entries/notes/a", body, ATOM, Authorization=token, Content_Type=ATOM)
    assert etree.fromstring(first.body).findtext(f"{{{ATOM_NS}}}author/{{{ATOM_NS}}}uri") == f"xmpp:{bare(ALICE)}"
    notes.component.clock.advance(60)
    for again in (body, first.body):
        got = await notes.ask("PUT", "/entries/notes/a", again, ATOM, Authorization=token, Content_Type=ATOM)
        assert (got.status, got.header("ETag"), got.body) == (200, first.header("ETag"), first.body)


async def test_entry_that_is_not_stored_has_its_author_too(notes: Web) -> None:
    await notes.component.create(ALICE, "alarm", kind="generic", persist_items="0")
    await notes.component.subscribe(BOB, "alarm")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    body = entry("fire").encode()
    assert (await notes.ask("PUT", "/entries/alarm/a", body, Authorization=token, Content_Type=ATOM)).status == 204
    (event,) = await notes.component.events(bare(BOB))
    assert f"xmpp:{bare(ALICE)}" in etree.tostring(event, encoding="unicode")


async def test_put_of_what_is_stored_changes_nothing(notes: Web, token: str) -> None:
    """An entry of XMPP that names nobody, and is repeated or put back as it was read. An edit of it has an author."""
    body = f"<entry xmlns='{ATOM_NS}'><title>hello</title></entry>"
    await notes.component.publish(ALICE, "notes", "a", body)
    tag = (await notes.get("/entries/notes/a", accept=ATOM)).header("ETag")
    notes.component.clock.advance(60)
    read = (await notes.get("/entries/notes/a", accept=ATOM)).body
    for again in (body.encode(), read):
        got = await notes.ask("PUT", "/entries/notes/a", again, ATOM, Authorization=token, Content_Type=ATOM)
        assert (got.status, got.header("ETag")) == (200, tag)
    edited = await put(notes, token, "a", "changed", Accept=ATOM)
    assert bare(ALICE) in edited.text


@pytest.mark.parametrize(
    "inner",
    [
        "<author><name>Ann</name></author>",
        "<source><id>urn:x:blog</id><author><name>Ann</name></author></source>",
        "<sync xmlns='http://feedsync.org/2007/feedsync' id='a' updates='1'>"
        "<history sequence='1' when='2026-01-01T00:00:00Z' by='x'/></sync>",
        "<sync xmlns='http://feedsync.org/2007/feedsync'/>",
    ],
    ids=["author", "author of the source", "sync data", "sync data that is not whole"],
)
async def test_entry_that_came_from_somewhere_keeps_its_authors(notes: Web, token: str, inner: str) -> None:
    body = f"<entry xmlns='{ATOM_NS}'><title>x</title>{inner}</entry>".encode()
    got = await notes.ask("PUT", "/entries/notes/a", body, ATOM, Authorization=token, Content_Type=ATOM)
    assert got.status == 201
    names = etree.fromstring(got.body).xpath("//a:author/a:name/text()", namespaces={"a": ATOM_NS})
    # An entry alone has the name of its feed if it names nobody (RFC 4287 4.1.2).
    assert names == (["Ann"] if "Ann" in inner else ["notes"])


@pytest.mark.needs("authoring")
async def test_an_activity_gets_the_atom_id_of_its_node(notes: Web, token: str) -> None:
    """[SF-092] As an entry does, unless it says one."""
    for item_id, said, atom_id in (
        ("a", "", "xmpp:feeds.example.org?;node=notes;item=a"),
        ("urn:x:b", "", "xmpp:feeds.example.org?;node=notes;item=urn%3Ax%3Ab"),
        ("c", '"id":"tag:x,1",', "tag:x,1"),
    ):
        body = f'{{"verb":"post","object":{{{said}"objectType":"note","content":"hello"}}}}'.encode()
        path = entry_path("notes", item_id)
        await notes.ask("PUT", path, body, Authorization=token, Content_Type=JSON)
        assert (await stored(notes, item_id)).findtext(f"{{{ATOM_NS}}}id") == atom_id


async def test_what_is_posted_gets_an_id_of_ours(notes: Web, token: str) -> None:
    """[SF-010] The id is the service's, whatever fo:id or atom:id the entry came with; the atom:id stays."""
    body = entry("x").replace(
        "</entry>", "<id xmlns='http://fanout.org/protocol/atom'>mine</id><id>urn:x:1</id></entry>"
    )
    made = await notes.ask("POST", "/entries/notes/", body.encode(), Authorization=token, Content_Type=ATOM)
    root = etree.fromstring(made.body)
    ids = [root.findtext(f"{FO}id"), root.findtext(f"{{{ATOM_NS}}}id")]
    assert (made.status, made.header("Location")) == (201, f"{notes.origin}/entries/notes/{ids[0]}")
    assert ids == [(await notes.component.item_ids(ALICE, "notes"))[0], "urn:x:1"]
    assert ids[0] != "mine"
    assert (await stored(notes, str(ids[0]))).find(f"{FO}id") is None


@pytest.mark.needs("authoring")
async def test_what_was_got_can_be_put_again(notes: Web, token: str) -> None:
    """[SF-070] [A-35] An entry or activity that is put back as it was got is the same item with the same payload."""
    full = (
        f"<entry xmlns='{ATOM_NS}'><id>urn:x:1</id><title>Title</title><updated>2026-01-01T00:00:00Z</updated>"
        "<published>2025-12-31T00:00:00Z</published><author><name>Alice</name><uri>http://alice.example/</uri></author>"
        "<category term='t'/><content type='html'>&lt;p&gt;x&lt;/p&gt;</content><link href='http://a.example/1'/></entry>"
    )
    await notes.component.publish(ALICE, "notes", "a", full)
    for media_type in (ATOM, JSON):
        before = await notes.get("/entries/notes/a", accept=media_type)
        made = await notes.ask("PUT", "/entries/notes/a", before.body, Authorization=token, Content_Type=media_type)
        assert (made.status, made.body) == (200, before.body)


@pytest.mark.needs("authoring")
async def test_an_activity_is_published_as_an_entry(notes: Web, token: str) -> None:
    """[A-35] [SF-091] What it says is in the Atom entry that XMPP gets; the answer is an activity."""
    activity = {"verb": "post", "actor": {"displayName": "Alice"}, "object": {"displayName": "T", "content": "a < b"}}
    made = await notes.ask(
        "POST", "/entries/notes/", json.dumps(activity).encode(), Authorization=token, Content_Type=JSON
    )
    item_id = made.json["id"]
    payload = await stored(notes, item_id)
    assert (made.status, made.header("Content-Type")) == (201, "application/json; charset=utf-8")
    assert (payload.findtext(f"{{{ATOM_NS}}}title"), payload.findtext(f"{{{ATOM_NS}}}content")) == ("T", "a < b")
    assert payload.findtext(f"{{{ATOM_NS}}}author/{{{ATOM_NS}}}name") == "Alice"
    assert made.json["object"]["content"] == "a < b"
    assert (await notes.get(f"/entries/notes/{item_id}", accept=JSON)).header("ETag") == made.header("ETag")


@pytest.mark.needs("authoring")
@pytest.mark.parametrize("media_type", [ATOM, JSON])
async def test_a_body_with_the_deleted_mark_retracts(notes: Web, token: str, media_type: str) -> None:
    """[SF-013] [A-18] As over XMPP: 204, and a tombstone is left."""
    await put(notes, token, "a")
    marked = {
        ATOM: f"<entry xmlns='{ATOM_NS}'><sync xmlns='http://feedsync.org/2007/feedsync' deleted='true'/></entry>",
        JSON: '{"deleted": true}',
    }[media_type]
    done = await notes.ask("PUT", "/entries/notes/a", marked.encode(), Authorization=token, Content_Type=media_type)
    assert (done.status, done.body) == (204, b"")
    assert (await notes.get("/entries/notes/a")).status == 410


async def test_what_the_publisher_may_not_read_is_not_shown_to_it(start_web: Any) -> None:
    """[SF-111] Who may only publish gets the address of its item and nothing else."""
    web = await start_web()
    await web.component.create(ALICE, "notes", access_model="whitelist")
    await web.component.affiliate(ALICE, "notes", BOB, "publish-only")
    token = await bearer(web, BOB, TokenScope.PUBLISH)
    made = await web.ask("POST", "/entries/notes/", entry("x").encode(), Authorization=token, Content_Type=ATOM)
    assert (made.status, made.body) == (201, b"")
    assert made.header("Location").startswith(f"{web.origin}/entries/notes/")


# Conditions.


async def test_if_match_lets_only_one_of_two_win(notes: Web, token: str) -> None:
    """[SF-009] Two changes of what both have seen: one is made, the other is told 412 and changes nothing."""
    tag = (await put(notes, token, "a", "zero")).header("ETag")
    both = await asyncio.gather(*(put(notes, token, "a", title, If_Match=tag) for title in ("one", "two")))
    assert sorted(got.status for got in both) == [200, 412]
    winner = next(got for got in both if got.status == 200)
    assert (await notes.get("/entries/notes/a")).body == winner.body


async def test_a_tag_of_either_form_is_good_for_a_change(notes: Web, token: str) -> None:
    """[SF-009] What was read as an activity is changed as an entry."""
    await put(notes, token, "a")
    tag = (await notes.get("/entries/notes/a", accept=JSON)).header("ETag")
    assert (await put(notes, token, "a", "new", If_Match=f'"other", {tag}')).status == 200


@pytest.mark.parametrize(
    ("state", "headers", "status"),
    [
        ("none", {"If_None_Match": "*"}, 201),
        ("live", {"If_None_Match": "*"}, 412),
        ("live", {"If_Match": "*"}, 200),
        ("live", {"If_Match": '"1.1"'}, 412),
        ("live", {"If_Match": "W/{tag}"}, 412),
        ("live", {"If_Match": "nonsense"}, 412),
        ("gone", {"If_Match": "{tag}"}, 201),
        ("live", {"If_None_Match": "{tag}"}, 400),
        ("live", {"If_None_Match": "*", "If_Match": "*"}, 400),
    ],
)
async def test_conditions_of_a_put(notes: Web, token: str, state: str, headers: dict[str, str], status: int) -> None:
    """[SF-009] What is expected of the item before it changes; where that is not so, 412 and nothing has happened."""
    if state != "none":
        await put(notes, token, "a", "before")
    if state == "gone":
        await notes.component.retract(ALICE, "notes", "a")
    before = await notes.get("/entries/notes/a")
    sent = {name: value.replace("{tag}", before.header("ETag")) for name, value in headers.items()}
    assert (await put(notes, token, "a", "after", **sent)).status == status
    if status >= 400:
        assert (await notes.get("/entries/notes/a")).body == before.body


async def test_delete_retracts_what_is_as_expected(notes: Web, token: str) -> None:
    """[SF-013] 204 once; 412 for another tag, 404 for what is not there any more."""
    tag = (await put(notes, token, "a")).header("ETag")
    assert (await notes.ask("DELETE", "/entries/notes/a", Authorization=token, If_Match='"1.1"')).status == 412
    done = await notes.ask("DELETE", "/entries/notes/a", Authorization=token, If_Match=tag)
    assert (done.status, done.body) == (204, b"")
    assert (await notes.ask("DELETE", "/entries/notes/a", Authorization=token)).status == 404
    assert (await notes.ask("DELETE", "/entries/notes/never", Authorization=token)).status == 404
    assert (await notes.get("/entries/notes/a")).status == 410


# Feeds.


async def test_a_feed_is_made_configured_and_deleted(web: Web) -> None:
    """[SF-112] [SF-114] PUT makes a feed with its options, 409 where there is another one; DELETE frees the name."""
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    body = b'{"title": "News", "access_model": "open", "deliver_payloads": true, "max_payload_size": 2000}'
    made = await web.ask("PUT", "/feeds/news/", body, Authorization=token, Content_Type=JSON)
    assert (made.status, made.header("Location")) == (201, f"{web.origin}/feeds/news/")
    config = await web.component.config(ALICE, "news")
    assert (config["title"], config["max_payload_size"]) == (["News"], ["2000"])
    other = await web.ask("PUT", "/feeds/news/", b'{"title": "Olds"}', Authorization=token, Content_Type=JSON)
    assert other.status == 409
    assert (await web.get("/feeds/news/?timeout=0")).status == 200
    assert (await web.ask("DELETE", "/feeds/news/", Authorization=token)).status == 204
    assert (await web.get("/feeds/news/?timeout=0")).status == 404
    assert (await web.ask("PUT", "/feeds/news/", Authorization=token)).status == 201


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("access_mode", "did you mean access_model?"),
        ("Title", "did you mean title?"),
        ("pubsub#title", "did you mean title?"),
        ("kinds", "did you mean kind?"),
        ("body_xslt", "is no option of a feed"),
        ("x" * 50_000, "there are kind, title, "),
    ],
)
async def test_a_mistyped_option_makes_no_feed(web: Web, name: str, hint: str) -> None:
    """400 with the name that was meant: nobody gets an open feed for a slip."""
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    body = json.dumps({"title": "News", name: "whitelist"}).encode()
    got = await web.ask("PUT", "/feeds/news/", body, Authorization=token, Content_Type=JSON)
    assert (got.status, hint in got.json["detail"], len(got.json["detail"]) < 1_000) == (400, True, True)
    assert (await web.get("/feeds/news/?timeout=0")).status == 404


@pytest.mark.parametrize(
    ("kind", "status"), [("feed", 400), ("generic", 201), ("leaf", None), (["generic"], None), (True, None)]
)
async def test_the_kind_of_a_new_node(web: Web, kind: Any, status: int | None) -> None:
    """[SF-114] [xep-map 135] A feed, or a generic node, which takes payloads that are no entries; 400 for others.

    A feed without items would become generic with the first payload that is no entry.
    """
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    body = json.dumps({"kind": kind, "title": "News"}).encode()
    made = await web.ask("PUT", "/feeds/news/", body, Authorization=token, Content_Type=JSON)
    assert made.status == (400 if status is None else 201)
    assert status is not None or made.json["detail"] == "kind: one of feed, generic"
    if status is not None:
        await web.component.publish(ALICE, "news", "old")
        payload = b"<geoloc xmlns='http://jabber.org/protocol/geoloc'><lat>1</lat></geoloc>"
        got = await web.ask("PUT", "/entries/news/a", payload, Authorization=token, Content_Type=ATOM)
        assert got.status == status


async def test_who_sends_options_in_another_form_is_told_theirs(web: Web) -> None:
    """[SF-114] The 415 names what options are sent as, not what items are."""
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    got = await web.ask("PUT", "/feeds/news/", b"<x/>", Authorization=token, Content_Type=ATOM)
    assert (got.status, got.header("Accept")) == (415, JSON)
    zipped = await web.ask(
        "PUT", "/feeds/news/", b"{}", Authorization=token, Content_Type=JSON, Content_Encoding="gzip"
    )
    assert (zipped.status, zipped.header("Accept"), zipped.header("Accept-Encoding")) == (415, JSON, "identity")


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"[]", JSON, 400),
        (b'{"title": {}}', JSON, 400),
        (b'{"title": 1.5}', JSON, 400),
        (b"{", JSON, 400),
        (b'{"access_model": "none of these"}', JSON, 400),
        (b'{"deliver_payloads": "maybe"}', JSON, 400),
        (b'{"deliver_payloads": 0}', JSON, 400),
        (b'{"title": true}', JSON, 400),
        (b'{"title": ["x"]}', JSON, 400),
        (b'{"access_model": 1}', JSON, 400),
        (b'{"contact": "alice@example.org"}', JSON, 400),
        (b'{"purge_offline": true}', JSON, 406),
        (b"title=x", "application/x-www-form-urlencoded", 415),
        (b"{}", f"{JSON}; charset=utf-16", 415),
    ],
)
async def test_options_that_cannot_be(web: Web, body: bytes, media_type: str, status: int) -> None:
    """[SF-114] No feed is made where its options are wrong."""
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    got = await web.ask("PUT", "/feeds/news/", body, Authorization=token, Content_Type=media_type)
    assert got.status == status
    assert (await web.get("/feeds/news/?timeout=0")).status == 404


async def test_delete_of_all_entries_purges(notes: Web, token: str) -> None:
    """[SF-013] Every item becomes a tombstone."""
    for item_id in ("a", "b"):
        await put(notes, token, item_id)
    admin = await bearer(notes, ALICE, TokenScope.ADMIN, "notes")
    assert (await notes.ask("DELETE", "/entries/notes/", Authorization=admin)).status == 204
    assert [(await notes.get(f"/entries/notes/{item_id}")).status for item_id in ("a", "b")] == [410, 410]


@pytest.mark.needs("administration")
async def test_methods_that_are_not_there(notes: Web, token: str) -> None:
    """POST on the base URL is 405, and so is what an address does not take; Allow says what it takes."""
    admin = await bearer(notes, ALICE, TokenScope.ADMIN)
    table = [
        ("POST", "/feeds/notes/", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        ("POST", "/entries/notes/a", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        ("PUT", "/entries/notes/", "POST, DELETE, OPTIONS"),
        ("GET", "/entries/notes/", "POST, DELETE, OPTIONS"),
    ]
    for method, path, allowed in table:
        got = await notes.ask(method, path, b"", Authorization=admin)
        assert (got.status, got.header("Allow")) == (405, allowed), (method, path)


@pytest.mark.parametrize("path", ["/entries/notes/%01", "/entries/no%01/a", "/feeds/no%01/", "/feeds/%EF%BF%BF/"])
async def test_names_that_xml_cannot_carry(notes: Web, path: str) -> None:
    """[xep-map 246] What could never leave in a stanza is never stored."""
    admin = await bearer(notes, ALICE, TokenScope.ADMIN)
    assert (await notes.ask("PUT", path, entry("x").encode(), Authorization=admin, Content_Type=ATOM)).status == 400


# Bodies.


@pytest.mark.needs("authoring")
@pytest.mark.parametrize(
    ("media_type", "encoding"),
    [
        ("", ""),
        ("text/xml", ""),
        ("application/x-www-form-urlencoded", ""),
        ("application/atom+xml; charset=utf-16", ""),
        (f"{ATOM}; charset=utf-7", ""),
        (f"{JSON}; charset=latin1", ""),
        (ATOM, "gzip"),
        (ATOM, "br"),
    ],
)
async def test_bodies_of_other_types(notes: Web, token: str, media_type: str, encoding: str) -> None:
    """[SF-114] 415, which says what is taken; nothing is stored."""
    headers = {"Content_Encoding": encoding} if encoding else {}
    got = await notes.ask(
        "PUT", "/entries/notes/a", entry("x").encode(), Authorization=token, Content_Type=media_type, **headers
    )
    assert (got.status, "application/atom+xml" in got.header("Accept")) == (415, True)
    assert (await notes.get("/entries/notes/a")).status == 404


@pytest.mark.needs("authoring")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (ATOM, "<?xml version='1.0' encoding='iso-8859-1'?>{}".format(entry("ü")).encode("latin-1")),
        (ATOM, "<?xml version='1.0' encoding='utf-16'?>{}".format(entry("ü")).encode("utf-16")),
        (f"{ATOM}; charset=UTF-8", "<?xml version='1.0' encoding='iso-8859-1'?>{}".format(entry("ü")).encode()),
        (f'{ATOM};type=entry;charset="utf-8"', entry("ü").encode()),
        (f"{JSON}; charset=utf-8", '{"object": {"displayName": "ü"}}'.encode()),
        ("application/activity+json", b'\xef\xbb\xbf{"object": {"displayName": "\\u00fc"}}'),
    ],
)
async def test_encodings(notes: Web, token: str, media_type: str, body: bytes) -> None:
    """[SF-114] The charset of the header wins over that of the document (RFC 7303 3); JSON is UTF-8."""
    made = await notes.ask("PUT", "/entries/notes/a", body, Authorization=token, Content_Type=media_type)
    assert made.status == 201
    assert (await stored(notes, "a")).findtext(f"{{{ATOM_NS}}}title") == "ü"


def deep(levels: int) -> str:
    return f"<entry xmlns='{ATOM_NS}'>{'<x>' * levels}{'</x>' * levels}</entry>"


BAD = {
    "no payload": "",
    "no entry": "<note xmlns='urn:x'/>",
    "too deep": deep(140),
    "too big": entry("x" * 66_000),
}


@pytest.mark.parametrize("case", BAD)
async def test_both_wires_refuse_the_same_payloads_for_the_same_reason(notes: Web, case: str) -> None:
    """[SF-091] [xep-map 246] What XMPP does not take, HTTP does not take, under the same condition."""
    await notes.component.publish(ALICE, "notes", "old")  # so that the node stays a feed
    refused = refusal(
        await notes.component.set(ALICE, f"<publish node='notes'><item id='a'>{BAD[case]}</item></publish>")
    )
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    got = await notes.ask("PUT", "/entries/notes/a", BAD[case].encode(), Authorization=token, Content_Type=ATOM)
    assert got.json["condition"] == (refused.detail or refused.condition)
    assert got.json["status"] == got.status >= 400


@pytest.mark.needs("authoring")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (ATOM, b"<entry"),
        (ATOM, b"<!DOCTYPE entry [<!ENTITY e 'x'>]><entry xmlns='http://www.w3.org/2005/Atom'>&e;</entry>"),
        (ATOM, b"<!DOCTYPE entry SYSTEM 'file:///etc/passwd'><entry xmlns='http://www.w3.org/2005/Atom'/>"),
        (ATOM, b"<?x?> <!-- y --><!DOCTYPE entry><entry xmlns='http://www.w3.org/2005/Atom'/>"),
        (ATOM, b"<?xml version='1.0' encoding='utf-7'?><entry xmlns='http://www.w3.org/2005/Atom'/>"),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><title>\xff</title></entry>"),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><x:y/></entry>"),
        (ATOM, b"{}"),
        (JSON, b"<entry/>"),
        (JSON, b"[]"),
        (JSON, b'{"verb": "post"}'),
        (JSON, b'{"count": 1, "totalItems": 1, "items": [{"object": {}}]}'),
        (JSON, b'{"object": {"content": 5}}'),
        (JSON, b'{"object": {"content": "\\u0000"}}'),
        (JSON, b'{"object": {"content": "\\ud800"}}'),
        (JSON, b'{"object": {}, "published": "yesterday"}'),
        (JSON, b'{"object": {}, "object": {}}'),
        (JSON, b'{"object": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"),
        (JSON, b'{"object": {"content": NaN}}'),
        (JSON, b'{"object": {"displayName": "\xff"}}'),
    ],
)
async def test_bodies_that_cannot_be_read(notes: Web, token: str, media_type: str, body: bytes) -> None:
    """[SF-091] [xep-map 246] Refused with what is wrong; nothing is opened, expanded, guessed or lost silently."""
    got = await notes.ask("PUT", "/entries/notes/a", body, Authorization=token, Content_Type=media_type)
    assert (got.status, got.json["condition"]) == (400, "invalid-payload")
    assert got.json["detail"]
    assert (await notes.get("/entries/notes/a")).status == 404


def with_names(first: int, written: str = "<n{}/>") -> bytes:
    """An entry with 200 names of its own."""
    inner = "".join(written.format(f"{number:0>60}") for number in range(first, first + 200))
    return f"<entry xmlns='{ATOM_NS}'>{inner}</entry>".encode()


@pytest.mark.parametrize(
    ("written", "encoding"), [("<n{}/>", "utf-8"), ("<n{}/>", "utf-16"), ("<x n{}=''/>", "utf-8"), ("<?n{}?>", "utf-8")]
)
async def test_new_names_are_not_counted(notes: Web, token: str, written: str, encoding: str) -> None:
    """[xep-map 246] A sender with many new names is not refused for them, whatever the names belong to."""
    for first in range(0, 4_000, 200):
        body = with_names(first, written).decode().encode(encoding)
        got = await notes.ask("PUT", "/entries/notes/a", body, Authorization=token, Content_Type=ATOM)
        assert got.status in (200, 201)


@pytest.mark.parametrize(
    "body",
    [
        b"<x xmlns='u'>" + b"<a/>" * 12_000 + b"</x>",
        b"<x xmlns='u' " + b" ".join(b"a%d='v'" % number for number in range(5_000)) + b"/>",
        b"<x xmlns='u' " + b" ".join(b"xmlns:p%d='u'" % number for number in range(5_000)) + b"/>",
    ],
    ids=["elements", "attributes", "namespaces"],
)
async def test_body_that_is_too_elaborate_is_refused_before_it_is_parsed(
    notes: Web, token: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 246] As over XMPP: bringing it to canonical form would keep everybody waiting."""
    monkeypatch.setattr(bodies, "parse_payload", lambda _data: pytest.fail("it was parsed"))
    got = await notes.ask("PUT", "/entries/notes/a", body, Authorization=token, Content_Type=ATOM)
    assert (got.status, got.json["condition"]) == (406, "not-acceptable")


async def test_a_view_cannot_be_written_to(notes: Web) -> None:
    """[xep-map 52] As over XMPP."""
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    path = entry_path("notes?order=created", "a")
    refused = refusal(
        await notes.component.set(
            ALICE, f"<publish node='notes?order=created'><item id='a'>{entry('x')}</item></publish>"
        )
    )
    got = await notes.ask("PUT", path, entry("x").encode(), Authorization=token, Content_Type=ATOM)
    assert (got.status, got.json["condition"]) == (400, refused.detail)


class Endless:
    """A body that counts how much of it was taken."""

    def __init__(self, size_bytes: int) -> None:
        self.left_bytes = size_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.left_bytes > 0:
            self.left_bytes -= 65_536
            yield b"x" * 65_536


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_hundred_megabytes_are_refused_without_being_read(notes: Web, token: str, chunked: bool) -> None:
    """[xep-map 249] 413 and the end of the connection, while most of the body is still with the client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", notes.port)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {100 * 2**20}"
    head = f"PUT /entries/notes/a HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: {ATOM}\r\n"
    writer.write(f"{head}{length}\r\n\r\n".encode())
    body, sent_bytes = Endless(100 * 2**20), 0
    answered = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
    async for piece in body:
        if answered.done():
            break
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        sent_bytes += len(piece)
        try:
            await writer.drain()
        except ConnectionError:
            break
    answer = await answered
    writer.transport.abort()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in answer
    assert sent_bytes < 30 * 2**20
    assert (await notes.get("/entries/notes/a")).status == 404


@pytest.mark.parametrize("size_bytes", [300_000, 900_000])
async def test_a_body_that_is_a_little_too_long_is_answered_in_peace(notes: Web, token: str, size_bytes: int) -> None:
    """[xep-map 249] It is read to its end and thrown away, so that its sender sees the answer."""
    got = await notes.ask("PUT", "/entries/notes/a", b"x" * size_bytes, Authorization=token, Content_Type=ATOM)
    assert (got.status, got.header("Connection")) == (413, "close")


async def test_a_body_that_does_not_come_is_not_waited_for(start_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 249] 408 after the time that a first request may take, and the connection ends."""
    monkeypatch.setattr("smartfeeds.http.server.LINGER_S", 0.05)
    web = await start_web(http={"first_request_s": 0.05})
    web.wait_for_heads()
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    head = f"PUT /entries/notes/a HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: {ATOM}\r\n"
    writer.write(f"{head}Content-Length: 100\r\n\r\n<entry".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"Connection: close" in answer


async def test_who_asks_before_sending_is_told_to_go_on(notes: Web, token: str) -> None:
    """Expect: 100-continue is answered where the body is wanted, and with 413 where it is not (RFC 9110 10.1.1)."""
    body = entry("x").encode()
    for length, expected in ((len(body), b"HTTP/1.1 100 Continue\r\n\r\n"), (300_000, b"HTTP/1.1 413 ")):
        reader, writer = await asyncio.open_connection("127.0.0.1", notes.port)
        head = f"PUT /entries/notes/a HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: {ATOM}\r\n"
        writer.write(f"{head}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert await reader.readexactly(len(expected)) == expected
        if length == len(body):
            writer.write(body)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 201 ")
        writer.transport.abort()


async def test_what_is_stored_is_pushed_although_the_client_has_gone(
    start_web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-018] The client hangs up while its item is being stored: subscribers hear of it all the same."""
    # Nothing else is to find it: not the look for what other processes have written.
    monkeypatch.setattr("smartfeeds.delivery.changes.LOOK_S", 3_600)
    notes = await start_web()
    await notes.component.create(ALICE, "notes")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    await notes.component.subscribe(BOB, "notes?order=modified")
    service = notes.component.app.service
    begun, held, submit = asyncio.Event(), [], service.store.submit_write

    def hold(work: Work) -> None:
        begun.set()
        held.append(work)

    monkeypatch.setattr(service.store, "submit_write", hold)
    asking = asyncio.ensure_future(put(notes, token, "a"))
    await begun.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    site = notes.component.app.site
    assert site is not None
    await until(lambda: not site.listener.connections, "the end of the connection")
    (work,) = held
    work.future = None  # the store runs it when the client goes
    submit(work)
    assert len(await notes.component.next_event(bare(BOB))) == 1


async def test_item_that_is_stored_but_cannot_be_read_back_is_reported_as_created(
    start_web: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A 503 would make the client repeat the POST, which would publish the item twice."""
    notes = await start_web()
    await notes.component.create(ALICE, "notes")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    service = notes.component.app.service
    handle = service.handle

    async def failing(request: Any) -> Any:
        if isinstance(request, GetItem):
            raise StoreError("the disk reported an error")
        return await handle(request)

    monkeypatch.setattr(service, "handle", failing)
    path = entry_path("notes")
    got = await notes.ask("POST", path, entry("hello").encode(), Authorization=token, Content_Type=ATOM)
    assert got.status == 201 and got.header("Location").startswith("http") and got.body == b""
    assert "the disk reported an error" in capsys.readouterr().out


async def test_rates_count_on_both_wires_together(start_web: Any) -> None:
    """[xep-map 249] Who publishes too fast over XMPP waits over HTTP too: 429 with Retry-After."""
    web = await start_web(limits={"publishes_per_s": 0.0001})
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    await web.component.publish(ALICE, "notes", "a")
    got = await put(web, token, "b")
    assert (got.status, got.header("Retry-After").isdecimal()) == (429, True)


async def test_pages_of_other_hosts_may_publish_with_a_token(notes: Web, token: str) -> None:
    """[SF-110] A preflight allows it, and the answer may be read."""
    asked = {"Origin": "https://x.example", "Access_Control_Request_Method": "PUT"}
    before = await notes.ask("OPTIONS", "/entries/notes/a", **asked)
    assert (before.status, before.header("Access-Control-Allow-Methods")) == (204, "GET, HEAD, PUT, PATCH, DELETE")
    made = await put(notes, token, "a", Origin="https://x.example")
    assert made.header("Access-Control-Allow-Origin") == "*"
    assert "Location" in made.header("Access-Control-Expose-Headers")


async def test_generic_nodes_over_http(notes: Web) -> None:
    """Transient items, full nodes and redirects have their statuses; a token for publishing changes no kind."""
    component = notes.component
    await component.create(ALICE, "bell", persist_items="0")
    await component.create(ALICE, "full", max_items="1", publish_node_full="reject")
    await component.create(ALICE, "moved")
    await component.create(ALICE, "empty")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)

    async def put(path: str, payload: str = entry("x")) -> tuple[int, str]:
        got = await notes.ask("PUT", f"/entries/{path}", payload.encode(), Authorization=token, Content_Type=ATOM)
        return got.status, got.json["condition"] if got.status >= 400 else ""

    await component.subscribe(BOB, "bell")
    assert await put("bell/a") == (204, "")
    assert len(await component.events(bare(BOB))) == 1
    assert (await put("full/a"))[0] == 201
    assert await put("full/b") == (409, "node-full")
    ok(await component.owner_set(ALICE, "<delete node='moved'><redirect uri='https://example.org/b'/></delete>"))
    assert await put("moved/a") == (410, "gone")
    got = await notes.get("/feeds/moved/")
    assert (got.status, got.json["detail"]) == (410, "the node has moved to https://example.org/b")
    assert await put("empty/a", "<note xmlns='urn:x'/>") == (400, "invalid-payload")


@pytest.mark.needs("documents")
async def test_feed_with_the_picture_of_a_community_is_written_in_every_format(notes: Web) -> None:
    """Movim publishes a picture that is no Atom entry under an id of its own."""
    picture = "<metadata xmlns='urn:xmpp:avatar:metadata'><info id='1' type='image/png'/></metadata>"
    await notes.component.create(ALICE, "blog")
    await notes.component.publish(ALICE, "blog", "urn:xmpp:avatar:metadata", picture)
    await notes.component.publish(ALICE, "blog", "post")

    for path in ("/feeds/blog/", *(f"/feeds/blog.{name}" for name in ("atom", "rss", "jsonfeed", "opml"))):
        got = await notes.get(path)
        assert (got.status, "post" in got.text) == (200, True), path
    # ESS names items by numbers, so its text has no title.
    assert (await notes.get("/feeds/blog.ess")).status == 200
    page = await notes.get("/feeds/blog/", "text/html")
    assert page.status == 200 and "post" in page.text
