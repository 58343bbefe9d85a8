"""What the supervisor knows of a component link, and why a link goes down (XEP-0114 section 3)."""

from typing import Protocol

from lxml import etree

from smartfeeds.errors import LinkError

_STREAM_CONDITIONS = "{urn:ietf:params:xml:ns:xmpp-streams}"


class LinkDownError(LinkError):
    """The link ended, or never came up.

    `condition` is the stream error of RFC 6120 section 4.9.3 that the server sent, or one of our own words:
    `connect-failed`, `handshake-refused`, `closed`, `timeout`, `ping-timeout`, `lost`, `not-well-formed`,
    `restricted-xml`, `stopped`. `detail` is for the log.
    """

    def __init__(self, condition: str, detail: str = "") -> None:
        super().__init__(f"{condition}: {detail}" if detail else condition)
        self.condition = condition
        self.detail = detail


class ComponentLink(Protocol):
    """One component connection at a time, opened and closed by the supervisor."""

    @property
    def domain(self) -> str:
        """The component's domain."""

    @property
    def endpoint(self) -> str:
        """Where it connects to, as `host:port`."""

    @property
    def received_bytes(self) -> int:
        """Everything that ever came in: a change proves that the server lives."""

    async def open(self) -> None:
        """Connects and completes the handshake. Raises LinkDownError; leaves no connection behind then."""

    async def wait_closed(self) -> LinkDownError:
        """Waits until the link is gone and says why."""

    def ping(self) -> None:
        """Asks for a sign of life (XEP-0199)."""

    def drop(self, condition: str) -> None:
        """Ends a connection that is of no use any more, without waiting for the server."""

    async def close(self) -> None:
        """Ends the stream with its footer."""


def stream_error(element: etree._Element) -> LinkDownError:
    """What a stream error says (RFC 6120 4.9): its condition and its text."""
    condition, text = "undefined-condition", ""
    for child in element:
        if isinstance(child.tag, str) and child.tag.startswith(_STREAM_CONDITIONS):
            name = child.tag.removeprefix(_STREAM_CONDITIONS)
            if name == "text":
                text = child.text or ""
            else:
                condition = name
    return LinkDownError(condition, text)
