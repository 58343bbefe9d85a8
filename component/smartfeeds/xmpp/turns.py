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
from math import inf
from weakref import WeakValueDictionary

from smartfeeds.core.fairness import FairOrder, Share, Shares

SENDER_STANZAS = 1_024  # a client may send two requests about each of 500 nodes at once (`QueueBounds.of`)
# The part of the cost that is charged before a stanza is parsed, in the order of what reading a publish takes: 10 to
# 14 us (docs/benchmarks.md).
FRAME_COST_S = 0.000_02
BYTE_COST_S = 0.000_000_01
# The longest time that parsing takes for a byte. A longer measurement includes a run of the garbage collector. The
# sender must not pay for that.
BYTE_MOST_S = 0.000_001
# The sender of a stanza that costs more than this rests. Items that feeds accept cost less, unless they have thousands
# of elements. A quiet request passes the event loop four times, and may wait for such a stanza each time.
COSTLY_S = 0.002
CUT_COST_S = 0.003  # of a stanza that is rejected unread: its bytes fill the link
# The stanzas of all senders share one TCP stream. Without a rest, rejected stanzas of one sender could fill it. With a
# rest of 20 times its cost, a costly sender has at most 1/21 of the event loop's time, about 5 %.
REST_FACTOR = 20.0
# The rest begins at nothing and reaches `REST_FACTOR` at a cost of 3 ms. With a step, the speed of the machine decided
# whether requests just below it were 30 or 300 a second.
RAMP_FACTOR = 60.0
# The rest after a stanza that costs 100 ms. Without a bound, one slow moment of the machine could silence a sender.
REST_MOST_S = 2.0
# Bytes of one sender that may be in work. A publish waits for the transaction before it and for the transaction that it
# shares with others, and each item of 60 KB in them takes 2 ms. This bound admits one such item, or 64 ordinary ones.
WORK_BYTES = 98_304
REMEMBERED = 1_024  # senders whose cost stays in memory when they are idle (`core.fairness.Shares`)


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Upper bounds of the stanzas and bytes that wait or are in work: of one sender, and in all.

    A sender or a domain may also not use more than what remains free. So a new sender finds room, however many senders
    send much at once.
    """

    sender_stanzas: int = SENDER_STANZAS
    sender_bytes: int = 20_971_520  # 64 requests of the largest size
    stanzas: int = 4_096  # the default of `limits.in_flight`
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


class _Domain(_QueueShare):
    __slots__ = ("__weakref__", "senders")

    def __init__(self) -> None:
        super().__init__()
        self.senders: FairOrder[_Sender] = FairOrder()


class _Sender(_QueueShare):
    __slots__ = ("domain", "resting", "rests_until_s", "waiting", "work_bytes")

    def __init__(self, domain: _Domain) -> None:
        # Also the fields of the base classes: `super` would be two more calls for each new sender.
        self.cost = 0.0
        self.entry = self.stanzas = self.bytes = 0
        self.domain = domain
        self.waiting: deque[Turn] = deque()
        self.resting = False  # stanzas wait, but the sender is not in the order until its rest is over
        self.rests_until_s = 0.0
        self.work_bytes = 0


@dataclass(slots=True, eq=False)
class Turn:
    """An admitted stanza. It counts until `StanzaTurns.done`.

    `size_bytes` is its size, `wire_bytes` that before it was truncated, `price_s` its cost before it is parsed,
    `cost_s` what the sender was charged for it so far. `requested`: it is a response to a request of ours, so its
    sender does not rest after it.
    """

    sender: _Sender
    frame: bytes
    size_bytes: int
    wire_bytes: int
    price_s: float
    requested: bool
    cost_s: float = 0.0


class StanzaWork:
    """A stanza that is still being handled when the call with it has returned."""

    __slots__ = ("_listeners", "has_ended", "spent_s")

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[float], object], ...] = ()
        self.has_ended = False
        self.spent_s = 0.0

    def when_ended(self, listener: Callable[[float], object]) -> None:
        """Calls a function at the end, at once if it has come. It receives the processor time in seconds that the
        stanza took on the event loop since, without the time of the store."""
        if self.has_ended:
            listener(self.spent_s)
        else:
            self._listeners += (listener,)

    def end(self, spent_s: float) -> None:
        """Ends the work. It is called once."""
        self.has_ended, self.spent_s = True, spent_s
        for listener in self._listeners:
            listener(spent_s)


class StanzaTurns:
    """The stanzas of one link that wait or are in work. `clock` returns seconds and never steps back.

    `refused` is the number of stanzas that were not admitted since the start.

    Every stanza passes through `add`, `take`, `spend` and `done`. They change the counts of the sender, of its domain
    and of all in place, without a method for each: it would be called twelve times for each stanza.
    """

    def __init__(self, bounds: QueueBounds, *, clock: Callable[[], float]) -> None:
        self._bounds = bounds
        self._clock = clock
        self._all = _QueueShare()
        # A domain stays in memory as long as one of its senders, which have the only strong references.
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
        domain, every = sender.domain, self._all
        size_bytes, bounds = len(frame), self._bounds
        # A domain has at least as much as each of its senders, so its check is also that of the sender.
        if (
            sender.stanzas >= bounds.sender_stanzas
            or sender.bytes + size_bytes > bounds.sender_bytes
            or domain.stanzas >= bounds.stanzas - every.stanzas
            or domain.bytes + size_bytes > bounds.bytes - every.bytes
        ):
            self.refused += 1
            return False
        sender.stanzas += 1
        sender.bytes += size_bytes
        domain.stanzas += 1
        domain.bytes += size_bytes
        every.stanzas += 1
        every.bytes += size_bytes
        most_s = BYTE_MOST_S * wire_bytes
        price_s = FRAME_COST_S + BYTE_COST_S * wire_bytes + (cpu_s if cpu_s < most_s else most_s) + CUT_COST_S * cut
        sender.waiting.append(Turn(sender, frame, size_bytes, wire_bytes, price_s, requested))
        if not sender.entry:
            self._rank(sender)
        return True

    def take(self, most_bytes: int = 1) -> list[Turn]:
        """Returns the next stanzas in turn: one, and more until they have so many bytes.

        Returns none if no stanza waits, or if all senders with waiting stanzas rest or have much in work.
        """
        if self._resting:
            self._wake()
        turns: list[Turn] = []
        size_bytes = 0
        while size_bytes < most_bytes and self._order.waiting:
            domain = self._order.pop()
            sender = domain.senders.pop()
            # The sender is served until another one has cost less. So the stanzas of a sender that is alone are one
            # run, whose cost for the order is that of one stanza. A property test compares runs with single turns.
            domain_most_s = self._order.next_cost if self._order.waiting else inf
            sender_most_s = domain.senders.next_cost if domain.senders.waiting else inf
            waits = True
            while waits:
                turn = sender.waiting[0]
                if sender.work_bytes and sender.work_bytes + turn.size_bytes > WORK_BYTES:
                    waits = False  # `done` ranks it again
                elif sender.rests_until_s and sender.rests_until_s > self._clock():
                    waits, sender.resting = False, True
                    # The second value decides between equal times, because senders cannot be compared.
                    heapq.heappush(self._resting, (sender.rests_until_s, id(sender), sender))
                else:
                    self._order.reached, domain.senders.reached = domain.cost, sender.cost
                    sender.waiting.popleft()
                    sender.work_bytes += turn.size_bytes
                    size_bytes += turn.size_bytes
                    sender.cost += turn.price_s
                    domain.cost += turn.price_s
                    turn.cost_s = turn.price_s
                    if turn.cost_s > COSTLY_S and not turn.requested:
                        self._let_rest(turn)
                    turns.append(turn)
                    waits = bool(sender.waiting)
                    if size_bytes >= most_bytes or domain.cost >= domain_most_s or sender.cost >= sender_most_s:
                        break
            if waits:
                domain.senders.enter(sender)
            if domain.senders.waiting:
                self._order.enter(domain)
        return turns

    def spend(self, turn: Turn, cpu_s: float, *, cut: bool = False) -> None:
        """Charges the processor time of a stanza to its sender. The sender rests if the time was long.

        `cut`: the stanza could not be read. Its sender then rests even after a response to our request.
        """
        turn.requested = turn.requested and not cut
        most_s = BYTE_MOST_S * turn.wire_bytes
        cost_s = (cpu_s if cpu_s < most_s else most_s) + CUT_COST_S * cut
        sender = turn.sender
        sender.cost += cost_s
        sender.domain.cost += cost_s
        turn.cost_s += cost_s
        if turn.cost_s > COSTLY_S and not turn.requested:
            self._let_rest(turn)

    def done(self, turn: Turn) -> bool:
        """Releases a stanza of `take`, with or without a response.

        Returns whether another one can be taken, which waited because its sender had much in work.
        """
        sender, domain, every = turn.sender, turn.sender.domain, self._all
        sender.work_bytes -= turn.size_bytes
        sender.stanzas -= 1
        sender.bytes -= turn.size_bytes
        domain.stanzas -= 1
        domain.bytes -= turn.size_bytes
        every.stanzas -= 1
        every.bytes -= turn.size_bytes
        if sender.waiting and not sender.entry:
            self._rank(sender)
            return not sender.resting
        return False

    def rest_s(self) -> float | None:
        """Returns the seconds until the next rest ends, or None if no sender rests."""
        return max(0.0, self._resting[0][0] - self._clock()) if self._resting else None

    def clear(self) -> None:
        """Removes the waiting stanzas, because their link has ended."""
        for sender in self._senders.values():
            for turn in sender.waiting:
                for party in (sender, sender.domain, self._all):
                    party.stanzas -= 1
                    party.bytes -= turn.size_bytes
            sender.waiting.clear()
            sender.resting = False
            sender.domain.senders.clear()
        self._order.clear()
        self._resting.clear()

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

    def _let_rest(self, turn: Turn) -> None:
        ramp_s = (turn.cost_s - COSTLY_S) * RAMP_FACTOR
        turn.sender.rests_until_s = self._clock() + min(turn.cost_s * REST_FACTOR, ramp_s, REST_MOST_S)
