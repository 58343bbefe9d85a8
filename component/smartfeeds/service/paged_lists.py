"""Reads lists of subscriptions and affiliations in pages (XEP-0060 5.6, 5.7, 8.8.1, 8.9.1 with XEP-0059).

Every entry has a key that never changes. Keys are the UIDs of result sets. A request without a result set gets as many
entries as fit into one stanza; if these are not all, the response has a result set from which the client can continue.
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

FARTHEST = 10_000  # the entries that an index may pass over: they are read
_EXPIRY_BYTES = len(" expiry='2026-12-31T23:59:59.999999Z'")
_NUMBER_DIGITS = 18  # of a number that fits into 64 bits in any case


@dataclass(frozen=True, slots=True)
class PagedList(Generic[K, T]):
    """A list that is read in pages: functions for the key in a UID, the entries of a range with their keys, the
    approximate size of an entry in bytes, and the number of entries.

    The count may be slightly too great. It is not requested if a page shows all entries.
    """

    key: Callable[[str], K]
    read: Callable[[KeyRange[K]], list[tuple[K, T]]]
    size_bytes: Callable[[T], int]
    count: Callable[[], int]


def listed_bytes(*texts: str) -> int:
    """The approximate size of an entry with these texts, in bytes."""
    return sum(map(written_bytes, texts)) + ENTRY_BYTES


def shown_bytes(entry: AffiliationShown | SubscriptionShown) -> int:
    """The approximate size of an entry of one of these lists, in bytes."""
    expires = isinstance(entry, SubscriptionShown) and entry.lease_end_us is not None
    return listed_bytes(entry.node, entry.jid) + _EXPIRY_BYTES * expires


def listing_of(entries: Sequence[T], size_bytes: Callable[[T], int]) -> PagedList[int, T]:
    """A short list that is in memory. The keys are places in it."""

    def read(part: KeyRange[int]) -> list[tuple[int, T]]:
        start = 0 if part.after is None else part.after + 1
        rows = list(enumerate(entries))[start : part.before]
        return rows[-part.limit :] if part.newest else rows[part.offset :][: part.limit]

    return PagedList(number, read, size_bytes, lambda: len(entries))


def page_of(
    listing: PagedList[K, T], page: ResultSetRequest | None, policy: Policy
) -> tuple[tuple[T, ...], ResultSet | None]:
    """The requested entries and their result set. Raises FeedError for an invalid request."""
    page_plan = policy.plan(page)
    if page is None:
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
    """Returns as many of the requested entries as fit into one stanza, without those at the far end."""
    rows = rows[-page_plan.limit :] if page_plan.newest else rows[: page_plan.limit]
    sizes = [listing.size_bytes(entry) for _, entry in rows]
    count_fitting = fitting(reversed(sizes) if page_plan.newest else sizes, page_bytes)
    return rows[-count_fitting:] if page_plan.newest else rows[:count_fitting]


def number(uid: str) -> int:
    """Reads the key in a UID of a list whose keys are numbers. Raises FeedError(ITEM_NOT_FOUND) if it is not one."""
    if not (uid.isascii() and uid.isdecimal() and len(uid) <= _NUMBER_DIGITS):
        raise FeedError(Condition.ITEM_NOT_FOUND, "no page of this list has such a UID")
    return int(uid)
