"""The reasons for which a component connection ends (XEP-0114 section 3; RFC 6120 section 4.9)."""

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
