"""The knowledge of running parts of the service about the recipients of notifications, as a value."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from smartfeeds.core.model import Node, NodeEvent
from smartfeeds.core.suboptions import SHOWS


class Interest(NamedTuple):
    """A resource that requests notifications: its full JID, our address that it sent its presence to, and the time in
    microseconds after which it receives them."""

    jid: str
    address: str
    since_us: int


class AvailabilityReader(Protocol):
    """Knows whether a recipient can receive notifications now."""

    def is_available(self, jid: str, shows: Collection[str] = SHOWS) -> bool | None:
        """Returns whether a message to a bare or full JID reaches a person in one of these states; None if that is not
        known."""


class InterestReader(Protocol):
    """Knows which resources request the notifications of a node without a subscription (XEP-0060 section 9.2)."""

    def since_us(self, node: str) -> int | None:
        """Returns since when a resource requests this node, None if no resource does. Any thread may call it."""

    def of(self, node: str) -> list[Interest]:
        """Returns the resources that request a node."""

    def version(self, node: str) -> tuple[int, ...]:
        """Returns numbers that change with every change of `of`."""


class _UnknownPresence:
    """Presence of nobody is known, so everybody receives notifications at once, and only subscribers do."""

    def is_available(self, _jid: str, _shows: Collection[str] = SHOWS) -> bool | None:
        return None

    def since_us(self, _node: str) -> int | None:
        return None

    def of(self, _node: str) -> list[Interest]:
        return []

    def version(self, _node: str) -> tuple[int, ...]:
        return ()


# Returns the stanzas that repeat an event about a subscription in words.
Explain = Callable[[Node, NodeEvent], Awaitable[list[bytes]]]


async def _explain_nothing(_node: Node, _event: NodeEvent) -> list[bytes]:
    return []


_UNKNOWN = _UnknownPresence()


@dataclass(frozen=True, slots=True)
class PushSide:
    """The knowledge of a running part. `explain` is for people who read chat."""

    availability: AvailabilityReader = _UNKNOWN
    interests: InterestReader = _UNKNOWN
    explain: Explain = _explain_nothing


def joined_push(sides: Iterable[PushSide]) -> PushSide:
    """Joins the knowledge of several parts. At most one part knows each thing."""
    parts = tuple(sides)
    return PushSide(
        next((part.availability for part in parts if part.availability is not _UNKNOWN), _UNKNOWN),
        next((part.interests for part in parts if part.interests is not _UNKNOWN), _UNKNOWN),
        next((part.explain for part in parts if part.explain is not _explain_nothing), _explain_nothing),
    )
