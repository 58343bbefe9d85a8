"""Partial and complete feeds: what sx:sharing says, what followers and publishers do (FeedSync 4, SSE 2.1).

A feed may hold a window of its items only; `since` and `until` bound it. FeedSync's bounds are texts that grow and
compare by code point (FS-086); SSE's are dates. What a publisher says in sx:sharing is meant for whoever asked for
the feed, and is never published again (FS-014, A-156).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from smartfeeds.core.times import US_PER_S

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 24 * 60 * 60 * US_PER_S


class RelatedKind(Enum):
    """What a related feed is."""

    COMPLETE = "complete"
    AGGREGATED = "aggregated"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Related:
    """A feed that sx:sharing refers to; `link` is an absolute URI without a fragment (FS-018). `title` is plain text.

    `partial` is true where SSE says that it begins at some time (SSE-013).
    """

    link: str
    kind: RelatedKind
    title: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a publisher says of a feed.

    `since` and `until` are None where they are not said; in SSE they are the dates as `format_bound` writes them, so
    that bounds of both dialects compare alike. `expires_us` is when something may leave the feed, `window_days` how
    many days SSE keeps of its history. `version` is SSE's.
    """

    since: str | None = None
    until: str | None = None
    expires_us: int | None = None
    related: tuple[Related, ...] = ()
    version: str = ""
    window_days: int | None = None

    @property
    def complete_link(self) -> str:
        """Where the complete feed is; empty where nothing is said. SSE's links may name a part, which is no help."""
        return next((one.link for one in self.related if one.kind is RelatedKind.COMPLETE and not one.partial), "")

    @property
    def aggregated(self) -> tuple[Related, ...]:
        """The feeds of other participants: hints for people, never subscribed to by themselves (FS-021)."""
        return tuple(one for one in self.related if one.kind is RelatedKind.AGGREGATED)

    def next_read_us(self, now_us: int, interval_us: int) -> int:
        """When to read again: after the interval, but before something expires or leaves SSE's window.

        FS-017, SSE-010. Half of what is left is kept as a margin, because these times are not calibrated; what has
        expired already changes nothing.
        """
        next_us = now_us + interval_us
        if self.window_days is not None:
            next_us = min(next_us, now_us + self.window_days * DAY_US)
        if self.expires_us is not None and self.expires_us > now_us:
            next_us = min(next_us, now_us + (self.expires_us - now_us) // 2)
        return next_us


NOT_SAID = Sharing()


def format_bound(time_us: int) -> str:
    """A time as a bound: RFC 3339 of fixed width, so that it compares as a text and reads as a date (A-45, FS-087)."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"


def is_out_of_sync(cached_until: str | None, since: str | None) -> bool:
    """4.1.2 step 2.1: whether something left the feed that this follower has never seen (FS-079).

    Texts are compared by code point, also where a publisher writes numbers of different width.
    """
    return cached_until is not None and since is not None and since > cached_until


class Step(Enum):
    """What a follower does with the document that it just read."""

    MERGE = "merge it"
    FETCH = "read the complete feed first"
    REPLACE = "merge it, and tell what is not in it"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and the state to keep once that is done. `link` is what to fetch; `note` is for people."""

    step: Step
    state: "Follower"
    link: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Follower:
    """A follower of one feed that may be partial. It lives as long as the subscription.

    `until` is the bound of what it has, None before the first read. `pending` holds while the complete feed is being
    fetched: `visited` are the links followed so far, and `lost` says that the window had moved on.

    A-46: the cached bound is forgotten first, and the complete feed is read and checked next. A failed fetch loses
    nothing: the state is kept once all was read, so the next read starts over.
    """

    until: str | None = None
    visited: frozenset[str] = frozenset()
    lost: bool = False

    @property
    def pending(self) -> bool:
        """Whether the document to come is the complete feed."""
        return bool(self.visited)

    def read(self, url: str, sharing: Sharing) -> Decision:
        """The decision about a document that was read whole and without a fault from `url`."""
        if self.pending:
            return self._read_complete(url, sharing)
        # 4.1.2 step 2.1, or 4.1.1 on the first read
        lost = is_out_of_sync(self.until, sharing.since)
        link = sharing.complete_link
        if (lost or self.until is None) and link and link != url:
            return Decision(Step.FETCH, Follower(None, frozenset({url, link}), lost), link)
        note = "the feed moved on and names no complete feed: changes may be missing" if lost else ""
        return Decision(Step.MERGE, Follower(sharing.until or self.until), note=note)

    def _read_complete(self, url: str, sharing: Sharing) -> Decision:
        """One hop is enough: a complete feed that refers to another is taken as it is (A-46)."""
        link = sharing.complete_link
        note = "the complete feed refers to another one, which is not followed" if link and link != url else ""
        return Decision(Step.REPLACE if self.lost else Step.MERGE, Follower(sharing.until), note=note)


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of an item in a mirror: who made it and who changed it last, as far as its history says."""

    created_by: str
    changed_by: str


def to_drop(mirror: Mapping[str, Held], complete: Collection[str], own: str) -> list[str]:
    """4.1.2 step 2.1.2 as A-46 reads it: which items of a mirror the publisher dropped, now that the complete feed is
    here (FS-080).

    `mirror` are the items that came by this subscription alone. What this endpoint made or changed last is none of
    them, nor is what the complete feed holds. Nothing is dropped here (A-150): the mirror counts them and tells.
    """
    held = set(complete)
    return [
        sync_id
        for sync_id, item in mirror.items()
        if sync_id not in held and own not in (item.created_by, item.changed_by)
    ]


@dataclass(frozen=True, slots=True)
class Window:
    """A publisher's bounds of a partial feed, in microseconds (FeedSync 4.2).

    They are those of an export, made when it is asked for. The feed itself keeps everything: nothing is removed from
    it, and nothing it says expires (A-47, A-150).
    """

    since_us: int
    until_us: int

    def sharing(self, complete_link: str = "") -> Sharing:
        """4.2.1: what the partial feed says of itself (FS-077, FS-081). A complete feed says nothing (A-47)."""
        related = (Related(complete_link, RelatedKind.COMPLETE),) if complete_link else ()
        return Sharing(format_bound(self.since_us), format_bound(self.until_us), None, related)
