"""Mirrors between services that are killed, in the middle of a bootstrap and in the middle of edits."""

import asyncio
import re
from pathlib import Path

import pytest

from support.client import ClientFactory, Session
from support.federation import Federation
from support.race import Ledger, Publisher, publishing
from support.sharing import NODE, Person, connect, titles
from support.site import ProcessSite, alike
from support.waiting import wait_for

SEED = 20264
EVERY_S = 5.0
ITEMS = 350  # some pages
SHARED = 6
ACKNOWLEDGED = SHARED + 2  # on each side, between two kills
AFTER = re.compile(rb"<(?:\w+:)?after[^>]*>([^<]*)<")
QUICK: dict[str, dict[str, object]] = {"link": {"answer_s": 2.0}}


class Pulls:
    """What a service asks for page by page. It can be stopped from getting any further.

    A pull is known by the position that it goes on from: on a slow machine a page comes too late, and is asked for
    again. Only a pull from a new position shows that the page before it is in the store.
    """

    def __init__(self) -> None:
        self._places: set[bytes] = set()
        self._most: int | None = None
        self._asked = asyncio.Event()

    def is_lost(self, stanza: bytes) -> bool:
        """Whether this stanza of the service is kept from the server."""
        if b"<iq" not in stanza[:4] or b"http://jabber.org/protocol/rsm" not in stanza:
            return False
        after = AFTER.search(stanza)
        place = after.group(1) if after else b""
        lost = self._most is not None and place not in self._places and len(self._places) >= self._most
        if not lost:
            self._places.add(place)
        if lost or self._most is None:
            self._asked.set()
        return lost

    async def stop_behind(self, count: int) -> None:
        """Lets so many pages be asked for and no more; waits until there would be one more."""
        self._places.clear()
        self._most = count
        await self._next()

    async def go_on(self) -> None:
        """Lets everything through again, and waits until something was."""
        self._most = None
        await self._next()

    async def _next(self) -> None:
        self._asked.clear()
        await wait_for(self._asked.wait(), "the next request of the mirror")


def check_logs(*sites: ProcessSite) -> None:
    """Being killed is no fault of theirs."""
    for site in sites:
        assert "Traceback" not in site.process.said
        assert "mirror_failed" not in site.process.said


async def test_pull_that_is_repeated_is_counted_once() -> None:
    """Else a slow answer would end the wait before the service has stored any page."""
    pulls = Pulls()
    stopped = asyncio.ensure_future(pulls.stop_behind(2))
    await asyncio.sleep(0)

    def pull(after: str = "") -> bytes:
        place = f"<after>{after}</after>" if after else ""
        return f"<iq type='get'><set xmlns='http://jabber.org/protocol/rsm'>{place}</set></iq>".encode()

    assert not any(map(pulls.is_lost, [b"<message/>", pull(), pull(), pull("c:1"), pull(), pull("c:1")]))
    assert not stopped.done()
    assert pulls.is_lost(pull("c:2")) and not pulls.is_lost(pull("c:1"))
    await stopped


async def test_bootstrap_between_kills_brings_everything(
    pair: Federation, client: ClientFactory, tmp_path: Path
) -> None:
    """[SF-028] Both sides are killed while one has a part of the items; all of both is on both in the end."""
    async with (
        ProcessSite(pair["a"], tmp_path / "a", **QUICK) as a,
        ProcessSite(pair["b"], tmp_path / "b", **QUICK) as b,
    ):
        ann, bob = Person(await client(pair["a"], "ann"), a), Person(await client(pair["b"], "bob"), b)
        await ann.create([b])
        await bob.create([a])
        await ann.publish_many(f"a-{number}" for number in range(ITEMS))
        await bob.publish_many(f"b-{number}" for number in range(5))
        await ann.retract("a-7")
        pulls = Pulls()
        b.relay.lost = pulls.is_lost
        stopped = asyncio.ensure_future(pulls.stop_behind(2))
        await connect(a, b, "both", EVERY_S)
        await stopped
        await b.kill()
        first = await b.state(NODE)
        assert 5 < len(first) < ITEMS, "in the middle of it"

        going = asyncio.ensure_future(pulls.go_on())
        await b.start()
        await going
        await a.kill()
        await a.start()
        await ann.publish("a-8", "changed")
        await bob.publish("late")
        found = await alike([a, b], NODE, lambda state: len(state) == ITEMS + 6)

        assert titles(found) == {
            **{f"a-{number}": f"a-{number}" for number in range(ITEMS) if number != 7},
            **{f"b-{number}": f"b-{number}" for number in range(5)},
            "a-8": "changed",
            "late": "late",
        }
        assert not any(kept.conflicts for kept in found.values())
        check_logs(a, b)


class Editor(Publisher):
    """Changes items that somebody on the other side changes, too."""

    _turn = 0

    async def step(self) -> None:
        """One change, acknowledged."""
        self._turn += 1
        await self.publish(f"shared-{self._turn % SHARED}")


@pytest.mark.parametrize("direction", ["in", "both"])
async def test_edits_between_kills_are_all_there(pair: Federation, tmp_path: Path, direction: str) -> None:
    """[SF-028] [A-43] Both sides are killed in turn while people on both change items of their own and of all.

    What somebody changed alone is as it was acknowledged last. Of what both changed, the last of either, which they
    made while the servers were parted, is the winner or its conflict.
    """
    async with (
        ProcessSite(pair["a"], tmp_path / "a", **QUICK) as a,
        ProcessSite(pair["b"], tmp_path / "b", **QUICK) as b,
    ):
        sites = {"a": a, "b": b}
        sessions = {name: await asyncio.to_thread(Session, pair[name], "ann", "edits") for name in sites}
        for name, other in ("ab", "ba"):
            await Person(await sessions[name].client(), sites[name]).create([sites[other]])
        await connect(a, b, direction, EVERY_S)
        alone, shared = {name: Ledger() for name in sites}, {name: Ledger() for name in sites}
        makers = [
            maker(sessions[name], site.name, site.relay, ledgers[name], f"{kind}{name}", SEED)
            for name, site in sites.items()
            for maker, ledgers, kind in ((Publisher, alone, "own-"), (Editor, shared, "by-"))
        ]
        async with publishing(makers):
            for victim in (a, b):
                if victim is b:
                    await pair.cut()
                for ledger in (*alone.values(), *shared.values()):
                    await ledger.until(ledger.acknowledged + ACKNOWLEDGED)
                await victim.kill()
                await victim.start()
        await pair.heal()
        found = await alike([a, b], NODE)
        for session in sessions.values():
            session.leave()

        told = {item_id: None if kept.deleted else titles({item_id: kept})[item_id] for item_id, kept in found.items()}
        own = {item_id: title for ledger in alone.values() for item_id, title in ledger.state.items()}
        assert {item_id: title for item_id, title in told.items() if not item_id.startswith("shared")} == own
        assert told.keys() - own.keys() == {f"shared-{number}" for number in range(SHARED)}
        for item_id in told.keys() - own.keys():
            last = {name: ledger.state[item_id] for name, ledger in shared.items()}
            assert told[item_id] in last.values()
            (lost,) = set(last.values()) - {told[item_id]}
            assert str(lost).encode() in found[item_id].sync and found[item_id].conflicts
        check_logs(a, b)
