"""Requests for capabilities are bounded, whatever contacts send."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.features.presence import capabilities
from smartfeeds.features.presence.capabilities import CapabilityReader
from smartfeeds.xmpp.caps import Caps, CapsKey
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
    """Lets the tasks run until each waits for an answer: no socket and no thread is involved."""
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


async def test_one_user_does_not_block_others(reader: CapabilityReader, silence: Silence) -> None:
    """A user who does not answer occupies two places, however many resources it has."""
    for number in range(100):
        reader.note(jid(f"bob@x.example/r{number}"), FEEDS, caps(number))
    reader.note(jid("eve@x.example/r"), FEEDS, caps("eve"))
    await run()
    assert silence.requests == ["bob@x.example/r0", "bob@x.example/r1", "eve@x.example/r"]
    assert reader._waiting_count == capabilities.LATER_MAX


async def test_next_resource_is_asked_after_an_answer() -> None:
    """Each resource is asked for its newest capabilities."""
    requests: list[tuple[str, bytes]] = []

    async def call(_kind: str, to: str, payload: bytes, _timeout_s: float) -> Element:
        requests.append((to, payload))
        raise TimeoutError

    reader = CapabilityReader(
        call, lambda _key: False, lambda _key, _info: None, lambda _jid, _address, _key: None, clock=lambda: 0.0
    )
    for number in range(5):
        for ver in ("old", "new"):
            reader.note(jid(f"bob@x.example/r{number}"), FEEDS, caps(f"{ver}{number}"))
    await reader.idle()
    assert {to for to, _ in requests} == {f"bob@x.example/r{number}" for number in range(5)}
    assert all(b"new" in payload for to, payload in requests if to[-1] in "234")
    assert (reader._waiting_count, reader._later, dict(reader._outstanding)) == (0, {}, {})
