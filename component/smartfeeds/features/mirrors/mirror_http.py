"""The incoming direction of a mirror over HTTP: a feed with sync data, read again and again (FeedSync 4.1, SSE 2.1).

A document is read whole before anything of it is merged. If its publisher lets items expire, its complete feed is
read on the first time and after a gap (FS-079, A-46). What the complete feed no longer has stays here all the same,
because Smart Feeds never lose items (A-150); the state tells how many those are. A Smart Feed is read page by page,
and the next time from its last cursor. Between two polls its publisher holds a pull, and answers when it has news
(`held_pulls`).
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from smartfeeds.core.model import Edge, Slice
from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument, Validators
from smartfeeds.core.view import SHARED
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.mirrors.held_pulls import HeldPullTiming
from smartfeeds.features.mirrors.mirror import HELD_PULL, HUB, POLLED, ItemRefusal, Mirror, MirrorState, refusal
from smartfeeds.features.mirrors.mirror_documents import HeldPage, WebDocument, WebPosition, parse_position
from smartfeeds.features.mirrors.mirror_hub import MirrorHub
from smartfeeds.features.mirrors.mirror_in import BATCH, IncomingBatch, IncomingMirror
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore, unchanged
from smartfeeds.features.mirrors.statuses import mirror_reader
from smartfeeds.features.polling.push_links import push_links
from smartfeeds.features.polling.push_states import OwnCallbacks
from smartfeeds.features.polling.tools import ACCEPT_FEED, SourceTools
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.formats.atom import LINK
from smartfeeds.formats.feed_reader import document_bytes
from smartfeeds.formats.links import resolve
from smartfeeds.formats.xml import strict_parser
from smartfeeds.net.fetch import FetchError, FetchResponse, HttpClient
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import IncomingItem
from smartfeeds.service.syncing import is_own_endpoint, read_shared
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.arriving import read_arrived
from smartfeeds.sync.document_reader import HEAD_BYTES, DocumentPiece, FeedFormat, FeedReader, PieceKind, form_of
from smartfeeds.sync.sharing import FollowDecision, FollowStep, MirroredItem, PartialFeedFollower, Sharing, to_drop
from smartfeeds.sync.sync_outline import pieces_of, read_sync_outline
from smartfeeds.xml_names import parse_xml

MAX_BYTES: Final = 64 * 1024 * 1024  # a document is in memory as a whole
# Held pulls have no limit on how many there are, so their bodies are bounded: one that is larger is fetched by a read.
HELD_BYTES: Final = 1024 * 1024
MAX_PAGES: Final = 100_000  # in one reading: a publisher may lead on for ever
MAX_NOTES: Final = 20
NOTE_CHARACTERS: Final = 300
_CHUNK: Final = 65_536
_LAST_CURSOR: Final = f"{{{FANOUT_NS}}}last_cursor"
NO_HUBS: Final = OwnCallbacks()
# The view of a Smart Feed that has its sync data, and in which a cursor passes over no edit and no deletion.
_VIEW: Final = {"order": "modified", "sync": "true"}
AGAIN_S: Final = 60.0  # before a feed is read again that did not have the change that its hub announced
_TOTAL: Final = f"{{{FANOUT_NS}}}total"
_BAD_REQUEST: Final = 400
# Statuses of a service that does not know a cursor any more.
_GONE: Final = frozenset({400, 404, 410, 414})
_REMOVED: Final = frozenset({404, 410})
# A cursor goes back in an address and is kept; longer ones are none of a Smart Feed.
MAX_CURSOR_CHARACTERS: Final = 1_024


@dataclass(slots=True)
class MergeProgress:
    """The results of one reading so far. `ids` are those of the items of a complete feed, `plain` counts the items
    without sync data. `anew` says that items that were refused before are decided again."""

    ids: set[str] | None = None
    plain: int = 0
    anew: bool = False
    notes: dict[str, None] = field(default_factory=dict)

    def add_notes(self, notes: Iterable[str]) -> None:
        """Adds notes for people, each of them once, up to `MAX_NOTES`."""
        for note in notes:
            if note and len(self.notes) < MAX_NOTES:
                self.notes[note] = None

    def __str__(self) -> str:
        plain = [f"{counted(self.plain, 'item')} without sync data left out"] if self.plain else []
        return "; ".join([*plain, *self.notes])[:NOTE_CHARACTERS]


class WebMirrorReader(IncomingMirror):
    """Reads the web feed of a mirror again and again. The host of the address counts as the publisher of its items."""

    def __init__(
        self,
        mirror: Mirror,
        service: FeedService,
        fetch: HttpClient,
        state_store: MirrorStateStore,
        tools: SourceTools,
        hubs: OwnCallbacks = NO_HUBS,
    ) -> None:
        super().__init__(mirror, service, state_store, tools, urlsplit(mirror.address).hostname or "")
        self._fetch = fetch
        self._sharing = Sharing()
        self._reader = mirror_reader(mirror.node)
        self._in_step = False
        self._timing = HeldPullTiming(tools.now_us, tools.spread)
        self._held: HeldPage | None = None
        self._sends_timeout = True
        self._hub = MirrorHub(mirror.name, service, tools, hubs)
        self._is_hinted = False  # the hub announced a change that the feed did not have

    @property
    def in_step(self) -> bool:
        """Whether the last attempt to read the feed succeeded."""
        return self._in_step

    async def _step(self) -> None:
        held, self._held = self._held, None
        before = self.state_store.state
        await self.read(held)
        if held is not None:
            after = self.state_store.state
            has_news = (after.items, after.refused) != (before.items, before.refused)
            self._timing.after_read(held.took_s, has_moved=after.position != before.position, has_news=has_news)
        await self._wait()

    async def _rest(self, pause_s: float) -> None:
        """A publisher that is polled is left alone for longer. One that announces changes may be back in a second."""
        self._in_step = False
        is_polled = self.state_store.state.means in ("", POLLED)
        await self._tools.sleep(max(pause_s, min(self._mirror.every_s, pause_s * 10)) if is_polled else pause_s)

    async def _wait(self) -> None:
        """Waits until a held pull brings news, or until the next poll is due. A publisher that holds no pulls is
        polled."""
        left_s = min(self._next_s(), AGAIN_S) if self._is_hinted else self._next_s()
        while left_s > 0:
            pause_s = self._timing.pause_s
            timeout_s = self._timing.timeout_s(left_s - pause_s)
            place = parse_position(self.state_store.state.position)
            url = self._held_address(place, timeout_s)
            announces = HELD_PULL if url and self._timing.works else HUB if self._hub.is_active else POLLED
            self._note_means(announces)
            pause_s = pause_s if url and timeout_s else left_s
            if pause_s:
                if await self._hub.wait(pause_s):
                    return
                self._timing.after_pause(pause_s)
                left_s -= pause_s
                continue
            began_us = self._tools.now_us()
            if await self._hold(place, url, timeout_s):
                return
            left_s -= max(0.0, (self._tools.now_us() - began_us) / US_PER_S)

    async def _hold(self, place: WebPosition, url: str, timeout_s: int) -> bool:
        """Sends a pull that is held. Returns whether to read now."""
        began_us = self._tools.now_us()

        def took_s() -> float:
            return (self._tools.now_us() - began_us) / US_PER_S

        try:
            page = await self._get(url, max_bytes=HELD_BYTES, hold_s=timeout_s)
        except FetchError as error:
            return self._timing.after_failure(took_s(), error)
        except FeedError:
            return self._timing.after_failure(took_s())
        assert page is not None
        if not page.pieces or page.cursor == (place.cursor or place.after):
            self._timing.after_nothing(took_s())
            return False
        self._held = HeldPage(place, page, took_s())
        return True

    async def look_for_push(self) -> None:
        """Wakes this mirror if its hub has announced a change to any process. Raises StoreError."""
        if self._hub.is_wanted:
            await self._hub.look()

    def _note_means(self, means: str) -> None:
        if self.state_store.state.means != means:
            self.state_store.note(lambda state: replace(state, means=means))

    def _next_s(self) -> float:
        """Returns the seconds until the next read, which comes before anything leaves the feed (FS-017, SSE-010)."""
        now_us = self._tools.now_us()
        next_us = self._sharing.next_read_us(now_us, int(self._mirror.every_s * US_PER_S))
        return max(1.0, (next_us - now_us) / US_PER_S)

    async def read(self, held: HeldPage | None = None) -> None:
        """Brings in what is new; `held` is the answer to a held pull.

        Raises FetchError, FeedError, StoreError; what was merged before stays.
        """
        began_us, before = self._tools.now_us(), self.state_store.state.items
        await self._ensure_node()
        page = await self._read_from(parse_position(self.state_store.state.position), held)
        if self._timing.works and self._held_address(parse_position(self.state_store.state.position)):
            self._is_hinted = False
        else:
            has_news = self.state_store.state.items != before
            self._is_hinted = await self._hub.follow(page, self._mirror.address, began_us, has_news=has_news)

    async def _read_from(self, place: WebPosition, held: HeldPage | None = None) -> WebDocument | None:
        """Returns the document or the first page that it reads; None if nothing has changed.

        A page with a cursor is the first of a Smart Feed, unless it says that it is a part of another document.
        """
        if place.cursor and not place.view and self._has_other_order():
            return await self._read_from(WebPosition(view=True))
        if place.cursor:
            # The node may have been deleted since the answer came: then the place is another one.
            page = held.page if held is not None and held.place == place else await self._page_after(place)
            await self._read_pages(place, page)
            return page
        first = await self._first(place, await self._validators(self._address(place)))
        if first is None:
            self._done(self.state_store.state.position, self.state_store.state.note)
        elif first.cursor and not first.synced and first.pieces and not place.view:
            return await self._read_from(WebPosition(view=True))
        elif first.cursor and not first.sharing.complete_link:
            if not place.view and self._has_other_order():
                return await self._read_from(WebPosition(view=True))
            await self._read_pages(place, first)
        else:
            await self._read_document(place, first)
        return first

    # A Smart Feed.

    def _address(self, place: WebPosition, cursor: str = "", timeout_s: int = 0, **parameters: str) -> str:
        """The address to fetch: the operator's, with what a Smart Feed needs, and with other parameters."""
        url, _, query = self._mirror.address.partition("?")
        fields = [query] if query else []
        if place.view:
            parameters |= _VIEW
            fields = [part for part in query.split("&") if part and part.partition("=")[0] not in _VIEW]
        if cursor:
            parameters["since"] = f"cursor:{quote(cursor, safe='')}"
        names = self._names()
        # A Smart Feed holds a pull of an empty feed if nothing says how long. A complete document has no parameters.
        if self._sends_timeout and (cursor or (place.after == "" and "max" not in names)):
            parameters["timeout"] = str(timeout_s)
        fields += [f"{name}={value}" for name, value in parameters.items() if name not in names or name in _VIEW]
        return f"{url}?{'&'.join(fields)}" if fields else url

    def _names(self) -> set[str]:
        """The parameters of the operator's address, which are sent as they are."""
        return {name for name, _ in parse_qsl(urlsplit(self._mirror.address).query, keep_blank_values=True)}

    def _has_other_order(self) -> bool:
        """Whether the operator's address asks for an order in which a cursor passes over edits and deletions."""
        order = dict(parse_qsl(urlsplit(self._mirror.address).query)).get("order", _VIEW["order"])
        return order != _VIEW["order"]

    def _held_address(self, place: WebPosition, timeout_s: int = 0) -> str:
        """The address of a held pull, "" if there is none at this place."""
        if not self._sends_timeout or self._names() & {"since", "until", "timeout"}:
            return ""
        if place.cursor:
            return self._address(place, place.cursor, timeout_s)
        # It only announces a change: the document is read after it.
        return "" if place.after is None else self._address(place, place.after, timeout_s, max="1")

    async def _first(self, place: WebPosition, known: Validators = NO_VALIDATORS) -> WebDocument | None:
        """The document at the address of the mirror; None if it is the one that `known` belongs to."""
        try:
            return await self._get(self._address(place), known)
        except FetchError as error:
            if error.status in _REMOVED:
                # What comes back at this address may be another feed. Its validators could be those of the former one,
                # and its cursors and bounds mean nothing: it is read from the beginning.
                self.state_store.note(lambda state: replace(state, position=""))
            raise

    async def _page_after(self, place: WebPosition) -> WebDocument:
        """The page behind the cursor; all of the feed from its beginning where the cursor is not known any more."""
        try:
            page = await self._get(self._address(place, place.cursor))
        except FetchError as error:
            if error.status not in _GONE:
                raise
            if error.status == _BAD_REQUEST and self._sends_timeout:
                # The service may know the cursor, but not the parameter.
                self._sends_timeout = False
                return await self._page_after(place)
            self._sends_timeout = True
            page = await self._first(place)
        assert page is not None
        return page

    async def _read_pages(self, place: WebPosition, page: WebDocument) -> None:
        """Merges pages, each with the place behind it in one transaction, until there is no next one."""
        merging = MergeProgress()
        for _ in range(MAX_PAGES):
            place = replace(place, cursor=page.cursor or place.cursor)
            await self._merge_page(page, merging, str(place))
            if not page.next_url:
                break
            following = await self._get(page.next_url)
            assert following is not None
            # A feed that leads on for ever without an item would never let this one rest.
            if following.cursor == page.cursor or not following.pieces:
                break
            page = following
        self._done(str(place), str(merging))

    # Any other feed.

    async def _read_document(self, place: WebPosition, first: WebDocument) -> None:
        """4.1: the feed itself, and the complete one where something left the feed that was never seen here."""
        if not first.synced and first.pieces:
            raise FeedError(Condition.INVALID_PAYLOAD, f"{self._mirror.address} has no item with sync data")
        merging = MergeProgress(anew=not first.sharing.complete_link)
        begun = bool(self.state_store.state.position)
        decision = PartialFeedFollower(place.until, begun=begun).read(first.url, first.sharing)
        merging.add_notes([decision.note])
        if decision.step is FollowStep.FETCH:
            complete = await self._get(resolve(first.url, decision.link))
            assert complete is not None
            decision = decision.state.read(complete.url, complete.sharing)
            merging = replace(merging, ids=set(), anew=True)
            merging.add_notes([decision.note])
            await self._merge_page(complete, merging, self.state_store.state.position)
            merging.add_notes([await self._absent(decision, merging.ids or set())])
            merging.ids = None
        # With the former position, which moves with the validators: else a 304 could stand for what was not merged.
        await self._merge_page(first, merging, self.state_store.state.position)
        self._sharing = first.sharing
        # A complete feed may have no bound. It contains all items that the partial feed had before.
        until = decision.state.until or first.sharing.until
        after = first.cursor or ("" if first.is_smart and not first.pieces else None)
        position = str(WebPosition(until=until, view=place.view, after=after))
        await self._store(self._address(place), first.validators, position)
        self._done(position, str(merging))

    async def _absent(self, decision: FollowDecision, held: Set[str]) -> str:
        """A note on the items that the complete feed does not have. A mirror elsewhere would drop them (FS-080, A-46);
        here they stay (A-150)."""
        if decision.step is not FollowStep.REPLACE:
            return ""
        absent, after = 0, None
        while True:
            work = partial(count_absent, mirror=self._mirror, host=self._publisher, held=held, after=after)
            count, after = await self._service.read(work, turn=f"mirror {self._mirror.name}")
            absent += count
            if after is None:
                break
        return (
            f"{counted(absent, 'item')} that the publisher dropped while this mirror was away stay here"
            if absent
            else ""
        )

    # Both.

    async def _validators(self, url: str) -> Validators:
        """The validators of the document at an address, none if the mirror begins anew."""
        if not self.state_store.state.position:
            return NO_VALIDATORS
        documents = await self._service.read(lambda tx, _context: tx.documents(self._reader))
        return documents[url].validators if url in documents else NO_VALIDATORS

    async def _store(self, url: str, validators: Validators, position: str) -> None:
        """Stores the validators of a document whose items are merged, in one transaction with the position."""

        def work(tx: WriteTx, _context: Context) -> tuple[None, Callable[[MirrorState], MirrorState]]:
            tx.put_document(self._reader, url, KnownDocument(validators))
            return None, lambda state: replace(state, position=position)

        await self.state_store.write(work)

    async def _get(
        self, url: str, known: Validators = NO_VALIDATORS, *, max_bytes: int = MAX_BYTES, hold_s: float = 0.0
    ) -> WebDocument | None:
        """A document, or None if it is the one that `known` belongs to: never None without `known`. Raises FetchError,
        FeedError."""
        response = await self._fetch.get(url, known=known, accept=ACCEPT_FEED, max_bytes=max_bytes, hold_s=hold_s)
        if response.not_modified:
            return None
        return await self._tools.aside(read_page, response, party=self._mirror.address)

    async def _merge_page(self, page: WebDocument, merging: MergeProgress, position: str) -> None:
        """Merges the items of a page; with the last of them `position` is kept."""
        merging.add_notes(page.notes)
        merging.plain += sum(piece.kind is PieceKind.PLAIN for piece in page.pieces)
        pieces = iter(page.pieces)

        def change(state: MirrorState) -> MirrorState:
            return replace(state, position=position)

        for start in range(0, max(1, len(page.pieces)), BATCH):
            batch = await self._tools.aside(
                read_pieces, list(islice(pieces, BATCH)), self._tools.now_us(), party=self._mirror.address
            )
            last = start + BATCH >= len(page.pieces)
            await self._merge(batch, change if last else unchanged, anew=merging.anew, once=True)
            merging.anew = False
            if merging.ids is not None:
                merging.ids.update(item.sync_item.version.sync_id for item in batch.items)

    def _done(self, position: str, note: str) -> None:
        self._in_step = True
        self.state_store.note(lambda state: replace(state, position=position, note=note))
        self.state_store.in_step()


