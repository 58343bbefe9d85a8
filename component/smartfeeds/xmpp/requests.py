"""The one tracker of requests that this service sent and that have no answer yet (RFC 6120 section 8.2.3).

It tells an answer from a flood, too. An answer that was requested does not make its sender rest, because a full page
of a mirror is costly and welcome. Each answer claims its request, so our own requests bound how many of these come.
"""

import asyncio
from dataclasses import dataclass

from lxml import etree

from smartfeeds.errors import LinkError
from smartfeeds.xmpp.framer import start_of

_ANSWERS = frozenset({"result", "error"})


@dataclass(slots=True)
class _Request:
    to: str
    answer: "asyncio.Future[etree._Element]"
    claimed: bool = False


class Requests:
    """IQs without an answer. Only the entity that was asked can answer."""

    __slots__ = ("_count", "_open")

    def __init__(self) -> None:
        self._open: dict[str, _Request] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, to: str) -> "tuple[str, asyncio.Future[etree._Element]]":
        """The id of a new request to this address, and its answer to come. `remove` ends it, answered or not."""
        self._count += 1
        stanza_id = f"call-{self._count}"
        answer: asyncio.Future[etree._Element] = asyncio.get_running_loop().create_future()
        self._open[stanza_id] = _Request(to, answer)
        return stanza_id, answer

    def remove(self, stanza_id: str) -> None:
        """Nobody waits for the answer any more."""
        self._open.pop(stanza_id, None)

    def claim(self, frame: bytes) -> bool:
        """Whether a stanza is the first answer to one of the requests, from the entity that was asked.

        A forged or repeated answer is not, and costs its sender as much as any other stanza.
        """
        if not self._open:
            return False
        name, attributes = start_of(frame)
        request = self._open.get(attributes.get("id", ""))
        if name != "iq" or request is None or request.claimed or not _answers(request, attributes):
            return False
        request.claimed = True
        return True

    def resolve(self, iq: etree._Element) -> bool:
        """Gives an answer to its request; False if the stanza answers none."""
        request = self._open.get(iq.get("id") or "")
        if request is None or not _answers(request, iq.attrib):
            return False
        if not request.answer.done():
            request.answer.set_result(iq)
        return True

    def fail(self, error: LinkError) -> None:
        """Ends all requests: the link is gone, no answer can come."""
        for request in self._open.values():
            if not request.answer.done():
                request.answer.set_exception(error)
        self._open.clear()


def _answers(request: _Request, attributes: "dict[str, str] | etree._Attrib") -> bool:
    return attributes.get("type") in _ANSWERS and attributes.get("from") == request.to
