"""How many requests go out at once and how often, and the pauses that servers ask for."""

import asyncio

import pytest

from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S
from smartfeeds.net.limiter import HostLimiter, HostLimits, HostPausedError, retry_after_s
from support.faketime import FakeTime, settle
from support.timers import Timers

NOW_S = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def limiter_of(time: FakeTime, **limits: float) -> HostLimiter:
    return HostLimiter(HostLimits(**limits), clock=time.clock, sleep=time.sleep)  # type: ignore[arg-type]


async def visit(
    limiter: HostLimiter, host: str, starts: list[tuple[str, float]], time: FakeTime, port: int = 443
) -> None:
    async with limiter.turn(host, port):
        starts.append((host, time.clock()))


async def test_requests_beyond_the_burst_start_at_the_rate(time: FakeTime) -> None:
    limiter, starts = limiter_of(time, per_s=2.0, burst=3), []
    began_s = time.clock()
    visits = [asyncio.create_task(visit(limiter, "a.example", starts, time)) for _ in range(6)]
    await time.advance(10)
    await asyncio.gather(*visits)

    assert [start_s - began_s for _, start_s in starts] == [0.0, 0.0, 0.0, 0.5, 1.0, 1.5]


async def test_rate_of_one_host_is_not_the_rate_of_another(time: FakeTime) -> None:
    limiter, starts = limiter_of(time, per_s=0.1, burst=1), []
    visits = [
        asyncio.create_task(visit(limiter, host, starts, time)) for host in ("a.example", "a.example", "b.example")
    ]
    await settle()

    assert starts == [("a.example", time.clock()), ("b.example", time.clock())]
    await time.advance(10)
    await asyncio.gather(*visits)


async def test_burst_is_available_again_after_a_quiet_time(time: FakeTime) -> None:
    limiter, starts = limiter_of(time, per_s=1.0, burst=2), []
    for _ in range(2):
        await asyncio.gather(*(visit(limiter, "a.example", starts, time) for _ in range(2)))
        await time.advance(2)

    assert [start_s - starts[0][1] for _, start_s in starts] == [0.0, 0.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"at_once": 9, "at_once_per_host": 2}, ["a", "a", "b", "b"]),
        ({"at_once": 3, "at_once_per_host": 2}, ["a", "a", "b"]),
    ],
)
async def test_requests_in_flight_are_bounded_per_host_and_in_all(
    time: FakeTime, limits: dict[str, int], expected: list[str]
) -> None:
    """The names of hosts do not depend on case."""
    limiter, inside, leave = limiter_of(time, **limits), [], asyncio.Event()

    async def hold(host: str) -> None:
        async with limiter.turn(host, 443):
            inside.append(host.lower())
            await leave.wait()

    holders = [asyncio.create_task(hold(host)) for host in ("a", "A", "a", "b", "B", "b")]
    await settle()
    assert inside == expected

    leave.set()
    await asyncio.gather(*holders)
    assert sorted(inside) == ["a"] * 3 + ["b"] * 3


async def test_requests_that_wait_for_a_slow_host_leave_room_for_others(time: FakeTime) -> None:
    limiter, starts, leave = limiter_of(time, at_once=2, at_once_per_host=1), [], asyncio.Event()

    async def hold() -> None:
        async with limiter.turn("slow.example", 443):
            await leave.wait()

    holders = [asyncio.create_task(hold()) for _ in range(5)]
    await settle()
    await visit(limiter, "quick.example", starts, time)

    assert len(starts) == 1
    leave.set()
    await asyncio.gather(*holders)


async def test_slow_hosts_leave_turns_for_hosts_that_were_quick(time: FakeTime) -> None:
    """Strangers choose the hosts, and a slow body may hold its turn for a minute. A new host may be slow, too."""
    limiter, starts, leave = limiter_of(time, at_once=4, at_once_per_host=1), [], asyncio.Event()
    inside: list[str] = []

    async def hold(host: str) -> None:
        async with limiter.turn(host, 443):
            inside.append(host)
            await leave.wait()

    await visit(limiter, "quick.example", starts, time)
    holders = [asyncio.create_task(hold(f"new-{number}.example")) for number in range(6)]
    await settle()
    assert inside == ["new-0.example", "new-1.example", "new-2.example"]

    quick = [asyncio.create_task(visit(limiter, "quick.example", starts, time)) for _ in range(3)]
    await settle()
    assert [host for host, _ in starts] == ["quick.example"] * 4

    leave.set()
    await asyncio.gather(*holders, *quick)
    assert len(inside) == 6


