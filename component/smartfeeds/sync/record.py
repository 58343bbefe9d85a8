"""A version of a shared item, in the words that FeedSync and SSE have in common.

An item is its winning version with the versions that conflict with it. One record serves both dialects: what SSE
calls version and FeedSync updates is `counter`; SSE's history and its updates are one list, in which the k-th record
has the sequence `counter - k`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.text import is_nss
from smartfeeds.errors import Condition, FeedError

MAX_NUMBER = 2**31 - 1
# FeedSync 2.1.3 lets an implementation refuse what goes beyond its bounds (FS-007, A-55).
MAX_HISTORY = 1_000
MAX_CONFLICTS = 100


class Flag(Enum):
    """A boolean attribute as it is written: it is carried on as it came, and only TRUE means true."""

    ABSENT = "absent"
    EMPTY = ""
    FALSE = "false"
    TRUE = "true"

    __hash__ = object.__hash__

    @property
    def on(self) -> bool:
        """Whether it says yes."""
        return self is Flag.TRUE


@dataclass(frozen=True, slots=True)
class Extra:
    """Markup that the dialect does not define and that stays where it is (FS-012).

    `attributes` are pairs of a Clark name and a value; `children` canonical bytes.
    """

    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[bytes, ...] = ()


NO_EXTRA = Extra()


@dataclass(frozen=True, slots=True)
class Edit:
    """Who changes an item here, and when: at least one of them (FS-037); both are better (FS-038).

    `when_us` is microseconds since the epoch, and is kept in whole seconds (A-152); `by` is a Namespace Specific
    String. `shared` says that several people edit under this name, who do not know what the others have seen: the edit
    settles no conflict by itself, and its endpoint is `by` or a branch of it. Raises FeedError(BAD_REQUEST) for another
    `by`, and for neither.
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


@dataclass(frozen=True, slots=True)
class Stamp:
    """One record of a history.

    `when_us` is None where the record has no time, `by` empty where it names no endpoint. `written` is the time as
    the document has it, where this program would spell it otherwise (SSE-032).
    """

    sequence: int
    when_us: int | None = None
    by: str = ""
    written: str = ""
    extra: Extra = NO_EXTRA

    @property
    def key(self) -> tuple[int, int, str]:
        """What winners are picked by after the counter: present beats absent, then later, then greater (FS-008)."""
        return (0, 0, self.by) if self.when_us is None else (1, self.when_us, self.by)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an item. `history` has the newest record first and is never empty.

    `payload` are the canonical bytes of the item without its sync data. `noconflicts` is FeedSync's, `conflict` SSE's.
    `conflicts` are versions that have none themselves; their order means nothing (FS-063, SSE-050).
    """

    sync_id: str
    counter: int
    history: tuple[Stamp, ...]
    payload: bytes = b""
    deleted: Flag = Flag.ABSENT
    noconflicts: Flag = Flag.ABSENT
    conflict: Flag = Flag.ABSENT
    conflicts: tuple["Version", ...] = ()
    extra: Extra = NO_EXTRA

    @property
    def top(self) -> Stamp:
        """The newest record."""
        return self.history[0]

    @property
    def key(self) -> tuple[int, int, int, str]:
        """What both documents pick the winner by (FS-067, SSE-038)."""
        return (self.counter, *self.history[0].key)


def rank(version: Version) -> tuple[object, ...]:
    """A total order that begins with the winner rule: versions of equal rank are the same but for their conflicts.

    A-43: where the documents leave a tie, history, deleted mark and content decide, so that every endpoint picks the
    same version whatever order versions meet in.
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
    """The version of the highest rank. Most are decided by the winner rule, which is all that is looked at then."""
    best = versions[0]
    for version in versions[1:]:
        ours, theirs = version.key, best.key
        if ours > theirs or (ours == theirs and rank(version) > rank(best)):
            best = version
    return best


def check_name(text: str, what: str) -> None:
    """Raises FeedError(BAD_REQUEST) unless `text` may be an id of an item or an endpoint (FS-004, FS-007, FS-028)."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"the id of {what} is longer than {MAX_ID_BYTES} bytes")
    if not is_nss(text):
        raise FeedError(
            Condition.BAD_REQUEST, f"the id of {what} is no Namespace Specific String: {text[:60]!r} has to be encoded"
        )


def next_counter(version: Version) -> int:
    """One more (FS-046, SSE-033). Raises FeedError(NOT_ALLOWED) where there is no such number (A-63)."""
    if version.counter >= MAX_NUMBER:
        raise FeedError(Condition.NOT_ALLOWED, "the item was changed too often: its counter has no next value")
    return version.counter + 1
