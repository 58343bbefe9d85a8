"""Names of hosts, remembered for a minute."""

import asyncio
import socket
import threading

import pytest
from aiohttp.abc import ResolveResult

from smartfeeds.net import resolver
from smartfeeds.net.resolver import KEPT_S, NEW_AT_ONCE, NameCache
from support.waiting import HANG_S, in_vain
from support.website import Names


class Clock:
    def __init__(self) -> None:
        self.now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


async def test_name_is_looked_up_once_a_minute() -> None:
    """[SRC-018] One look-up serves the limit and the connection."""
    clock, inner = Clock(), Names("127.0.0.1", "127.0.0.2")
    cache = NameCache(inner, clock=clock)
    addresses = [(await cache.resolve("a.example", 80, socket.AF_INET))[0]["host"] for _ in range(3)]
    clock.now_s += KEPT_S
    addresses.append((await cache.resolve("a.example", 80, socket.AF_INET))[0]["host"])

    assert addresses == ["127.0.0.1"] * 3 + ["127.0.0.2"]
    assert inner.asked == ["a.example", "a.example"]


async def test_failure_is_not_remembered() -> None:
    class Failing(Names):
        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET):  # type: ignore[no-untyped-def]
            self.asked.append(host)
            raise OSError("no such name")

    inner = Failing()
    cache = NameCache(inner)
    for _ in range(2):
        with pytest.raises(OSError, match="no such name"):
            await cache.resolve("a.example")
    assert len(inner.asked) == 2


async def test_old_names_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers can name any number of hosts."""
    monkeypatch.setattr(resolver, "_SWEEP_NAMES", 10)
    clock = Clock()
    cache = NameCache(Names("127.0.0.1"), clock=clock)
    for number in range(25):
        await cache.resolve(f"{number}.example")
        clock.now_s += KEPT_S / 5
    assert len(cache._known) <= 11


class SlowNames:
    """Look-ups of names that begin with "slow" end when the test says so."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.running = threading.Semaphore(0)

    def __call__(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        if host.startswith("slow"):
            self.running.release()
            assert self.gate.wait(HANG_S), in_vain("the gate")
            raise OSError("no such name")
        return [ResolveResult(hostname=host, host="192.0.2.1", port=port, family=family, proto=0, flags=0)]


async def test_slow_names_delay_neither_known_names_nor_other_work() -> None:
    """Strangers choose names, and let their name servers be silent."""
    names, clock = SlowNames(), Clock()
    cache = NameCache(find=names, clock=clock)
    await cache.resolve("good.example")
    clock.now_s += KEPT_S
    slow = [asyncio.create_task(cache.resolve(f"slow{number}.example")) for number in range(3 * NEW_AT_ONCE)]
    for _ in range(NEW_AT_ONCE):
        assert await asyncio.to_thread(names.running.acquire)
    # The threads of the service are free, and so are those of names that were found before.
    assert (await cache.resolve("good.example"))[0]["host"] == "192.0.2.1"
    # A caller that gives up leaves its thread behind, and the bound stays.
    for task in slow[:NEW_AT_ONCE]:
        task.cancel()
    await asyncio.gather(*slow[:NEW_AT_ONCE], return_exceptions=True)
    assert not names.running.acquire(blocking=False)
    names.gate.set()
    ends = await asyncio.gather(*slow[NEW_AT_ONCE:], return_exceptions=True)
    assert all(isinstance(end, OSError) for end in ends)


async def test_text_that_cannot_be_a_name_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="is no name of a host"):
        await NameCache().resolve("a" * 70 + ".example")


async def test_look_up_of_the_system() -> None:
    (result, *_) = await NameCache().resolve("127.0.0.1", 80)
    assert (result["host"], result["port"], result["family"]) == ("127.0.0.1", 80, socket.AF_INET)
