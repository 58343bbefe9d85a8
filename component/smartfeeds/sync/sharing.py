"""Partial and complete feeds: sx:sharing, and what followers and publishers do with it (FeedSync 4, SSE 2.1).

A feed may contain a window of its items, bounded by `since` and `until`. FeedSync's bounds are texts that grow and are
compared by code point (FS-086); SSE's bounds are dates. A window has its bounds from the first publication on, also
while it has every item: a subscriber compares with the `until` of its last reading (4.1.2), and a document without
bounds would leave it without one. sx:sharing is addressed to the requester of the feed and is never published again
(FS-014, A-156).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from smartfeeds.core.times import EPOCH, US_PER_S

DAY_US = 24 * 60 * 60 * US_PER_S
SSE_VERSION = "0.91"


def format_bound(time_us: int) -> str:
    """Returns a time as a bound: RFC 3339 with fixed width, so that bounds sort as texts and parse as dates (A-45,
    FS-087).
    """
    moment = EPOCH + timedelta(microseconds=time_us)
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"


# The `since` of complete feeds: no item is older.
BEGINNING = format_bound(0)


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
    def is_partial(self) -> bool:
        """Whether the document may lack items that were changed before `since`."""
        return self.since not in (None, BEGINNING)

    @property
    def complete_link(self) -> str:
        """The address of the complete feed, or an empty text. A link of SSE to a partial feed does not qualify."""
        return next((feed.link for feed in self.related if feed.kind is RelatedKind.COMPLETE and not feed.partial), "")

    @property
    def aggregated(self) -> tuple[RelatedFeed, ...]:
        """The feeds of other participants. They are hints for users; the service never subscribes to them by itself
        (FS-021).
        """
        return tuple(feed for feed in self.related if feed.kind is RelatedKind.AGGREGATED)

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


def is_out_of_sync(cached_until: str | None, since: str | None) -> bool:
    """Returns whether items left the feed that this follower has never seen (4.1.2 step 2.1, FS-079).

    Texts are compared by code point, even if a publisher writes numbers of different widths.
    """
    return cached_until is not None and since is not None and since > cached_until


NO_BOUND = "the feed had no bounds at the last read, so its complete feed is read again"


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

    `until` is the bound of the items read, None before the first read. `begun`: the feed was read before. While the
    complete feed is being fetched, `visited` are the links followed so far, and `lost` says that the window had moved
    on.

    The bound is cleared first, and the complete feed is read next (A-46). A failed fetch loses nothing: the state is
    stored only after everything was read, so the next read starts over.
    """

    until: str | None = None
    visited: frozenset[str] = frozenset()
    lost: bool = False
    begun: bool = False

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
            # 4.1.2 would merge the window alone, and lose what left it.
            note = NO_BOUND if self.begun and self.until is None else ""
            state = PartialFeedFollower(None, frozenset({url, link}), is_lost)
            return FollowDecision(FollowStep.FETCH, state, link, note)
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
    """The bounds of a document that a publisher exports, in microseconds of the modified order (FeedSync 4.2).

    `since_us` is the key of the newest change that the document lacks, `until_us` that of the newest change of the
    feed. So if a change left the window unread, `since` exceeds the `until` of the last reading (4.1.2, A-48).

    They apply to an export at the time of the request. The feed itself keeps every item and expires none (A-47, A-150).
    """

    since_us: int
    until_us: int

    @classmethod
    def of_all(cls, created_us: int, last_us: int, *, sse: bool) -> "FeedWindow":
        """Returns the bounds of a window that lacks nothing. `last_us` is the newest key of the feed, -1 without any.

        Both bounds of an empty feed are below the key of its first item, which may have the time of the creation but no
        earlier one: then the clock has stepped back. They follow from that time, so a subscriber of a former feed of
        this name learns that its items are gone.
        """
        first_us = created_us if last_us < 0 else min(created_us, last_us)
        # In SSE the second before that of the first item.
        since_us = first_us - 1 - (US_PER_S if sse else 0)
        return cls(since_us, since_us if last_us < 0 else max(last_us, since_us))

    def sharing(self, complete_link: str = "", *, sse: bool = False) -> Sharing:
        """Returns the sx:sharing of a window (4.2.1, FS-077, FS-081; SSE 2.1, 2.2).

        The bounds of SSE are whole seconds that include the items of this second.
        """
        related = (RelatedFeed(complete_link, RelatedKind.COMPLETE),) if complete_link else ()
        if not sse:
            return Sharing(format_bound(self.since_us), format_bound(self.until_us), None, related)
        since_s = self.since_us // US_PER_S + 1
        until_s = max(since_s, -(-self.until_us // US_PER_S))
        since, until = (format_bound(second * US_PER_S) for second in (since_s, until_s))
        return Sharing(since, until, None, related, SSE_VERSION)

    def complete_sharing(self, *, sse: bool) -> Sharing:
        """Returns the sx:sharing of a complete feed, which leads to no other one (A-46, A-47). It has bounds too: the
        subscriber that has read it needs its `until` (4.1.1 step 4, 4.2.1).
        """
        return replace(self.sharing(sse=sse), since=BEGINNING)
