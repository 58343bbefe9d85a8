"""Mirrors of feeds on the web: read whole, merged item by item, read again in time (FeedSync 4.1; A-46, A-150)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import urlsplit

import pytest

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.errors import FeedError, StoreError
from smartfeeds.features.mirrors import mirror_http, mirror_in
from smartfeeds.features.mirrors.statuses import remove_mirror
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling.push_states import OwnCallbacks, PollHint, PushState
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.http.encode import Encoder, PageAddress
from smartfeeds.http.paths import PathTemplate, decode_value
from smartfeeds.http.queries import read_query
from smartfeeds.net.fetch import FetchError, FetchResponse
from smartfeeds.service.context import Context
from smartfeeds.service.requests import DeleteNode, FeedPage, PullFeed
from smartfeeds.store.base import ReadTx
from support.mesh import NODE, OWNER, Net, Site
from support.timers import Timers
from support.world import ATOM_NS, S, jid

FILE = "https://files.example/plans.xml"
COMPLETE = "https://files.example/all.xml"
SMART = "https://feeds.a.example/feeds/plans/"
Page = bytes | Callable[[str, str], FetchResponse]


@dataclass
class Web:
    """Pages by address, and the feeds of the sites of a net, which hold pulls until a change or a timer of `timers`.
    `asked` are the addresses in the order they came."""

    net: Net
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    conditional: list[bool] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    timers: Timers = field(default_factory=Timers)

    async def get(
        self,
        url: str,
        *,
        known: Validators = NO_VALIDATORS,
        accept: str = "*/*",
        max_bytes: int | None = None,
        hold_s: float = 0.0,
    ) -> FetchResponse:
        self.asked.append(url)
        self.conditional.append(bool(known))
        try:
            site = self.net.sites.get(urlsplit(url).hostname or "")
        except ValueError:
            raise FetchError(url, "cannot be read as an address") from None
        if site is not None:
            change = site.change
            response = await self.feed(site, url)
            if not hold_s or b"<entry" in response.body:
                return response
            waits = [asyncio.create_task(change.wait()), asyncio.create_task(self.timers.sleep(hold_s))]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waits:
                    task.cancel()
            return await self.feed(site, url)
        page = self.pages.get(url)
        if page is None:
            raise FetchError(url, "answered 404", status=404)
        if callable(page):
            return page(url, known.etag)
        tag = f'"{hash(page)}"'
        validators = Validators(url, tag)
        self.statuses.append(304 if known == validators else 200)
        if known == validators:
            return FetchResponse(url, 304, validators=validators)
        return FetchResponse(url, 200, page, "application/atom+xml", validators)

    async def feed(self, site: Site, url: str) -> FetchResponse:
        """A page of a Smart Feed, as the HTTP side makes it."""
        parts = urlsplit(url)
        values, query = PathTemplate("/feeds/{name}/").match(parts.path), read_query(parts.query)
        assert values is not None
        name = decode_value(values["name"])
        place = PageAddress(f"https://{site.domain}", name, query)
        try:
            answer = await site.service.handle(PullFeed(ANONYMOUS, site.domain, name, query.view, page=query.page))
        except FeedError as error:
            raise FetchError(url, f"answered 404: {error}", status=404) from None
        assert isinstance(answer, FeedPage)
        return FetchResponse(url, 200, Encoder().atom(answer, place), "application/atom+xml")


def entry(
    name: str, title: str = "", *, updates: int = 1, by: str = "ed", deleted: bool = False, sync: str = ""
) -> str:
    """An entry that was changed so often by one endpoint."""
    history = "".join(
        f'<sx:history sequence="{number}" when="2011-05-0{number}T10:00:00Z" by="{by}"/>'
        for number in range(updates, 0, -1)
    )
    flag = ' deleted="true"' if deleted else ""
    data = sync or f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="{name}" updates="{updates}"{flag}>{history}</sx:sync>'
    return (
        f"<entry><id>urn:x:{name}</id><title>{title or name}</title><updated>2011-05-01T10:00:00Z</updated>"
        f"{data}</entry>"
    )


def feed(*entries: str, sharing: str = "") -> bytes:
    head = f"<id>urn:x:feed</id><title>plans</title><updated>2011-05-01T10:00:00Z</updated>{sharing}"
    return f'<feed xmlns="{ATOM_NS}">{head}{"".join(entries)}</feed>'.encode()


def sharing(since: str = "", until: str = "", complete: str = "", expires: str = "") -> str:
    fields = {"since": since, "until": until, "expires": expires}
    attributes = "".join(f' {name}="{value}"' for name, value in fields.items() if value)
    related = f'<sx:related type="complete" link="{complete}"/>' if complete else ""
    return f'<sx:sharing xmlns:sx="{FEEDSYNC_NS}"{attributes}>{related}</sx:sharing>'


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    made.fetch = Web(made)
    yield made
    await made.close()


@pytest.fixture
def web(net: Net) -> Web:
    found = net.fetch
    assert isinstance(found, Web)
    return found


async def mirror_of(net: Net, address: str = FILE, **settings: object) -> Site:
    b = await net.add("b")
    await b.mirror(address, **settings)
    await net.settle()
    return b


async def again(net: Net, b: Site) -> None:
    """The time for the next read has come."""
    b.timers.fire()
    await net.settle()


async def test_feed_with_sync_data_fills_the_node_and_is_read_again_in_time(net: Net, web: Web) -> None:
    web.pages[FILE] = feed(entry("a"), entry("b", updates=2), entry("gone", deleted=True))
    b = await mirror_of(net, every_s=600.0)

    assert await b.titles() == {"a": "a", "b": "b"}
    assert len(await b.items()) == 3
    assert b.timers.planned == [600.0]
    assert (await b.status()).standings[0].in_step

    web.pages[FILE] = feed(entry("a", "changed", updates=2), entry("b", updates=2), entry("c"))
    before = {item.id: item.modified_us for item in await b.items()}
    net.clock.move(600)
    await again(net, b)
    assert await b.titles() == {"a": "changed", "b": "b", "c": "c"}
    after = {item.id: item.modified_us for item in await b.items()}
    assert {name for name in before if after[name] != before[name]} == {"a"}


async def test_what_has_not_changed_is_not_sent_again(net: Net, web: Web) -> None:
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    await again(net, b)

    assert web.asked == [FILE, FILE]
    state = await b.state()
    assert (state.items, state.error) == (1, "")
    assert web.conditional == [False, True]


async def test_what_has_not_changed_is_not_sent_again_after_a_restart(net: Net, web: Web) -> None:
    """The validators are in the store."""
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    await b.stop()
    await b.start()
    await net.settle()

    assert web.conditional == [False, True]
    assert ((await b.status()).standings[0].in_step, await b.titles()) == (True, {"a": "a"})


async def test_document_that_was_not_merged_is_sent_again(net: Net, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure between fetching and merging must not hide the items behind a 304."""
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    web.pages[FILE] = feed(entry("a"), entry("b"))
    merge, failures = mirror_in.merge_items, [StoreError("the disk is full")]

    def failing(*arguments: object, **named: object) -> object:
        if failures:
            raise failures.pop()
        return merge(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(mirror_in, "merge_items", failing)
    await again(net, b)
    assert (await b.state()).error == "the disk is full"
    for _ in range(2):
        await again(net, b)

    assert web.conditional == [False, True, True, True]
    assert web.statuses == [200, 200, 200, 304]
    assert await b.titles() == {"a": "a", "b": "b"}


async def test_mirror_that_begins_anew_reads_everything(net: Net, web: Web) -> None:
    """Its node is gone: what was merged once is not here any more."""
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    await b.service.handle(DeleteNode(jid(OWNER), b.domain, NODE))
    await again(net, b)

    assert web.conditional == [False, False]
    assert await b.titles() == {"a": "a"}


@pytest.mark.parametrize("direct", [True, False])
async def test_node_that_was_deleted_and_created_again_is_filled_again(net: Net, web: Web, *, direct: bool) -> None:
    """Its owner was faster than the next read. The stored validators belong to the items of the former node."""
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    await b.service.handle(DeleteNode(jid(OWNER), b.domain, NODE))
    await b.create()
    if not direct:
        await b.stop()
        await b.start()
        await net.settle()
    else:
        await again(net, b)

    assert web.conditional == [False, False]
    assert await b.titles() == {"a": "a"}
    await again(net, b)
    assert web.conditional == [False, False, True]


@pytest.mark.parametrize("status", [404, 410])
async def test_remote_feed_that_was_deleted_and_created_again_is_read_without_validators(
    net: Net, web: Web, status: int
) -> None:
    """The new feed may give out the validators of the former one, so a 304 would prove nothing."""
    tag = '"1"'

    def present(title: str) -> Page:
        return lambda url, etag: (
            FetchResponse(url, 304, validators=Validators(url, tag))
            if etag == tag
            else FetchResponse(url, 200, feed(entry("a"), entry(title)), "application/atom+xml", Validators(url, tag))
        )

    def absent(url: str, _etag: str) -> FetchResponse:
        raise FetchError(url, f"answered {status}", status=status)

    web.pages[FILE] = present("b")
    b = await mirror_of(net)
    web.pages[FILE] = absent
    await again(net, b)
    assert f"answered {status}" in (await b.state()).error and web.conditional == [False, True]

    web.pages[FILE] = present("c")
    for _ in range(2):
        await again(net, b)
    assert await b.titles() == {"a": "a", "b": "b", "c": "c"}


async def test_failures_are_counted_as_those_of_deliveries(net: Net, web: Web) -> None:
    """Their number outlives a restart, so the pauses go on growing. A success ends them."""
    b = await mirror_of(net)
    for _ in range(3):
        await again(net, b)
    failure = (await b.state()).failure
    assert failure is not None and failure.next_us is not None
    assert failure.count == 4 and "answered 404" in failure.error
    assert failure.next_us > failure.since_us

    await b.stop()
    await b.start()
    await net.settle()
    later = (await b.state()).failure
    assert later is not None and (later.count, later.since_us) == (5, failure.since_us)

    web.pages[FILE] = feed(entry("a"))
    await again(net, b)
    assert (await b.state()).failure is None


async def test_conflicts_with_edits_made_here_are_kept(net: Net, web: Web) -> None:
    """The document's author and somebody here changed the same version."""
    web.pages[FILE] = feed(entry("a"))
    b = await mirror_of(net)
    await b.publish("a", "changed here")
    web.pages[FILE] = feed(entry("a", "changed there", updates=2))
    await again(net, b)

    (item,) = await b.items()
    assert item.conflicts == 1
    assert (await b.state()).conflicts == 1


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("x", by="a b"), "not a Namespace Specific String"),
        (entry("x", sync=f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="x" updates="0"/>'), "sx:history"),
    ],
    ids=["endpoint", "history"],
)
async def test_item_that_is_refused_is_told_and_the_rest_is_taken(net: Net, web: Web, bad: str, reason: str) -> None:
    web.pages[FILE] = feed(entry("a"), bad, entry("b"))
    b = await mirror_of(net)

    assert await b.titles() == {"a": "a", "b": "b"}
    state = await b.state()
    assert (state.refused, state.error) == (1, "")
    assert reason in state.reasons[0].reason
    assert not (await b.status()).standings[0].in_step

    web.pages[FILE] = feed(entry("a"), bad, entry("c"))
    await again(net, b)
    state = await b.state()
    assert (state.refused, len(state.reasons)) == (1, 1)
    web.pages[FILE] = feed(entry("a"), entry("x"), entry("c"))
    await again(net, b)
    assert (await b.status()).standings[0].in_step


