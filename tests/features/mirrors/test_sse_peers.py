"""Feeds shared over HTTP as RSS and OPML: two services, and a service with a peer that has files only."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web as aio
from lxml import etree

from smartfeeds.app.formats import read_document
from smartfeeds.app.site import feed_forms
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import parse_datetime
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_http import WebMirrorReader
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.feed_details import dump_details
from smartfeeds.formats.opml import ITEM_ID, read_outline
from smartfeeds.formats.xml import canonical
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import ANONYMOUS
from smartfeeds.http.encode import PageAddress
from smartfeeds.http.feed_documents import document_writers
from smartfeeds.http.queries import read_query
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import FeedPage, PullFeed
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.document_reader import FeedReader
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.record import Edit
from smartfeeds.sync.sharing import BEGINNING
from smartfeeds.sync.sharing_markup import SHARINGS, read_sharing
from smartfeeds.sync.sync_outline import read_sync_outline, write_sync_outline
from smartfeeds.sync.writing import write_item
from support.component import ALICE, entry
from support.documents import at_once
from support.mesh import NODE, Net, Site
from support.shell import Run, shell_in
from support.web import WebStarter

SSE = "{https://www.microsoft.com/schemas/rss/sse}"
FEEDSYNC = "{http://feedsync.org/2007/feedsync}"
ME = "feeds.example.org%2Falice@example.org"
FORMS = {"rss": n.RSS, "opml": n.OPML}
ITEMS = {"rss": "item", "opml": "outline"}
START_US = parse_datetime("2026-01-01T00:00:00Z")
Steps = Callable[[], Awaitable[None]]


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    yield made
    await made.close()


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Callable[[], Awaitable[bytes]]], Awaitable[str]]]:
    """Serves what a function returns; the address."""
    async with AsyncExitStack() as stack:

        async def started(body: Callable[[], Awaitable[bytes]]) -> str:
            async def answer(_request: aio.Request) -> aio.Response:
                return aio.Response(body=await body(), content_type="application/xml")

            app = aio.Application()
            app.router.add_get("/{path:.*}", answer)
            runner = aio.AppRunner(app)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = aio.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            return f"http://127.0.0.1:{runner.addresses[0][1]}"

        yield started


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as made:
        yield made


async def poll(service: FeedService, clock: Callable[[], int], address: str, fetcher: Fetcher) -> MirrorState:
    """Reads a feed into the node as a mirror does that begins now; its state after that."""
    mirror = make_mirror(node=NODE, address=address, owner=ALICE, allow_private=True)

    async def sleep(_seconds: float) -> None:
        raise AssertionError("a read does not wait")

    tools = SourceTools(clock, sleep, lambda: 0.0, aside=at_once)
    await service.write(lambda tx, _context: stored_mirrors.put(tx, MirrorRow(mirror)))
    state_store = MirrorStateStore(service, mirror.name, Direction.IN, MirrorState(), tools)
    await WebMirrorReader(mirror, service, fetcher, state_store, tools).read()
    await state_store.settle()
    return state_store.state


async def document_of(site: Site, suffix: str) -> bytes:
    """The document that the HTTP side of a service makes of its node."""
    view = read_query("sync=true")
    place = PageAddress(f"https://{site.domain}", NODE, view)
    request = PullFeed(ANONYMOUS, site.domain, NODE, view.view, page=ResultSetRequest(None, None, ""), both_sides=True)
    answer = await site.service.handle(request)
    assert isinstance(answer, FeedPage)
    return document_writers(feed_forms(), lambda: 0)[FORMS[suffix]](answer, place)


def sync_of(node: etree._Element) -> etree._Element:
    (sync,) = node.findall("{*}sync")
    return sync


def items_of(suffix: str, body: bytes) -> dict[str, etree._Element]:
    """The items of a document by sync id."""
    root = etree.fromstring(body)
    nodes = root.iterfind("channel/item") if suffix == "rss" else root.iterfind("body//outline[{*}sync]")
    return {sync_of(node).get("id", ""): node for node in nodes}


def sharing_of(body: bytes) -> etree._Element | None:
    return next((node for node in etree.fromstring(body).iter() if node.tag in SHARINGS), None)


async def titles(service: FeedService) -> dict[str, str]:
    answer = await service.handle(PullFeed(ANONYMOUS, "", NODE, "", page=ResultSetRequest("100", None, None)))
    assert isinstance(answer, FeedPage) and answer.page is not None
    live = [item for item in answer.page.items if not item.deleted]
    return {item.id: etree.fromstring(item.payload).findtext("{*}title") or "" for item in live}


# What a feed offers.


@pytest.mark.parametrize("suffix", FORMS)
async def test_sse_feed_has_its_version_and_items_with_histories(start_web: WebStarter, suffix: str) -> None:
    """[SSE-002] [SSE-003] [SSE-009] [SSE-023] [SSE-031] [SSE-033] [A-70] RSS and OPML in the printed namespace."""
    web = await start_web()
    await web.component.create(ALICE, NODE, sync_dialect="sse")
    await web.component.publish(ALICE, NODE, "a")
    web.component.clock.advance(60)
    await web.component.publish(ALICE, NODE, "a")
    await web.component.publish(ALICE, NODE, "b")
    await web.component.retract(ALICE, NODE, "b")

    body = (await web.get(f"/feeds/{NODE}.{suffix}?sync=true")).body

    a, b = (sync_of(items_of(suffix, body)[name]) for name in "ab")
    assert (a.tag, a.get("version"), b.get("version"), b.get("deleted")) == (f"{SSE}sync", "2", "2", "true")
    history = a.find(f"{SSE}history")
    assert history is not None and (history.get("by"), history.get("when")) == (ME, "Thu, 01 Jan 2026 00:01:00 GMT")
    assert [node.get("when") for node in history.iter(f"{SSE}update")] == ["Thu, 01 Jan 2026 00:00:00 GMT"]
    sharing = sharing_of(body)
    assert sharing is not None and (sharing.tag, sharing.get("version")) == (f"{SSE}sharing", "0.91")


@pytest.mark.parametrize("suffix", FORMS)
async def test_until_grows_with_each_change_of_an_sse_feed(start_web: WebStarter, suffix: str) -> None:
    """[SSE-008] [A-86] The clock stands still, and the bound has whole seconds."""
    web = await start_web()
    await web.component.create(ALICE, NODE, sync_dialect="sse")
    bounds = []
    for _ in range(3):
        await web.component.publish(ALICE, NODE, "a")
        sharing = sharing_of((await web.get(f"/feeds/{NODE}.{suffix}?sync=true")).body)
        assert sharing is not None
        bounds.append(parse_date(sharing.get("until", "")))
    assert START_US is not None
    assert bounds == [START_US + second * 1_000_000 for second in range(3)]


@pytest.mark.parametrize("dialect", ["sse", "feedsync"])
@pytest.mark.parametrize("suffix", FORMS)
async def test_partial_feed_has_bounds_and_leads_to_the_complete_one(
    start_web: WebStarter, suffix: str, dialect: str
) -> None:
    """[SSE-006] [SSE-014] [FS-077] [FS-081] [A-47] Each document has all items between its bounds."""
    web = await start_web(pubsub={"page_default": 3})
    await web.component.create(ALICE, NODE, sync_dialect=dialect)
    for number in range(8):
        await web.component.publish(ALICE, NODE, f"i{number}")
        web.component.clock.advance(1)

    partial_body = (await web.get(f"/feeds/{NODE}.{suffix}?sync=true")).body
    sharing, notes = read_sharing(sharing_of(partial_body))

    assert notes == []
    assert list(items_of(suffix, partial_body)) and set(items_of(suffix, partial_body)) == {"i5", "i6", "i7"}
    since, until = sharing.since or "", sharing.until or ""
    assert ("2026-01-01T00:00:04" <= since <= "2026-01-01T00:00:05.5") and until[:19] == "2026-01-01T00:00:07"
    link = f"/feeds/{NODE}.{suffix}?sync=true&max=all"
    assert sharing.complete_link == f"{web.origin}{link}"
    response = await web.get(link)
    assert set(items_of(suffix, response.body)) == {f"i{number}" for number in range(8)}
    assert response.header("Content-Type") == FORMS[suffix].media_type
    whole, _ = read_sharing(sharing_of(response.body))
    assert (whole.since, whole.complete_link, whole.until) == (BEGINNING, "", until)


async def test_rss_has_the_conflicts_as_items(start_web: WebStarter, net: Net, fetcher: Fetcher, serve: Steps) -> None:
    """[FS-039] [FS-002] A reader that knows FeedSync in RSS gets the versions that conflict, in RSS too."""
    web = await start_web()
    b = await net.add("b")
    await b.create()
    await web.component.create(ALICE, NODE)
    address = await serve(partial(document_of, b, "rss"))
    await b.publish("a", "theirs")
    await poll(web.component.app.service, web.component.clock, address, fetcher)
    await b.publish("a", "theirs again")
    await web.component.publish(ALICE, NODE, "a", entry("ours"))
    await poll(web.component.app.service, web.component.clock, address, fetcher)

    item = items_of("rss", (await web.get(f"/feeds/{NODE}.rss?sync=true")).body)["a"]

    (conflict,) = sync_of(item).iterfind(f"{FEEDSYNC}conflicts/item")
    assert {item.findtext("title"), conflict.findtext("title")} == {"ours", "theirs again"}
    version = read_item(item)
    assert version is not None and len(version.version.conflicts) == 1


async def test_view_by_filter_leaves_out_what_has_left_it(start_web: WebStarter) -> None:
    """[A-20] A tombstone of a view is no deletion of the item, so a merge must not see it."""
    web = await start_web()
    await web.component.create(ALICE, NODE)
    await web.component.publish(ALICE, NODE, "a", entry("a", "<category term='x'/>"))
    await web.component.publish(ALICE, NODE, "b", entry("b", "<category term='x'/>"))
    await web.component.publish(ALICE, NODE, "b", entry("b"))
    for suffix in FORMS:
        body = (await web.get(f"/feeds/{NODE}.{suffix}?sync=true&category=x")).body
        assert list(items_of(suffix, body)) == ["a"]


# Two services.


@pytest.mark.parametrize("dialect", ["sse", "feedsync"])
@pytest.mark.parametrize("suffix", FORMS)
async def test_two_services_publish_and_poll(
    start_web: WebStarter, net: Net, fetcher: Fetcher, serve: Steps, suffix: str, dialect: str
) -> None:
    """[SSE-002] [SSE-025] [SSE-026] [FS-002] Additions, edits and deletions of both sides arrive on the other side; an
    item that comes back changes nothing."""
    web = await start_web()
    here = web.component
    b = await net.add("b")
    await b.create(sync_dialect=dialect)
    await here.create(ALICE, NODE, sync_dialect=dialect)
    there = await serve(partial(document_of, b, suffix))

    async def exchange() -> None:
        net.clock.move(60)
        here.clock.advance(60)
        for state in (
            await poll(here.app.service, here.clock, there, fetcher),
            await poll(b.service, net.clock, f"{web.origin}/feeds/{NODE}.{suffix}?sync=true", fetcher),
        ):
            assert (state.refused, state.error) == (0, "")

    rich = "<content type='html'>&lt;b&gt;x&lt;/b&gt;</content><author><name>Ann</name></author><x xmlns='urn:x:x'/>"
    await here.publish(ALICE, NODE, "ours", entry("ours", rich))
    await here.publish(ALICE, NODE, "gone")
    await b.publish("theirs", "theirs")
    await exchange()
    assert await titles(here.app.service) == await titles(b.service)
    assert set(await titles(b.service)) == {"ours", "gone", "theirs"}

    await here.publish(ALICE, NODE, "theirs", entry("edited here"))
    await here.retract(ALICE, NODE, "gone")
    await b.publish("ours", "edited there")
    await exchange()
    await exchange()
    assert await titles(here.app.service) == {"ours": "edited there", "theirs": "edited here"}
    assert await titles(b.service) == await titles(here.app.service)

    before = {item.id: item.modified_us for item in await b.items()}
    await exchange()
    assert {item.id: item.modified_us for item in await b.items()} == before


@pytest.mark.parametrize("suffix", FORMS)
async def test_edits_on_both_sides_are_a_conflict_on_both(
    start_web: WebStarter, net: Net, fetcher: Fetcher, serve: Steps, suffix: str
) -> None:
    """[SSE-037] [SSE-042] The same winner and the same mark, whichever side reads first."""
    web = await start_web()
    here = web.component
    b = await net.add("b")
    await b.create(sync_dialect="sse")
    await here.create(ALICE, NODE, sync_dialect="sse")
    there = await serve(partial(document_of, b, suffix))
    ours = f"{web.origin}/feeds/{NODE}.{suffix}?sync=true"
    net.clock.now_us = here.clock.now_us
    await here.publish(ALICE, NODE, "a", entry("first"))
    await poll(b.service, net.clock, ours, fetcher)
    net.clock.move(10)
    here.clock.advance(5)
    await here.publish(ALICE, NODE, "a", entry("here"))
    await b.publish("a", "there")
    for _ in range(2):
        await poll(here.app.service, here.clock, there, fetcher)
        await poll(b.service, net.clock, ours, fetcher)

    assert await titles(here.app.service) == await titles(b.service) == {"a": "there"}
    marks = [
        sync_of(items_of(suffix, body)["a"])
        for body in ((await web.get(ours.removeprefix(web.origin))).body, await document_of(b, suffix))
    ]
    assert [mark.get("conflict") for mark in marks] == ["true", "true"]
    assert [[one.get("by") for one in mark.iter(f"{SSE}conflict")] for mark in marks] == [[ME], [ME]]


# A service and files.


@dataclass
class FilePeer:
    """A peer whose feed is a file: it merges with `smartfeeds merge` and publishes the file on a web server."""

    run: Run
    path: Path
    suffix: str

    async def body(self) -> bytes:
        return self.path.read_bytes()

    def merge(self, incoming: bytes, *options: str) -> None:
        """Takes over what another peer has."""
        other = self.path.with_name(f"incoming.{self.suffix}")
        other.write_bytes(incoming)
        self.run("merge", str(self.path), str(other), "--output", str(self.path), *options)

    def edit(self, sync_id: str, title: str, *, deleted: bool = False) -> None:
        """Changes one item, as a program does that knows sync data."""
        edit = Edit(START_US, "peer%2Fdesk")
        if self.suffix == "opml":
            outline = read_sync_outline(self.path.read_bytes())
            item = outline.items[sync_id]
            payload = etree.fromstring(item.version.payload)
            payload.set("text", title)
            version = item.dialect.update(item.version, edit, canonical(payload), deleted=deleted)
            outline.items[sync_id] = item._replace(version=version)
            self.path.write_bytes(b"".join(write_sync_outline(outline)))
            return
        reader = FeedReader()
        pieces = list(reader.read([self.path.read_bytes()]))
        items = []
        for piece in pieces:
            item = read_item(etree.fromstring(piece.raw))
            if item is not None and item.version.sync_id == sync_id:
                payload = etree.fromstring(item.version.payload)
                payload.find("{*}title").text = title  # type: ignore[union-attr]
                version = item.dialect.update(item.version, edit, canonical(payload), deleted=deleted)
                items.append(write_item(version, item.dialect, item.namespace))
            else:
                items.append(piece.raw)
        self.path.write_bytes(reader.head() + b"".join(map(reader.line, items)) + reader.tail())


EMPTY = {
    "rss": "<rss version='2.0'><channel><title>P</title><link>http://p.example/</link><description>P</description>"
    "{}</channel></rss>",
    "opml": "<opml version='2.0'><head><title>P</title></head><body>{}</body></opml>",
    "atom": "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:p</id><title>P</title>"
    "<updated>2026-01-01T00:00:00Z</updated>{}</feed>",
}
NEW = {
    "rss": "<item><title>from a file</title><guid isPermaLink='false'>new</guid></item>",
    "opml": f"<outline text='from a file'><s:sync xmlns:s='{SSE[1:-1]}' id='new' version='1'><s:history "
    "when='Thu, 01 Jan 2026 00:00:00 GMT' by='peer%2Fdesk'/></s:sync></outline>",
    "atom": "<entry><id>urn:x:new</id><title>from a file</title><updated>2026-01-01T00:00:00Z</updated></entry>",
}


@pytest.mark.needs("sync_documents")
@pytest.mark.parametrize(
    ("suffix", "dialect"), [("rss", "sse"), ("rss", "feedsync"), ("opml", "sse"), ("atom", "feedsync")]
)
async def test_service_and_peer_with_files_publish_and_poll(
    start_web: WebStarter,
    fetcher: Fetcher,
    serve: Steps,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    dialect: str,
) -> None:
    """[SSE-002] [FS-002] [FS-003] Both sides add, edit and delete; the file is merged by the command."""
    peer = FilePeer(shell_in(tmp_path, monkeypatch), tmp_path / f"peer.{suffix}", suffix)
    there = await serve(peer.body)
    web = await start_web()
    here = web.component
    await here.create(ALICE, NODE, sync_dialect=dialect)
    await here.publish(ALICE, NODE, "ours", entry("ours", "<content type='html'>&lt;i&gt;x&lt;/i&gt;</content>"))
    peer.path.write_text(EMPTY[suffix].format(""))

    async def exchange(*options: str) -> None:
        peer.merge((await web.get(f"/feeds/{NODE}.{suffix}?sync=true")).body, *options)
        state = await poll(here.app.service, here.clock, there, fetcher)
        assert (state.refused, state.error) == (0, ""), state

    await exchange()
    assert await titles(here.app.service) == {"ours": "ours"}

    text = peer.path.read_text()
    end = {"rss": "</channel>", "opml": "</body>", "atom": "</feed>"}[suffix]
    peer.path.write_text(text.replace(end, NEW[suffix] + end))
    await exchange(*([] if suffix == "opml" else ["--by", "peer/desk"]))
    assert sorted((await titles(here.app.service)).values()) == ["from a file", "ours"]

    peer.edit("ours", "edited in the file")
    await exchange()
    (new,) = (item_id for item_id, title in (await titles(here.app.service)).items() if title == "from a file")
    assert (await titles(here.app.service))["ours"] == "edited in the file"
    await here.publish(ALICE, NODE, new, entry("edited here"))
    await exchange()
    assert b"edited here" in peer.path.read_bytes() and b"from a file" not in peer.path.read_bytes()

    peer.edit("ours", "", deleted=True)
    await exchange()
    assert await titles(here.app.service) == {new: "edited here"}


@pytest.mark.needs("sync_documents")
async def test_move_in_an_outline_is_taken_over(
    start_web: WebStarter, fetcher: Fetcher, serve: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SSE-027] [SSE-028] [SSE-030] [A-79] Another parent and another place among its siblings are an update. The
    outline of the service has them too, also after an edit here and over RSS."""
    peer = FilePeer(shell_in(tmp_path, monkeypatch), tmp_path / "peer.opml", "opml")
    there = await serve(peer.body)
    web = await start_web()
    here = web.component
    await here.create(ALICE, NODE, sync_dialect="sse")
    for name in "abcd":
        await here.publish(ALICE, NODE, name)
        here.clock.advance(1)
    path = f"/feeds/{NODE}.opml?sync=true"
    peer.path.write_bytes((await web.get(path)).body)

    async def shape(body: bytes) -> list[str]:
        def lines(outlines: object, level: int) -> list[str]:
            found = []
            for outline in outlines:  # type: ignore[attr-defined]
                found += ["-" * level + outline.attributes[ITEM_ID], *lines(outline.children, level + 1)]
            return found

        return lines(read_outline(body).outlines, 0)

    assert await shape(peer.path.read_bytes()) == ["a", "b", "c", "d"]
    outline = read_sync_outline(peer.path.read_bytes())
    outline.full = outline.tree = {"": ["b", "a", "d"], "a": ["c"]}
    peer.path.write_bytes(b"".join(write_sync_outline(outline)))
    for name in "ac":
        peer.edit(name, f"moved {name}")
    await poll(here.app.service, here.clock, there, fetcher)

    assert await shape((await web.get(path)).body) == ["b", "a", "-c", "d"]
    await here.publish(ALICE, NODE, "c", entry("edited"))
    assert await shape((await web.get(path)).body) == ["b", "a", "-c", "d"]
    peer.merge((await web.get(path)).body)
    assert await shape(peer.path.read_bytes()) == ["b", "a", "-c", "d"]
    rss = (await web.get(f"/feeds/{NODE}.rss?sync=true")).body
    place = {str(name).rpartition("}")[2]: value for name, value in sync_of(items_of("rss", rss)["c"]).attrib.items()}
    assert (place["parent"], place["after"]) == ("a", "")


