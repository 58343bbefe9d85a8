"""Sync data over HTTP: shown in Atom and JSON, merged when it is published, partial and complete documents."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from lxml import etree

from smartfeeds.core.times import format_datetime
from smartfeeds.core.token import TokenScope
from smartfeeds.http.complete import CompleteFeeds
from smartfeeds.service.requests import FeedPage, PullFeed
from smartfeeds.sync.document_reader import FeedReader, PieceKind
from smartfeeds.sync.sharing import (
    BEGINNING,
    FollowStep,
    PartialFeedFollower,
    Sharing,
    format_bound,
    is_out_of_sync,
)
from smartfeeds.sync.sharing_markup import SHARINGS, read_sharing
from support.bearer import bearer
from support.component import ALICE, BOB, entry
from support.sync import parse_item
from support.versions import B1, C1, sse_version, version
from support.web import Got, Web

ATOM = "application/atom+xml"
JSON = "application/json"
A = "{http://www.w3.org/2005/Atom}"
SX = "{http://feedsync.org/2007/feedsync}"
ME = "feeds.example.org%2Falice@example.org"
START = "2026-01-01T00:00:00Z"


async def put(web: Web, token: str, payload: str, item_id: str = "a", query: str = "", **headers: str) -> Got:
    path = f"/entries/notes/{item_id}{query}"
    return await web.ask("PUT", path, payload.encode(), Authorization=token, Content_Type=ATOM, **headers)


def record(sequence: int, by: str, when: str = START) -> dict[str, Any]:
    return {"sequence": sequence, "when": when, "by": by}


def sync_of(root: etree._Element) -> etree._Element:
    """The sync data of an entry."""
    (found,) = root.findall(f"{SX}sync")
    return found


def history(sync: etree._Element) -> list[tuple[str | None, str | None]]:
    return [(one.get("sequence"), one.get("by")) for one in sync.findall(f"{SX}history")]


# What is shown.


async def test_json_says_who_changed_an_item_when(notes: Web) -> None:
    """[FS-025] [FS-026] [FS-033] [A-35] The member sync, only where it is asked for; the rest of the item is the
    same."""
    await notes.component.publish(ALICE, "notes", "a")
    await notes.component.publish(ALICE, "notes", "a", entry("again"))
    (plain,) = (await notes.get("/feeds/notes/?timeout=0")).json["items"]
    (shown,) = (await notes.get("/feeds/notes/?sync=true&timeout=0")).json["items"]
    assert shown.pop("sync") == {"id": "a", "updates": 2, "history": [record(2, ME), record(1, ME)]}
    assert shown == plain and "sync" not in plain


async def test_json_of_a_deleted_item_has_its_whole_history(notes: Web) -> None:
    """[FS-030] [A-18] A tombstone says who deleted it."""
    await notes.component.publish(ALICE, "notes", "a")
    await notes.component.retract(ALICE, "notes", "a")
    (shown,) = (await notes.get("/feeds/notes/?sync=true")).json["items"]
    assert shown["deleted"] is True
    expected = {"id": "a", "updates": 2, "deleted": True, "history": [record(2, ME), record(1, ME)]}
    assert shown["sync"] == expected


async def test_json_has_the_versions_that_conflict(notes: Web, token: str) -> None:
    """[FS-039] [FS-040] Each conflict is the activity of that version, with its own sync data."""
    await notes.component.publish(ALICE, "notes", "a", entry("mine"))
    await put(notes, token, version(B1, title="theirs"))
    (shown,) = (await notes.get("/feeds/notes/?sync=true")).json["items"]
    (conflict,) = shown["sync"]["conflicts"]
    assert (shown["title"], conflict["title"]) == ("theirs", "mine"), "the later of two changes wins"
    assert (shown["id"], conflict["id"]) == ("a", "a")
    assert shown["sync"]["history"] == [record(1, B1, "2026-01-01T00:00:01Z")]
    assert conflict["sync"] == {"id": "a", "updates": 1, "history": [record(1, ME)]}


async def test_json_of_an_item_of_sse_has_its_version(notes: Web, token: str) -> None:
    """[SSE-018] [SSE-023] [SSE-033] version instead of updates, one more for a change here, and a history without
    sequences, in which this service and its user are one endpoint; times as all JSON has them."""
    assert (await put(notes, token, sse_version(C1, B1, title="x"))).status == 201
    (shown,) = (await notes.get("/feeds/notes/?sync=true")).json["items"]
    older = [{"when": "2026-01-01T00:00:02Z", "by": C1}, {"when": "2026-01-01T00:00:01Z", "by": B1}]
    assert shown["sync"] == {"id": "a", "version": 2, "history": older}

    await notes.component.publish(ALICE, "notes", "a", entry("again"))

    (shown,) = (await notes.get("/feeds/notes/?sync=true&timeout=0")).json["items"]
    assert shown["sync"] == {"id": "a", "version": 3, "history": [{"when": START, "by": ME}, *older]}


@pytest.mark.parametrize("path", ["/feeds/notes.atom?sync=true", "/feeds/notes/?sync=true&timeout=0"])
async def test_atom_carries_sync_data_whole(notes: Web, token: str, path: str) -> None:
    """[FS-022] [FS-039] Pulls and documents alike; what the entry is stored as can be read back from it."""
    await notes.component.publish(ALICE, "notes", "a", entry("mine"))
    await put(notes, token, version(B1, title="theirs"))
    await notes.component.publish(ALICE, "notes", "b")
    await notes.component.retract(ALICE, "notes", "b")
    a, b = etree.fromstring((await notes.get(path, ATOM)).body).findall(f"{A}entry")
    assert history(sync_of(a)) == [("1", B1)]
    (conflict,) = sync_of(a).findall(f"{SX}conflicts/{A}entry")
    assert (conflict.findtext(f"{A}title"), history(sync_of(conflict))) == ("mine", [("1", ME)])
    assert (sync_of(b).get("deleted"), history(sync_of(b))) == ("true", [("2", ME), ("1", ME)])
    found = parse_item(etree.tostring(a))
    assert found is not None and len(found.version.conflicts) == 1


@pytest.mark.parametrize("accept", [ATOM, JSON])
async def test_an_item_alone_is_shown_with_sync_data(notes: Web, accept: str) -> None:
    """[FS-022] The same as in a page of the feed, under a tag of its own, also what is left of a deleted item."""
    await notes.component.publish(ALICE, "notes", "a")
    plain, shown = await notes.get("/entries/notes/a", accept), await notes.get("/entries/notes/a?sync=true", accept)
    assert len({plain.header("ETag"), shown.header("ETag")}) == 2
    again = await notes.get("/entries/notes/a?sync=true", accept, If_None_Match=shown.header("ETag"))
    assert (again.status, again.header("ETag")) == (304, shown.header("ETag"))
    if accept == JSON:
        assert shown.json == (await notes.get("/feeds/notes/?sync=true")).json["items"][0]
        assert plain.json == {name: value for name, value in shown.json.items() if name != "sync"}
    else:
        assert history(sync_of(etree.fromstring(shown.body))) == [("1", ME)]
        assert SX not in plain.text and "feedsync" not in plain.text
    await notes.component.retract(ALICE, "notes", "a")
    gone = await notes.get("/entries/notes/a?sync=true", accept)
    assert gone.status == 410 and gone.text.count(ME) == 2


async def test_tag_of_an_item_with_sync_data_is_good_for_a_change(notes: Web, token: str) -> None:
    """[SF-053] Whatever form an item was read in, its tag stands for the item."""
    await notes.component.publish(ALICE, "notes", "a")
    for accept in (ATOM, JSON):
        tag = (await notes.get("/entries/notes/a?sync=true", accept)).header("ETag")
        assert (await put(notes, token, entry(accept), If_Match=tag)).status == 200
        assert (await put(notes, token, entry(accept), If_Match=tag)).status == 412


@pytest.mark.parametrize("path", ["/entries/notes/a?sync=maybe", "/feeds/notes/?sync=", "/feeds/notes.atom?sync=1"])
async def test_sync_is_true_or_left_out(notes: Web, path: str) -> None:
    """[A-24] Any other value is refused."""
    await notes.component.publish(ALICE, "notes", "a")
    assert (await notes.get(path)).status == 400


async def test_generic_node_has_no_sync_data(web: Web) -> None:
    """There is no such view of it, nor such an item in it."""
    await web.component.create(ALICE, "g", kind="generic")
    await web.component.publish(ALICE, "g", "a", entry("x"))
    for path in ("/feeds/g/?sync=true", "/feeds/g.atom?sync=true&max=all", "/entries/g/a?sync=true"):
        assert (await web.get(path)).status == 404


async def test_held_pull_and_stream_show_sync_data(notes: Web) -> None:
    """[SF-004] [A-11] What comes is told as a pull of the same view would."""
    await notes.component.publish(ALICE, "notes", "a")
    cursor = (await notes.get("/feeds/notes/?sync=true")).json["last_cursor"]
    path = f"/feeds/notes/?sync=true&since=cursor:{cursor}"
    held = [asyncio.create_task(notes.get(f"{path}&timeout=120", accept)) for accept in (JSON, ATOM)]
    headers = {"Accept": "text/event-stream"}
    async with notes.session.get(f"{notes.origin}{path}", headers=headers) as stream:
        await notes.holding(3)
        await notes.component.retract(ALICE, "notes", "a")
        as_json, as_atom = await asyncio.gather(*held)
        told = b""
        while b'"deleted"' not in told:
            told = await stream.content.readuntil(b"\n\n")
    (page,) = (line.removeprefix(b"data: ") for line in told.splitlines() if line.startswith(b"data: "))
    assert json.loads(page) == as_json.json
    assert as_json.json["items"][0]["sync"]["history"] == [record(2, ME), record(1, ME)]
    (found,) = etree.fromstring(as_atom.body).findall(f"{A}entry")
    assert history(sync_of(found)) == [("2", ME), ("1", ME)]


@pytest.mark.needs("documents")
@pytest.mark.parametrize("suffix", ["rss092", "jsonfeed", "ess"])
async def test_forms_that_cannot_carry_it_whole_have_none(notes: Web, suffix: str) -> None:
    """[FS-022] FeedSync and SSE define no sync data in these formats. They show the same items without it."""
    await notes.component.publish(ALICE, "notes", "a", entry("one"))
    await notes.component.publish(ALICE, "notes", "b", entry("two"))
    await notes.component.retract(ALICE, "notes", "b")
    got = await notes.get(f"/feeds/notes.{suffix}?sync=true")
    other = await notes.get(f"/feeds/notes.{suffix}?order=modified")
    assert got.status == 200 and "feedsync" not in got.text
    assert got.text.replace("sync=true", "order=modified") == other.text


@pytest.mark.needs("authoring")
async def test_activity_with_sync_data_is_not_taken_for_an_edit(notes: Web, token: str) -> None:
    """[A-59] What was read with its history and comes back would silently be an edit: it is refused with the reason."""
    await notes.component.publish(ALICE, "notes", "a", entry("one"))
    shown = await notes.get("/entries/notes/a?sync=true", JSON)
    got = await notes.ask("PUT", "/entries/notes/a", shown.body, Authorization=token, Content_Type=JSON)
    assert (got.status, got.json["condition"]) == (400, "invalid-payload")
    assert "Atom" in got.json["detail"]
    del (activity := shown.json)["sync"]
    body = json.dumps(activity).encode()
    assert (await notes.ask("PUT", "/entries/notes/a", body, Authorization=token, Content_Type=JSON)).status == 200


# Publishing.


async def test_new_version_is_added(notes: Web, token: str) -> None:
    """[A-59] [A-154] 201, with the address of the item; its id is the one in the path."""
    got = await put(notes, token, version(C1, B1, title="x"), query="?sync=true")
    assert (got.status, got.header("Location")) == (201, f"{notes.origin}/entries/notes/a")
    assert history(sync_of(etree.fromstring(got.body))) == [("2", C1), ("1", B1)]
    assert got.header("ETag") == (await notes.get("/entries/notes/a?sync=true", ATOM)).header("ETag")


async def test_posted_version_is_called_as_its_sync_id(notes: Web, token: str) -> None:
    """[A-154] Who posts the same again changes nothing and hears where it is."""
    sent = version(B1, sync_id="plan").encode()
    headers = {"Authorization": token, "Content_Type": ATOM}
    first, again = [await notes.ask("POST", "/entries/notes/", sent, **headers) for _ in range(2)]
    assert (first.status, first.header("Location")) == (201, f"{notes.origin}/entries/notes/plan")
    assert (again.status, again.header("Content-Location")) == (200, f"{notes.origin}/entries/notes/plan")
    assert first.header("ETag") == again.header("ETag")


async def test_newer_version_replaces_and_older_changes_nothing(notes: Web, token: str) -> None:
    """[FS-065] [FS-067] [A-59] A merge is a change of the item, its tag and the feed, or it is none of these."""
    await put(notes, token, version(B1, title="old"))
    newer = await put(notes, token, version(C1, B1, title="new"))
    page = await notes.get("/feeds/notes/?sync=true")
    older = await put(notes, token, version(B1, title="old"))
    assert (newer.status, older.status) == (200, 200)
    assert older.body == newer.body and older.header("ETag") == newer.header("ETag")
    assert (await notes.get("/feeds/notes/?sync=true", If_None_Match=page.header("ETag"))).status == 304


async def test_concurrent_version_becomes_a_conflict(notes: Web, token: str) -> None:
    """[FS-064] [FS-066] The answer is the item as it is now, whichever version that is, and says what conflicts."""
    await notes.component.publish(ALICE, "notes", "a", entry("mine"))
    before = (await notes.get("/entries/notes/a", ATOM)).header("ETag")
    got = await put(notes, token, version(C1, B1, title="theirs"), query="?sync=true")
    root = etree.fromstring(got.body)
    assert (got.status, root.findtext(f"{A}title")) == (200, "theirs")
    assert len(sync_of(root).findall(f"{SX}conflicts/{A}entry")) == 1
    assert got.header("ETag").replace(".sync", "") != before


async def test_deletion_is_merged(notes: Web, token: str) -> None:
    """[FS-030] [A-50] A version that is a deletion makes a tombstone; here, the answer is what is left."""
    await put(notes, token, version(B1, title="x"))
    got = await put(notes, token, version(C1, B1, deleted=True), query="?sync=true")
    assert got.status == 200 and sync_of(etree.fromstring(got.body)).get("deleted") == "true"
    assert (await notes.get("/entries/notes/a")).status == 410


async def test_merge_may_depend_on_what_was_seen(notes: Web, token: str) -> None:
    """[SF-053] If-Match and If-None-Match hold for versions too."""
    tag = (await put(notes, token, version(B1, title="x"))).header("ETag")
    assert (await put(notes, token, version(C1, B1), If_None_Match="*")).status == 412
    assert (await put(notes, token, version(C1, B1), If_Match='"other"')).status == 412
    assert (await put(notes, token, version(C1, B1), If_Match=tag)).status == 200


REFUSED = {
    "history": (version(B1).replace("sequence='1'", "sequence='0'"), 400, "sequence"),
    "id": (version(B1, sync_id="a b"), 400, "Namespace Specific String"),
    "updates": (version(B1).replace("updates='1'", "updates='2147483648'"), 400, "updates"),
    "by": (version("a&lt;b"), 400, "endpoint"),
    "dialect": (sse_version(B1), 400, "FeedSync"),
    "lie": (version("feeds.example.org%2Fmallory@example.org"), 403, "did not make it"),
    "disguised lie": (version("%EF%BD%86eeds.example.org%252Fmallory@example.org"), 403, "did not make it"),
    "another item": (version(B1, sync_id="other"), 409, "shared under another"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_version_that_cannot_be_merged_is_refused_with_the_reason(notes: Web, token: str, case: str) -> None:
    """[A-52] [A-56] Nothing is changed, and the answer says what is wrong."""
    await notes.component.publish(ALICE, "notes", "a", entry("mine"))
    before = await notes.get("/entries/notes/a?sync=true")
    payload, status, reason = REFUSED[case]
    got = await put(notes, token, payload)
    assert got.status == status and reason in got.json["detail"]
    assert (await notes.get("/entries/notes/a?sync=true")).body == before.body


async def test_versions_of_others_take_the_right_to_replace(notes: Web, token: str) -> None:
    """[A-61] Merging is publishing: a token without the scope, or somebody without the right, changes nothing."""
    await put(notes, token, version(B1, title="x"))
    reads = await bearer(notes, ALICE, TokenScope.READ, "notes")
    for other in (reads, await bearer(notes, BOB, TokenScope.PUBLISH, "notes")):
        assert (await put(notes, other, version(C1, B1))).status == 403


@pytest.mark.parametrize(
    "path", ["/entries/notes/a?sync=true", "/feeds/notes.atom?sync=true", "/feeds/notes/?sync=true"]
)
async def test_what_is_read_can_be_published_elsewhere(notes: Web, token: str, path: str) -> None:
    """[FS-062] [A-59] An item comes to another feed as it is here, with its conflicts, to the byte; whoever has it
    already has nothing new in it."""
    text = "&lt;p&gt;1 &amp;lt; 2 \u00e9&lt;/p&gt; "
    for by in (B1, C1, "feeds.d.example"):
        await put(notes, token, version(by, title=f"by {by}", content=text))
    shown = (await notes.get("/entries/notes/a?sync=true", ATOM)).body
    assert shown.count(b"<sx:sync") == 3
    root = etree.fromstring((await notes.get(path, ATOM)).body)
    read = etree.tostring(root if root.tag == f"{A}entry" else root.findall(f"{A}entry")[0])
    await notes.component.create(ALICE, "copy")
    headers = {"Authorization": await bearer(notes, ALICE, TokenScope.PUBLISH), "Content_Type": ATOM}
    first = await notes.ask("PUT", "/entries/copy/a?sync=true", read, **headers)
    again = await notes.ask("PUT", "/entries/copy/a?sync=true", read, **headers)
    assert (first.status, again.status, first.header("ETag")) == (201, 200, again.header("ETag"))
    assert first.body == again.body == shown


# Partial and complete documents.


def sharing_in(body: bytes) -> Sharing:
    """What a document of any form says of itself."""
    nodes = [node for node in etree.fromstring(body).iter() if node.tag in SHARINGS]
    sharing, notes = read_sharing(nodes[0] if nodes else None)
    assert notes == [] and len(nodes) < 2
    return sharing


async def fill(web: Web, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        web.component.clock.advance(1)
        await web.component.publish(ALICE, "notes", f"i{number}")


def read(body: bytes) -> tuple[list[str], Sharing]:
    """The ids of the items of a document, and what it says of itself, as our own reader reads it."""
    reader = FeedReader()
    pieces = [*reader.feed(body), *reader.close()]
    assert all(piece.kind is PieceKind.SYNCED for piece in pieces)
    assert reader.notes == []
    return [piece.sync_item.version.sync_id for piece in pieces if piece.sync_item], reader.sharing


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, dict[str, Any]]:
    """Those of the tests with the fixture `paged`."""
    return {"pubsub": {"page_default": 5, "page_max": 5}}


@pytest_asyncio.fixture(loop_scope="module")
async def paged(shared_web: Web) -> Web:
    """The feed notes, where pages have five items at most. The tests have one component together."""
    await shared_web.component.create(ALICE, "notes")
    return shared_web


@pytest.mark.parametrize("suffix", ["atom", "rss", "opml"])
@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
async def test_window_has_its_bounds_from_the_first_publication_on(paged: Web, dialect: str, suffix: str) -> None:
    """[FS-081] [FS-083] [FS-085] [FS-086] [SSE-006] [SSE-008] [A-47] Empty, whole and partial: always both bounds and
    the complete feed. The bounds of the empty feed are below those of any later window; `since` stays where it is until
    an item leaves the window, and `until` grows with each change."""
    await paged.component.create(ALICE, "fresh", sync_dialect=dialect)
    sharings = []
    for number in range(8):
        if number:
            await paged.component.publish(ALICE, "fresh", f"i{number}")
        sharing = sharing_in((await paged.get(f"/feeds/fresh.{suffix}?sync=true")).body)
        assert sharing.complete_link == f"{paged.origin}/feeds/fresh.{suffix}?sync=true&max=all"
        assert bool(sharing.version) is (dialect == "sse")
        sharings.append(sharing)
    since = [one.since or "" for one in sharings]
    until = [one.until or "" for one in sharings]
    assert len(set(since[:6])) == 1 and until == sorted(set(until))
    assert all(low <= high for low, high in zip(since, until, strict=True))
    # The page has five items: with the sixth, the first leaves the window. Nothing lies between two seconds of SSE, but
    # its `since` is a time from which on the window has every item, so it is behind that of the item that left.
    early = dialect == "sse"
    for number in range(8):
        assert [is_out_of_sync(known, since[number]) for known in until[:number]] == [
            number > 5 and number + early > 5 + known for known in range(number)
        ]


@pytest.mark.parametrize(
    ("query", "has"),
    [
        pytest.param("sync=true", True, id="window"),
        pytest.param("sync=true&max=3", True, id="smaller window"),
        pytest.param("sync=true&max=0", True, id="window without items"),
        pytest.param("sync=true&until=", True, id="newest page"),
        pytest.param("sync=true&author=nobody", True, id="filter that admits nothing"),
        pytest.param("sync=true&order=created", True, id="order of creation"),
        pytest.param("sync=true&max=all", True, id="complete feed"),
        pytest.param("sync=true&since=&timeout=0", False, id="pull from the beginning"),
        pytest.param("sync=true&since=time:0&until=time:2026-01-01T00:00:05Z&timeout=0", False, id="range"),
        pytest.param("sync=true&until=time:2026-01-01T00:00:05Z", False, id="older page"),
        pytest.param("order=modified", False, id="no sync data"),
        pytest.param("", False, id="feed readers"),
    ],
)
@pytest.mark.parametrize("count", [0, 2, 7])
async def test_every_window_and_nothing_else_has_bounds(paged: Web, count: int, query: str, has: bool) -> None:
    """[FS-015] [FS-016] [FS-081] [A-47] Whatever selects the newest items; a page that a program asks for by its
    position has cursors instead."""
    await fill(paged, count)
    sharing = sharing_in((await paged.get(f"/feeds/notes.atom?{query}")).body)
    assert (sharing.since is not None, sharing.until is not None) == (has, has)
    assert bool(sharing.complete_link) is (has and "max=all" not in query)


async def test_size_of_a_window_is_that_of_the_client(paged: Web) -> None:
    """[FS-077] [FS-085] A subscriber that reads more the next time than the last time misses nothing in between."""
    await fill(paged, 4)
    ids, small = read((await paged.get("/feeds/notes.atom?sync=true&max=2")).body)
    assert ids == ["i2", "i3"]
    assert small.complete_link == f"{paged.origin}/feeds/notes.atom?sync=true&max=all"
    await fill(paged, 3, start=4)
    ids, large = read((await paged.get("/feeds/notes.atom?sync=true&max=4")).body)
    assert ids == ["i3", "i4", "i5", "i6"] and not is_out_of_sync(small.until, large.since)
    ids, small_again = read((await paged.get("/feeds/notes.atom?sync=true&max=2")).body)
    assert ids == ["i5", "i6"] and is_out_of_sync(small.until, small_again.since)


async def test_unchanged_window_is_not_sent_again(paged: Web) -> None:
    """[FS-081] [FS-086] A window without news has the same bytes; one in which only a bound changed is another one."""
    await fill(paged, 6)
    path = "/feeds/notes.atom?sync=true&author=bob@example.org"
    empty = await paged.get(path)
    window = await paged.get("/feeds/notes.atom?sync=true")
    again = await paged.get("/feeds/notes.atom?sync=true", If_None_Match=window.header("ETag"))
    assert again.status == 304 and (await paged.get("/feeds/notes.atom?sync=true")).body == window.body
    await fill(paged, 1, start=6)
    assert read((await paged.get(path)).body)[1].until != read(empty.body)[1].until


async def test_partial_document_says_its_bounds(paged: Web) -> None:
    """[FS-015] [FS-077] [FS-081] [FS-086] [A-45] [A-47] until is the newest item's bound, since that of the newest one
    that is not in it, and the complete feed has an absolute address."""
    start_us = paged.component.clock.now_us
    await fill(paged, 8)
    modified = [item["updated"] for item in (await paged.get("/feeds/notes/?max=5&until=")).json["items"]]
    ids, sharing = read((await paged.get("/feeds/notes.atom?sync=true")).body)
    assert ids == ["i3", "i4", "i5", "i6", "i7"]
    assert sharing.since == format_bound(start_us + 3_000_000) < format_bound(start_us + 8_000_000) == sharing.until
    assert modified[-1] == format_datetime(start_us + 8_000_000)
    assert sharing.complete_link == f"{paged.origin}/feeds/notes.atom?sync=true&max=all"
    ids, complete = read((await paged.get(sharing.complete_link.removeprefix(paged.origin))).body)
    assert (ids, complete) == ([f"i{n}" for n in range(8)], Sharing(BEGINNING, sharing.until))


async def test_bounds_move_with_every_change(paged: Web) -> None:
    """[FS-045] [FS-083] [FS-085] [A-48] Also with several changes at the same moment; deletions are items too."""
    await fill(paged, 6)
    seen = []
    for number in range(4):
        await paged.component.retract(ALICE, "notes", f"i{number}")
        ids, sharing = read((await paged.get("/feeds/notes.atom?sync=true")).body)
        assert ids[-1] == f"i{number}"
        seen.append((sharing.since, sharing.until))
    assert seen == sorted(set(seen))


async def test_other_views_point_to_their_own_whole(paged: Web) -> None:
    """[FS-077] [A-156] A filter's document is a part of what the filter lets through. In the order of creation an edit
    may be outside the window, so any change since the last reading leads to the complete feed. A page of a pull says
    nothing at all."""
    start_us = paged.component.clock.now_us
    await fill(paged, 6)
    body = (await paged.get("/feeds/notes.atom?sync=true&author=alice@example.org")).body
    ids, sharing = read(body)
    link = f"{paged.origin}/feeds/notes.atom?sync=true&author=alice@example.org&max=all"
    assert (len(ids), sharing.complete_link) == (5, link)
    assert len(read((await paged.get(link.removeprefix(paged.origin))).body)[0]) == 6
    ids, sharing = read((await paged.get("/feeds/notes.atom?sync=true&order=created")).body)
    assert sharing.since == sharing.until == format_bound(start_us + 6_000_000)
    assert sharing.complete_link == f"{paged.origin}/feeds/notes.atom?sync=true&order=created&max=all"
    for query in ("timeout=0", "since=time:0", f"until=time:{format_datetime(start_us + 5_000_000)}"):
        assert "sharing" not in (await paged.get(f"/feeds/notes/?sync=true&{query}", ATOM)).text


async def follow(
    web: Web, follower: PartialFeedFollower, known: set[str]
) -> tuple[PartialFeedFollower, list[FollowStep]]:
    """One read of the partial feed, as FeedSync 4.1 has it."""
    url, steps = f"{web.origin}/feeds/notes.atom?sync=true", []
    until = None
    while True:
        ids, sharing = read((await web.get(url.removeprefix(web.origin))).body)
        decision = follower.read(url, sharing)
        follower, url = decision.state, decision.link
        steps.append(decision.step)
        until = until or sharing.until
        if decision.step is not FollowStep.FETCH:
            if decision.step is FollowStep.REPLACE:
                known.clear()
            known.update(ids)
            return PartialFeedFollower(follower.until or until), steps


async def test_reader_without_cursors_misses_nothing(paged: Web) -> None:
    """[FS-078] [FS-079] [FS-080] [A-46] It reads the complete feed at first and after it has been away for long, and
    the partial one alone as long as that is enough. Then it drops what is not in the complete feed."""
    await fill(paged, 8)
    known: set[str] = set()
    follower, steps = await follow(paged, PartialFeedFollower(), known)
    assert (steps, known) == ([FollowStep.FETCH, FollowStep.MERGE], {f"i{number}" for number in range(8)})
    assert follower.until is not None
    await fill(paged, 5, start=8)
    follower, steps = await follow(paged, follower, known)
    assert (steps, known) == ([FollowStep.MERGE], {f"i{number}" for number in range(13)})
    until = follower.until
    known.add("an item that the feed does not have any more")
    await fill(paged, 6, start=13)
    assert is_out_of_sync(until, read((await paged.get("/feeds/notes.atom?sync=true")).body)[1].since)
    follower, steps = await follow(paged, follower, known)
    assert (steps, known) == ([FollowStep.FETCH, FollowStep.REPLACE], {f"i{number}" for number in range(19)})


async def test_complete_feed_is_read_page_by_page(paged: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[FS-078] Each item that was there at the beginning is in it once, whatever others change meanwhile; what
    they add comes with the partial feed."""
    await fill(paged, 12)
    _, partial = read((await paged.get("/feeds/notes.atom?sync=true")).body)
    pages = []
    pull = CompleteFeeds.__dict__["_next"]

    async def meanwhile(self: CompleteFeeds, call: Any, asked: PullFeed, page: FeedPage) -> FeedPage:
        found: FeedPage = await pull(self, call, asked, page)
        pages.append(len(found.page.items) if found.page else 0)
        await paged.component.publish(ALICE, "notes", "i11", entry(f"changed {len(pages)}"))
        await paged.component.publish(ALICE, "notes", f"new{len(pages)}")
        await paged.component.retract(ALICE, "notes", f"i{len(pages)}")
        return found

    monkeypatch.setattr(CompleteFeeds, "_next", meanwhile)
    got = await paged.get("/feeds/notes.atom?sync=true&max=all")
    ids, _ = read(got.body)
    assert (ids, pages) == ([f"i{n}" for n in range(12)], [5, 3])
    assert got.text.count("changed 1") == 1
    changed, sharing = read((await paged.get("/feeds/notes.atom?sync=true")).body)
    assert not is_out_of_sync(partial.until, sharing.since)
    assert set(changed) == {"i11", "new1", "i1", "new2", "i2"}


