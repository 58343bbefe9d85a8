"""The interface between the delivery mechanism and a kind of consumers: positions, outcomes, and the rules of a
kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from smartfeeds.core.backoff import Backoff, Pauses
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order

DEFAULT_BACKOFF = Backoff(first_s=2.0, longest_s=300.0)


@dataclass(frozen=True, slots=True)
class ConsumerPosition:
    """The position of a consumer: its mark in each order. An order without a mark is read from the store.

    `memory` belongs to the deliverer. It is lost at a restart, so only speed may depend on it.
    """

    marks: Mapping[Order, Mark] = field(default_factory=dict)
    memory: object = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The batch was delivered, or there was none. `more` says that there is another batch."""

    position: ConsumerPosition
    more: bool = False


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is to be sent. This is no success: earlier failures stay, and the next change wakes the consumer.

    `position` is set if the consumer has passed items that are not for it.
    """

    position: ConsumerPosition | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """The batch can never be delivered, and the next one is tried. `error` is the reason."""

    position: ConsumerPosition
    error: str
    more: bool = False


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The delivery failed and is to be tried again.

    `pause_s` is the pause that the receiver asked for; None uses the back-off of the kind. `position` is set if a part
    of the batch was delivered.
    """

    error: str
    pause_s: float | None = None
    position: ConsumerPosition | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The receiver wants the batch later, at `until_us`. Nothing has failed, and earlier failures stay as they are."""

    until_us: int


@dataclass(frozen=True, slots=True)
class Gone:
    """The receiver, or the feed, does not exist any more: the consumer is removed with its marks.

    `removed`: the deliverer has removed them itself, together with another change.
    """

    reason: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The receiver cannot receive now. Changes do not wake the consumer until it is followed again."""

    position: ConsumerPosition


Outcome = Delivered | Idle | Unreachable | Skip | RetryAfter | Planned | Gone


class Deliverer(Protocol):
    """Carries changes to the consumers of one kind."""

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next batch behind `position`. The calls for one consumer never overlap.

        A LinkError is no failure: the consumer stays where it is until it is woken again or its kind is resumed. After
        a StoreError the delivery is repeated soon. Any other exception is a fault of the program and counts as a
        failed delivery.
        """

    def host(self, consumer: Consumer) -> str:
        """The host that the delivery goes to; empty if deliveries are not bounded by host.

        It must not raise an exception, because it is called while a publish reports its change.
        """


class StanzaSender(Protocol):
    """The link to the XMPP server, for deliverers that send stanzas."""

    @property
    def online(self) -> bool:
        """Whether there is a link."""

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        """Sends whole stanzas and returns how many. Waits while the server reads slowly. Raises LinkError."""


@dataclass(frozen=True, slots=True)
class ConsumerKind:
    """A kind of consumers: their deliverer, and the bounds of their deliveries.

    At most `at_once` deliveries run at a time, and `host_at_once` to one host. A delivery that is slow (`SLOW_S` of
    `delivery.lane`) leaves its place to another one; at most `slow_at_once` do, so that many receivers that become
    silent together do not delay the others for long. Consumers whose last delivery failed use at most `failing_at_once`
    places, so that many dead receivers do not delay the others. After failures for `give_up_s` seconds, or
    `give_up_failures` of them, the service gives a consumer up until a user resumes it; None never gives up. With
    `every_feed` each feed has one consumer, named as the kind; otherwise consumers are followed
    one by one. With `on_demand` the store does not list the consumers that are behind, so those that are followed are
    woken when the deliveries resume. `starts` deliveries start together, the next ones after `pause_s` seconds (0: in
    the next turn of the event loop). With `stored` every consumer of the kind in the store is served, also one that
    another process has added. A consumer belongs to the shard of its feed, or to that of its name with `by_name`.
    """

    deliverer: Deliverer
    at_once: int = 32
    host_at_once: int = 4
    failing_at_once: int = 24
    slow_at_once: int = 0
    starts: int = 8
    pause_s: float = 0.0
    backoff: Pauses = DEFAULT_BACKOFF
    give_up_s: float | None = None
    give_up_failures: int | None = None
    every_feed: bool = False
    on_demand: bool = False
    stored: bool = False
    by_name: bool = False
