"""The XMPP server is restarted and killed while the component serves, is published to and followed (xep-map 9)."""

import asyncio
import random
from pathlib import Path

import pytest

from smartfeeds.app.lifecycle import App
from smartfeeds.local.process import LocalServer
from support.client import Session
from support.component import settings
from support.race import Ledger, Mirror, Publisher, Wire, judge, make_feed, publishing, pull_all
from support.relay import Relay
from support.servers import SECRET, SERVERS

COMPONENT = "feeds.localhost"
SEED = 20263
ACKNOWLEDGED = 15


@pytest.mark.parametrize(("kind", "restarts"), [("prosody", 6), ("ejabberd", 2)])
async def test_server_that_comes_and_goes_loses_nothing(tmp_path: Path, kind: str, restarts: int) -> None:
    """[SF-005] [SF-028] [SF-039] [SF-041] [SF-046] [xep-map 3] [xep-map 9] [xep-map 183]"""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    (tmp_path / kind).mkdir()
    server = SERVERS[kind](tmp_path / kind, {COMPONENT: SECRET})
    await asyncio.to_thread(server.start)
    try:
        async with Relay(server.component_port) as relay:
            wire = Wire(lambda: relay.life)
            relay.lost = lambda stanza: wire.see(stanza) and chance.random() < 0.1
            app = App(
                settings(
                    relay.port,
                    f"sqlite:///{tmp_path}/feeds.db",
                    component={"jid": COMPONENT},
                    pubsub={"creators": ["localhost"]},
                    link={"retry_first_s": 0.05, "retry_most_s": 0.5},
                )
            )
            await app.start()
            try:
                ledger = await _race(server, relay, chance, restarts, tmp_path)
            finally:
                await app.stop()
            wire.judge()
            assert app.supervisor.epoch == restarts + 1
            assert app.router.in_flight == 0
            print(f"{ledger.acknowledged} of {ledger.attempts} acknowledged, {len(wire.events)} notifications")
    finally:
        await asyncio.to_thread(server.stop)


async def _race(server: LocalServer, relay: Relay, chance: random.Random, restarts: int, folder: Path) -> Ledger:
    ledger = Ledger()
    sessions = [await asyncio.to_thread(Session, server, "alice", f"p{number}") for number in range(3)]
    publishers = [
        Publisher(session, COMPONENT, relay, ledger, f"p{number}", SEED + number)
        for number, session in enumerate(sessions)
    ]
    account = await asyncio.to_thread(server.account, "bob")
    mirror = Mirror(account.jid, account.password, server.client_port, COMPONENT, folder / "position")
    await relay.ready()
    await make_feed(await sessions[0].client(), COMPONENT)
    mirror.begin()
    async with publishing(publishers):
        for number in range(restarts):
            await ledger.until(ledger.acknowledged + chance.randint(1, ACKNOWLEDGED))
            life = relay.life
            await asyncio.to_thread(server.kill if number % 2 else server.stop)
            await relay.over(life)
            await asyncio.to_thread(server.start)
            await relay.ready()
    relay.losing = False
    await publishers[0].publish("last")
    await mirror.until_in_step("last")
    feed = await pull_all(await sessions[0].client(), COMPONENT)
    await mirror.end()
    for session in sessions:
        session.leave()
    judge(feed, ledger, mirror)
    print(f"{mirror.changes} changes, {mirror.pushes} pushes, {mirror.pulls} pulls, {mirror.gaps} gaps found")
    return ledger