async def test_complete_feed_is_for_who_may_read_it(paged: Web) -> None:
    """[SF-053] The same rights, tags and headers as any document."""
    await fill(paged, 6)
    path = "/feeds/notes.atom?sync=true&max=all"
    got, head = await paged.get(path), await paged.ask("HEAD", path)
    assert (got.status, head.status, head.body) == (200, 200, b"")
    assert got.header("Content-Type") == head.header("Content-Type") == "application/atom+xml; charset=utf-8"
    assert got.header("Access-Control-Allow-Origin") == "*"
    assert (await paged.get(path, If_None_Match=got.header("ETag"))).status == 304
    await fill(paged, 1, start=6)
    assert (await paged.get(path, If_None_Match=got.header("ETag"))).status == 200
    await paged.component.create(ALICE, "closed", access_model="whitelist")
    path = "/feeds/closed.atom?sync=true&max=all"
    assert (await paged.get(path)).status == 404
    mine = await paged.get(path, Authorization=await bearer(paged, ALICE, TokenScope.READ))
    assert (mine.status, mine.header("Cache-Control")) == (200, "private, no-cache")
    ids, sharing = read(mine.body)
    assert (ids, sharing.since, sharing.complete_link) == ([], BEGINNING, "")


@pytest.mark.parametrize("end", ["deleted", "closed"])
async def test_document_that_cannot_be_finished_is_broken_off(
    paged: Web, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """A follower must not take half of a feed for the whole feed: the connection ends without the document's end."""
    await fill(paged, 12)
    pull = CompleteFeeds.__dict__["_next"]

    async def meanwhile(self: CompleteFeeds, call: Any, asked: PullFeed, page: FeedPage) -> FeedPage:
        if end == "deleted":
            await paged.component.owner_set(ALICE, "<delete node='notes'/>")
        else:
            await paged.component.configure(ALICE, "notes", access_model="whitelist")
        found: FeedPage = await pull(self, call, asked, page)
        return found

    monkeypatch.setattr(CompleteFeeds, "_next", meanwhile)
    with pytest.raises(aiohttp.ClientPayloadError):
        await paged.get("/feeds/notes.atom?sync=true&max=all")


@pytest.mark.parametrize(
    "path",
    [
        "/feeds/notes.atom?max=all",
        "/feeds/notes.rss?max=all",
        pytest.param("/feeds/notes.jsonfeed?sync=true&max=all", marks=pytest.mark.needs("documents")),
        "/feeds/notes/?sync=true&max=all",
        "/feeds/notes.atom?sync=true&max=all&since=time:0",
        "/feeds/notes.atom?sync=true&max=all&timeout=1",
        "/feeds/notes.json?sync=true&max=all&callback=f",
        "/feeds/notes.atom?sync=true&max=ALL",
        "/feeds/notes.atom?sync=true&max=%61ll",
    ],
)
async def test_whole_feeds_are_one_document(notes: Web, path: str) -> None:
    """[A-47] Elsewhere the pages are the way; the refusal says so."""
    await notes.component.publish(ALICE, "notes", "a")
    got = await notes.get(path)
    assert (got.status, got.json["status"]) == (400, 400)
    stream = await notes.get("/feeds/notes/?sync=true&max=all", "text/event-stream")
    assert stream.status == 400
