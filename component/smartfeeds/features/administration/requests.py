"""The reads of the store for admins: the admins, the counts of the service and of one user, and all addresses
(XEP-0133; OPS-060, OPS-063)."""

from dataclasses import dataclass

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.service.context import Context, expired_count
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.standing import check_admin
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx

ITEMS_EXAMINED = 5_000  # by one request: some 10 ms, in which other reads wait


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
    """The counts of a bare JID and its resources. `nodes` are those that it owns, `affiliations` includes these."""

    nodes: int
    affiliations: int
    subscriptions: int
    tokens: int
    sessions: int
    contacts: int


@dataclass(frozen=True, slots=True)
class CountItems(Request):
    """Counts the items of a user among the next items of the store. `jid` is bare; `after_no` is 0 for the first
    items."""

    jid: str
    after_no: int


@dataclass(frozen=True, slots=True)
class ItemCount(Answer):
    """The number of live items of the user, that of the items that were read, and the number after which the next items
    begin; None at the end."""

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

    There is no index of publishers: each publish would pay for it, and admins ask for it once a month.
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
    """The bare JIDs of owners, or else of subscribers, behind a JID, for an announcement by an admin."""

    owners: bool
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class AddressList(Answer):
    """Bare JIDs in their order, each once."""

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
