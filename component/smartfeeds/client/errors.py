"""The errors that end a follower or a method of `FeedClient`, and the errors of a single request on a link."""

from smartfeeds.errors import FollowError as FollowError
from smartfeeds.errors import LinkError
from smartfeeds.errors import LoginError as LoginError


class CertificateError(FollowError, LinkError):
    """The server's certificate is not valid. The password was not sent."""


class NodeMissingError(FollowError):
    """The node does not exist or was deleted."""


class PositionRefusedError(FollowError):
    """The service no longer knows the stored position, and the follower was created with `replay=False`."""


class RefusedError(FollowError):
    """The service refuses a request of the account. `condition` is that of the stanza error (RFC 6120 section 8.3)."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition


class UnreachableError(FollowError, LinkError):
    """The server cannot be reached, or the service does not answer a request. The request may have been carried out."""


class RequestError(LinkError):
    """The response was an error. `condition` and `kind` are those of the stanza error (RFC 6120 section 8.3)."""

    def __init__(self, condition: str, kind: str, text: str = "") -> None:
        super().__init__(f"{condition}: {text}" if text else condition)
        self.condition = condition
        self.kind = kind
        self.text = text


class AnswerError(LinkError):
    """The response is malformed, truncated, or contradicts the request. It says nothing about the feed."""


class RequestTimeoutError(LinkError):
    """No response arrived in time, or the session ended before it."""
