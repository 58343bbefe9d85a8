"""The failures of a request that a follower may retry, and the error for a page that did not arrive."""

from smartfeeds.client.errors import AnswerError, RequestTimeoutError
from smartfeeds.client.events import DelayedPageRequest

# Conditions of stanza errors (RFC 6120 section 8.3.3). These may pass, whatever the type of the error is: RFC 6120
# gives service-unavailable the type `cancel`, and servers send it while a component restarts.
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
# The response to a request for several items was too large. A request for fewer items may succeed.
TOO_LARGE = frozenset({"not-acceptable", "policy-violation"})
# Retried only while the subscription is pending, because the owner may still approve it. Otherwise they are final.
NOT_APPROVED = frozenset({"not-authorized", "forbidden"})


def failure_of(delayed: DelayedPageRequest) -> AnswerError | RequestTimeoutError:
    """Returns the error to report for a page that did not arrive. It names the item if the page had one item only."""
    request = delayed.request
    item = "the newest item" if request.newest else f"the item after {request.after or 'the start'}"
    if delayed.answered:
        return AnswerError(f"cannot read {item}, even in a page of one item: {delayed.reason}")
    return RequestTimeoutError(
        f"{delayed.reason}; the request was for {item} alone" if delayed.alone else delayed.reason
    )
