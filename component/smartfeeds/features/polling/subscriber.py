"""Requests to hubs and clouds: subscribes, renews and unsubscribes when that is due (WS-099 to WS-107, WS-115, WS-137).

Due times are in the store. One task reads which subscriptions are due, one a host, and starts a request for each of
them. `push_states` makes the decisions.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlencode

import structlog

from smartfeeds.core.times import US_PER_S
from smartfeeds.delivery.changes import failures_logged
from smartfeeds.features.polling import push_rows
from smartfeeds.features.polling.clouds import Clouds
from smartfeeds.features.polling.metrics import SOURCE_PUSH_REQUESTS, SourcePushReading
from smartfeeds.features.polling.push_states import (
    LEASE_WISH_S,
    OwnCallbacks,
    PushState,
    RequestResult,
    SourcePush,
    Task,
    callback_url,
)
from smartfeeds.features.polling.source import PushKind
from smartfeeds.features.polling.source_push import (
    FORGOTTEN_S,
    begin_pushes,
    begin_task,
    end_request,
    find_forgotten,
    has_orphans,
    leave_orphans,
    poll_forgotten,
    reach_of,
    spread_pushes,
)
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.callbacks import PERMANENT_FOR_HUBS, CallbackAnswer
from smartfeeds.net.clients import CallbackClient
from smartfeeds.net.fetch import display_url
from smartfeeds.service.feeds import FeedService

AT_ONCE: Final = 20  # hosts that requests are in progress at
LOOK_S: Final = 5.0  # the store is read this often, because polls and commands change it
SPACE_S: Final = 1.0  # between two requests to a host (WS-137)
_ORPHANS_S: Final = 60.0  # between two looks for subscriptions whose source has gone
_LEAST_PAUSE_S: Final = 0.05
_BEGIN: Final = 500  # subscriptions that one transaction looks at
HUB_REDIRECTS: Final = 3  # WS-105
_MAX_TEXT_BYTES: Final = 1_024  # of an answer, whose beginning becomes the reason (WS-107)
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_TOO_MANY: Final = 429

_log = structlog.get_logger()


class PushClients(NamedTuple):
    """The clients of hubs, in the order of `Reach`."""

    public: CallbackClient
    listed: CallbackClient
    private: CallbackClient


def sends_secret(push: SourcePush, own: OwnCallbacks) -> bool:
    """Whether a hub gets a secret: it and the callback have TLS, or the operator does not insist (WS-103)."""
    is_tls = push.address.startswith("https:") and own.own_url.startswith("https:")
    return push.kind is PushKind.HUB and (is_tls or own.secret_over_http)


class Subscriber:
    """Makes the requests of all subscriptions."""

    def __init__(
        self,
        service: FeedService,
        clients: PushClients,
        clouds: Clouds,
        tools: SourceTools,
        own: OwnCallbacks,
    ) -> None:
        self._service = service
        self._clients = clients
        self._clouds = clouds
        self._tools = tools
        self._own = own
        self._running: dict[str, asyncio.Task[None]] = {}  # by host
        self._began = False
        self._orphans_us: int | None = None
        self._forgotten_us: int | None = None
        self._states: Mapping[PushState, int] = {}

    async def run(self) -> None:
        """Makes requests for ever; a failure of the store is logged, and the next look repeats the work."""
        try:
            while True:
                pause_s = LOOK_S
                with failures_logged():
                    pause_s = await self.look()
                await self._tools.sleep(pause_s)
        finally:
            # Another process counts from now on. A dashboard adds the numbers of all processes.
            self._states, self._orphans_us = {}, None
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def settle(self) -> bool:
        """Waits for the requests in progress. Returns whether there were any."""
        running = list(self._running.values())
        await asyncio.gather(*running)
        return bool(running)

    async def look(self) -> float:
        """Starts the requests that are due. Returns the seconds until the next look. Raises StoreError."""
        if not self._began:
            await self._begin()
        now_us = self._tools.now_us()
        if self._orphans_us is None or not 0 <= now_us - self._orphans_us < _ORPHANS_S * US_PER_S:
            # To look reads only: a write would keep all others from writing meanwhile.
            while await self._service.read(has_orphans):
                await self._service.write(leave_orphans)
            self._orphans_us = now_us
            self._states = await self._service.read(lambda tx, _context: push_rows.states(tx))
        if self._forgotten_us is None or not 0 <= now_us - self._forgotten_us < FORGOTTEN_S * US_PER_S:
            await self._poll_forgotten()
            self._forgotten_us = now_us
        limit = AT_ONCE + len(self._running)
        due = await self._service.read(lambda tx, context: push_rows.due(tx, context.now_us, limit))
        for push in due:
            if push.host not in self._running and len(self._running) < AT_ONCE:
                self._start(push)
        if due:
            return SPACE_S
        next_us = await self._service.read(lambda tx, _context: push_rows.next_due_us(tx))
        return LOOK_S if next_us is None else min(max(_LEAST_PAUSE_S, (next_us - now_us) / US_PER_S), LOOK_S)

    async def _begin(self) -> None:
        """Polls what was received and not stored before the start of this process, and spreads requests."""
        after_no: int | None = 0
        while after_no is not None:
            after_no = await self._service.write(partial(begin_pushes, after_no=after_no, limit=_BEGIN))
        await self._service.write(spread_pushes)
        self._began = True

    async def _poll_forgotten(self) -> None:
        """Polls what other processes have received, and have not stored before they ended."""
        after_no: int | None = 0
        while after_no is not None:
            find = partial(find_forgotten, after_no=after_no, limit=_BEGIN)
            numbers, after_no = await self._service.read(find)
            if numbers:
                await self._service.write(partial(poll_forgotten, numbers=numbers))

    def _start(self, push: SourcePush) -> None:
        host = push.host
        task = self._running[host] = asyncio.get_running_loop().create_task(self._serve(push), name=f"hub {host}")
        task.add_done_callback(lambda _task: self._running.pop(host))

    async def _serve(self, push: SourcePush) -> None:
        """Does what is due for a subscription, and keeps the distance to the next request to its host."""
        with failures_logged():
            with_secret = sends_secret(push, self._own)
            begun = await self._service.write(
                partial(begin_task, push_no=push.push_no, chance=self._tools.spread(), sends_secret=with_secret)
            )
            if begun is None or begun[1] in (Task.NOTHING, Task.REMOVE):
                return
            push, task = begun
            result = await self._request(push, task)
            after = await self._service.write(
                partial(
                    end_request,
                    push_no=push.push_no,
                    asked_us=push.asked_us,
                    result=result,
                    chance=self._tools.spread(),
                )
            )
            SOURCE_PUSH_REQUESTS.labels("accepted" if result.succeeded else "failed").inc()
            if not result.succeeded:
                _log.info(
                    "source_push_refused",
                    hub=display_url(push.address),
                    topic=display_url(push.target.topic),
                    reason=result.reason,
                    state=after.state.value if after else "",
                )
            await self._tools.sleep(SPACE_S)

    async def _request(self, push: SourcePush, task: Task) -> RequestResult:
        client = self._clients[(await self._service.read(partial(reach_of, push=push))).value]
        if push.kind is PushKind.CLOUD:
            return await self._clouds.register(client, push)
        answer = await client.post(
            push.address,
            self._form(push, task),
            _FORM,
            max_bytes=_MAX_TEXT_BYTES,
            redirects=HUB_REDIRECTS,
            permanent=PERMANENT_FOR_HUBS,
        )
        return result_of(answer)

    def _form(self, push: SourcePush, task: Task) -> bytes:
        """A request in a form that hubs of both versions understand (WS-100, WS-111)."""
        fields = {
            "hub.mode": task.value,
            "hub.topic": push.target.topic,
            "hub.callback": callback_url(self._own.own_url, push.token),
            "hub.verify": "async",
        }
        if task is Task.SUBSCRIBE:
            fields["hub.lease_seconds"] = str(LEASE_WISH_S)
            if push.asks_secret:
                fields["hub.secret"] = push.secret
        return urlencode(fields).encode()

    def readings(self) -> tuple[SourcePushReading, ...]:
        """The number of subscriptions in each state, for metrics."""
        return tuple(SourcePushReading(state.value, self._states.get(state, 0)) for state in PushState)


def result_of(answer: CallbackAnswer) -> RequestResult:
    """The result of a request from the answer of a hub (WS-104, WS-107)."""
    if answer.succeeded:
        return RequestResult(succeeded=True, door=answer.permanent_url)
    text = " ".join(answer.body.decode("utf-8", "replace").split())
    is_refusal = 400 <= answer.status < 500 and answer.status != _TOO_MANY
    reason = f"the hub {answer.outcome}" + (f": {text}" if is_refusal and text else "")
    return RequestResult(
        succeeded=False,
        reason=reason,
        is_refusal=is_refusal,
        retry_after_s=answer.retry_after_s,
        door=answer.permanent_url,
    )