# What the head of a feed says.


@pytest.mark.parametrize(("suffix", "all_of_it"), [("atom", False), ("atom", True), ("rss", False), ("opml", True)])
async def test_feed_names_the_feeds_that_fill_it(start_web: WebStarter, suffix: str, all_of_it: bool) -> None:
    """[FS-021] [SSE-015] FeedSync 2.3.1: sources and incoming mirrors. Addresses that may hold a secret, and feeds that
    items are sent to, are not named."""
    web = await start_web()
    service = web.component.app.service
    await web.component.create(ALICE, NODE)
    await web.component.publish(ALICE, NODE, "a")
    addresses = {
        "xmpp:feeds.b.example?;node=plans": "in",
        "http://b.example/@ann.atom": "in",
        "http://b.example/feed?token=secret": "in",
        "http://u:secret@b.example/feed": "in",
        "xmpp:feeds.c.example?;node=plans": "out",
    }

    def add(tx: WriteTx, _context: Context) -> None:
        for address, direction in addresses.items():
            stored_mirrors.put(tx, MirrorRow(make_mirror(node=NODE, address=address, direction=direction)))
        for url in ("http://s.example/feed", "http://s.example/?key=secret", "http://u:secret@s.example/closed"):
            source = new_source(NODE, url, 0)
            source_rows.add(tx, replace(source, progress=replace(source.progress, title="Source & sons")))

    await service.write(add)

    body = (await web.get(f"/feeds/{NODE}.{suffix}?sync=true{'&max=all' if all_of_it else ''}")).body

    sharing, notes = read_sharing(sharing_of(body))
    assert notes == []
    assert {(one.link, one.title) for one in sharing.aggregated} == {
        ("xmpp:feeds.b.example?;node=plans", ""),
        ("http://b.example/@ann.atom", ""),
        ("http://s.example/feed", "Source & sons"),
    }
    assert b"secret" not in body
    assert b"aggregated" not in (await web.get(f"/feeds/{NODE}.{suffix}")).body


