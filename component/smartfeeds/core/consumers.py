"""Consumers: the named readers of a feed that the delivery mechanism serves (docs/contributing.md, "Consumers")."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S, Pauses
from smartfeeds.core.model import Mark
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order

PUSH: Final = "push"  # the consumer that sends XMPP notifications; a feed has it from its first subscription on
# Consumers of single subscriptions whose events wait for the presence of the subscriber: held:123.
HELD: Final = "held"
ERROR_CHARACTERS: Final = 300  # of an error in the store; it may be the text of another server
# The time of an attempt that an operator requests: it is due at once. No failure plans an attempt for the year 1970.
RETRY_REQUEST_US: Final = 0
# The error of an attempt that ended with an exception that nothing expects.
BROKEN: Final = "a fault of this program; the log has the details"


class Consumer(NamedTuple):
    """A reader of one feed.

    `name` is its kind, and if a feed has several of the kind, a colon and the target: `push`,
    `mirror:xmpp:feeds.b.example?;node=plans`, `hub:https://reader.example/callback`.
    """

    node_no: int
    name: str

    @property
    def kind(self) -> str:
        """The part of the name before the first colon."""
        return self.name.partition(":")[0]

    @property
    def target(self) -> str:
        """The part of the name after the first colon, such as an address; empty if the name is the kind only."""
        return self.name.partition(":")[2]


def held_consumer(node_no: int, sub_no: int) -> Consumer:
    """Returns the consumer of a subscription whose events are held (`features.presence.held`)."""
    return Consumer(node_no, f"{HELD}:{sub_no}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Attempts that have failed since the last one that succeeded: deliveries to a consumer, or reads of a mirror.

    `count` is their number, `since_us` the time of the first, `error` the message of the latest. The next attempt is
    due at `next_us`; None means that the service has given up, and `RETRY_REQUEST_US` that an operator has requested
    it.
    """

    count: int
    since_us: int
    next_us: int | None
    error: str

    def pause_s(self, now_us: int) -> float:
        """The seconds until the next attempt, which must be planned."""
        assert self.next_us is not None
        return seconds_until(self.next_us, now_us)


@dataclass(frozen=True, slots=True)
class Pause:
    """The receiver wants its items later: the next attempt is due at `next_us`. Nothing has failed."""

    next_us: int


# Why a consumer is not served now.
Wait = Failure | Pause


def failure_of(wait: Wait | None) -> Failure | None:
    """The failure after which a consumer waits, None if nothing has failed."""
    return wait if isinstance(wait, Failure) else None


def is_retry_request(wait: Wait | None) -> bool:
    """Whether an operator requested the next attempt."""
    return wait is not None and wait.next_us == RETRY_REQUEST_US


def seconds_until(time_us: int, now_us: int) -> float:
    """The seconds until a stored time of an attempt. The clock may have been ahead when it was stored."""
    return min(max(0, time_us - now_us) / US_PER_S, MAX_REQUESTED_PAUSE_S)


def next_failure(
    former: Failure | None, error: str, now_us: int, backoff: Pauses, jitter: float, pause_s: float | None = None
) -> Failure:
    """The failure after one more failed attempt. `former` is the failure before it, None after a success.

    `pause_s` is the pause that the peer asked for; without it the back-off decides. `jitter` is a random number in
    0..1. The error is cut to the length that the store keeps, and never empty.
    """
    count, since_us = (former.count + 1, former.since_us) if former else (1, now_us)
    if pause_s is None:
        pause_s = backoff.pause_s(count, jitter)
    # A time beyond 64 bits cannot be stored, and one such failure would keep all marks from being stored.
    pause_s = min(pause_s, MAX_REQUESTED_PAUSE_S)
    return Failure(count, since_us, now_us + int(pause_s * US_PER_S), error[:ERROR_CHARACTERS] or BROKEN)


class SentBatch(NamedTuple):
    """The batch that was last sent to a consumer: the items above the mark, up to the key `end_us`.

    `joined`: its items were sent in one message. The batch is stored before it is sent. A repetition after a crash is
    therefore the same batch with the same ids, even if the feed has new items.
    """

    end_us: int
    joined: bool


class Backlog(NamedTuple):
    """The changes that the consumers of all feeds have not received. A time is None where nothing waits.

    `unpushed_feeds` counts feeds with items or events that were not notified over XMPP; `unpushed_us` is the time of
    the oldest of them. `followers_behind` counts the other consumers with items above their marks, and `held_us` is the
    time of the oldest item that waits for the presence of a subscriber.
    """

    unpushed_feeds: int
    unpushed_us: int | None
    followers_behind: int
    held_us: int | None


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A consumer as the store lists it: its mark in one order, and why it waits if it does."""

    consumer: Consumer
    order: Order
    mark: Mark
    wait: Wait | None = None
