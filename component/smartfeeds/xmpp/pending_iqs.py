"""The IQs that this service has sent and that have no response yet (RFC 6120 section 8.2.3).

The tracker also distinguishes responses from a flood. A sender does not rest after a response to our request, because a
full page of a mirror takes long to process. Each request excuses one response, so a peer cannot send more of them than
we requested.
"""

import asyncio
import re
from dataclasses import dataclass

from lxml import etree

from smartfeeds.errors import LinkError
from smartfeeds.xmpp.framer import start_of

PREFIX = "call-"
# The id of a request of this domain. Strangers send responses with any id, and a part of it names a recipient.
_ID = re.compile(rf"{PREFIX}([0-9A-Za-z]{{1,16}})-[0-9]{{1,18}}", re.ASCII)
_RESPONSES = frozenset({"result", "error"})


def instance_of(iq: etree._Element) -> str:
    """Returns the process that a response is for, empty if the stanza is no response to a request of this service."""
    match = _ID.fullmatch(iq.get("id") or "")
    return match[1] if match is not None and iq.get("type") in _RESPONSES else ""


@dataclass(slots=True)
class _Request:
    to: str
    response: "asyncio.Future[etree._Element]"
    claimed: bool = False

    def is_answered_by(self, attributes: "dict[str, str] | etree._Attrib") -> bool:
        """Returns whether a stanza is a response from the entity that the request was sent to."""
        return attributes.get("type") in _RESPONSES and attributes.get("from") == self.to


class Requests:
    """IQs without a response, `open` by their ids.

    `instance` is the id of this process. Other processes may share its address, and their ids must differ.
    """

    def __init__(self, instance: str) -> None:
        self._prefix = f"{PREFIX}{instance}-"
        self.open: dict[str, _Request] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self.open)

    def add(self, to: str) -> "tuple[str, asyncio.Future[etree._Element]]":
        """Returns the id of a new request to this address and the future of its response. Callers `remove` it."""
        self._count += 1
        stanza_id = f"{self._prefix}{self._count}"
        response: asyncio.Future[etree._Element] = asyncio.get_running_loop().create_future()
        self.open[stanza_id] = _Request(to, response)
        return stanza_id, response

    def remove(self, stanza_id: str) -> None:
        """Forgets a request, with or without a response."""
        self.open.pop(stanza_id, None)

    def claim(self, frame: bytes) -> bool:
        """Returns whether a stanza is the first response to a request.

        A forged or repeated response is not, so its sender pays for it as for any other stanza.
        """
        if not self.open:
            return False
        name, attributes = start_of(frame)
        request = self.open.get(attributes.get("id", ""))
        if name != "iq" or request is None or request.claimed or not request.is_answered_by(attributes):
            return False
        request.claimed = True
        return True

    def resolve(self, iq: etree._Element) -> bool:
        """Passes a response to the caller of its request. Returns False if the stanza is no response to a request."""
        request = self.open.get(iq.get("id") or "")
        if request is None or not request.is_answered_by(iq.attrib):
            return False
        if not request.response.done():
            request.response.set_result(iq)
        return True

    def fail(self, error: LinkError) -> None:
        """Ends all requests with an error, because the link has ended and no response can come."""
        for request in self.open.values():
            if not request.response.done():
                request.response.set_exception(error)
        self.open.clear()
