"""The inputs and outputs of `FollowState`, and its counters."""

from dataclasses import dataclass
from enum import Enum

from smartfeeds.client.change import Change, ReceivedItem
from smartfeeds.client.errors import FollowError
from smartfeeds.core.text import counted

PAGE_ITEMS = 50  # the default page size of the service, `pubsub.page_default`


class StartPoint(Enum):
    """The point to start at if there is no stored position."""

    NOW = "now"
    BEGINNING = "beginning"


@dataclass(frozen=True, slots=True)
class Connected:
    """A session has started. Responses to earlier requests will not arrive."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The session has ended."""


@dataclass(frozen=True, slots=True)
class SubscriptionAccepted:
    """The service accepted the subscription request with this number."""

    request_no: int


@dataclass(frozen=True, slots=True)
class PushReceived:
    """A notification. Cursors have no type prefix; None means that the header is absent."""

    items: tuple[ReceivedItem, ...]
    previous: str | None = None
    last: str | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class PageReceived:
    """The response to the page request with this number. Cursors have no type prefix; None means an absent element."""

    request_no: int
    items: tuple[ReceivedItem, ...] = ()
    first: str | None = None
    last: str | None = None
    index: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class CursorRefused:
    """The service does not know the cursor in the page request with this number."""

    request_no: int


@dataclass(frozen=True, slots=True)
class PullFailed:
    """The page request with this number failed. `answered`: a response arrived, but not a page."""

    request_no: int
    reason: str
    answered: bool


@dataclass(frozen=True, slots=True)
class GapSuspected:
    """Changes may be missing: pushes exceeded the inbox, the node was purged, or the subscription ended."""


@dataclass(frozen=True, slots=True)
class IntegrityDue:
    """No push arrived for a long time (SF-051)."""


@dataclass(frozen=True, slots=True)
class NodeGone:
    """The node was deleted."""


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """Subscribe to the node. Repeating the request is harmless."""

    request_no: int


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request a page: the items after a cursor, the first items if the cursor is empty, or the newest item."""

    request_no: int
    after: str = ""
    newest: bool = False
    max_items: int = PAGE_ITEMS


@dataclass(frozen=True, slots=True)
class DelayedPageRequest:
    """Request a page after a pause, because the previous request failed.

    `answered` is that of `PullFailed`. `alone`: the failed request was for one item, so a smaller page is impossible.
    """

    request: PageRequest
    reason: str
    answered: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A pull has proved that the follower has every item."""


@dataclass(frozen=True, slots=True)
class StopFollowing:
    """Following has ended. `error` is the class of the error that the iteration raises."""

    error: type[FollowError]
    reason: str


Input = (
    Connected
    | Disconnected
    | SubscriptionAccepted
    | PushReceived
    | PageReceived
    | CursorRefused
    | PullFailed
    | GapSuspected
    | IntegrityDue
    | NodeGone
)
Output = SubscribeRequest | PageRequest | DelayedPageRequest | Change | CaughtUp | StopFollowing


@dataclass(slots=True)
class FollowCounters:
    """Counts since the follower started.

    `gaps_found`: series of pulls that brought changes without a push. `gaps_healed`: those that ended caught up.
    `late_pushes`: pushes recognised as old. `duplicates`: repeated versions that were not delivered again.
    """

    pushes: int = 0
    pulls: int = 0
    gaps_found: int = 0
    gaps_healed: int = 0
    late_pushes: int = 0
    duplicates: int = 0
    changes: int = 0

    def __add__(self, other: "FollowCounters") -> "FollowCounters":
        return FollowCounters(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __str__(self) -> str:
        return (
            f"{counted(self.changes, 'change')}, {counted(self.pushes, 'push', 'es')}, {counted(self.pulls, 'pull')}, "
            f"{counted(self.gaps_found, 'gap')} found, {self.gaps_healed} healed, "
            f"{counted(self.duplicates, 'duplicate')} dropped"
        )
