"""The interface between the supervisor and a component connection, and the reasons for its end (XEP-0114 section 3)."""

from typing import Protocol

from lxml import etree

from smartfeeds.errors import LinkError

_STREAM_CONDITIONS = "{urn:ietf:params:xml:ns:xmpp-streams}"


class LinkDownError(LinkError):
    """The connection ended or could not be established.

    `condition` is the stream error of RFC 6120 section 4.9.3 that the server sent, or a condition of this project:
    `connect-failed`, `handshake-refused`, `closed`, `timeout`, `ping-timeout`, `lost`, `not-well-formed`,
    `restricted-xml`, `stopped`. `detail` is for the log.
    """

    def __init__(self, condition: str, detail: str = "") -> None:
        super().__init__(f"{condition}: {detail}" if detail else condition)
        self.condition = condition
        self.detail = detail


class ComponentLink(Protocol):
    """A component connection that the supervisor opens and closes. There is one connection at a time."""

    @property
    def domain(self) -> str:
        """The domain of the component."""

    @property
    def endpoint(self) -> str:
        """The server's address as `host:port`."""

    @property
    def received_bytes(self) -> int:
        """The number of bytes received since the start. A change proves that the server is alive."""

    async def open(self) -> None:
        """Connects and complete the handshake. Raises LinkDownError, and leaves no connection behind then."""

    async def wait_closed(self) -> LinkDownError:
        """Waits until the connection has ended, and returns the reason."""

    def ping(self) -> None:
        """Sends a ping (XEP-0199)."""

    def drop(self, condition: str) -> None:
        """Aborts the connection without waiting for the server."""

    async def close(self) -> None:
        """Closes the stream with its footer."""


def stream_error(element: etree._Element) -> LinkDownError:
    """Returns the condition and the text of a stream error (RFC 6120 section 4.9)."""
    condition, text = "undefined-condition", ""
    for child in element:
        if isinstance(child.tag, str) and child.tag.startswith(_STREAM_CONDITIONS):
            name = child.tag.removeprefix(_STREAM_CONDITIONS)
            if name == "text":
                text = child.text or ""
            else:
                condition = name
    return LinkDownError(condition, text)
