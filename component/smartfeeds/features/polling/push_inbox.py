"""Receives the requests of hubs and clouds of other servers: checks, challenges, pushes, notifications (WS-108 to
WS-140, RC-069 to RC-075).

A push is answered before it is read: its subscription is marked in the store, and the push waits in memory. What a
crash loses is polled at the next start.
"""

import asyncio
from collections import Counter, deque
from functools import partial
from typing import Final
from urllib.parse import quote

import structlog

from smartfeeds.delivery.changes import failures_logged
from smartfeeds.errors import FeedError, StoreError
from smartfeeds.features.polling import push_rows, rows
from smartfeeds.features.polling.metrics import SOURCE_ITEMS, SOURCE_PUSHES
from smartfeeds.features.polling.poller import PollClients, sender_to
from smartfeeds.features.polling.push_links import same_address
from smartfeeds.features.polling.push_states import (
    MAX_CURSOR_CHARACTERS,
    MAX_PUSH_BYTES,
    OVER,
    SECRET_BYTES,
    TOKEN_BYTES,
    NewKey,
    OwnCallbacks,
    SourcePush,
    is_signed,
)
from smartfeeds.features.polling.reading import ACCEPT_SOURCE, read_push
from smartfeeds.features.polling.source import PushKind, Source
from smartfeeds.features.polling.source_import import store_push
from smartfeeds.features.polling.source_push import (
    Delivery,
    HubCheck,
    IncomingPush,
    find_push,
    take_check,
    take_forgery,
    take_hint,
    take_push,
)
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.bodies import Body, BodyError
from smartfeeds.net.fetch import FetchError, display_url
from smartfeeds.service.feeds import FeedService

# The bytes of pushes that wait to be stored, of all sources and of one. A hub repeats what is refused beyond them.
WAITING_BYTES: Final = 64_000_000
SOURCE_BYTES: Final = 16_000_000
# Sources whose pushes are stored at the same time: a server that answers slowly while a gap is closed delays its own.
AT_ONCE: Final = 8
GAP_S: Final = 60.0  # for closing a gap; then the source is polled
MAX_SIGNATURES: Final = 4  # of a push: one for each method
MAX_PAGES: Final = 100
PUSH_BYTES: Final = 1_000  # of a push beside its body, so that empty ones are bounded, too

_log = structlog.get_logger()


