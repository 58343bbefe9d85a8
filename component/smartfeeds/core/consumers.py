"""Consumers: the named readers of a feed that the delivery mechanism serves (docs/contributing.md, "Consumers")."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order

PUSH: Final = "push"  # the consumer that sends XMPP notifications; each feed has one


class Consumer(NamedTuple):
    """A reader of one feed. `name` is its kind, or its kind and what tells it from others of the kind: `push`,
    `mirror:plans`, `hub:https://reader.example/callback`."""

    node_no: int
    name: str

    @property
    def kind(self) -> str:
        """The part of the name before the first colon."""
        return self.name.partition(":")[0]

    @property
    def target(self) -> str:
        """The part of the name behind the first colon, such as an address; empty where the kind says it all."""
        return self.name.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Failure:
    """Deliveries to a consumer that have failed since the last one that succeeded.

    `count` is their number, `since_us` the time of the first and `error` the message of the last. The next attempt is
    due at `next_us`; None means that the service has given up.
    """

    count: int
    since_us: int
    next_us: int | None
    error: str

    @property
    def is_retry_request(self) -> bool:
        """Whether an operator requested the next attempt. After a real failure it is later than `since_us`."""
        return self.next_us == self.since_us


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A consumer as the store lists it: its mark in one order, and the failure if there is one."""

    consumer: Consumer
    order: Order
    mark: Mark
    failure: Failure | None = None
