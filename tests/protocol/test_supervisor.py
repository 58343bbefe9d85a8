"""Who connects, when, and what the operator reads (design section 3; xep-map 3-5, 9, 11)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.settings import LinkSettings
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.supervisor import ADVICE, REFUSED, Supervisor
from support.fakeserver import FakeServer
from support.faketime import FakeTime, settle
from support.link import DOMAIN, Taken, make_stream
from support.waiting import wait_for

OPEN_TIMEOUT_S = 500.0
SETTINGS = LinkSettings(
    retry_first_s=0.5,
    retry_most_s=30.0,
    healthy_after_s=30.0,
    open_timeout_s=OPEN_TIMEOUT_S,
    ping_idle_s=10_000.0,
    ping_timeout_s=2_000.0,
)
BACK_OFF_MOST_S = 30.0


class ScriptedLink:
    """A link without sockets: each `open` ends as the script says, `None` meaning online."""

    domain = DOMAIN
    endpoint = "127.0.0.1:5347"

    def __init__(self, *script: str | None) -> None:
        self.script = list(script)
        self.received_bytes = 0
        self.opens = 0
        self.pings = 0
        self.closes = 0
        self.hang = False
        self.answers = True
        self._closed: asyncio.Future[LinkDownError] | None = None

    async def open(self) -> None:
        self.opens += 1
        if self.hang:
            await asyncio.Event().wait()
        condition = self.script.pop(0) if self.script else None
        if condition is not None:
            raise LinkDownError(condition, "scripted")
        self._closed = asyncio.get_running_loop().create_future()

    async def wait_closed(self) -> LinkDownError:
        assert self._closed is not None
        return await asyncio.shield(self._closed)

    def ping(self) -> None:
        self.pings += 1
        if self.answers:
            self.received_bytes += 100

    def drop(self, condition: str) -> None:
        assert self._closed is not None
        if not self._closed.done():
            self._closed.set_result(LinkDownError(condition))

    async def close(self) -> None:
        self.closes += 1
        if self._closed is not None:
            self.drop("stopped")


class Run:
    """A supervisor at work on a link, with its time and its log."""

    def __init__(self, link: ScriptedLink, settings: LinkSettings = SETTINGS, random: float = 1.0) -> None:
        self.link = link
        self.time = FakeTime()
        self.supervisor = Supervisor(
            cast(ComponentStream, link),
            settings,
            clock=self.time.clock,
            sleep=self.time.sleep,
            random=lambda: random,
        )

    @property
    def back_offs(self) -> list[float]:
        """Every delay before a new attempt so far."""
        return [seconds for seconds in self.time.slept if seconds <= BACK_OFF_MOST_S]


@asynccontextmanager
async def running(link: ScriptedLink, settings: LinkSettings = SETTINGS, random: float = 1.0) -> AsyncIterator[Run]:
    run = Run(link, settings, random)
    task = asyncio.create_task(run.supervisor.run())
    await settle()
    try:
        yield run
    finally:
        await run.supervisor.stop()
        await task


async def test_supervisor_first_attempt_works_is_online() -> None:
    async with running(ScriptedLink()) as run:
        assert run.supervisor.online.is_set()
        assert (run.supervisor.epoch, run.supervisor.connects, run.supervisor.last_error) == (1, 1, None)
        assert run.back_offs == []


async def test_supervisor_failures_double_the_delay_up_to_thirty_seconds() -> None:
    """[xep-map 5]"""
    async with running(ScriptedLink(*["connect-failed"] * 10)) as run:
        for _ in range(10):
            await run.time.advance(30.0)

        assert run.back_offs == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
        assert run.supervisor.online.is_set()
        assert str(run.supervisor.last_error) == "connect-failed: scripted"


@pytest.mark.parametrize("random", [0.0, 0.25, 0.999])
async def test_supervisor_delay_is_jittered_within_its_bounds(random: float) -> None:
    async with running(ScriptedLink(*["lost"] * 20), random=random) as run:
        for _ in range(20):
            await run.time.advance(30.0)

        assert all(0.25 <= delay <= 30.0 for delay in run.back_offs)
        assert run.back_offs[-1] == pytest.approx(15.0 + random * 15.0)


async def test_supervisor_link_that_dies_young_does_not_reset_the_delay() -> None:
    """The usual recipe, connect on every disconnect, is a denial of service. [xep-map 4]"""
    async with running(ScriptedLink()) as run:
        for _ in range(6):
            await run.time.advance(29.0)
            run.link.drop("lost")
            await settle()
            await run.time.advance(run.back_offs[-1])

        assert run.back_offs == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]


async def test_supervisor_link_that_was_healthy_for_thirty_seconds_resets_the_delay() -> None:
    async with running(ScriptedLink(*["connect-failed"] * 5)) as run:
        for _ in range(5):
            await run.time.advance(30.0)
        assert run.supervisor.online.is_set()

        await run.time.advance(30.0)
        run.link.drop("lost")
        await settle()

        assert run.back_offs[-1] == 0.5
        assert not run.supervisor.online.is_set()
        await run.time.advance(0.5)
        assert run.supervisor.epoch == 2


@pytest.mark.parametrize("condition", sorted(REFUSED))
async def test_supervisor_refused_is_retried_slowly_from_the_first_time(condition: str) -> None:
    """[xep-map 4]"""
    async with running(ScriptedLink(*[condition] * 4), random=0.0) as run:
        for _ in range(4):
            await run.time.advance(15.0)

        assert run.back_offs == [15.0] * 4
        assert run.supervisor.online.is_set()


@pytest.mark.parametrize("condition", sorted(REFUSED))
async def test_supervisor_refused_says_once_what_to_do_with_the_domain(condition: str) -> None:
    """[xep-map 4]"""
    with capture_logs() as logs:
        async with running(ScriptedLink(*[condition] * 50)) as run:
            for _ in range(40):
                await run.time.advance(30.0)
            assert run.link.opens == 41

    assert len(logs) == 1
    line: EventDict = dict(logs[0])
    assert (line["event"], line["log_level"], line["condition"]) == ("link_refused", "error", condition)
    assert (line["domain"], line["server"]) == (DOMAIN, "127.0.0.1:5347")
    assert line["advice"] == ADVICE[condition]


async def test_supervisor_conflict_stands_by_with_growing_delay_and_ends_online() -> None:
    """[xep-map 5]"""
    with capture_logs() as logs:
        async with running(ScriptedLink(*["conflict"] * 5)) as run:
            for _ in range(5):
                await run.time.advance(30.0)

            assert run.back_offs == [0.5, 1.0, 2.0, 4.0, 8.0]
            assert run.supervisor.online.is_set()

    assert [line["event"] for line in logs] == ["link_offline", "link_online"]
    assert "standing by" in logs[0]["advice"]


async def test_supervisor_each_change_of_state_is_one_line() -> None:
    script = ["connect-failed", "connect-failed", "not-authorized", "not-authorized", "connect-failed", None]
    with capture_logs() as logs:
        async with running(ScriptedLink(*script)) as run:
            for _ in range(5):
                await run.time.advance(30.0)
            run.link.drop("lost")
            await settle()

    assert [(line["event"], line.get("condition")) for line in logs] == [
        ("link_offline", "connect-failed"),
        ("link_refused", "not-authorized"),
        ("link_offline", "connect-failed"),
        ("link_online", None),
        ("link_offline", "lost"),
    ]


async def test_supervisor_server_that_accepts_and_says_nothing_times_out() -> None:
    """[xep-map 11]"""
    link = ScriptedLink()
    link.hang = True
    async with running(link) as run:
        assert not run.supervisor.online.is_set()
        await run.time.advance(OPEN_TIMEOUT_S)
        assert run.supervisor.last_error is not None
        assert run.supervisor.last_error.condition == "timeout"
        link.hang = False
        await run.time.advance(0.5)

        assert run.supervisor.online.is_set()
        assert run.time.sleeping == [SETTINGS.ping_idle_s]


async def test_supervisor_idle_link_is_pinged_and_stays() -> None:
    """[xep-map 11]"""
    async with running(ScriptedLink()) as run:
        for _ in range(5):
            await run.time.advance(SETTINGS.ping_idle_s + SETTINGS.ping_timeout_s)

        assert run.link.pings == 5
        assert run.supervisor.epoch == 1 and run.supervisor.online.is_set()


async def test_supervisor_busy_link_is_not_pinged() -> None:
    """[xep-map 11]"""
    async with running(ScriptedLink()) as run:
        for _ in range(10):
            await run.time.advance(SETTINGS.ping_idle_s / 2)
            run.link.received_bytes += 1

        assert run.link.pings == 0


async def test_supervisor_unanswered_ping_drops_the_link_and_connects_again() -> None:
    """[xep-map 11]"""
    link = ScriptedLink()
    link.answers = False
    async with running(link) as run:
        await run.time.advance(SETTINGS.ping_idle_s + SETTINGS.ping_timeout_s - 1.0)
        assert run.supervisor.epoch == 1 and run.supervisor.online.is_set()
        await run.time.advance(2.0)

        assert run.supervisor.last_error is not None
        assert run.supervisor.last_error.condition == "ping-timeout"
        assert run.supervisor.epoch == 2 and run.supervisor.online.is_set()


@pytest.mark.parametrize("when", ["online", "backing-off", "connecting", "before"])
async def test_supervisor_stop_ends_whatever_it_was_doing(when: str) -> None:
    link = ScriptedLink(*(["connect-failed"] if when == "backing-off" else []))
    link.hang = when == "connecting"
    run = Run(link)
    if when == "before":
        await run.supervisor.stop()
    task = asyncio.create_task(run.supervisor.run())
    await settle()

    await run.supervisor.stop()
    await task

    assert link.closes == 1
    assert not run.supervisor.online.is_set()
    assert run.time.sleeping == []


async def test_supervisor_task_cancelled_closes_the_link() -> None:
    run = Run(ScriptedLink())
    task = asyncio.create_task(run.supervisor.run())
    await settle()

    task.cancel()
    await asyncio.wait((task,))

    assert task.cancelled()
    assert run.link.closes == 1
    assert run.time.sleeping == []


async def test_supervisor_real_link_comes_back_after_the_server_was_away() -> None:
    """[xep-map 9]"""
    time = FakeTime()
    async with FakeServer(DOMAIN) as server:
        stream = make_stream(server, Taken())
        supervisor = Supervisor(stream, SETTINGS, clock=time.clock, sleep=time.sleep, random=lambda: 0.5)
        task = asyncio.create_task(supervisor.run())
        await wait_for(supervisor.online.wait(), "the connection")
        await server.stop_listening()
        server.sessions[0].cut()
        await time.until_sleeping(BACK_OFF_MOST_S)
        assert not supervisor.online.is_set()
        await time.advance(BACK_OFF_MOST_S)
        await time.until_sleeping(BACK_OFF_MOST_S)
        assert supervisor.last_error is not None
        assert supervisor.last_error.condition == "connect-failed"

        await server.listen()
        await time.advance(BACK_OFF_MOST_S)
        await wait_for(supervisor.online.wait(), "the connection")

        assert supervisor.epoch == stream.outbox.epoch == 2
        await supervisor.stop()
        await task
        assert server.sessions[-1].footer


async def test_supervisor_real_link_conflict_ends_in_a_working_link() -> None:
    """[xep-map 5]"""
    time = FakeTime()
    async with FakeServer(DOMAIN) as server:
        server.switches.refuse = "conflict"
        stream = make_stream(server, Taken())
        supervisor = Supervisor(stream, SETTINGS, clock=time.clock, sleep=time.sleep, random=lambda: 1.0)
        task = asyncio.create_task(supervisor.run())
        for expected_s in (0.5, 1.0, 2.0):
            assert await time.until_sleeping(BACK_OFF_MOST_S) == expected_s
            if expected_s == 2.0:
                server.switches.refuse = ""
            await time.advance(expected_s)
        await wait_for(supervisor.online.wait(), "the connection")

        assert supervisor.connects == 4
        await supervisor.stop()
        await task
