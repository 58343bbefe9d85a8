"""The response of the service as a value of its type, and the refusal of a change.

The bot, the commands and the operations use these functions. They share no other module.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import Answer, PartlyRefused, Request

T = TypeVar("T")
# The service: returns the response to a request. Raises FeedError, StoreError.
Handle = Callable[[Request], Awaitable[Answer]]


async def ask(handle: Callable[[Request], Awaitable[object]], request: Request, kind: type[T]) -> T:
    """Returns the response to a request. Raises FeedError, StoreError, and TypeError for a response of another type."""
    answer = await handle(request)
    if not isinstance(answer, kind):
        raise TypeError(f"{type(request).__name__} was answered with {type(answer).__name__}")
    return answer


def check_applied(answer: Answer, *, ends: bool = False) -> None:
    """Raises FeedError if a change of one affiliation or of one subscription was refused. `ends`: the change was to end
    a subscription."""
    if not isinstance(answer, PartlyRefused):
        return
    if answer.affiliations is not None:
        jid = answer.affiliations.entries[0].jid
        raise FeedError(Condition.CONFLICT, f"{jid} is the last owner of the node; add another owner first")
    assert answer.subscriptions is not None  # one of both lists is set
    jid = answer.subscriptions.entries[0].jid
    if ends:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"{jid} has no subscription to this node")
    raise FeedError(
        Condition.NOT_ALLOWED,
        f"{jid} cannot be subscribed: it may not read the node, has too many subscriptions, or the node or the service "
        "does not allow it",
    )
