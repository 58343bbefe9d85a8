"""Operations of the running process: announcements in paced batches, a stop with delay
(features/administration/process.py)."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest
import structlog

from smartfeeds.app import feature
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.errors import Condition, FeedError, LinkError, StoreError
from smartfeeds.features.administration.process import (
    Announce,
    Announcement,
    CancelStop,
    Recipients,
    ServiceOperations,
    SetLogLevel,
    StopService,
)
from smartfeeds.features.administration.requests import AddressList, ListAddresses
from smartfeeds.recent import RecentRates, Throughput
from smartfeeds.service.context import Policy
from smartfeeds.service.requests import Request
from smartfeeds.telemetry import Readings, log_level, set_log_level

SERVICE = "feeds.example.org"
TEXT = Announcement(Recipients.SUBSCRIBERS, "News", "Tea is ready")


def jid(text: str) -> Jid:
    made = parse_jid(text)
    assert made is not None
    return made


ADMIN = jid("root@example.org/desk")
RATES = Throughput(0, 0, 0, 0)
RECENT = RecentRates(lambda: RATES, lambda: 0)
READINGS = Readings(0, 0, 0, 0, 0, 0.0, 0, 0.0, True, 1)


class Store:
    """A service that knows addresses only."""

    def __init__(self, count: int) -> None:
        self.policy = Policy(SERVICE, admins=frozenset({"root@example.org"}))
        self.error: BaseException | None = None
        self.addresses = [f"u{number:04}@example.org" for number in range(count)]

    async def handle(self, request: Request) -> AddressList:
        if self.error is not None:
            raise self.error
        assert isinstance(request, ListAddresses)
        behind = [address for address in self.addresses if address > request.after]
        return AddressList(tuple(behind[: request.limit]))


class Process:
    """The process around the operations: what was sent, the pauses, the stops. A pause ends when a test says so."""

    def __init__(self, count: int = 0) -> None:
        self.store = Store(count)
        self.sent: list[str] = []
        self.pauses_s: list[float] = []
        self.stops: list[bool] = []
        self.link_faults = 0
        self.tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        process = feature.Process(self.stops.append, self._spawn, self._sleep, lambda: READINGS, RECENT)
        self.operations = ServiceOperations(self.store, process, self._send, lambda: 0)  # type: ignore[arg-type]

    async def _send(self, addresses: Sequence[str], announcement: Announcement) -> None:
        if self.link_faults:
            self.link_faults -= 1
            raise LinkError("down")
        assert announcement is TEXT
        self.sent += addresses

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> Callable[[], object]:
        self.tasks.append(asyncio.get_running_loop().create_task(work(), name=name))
        return self.tasks[-1].cancel

    async def _sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        await self._wake.wait()
        self._wake.clear()

    async def settle(self) -> None:
        """Lets the tasks run until they pause or end. They wait for no socket and no thread."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def wake(self) -> None:
        """Ends the pause."""
        self._wake.set()
        await self.settle()


async def refused(work: Coroutine[Any, Any, object]) -> Condition:
    with pytest.raises(FeedError) as error:
        await work
    return error.value.condition


async def test_announcement_goes_to_all_in_paced_batches() -> None:
    process = Process(250)

    await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
    await process.settle()
    sizes = [len(process.sent)]
    for _ in range(3):
        await process.wake()
        sizes.append(len(process.sent))

    assert sizes == [100, 200, 250, 250]
    assert process.pauses_s == [1.0, 1.0, 1.0]
    assert process.sent == process.store.addresses
    assert process.tasks[0].done()


async def test_one_announcement_at_a_time() -> None:
    process = Process(1)
    await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
    await process.settle()

    assert await refused(process.operations.handle(Announce(ADMIN, SERVICE, TEXT))) is Condition.BUSY
    await process.wake()
    await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
    await process.settle()
    assert process.sent == process.store.addresses * 2
    process.tasks[-1].cancel()


async def test_announcement_waits_for_the_link() -> None:
    process = Process(150)
    process.link_faults = 2

    await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
    await process.settle()
    for _ in range(4):
        await process.wake()

    assert process.pauses_s == [10.0, 10.0, 1.0, 1.0]
    assert process.sent == process.store.addresses


@pytest.mark.parametrize("text", ["", "x" * 4_001])
async def test_announcement_has_a_bounded_text(text: str) -> None:
    process = Process(1)
    announcement = replace(TEXT, text=text)

    for request in (Announce(ADMIN, SERVICE, announcement), StopService(ADMIN, SERVICE, 60, announcement=announcement)):
        assert await refused(process.operations.handle(request)) is Condition.NOT_ACCEPTABLE
    assert process.tasks == []


