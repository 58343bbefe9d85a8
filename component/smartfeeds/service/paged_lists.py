"""Reads lists in pages (XEP-0059), such as those of subscriptions and affiliations (XEP-0060 5.6, 5.7, 8.8.1, 8.9.1).

Every entry has a key that never changes. Its text is the UID of the entry in result sets. A request without a result
set gets as many entries as fit into one stanza. If these are not all, the response has a result set, from which the
client can continue.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from smartfeeds.core.model import K, KeyRange
from smartfeeds.core.page import PagePlan, ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Policy
from smartfeeds.service.pulls import ENTRY_BYTES, fitting, written_bytes
from smartfeeds.service.requests import AffiliationShown, ResultSet, SubscriptionShown

T = TypeVar("T")

FARTHEST = 10_000  # the greatest index of a page: the store reads all entries before it
_EXPIRY_BYTES = len(" expiry='2026-12-31T23:59:59.999999Z'")
_NUMBER_DIGITS = 18  # every number of so many digits fits into the 64 bits of a column


@dataclass(frozen=True, slots=True)
class PagedList(Generic[K, T]):
    """The functions that read a list."""

    key: Callable[[str], K]
    """Returns the key in a UID. Raises FeedError(ITEM_NOT_FOUND)."""
    read: Callable[[KeyRange[K]], list[tuple[K, T]]]
    """Returns the entries of a range with their keys."""
    size_bytes: Callable[[T], int]
    """Returns the approximate size of an entry in a stanza."""
    count: Callable[[], int]
    """Returns the number of entries, or slightly more. It is not called if a page shows all entries."""


def listed_bytes(*texts: str) -> int:
    """The approximate size of an entry with these texts, in bytes."""
    return sum(map(written_bytes, texts)) + ENTRY_BYTES


def shown_bytes(entry: AffiliationShown | SubscriptionShown) -> int:
    """The approximate size of an affiliation or subscription, in bytes."""
    expires = isinstance(entry, SubscriptionShown) and entry.lease_end_us is not None
    return listed_bytes(entry.node, entry.jid) + _EXPIRY_BYTES * expires


def listing_of(entries: Sequence[T], size_bytes: Callable[[T], int]) -> PagedList[int, T]:
    """A short list that is in memory. The keys are the indexes of its entries."""

    def read(part: KeyRange[int]) -> list[tuple[int, T]]:
        start = 0 if part.after is None else part.after + 1
        rows = list(enumerate(entries))[start : part.before]
        return rows[-part.limit :] if part.newest else rows[part.offset :][: part.limit]

    return PagedList(number_in, read, size_bytes, lambda: len(entries))


def page_of(
    listing: PagedList[K, T], page: ResultSetRequest | None, policy: Policy
) -> tuple[tuple[T, ...], ResultSet | None]:
    """The requested entries and their result set. Raises FeedError for an invalid request."""
    page_plan = policy.plan(page)
    if page is None:
        # No more entries than this fit into a stanza, because each takes at least ENTRY_BYTES.
        page_plan = PagePlan(policy.page_bytes // ENTRY_BYTES + 1)
    if page_plan.offset > FARTHEST:
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, f"an index goes up to {FARTHEST}: page on after a UID")
    if not page_plan.limit:
        return (), ResultSet(listing.count())
    after, before = (None if uid is None else listing.key(uid) for uid in (page_plan.after, page_plan.before))
    rows = listing.read(KeyRange(page_plan.limit + 1, after, before, page_plan.newest, page_plan.offset))
    page_rows = _within(listing, rows, page_plan, policy.page_bytes)
    more = len(page_rows) < len(rows)
    entries = tuple(entry for _, entry in page_rows)
    if page is None and not more:
        return entries, None
    if not page_rows:
        return (), ResultSet(listing.count())
    from_start = page_plan.after is None and not page_plan.newest
    index = page_plan.offset if from_start else None
    count = page_plan.offset + len(page_rows) if from_start and not more else listing.count()
    return entries, ResultSet(count, str(page_rows[0][0]), str(page_rows[-1][0]), index)


def _within(
    listing: PagedList[K, T], rows: list[tuple[K, T]], page_plan: PagePlan, page_bytes: int
) -> list[tuple[K, T]]:
    """Returns the requested entries that fit into one stanza. They begin at the end of the range that is read first."""
    rows = rows[-page_plan.limit :] if page_plan.newest else rows[: page_plan.limit]
    sizes = [listing.size_bytes(entry) for _, entry in rows]
    count_fitting = fitting(reversed(sizes) if page_plan.newest else sizes, page_bytes)
    return rows[-count_fitting:] if page_plan.newest else rows[:count_fitting]


def number_in(uid: str) -> int:
    """Returns the key in a UID of a list whose keys are numbers. Raises FeedError(ITEM_NOT_FOUND) for other UIDs."""
    if not (uid.isascii() and uid.isdecimal() and len(uid) <= _NUMBER_DIGITS):
        raise FeedError(Condition.ITEM_NOT_FOUND, "no page of this list has such a UID")
    return int(uid)
