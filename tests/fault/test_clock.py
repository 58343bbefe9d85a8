"""The clock is set back, and forth, while the component is published to and followed (xep-map 153, 211; design 1)."""

import asyncio
import random
import time
from pathlib import Path

from smartfeeds.app.lifecycle import App
from support.client import Session
from support.component import NS, settings
from support.race import Ledger, Mirror, Publisher, Wire, judge, make_feed, publishing, pull_all
from support.relay import Relay
from support.servers import TestServer

SEED = 20264
HOUR_S, DAY_S, YEAR_S = 3_600, 86_400, 366 * 86_400
STEPS_S = (-1, -HOUR_S, HOUR_S, -YEAR_S, DAY_S, YEAR_S * 3, -YEAR_S * 2, -0.001, -DAY_S * 400, 60)
RESTARTS = (3, 6)  # with the step of this place
ACKNOWLEDGED = 10


class SteppedClock:
    """The real time and whatever a test has added to it."""

    def __init__(self) -> None:
        self.added_us = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000 + self.added_us

    def step(self, seconds: float) -> None:
        """Sets it forth, or back where negative."""
        self.added_us += int(seconds * 1_000_000)


async def test_clock_that_steps_changes_no_order_and_loses_nothing(prosody: TestServer, tmp_path: Path) -> None:
    """[SF-028] [SF-039] [xep-map 153] [xep-map 211] A restart while the clock is behind changes nothing either."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    component, clock, ledger = prosody.take_name(), SteppedClock(), Ledger()
    sessions = [await asyncio.to_thread(Session, prosody, "alice", f"c{number}") for number in range(3)]
    account = await asyncio.to_thread(prosody.server.account, "clockwatcher")
    async with Relay(prosody.component_port) as relay:
        wire = Wire(lambda: relay.life)
        relay.lost = lambda stanza: wire.see(stanza) and chance.random() < 0.1
        publishers = [
            Publisher(session, component, relay, ledger, f"c{number}", SEED + number)
            for number, session in enumerate(sessions)
        ]
        mirror = Mirror(account.jid, account.password, prosody.client_port, component, tmp_path / "position")
        configured = settings(
            relay.port,
            f"sqlite:///{tmp_path}/feeds.db",
            component={"jid": component},
            pubsub={"creators": ["localhost"]},
            link={"retry_first_s": 0.05},
            push={"max_age_s": 1e9},  # what was published before a step of years is not given up for its age
        )
        app = App(configured, clock=clock)
        await app.start()
        try:
            await relay.ready()
            client = await sessions[0].client()
            await make_feed(client, component)
            mirror.begin()
            middle = ""
            async with publishing(publishers):
                for number, step_s in enumerate(STEPS_S):
                    await ledger.until(ledger.acknowledged + chance.randint(1, ACKNOWLEDGED))
                    if number in RESTARTS:
                        await app.stop()
                        await relay.over(relay.life)
                    clock.step(step_s)
                    if number in RESTARTS:
                        app = App(configured, clock=clock)
                        await app.start()
                        await relay.ready()
                    if number == len(STEPS_S) // 2:
                        middle = wire.events[-1][1].last or ""
                relay.losing = False
            await publishers[0].publish("last")
            await mirror.until_in_step("last")
            feed, behind = await pull_all(client, component), await pull_all(client, component, after=middle)
            await mirror.end()
        finally:
            await app.stop()
    for session in sessions:
        session.leave()

    judge(feed, ledger, mirror)
    print(f"{mirror.changes} changes, {mirror.pushes} pushes, {mirror.pulls} pulls, {mirror.gaps} gaps found")
    wire.judge()
    ids = [str(item.get("id")) for item in feed]
    assert 0 < len(behind) < len(feed)
    assert [item.get("id") for item in behind] == ids[-len(behind) :], "a cursor of before is good after all steps"
    assert feed[-1].findtext(".//a:title", "", NS) == ledger.state["last"]
    print(
        f"{ledger.acknowledged} of {ledger.attempts} acknowledged, {len(feed)} items, {len(wire.events)} notifications"
    )