def read_page(response: FetchResponse) -> WebDocument:
    """A document, read whole. Raises FeedError where that cannot be."""
    body = document_bytes(response.body, response.charset)
    link_headers = response.headers.getall("Link", [])
    if form_of(body[:HEAD_BYTES]) is FeedFormat.OPML:
        outline = read_sync_outline(body, lenient=True)
        pieces = tuple(pieces_of(outline))
        return WebDocument(
            response.url,
            pieces,
            outline.sharing,
            notes=tuple(outline.notes[:3]),
            validators=response.validators,
            links=push_links(link_headers, b"", response.url),
        )
    reader = FeedReader(lenient=True)
    read = list(reader.read(body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK)))
    without_items = reader.head() + reader.tail()
    head = parse_xml(without_items, strict_parser())
    cursor = (head.findtext(_LAST_CURSOR) or "").strip()
    cursor = cursor if len(cursor) <= MAX_CURSOR_CHARACTERS else ""
    links = [link.get("href", "") for link in head.iterchildren(LINK) if link.get("rel") == "next"]
    next_url = resolve(response.url, links[0]) if links and cursor else ""
    notes = tuple(reader.notes[:3])
    is_smart = bool(cursor) or head.find(_TOTAL) is not None
    hubs = push_links(link_headers, without_items, response.url)
    return WebDocument(
        response.url, tuple(read), reader.sharing, next_url, cursor, notes, response.validators, is_smart, hubs
    )


