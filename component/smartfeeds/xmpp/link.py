"""A component connection: how it begins, the reasons for which it ends, and its pings (XEP-0114 section 3; RFC 6120
section 4.9).
"""

from lxml import etree

from smartfeeds.core.text import attribute
from smartfeeds.errors import LinkError
from smartfeeds.xmpp.parsing import COMPONENT_NS, STREAM_NS

_IQ = f"{{{COMPONENT_NS}}}iq"
_PING = "link-"
_STREAM_CONDITIONS = "{urn:ietf:params:xml:ns:xmpp-streams}"


class LinkDownError(LinkError):
    """The connection ended or could not be established.

    `condition` is the stream error of RFC 6120 section 4.9.3 that the server sent, or a condition of this project:
    `connect-failed`, `handshake-refused`, `closed`, `timeout`, `ping-timeout`, `lease-lost`, `letters-missed`, `lost`,
    `not-well-formed`, `restricted-xml`, `stopped`. `detail` is for the log.
    """

    def __init__(self, condition: str, detail: str = "") -> None:
        super().__init__(f"{condition}: {detail}" if detail else condition)
        self.condition = condition
        self.detail = detail


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


def error_bytes(condition: str) -> bytes:
    """Returns a stream error that ends a connection."""
    return f"<stream:error><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>".encode()


def stream_header(domain: str) -> str:
    """Returns the start of the stream of a component."""
    return f"<stream:stream xmlns='{COMPONENT_NS}' xmlns:stream='{STREAM_NS}' to='{attribute(domain)}'>"


def own_ping(domain: str, ping_id: str) -> bytes:
    """Returns a ping from a component to itself, which the server sends to any connection of the component."""
    name = attribute(domain)
    return f"<iq type='get' id='{_PING}{ping_id}' from='{name}' to='{name}'><ping xmlns='urn:xmpp:ping'/></iq>".encode()


def is_own_ping(element: etree._Element) -> bool:
    """Returns whether an IQ from our own address is such a ping, of any process: each byte that arrives shows that a
    link is alive."""
    return (element.get("id") or "").startswith(_PING)
