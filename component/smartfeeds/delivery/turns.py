"""The order of deliveries: feeds take turns, the consumers of one feed take turns, and each host has a bound.

So a feed with a thousand consumers does not delay a feed with one, and a host that is slow delays itself only.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.limits import Quota

K = TypeVar("K", bound=Hashable)


class DeliveryTurns:
    """A queue of consumers that have something to receive.

    `host_of` returns the host that a delivery goes to, "" for none. `places` counts the deliveries that run, by host.
    Several queues may share it.
    """

    def __init__(self, host_of: Callable[[Consumer], str], places: Quota) -> None:
        self._host_of = host_of
        self._places = places
        # Feeds in the order of their turns, and the consumers of each in the order of theirs. Dictionaries are queues
        # here: they have an order, and remove any consumer in constant time.
        self._queue: dict[int, dict[Consumer, None]] = {}
        # Consumers whose host is at its bound, by host. Searching them at each turn would cost time that grows with the
        # queue of a slow host, so they stay here until a delivery to the host ends. Then one of them comes before the
        # queue, because it has had its turn already.
        self._next_of_hosts: dict[Consumer, None] = {}
        self._at_bound: dict[str, dict[Consumer, None]] = {}

    def add(self, consumer: Consumer) -> None:
        """Puts a consumer at the end of the queue of its feed, unless it is in a queue."""
        if consumer not in self._next_of_hosts and consumer not in self._at_bound.get(self._host_of(consumer), ()):
            self._queue.setdefault(consumer.node_no, {})[consumer] = None

    def discard(self, consumer: Consumer) -> None:
        """Removes a consumer from the queues."""
        self._next_of_hosts.pop(consumer, None)
        _discard(self._queue, consumer.node_no, consumer)
        _discard(self._at_bound, self._host_of(consumer), consumer)

    def clear(self) -> None:
        """Removes all consumers from the queues."""
        self._queue.clear()
        self._next_of_hosts.clear()
        self._at_bound.clear()

    def others_wait(self, host: str) -> bool:
        """Whether another consumer could be served if a delivery to this host ended now."""
        return bool(self._queue) or bool(self._next_of_hosts) or bool(self._at_bound.get(host))

    def take(self) -> tuple[Consumer, str] | None:
        """The consumer to serve now, and its host. None if the queues are empty or their hosts are at their bound."""
        while (consumer := self._next()) is not None:
            host = self._host_of(consumer)
            if not host or self._places.take(host):
                return consumer, host
            self._at_bound.setdefault(host, {})[consumer] = None
        return None

    def _next(self) -> Consumer | None:
        if self._next_of_hosts:
            consumer = next(iter(self._next_of_hosts))
            del self._next_of_hosts[consumer]
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

    def free(self, host: str) -> None:
        """A place at a host is free: the next consumer of this host comes before the queue."""
        waiting = self._at_bound.get(host)
        if waiting:
            consumer = next(iter(waiting))
            _discard(self._at_bound, host, consumer)
            self._next_of_hosts[consumer] = None


def _discard(queues: dict[K, dict[Consumer, None]], key: K, consumer: Consumer) -> None:
    """Removes a consumer from one of the queues, and the queue with its last consumer: empty ones count as waiting."""
    queue = queues.get(key, {})
    queue.pop(consumer, None)
    if not queue:
        queues.pop(key, None)
