"""What the delivery mechanism and a kind of consumers agree on: positions, outcomes, and the rules of a kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order

DEFAULT_BACKOFF = Backoff(first_s=2.0, longest_s=300.0)


@dataclass(frozen=True, slots=True)
class ConsumerPosition:
    """Where a consumer stands: its mark by order. An order without a mark is read from the store.

    `memory` belongs to the deliverer. It is lost at a restart, so nothing may depend on it but speed.
    """

    marks: Mapping[Order, Mark] = field(default_factory=dict)
    memory: object = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The batch was delivered, or there was none. `more` asks for another turn at once."""

    position: ConsumerPosition
    more: bool = False


@dataclass(frozen=True, slots=True)
class Skip:
    """The batch can never be delivered; the consumer goes on behind it. `error` says why."""

    position: ConsumerPosition
    error: str
    more: bool = False


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The delivery failed for now. `pause_s` is what the receiver asked for (None: the back-off of the kind decides);
    `position` is set where a part of the batch was delivered."""

    error: str
    pause_s: float | None = None
    position: ConsumerPosition | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """The receiver, or the feed, does not exist any more: the consumer is removed with its marks."""

    reason: str


Outcome = Delivered | Skip | RetryAfter | Gone


class Deliverer(Protocol):
    """Carries changes to the consumers of one kind."""

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next batch behind `position`. Never called twice at a time for one consumer.

        A LinkError is no failure: the consumer stays where it is until it is woken again or its kind is resumed. After
        a StoreError the delivery is repeated soon. Any other exception is a fault of the program and counts as a
        failed delivery.
        """

    def host(self, consumer: Consumer) -> str:
        """The host that the delivery goes to; empty if deliveries are not bounded by host. Must not raise an exception:
        it is called while a publish reports its change."""


@dataclass(frozen=True, slots=True)
class ConsumerKind:
    """The consumers whose names begin alike, who delivers to them, and under which rules.

    At most `at_once` deliveries run at a time, and `host_at_once` to one host. A consumer that has failed for
    `give_up_s` seconds, or `give_up_failures` times, is not tried again until somebody resumes it; None never gives
    up. With `every_feed` each feed has one consumer, named as the kind; else consumers are followed one by one.
    """

    deliverer: Deliverer
    at_once: int = 32
    host_at_once: int = 4
    backoff: Backoff = DEFAULT_BACKOFF
    give_up_s: float | None = None
    give_up_failures: int | None = None
    every_feed: bool = False
