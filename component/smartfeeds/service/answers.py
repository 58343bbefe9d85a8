"""The response of the service as a value of its type.

The bot, the commands and the operations use this function. It is a module of its own because they share no other.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from smartfeeds.service.requests import Answer, Request

T = TypeVar("T")
# The service: returns the response to a request. Raises FeedError, StoreError.
Handle = Callable[[Request], Awaitable[Answer]]


async def ask(handle: Callable[[Request], Awaitable[object]], request: Request, kind: type[T]) -> T:
    """Returns the response to a request. Raises FeedError, StoreError, and TypeError for a response of another type."""
    answer = await handle(request)
    if not isinstance(answer, kind):
        raise TypeError(f"{type(request).__name__} was answered with {type(answer).__name__}")
    return answer
