"""Two services that mirror each other over HTTP: both are killed and their links are cut during edits [CAM-058].

Items that are edited on one side only are judged by the checker, for each side alone. Items that both sides edit may
have conflicts: the last acknowledged edit must be the winner or a conflict, and both sides must end with the same.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from campaign.cable import Cable
from campaign.checker import Feed, feeds_of
from campaign.clients import SHARED_ITEMS, WALK_ITEMS, Writer, new_session, read_page, shown_of, walk
from campaign.history import DELETED, History, Shown, Status
from campaign.pieces import Piece, Task, judged, log_problems
from campaign.service import NODE, Preload, Service

PIECE_FAULTS = 20
EVERY_S = 0.2
PAUSE_S = 1.0
EQUAL_S = 120.0
SIDES = ("a", "b")
State = dict[str, tuple[str, frozenset[str]]]  # id -> digest of the winner, digests of the conflicts


class SharedEditor(Writer):
    """Edits the items that both sides edit, with a history of its own."""

    async def step(self) -> Status:
        """Publishes a version of a shared item."""
        return await self.publish(f"shared-{self._chance.randrange(SHARED_ITEMS)}", label=f"shared{self.service.label}")


class OwnWriter(Writer):
    """Edits items of its own side."""

    shares = False


async def federation(task: Task) -> AsyncIterator[Piece]:
    """Kills and cuts `count` times."""
    with Preload() as preload:
        for seed, faults, folder in task.pieces(PIECE_FAULTS):
            yield await federation_piece(preload, folder, seed, faults)


async def federation_piece(preload: Preload, folder: Path, seed: int, faults: int) -> Piece:
    """One piece on two new databases."""
    chance = random.Random(seed)
    problems: list[str] = []
    notes: Counter[str] = Counter()
    with Task(seed, faults, folder).history(folder) as history:
        async with Cable() as to_a, Cable() as to_b, new_session() as session:
            cables = {"a": to_a, "b": to_b}
            services = {}
            for side, other in zip(SIDES, reversed(SIDES), strict=True):
                mirror = {"node": NODE, "address": f"{cables[other].url}/feeds/{NODE}/", "every_s": EVERY_S}
                services[side] = Service(
                    preload,
                    folder / side,
                    defect="short_pauses",
                    environment={"SMARTFEEDS_MIRROR": json.dumps([{**mirror, "allow_private": True}])},
                    component={"jid": f"feeds-{side}.localhost"},
                )
                services[side].label = f"@{side}"
                cables[side].target_port = services[side].port
                await services[side].prepare()
            for service in services.values():
                await service.start()
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for side, service in services.items():
                    group.create_task(OwnWriter(service, history, session, f"own-{side}", seed).run(stop))
                    group.create_task(SharedEditor(service, history, session, f"by-{side}", seed).run(stop))
                await _break(services, cables, history, chance, faults)
                await asyncio.sleep(PAUSE_S)  # writes after the last fault show that the services work
                stop.set()
            states = await _equal(services, session)
            for side, service in services.items():
                await walk(service, history, session, only=f"own-{side}-")
                service.end()
                problems += log_problems(service.said())
            notes["conflicts"] = sum(len(conflicts) for _, conflicts in states["a"].values())
            if states["a"] != states["b"]:
                problems.append(f"the sides differ after {EQUAL_S:.0f} s: {_difference(states)}")
            problems += _lost_edits(history, states["a"])
    return judged(seed, faults, history, problems, notes)


async def _break(
    services: Mapping[str, Service], cables: Mapping[str, Cable], history: History, chance: random.Random, faults: int
) -> None:
    for _ in range(faults):
        await asyncio.sleep(chance.uniform(0, PAUSE_S))
        side = chance.choice(SIDES)
        if chance.random() < 0.5:
            history.fault("kill")
            services[side].end()
            await services[side].start()
        elif cables[side].is_cut:
            await cables[side].heal()
        else:
            history.fault("link cut")
            await cables[side].cut()
    for cable in cables.values():
        await cable.heal()


async def _equal(services: Mapping[str, Service], session: aiohttp.ClientSession) -> dict[str, State]:
    """The states of both sides when they are equal, or after `EQUAL_S`."""
    until_s = asyncio.get_running_loop().time() + EQUAL_S
    while True:
        states = {side: await _state(service, session) for side, service in services.items()}
        if states["a"] == states["b"] or asyncio.get_running_loop().time() > until_s:
            return states
        await asyncio.sleep(EVERY_S)


async def _state(service: Service, session: aiohttp.ClientSession) -> State:
    query = {"since": "time:0", "timeout": "0", "max": str(WALK_ITEMS), "sync": "true"}
    state: State = {}
    while True:
        page = await read_page(session, service, NODE, query)
        for item in page["items"]:
            conflicts = item.get("sync", {}).get("conflicts", ())
            state[item["id"]] = (_digest(item), frozenset(map(_digest, conflicts)))
        if "next" not in page:
            return state
        query["since"] = f"cursor:{page['last_cursor']}"


def _digest(item: dict[str, Any]) -> str:
    shown: Shown = shown_of(item)
    return shown.digest


def _difference(states: Mapping[str, State]) -> str:
    items = {item for item in states["a"].keys() | states["b"].keys() if states["a"].get(item) != states["b"].get(item)}
    return ", ".join(sorted(items)[:5])


def _lost_edits(history: History, state: State) -> list[str]:
    """The shared items whose last acknowledged edit is neither the winner nor a conflict.

    An edit without an answer may have been stored and may have replaced it.
    """
    feeds = feeds_of(history.events)
    shared = [feeds[f"shared@{side}"] for side in SIDES if f"shared@{side}" in feeds]
    problems = []
    for item in {item for feed in shared for item in feed.by_item}:
        last = max((_last(feed, item) for feed in shared), key=lambda write: write[0])
        later = {write.digest for feed in shared for write in feed.by_item[item] if write.completed_s > last[0]}
        winner, conflicts = state.get(item, (DELETED, frozenset()))
        if not {winner, *conflicts} & {last[1], *later}:
            problems.append(f"the last edit of {item} is neither the winner nor a conflict")
    return problems


def _last(feed: Feed, item: str) -> tuple[float, str]:
    """Time and digest of the last acknowledged edit of an item."""
    acknowledged = [(write.completed_s, write.digest) for write in feed.by_item[item] if write.acknowledged]
    return max(acknowledged, default=(0.0, ""))