def read_pieces(pieces: Sequence[DocumentPiece], now_us: int) -> IncomingBatch:
    """The items of a document for a merge, under the item ids that a Smart Feed names."""
    items: list[IncomingItem] = []
    refused: list[ItemRefusal] = []
    for piece in pieces:
        if piece.kind is PieceKind.REFUSED:
            refused.append(refusal(f"item {piece.index + 1}", piece.reason, now_us))
        elif piece.sync_item is not None:
            try:
                items.append(IncomingItem(*read_arrived(piece.raw, lenient=True), ()))
            except FeedError as error:
                refused.append(refusal(piece.sync_item.version.sync_id, error.text, now_us))
    return IncomingBatch(tuple(items), tuple(refused))


def count_absent(
    tx: ReadTx, context: Context, mirror: Mirror, host: str, held: Set[str], after: Edge | None
) -> tuple[int, Edge | None]:
    """Counts which of the next items of the node came from this publisher, were not changed here, and are not in its
    feed any more. Returns the number, and the edge to continue at, None at the end."""
    node = tx.node(mirror.node)
    items = [] if node is None else tx.slice(node.node_no, Slice(SHARED, BATCH, after=after))
    if node is None or not items:
        return 0, None
    ours = context.policy.domain
    items_by_id: dict[str, MirroredItem] = {}
    for item in items:
        if item.publisher == host:
            version = read_shared(context, node, item).version
            by = [stamp.by for stamp in (version.history[-1], version.top)]
            items_by_id[version.sync_id] = MirroredItem(
                *(ours if is_own_endpoint(ours, endpoint) else endpoint for endpoint in by)
            )
    present_ids = [sync_id for sync_id in items_by_id if sync_id in held]
    return len(to_drop(items_by_id, present_ids, ours)), Edge(items[-1].modified_us, items[-1].item_no)
