"""Stanzas that wait to be parsed, served in fair turns (`core.fairness`).

There are two levels: domains, and the bare JIDs in each domain. A stanza costs its bytes, known when it arrives, and
the processor time it took, known when it is done. The domain with the least cost is served next, and in it the sender
with the least cost. Stanzas of one sender keep their order.

A stanza that arrives while a long one is being parsed cannot overtake it. A sender of costly stanzas therefore rests
after each, for a multiple of its cost, so that they take up a small part of the time.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from smartfeeds.core.fairness import FairOrder, Share, Shares

SENDER_STANZAS = 1_024
FRAME_COST_S = 0.000_02
BYTE_COST_S = 0.000_000_01
# The longest that parsing takes for a byte. What is measured beyond it is the garbage collector's, not the sender's.
BYTE_MOST_S = 0.000_001
COSTLY_S = 0.003  # more than any item costs that feeds accept, apart from one of thousands of elements
# The stanzas of all senders share one TCP stream. Refusals that come at once would keep it full of the bytes of one
# sender. With a rest of 20 times its cost, a costly sender has at most 1/21 of the event loop's time, about 5 %.
REST_FACTOR = 20.0
# The rest after a stanza that costs 100 ms. The bound keeps one slow moment of the machine from silencing a sender.
REST_MOST_S = 2.0
# What one sender may have in work. A publish waits for the transaction before it and for the one that it shares with
# others, and each item of 60 KB in them takes 2 ms. So a sender has one such item in work, or 64 ordinary publishes.
WORK_BYTES = 98_304
REMEMBERED = 1_024


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """How much may wait or be in work: of one sender, and in all.

    A sender, and a domain, may have as much as is still free for others: however many senders ask for much at once, a
    new one finds room.
    """

    sender_stanzas: int = SENDER_STANZAS
    sender_bytes: int = 20_971_520  # 64 requests of the largest size
    stanzas: int = 4_096
    bytes: int = 67_108_864

    @classmethod
    def of(cls, stanzas: int, page_max: int) -> "QueueBounds":
        """The bounds of a service whose lists have up to `page_max` entries."""
        # Clients ask two questions about every node of a list, all at once (xep-map 250).
        return cls(sender_stanzas=max(SENDER_STANZAS, 2 * page_max), stanzas=stanzas)


class _QueueShare(Share):
    """A domain, a sender, or all of them. `stanzas`, `bytes`: its stanzas that wait or are being processed."""

    __slots__ = ("bytes", "stanzas")

    def __init__(self) -> None:
        super().__init__()
        self.stanzas = 0
        self.bytes = 0

    def fits(self, size_bytes: int, stanzas: int, bytes_: int) -> bool:
        """Whether one more stanza stays within so many stanzas and bytes."""
        return self.stanzas < stanzas and self.bytes + size_bytes <= bytes_

    def add(self, stanzas: int, size_bytes: int) -> None:
        """Counts stanzas that came, or went where the numbers are negative."""
        self.stanzas += stanzas
        self.bytes += size_bytes


class _Domain(_QueueShare):
    __slots__ = ("__weakref__", "senders")

    def __init__(self) -> None:
        super().__init__()
        self.senders: FairOrder[_Sender] = FairOrder()


class _Sender(_QueueShare):
    __slots__ = ("domain", "resting", "rests_until_s", "waiting", "work_bytes")

    def __init__(self, domain: _Domain) -> None:
        super().__init__()
        self.domain = domain
        self.waiting: deque[Turn] = deque()
        self.resting = False  # has something waiting, and is out of the order until it has rested
        self.rests_until_s = 0.0
        self.work_bytes = 0


class Turn:
    """A stanza that was admitted; it counts until `StanzaTurns.done`. `wire_bytes`: its size before it was cut down.
    `price_s`: what it costs by then; `cost_s`: what its sender was charged for it. `requested`: it answers a request of
    ours, so its sender does not rest after it."""

    __slots__ = ("cost_s", "frame", "price_s", "requested", "sender", "size_bytes", "wire_bytes")

    def __init__(self, sender: _Sender, frame: bytes, wire_bytes: int, price_s: float, *, requested: bool) -> None:
        self.sender = sender
        self.frame = frame
        self.size_bytes = len(frame)
        self.wire_bytes = wire_bytes
        self.price_s = price_s
        self.requested = requested
        self.cost_s = 0.0


class StanzaTurns:
    """The stanzas of one link; see the module. `clock` gives seconds and never steps back.

    `stanzas`: how many wait or are in work. `refused`: how many were not admitted since the start.
    """

    __slots__ = ("_all", "_bounds", "_clock", "_domains", "_order", "_resting", "_senders", "refused")

    def __init__(self, bounds: QueueBounds, *, clock: Callable[[], float]) -> None:
        self._bounds = bounds
        self._clock = clock
        self._all = _QueueShare()
        # A domain is remembered as long as one of its senders is.
        self._domains: WeakValueDictionary[bytes, _Domain] = WeakValueDictionary()
        self._senders: Shares[bytes, _Sender] = Shares(self._new_sender, self._is_idle, REMEMBERED)
        self._order: FairOrder[_Domain] = FairOrder()
        self._resting: list[tuple[float, int, _Sender]] = []
        self.refused = 0

    @property
    def stanzas(self) -> int:
        """How many stanzas wait or are in work."""
        return self._all.stanzas

    @property
    def size_bytes(self) -> int:
        """How many bytes those stanzas have."""
        return self._all.bytes

    @property
    def senders(self) -> int:
        """How many senders are remembered."""
        return len(self._senders)

    def add(
        self,
        jid: bytes,
        frame: bytes,
        wire_bytes: int,
        cpu_s: float = 0.0,
        *,
        cut: bool = False,
        requested: bool = False,
    ) -> bool:
        """Admits a stanza of a bare JID, or returns False when that sender, its domain or all have too much.

        `cpu_s` is the processor time that it has taken to find its end. `cut`: it is refused unread, and its sender
        rests, or the refusals would leave no room on the link for others. `requested`: it answers a request of ours.
        """
        sender = self._senders[jid]
        size_bytes, bounds = len(frame), self._bounds
        free = (bounds.stanzas - self._all.stanzas, bounds.bytes - self._all.bytes)
        if not (
            sender.fits(size_bytes, bounds.sender_stanzas, bounds.sender_bytes)
            and sender.fits(size_bytes, *free)
            and sender.domain.fits(size_bytes, *free)
        ):
            self.refused += 1
            return False
        for party in (sender, sender.domain, self._all):
            party.add(1, size_bytes)
        price_s = FRAME_COST_S + BYTE_COST_S * wire_bytes + min(cpu_s, BYTE_MOST_S * wire_bytes)
        price_s += COSTLY_S * cut
        sender.waiting.append(Turn(sender, frame, wire_bytes, price_s, requested=requested))
        self._rank(sender)
        return True

    def take(self) -> Turn | None:
        """The stanza whose turn it is; None when all senders that have one rest, or none has."""
        self._wake()
        while self._order:
            domain = self._order.pop()
            sender = domain.senders.pop()
            turn = None
            if sender.work_bytes and sender.work_bytes + sender.waiting[0].size_bytes > WORK_BYTES:
                pass  # `done` ranks it again
            elif sender.rests_until_s > self._clock():
                sender.resting = True
                heapq.heappush(self._resting, (sender.rests_until_s, id(sender), sender))
            else:
                turn = sender.waiting.popleft()
                sender.work_bytes += turn.size_bytes
                self._charge(turn, turn.price_s)
                if sender.waiting:
                    domain.senders.enter(sender)
            if domain.senders:
                self._order.enter(domain)
            if turn is not None:
                return turn
        return None

    def spend(self, turn: Turn, cpu_s: float, *, cut: bool = False) -> None:
        """Charges the processor time that a stanza took to its sender, who rests when it was much, or when the stanza
        could not be read, even if it answers a request."""
        turn.requested = turn.requested and not cut
        self._charge(turn, min(cpu_s, BYTE_MOST_S * turn.wire_bytes) + COSTLY_S * cut)

    def done(self, turn: Turn) -> None:
        """Releases a stanza that was taken, after its answer or without one."""
        turn.sender.work_bytes -= turn.size_bytes
        self._forget(turn)
        if turn.sender.waiting:
            self._rank(turn.sender)

    def rest_s(self) -> float | None:
        """After how many seconds the next sender has rested; None when no stanza waits for that."""
        return max(0.0, self._resting[0][0] - self._clock()) if self._resting else None

    def clear(self) -> None:
        """Forgets the stanzas that wait: their link is gone."""
        for sender in self._senders.values():
            for turn in sender.waiting:
                self._forget(turn)
            sender.waiting.clear()
            sender.resting = False
            sender.domain.senders.clear()
        self._order.clear()
        self._resting.clear()

    def _forget(self, turn: Turn) -> None:
        for party in (turn.sender, turn.sender.domain, self._all):
            party.add(-1, -turn.size_bytes)

    def _new_sender(self, jid: bytes) -> _Sender:
        name = jid.rpartition(b"@")[2]
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = _Domain()
        return _Sender(domain)

    def _is_idle(self, sender: _Sender) -> bool:
        return not sender.stanzas and sender.rests_until_s <= self._clock()

    def _rank(self, sender: _Sender) -> None:
        if not sender.resting:
            sender.domain.senders.enter(sender)
            self._order.enter(sender.domain)

    def _wake(self) -> None:
        while self._resting and self._resting[0][0] <= self._clock():
            sender = heapq.heappop(self._resting)[2]
            sender.resting = False
            self._rank(sender)

    def _charge(self, turn: Turn, cost_s: float) -> None:
        sender = turn.sender
        sender.cost += cost_s
        sender.domain.cost += cost_s
        turn.cost_s += cost_s
        if turn.cost_s > COSTLY_S and not turn.requested:
            sender.rests_until_s = self._clock() + min(turn.cost_s * REST_FACTOR, REST_MOST_S)
