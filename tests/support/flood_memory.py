"""Plays every flood against a component in this process and prints how much memory it holds after each round.

Run by tests/fault/test_flood_memory.py in a process of its own: `python -m support.flood_memory FOLDER ROUNDS`.
"""

import asyncio
import gc
import json
import sys
from pathlib import Path

from smartfeeds.cli.run import _keep_freed_memory, _trim
from smartfeeds.xmpp import turns
from support.component import EVE, Clock, Starter
from support.floods import FLOODS, NODE

IN_FLIGHT = 32


def resident_kib() -> int:
    """The resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


async def play(folder: Path, rounds: int) -> list[int]:
    """KiB at the beginning and after each round."""
    start = Starter(f"sqlite:///{folder / 'feeds.db'}", Clock())
    component = await start(pubsub={"creators": ["*"]}, log={"level": "error"})
    await component.create(EVE, NODE, access_model="open")
    sizes_kib = [resident_kib()]
    for _ in range(rounds):
        for content in FLOODS.values():
            await asyncio.gather(*(component.ask(EVE, "set", content) for _ in range(IN_FLIGHT)))
            component.session.received.clear()
        gc.collect()
        _trim()  # as the service does within a minute of a burst
        sizes_kib.append(resident_kib())
    await start.close()
    return sizes_kib


if __name__ == "__main__":
    turns.REST_FACTOR = 0.0  # the floods come without pauses: faster, and more of them is in memory at once
    _keep_freed_memory()
    print(json.dumps(asyncio.run(play(Path(sys.argv[1]), int(sys.argv[2])))))
