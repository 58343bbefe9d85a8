"""Why following can end, and what a single request can meet."""

from smartfeeds.errors import FollowError as FollowError
from smartfeeds.errors import LinkError
from smartfeeds.errors import LoginError as LoginError


class CertificateError(FollowError, LinkError):
    """The certificate of the server is not valid, so the password was not sent."""


class NodeMissingError(FollowError):
    """There is no such node, or it was deleted."""


class PositionRefusedError(FollowError):
    """The service does not know the stored position any more, and reading again from the start was not wanted."""


class RefusedError(FollowError):
    """The service does not let us follow this node. `condition` is the stanza error's condition."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition


class RequestError(LinkError):
    """A request was answered with an error. `condition` and `kind` are those of the stanza error (RFC 6120 8.3)."""

    def __init__(self, condition: str, kind: str, text: str = "") -> None:
        super().__init__(f"{condition}: {text}" if text else condition)
        self.condition = condition
        self.kind = kind
        self.text = text


class AnswerError(LinkError):
    """A request was answered with what is no answer to it: cut short on its way, say. It proves nothing."""


class RequestTimeoutError(LinkError):
    """A request was not answered in time, or the session ended before."""
