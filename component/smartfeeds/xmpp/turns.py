"""Stanzas that wait to be parsed, served in fair turns (`core.fairness`).

There are two levels: domains, and the bare JIDs in each domain. The cost of a stanza is a price for its bytes, charged
when its turn comes, and the processor time that it took, charged afterwards. The domain with the least cost is served
next, and in it the sender with the least cost. Stanzas of one sender keep their order.

A stanza that arrives while a long stanza is being parsed cannot overtake it. The sender of a costly stanza therefore
rests after it for a multiple of its cost, so that such stanzas take a small part of the time.
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
# The longest time that parsing takes for a byte. A longer measurement includes a run of the garbage collector. The
# sender must not pay for that.
BYTE_MOST_S = 0.000_001
COSTLY_S = 0.003  # items that feeds accept cost less, unless they have thousands of elements
# The stanzas of all senders share one TCP stream. Without a rest, rejected stanzas of one sender
# could fill it. With a rest of 20 times its cost, a costly sender has at most 1/21 of the event loop's time, about 5 %.
REST_FACTOR = 20.0
# The rest after a stanza that costs 100 ms. Without a bound, one slow moment of the machine could silence a sender.
REST_MOST_S = 2.0
# Bytes of one sender that may be in work. A publish waits for the transaction before it and for the transaction that it
# shares with others, and each item of 60 KB in them takes 2 ms. This bound admits one such item, or 64 ordinary ones.
WORK_BYTES = 98_304
REMEMBERED = 1_024


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Upper bounds of the stanzas and bytes that wait or are in work: of one sender, and in all.

    A sender or a domain may also not use more than what remains free. So a new sender finds room, however many senders
    send much at once.
    """

    sender_stanzas: int = SENDER_STANZAS
    sender_bytes: int = 20_971_520  # 64 requests of the largest size
    stanzas: int = 4_096
    bytes: int = 67_108_864

    @classmethod
    def of(cls, stanzas: int, page_max: int) -> "QueueBounds":
        """Returns the bounds of a service whose lists have up to `page_max` entries."""
        # Clients send two requests about every node of a list, all at once (xep-map 250).
        return cls(sender_stanzas=max(SENDER_STANZAS, 2 * page_max), stanzas=stanzas)


class _QueueShare(Share):
    """A domain, a sender, or the sum of all. `stanzas` and `bytes` are those that wait or are in work."""

    __slots__ = ("bytes", "stanzas")

    def __init__(self) -> None:
        super().__init__()
        self.stanzas = 0
        self.bytes = 0

    def fits(self, size_bytes: int, stanzas: int, bytes_: int) -> bool:
        """Returns whether one more stanza of this size stays within the bounds."""
        return self.stanzas < stanzas and self.bytes + size_bytes <= bytes_

    def add(self, stanzas: int, size_bytes: int) -> None:
        """Adds to the counts; negative numbers subtract."""
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
        self.resting = False  # stanzas wait, but the sender is not in the order until its rest is over
        self.rests_until_s = 0.0
        self.work_bytes = 0


@dataclass(slots=True, eq=False)
class Turn:
    """An admitted stanza. It counts until `StanzaTurns.done`.

    `wire_bytes` is its size before it was truncated, `price_s` its cost before it is parsed, `cost_s` what the sender
    was charged for it so far. `requested`: it is a response to a request of ours, so its sender does not rest after it.
    """

    sender: _Sender
    frame: bytes
    wire_bytes: int
    price_s: float
    requested: bool
    cost_s: float = 0.0

    @property
    def size_bytes(self) -> int:
        """The size of the stanza after it was truncated."""
        return len(self.frame)


class StanzaTurns:
    """The stanzas of one link that wait or are in work. `clock` returns seconds and never steps back.

    `refused` is the number of stanzas that were not admitted since the start.
    """

    def __init__(self, bounds: QueueBounds, *, clock: Callable[[], float]) -> None:
        self._bounds = bounds
        self._clock = clock
        self._all = _QueueShare()
        # A domain stays in memory as long as one of its senders.
        self._domains: WeakValueDictionary[bytes, _Domain] = WeakValueDictionary()
        self._senders: Shares[bytes, _Sender] = Shares(self._new_sender, self._is_idle, REMEMBERED)
        self._order: FairOrder[_Domain] = FairOrder()
        self._resting: list[tuple[float, int, _Sender]] = []
        self.refused = 0

    @property
    def stanzas(self) -> int:
        """The number of stanzas that wait or are in work."""
        return self._all.stanzas

    @property
    def size_bytes(self) -> int:
        """The size of these stanzas."""
        return self._all.bytes

    @property
    def senders(self) -> int:
        """The number of senders in memory."""
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
        """Admits a stanza of a bare JID. Returns False if the sender, its domain or all senders exceed their bounds.

        `cpu_s` is the processor time spent on finding the end of the stanza. `cut`: the stanza is rejected unread, and
        its sender rests; otherwise rejected stanzas could fill the link. `requested`: it is a response to our request.
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
        sender.waiting.append(Turn(sender, frame, wire_bytes, price_s, requested))
        self._rank(sender)
        return True

    def take(self) -> Turn | None:
        """Returns the next stanza, or None if no stanza waits or all senders with waiting stanzas rest."""
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
        """Charges the processor time of a stanza to its sender. The sender rests if the time was long.

        `cut`: the stanza could not be read. Its sender then rests even after a response to our request.
        """
        turn.requested = turn.requested and not cut
        self._charge(turn, min(cpu_s, BYTE_MOST_S * turn.wire_bytes) + COSTLY_S * cut)

    def done(self, turn: Turn) -> None:
        """Releases a stanza of `take`, with or without a response."""
        turn.sender.work_bytes -= turn.size_bytes
        self._forget(turn)
        if turn.sender.waiting:
            self._rank(turn.sender)

    def rest_s(self) -> float | None:
        """Returns the seconds until the next rest ends, or None if no sender rests."""
        return max(0.0, self._resting[0][0] - self._clock()) if self._resting else None

    def clear(self) -> None:
        """Removes the waiting stanzas, because their link has ended."""
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
