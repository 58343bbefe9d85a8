"""What can be asked about conflicts, beside what `service.requests` has; the same for every wire."""

from dataclasses import dataclass, replace

from smartfeeds.core.model import Item
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.requests import Request, ResultSet
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import Version


@dataclass(frozen=True, slots=True)
class ListConflicts(Request):
    """The items of a feed that have conflicts, or `item_id` alone, if it has any."""

    node: str | None
    page: ResultSetRequest | None = None
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class ConflictedItem:
    """An item with conflicts. `tags` name its versions: first the winner, then `version.conflicts` in their order."""

    item: Item
    version: Version
    tags: tuple[str, ...]
    dialect: Dialect = FEEDSYNC

    @property
    def versions(self) -> tuple[tuple[str, Version], ...]:
        """Every version with its tag, the winner first; none of them has conflicts."""
        versions = (replace(self.version, conflicts=()), *self.version.conflicts)
        return tuple(zip(self.tags, versions, strict=True))


@dataclass(frozen=True, slots=True)
class ConflictList:
    """Items with conflicts, in the order in which they came here first."""

    node: str
    entries: tuple[ConflictedItem, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class ResolveConflicts(Request):
    """A decision on the conflicts of an item (FeedSync 3.4).

    `keep` is the tag of the version whose content stays, empty for the winner's. `decided` are the tags of the
    conflicts that are settled by it, None for all. `seen` are the tags of all versions as they were looked at; where
    the item has others by now nothing is done. None: whatever there is.
    """

    node: str | None
    item_id: str | None
    keep: str = ""
    decided: tuple[str, ...] | None = None
    seen: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The item after a decision, and how many conflicts it has left."""

    item: Item
    left: int