async def test_host_whose_last_answer_was_slow_loses_its_share(time: FakeTime) -> None:
    limiter, starts, leave = limiter_of(time, at_once=4, at_once_per_host=1), [], asyncio.Event()

    async def hold(host: str) -> None:
        async with limiter.turn(host, 443):
            await leave.wait()

    await visit(limiter, "changing.example", starts, time)
    async with limiter.turn("changing.example", 443):
        await time.advance(60)
    holders = [asyncio.create_task(hold(f"slow-{number}.example")) for number in range(3)]
    await settle()
    changing = asyncio.create_task(visit(limiter, "changing.example", starts, time))
    await settle()
    assert len(starts) == 1

    leave.set()
    await asyncio.gather(*holders, changing)
    assert len(starts) == 2


async def test_pause_refuses_requests_to_its_host_until_it_ends(time: FakeTime) -> None:
    limiter, starts = limiter_of(time), []
    limiter.pause("A.example", 443, 60)
    limiter.pause("a.example", 443, 20)
    await visit(limiter, "b.example", starts, time)
    await time.advance(59)

    with pytest.raises(HostPausedError, match="try again in 1 seconds") as caught:
        await visit(limiter, "a.example", starts, time)
    assert caught.value.left_s == 1.0

    await time.advance(1)
    await visit(limiter, "a.example", starts, time)
    assert [host for host, _ in starts] == ["b.example", "a.example"]


async def test_pause_is_of_one_port_and_the_rate_of_all(time: FakeTime) -> None:
    """Another port may be the server of somebody else; the machine behind all ports is one."""
    limiter, starts = limiter_of(time, per_s=0.5, burst=2), []
    limiter.pause("a.example", 8443, 60)
    await visit(limiter, "a.example", starts, time)
    with pytest.raises(HostPausedError):
        async with limiter.turn("a.example", 8443):
            starts.append(("a.example:8443", time.clock()))
    assert [host for host, _ in starts] == ["a.example"]

    await time.advance(60)
    began_s = time.clock()
    visits = [asyncio.create_task(visit(limiter, "a.example", starts, time, port)) for port in (443, 8443, 443)]
    await time.advance(2)
    await asyncio.gather(*visits)
    assert [start_s - began_s for _, start_s in starts[1:]] == [0.0, 0.0, 2.0]


async def test_paused_port_takes_nothing_from_the_other_ports(time: FakeTime) -> None:
    """Neither a slot, nor the rate, nor a turn of the process: the request fails without waiting for any of them."""
    limiter, starts = limiter_of(time, at_once=1, at_once_per_host=1, per_s=1.0, burst=1), []
    limiter.pause("a.example", 8443, 60)
    for _ in range(3):
        with pytest.raises(HostPausedError):
            await visit(limiter, "a.example", starts, time, 8443)
    await visit(limiter, "a.example", starts, time)
    assert (len(starts), time.slept) == (1, [])

    await time.advance(1)
    async with limiter.turn("a.example", 443):
        with pytest.raises(HostPausedError):
            await visit(limiter, "a.example", starts, time, 8443)


async def test_pause_refuses_requests_that_were_waiting_for_their_turn(time: FakeTime) -> None:
    limiter = limiter_of(time, at_once_per_host=1)
    async with limiter.turn("a.example", 443):
        waiting = asyncio.create_task(visit(limiter, "a.example", [], time))
        await settle()
        limiter.pause("a.example", 443, 60)

    with pytest.raises(HostPausedError):
        await waiting


