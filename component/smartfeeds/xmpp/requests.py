"""Our own requests that have no answer yet (RFC 6120 section 8.2.3), to tell an answer from a flood.

An answer that was requested does not make its sender rest: a full page of a mirror is costly and wanted. An answer
claims its request, so our own requests bound how many of these there are.
"""

from smartfeeds.xmpp.framer import start_of


class OpenRequests:
    """The ids of requests, each with the address that was asked."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def add(self, stanza_id: str, to: str) -> None:
        """A request was sent."""
        self._asked[stanza_id] = to

    def discard(self, stanza_id: str) -> None:
        """Nobody waits for the answer any more."""
        self._asked.pop(stanza_id, None)

    def clear(self) -> None:
        """The link is gone: no answer can come."""
        self._asked.clear()

    def claim(self, frame: bytes) -> bool:
        """Whether a stanza is the first answer to one of the requests, from the entity that was asked.

        A forged or repeated answer is not, and costs its sender as much as any other stanza.
        """
        if not self._asked:
            return False
        name, attributes = start_of(frame)
        stanza_id = attributes.get("id", "")
        claims = (
            name == "iq"
            and attributes.get("type") in ("result", "error")
            and stanza_id in self._asked
            and self._asked[stanza_id] == attributes.get("from")
        )
        if claims:
            del self._asked[stanza_id]
        return claims
