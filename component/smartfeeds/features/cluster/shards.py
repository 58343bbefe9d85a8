"""The division of the shards between several processes on one database (docs/scaling.md)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import ceil, log
from typing import Final

from smartfeeds.delivery.shards import SHARDS

# The greatest probability with which a sound link is taken for a dead one.
FALSE_DROP: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Members:
    """The processes on a database: how many can send over XMPP now, and how many cannot."""

    linked: int
    unlinked: int

    @property
    def total(self) -> int:
        """The number of processes."""
        return self.linked + self.unlinked

    def moved(self, *, is_linked: bool) -> "Members":
        """Returns the members after one of them has got a link, or has lost it."""
        step = 1 if is_linked else -1
        return Members(self.linked + step, self.unlinked - step)

    def share(self, *, is_linked: bool) -> int:
        """Returns how many shards a process should own.

        Processes without a link own shards only if no process has a link: callbacks and sources must go on then.
        """
        if self.linked and not is_linked:
            return 0
        return ceil(SHARDS / max(1, self.linked or self.unlinked))


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The shards to release, and those to try to lock, in this order."""

    release: frozenset[int]
    take: tuple[int, ...]


def plan_shards(owned: Collection[int], held: Collection[int], share: int, start: int) -> ShardPlan:
    """Returns what a process must do to own its share.

    `held` are the shards that any process owns. The search begins at the shard `start`, which differs between
    processes, so that two of them rarely try to lock the same shard.
    """
    order = [(start + step) % SHARDS for step in range(SHARDS)]
    mine = [shard for shard in order if shard in owned]
    free = [shard for shard in order if shard not in held and shard not in owned]
    return ShardPlan(frozenset(mine[share:]), tuple(free[: max(0, share - len(mine))]))


def pings_for(processes: int) -> int:
    """Returns how many pings to the own address find a sound link alive (docs/scaling.md, "Links").

    The server routes each ping to a random link of the component, so a single ping proves nothing with several
    processes.
    """
    return 1 if processes < 2 else ceil(log(FALSE_DROP) / log(1 - 1 / processes))


def shards_text(shards: Iterable[int]) -> str:
    """Returns shards as ranges for a log line: `0-3, 7`."""
    ranges: list[list[int]] = []
    for shard in sorted(shards):
        if ranges and shard == ranges[-1][1] + 1:
            ranges[-1][1] = shard
        else:
            ranges.append([shard, shard])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
