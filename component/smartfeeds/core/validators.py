"""Validators of documents on the web: they make the next request conditional (RFC 9110 sections 8.8 and 13.1)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of one response, byte for byte as the server sent them, or empty.

    `url` is the address that sent them. They are not valid for any other address, such as the new target of a redirect.
    """

    url: str = ""
    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        """Whether there is a validator to send."""
        return bool(self.etag or self.last_modified)


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A processed document. `content` is used again after "304 Not Modified"; it is empty if nobody needs it."""

    validators: Validators
    content: bytes = b""