@pytest.mark.parametrize("query", ["?sync=true", "?sync=true&max=all"])
@pytest.mark.parametrize("suffix", ["atom", "rss"])
async def test_markup_of_the_feed_itself_survives(start_web: WebStarter, suffix: str, query: str) -> None:
    """[FS-012] [FS-014] What an imported feed says of itself in other namespaces is offered again, without the
    sx:sharing, which was for this service only."""
    web = await start_web()
    await web.component.create(ALICE, NODE)
    await web.component.publish(ALICE, NODE, "a")
    document = read_document(
        b"<rss version='2.0' xmlns:x='urn:x-test:x'><channel><title>T</title><link>http://x.example/</link>"
        b"<description>D</description><x:mood level='3'>calm</x:mood>"
        b"<s:sharing xmlns:s='http://feedsync.org/2007/feedsync' since='1' until='2'/></channel></rss>"
    )
    details = dump_details(document).text

    def store(tx: WriteTx, _context: Context) -> None:
        node = tx.lock(NODE)
        assert node is not None
        tx.set_options(node.node_no, node.options.with_details(details).stored)

    await web.component.app.service.write(store)

    root = etree.fromstring((await web.get(f"/feeds/{NODE}.{suffix}{query}")).body)

    (mood,) = root.iter("{urn:x-test:x}mood")
    assert (mood.get("level"), mood.text) == ("3", "calm")
    assert [node.get("since") for node in root.iter() if node.tag in SHARINGS] not in ([], ["1"])
