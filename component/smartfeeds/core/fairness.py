"""Fair turns by measured cost: start-time fair queueing (Goyal, Vin and Cheng 1996).

The sender that has been charged least is served next. A sender that was idle starts at the cost of the sender that was
served last. So idle senders gain no credit, and a new sender waits only for the job in progress. The unit of cost is
the caller's; the callers here charge seconds. The caller stores the jobs themselves.
"""

import heapq
from collections.abc import Callable, Hashable
from math import inf
from typing import Generic, TypeVar


class Share:
    """The sum that one sender was charged: `cost`. `entry` belongs to `FairOrder`; it is 0 for an idle sender."""

    __slots__ = ("cost", "entry")

    def __init__(self) -> None:
        self.cost = 0.0
        self.entry = 0


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Share)


class FairOrder(Generic[S]):
    """The senders with waiting jobs, in the order of their cost, and at equal cost in the order of their arrival.

    The caller may add to `Share.cost` at any time, before or after the work. `reached` is the cost at which the last
    sender was served, and `waiting` the number of senders.
    """

    __slots__ = ("_entries", "_heap", "reached", "waiting")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, S]] = []  # one valid entry for each sender that waits, and outdated entries
        self._entries = 0
        self.waiting = 0
        self.reached = 0.0

    def enter(self, share: S) -> None:
        """Adds a sender to the order, unless it is there already."""
        if not share.entry:
            share.cost = max(share.cost, self.reached)
            self.waiting += 1
            self._entries += 1
            share.entry = self._entries
            heapq.heappush(self._heap, (share.cost, share.entry, share))

    def put_back(self, share: S, refund: float) -> None:
        """Adds the sender that was served last before those of equal cost, with a refund for undone work."""
        share.cost -= refund
        self.waiting += not share.entry
        self._entries += 1
        share.entry = -self._entries  # below the entries of `enter`, so it is first among equal costs
        heapq.heappush(self._heap, (share.cost, share.entry, share))

    def pop(self) -> S:
        """Removes and returns the sender whose turn it is. Raises IndexError if no sender waits."""
        while True:
            cost, entry, share = heapq.heappop(self._heap)
            if entry != share.entry:
                continue
            # Moving an entry when its sender is charged would cost more than moving it when it comes up.
            if cost < share.cost:
                heapq.heappush(self._heap, (share.cost, entry, share))
                continue
            share.entry = 0
            self.waiting -= 1
            self.reached = cost
            return share

    @property
    def next_cost(self) -> float:
        """The cost at which the next sender comes up, or a lower one. Infinite if no sender waits.

        A sender that has been popped may be served again as long as its cost is below, without entering the order.
        """
        return self._heap[0][0] if self._heap else inf

    def clear(self) -> None:
        """Makes every sender idle. Their costs stay."""
        for _, _, share in self._heap:
            share.entry = 0
        self._heap.clear()
        self.waiting = 0


class Shares(dict[K, S]):
    """The shares of senders by name. If there are too many, idle shares are deleted with their cost.

    No share is deleted while there are fewer than `remembered`. `is_idle` returns whether a share may be deleted. The
    number of shares stays below `remembered` or twice the number of busy shares, whichever is more. So the search for
    idle shares takes constant time for each new sender.
    """

    def __init__(self, make: Callable[[K], S], is_idle: Callable[[S], bool], remembered: int) -> None:
        super().__init__()
        self._make = make
        self._is_idle = is_idle
        self._remembered = remembered
        self._limit = remembered

    def __missing__(self, key: K) -> S:
        if len(self) >= self._limit:
            for name in [name for name, share in self.items() if self._is_idle(share)]:
                del self[name]
            self._limit = max(self._remembered, 2 * len(self))
        share = self[key] = self._make(key)
        return share