async def test_announcement_is_logged_as_sent_only_if_it_went_to_all() -> None:
    """A failure and a cancellation are logged with the number of recipients so far."""
    process = Process(250)
    with structlog.testing.capture_logs() as entries:
        for ending in (None, StoreError("full"), asyncio.CancelledError()):
            await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
            await process.settle()
            process.store.error = ending
            while not process.tasks[-1].done():
                await process.wake()
            await asyncio.gather(process.tasks[-1], return_exceptions=True)
            process.store.error = None

    assert [(entry["event"], entry["recipients"]) for entry in entries] == [
        ("announced", 250),
        ("announcement_incomplete", 100),
        ("announcement_incomplete", 100),
    ]


async def test_stop_is_announced_beside_another_announcement() -> None:
    """Behind a long announcement it could come too late."""
    process = Process(150)
    await process.operations.handle(Announce(ADMIN, SERVICE, TEXT))
    await process.settle()
    assert len(process.sent) == 100

    await process.operations.handle(StopService(ADMIN, SERVICE, 60, announcement=TEXT))
    await process.settle()

    assert process.sent == process.store.addresses[:100] * 2
    assert await refused(process.operations.handle(Announce(ADMIN, SERVICE, TEXT))) is Condition.BUSY
    for task in process.tasks:
        task.cancel()


@pytest.mark.parametrize("later", [CancelStop(ADMIN, SERVICE), StopService(ADMIN, SERVICE, 30)])
async def test_announcement_of_a_stop_ends_with_the_stop(later: Request) -> None:
    """If the stop is cancelled or replaced, the others do not get the message."""
    process = Process(250)
    await process.operations.handle(StopService(ADMIN, SERVICE, 60, announcement=TEXT))
    await process.settle()

    await process.operations.handle(later)
    await process.settle()

    assert [task.cancelled() for task in process.tasks[:2]] == [True, True]
    assert process.sent == process.store.addresses[:100]


async def test_stop_follows_the_delay_and_the_announcement() -> None:
    process = Process(1)

    await process.operations.handle(StopService(ADMIN, SERVICE, 60, announcement=TEXT))
    await process.settle()
    assert (process.sent, process.stops) == (process.store.addresses, [])
    await process.wake()
    await process.wake()

    assert sorted(process.pauses_s) == [1.0, 60]
    assert process.stops == [False]


async def test_stop_without_delay_is_at_once() -> None:
    process = Process()

    await process.operations.handle(StopService(ADMIN, SERVICE, 0))
    await process.settle()

    assert (process.stops, process.pauses_s) == ([False], [])


async def test_later_stop_replaces_an_earlier_one_and_can_be_cancelled() -> None:
    process = Process()
    await process.operations.handle(StopService(ADMIN, SERVICE, 60))
    await process.settle()
    await process.operations.handle(StopService(ADMIN, SERVICE, 30))
    await process.settle()
    assert [task.cancelled() for task in process.tasks] == [True, False]

    await process.operations.handle(CancelStop(ADMIN, SERVICE))
    await process.settle()

    assert [task.cancelled() for task in process.tasks] == [True, True]
    assert await refused(process.operations.handle(CancelStop(ADMIN, SERVICE))) is Condition.ITEM_NOT_FOUND
    assert process.stops == []


async def test_restart_needs_a_process_manager() -> None:
    process = Process()
    request = StopService(ADMIN, SERVICE, 0, restart=True)

    assert await refused(process.operations.handle(request)) is Condition.NOT_ALLOWED
    process.store.policy = replace(process.store.policy, restarts=True)
    await process.operations.handle(request)
    await process.settle()

    assert process.stops == [True]


@pytest.mark.parametrize("delay_s", [-1, 86_401])
async def test_delay_is_bounded(delay_s: int) -> None:
    process = Process()

    request = StopService(ADMIN, SERVICE, delay_s)
    assert await refused(process.operations.handle(request)) is Condition.NOT_ACCEPTABLE


async def test_operations_are_for_admins() -> None:
    """Every request of the table."""
    process = Process()
    assert len(process.operations.handlers) == 7
    for request in process.operations.handlers:
        made = request.__new__(request)
        object.__setattr__(made, "actor", jid("eve@example.org/x"))
        assert await refused(process.operations.handle(made)) is Condition.FORBIDDEN
    assert process.tasks == []


async def test_log_level_changes_at_run_time() -> None:
    process = Process()
    former = log_level()
    try:
        await process.operations.handle(SetLogLevel(ADMIN, SERVICE, "error"))
        assert log_level() == "error"
        request = SetLogLevel(ADMIN, SERVICE, "loud")
        assert await refused(process.operations.handle(request)) is Condition.NOT_ACCEPTABLE
        assert log_level() == "error"
    finally:
        set_log_level(former)
