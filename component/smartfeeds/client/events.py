"""What goes into `FollowState` and what comes out of it, and what it counts."""

from dataclasses import dataclass
from enum import Enum

from smartfeeds.client.change import Change, Entry
from smartfeeds.core.text import counted

PAGE_ITEMS = 50


class Start(Enum):
    """Where to begin without a stored position."""

    NOW = "now"
    BEGINNING = "beginning"


@dataclass(frozen=True, slots=True)
class Connected:
    """There is a session, the first one or a new one. Answers to earlier requests will not come."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The session has ended."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The service accepted the subscription asked for by `Subscribe` of this number."""

    request_no: int


@dataclass(frozen=True, slots=True)
class PushReceived:
    """A notification. Cursors are bare; None stands for a header that was not there."""

    items: tuple[Entry, ...]
    previous: str | None = None
    last: str | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class PageReceived:
    """The answer to the `Pull` of this number. Cursors are bare; None stands for an element that was not there."""

    request_no: int
    items: tuple[Entry, ...] = ()
    first: str | None = None
    last: str | None = None
    index: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class CursorRefused:
    """The service does not know the cursor that the `Pull` of this number names."""

    request_no: int


@dataclass(frozen=True, slots=True)
class PullFailed:
    """The `Pull` of this number brought no page. `answered` says that there was an answer, which was none."""

    request_no: int
    reason: str
    answered: bool


@dataclass(frozen=True, slots=True)
class GapSuspected:
    """Changes may have been missed: pushes found no room, the node was purged, the subscription ended."""


@dataclass(frozen=True, slots=True)
class IntegrityDue:
    """No push for a long time (SF-051)."""


@dataclass(frozen=True, slots=True)
class NodeGone:
    """The node was deleted."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to the node; once more does no harm."""

    request_no: int


@dataclass(frozen=True, slots=True)
class Pull:
    """Ask for a page: the items after a bare cursor, from the very first when it is empty, or only the newest one."""

    request_no: int
    after: str = ""
    newest: bool = False
    max_items: int = PAGE_ITEMS


@dataclass(frozen=True, slots=True)
class Later:
    """Ask for a page after a pause, because the one before did not come.

    `answered` is as in `PullFailed`; `alone` says that one item alone was asked for, so that less cannot be.
    """

    request: Pull
    reason: str
    answered: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A pull has shown that the follower has everything."""


class StopReason(Enum):
    """Why following cannot go on."""

    NODE_GONE = "the node was deleted"
    POSITION_REFUSED = "the service does not know the stored position any more"


@dataclass(frozen=True, slots=True)
class Stop:
    """The end."""

    reason: StopReason


Input = (
    Connected
    | Disconnected
    | Subscribed
    | PushReceived
    | PageReceived
    | CursorRefused
    | PullFailed
    | GapSuspected
    | IntegrityDue
    | NodeGone
)
Output = Subscribe | Pull | Later | Change | CaughtUp | Stop


@dataclass(slots=True)
class Counters:
    """What the follower has met since it started.

    `gaps_found`: catch-ups that brought what no push had brought; `gaps_healed`: those that ended with everything
    there. `late_pushes`: pushes recognised as old. `duplicates`: versions that came again and were not handed over.
    """

    pushes: int = 0
    pulls: int = 0
    gaps_found: int = 0
    gaps_healed: int = 0
    late_pushes: int = 0
    duplicates: int = 0
    changes: int = 0

    def __add__(self, other: "Counters") -> "Counters":
        return Counters(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __str__(self) -> str:
        return (
            f"{counted(self.changes, 'change')}, {counted(self.pushes, 'push', 'es')}, {counted(self.pulls, 'pull')}, "
            f"{counted(self.gaps_found, 'gap')} found, {self.gaps_healed} healed, "
            f"{counted(self.duplicates, 'duplicate')} dropped"
        )
