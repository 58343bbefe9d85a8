"""Partial and complete feeds: sx:sharing, and what followers and publishers do with it (FeedSync 4, SSE 2.1).

A feed may contain a window of its items, bounded by `since` and `until`. FeedSync's bounds are texts that grow and are
compared by code point (FS-086); SSE's bounds are dates. sx:sharing is addressed to the requester of the feed and is
never published again (FS-014, A-156).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from smartfeeds.core.times import EPOCH, US_PER_S

DAY_US = 24 * 60 * 60 * US_PER_S
SSE_VERSION = "0.91"


class RelatedKind(Enum):
    """The relation of another feed to this one."""

    COMPLETE = "complete"
    AGGREGATED = "aggregated"


@dataclass(frozen=True, slots=True)
class RelatedFeed:
    """A feed that sx:sharing refers to. `link` is an absolute URI without fragment (FS-018), `title` is plain text.

    `partial` is true if SSE says that the feed starts at some time (SSE-013).
    """

    link: str
    kind: RelatedKind
    title: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Sharing:
    """The statements of a publisher about a feed.

    `since` and `until` are None if absent. For SSE they are dates in the form of `format_bound`, so that bounds of both
    dialects are comparable. `expires_us` is when items may leave the feed, `window_days` how many days of history SSE
    keeps. `version` is that of SSE.
    """

    since: str | None = None
    until: str | None = None
    expires_us: int | None = None
    related: tuple[RelatedFeed, ...] = ()
    version: str = ""
    window_days: int | None = None

    @property
    def complete_link(self) -> str:
        """The address of the complete feed, or an empty text. A link of SSE to a partial feed does not qualify."""
        return next((one.link for one in self.related if one.kind is RelatedKind.COMPLETE and not one.partial), "")

    @property
    def aggregated(self) -> tuple[RelatedFeed, ...]:
        """The feeds of other participants. They are hints for users; the service never subscribes to them by itself
        (FS-021).
        """
        return tuple(one for one in self.related if one.kind is RelatedKind.AGGREGATED)

    def next_read_us(self, now_us: int, interval_us: int) -> int:
        """Returns when to read again: after the interval, but before items expire or leave SSE's window (FS-017,
        SSE-010).

        These times are not calibrated, so the function uses half of the remaining time. An expiry in the
        past has no effect.
        """
        next_us = now_us + interval_us
        if self.window_days is not None:
            next_us = min(next_us, now_us + self.window_days * DAY_US)
        if self.expires_us is not None and self.expires_us > now_us:
            next_us = min(next_us, now_us + (self.expires_us - now_us) // 2)
        return next_us


NO_SHARING = Sharing()


def format_bound(time_us: int) -> str:
    """Returns a time as a bound: RFC 3339 with fixed width, so that bounds sort as texts and parse as dates (A-45,
    FS-087).
    """
    moment = EPOCH + timedelta(microseconds=time_us)
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"


def is_out_of_sync(cached_until: str | None, since: str | None) -> bool:
    """Returns whether items left the feed that this follower has never seen (4.1.2 step 2.1, FS-079).

    Texts are compared by code point, even if a publisher writes numbers of different widths.
    """
    return cached_until is not None and since is not None and since > cached_until


class FollowStep(Enum):
    """The next action of a follower with a document."""

    MERGE = "merge it"
    FETCH = "read the complete feed first"
    REPLACE = "merge it, and report what is not in it"


@dataclass(frozen=True, slots=True)
class FollowDecision:
    """The next action, and the state to store after it. `link` is the address to fetch; `note` is for users."""

    step: FollowStep
    state: "PartialFeedFollower"
    link: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PartialFeedFollower:
    """The state of a follower of a feed that may be partial. It lives as long as the subscription.

    `until` is the bound of the items read, None before the first read. While the complete feed is being fetched,
    `visited` are the links followed so far, and `lost` says that the window had moved on.

    The bound is cleared first, and the complete feed is read next (A-46). A failed fetch loses nothing: the state is
    stored only after everything was read, so the next read starts over.
    """

    until: str | None = None
    visited: frozenset[str] = frozenset()
    lost: bool = False

    @property
    def pending(self) -> bool:
        """Whether the next document is the complete feed."""
        return bool(self.visited)

    def read(self, url: str, sharing: Sharing) -> FollowDecision:
        """Returns the decision about a document that was read completely from `url`."""
        if self.pending:
            return self._read_complete(url, sharing)
        # 4.1.2 step 2.1, or 4.1.1 for the first read
        is_lost = is_out_of_sync(self.until, sharing.since)
        link = sharing.complete_link
        if (is_lost or self.until is None) and link and link != url:
            return FollowDecision(FollowStep.FETCH, PartialFeedFollower(None, frozenset({url, link}), is_lost), link)
        note = "changes may be missing: items left the feed unread, and it names no complete feed" if is_lost else ""
        return FollowDecision(FollowStep.MERGE, PartialFeedFollower(sharing.until or self.until), note=note)

    def _read_complete(self, url: str, sharing: Sharing) -> FollowDecision:
        """Follows one link only: a complete feed that refers to another one is used as it is (A-46)."""
        link = sharing.complete_link
        note = "the complete feed refers to another complete feed, which was not read" if link and link != url else ""
        return FollowDecision(
            FollowStep.REPLACE if self.lost else FollowStep.MERGE, PartialFeedFollower(sharing.until), note=note
        )


@dataclass(frozen=True, slots=True)
class MirroredItem:
    """An item in a mirror: its creator and its last editor according to its history."""

    created_by: str
    changed_by: str


def to_drop(mirror: Mapping[str, MirroredItem], complete: Collection[str], own: str) -> list[str]:
    """Returns the items of a mirror that the publisher dropped, given the complete feed (4.1.2 step 2.1.2 with A-46,
    FS-080).

    `mirror` has the items that came through this subscription only. Items that this endpoint created or changed last
    are never dropped, nor are items in the complete feed. The caller removes nothing (A-150): it counts and reports the
    items.
    """
    present = set(complete)
    return [
        sync_id
        for sync_id, item in mirror.items()
        if sync_id not in present and own not in (item.created_by, item.changed_by)
    ]


@dataclass(frozen=True, slots=True)
class FeedWindow:
    """The bounds of a partial feed that a publisher exports, in microseconds (FeedSync 4.2).

    They apply to an export at the time of the request. The feed itself keeps every item and expires none (A-47, A-150).
    """

    since_us: int
    until_us: int

    def sharing(self, complete_link: str = "") -> Sharing:
        """Returns the sx:sharing of the partial feed (4.2.1, FS-077, FS-081). A complete feed has none (A-47)."""
        related = (RelatedFeed(complete_link, RelatedKind.COMPLETE),) if complete_link else ()
        return Sharing(format_bound(self.since_us), format_bound(self.until_us), None, related)

    def sse_sharing(self, complete_link: str = "") -> Sharing:
        """Returns the same for SSE (2.1, 2.2). The bounds are whole seconds that include the items of this second."""
        since_s, until_s = self.since_us // US_PER_S + 1, -(-self.until_us // US_PER_S)
        bounds = FeedWindow(since_s * US_PER_S, until_s * US_PER_S)
        return replace(bounds.sharing(complete_link), version=SSE_VERSION)
