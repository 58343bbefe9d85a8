"""Requests for capabilities are bounded, whatever contacts send."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from smartfeeds.core.caps import Caps, CapsKey
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.xmpp import capabilities
from smartfeeds.xmpp.capabilities import CapabilityReader
from smartfeeds.xmpp.elements import Element

FEEDS = "feeds.example"


class Silence:
    """A link over which nobody answers."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def call(self, _kind: str, to: str, _payload: bytes, _timeout_s: float) -> Element:
        self.requests.append(to)
        await asyncio.Event().wait()
        raise AssertionError


@pytest.fixture
def silence() -> Silence:
    return Silence()


@pytest.fixture
async def reader(silence: Silence) -> AsyncIterator[CapabilityReader]:
    made = CapabilityReader(
        silence.call,
        lambda _key: False,
        lambda _key, _info: None,
        lambda _jid, _address, _key: None,
        clock=lambda: 0.0,
    )
    yield made
    await made.stop()
    assert (made._waiting, made._waiting_count, made._later, len(made._tasks)) == ({}, 0, {}, 0)
    assert not made._outstanding


def jid(text: str) -> Jid:
    parsed = parse_jid(text)
    assert parsed is not None
    return parsed


def caps(ver: object) -> Caps:
    return Caps(CapsKey("sha-1", str(ver)), "https://client.example")


async def run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_few_requests_run_at_once(reader: CapabilityReader, silence: Silence) -> None:
    for number in range(200):
        reader.note(jid(f"u{number}@x.example/r"), FEEDS, caps(number))
    await run()
    assert len(silence.requests) == capabilities.AT_ONCE


async def test_one_request_runs_for_each_hash(reader: CapabilityReader, silence: Silence) -> None:
    for number in range(200):
        for _ in range(2):
            reader.note(jid(f"u{number}@x.example/r"), FEEDS, caps("same"))
    await run()
    assert silence.requests == ["u0@x.example/r"]
    assert reader._waiting_count == 199


async def test_waiting_resources_and_counted_users_are_bounded(
    reader: CapabilityReader, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "WAITING_MAX", 10)
    monkeypatch.setattr(capabilities, "BUDGETS", 3)
    for number in range(30):
        reader.note(jid(f"u{number}@x.example/r"), FEEDS, caps(number))
    await run()
    assert len(silence.requests) == 10
    assert len(reader._budgets) == 3
