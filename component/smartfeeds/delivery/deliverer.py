"""The interface between the delivery mechanism and a kind of consumers: positions, outcomes, and the rules of a
kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from smartfeeds.core.backoff import Backoff, Pauses
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order

# A receiver that restarts is served again after seconds. One that comes back after days waits for five minutes at most.
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
    """A kind of consumers: their deliverer, and the bounds of their deliveries."""

    deliverer: Deliverer
    at_once: int = 32  # deliveries that run at a time
    host_at_once: int = 4  # of these, to one host
    # Deliveries to consumers whose last delivery failed: many dead receivers must not delay the others.
    failing_at_once: int = 24
    # Deliveries that have left their place to another one, because they are slow (`lane.SLOW_S`): many receivers that
    # become silent together must not delay the others for long.
    slow_at_once: int = 0
    # Deliveries that start together, and the pause in seconds before the next ones (0: the next turn of the event
    # loop). So the next publish waits for a few deliveries at most.
    starts: int = 8
    pause_s: float = 0.0
    backoff: Pauses = DEFAULT_BACKOFF
    # The service gives a consumer up after failures for so many seconds, or after so many failures, until a user
    # resumes it. None never gives up.
    give_up_s: float | None = None
    give_up_failures: int | None = None
    every_feed: bool = False  # each feed has one consumer, named as the kind; otherwise consumers are followed
    # The store does not list the consumers that are behind, so all that are followed are woken when deliveries resume.
    on_demand: bool = False
    stored: bool = False  # every consumer in the store is served, also one that another process has added
    by_name: bool = False  # a consumer belongs to the shard of its name, otherwise to that of its feed