class PushInbox:
    """Answers the requests to callback paths, and stores what they bring. `run` stores it."""

    def __init__(
        self, service: FeedService, clients: PollClients, tools: SourceTools, own: OwnCallbacks, new_key: NewKey
    ) -> None:
        self._service = service
        self._clients = clients
        self._tools = tools
        self._own = own
        self._new_key = new_key
        # The pushes of each source, in the order of their arrival, and the sources whose next push may be stored.
        self._waiting: dict[int, deque[tuple[SourcePush, IncomingPush]]] = {}
        self._ready: asyncio.Queue[int] = asyncio.Queue()
        self._waiting_bytes: Counter[int] = Counter()

    async def kind(self, token: str) -> PushKind | None:
        """Whether a path is that of a hub or of a cloud; NONE if its subscription is over, None if there never was
        one. Raises StoreError."""
        push = await self._find(token)
        return None if push is None else PushKind.NONE if push.state in OVER else push.kind

    async def check(self, token: str, check: HubCheck) -> bool:
        """Takes the check of a hub. Returns whether its challenge is to be echoed. Raises StoreError."""
        work = partial(take_check, token=token, check=check, chance=self._tools.spread())
        is_ours = await self._service.write(work)
        if is_ours and check.mode == "denied":
            _log.info("source_push_denied", topic=display_url(check.topic), reason=check.reason[:200])
        return is_ours

    async def knows(self, token: str, url: str) -> bool:
        """Whether a cloud may challenge or notify this path for a feed (RC-069 to RC-072). Raises StoreError."""
        push = await self._find(token)
        return (
            push is not None
            and push.kind is PushKind.CLOUD
            and push.state not in OVER
            and same_address(url, push.target.topic)
        )

    async def deliver(self, token: str, incoming: IncomingPush) -> Delivery:
        """Takes a push of a hub. Raises StoreError."""
        delivery = await self._deliver(token, incoming)
        SOURCE_PUSHES.labels(delivery.value).inc()
        return delivery

    async def notify(self, token: str, url: str) -> Delivery:
        """Takes the notification of a cloud. Raises StoreError."""
        push = await self._find(token)
        delivery = Delivery.UNKNOWN
        if push is not None and push.state in OVER:
            delivery = Delivery.ENDED
        elif push is not None and await self.knows(token, url):
            work = partial(take_push, push_no=push.push_no, chance=self._tools.spread(), has_content=False)
            delivery = Delivery.ENDED if await self._service.write(work) is None else Delivery.HINT
        SOURCE_PUSHES.labels(delivery.value).inc()
        return delivery

    async def _find(self, token: str) -> SourcePush | None:
        return await self._service.read(partial(find_push, token=token))

    async def _deliver(self, token: str, incoming: IncomingPush) -> Delivery:
        push = await self._find(token)
        if push is None or push.kind is not PushKind.HUB:
            return Delivery.UNKNOWN
        if push.state in OVER:
            return Delivery.ENDED
        if push.expects_signature and not await asyncio.to_thread(_is_genuine, push.secret, incoming):
            await self._count_forgery(push)
            return Delivery.FORGED
        # Without a signature the secret of the path is all that proves the sender, and over http others can read it.
        is_trusted = push.expects_signature or self._own.own_url.startswith("https:")
        # A mirror reads its feed by the position that it has, so a push of its hub is a hint whatever it contains.
        has_content = is_trusted and not push.mirror and bool(incoming.body.strip())
        work = partial(take_push, push_no=push.push_no, chance=self._tools.spread(), has_content=has_content)
        if not has_content:
            return Delivery.ENDED if await self._service.write(work) is None else Delivery.HINT
        size_bytes = _size_bytes(incoming)
        if not self._has_room(push.source_no, size_bytes):
            return Delivery.BUSY
        # The room is taken before the wait for the store: pushes that come together shall not see the same room.
        self._waiting_bytes[push.source_no] += size_bytes
        noted = None
        try:
            noted = await self._service.write(work)
        finally:
            if noted is None:
                self._waiting_bytes[push.source_no] -= size_bytes
        if noted is None:
            return Delivery.ENDED
        if push.source_no not in self._waiting:
            self._waiting[push.source_no] = deque()
            self._ready.put_nowait(push.source_no)
        self._waiting[push.source_no].append((noted, incoming))
        return Delivery.STORED

    def _has_room(self, source_no: int, size_bytes: int) -> bool:
        return (
            self._waiting_bytes.total() + size_bytes <= WAITING_BYTES
            and self._waiting_bytes[source_no] + size_bytes <= SOURCE_BYTES
        )

    async def _count_forgery(self, push: SourcePush) -> None:
        count = await self._service.write(
            partial(
                take_forgery,
                push_no=push.push_no,
                token=self._new_key(TOKEN_BYTES),
                secret=self._new_key(SECRET_BYTES),
                chance=self._tools.spread(),
            )
        )
        _log.warning(
            "source_push_forged", hub=display_url(push.address), topic=display_url(push.target.topic), in_a_row=count
        )

    async def run(self) -> None:
        """Stores pushes for ever, those of one source in the order of their arrival."""
        await asyncio.gather(*(self._work() for _ in range(AT_ONCE)))

    async def _work(self) -> None:
        while True:
            await self.store_next()

    async def settle(self) -> None:
        """Stores all pushes that wait."""
        while self._waiting:
            await self.store_next()

    async def store_next(self) -> None:
        """Waits for a push and stores it. What cannot be stored is polled."""
        source_no = await self._ready.get()
        # It stays at the head while it is stored. So a push that comes meanwhile waits, and no other worker takes it.
        push, incoming = self._waiting[source_no][0]
        try:
            with failures_logged():
                await self._store(push, incoming)
        finally:
            self._waiting[source_no].popleft()
            self._waiting_bytes[source_no] -= _size_bytes(incoming)
            if not self._waiting_bytes[source_no]:
                del self._waiting_bytes[source_no]
            if self._waiting[source_no]:
                self._ready.put_nowait(source_no)
            else:
                del self._waiting[source_no]

    async def _store(self, noted: SourcePush, incoming: IncomingPush) -> None:
        push, source = await self._service.read(
            lambda tx, _context: (push_rows.push(tx, noted.push_no), rows.source(tx, noted.source_no))
        )
        if push is None or source is None:
            return
        try:
            body = Body(incoming.coding, MAX_PUSH_BYTES)
            await body.feed(incoming.body)
            # Reading a large document takes long enough to hold up everything else.
            items, links = await self._tools.aside(
                read_push,
                *(body.whole(), incoming.charset, push.target.topic, source, self._own.own_url),
                party=source.host,
            )
            if push.cursor and links.prev_cursor and links.prev_cursor != push.cursor:
                async with asyncio.timeout(GAP_S):
                    await self._close_gap(push, source, links.last_cursor)
            counts = await self._service.write(
                partial(
                    store_push,
                    push_no=push.push_no,
                    items=items,
                    received_us=noted.pending_us,
                    cursor=links.last_cursor[:MAX_CURSOR_CHARACTERS],
                )
            )
        except (FeedError, BodyError, FetchError, TimeoutError) as error:
            reason = str(error) or f"the gap before it was not closed within {GAP_S:g} seconds"
            _log.info("source_push_unreadable", node=source.node, hub=display_url(push.address), reason=reason)
            await self._service.write(partial(take_hint, push_no=push.push_no))
            return
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - whatever a document of others makes of this, the source is polled
            _log.exception("source_push_not_read", node=source.node, hub=display_url(push.address))
            await self._service.write(partial(take_hint, push_no=push.push_no))
            return
        if counts is not None:
            SOURCE_ITEMS.labels("added").inc(counts.added)
            SOURCE_ITEMS.labels("changed").inc(counts.changed)

    async def _close_gap(self, push: SourcePush, source: Source, until: str) -> None:
        """Pulls what lies between the last cursor and the push from another Smart Feeds service (SF-044, WS-132).

        Raises FetchError and FeedError.
        """
        cursor, client, sender = push.cursor, self._clients.of(source), sender_to(push.target.topic, source)
        joint = "&" if "?" in push.target.topic else "?"
        for _page in range(MAX_PAGES):
            url = f"{push.target.topic}{joint}since=cursor:{quote(cursor, safe='')}&timeout=0"
            response = await client.get(url, accept=ACCEPT_SOURCE, sender=sender)
            items, links = await self._tools.aside(
                read_push,
                *(response.body, response.charset, push.target.topic, source, self._own.own_url),
                party=source.host,
            )
            await self._service.write(
                partial(
                    store_push,
                    push_no=push.push_no,
                    items=items,
                    received_us=None,
                    cursor=links.last_cursor[:MAX_CURSOR_CHARACTERS],
                )
            )
            if not items or links.last_cursor in ("", cursor, until):
                return
            cursor = links.last_cursor


def _size_bytes(incoming: IncomingPush) -> int:
    """The memory that a push takes while it waits."""
    return len(incoming.body) + PUSH_BYTES


def _is_genuine(secret: str, incoming: IncomingPush) -> bool:
    """Whether a push has a right signature. A hash of a large body takes long enough to run in a thread."""
    return any(is_signed(text, secret, incoming.body) for text in incoming.signatures[:MAX_SIGNATURES])
