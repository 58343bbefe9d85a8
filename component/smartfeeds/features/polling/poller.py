"""Polls the sources of the store when they are due (SRC-001 to SRC-047, SRC-076).

Due times are in the store. One task reads which sources are due, one a host, and starts a poll for each of them. So a
host with thousands of feeds takes one place, and a restart changes no time. `polls` makes the decisions.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import structlog

from smartfeeds.core.consumers import BROKEN
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.delivery.changes import failures_logged
from smartfeeds.errors import FeedError, StoreError
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.answers import busy_host, failed_answer, good_answer, whole
from smartfeeds.features.polling.history import with_history
from smartfeeds.features.polling.metrics import (
    SOURCE_BYTES,
    SOURCE_ITEMS,
    SOURCE_POLLS,
    PollerReading,
    SourceStateReading,
)
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.polls import GOOD, REPAIRED, AnswerKind, PollAnswer, next_host_pause, validators_at
from smartfeeds.features.polling.push_states import SECRET_BYTES, TOKEN_BYTES, NewKey
from smartfeeds.features.polling.reading import ACCEPT_SOURCE, SourceDocument, offer_in, read_source
from smartfeeds.features.polling.source import HostPause, Source, SourceState, host_of
from smartfeeds.features.polling.source_import import SourceContent, StoredPoll, store_poll
from smartfeeds.features.polling.source_push import PolledOffer
from smartfeeds.features.polling.sources import begin_polls, read_due, sharing_address
from smartfeeds.features.polling.subscription_lists import adopt_own_lists, read_own_list
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchError, FetchResponse, Sender, display_url
from smartfeeds.service.feeds import FeedService

# Polls in progress, those that wait for a turn included. As many as `POLL_LIMITS` admits, slow ones too, and as many
# again: a host that was quick has a turn of its own, and must not wait here for hosts that have become silent.
AT_ONCE: Final = 160
LOOK_S: Final = 5.0  # the store is read this often, because commands change it, too
# A look that comes so much later found a clock that jumped, or a process that was stopped.
_JUMP_S: Final = 60.0
_STATES_S: Final = 60.0  # between two counts of all sources, for metrics
_LEAST_PAUSE_S: Final = 0.05
_FAULT_PAUSE_S: Final = 300.0  # of a host whose polls cannot be stored

_log = structlog.get_logger()


def sender_to(url: str, source: Source) -> Sender:
    """The sender of a request for a source. Name and password are for the host of the source only (SRC-015)."""
    settings = source.settings
    login = (settings.user, settings.password) if host_of(url) == source.host else ("", "")
    return Sender(*login, settings.user_agent)


class PollClients(NamedTuple):
    """The HTTP clients, in the order of `Reach`: each connects only where its sources may lead."""

    public: Fetcher
    listed: Fetcher
    private: Fetcher

    def of(self, source: Source) -> Fetcher:
        """The client of a source."""
        return self[source.reach.value]


class Poller:
    """Polls all sources.

    `own_url` is the address at which this service serves its own feeds, "" if it serves none. `new_key` makes
    a random text of so many bytes for a new subscription at a hub; without it hubs are not used (WS-102).
    """

    def __init__(
        self,
        service: FeedService,
        clients: PollClients,
        tools: SourceTools,
        own_url: str = "",
        new_key: NewKey | None = None,
    ) -> None:
        self._service = service
        self._clients = clients
        self._tools = tools
        self._own_url = own_url
        self._new_key = new_key
        self._running: dict[str, asyncio.Task[None]] = {}  # by host
        self._versions: dict[str, str] = {}  # of the nodes that are lists, by address, as they were read last
        self._free = asyncio.Event()  # a poll has ended
        self._looked_us: int | None = None
        self._counted_us: int | None = None
        self._states: dict[SourceState, int] = {}
        self._behind_s = 0.0
        self._paused_hosts = 0

    async def run(self) -> None:
        """Polls for ever; a failure of the store is logged, and the next look repeats the work."""
        try:
            while True:
                pause_s = LOOK_S
                with failures_logged():
                    pause_s = await self.look()
                await self._sleep(pause_s)
        finally:
            # Another process counts from now on. A dashboard adds the numbers of all processes.
            self._states, self._behind_s, self._paused_hosts, self._counted_us = {}, 0.0, 0, None
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _sleep(self, pause_s: float) -> None:
        """Waits until the next look, or until a poll has ended and perhaps others with it."""
        self._free.clear()
        if await self._tools.wait(self._free, pause_s):
            # With thousands of sources that are due, a look costs as much as some polls.
            await self._tools.sleep(_LEAST_PAUSE_S)

    async def settle(self) -> bool:
        """Waits for the polls in progress. Returns whether there were any."""
        running = list(self._running.values())
        await asyncio.gather(*running)
        return bool(running)

    async def look(self) -> float:
        """Starts polls of the sources that are due. Returns the seconds until the next look. Raises StoreError."""
        now_us = self._tools.now_us()
        await self._correct_times(now_us)
        # Hosts whose poll is in progress are still due in the store, and must not take the places of others.
        plan = await self._service.read(partial(read_due, limit=AT_ONCE + len(self._running)))
        self._paused_hosts = len(plan.pauses)
        self._behind_s = max([0.0, *((now_us - source.due_us) / US_PER_S for source in plan.due if source.due_us)])
        for source in plan.due:
            if source.host not in self._running and len(self._running) < AT_ONCE:
                self._start(source, plan.pauses.get(source.host))
        for source, version in plan.own_lists:
            if self._versions.get(source.url) != version and source.host not in self._running:
                self._start(source, None)
        if self._counted_us is None or now_us - self._counted_us >= _STATES_S * US_PER_S:
            self._states = await self._service.read(lambda tx, _context: rows.states(tx))
            self._counted_us = now_us
        if plan.due or plan.next_us is None:
            return LOOK_S  # the end of a poll comes earlier
        return min(max(_LEAST_PAUSE_S, (plan.next_us - now_us) / US_PER_S), LOOK_S)

    async def _correct_times(self, now_us: int) -> None:
        """Spreads overdue sources after a start, and after the clock has jumped (SRC-028, SRC-029)."""
        former_us, self._looked_us = self._looked_us, now_us
        if former_us is None or not 0 <= now_us - former_us <= (LOOK_S + _JUMP_S) * US_PER_S:
            self._counted_us = None
            await self._service.write(begin_polls)
            await self._service.write(partial(adopt_own_lists, own_url=self._own_url))

    def _start(self, source: Source, pause: HostPause | None) -> None:
        host = source.host
        work = self._defer(source, pause) if pause is not None else self.poll(source)
        task = self._running[host] = asyncio.get_running_loop().create_task(self._attempt(work), name=f"poll {host}")
        task.add_done_callback(lambda _task: self._ended(host))

    async def _attempt(self, work: Coroutine[None, None, None]) -> None:
        """Does a poll. If its result cannot be stored, the source stays due: a pause keeps it from being requested
        again and again."""
        done = False
        with failures_logged():
            await work
            done = True
        if not done:
            self._versions.clear()  # what was read of lists may not be stored
            await self._tools.sleep(_FAULT_PAUSE_S)

    def _ended(self, host: str) -> None:
        del self._running[host]
        self._free.set()

    async def _defer(self, source: Source, pause: HostPause) -> None:
        """Waits for the end of the pause of a host without a request (SRC-041)."""
        answer = PollAnswer(AnswerKind.BUSY, "its server asked for a pause", paused_until_us=pause.until_us)
        await self._store(source, answer, is_request=False)

    async def poll(self, source: Source) -> None:
        """Requests the address of a source once, and stores what every source of this address gets (SRC-019). A fault
        of this program is a failure of these sources.

        Raises StoreError.
        """
        began_us = self._tools.now_us()
        sources = await self._service.read(partial(sharing_address, source=source))
        if not any((other.source_no, other.due_us) == (source.source_no, source.due_us) for other in sources):
            return  # it was polled, removed or paused since it was read
        try:
            await self._poll(sources, began_us)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - whatever a server makes of this, its polls slow down, and hold up no others
            for other in sources:
                await self._give_up(other)

    async def _poll(self, sources: Sequence[Source], began_us: int) -> None:
        try:
            response = await self._fetch(sources)
        except FetchError as error:
            await self._fail(sources, error)
            return
        if not response.not_modified:
            SOURCE_BYTES.inc(len(response.body))
        for other in sources:
            await self._take(other, response, began_us)

    async def _fetch(self, sources: Sequence[Source]) -> FetchResponse:
        """One request for sources of one address. It is conditional if all have read the same document."""
        source = sources[0]
        known = {validators_at(other, self._tools.now_us()) for other in sources}
        validators = known.pop() if len(known) == 1 else NO_VALIDATORS
        if source.own_node:
            own_list = await self._service.read(partial(read_own_list, source=source, known_version=validators.etag))
            self._versions[source.url] = own_list.version
            return own_list.response()
        if is_own(source.url, self._own_url):
            raise FetchError(source.url, "is a feed of this service; choose another one")
        return await self._get(source, source.url, validators)

    async def _get(self, source: Source, url: str, known: Validators) -> FetchResponse:
        client, sender = self._clients.of(source), sender_to(url, source)
        return whole(await client.get(url, known=known, accept=ACCEPT_SOURCE, sender=sender))

    async def _fail(self, sources: Sequence[Source], error: FetchError) -> None:
        for source in sources:
            answer, pause = failed_answer(error), None
            if answer.kind is AnswerKind.BUSY:
                now_us, host = self._tools.now_us(), busy_host(source, error)
                former = await self._service.read(lambda tx, _context: rows.host_pause(tx, host))  # noqa: B023
                pause = next_host_pause(former, host, error.retry_after_s, now_us)
                answer = PollAnswer(AnswerKind.BUSY, answer.reason, paused_until_us=pause.until_us)
            await self._store(source, answer, pause=pause)

    async def _take(self, source: Source, response: FetchResponse, began_us: int) -> None:
        """Reads a response for one source and stores it."""
        allowed = self._clients.of(source).limits.allowed
        try:
            if response.not_modified:
                offer = self._offer(source, response, None, began_us)
                await self._store(source, good_answer(source, response, None, allowed), offer=offer)
                return
            document = await self._read(source, response)
            whole = await with_history(
                self._service, source, document, response.url, partial(self._older_page, source, response.url)
            )
            answer = replace(
                good_answer(source, response, document, allowed),
                reason=whole.reason or document.repaired,
                is_gap=whole.is_gap,
                archives=whole.archives,
                is_page=document.is_page,
            )
            if document.feed.partial:
                # The server may say 304 to the validators of a document that it has cut.
                answer = replace(answer, validators=NO_VALIDATORS)
            offer = self._offer(source, response, document, began_us)
            await self._store(source, answer, whole.document, offer=offer)
        except FeedError as error:
            await self._store(source, PollAnswer(AnswerKind.UNREADABLE, error.text or error.condition.value))
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - whatever a document of others makes of this, its polls slow down
            await self._give_up(source)

    async def _give_up(self, source: Source) -> None:
        """Stores the exception that is being handled as a failure of a source, as any other: it is due later."""
        _log.exception("source_not_read", node=source.node, url=display_url(source.url))
        await self._store(source, PollAnswer(AnswerKind.UNREADABLE, BROKEN))

    async def _read(self, source: Source, response: FetchResponse) -> SourceDocument:
        """Reads a document aside: a large feed takes long enough to hold up everything else. Raises FeedError."""
        return await self._tools.aside(
            read_source,
            *(response.body, response.charset, response.url, source, self._own_url),
            response.headers.getall("Link", ()),
            party=source.host,
        )

    async def _older_page(self, source: Source, feed_url: str, url: str) -> SourceDocument:
        """Requests and reads an older page of a feed. Raises FetchError or FeedError."""
        response = await self._get(source, url, NO_VALIDATORS)
        if host_of(response.url) != host_of(feed_url):
            raise FetchError(url, f"is redirected to another host, {display_url(response.url)}")
        SOURCE_BYTES.inc(len(response.body))
        return await self._read(source, response)

    def _offer(
        self, source: Source, response: FetchResponse, document: SourceDocument | None, began_us: int
    ) -> PolledOffer | None:
        """Returns the hubs and clouds that a good response names, None if they are not used."""
        if self._new_key is None:
            return None
        token, secret = self._new_key(TOKEN_BYTES), self._new_key(SECRET_BYTES)
        if document is None:
            return PolledOffer(began_us, None, token, secret)
        offer = offer_in(document, response.url, source.url, self._own_url)
        return PolledOffer(began_us, offer, token, secret, document.links.last_cursor)

    async def _store(
        self,
        source: Source,
        answer: PollAnswer,
        document: SourceDocument | None = None,
        pause: HostPause | None = None,
        *,
        is_request: bool = True,
        offer: PolledOffer | None = None,
    ) -> None:
        content = None if document is None else SourceContent(document.feed, document.items, document.listed)
        chance = self._tools.spread()
        stored = await self._service.write(
            partial(
                store_poll,
                source_no=source.source_no,
                answer=answer,
                chance=chance,
                content=content,
                pause=pause,
                offer=offer,
            )
        )
        if is_request:
            SOURCE_POLLS.labels(answer.kind.value).inc()
        if stored is not None:
            SOURCE_ITEMS.labels("added").inc(stored.counts.added)
            SOURCE_ITEMS.labels("changed").inc(stored.counts.changed)
            _log_poll(stored, answer)

    def readings(self) -> Iterator[PollerReading | SourceStateReading]:
        """The state of all sources, for metrics."""
        yield PollerReading(self._behind_s, self._paused_hosts)
        for state in SourceState:
            yield SourceStateReading(state.value, self._states.get(state, 0))


def _log_poll(stored: StoredPoll, answer: PollAnswer) -> None:
    before, after = stored.before, stored.after
    if after.progress.said and not before.progress.said:
        _log.warning(
            "source_failing", node=after.node, url=display_url(after.url), state=after.state.value, reason=after.reason
        )
    if after.url != before.url:
        _log.info(
            "source_moved",
            node=after.node,
            url=display_url(before.url),
            to=display_url(after.url),
            sharing=stored.sharing,
        )
    if answer.kind in GOOD and after.reason and after.reason != before.reason:
        event = "source_repaired" if after.reason.startswith(REPAIRED) else "source_incomplete"
        _log.warning(event, node=after.node, url=display_url(after.url), reason=after.reason)
    for item_id, reason in stored.counts.skipped:
        _log.warning("source_item_skipped", node=after.node, url=display_url(after.url), item=item_id, reason=reason)
    _log.debug("source_polled", node=after.node, url=display_url(after.url), result=answer.kind.value)
