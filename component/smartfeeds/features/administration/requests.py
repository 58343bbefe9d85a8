"""Requests of admins: the admins, the counts of the service and of a user, and the addresses for an announcement
(XEP-0133; OPS-060, OPS-063).

All of them are reads, and raise FeedError(FORBIDDEN) for others.
"""

from dataclasses import dataclass

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.service.context import Context, expired_count
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.standing import check_admin
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx

ITEMS_EXAMINED = 5_000  # by one request, which takes some 10 ms; other reads wait for it


@dataclass(frozen=True, slots=True)
class GetAdmins(Request):
    """The admins of the service."""


@dataclass(frozen=True, slots=True)
class AdminList(Answer):
    """The bare JIDs of `pubsub.admins`, in their order."""

    jids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GetUserStatistics(Request):
    """The counts of a user. `jid` is bare."""

    jid: str


@dataclass(frozen=True, slots=True)
class UserStatistics(Answer):
    """The counts of a user. `nodes` are those that the user owns, and `affiliations` includes these.

    `contacts` are the addresses of this service that know the presence of the user.
    """

    nodes: int
    affiliations: int
    subscriptions: int
    tokens: int
    sessions: int
    contacts: int


@dataclass(frozen=True, slots=True)
class CountItems(Request):
    """Counts the items of a user among the next items of the store.

    `jid` is bare. `after_no` is 0 in the first request, then that of the answer before.
    """

    jid: str
    after_no: int


@dataclass(frozen=True, slots=True)
class ItemCount(Answer):
    """The result for a part of the store. `items` are live items of the user, `examined` all items that were read.

    `after_no` is for the next request, None at the end of the store.
    """

    items: int
    examined: int
    after_no: int | None


def get_admins(_tx: ReadTx, context: Context, request: GetAdmins) -> AdminList:
    """The admins. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    return AdminList(tuple(sorted(context.policy.admins)))


def get_user_statistics(tx: ReadTx, context: Context, request: GetUserStatistics) -> UserStatistics:
    """The counts of a user. The cost grows with them. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    jid = request.jid
    return UserStatistics(
        nodes=tx.owned_count(jid),
        affiliations=len(tx.affiliations_of(jid)),
        subscriptions=tx.subscribed_by(jid),
        tokens=len(account_rows.tokens_of(tx, jid)),
        sessions=len(account_rows.sessions_of(tx, jid)),
        contacts=len(tx.contact_keys(jid)),
    )


def count_items(tx: ReadTx, context: Context, request: CountItems) -> ItemCount:
    """Counts the items of a user among the next items of the store. Raises FeedError(FORBIDDEN).

    This reads the items themselves. An index of publishers would cost time in each publish, and admins seldom ask.
    """
    check_admin(context.policy, request.actor)
    return ItemCount(*tx.published_after(request.jid, request.after_no, ITEMS_EXAMINED))


@dataclass(frozen=True, slots=True)
class CountStore(Request):
    """The size of the store, for admins."""


@dataclass(frozen=True, slots=True)
class StoreCounts(Answer):
    """The numbers of nodes, items, tombstones, and subscriptions in state subscribed."""

    nodes: int
    items: int
    deleted: int
    subscriptions: int


def count_store(tx: ReadTx, context: Context, request: CountStore) -> StoreCounts:
    """The size of the store. The cost grows with the number of nodes. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    items, deleted, subscriptions = tx.totals()
    expired = sum(expired_count(tx, context, node) for node in tx.expiring(0, NO_LIMIT))
    return StoreCounts(tx.node_count(), items - expired, deleted + expired, subscriptions)


@dataclass(frozen=True, slots=True)
class ListAddresses(Request):
    """The bare JIDs of all owners of nodes, or of all subscribers, after the JID `after`, for an announcement."""

    owners: bool
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class AddressList(Answer):
    """Bare JIDs in ascending order, without repetitions."""

    addresses: tuple[str, ...]


def list_addresses(tx: ReadTx, context: Context, request: ListAddresses) -> AddressList:
    """The bare JIDs of owners or subscribers. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    return AddressList(tuple(tx.addresses(owners=request.owners, after=request.after, limit=request.limit)))


USE_CASES = UseCases(
    reads={
        GetAdmins: ("get_admins", get_admins),
        GetUserStatistics: ("get_user_statistics", get_user_statistics),
        CountItems: ("count_items", count_items),
        CountStore: ("count_store", count_store),
        ListAddresses: ("list_addresses", list_addresses),
    }
)
