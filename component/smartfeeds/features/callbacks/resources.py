"""The columns that lists of registrations share: the last delivery and the next attempt."""

from collections.abc import Callable
from typing import TypeVar

from smartfeeds.core.consumers import Failure
from smartfeeds.core.times import format_second
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.service.consumer_requests import next_attempt
from smartfeeds.service.resources import Column

E = TypeVar("E")


def last_delivery(read: Callable[[E], tuple[Callback, Failure | None]]) -> tuple[Column[E], ...]:
    """Returns the columns of a registration. `read` returns the registration of an entry and its failure."""

    def tried(entry: E) -> str:
        tried_us = read(entry)[0].tried_us
        return "" if tried_us is None else format_second(tried_us)

    def failures(entry: E) -> int:
        failure = read(entry)[1]
        return failure.count if failure else 0

    def following(entry: E) -> str:
        failure = read(entry)[1]
        return next_attempt(failure.next_us) if failure else ""

    return (
        Column("last_try", tried),
        Column("last_result", lambda entry: read(entry)[0].result),
        Column("failures", failures),
        Column("next_attempt", following),
    )