async def test_hosts_are_forgotten_when_no_limit_applies_to_them(time: FakeTime) -> None:
    """Addresses of strangers must not fill the memory; a pause must not be forgotten."""
    limiter = limiter_of(time)
    limiter.pause("paused.example", 443, MAX_REQUESTED_PAUSE_S)
    for number in range(5_000):
        await visit(limiter, f"host-{number}.example", [], time)
        await time.advance(1) if number % 500 == 0 else None

    assert len(limiter) < 2_100
    with pytest.raises(HostPausedError):
        await visit(limiter, "paused.example", [], time)


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Tue, 14 Nov 2023 22:15:20 GMT", 120.0),
        ("Tuesday, 14-Nov-23 22:15:20 GMT", 120.0),
        ("604801", MAX_REQUESTED_PAUSE_S),
        ("9" * 400, MAX_REQUESTED_PAUSE_S),
        ("Fri, 14 Nov 2098 22:13:20 GMT", MAX_REQUESTED_PAUSE_S),
        ("0", None),
        ("Tue, 14 Nov 2023 22:13:20 GMT", None),
        ("Tue, 14 Nov 2000 22:13:20 GMT", None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("Tue, 99 Nov 2023 22:13:20 GMT", None),
        ("\u0661\u0662", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_bounded(text: str, pause_s: float | None) -> None:
    """RFC 9110 10.2.3. What has passed or cannot be read counts as missing."""
    assert retry_after_s(text, NOW_S) == pause_s


async def test_one_ip_address_is_bounded_over_all_its_names():
    """[SRC-018] Another address does not wait. What nobody uses is forgotten."""
    limiter = HostLimiter(HostLimits(at_once=20, per_s=100, at_once_per_address=2))
    order, release = [], asyncio.Event()

    async def request(host, address):
        async with limiter.turn(host, 443, address):
            order.append(host)
            await release.wait()

    tasks = [asyncio.create_task(request(f"{name}.example", "192.0.2.1")) for name in "abc"]
    tasks.append(asyncio.create_task(request("d.example", "192.0.2.2")))
    await settle()
    assert order == ["a.example", "b.example", "d.example"]
    release.set()
    await asyncio.gather(*tasks)
    assert order[-1] == "c.example" and not limiter._addresses


async def test_hosts_that_become_silent_together_leave_their_places(time: FakeTime) -> None:
    """[SRC-017] A thousand hosts that were quick: the others wait for the first of them for some seconds only."""
    timers, leave = Timers(), asyncio.Event()
    limits = HostLimits(at_once=4, at_once_per_host=1, slow_at_once=6)
    limiter = HostLimiter(limits, clock=time.clock, sleep=time.sleep, call_later=timers.call_later)
    inside, starts = set[int](), list[tuple[str, float]]()
    for number in range(20):
        await visit(limiter, f"host-{number}.example", starts, time)

    async def hold(number: int) -> None:
        async with limiter.turn(f"host-{number}.example", 443):
            inside.add(number)
            await leave.wait()

    holders = [asyncio.create_task(hold(number)) for number in range(20)]
    counts = []
    for _ in range(4):
        await settle()
        counts.append(len(inside))
        timers.fire()
    assert counts == [4, 8, 10, 10]
    leave.set()
    await asyncio.gather(*holders)
    assert len(inside) == 20 and timers.planned == []
    # Each place has come back, once.
    leave.clear()
    inside.clear()
    holders = [asyncio.create_task(hold(number)) for number in range(20)]
    await settle()
    assert len(inside) == 4
    leave.set()
    await asyncio.gather(*holders)


async def test_request_that_is_cancelled_while_it_waits_takes_no_place(time: FakeTime) -> None:
    limiter, starts, leave = limiter_of(time, at_once=1, at_once_per_host=1), [], asyncio.Event()

    async def hold() -> None:
        async with limiter.turn("a.example", 443):
            await leave.wait()

    holder = asyncio.create_task(hold())
    await settle()
    waiting = asyncio.create_task(visit(limiter, "b.example", starts, time))
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    leave.set()
    await holder
    await visit(limiter, "c.example", starts, time)
    assert [host for host, _ in starts] == ["c.example"]


async def test_request_that_is_held_takes_no_place_but_counts_for_the_rate(time: FakeTime) -> None:
    """[SF-046] Its server answers when it has news."""
    limiter, starts = limiter_of(time, at_once=1, at_once_per_host=1, per_s=1.0, burst=3), []
    began_s, over = time.clock(), asyncio.Event()

    async def hold() -> None:
        async with limiter.held("a.example", 443):
            starts.append(("held", time.clock()))
            await over.wait()

    held = [asyncio.create_task(hold()) for _ in range(2)]
    await settle()
    visits = [asyncio.create_task(visit(limiter, "a.example", starts, time)) for _ in range(2)]
    await time.advance(1)
    await asyncio.gather(*visits)
    assert [(name, start_s - began_s) for name, start_s in starts] == [
        ("held", 0.0),
        ("held", 0.0),
        ("a.example", 0.0),
        ("a.example", 1.0),
    ]
    over.set()
    await asyncio.gather(*held)


async def test_request_that_would_be_held_waits_for_no_pause(time: FakeTime) -> None:
    limiter = limiter_of(time)
    limiter.pause("a.example", 443, 30.0)
    with pytest.raises(HostPausedError) as caught:
        async with limiter.held("a.example", 443):
            pass
    assert caught.value.left_s == 30.0
