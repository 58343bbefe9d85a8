"""The version of a shared item, in terms that FeedSync and SSE share.

An item is its winning version together with the versions that conflict with it. `counter` is `updates` in FeedSync and
`version` in SSE. SSE's history and its updates form one list, in which record k has the sequence `counter - k`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.text import is_nss
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import OWN_NS

COPIED = f"{{{OWN_NS}}}copied"  # the attribute of a record that `sync.copies` describes
MAX_NUMBER = 2**31 - 1  # of a counter or a sequence
# FeedSync 2.1.3 allows an implementation to set limits (FS-007, A-55).
MAX_HISTORY = 1_000
MAX_CONFLICTS = 100


class Flag(Enum):
    """A boolean attribute as written. It is preserved; only TRUE means true."""

    ABSENT = "absent"
    EMPTY = ""
    FALSE = "false"
    TRUE = "true"

    # Merges hash versions. The hash of Enum is a function of Python, which takes half as long again.
    __hash__ = object.__hash__

    @property
    def on(self) -> bool:
        """Whether the flag is true."""
        return self is Flag.TRUE


class ForeignMarkup(NamedTuple):
    """Markup that the dialect does not define and that is preserved in place (FS-012).

    `attributes` are pairs of a Clark name and a value; `children` are canonical bytes.
    """

    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[bytes, ...] = ()


NO_MARKUP = ForeignMarkup()


@dataclass(frozen=True, slots=True)
class Edit:
    """The author and the time of a local change. At least one is required (FS-037), both are recommended (FS-038).

    `when_us` is in microseconds since the epoch, truncated to whole seconds (A-152). `by` is a Namespace Specific
    String (RFC 8141 section 2.2). `shared` says that several people edit under this name and do not know what the
    others have seen: the edit resolves no conflict by itself, and its endpoint is `by` or a branch of it. Raises
    FeedError(BAD_REQUEST).
    """

    when_us: int | None = None
    by: str = ""
    shared: bool = False

    def __post_init__(self) -> None:
        if self.when_us is None and not self.by:
            raise FeedError(Condition.BAD_REQUEST, "a change needs a time, an endpoint, or both")
        if self.by:
            check_name(self.by, "an endpoint")
        if self.when_us is not None:
            object.__setattr__(self, "when_us", self.when_us // 1_000_000 * 1_000_000)


class HistoryRecord(NamedTuple):
    """One record of a history.

    `when_us` is None if the record has no time, `by` is empty if it has no endpoint. `written` is the time as received,
    if this program would write it differently (SSE-032).
    """

    sequence: int
    when_us: int | None = None
    by: str = ""
    written: str = ""
    extra: ForeignMarkup = NO_MARKUP

    @property
    def key(self) -> tuple[int, int, str]:
        """The sort key after the counter: present beats absent, then later, then greater (FS-008)."""
        return (0, 0, self.by) if self.when_us is None else (1, self.when_us, self.by)


class Version(NamedTuple):
    """A version of an item. `history` has the newest record first and is never empty.

    `payload` is the canonical item without sync data. `noconflicts` is used by FeedSync, `conflict` by SSE. The
    versions in `conflicts` have no conflicts themselves; their order is not significant (FS-063, SSE-050).
    """

    sync_id: str
    counter: int
    history: tuple[HistoryRecord, ...]
    payload: bytes = b""
    deleted: Flag = Flag.ABSENT
    noconflicts: Flag = Flag.ABSENT
    conflict: Flag = Flag.ABSENT
    conflicts: tuple["Version", ...] = ()
    extra: ForeignMarkup = NO_MARKUP

    @property
    def top(self) -> HistoryRecord:
        """The newest record."""
        return self.history[0]

    @property
    def key(self) -> tuple[int, int, int, str]:
        """The key by which both dialects choose the winner (FS-067, SSE-038)."""
        return (self.counter, *self.history[0].key)

    @property
    def versions(self) -> tuple["Version", ...]:
        """The version and its conflicts."""
        return (self, *self.conflicts)

    @property
    def records(self) -> Iterator[HistoryRecord]:
        """The history records of the version and of its conflicts."""
        return (record for version in self.versions for record in version.history)

    def each(self, change: Callable[["Version"], "Version"]) -> "Version":
        """Returns the version with `change` applied to it and to each of its conflicts."""
        return change(self)._replace(conflicts=tuple(map(change, self.conflicts)))


def rank(version: Version) -> tuple[object, ...]:
    """Returns a total order that starts with the winner rule. Versions of equal rank differ in their conflicts only.

    The specifications leave ties. History, deletion mark and content break them, so that every endpoint chooses the
    same version, in whatever order versions arrive (A-43).
    """
    return (
        version.key,
        tuple((stamp.sequence, *stamp.key) for stamp in version.history),
        version.deleted.value,
        version.payload,
        version.noconflicts.value,
        version.extra.attributes,
        version.extra.children,
        tuple((stamp.written, stamp.extra.attributes, stamp.extra.children) for stamp in version.history),
        version.conflict.value,
    )


def highest(versions: Sequence[Version]) -> Version:
    """Returns the version with the highest rank. `rank` is computed for ties only, because the winner rule decides most
    cases.
    """
    best = versions[0]
    for version in versions[1:]:
        ours, theirs = version.key, best.key
        if ours > theirs or (ours == theirs and rank(version) > rank(best)):
            best = version
    return best


def check_name(text: str, what: str, condition: Condition = Condition.BAD_REQUEST) -> str:
    """Returns a valid id of an item or an endpoint (FS-004, FS-007, FS-028). Raises FeedError(condition)."""
    if len(text) > MAX_ID_BYTES:  # a Namespace Specific String is ASCII
        raise FeedError(condition, f"the id of {what} is longer than {MAX_ID_BYTES} bytes")
    if not is_nss(text):
        raise FeedError(condition, f"the id of {what} is not a Namespace Specific String; encode {text[:60]!r}")
    return text


def next_counter(version: Version) -> int:
    """Returns the counter plus one (FS-046, SSE-033). Raises FeedError(NOT_ALLOWED) at the highest number (A-63)."""
    if version.counter >= MAX_NUMBER:
        raise FeedError(
            Condition.NOT_ALLOWED, f"the item's counter is at its maximum, {MAX_NUMBER}; publish a new item"
        )
    return version.counter + 1
