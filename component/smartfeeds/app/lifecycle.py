"""The composition root: builds all parts from the settings, starts them in order and stops them in reverse order.

`App.__init__` only connects objects. `App.start` opens what they need, and registers how each step is undone; `stop`
undoes the steps. Each part is given what it needs; no part looks for another one here.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import structlog

from smartfeeds import __version__, system
from smartfeeds.app.background import BackgroundTasks
from smartfeeds.app.config import Settings
from smartfeeds.app.feature import CoroutineFunction, Host, Process, run_all
from smartfeeds.app.group import GroupLink, make_group
from smartfeeds.app.opening import lock_store, open_service
from smartfeeds.app.sides import chat_tables, declare_metrics, xmpp_side
from smartfeeds.core.consumers import PUSH
from smartfeeds.core.limits import publish_limits
from smartfeeds.delivery.backlog import BacklogWatch
from smartfeeds.delivery.changes import ChangeNotifier, WatchedNodes, log_failures_of, repeat_until_stored
from smartfeeds.delivery.deliverer import ConsumerKind
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.duties import Duty
from smartfeeds.delivery.indexing import Indexer
from smartfeeds.delivery.sweeps import SWEEPS
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.features import FEATURES
from smartfeeds.net.limiter import HostLimiter
from smartfeeds.parts import Parts
from smartfeeds.push.bounces import Bounces
from smartfeeds.push.fencing import FencedSender
from smartfeeds.push.sender import PushForms, PushSender
from smartfeeds.push.side import joined_push
from smartfeeds.recent import RecentRates, Throughput
from smartfeeds.service.feeds import Finish
from smartfeeds.service.requests import Answer, Publish, Request
from smartfeeds.service.subscriptions import Bounce
from smartfeeds.service.web_documents import remove_unread_documents
from smartfeeds.store.file_folder import FileFolder
from smartfeeds.store.migrate import HEAD
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.telemetry import (
    GATHERED,
    SCHEMA_VERSION,
    Readings,
    observe_request,
    requests_refused,
    watch_loop,
)
from smartfeeds.xmpp.authorization import authorization_form
from smartfeeds.xmpp.command_sessions import session_key
from smartfeeds.xmpp.disco import ServiceInfo, capabilities
from smartfeeds.xmpp.forms import configuration_form
from smartfeeds.xmpp.parsing import REQUEST_BYTES
from smartfeeds.xmpp.router import RouterTools, StanzaRouter
from smartfeeds.xmpp.stanza_side import BOT, StanzaSide, joined_stanzas
from smartfeeds.xmpp.stream import ComponentStream, StreamTools
from smartfeeds.xmpp.supervisor import LinkSharing, Supervisor
from smartfeeds.xmpp.turns import QueueBounds

if TYPE_CHECKING:
    from smartfeeds.http.site import Site

DRAIN_S = 5.0  # how long a stop waits for requests in progress
READ_S = 5.0  # how long a read of the store may take before the service reports that it is not ready

_log = structlog.get_logger()


class App:
    """The running component. `start` and `stop` are called once; `online` is set while the server accepts it.

    `clock` returns microseconds since the Unix epoch and may step back; it is the system's if it is None. `on_failure`
    is called when a part that should never end has ended. Only a restart helps then. `on_stop` is called when an admin
    stops the service; its parameter is true for a restart.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], int] | None = None,
        on_failure: Callable[[], object] = lambda: None,
        on_stop: Callable[[bool], object] = lambda _restart: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.settings = settings
        declare_metrics()
        self.tasks = BackgroundTasks(on_failure)
        age_clock = clock or system.AgeClock(system.now_us, system.monotonic)
        clock = clock or system.now_us
        self.changes = ChangeNotifier()
        self.service = open_service(settings, self.changes.announce, clock, on_reply=self.changes.announce_reply)
        self.group = make_group(settings, self.service, self.changes, self.tasks.spawn)
        self.ownership = self.group.ownership
        self._draining = False
        self.files = FileFolder(settings.store.files_folder)
        self._indexer = Indexer(self.service.store)
        self._stack = contextlib.AsyncExitStack()  # the steps that `stop` undoes; empty if `start` has failed
        domain, policy = settings.component.jid, self.service.policy
        secret = settings.component.reveal_secret()
        self.stream = ComponentStream(
            domain,
            secret,
            host=settings.component.host,
            port=settings.component.port,
            tools=StreamTools(
                max(REQUEST_BYTES, policy.max_request_bytes),
                QueueBounds.of(settings.limits.in_flight, settings.pubsub.page_max),
                __version__,
                self.group.relay,
            ),
        )
        outbox = self.stream.outbox
        self.dispatcher = Dispatcher(
            self.service, DeliveryTiming(clock, random.random), self.ownership, self.group.letters
        )
        self.changes.listen(self.dispatcher)
        self.backlog = BacklogWatch(self.service, clock)
        self.notifications = FencedSender(outbox, lambda: self.ownership.is_current)
        side, self.parts = xmpp_side(), Parts()
        self.parts.add(self.files)
        self.recent = RecentRates(self._throughput, clock, self.dispatcher.lag_s)
        process = Process(on_stop, self.tasks.spawn_operation, sleep, self._readings, self.recent)
        # Features call the last four functions after the start. The names in them are bound below.
        host = Host(
            settings=settings,
            service=self.service,
            handle=self.handle,
            now_us=clock,
            changes=self.changes,
            dispatcher=self.dispatcher,
            link=self.stream,
            send=self.group.send,
            letters=self.group.letters,
            limiter=HostLimiter(),
            process=process,
            parts=self.parts,
            chat=chat_tables(),
            notifications=self.notifications,
            capabilities=lambda: capabilities(info, side, stanzas),
            picture=lambda: stanzas.picture,
            is_available=lambda jid: push.availability.is_available(jid),
            answers_chat=lambda: BOT in stanzas.identities,
        )
        self._running = run_all(FEATURES, host)
        self._handlers = {kind: answer for running in self._running for kind, answer in running.handlers.items()}
        info = ServiceInfo(
            domain=domain,
            default_kind=settings.pubsub.default_kind,
            auto_create=settings.pubsub.auto_create,
            http_base_url=settings.http.base_url if settings.http.listen else "",
            addresses=settings.contact.model_dump(),
            limits=policy.options,
        )
        self._rates = publish_limits(settings.limits.publishes_per_s, time.monotonic)
        bounces = StanzaSide(handlers={Bounce: Bounces(self.service, clock=clock).note})
        running_stanzas = (running.stanzas for running in self._running if running.stanzas is not None)
        stanzas = joined_stanzas((bounces, *running_stanzas))
        push = joined_push(running.push for running in self._running if running.push is not None)
        self.sender = PushSender(
            self.service,
            self.notifications,
            PushForms(partial(configuration_form, limits=policy.options), authorization_form),
            push,
            release=self.dispatcher.follow,
            clock=age_clock,
            max_age_s=settings.push.max_age_s,
        )
        self.dispatcher.register(PUSH, ConsumerKind(self.sender, every_feed=True))
        self.router = StanzaRouter(
            self,
            outbox.reply,
            info,
            self.service.use_cases,
            side,
            stanzas,
            RouterTools(session_key(secret, domain), observe_request, settings.pubsub.stanza_bytes, clock),
        )
        self.stream.on_stanza, self.stream.on_full = self.router.on_stanza, self.router.on_full
        self.site: Site | None = None
        if settings.http.listen:
            from smartfeeds.app.site import make_site  # imported here: aiohttp and its pages take 12 MB

            self.site = make_site(settings, self.handle, clock, self.parts, self._unready, policy.max_request_bytes)
        self._listen()
        self.supervisor = Supervisor(
            self.stream,
            settings.link,
            clock=time.monotonic,
            sleep=asyncio.sleep,
            random=random.random,
            on_online=self._on_online,
            sharing=LinkSharing(self.group.may_connect, self.group.burst),
        )
        self.group.attach(GroupLink(self.stream, self.online, self.router, stanzas))
        for name, work in self._duties():
            self.ownership.register(Duty(name, work, self.tasks.spawn))

    def _duties(self) -> Iterator[tuple[str, CoroutineFunction]]:
        """Yields the works that one process at a time does."""
        yield "filter index", self._indexer.run
        for sweep in SWEEPS:
            yield sweep.name, partial(sweep.run, self.service)
        for running in self._running:
            yield from running.duties

    def _on_online(self) -> None:
        if not self.group.has_lease():
            return  # this process may not use the link, and has closed it
        for running in self._running:
            if running.online is not None:
                running.online()
        self.tasks.spawn(self._resume(), "push resume")

    def _listen(self) -> None:
        """Adds the listeners of changes that are called last."""
        self.changes.listen(self._indexer)
        if self.site is not None:
            self.changes.listen(WatchedNodes(self.service, self.site.feeds.waiting))

    @property
    def online(self) -> asyncio.Event:
        """The event that is set while the server accepts the component."""
        return self.supervisor.online

    def handle(self, request: Request) -> Awaitable[Answer]:
        """The service behind the rate limit of the operator (xep-map 249)."""
        if self._rates is not None:
            self._check_rate(request)
        handler = self._handlers.get(type(request))
        return self.service.handle(request) if handler is None else handler(request)

    def submit(self, request: Request, finish: Finish) -> None:
        """Handles a request as `handle` does, for callers that need no task (`FeedService.submit`)."""
        if self._rates is not None:
            try:
                self._check_rate(request)
            except FeedError as error:
                finish(None, error)
                return
        handler = self._handlers.get(type(request))
        if handler is None:
            self.service.submit(request, finish)
        else:
            self.service.tasks.start(handler(request), finish)

    def _check_rate(self, request: Request) -> None:
        limits = self._rates if type(request) in self.service.use_cases.limited else None
        if limits is not None and not limits.admit(request.actor):
            raise FeedError(Condition.BUSY, "you publish faster than this service allows")

    async def start(self) -> None:
        """Locks the store, binds the HTTP address, opens the store, serves HTTP and starts to connect.

        If a step fails, the steps before it are undone. Raises StoreError, or ConfigError for the address.
        """
        async with contextlib.AsyncExitStack() as parts:
            # First: another process may serve this database.
            parts.callback(lock_store(self.settings, f"smartfeeds, {self.settings.component.jid}"))
            if self.site is not None:
                # Bound before the store is opened: a start that fails for its address creates no database.
                parts.callback(self.site.listener.unbind)
                await self.site.listener.bind()
            await self.service.store.open()
            parts.push_async_callback(self.service.store.close)
            await self.files.clear_new()
            SCHEMA_VERSION.set(int(HEAD))
            GATHERED.source = self._all_readings
            # What ends last is registered first. Deliveries in flight need the clients until the dispatcher has
            # stopped, and the link until they have sent.
            for client in (client for running in self._running for client in running.clients):
                await parts.enter_async_context(client)
            parts.push_async_callback(self.tasks.stop)
            parts.push_async_callback(self.group.stop)
            parts.push_async_callback(self.supervisor.stop)
            for running in self._running:
                if running.leave is not None:
                    parts.push_async_callback(log_failures_of, running.leave)
            parts.push_async_callback(self._hand_over)
            if self.site is not None:
                parts.push_async_callback(self.site.stop)
                await self.site.listener.start()
                self.tasks.spawn(self.site.listener.watch(), "http watch")
            if self.settings.component.link != "off":
                self.tasks.spawn(self.supervisor.run(), "link")
            self.tasks.spawn(watch_loop(), "loop watch")
            if isinstance(self.service.store, SqliteStore):
                self.tasks.spawn(self.service.store.watch(), "store watch")
            self.tasks.spawn(self.recent.run(), "rates")
            self.tasks.spawn(self.changes.run(), "other processes")
            await self.ownership.start()
            self.group.start()
            self.tasks.spawn(self.backlog.run(), "backlog")
            await self._start_features(parts)
            readers = [running.document_readers for running in self._running if running.document_readers is not None]
            await self.service.write(partial(remove_unread_documents, readers=readers))
            self._stack = parts.pop_all()

    async def _start_features(self, parts: contextlib.AsyncExitStack) -> None:
        for running in self._running:
            if running.stop is not None:
                parts.push_async_callback(log_failures_of, running.stop)
            if running.start is not None:
                await running.start()
            for name, work in running.tasks:
                self.tasks.spawn(work(), name)

    async def stop(self) -> None:
        """Undoes `start` in reverse order: finishes requests, saves marks, ends the stream, closes the store.

        Before it, the service reports for `http.drain_s` that it is not ready: a load balancer then chooses another.
        """
        if self.settings.http.drain_s and self.site is not None:
            self._draining = True
            await asyncio.sleep(self.settings.http.drain_s)
        self.service.store.prepare_close()  # or each step would wait for a database that does not answer
        await self._stack.aclose()

    async def _hand_over(self) -> None:
        """Ends the work of this process. Its link is open until then, because the work sends stanzas."""
        await self._drain()
        await log_failures_of(self.dispatcher.stop)  # stores the marks
        await log_failures_of(self.ownership.release)  # another process takes the shards
        self.group.leave()  # another process takes new requests
        await self._drain()  # answers those that came meanwhile

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.router.drain(), DRAIN_S)

    def _throughput(self) -> Throughput:
        """The counts since the start of this app, except that refusals are those of the process."""
        answered = self.service.answered
        pulled = sum(answered[kind] for kind in self.service.use_cases.pulls) + (
            self.site.feeds.cache_hits if self.site is not None else 0
        )
        return Throughput(answered[Publish], self.notifications.sent, pulled, requests_refused())

    def _readings(self) -> Readings:
        outbox, counters = self.stream.outbox, self.sender.counters
        transport = self.stream.transport
        return Readings(
            in_flight=self.stream.turns.stanzas,
            refused=self.stream.turns.refused,
            sent=self.notifications.sent,
            dropped=counters.dropped,
            dropped_replies=outbox.dropped_replies,
            lag_s=counters.lag_us / 1_000_000,
            buffer_bytes=transport.get_write_buffer_size() if transport is not None else 0,
            paused_s=outbox.paused_s,
            online=self.online.is_set(),
            connects=self.supervisor.connects,
            pings=self.supervisor.pings,
            processes=self.ownership.processes,
            shards=len(self.ownership.owned),
            **(self.site.readings() if self.site is not None else {}),
        )

    def _all_readings(self) -> Iterator[object]:
        yield self._readings()
        yield from chain(self.dispatcher.readings(), self.backlog.readings(), self.group.readings())
        yield from chain.from_iterable(running.readings() for running in self._running if running.readings is not None)

    async def _unready(self) -> dict[str, str]:
        """Returns the reasons why requests cannot be served, by part of the service; none if they can."""
        reasons: dict[str, str] = {}
        try:
            async with asyncio.timeout(READ_S):
                await self.service.read(lambda tx, _context: tx.node_by_no(0))  # one look-up; no node has this number
        except (StoreError, TimeoutError):
            reasons["store"] = "it cannot be read"
        if self._draining:
            reasons["process"] = "it is stopping"
        if self.settings.component.link == "always" and not self.online.is_set():
            reasons["link"] = "the XMPP server does not accept us at the moment"
        if self.tasks.failed:
            reasons["process"] = "a part that should never end has ended; restart the service"
        return reasons

    async def _resume(self) -> None:
        """Reads what deliveries need, and starts those over XMPP from the marks."""
        loads = (running.load for running in self._running if running.load is not None)
        await asyncio.gather(*map(repeat_until_stored, loads))
        resumes: tuple[CoroutineFunction, ...] = (
            partial(self.dispatcher.resume, PUSH),
            *(running.resume for running in self._running if running.resume is not None),
        )
        await asyncio.gather(*map(repeat_until_stored, resumes))
