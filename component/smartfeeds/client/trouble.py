"""What the trouble that requests meet means to a follower, and how it is told."""

from smartfeeds.client.errors import AnswerError, RequestTimeoutError
from smartfeeds.client.events import Later

# Conditions of stanza errors (RFC 6120 8.3.3).
TRY_AGAIN = frozenset(
    {
        "internal-server-error",
        "recipient-unavailable",
        "remote-server-not-found",
        "remote-server-timeout",
        "resource-constraint",
        "service-unavailable",
    }
)
TOO_MUCH = frozenset({"not-acceptable", "policy-violation"})  # where more than one item was asked for
NOT_YET = frozenset({"not-authorized", "forbidden"})


def told_of(later: Later) -> AnswerError | RequestTimeoutError:
    """What to tell of a page that did not come: where it is, when it is one item that does not."""
    asked = later.request
    item = "the newest item" if asked.newest else f"the item behind {asked.after or 'the start'}"
    if later.answered:
        return AnswerError(f"{item} cannot be had, not even alone: {later.reason}")
    return RequestTimeoutError(f"{later.reason}; only {item} was asked for" if later.alone else later.reason)
