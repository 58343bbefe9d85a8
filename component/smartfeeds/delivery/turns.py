"""Whose turn it is: feeds take turns, the consumers of a feed take turns, and a host has a bound of its own."""

from collections import Counter
from collections.abc import Callable

from smartfeeds.core.consumers import Consumer


class DeliveryTurns:
    """The consumers that wait for a place. `host_of` names the host that a delivery goes to, "" for none; at most
    `host_at_once` places are taken for one host."""

    def __init__(self, host_of: Callable[[Consumer], str], host_at_once: int) -> None:
        self._host_of = host_of
        self._host_at_once = host_at_once
        # Feeds in the order of their turns, and the consumers of each in the order of theirs.
        self._queue: dict[int, dict[Consumer, None]] = {}
        # Those whose host has no place, by host: nobody looks at them again before a place is free. Then they are the
        # next of all, because they had their turn already.
        self._freed: dict[Consumer, None] = {}
        self._parked: dict[str, dict[Consumer, None]] = {}
        self._taken: Counter[str] = Counter()

    def add(self, consumer: Consumer) -> None:
        """Puts a consumer at the end of its feed, unless it waits already."""
        if consumer not in self._freed and consumer not in self._parked.get(self._host_of(consumer), ()):
            self._queue.setdefault(consumer.node_no, {})[consumer] = None

    def discard(self, consumer: Consumer) -> None:
        """Takes a consumer out."""
        self._freed.pop(consumer, None)
        self._queue.get(consumer.node_no, {}).pop(consumer, None)
        self._parked.get(self._host_of(consumer), {}).pop(consumer, None)

    def clear(self) -> None:
        """Takes out all of them."""
        self._queue.clear()
        self._freed.clear()
        self._parked.clear()

    def others_wait(self, host: str) -> bool:
        """Whether somebody else could use a place that a delivery to this host has."""
        return bool(self._queue) or bool(self._freed) or bool(self._parked.get(host))

    def take(self) -> tuple[Consumer, str] | None:
        """The next consumer of the next feed, and its host, where it has a place now; None where nobody can go on."""
        while (consumer := self._next()) is not None:
            host = self._host_of(consumer)
            if not host:
                return consumer, host
            if self._taken[host] < self._host_at_once:
                self._taken[host] += 1
                return consumer, host
            self._parked.setdefault(host, {})[consumer] = None
        return None

    def _next(self) -> Consumer | None:
        if self._freed:
            consumer = next(iter(self._freed))
            del self._freed[consumer]
            return consumer
        while self._queue:
            node_no, consumers = next(iter(self._queue.items()))
            del self._queue[node_no]
            for consumer in consumers:
                del consumers[consumer]
                if consumers:
                    self._queue[node_no] = consumers
                return consumer
        return None

    def release(self, host: str) -> None:
        """Gives a place back to those who wait for it."""
        if not host:
            return
        self._taken[host] -= 1
        if not self._taken[host]:
            del self._taken[host]
        parked = self._parked.get(host)
        if not parked:
            return
        consumer = next(iter(parked))
        del parked[consumer]
        if not parked:
            del self._parked[host]
        self._freed[consumer] = None
