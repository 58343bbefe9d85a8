"""Names of hosts, remembered for a minute."""

import socket

import pytest

from smartfeeds.net import names
from smartfeeds.net.names import KEPT_S, NameCache
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
    monkeypatch.setattr(names, "_SWEEP_NAMES", 10)
    clock = Clock()
    cache = NameCache(Names("127.0.0.1"), clock=clock)
    for number in range(25):
        await cache.resolve(f"{number}.example")
        clock.now_s += KEPT_S / 5
    assert len(cache._known) <= 11
