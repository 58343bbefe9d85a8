"""The errors that end a follower, and the errors of a single request."""

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
    """The service does not allow the account to follow the node. `condition` is that of the stanza error."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition


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
