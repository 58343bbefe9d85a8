"""The component is killed again and again while it is published to and followed (design sections 3 and 4).

Prosody is real, and so is the follower. The component is `smartfeeds run` in a process that is forked with its modules
loaded. Between component and server a relay loses notifications; the follower's network breaks, and it is restarted.
What is random is seeded.
"""

import asyncio
import random
import signal
import time
from pathlib import Path

import pytest

from campaign.service import Preload
from support.client import Session
from support.process import ForkedService, ServiceProcess
from support.race import Ledger, Mirror, Publisher, Wire, judge, make_feed, publishing, pull_all
from support.relay import Relay
from support.servers import TestServer
from support.service import write_config

KILLS = 12  # the campaign makes thousands
LOST = 0.25  # of the notifications
ACKNOWLEDGED = 12  # at most, between two kills,
CHANGES = 30  # and as many of them handed over by the follower
TURNS = 40  # of the event loop at most, between the last of them and the kill


@pytest.mark.parametrize("seed", [20261, 20262])
async def test_killed_component_loses_nothing_and_its_follower_ends_with_the_feed(
    preload: Preload, prosody: TestServer, tmp_path: Path, seed: int
) -> None:
    """[SF-005] [SF-028] [SF-039] [SF-041] [SF-046] [SF-047] [SF-048] [SF-049] [SF-050] [xep-map 9] [xep-map 152]
    [xep-map 153] [xep-map 183] [xep-map 211]
    """
    print(f"seed {seed}")
    chance = random.Random(seed)
    component, ledger = prosody.take_name(), Ledger()
    sessions = [await asyncio.to_thread(Session, prosody, "alice", f"p{number}") for number in range(3)]
    account = await asyncio.to_thread(prosody.server.account, f"bob{seed}")
    mirror = Mirror(account.jid, account.password, prosody.client_port, component, tmp_path / "position")
    quick = {"retry_first_s": 0.05}
    async with (
        Relay(prosody.component_port) as relay,
        ForkedService(
            preload, write_config(tmp_path, prosody, component, component={"port": relay.port}, link=quick)
        ) as service,
    ):
        wire = Wire(lambda: relay.life)
        relay.lost = lambda stanza: wire.see(stanza) and chance.random() < LOST
        publishers = [
            Publisher(session, component, relay, ledger, f"p{number}", seed + number)
            for number, session in enumerate(sessions)
        ]
        await service.start()
        await relay.ready()
        await make_feed(await sessions[0].client(), component)
        mirror.begin()
        async with publishing(publishers):
            for _ in range(KILLS):
                await _live_and_die(chance, relay, service, ledger, mirror)
            await relay.ready()
        relay.losing = False
        await publishers[0].publish("last")
        await mirror.until_in_step("last")
        feed = await pull_all(await sessions[0].client(), component)
        await mirror.end()
        for session in sessions:
            session.leave()
        assert await service.end() == 0

    print(f"{ledger.acknowledged} of {ledger.attempts} requests acknowledged, {len(feed)} items")
    print(f"{len(wire.events)} notifications, {relay.dropped} lost")
    print(f"{mirror.changes} changes, {mirror.pushes} pushes, {mirror.pulls} pulls, {mirror.gaps} gaps found")
    judge(feed, ledger, mirror)
    wire.judge()
    assert relay.dropped > 0 and mirror.gaps > 0 and mirror.pushes > mirror.pulls
    assert "Traceback" not in service.said and "request_failed" not in service.said


async def _live_and_die(
    chance: random.Random, relay: Relay, service: ForkedService, ledger: Ledger, mirror: Mirror
) -> None:
    """One life of the component up to the kill, and the start of the next one."""
    moment, fate = chance.random(), chance.random()
    if moment < 0.9:  # else it is killed while it starts
        await relay.ready()
        await ledger.until(ledger.acknowledged + chance.randint(0, ACKNOWLEDGED))
    if moment < 0.6:
        await mirror.until_more(chance.randint(1, CHANGES))
    if fate < 0.2:
        mirror.cut()
    elif fate < 0.3:
        await mirror.restart()
    for _ in range(chance.randrange(TURNS)):
        await asyncio.sleep(0)
    life = relay.life
    assert await service.end(signal.SIGKILL) == -signal.SIGKILL
    await relay.until(lambda: relay.ended == relay.life)
    await service.start()
    await relay.until(lambda: relay.life > life)


async def test_start_up_is_quick_enough_to_be_killed_often(prosody: TestServer, tmp_path: Path) -> None:
    """The time from the start of the process to the handshake; printed, and bounded only against standing still."""
    component = prosody.take_name()
    async with (
        Relay(prosody.component_port) as relay,
        ServiceProcess(write_config(tmp_path, prosody, component, component={"port": relay.port})) as service,
    ):
        began = time.monotonic()
        await service.start()
        await relay.ready()
        print(f"start-up took {time.monotonic() - began:.2f} s")

        assert await service.end() == 0
