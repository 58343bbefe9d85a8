"""The admins of the service, and the counts of one user, for admins (XEP-0133; OPS-060, OPS-063)."""

from dataclasses import dataclass

from smartfeeds.features.administration.administrators import check_admin
from smartfeeds.service.context import Context
from smartfeeds.service.requests import Answer, Request
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
    """What a bare JID and its resources have here. `nodes` are those that it owns, `affiliations` includes these."""

    nodes: int
    affiliations: int
    subscriptions: int
    tokens: int
    sessions: int
    contacts: int


@dataclass(frozen=True, slots=True)
class CountItems(Request):
    """How many of the next items a user has published. `jid` is bare; `after_no` is 0 for the first items."""

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
        tokens=len(tx.tokens_of(jid)),
        sessions=len(tx.sessions_of(jid)),
        contacts=len(tx.contact_keys(jid)),
    )


def count_items(tx: ReadTx, context: Context, request: CountItems) -> ItemCount:
    """Counts the items of a user among the next items of the store. Raises FeedError(FORBIDDEN).

    There is no index of publishers: each publish would pay for it, and admins ask for it once a month.
    """
    check_admin(context.policy, request.actor)
    return ItemCount(*tx.published_after(request.jid, request.after_no, ITEMS_EXAMINED))