async def test_item_that_a_partial_feed_goes_on_having_is_refused_once(net: Net, web: Web) -> None:
    """The complete feed decides anew."""
    bad = entry("x", "too long " * 9_000)
    web.pages[COMPLETE] = feed(entry("a"), bad)
    web.pages[FILE] = feed(entry("a"), bad, sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    for number in range(6, 9):
        web.pages[FILE] = feed(bad, entry("a"), sharing=sharing("0001", f"000{number}", COMPLETE))
        await again(net, b)
    assert (await b.state()).refused == 1

    web.pages[COMPLETE] = feed(entry("a"), entry("x"))
    web.pages[FILE] = feed(sharing=sharing("0009", "0010", COMPLETE))
    await again(net, b)
    assert (await b.state()).refused == 0
    assert (await b.status()).standings[0].in_step


async def test_item_without_sync_data_takes_no_part_and_is_no_refusal(net: Net, web: Web) -> None:
    """[FS-022] It is told, at every reading as often as it is there."""
    plain = entry("x", sync="<!-- none -->")
    web.pages[FILE] = feed(entry("a"), plain)
    b = await mirror_of(net)
    web.pages[FILE] = feed(entry("a"), plain, entry("b"))
    await again(net, b)

    state = await b.state()
    assert (state.refused, state.note) == (0, "1 item without sync data left out")
    assert await b.titles() == {"a": "a", "b": "b"}
    assert (await b.status()).standings[0].in_step


async def test_conflicts_that_are_no_entries_are_taken_as_content(net: Net, web: Web) -> None:
    """[SSE-048] As an import takes them: what SSE keeps there is up to who made it."""
    namespace = "http://www.microsoft.com/schemas/rss/sse"
    data = (
        f"<sx:sync xmlns:sx='{namespace}' id='a' version='2' conflict='true'>"
        "<sx:history when='Sat, 01 Jan 2011 10:00:00 GMT' by='x'/>"
        "<sx:conflicts><sx:conflict version='2' when='Sat, 01 Jan 2011 09:00:00 GMT' by='y'>other</sx:conflict>"
        "</sx:conflicts></sx:sync>"
    )
    web.pages[FILE] = feed(entry("a", sync=data))
    b = await mirror_of(net)

    (item,) = await b.items()
    assert item.conflicts == 1 and b"other</content>" in item.sync
    assert (await b.state()).refused == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (feed(entry("a"), entry("b")).removesuffix(b"</feed>"), "ends in the middle"),
        (b'<!DOCTYPE feed [<!ENTITY a "b">]>' + feed(entry("a")), "DTD"),
        (b"<html/>", "the root of the document is html"),
        (feed(entry("x", sync="<!-- none -->")), "has no item with sync data"),
    ],
    ids=["cut", "entities", "page", "plain"],
)
async def test_document_that_cannot_be_used_changes_nothing_and_is_told(
    net: Net, web: Web, body: bytes, reason: str
) -> None:
    """It is read whole before anything is merged."""
    web.pages[FILE] = body
    b = await mirror_of(net)

    assert await b.items() == []
    assert reason in (await b.state()).error

    web.pages[FILE] = feed(entry("a"))
    await again(net, b)
    assert await b.titles() == {"a": "a"}
    assert (await b.state()).error == ""


async def test_address_that_fails_is_left_alone_for_growing_pauses(net: Net, web: Web) -> None:
    b = await mirror_of(net)
    pauses = []
    for _ in range(10):
        pauses += b.timers.planned
        await again(net, b)

    assert pauses == sorted(pauses) and pauses[0] < pauses[-1] == 300.0
    assert "answered 404" in (await b.state()).error


async def test_server_that_asks_for_a_pause_gets_it(net: Net, web: Web) -> None:
    """Retry-After (RFC 9110 10.2.3) takes the place of the back-off."""

    def overloaded(url: str, _etag: str) -> FetchResponse:
        raise FetchError(url, "answered 503", status=503, retry_after_s=7_200.0)

    web.pages[FILE] = overloaded
    b = await mirror_of(net)
    failure = (await b.state()).failure

    assert b.timers.planned == [7_200.0]
    assert failure is not None and failure.next_us == failure.since_us + 7_200 * S


async def test_partial_feed_is_completed_on_the_first_read(net: Net, web: Web) -> None:
    """[A-46] 4.1.1: the complete feed once; then only the partial one."""
    web.pages[COMPLETE] = feed(entry("old"), entry("new"))
    web.pages[FILE] = feed(entry("new"), sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    assert await b.titles() == {"old": "old", "new": "new"}
    assert web.asked == [FILE, COMPLETE]

    web.pages[FILE] = feed(entry("newer"), sharing=sharing("0005", "0007", COMPLETE))
    await again(net, b)
    assert web.asked == [FILE, COMPLETE, FILE]
    assert set(await b.titles()) == {"old", "new", "newer"}


async def test_gap_is_found_and_closed_with_the_complete_feed(net: Net, web: Web) -> None:
    """[FS-079] since is greater than the until that was seen last, as texts."""
    web.pages[COMPLETE] = feed(entry("a"))
    web.pages[FILE] = feed(entry("a"), sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    web.pages[COMPLETE] = feed(entry("a"), entry("missed"), entry("new"))
    web.pages[FILE] = feed(entry("new"), sharing=sharing("0006", "0008", COMPLETE))

    await again(net, b)

    assert set(await b.titles()) == {"a", "missed", "new"}
    assert json.loads((await b.state()).position)["until"] == "0008"


async def test_what_the_complete_feed_dropped_stays_and_is_told(net: Net, web: Web) -> None:
    """[FS-080] [A-150] Smart Feeds never lose items; what was changed here would not be dropped anywhere."""
    web.pages[COMPLETE] = feed(entry("a"), entry("b"), entry("c"))
    web.pages[FILE] = feed(sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    await b.publish("b", "changed here")
    web.pages[COMPLETE] = feed(entry("a"))
    web.pages[FILE] = feed(sharing=sharing("0006", "0008", COMPLETE))

    await again(net, b)

    assert set(await b.titles()) == {"a", "b", "c"}
    assert (await b.state()).note == "1 item that the publisher dropped while this mirror was away stay here"


async def test_looking_for_what_was_dropped_holds_no_transaction_over_the_whole_node(
    net: Net, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice a transaction."""
    monkeypatch.setattr(mirror_http, "BATCH", 2)
    used: list[Context] = []  # one for each transaction
    count = mirror_http.count_absent

    def counted(tx: ReadTx, context: Context, **named: object) -> object:
        used.append(context)
        return count(tx, context, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(mirror_http, "count_absent", counted)
    names = "abcdefg"
    web.pages[COMPLETE] = feed(*(entry(name) for name in names))
    web.pages[FILE] = feed(sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    used.clear()
    web.pages[COMPLETE] = feed(entry("g"))
    web.pages[FILE] = feed(sharing=sharing("0006", "0008", COMPLETE))
    await again(net, b)

    assert len(set(map(id, used))) == len(used) == 5
    assert (await b.state()).note == "6 items that the publisher dropped while this mirror was away stay here"


async def test_reading_page_by_page_remembers_neither_ids_nor_all_notes(
    net: Net, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a complete feed is compared with what is here; memory holds a page of any other."""
    readings: list[mirror_http.MergeProgress] = []
    made = mirror_http.MergeProgress.__init__

    def init(self: mirror_http.MergeProgress, *arguments: object, **named: object) -> None:
        made(self, *arguments, **named)  # type: ignore[arg-type]
        readings.append(self)

    monkeypatch.setattr(mirror_http.MergeProgress, "__init__", init)
    read = mirror_http.read_page
    monkeypatch.setattr(
        mirror_http,
        "read_page",
        lambda fetched: replace(read(fetched), notes=tuple(f"{fetched.url} {n}" for n in "ab")),
    )
    a = await smart(net, 60)
    b = await mirror_of(net, SMART + "?order=modified&sync=true&max=2")

    assert await b.shown() == await a.shown()
    (one,) = readings
    assert one.ids is None
    assert len(web.asked) >= 30 and len(one.notes) == mirror_http.MAX_NOTES
    assert len((await b.state()).note) <= mirror_http.NOTE_CHARACTERS


async def test_complete_feed_that_cannot_be_read_loses_nothing(net: Net, web: Web) -> None:
    """[A-46] Fetch and check first; the bound that was seen stays, so the gap is found again."""
    web.pages[COMPLETE] = feed(entry("a"))
    web.pages[FILE] = feed(entry("a"), sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)
    del web.pages[COMPLETE]
    web.pages[FILE] = feed(entry("new"), sharing=sharing("0006", "0008", COMPLETE))
    await again(net, b)
    assert set(await b.titles()) == {"a"}
    state = await b.state()
    assert "404" in state.error and json.loads(state.position)["until"] == "0005"

    web.pages[COMPLETE] = feed(entry("a"), entry("missed"), entry("new"))
    await again(net, b)
    assert set(await b.titles()) == {"a", "missed", "new"}


async def test_complete_feed_that_names_another_is_taken_as_it_is(net: Net, web: Web) -> None:
    """[A-46] One hop, so that feeds that name each other do not keep a mirror busy for ever."""
    web.pages[COMPLETE] = feed(entry("a"), sharing=sharing(complete=FILE))
    web.pages[FILE] = feed(entry("b"), sharing=sharing("0001", "0005", COMPLETE))
    b = await mirror_of(net)

    assert web.asked == [FILE, COMPLETE]
    assert set(await b.titles()) == {"a", "b"}
    assert "refers to another complete feed" in (await b.state()).note


async def test_feed_that_expires_is_read_before_that(net: Net, web: Web) -> None:
    """[FS-017] Half of what is left."""
    net.clock.now_us = 1_304_935_200 * S  # 2011-05-09T10:00:00Z
    web.pages[FILE] = feed(entry("a"), sharing=sharing("1", "2", expires="2011-05-09T10:03:20Z"))
    b = await mirror_of(net, every_s=3_600.0)

    assert b.timers.planned == [100.0]


async def test_mirror_is_woken_by_a_push_to_any_process_and_leaves_its_hub_when_it_is_removed(
    net: Net, web: Web
) -> None:
    """[WS-136] Its subscription is a row in the store, as are the pushes that have come."""
    net.hubs = OwnCallbacks("https://b.example", lambda size: f"key of {size} bytes")
    web.pages[FILE] = feed(entry("a"), sharing="<link rel='hub' href='https://hub.example/'/>")
    b = await mirror_of(net, name="a")
    (push,) = await b.store.read(lambda tx: source_push_rows.pushes(tx, 0, 10))
    hinted = replace(push, state=PushState.ACTIVE, hint=PollHint(net.clock()))
    await b.store.write(lambda tx: source_push_rows.put(tx, hinted))
    assert b.mirrors is not None
    await b.mirrors.look()
    await net.settle()
    assert web.asked == [FILE, FILE]

    await b.service.write(partial(remove_mirror, name="a"))
    await b.mirrors.look()
    await net.settle()
    (push,) = await b.store.read(lambda tx: source_push_rows.pushes(tx, 0, 10))
    assert push.state is PushState.LEAVING


async def test_rss_items_become_entries(net: Net, web: Web) -> None:
    item = (
        "<item><guid isPermaLink='false'>urn:x:a</guid><title>from RSS</title>"
        f"<sx:sync xmlns:sx='{FEEDSYNC_NS}' id='a' updates='1'>"
        "<sx:history sequence='1' when='2011-05-01T10:00:00Z' by='ed'/></sx:sync></item>"
    )
    web.pages[FILE] = f"<rss version='2.0'><channel><title>t</title>{item}</channel></rss>".encode()
    b = await mirror_of(net)

    assert await b.titles() == {"a": "from RSS"}


async def smart(net: Net, count: int) -> Site:
    a = await net.add("a")
    await a.create()
    for number in range(count):
        await a.publish(f"item {number}", f"title {number}")
        net.clock.move(1)
    return a


def test_page_is_read_in_the_charset_of_the_answer() -> None:
    """RFC 7303 3"""
    body = feed(entry("a", "\u043c\u0438\u0440")).decode().encode("cp1251")
    page = mirror_http.read_page(FetchResponse(FILE, 200, body, "application/atom+xml", charset="windows-1251"))
    assert ["\u043c\u0438\u0440" in piece.raw.decode() for piece in page.pieces] == [True]


@pytest.mark.parametrize("query", ["?order=modified&sync=true&max=10", "?order=modified&sync=true"])
async def test_smart_feed_is_read_page_by_page_and_then_from_its_cursor(net: Net, web: Web, query: str) -> None:
    """The item ids and sync data of the other service; the second time only what is new."""
    a = await smart(net, 25)
    await a.retract("item 3")
    b = await mirror_of(net, SMART + query)
    assert await b.shown() == await a.shown()
    web.asked.clear()

    await a.publish("new", "new")
    await net.settle()
    assert await b.shown() == await a.shown()
    # The pull that was held has the news, and the next one continues behind it.
    assert b.timers.fire() == [1.0]
    await net.settle()
    assert len(web.asked) == 1 and "since=cursor:" in web.asked[0] and "timeout=45" in web.asked[0]
    standing = (await b.status()).standings[0]
    assert (standing.in_step, standing.state.means) == (True, "held pull")

    web.asked.clear()
    net.clock.move(300)
    web.timers.fire()
    await net.settle()
    assert len(web.asked) == 2 and "timeout=0" in web.asked[0] and "timeout=45" in web.asked[1]


async def test_smart_feed_goes_on_where_a_restart_or_a_failure_left_it(net: Net, web: Web) -> None:
    """Each page is kept with the place behind it."""
    a = await smart(net, 25)
    get, calls = web.get, []

    async def failing(url: str, **named: object) -> FetchResponse:
        calls.append(url)
        if len(calls) == 2:
            raise FetchError(url, "does not answer")
        return await get(url, **named)  # type: ignore[arg-type]

    web.get = failing  # type: ignore[method-assign]
    b = await mirror_of(net, SMART + "?order=modified&sync=true&max=10")
    assert len(await b.items()) == 10
    assert "does not answer" in (await b.state()).error
    await b.stop()
    await b.start()
    await net.settle()

    assert await b.shown() == await a.shown()
    assert len(calls) == 5 and "timeout=45" in calls[-1]


async def test_smart_feed_that_lost_the_cursor_is_read_from_its_beginning(net: Net, web: Web) -> None:
    a = await smart(net, 3)
    b = await mirror_of(net, SMART + "?order=modified&sync=true")
    feed_of, failures = web.feed, []

    async def forgetful(site: Site, url: str) -> FetchResponse:
        if "since=" in url:
            failures.append(url)
            raise FetchError(url, "answered 404", status=404)
        return await feed_of(site, url)

    web.feed = forgetful  # type: ignore[method-assign]
    await a.publish("new")
    await again(net, b)

    assert failures
    assert await b.shown() == await a.shown()


async def test_two_services_that_read_each_other_over_http_converge(net: Net, web: Web) -> None:
    """Two mirrors of one direction are a mirror of two."""
    a = await smart(net, 2)
    b = await mirror_of(net, SMART + "?order=modified&sync=true")
    await a.mirror("https://feeds.b.example/feeds/plans/?order=modified&sync=true")
    await a.publish("item 0", "at a")
    await b.publish("item 0", "at b")
    await b.publish("own")
    for _ in range(3):
        await again(net, a)
        await again(net, b)

    assert await a.shown() == await b.shown()
    assert len(await a.items()) == 3


def smart_page(number: int, *entries: str, cursor: str = "") -> bytes:
    """A page of a Smart Feed that names another one behind it."""
    cursor = cursor or f"130494240{number}_0_abcdef12"
    links = f'<fo:last_cursor xmlns:fo="{FANOUT_NS}">{cursor}</fo:last_cursor><link rel="next" href="{number + 1}"/>'
    return feed(*entries, sharing=links)


async def test_feed_that_leads_on_for_ever_without_an_item_is_left(net: Net, web: Web) -> None:
    """[SF-049] A hostile feed could name another page each time, and this mirror would never rest."""
    web.pages[FILE] = smart_page(0, entry("a"))
    web.pages |= {f"https://files.example/{number}": smart_page(number) for number in range(1, 9)}
    b = await mirror_of(net)

    assert set(await b.titles()) == {"a"} and (await b.state()).error == ""
    assert web.asked[:2] == [FILE, "https://files.example/1"]
    # Its server holds no pulls, so it is read once more.
    assert [f"{path}".partition("?")[0] for path in web.asked[2:]] == [FILE, FILE, FILE, "https://files.example/1"]


@pytest.mark.parametrize("target", ["next page", "complete feed"])
async def test_link_that_is_no_address_is_a_failure_of_its_server(net: Net, web: Web, target: str) -> None:
    """[FS-079] [SF-049]"""
    next_page = smart_page(0, entry("a")).replace(b'href="1"', b'href="http://["')
    complete = feed(entry("a"), sharing=sharing("0001", "0005", "http://["))
    web.pages[FILE] = next_page if target == "next page" else complete
    b = await mirror_of(net)
    assert (await b.state()).error == "http://[ cannot be read as an address"


async def test_cursor_that_is_too_long_to_be_one_is_not_kept(net: Net, web: Web) -> None:
    """[SF-026] It would be kept with the state of the mirror and sent back in every address."""
    web.pages[FILE] = smart_page(0, entry("a"), cursor="1" * 2_000)
    b = await mirror_of(net)

    assert set(await b.titles()) == {"a"}
    assert "1111111111" not in (await b.state()).position
