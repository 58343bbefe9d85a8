"""Administration of sources by requests: owners manage those of their nodes, admins all (SRC-083, SRC-084)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import ALL_NUMBERS, NO_LIMIT, Affiliation, Node
from smartfeeds.core.options import AccessModel
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling import sources
from smartfeeds.features.polling.polls import paused, resumed
from smartfeeds.features.polling.push_states import SourcePush
from smartfeeds.features.polling.source import NO_SETTINGS, Source, SourceSettings, new_source
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.nodes import add_node, may_create
from smartfeeds.service.paged_lists import listed_bytes, listing_of, page_of
from smartfeeds.service.requests import Answer, NodeRequest, Request
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.standing import manages
from smartfeeds.service.subscriptions import check_quotas
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import N_


class MayNotAddError(FeedError):
    """A user may not add feeds of other servers to the service (SRC-084)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Condition.FORBIDDEN, N_("this service does not let you add feeds of other servers"))


@dataclass(frozen=True, slots=True)
class ListSources(ListRequest):
    """The sources of the nodes that the actor manages, by number."""


class SourceStatus(NamedTuple):
    """A source, and its subscription at a hub or cloud."""

    source: Source
    push: SourcePush | None = None


@dataclass(frozen=True, slots=True)
class AddSource(NodeRequest):
    """Adds a source to a node. Only admins may choose settings that concern the network of the service. With
    `may_create` a missing node is created for the actor; without a name it is a node of this feed alone. `subscriber`
    is who subscribes to the node next: if quotas forbid that, neither node nor source remain."""

    url: str = ""
    settings: SourceSettings = NO_SETTINGS
    may_create: bool = False
    subscriber: Jid | None = None


@dataclass(frozen=True, slots=True)
class FindSourceNode(Request):
    """Asks which open node has the feed at an address already, for users who may add it otherwise. `is_site`: or the
    feed of the site at this address, which the service does not request."""

    url: str
    is_site: bool = False


@dataclass(frozen=True, slots=True)
class SourceNode(Answer):
    """The name of the node, "" if there is none."""

    node: str


@dataclass(frozen=True, slots=True)
class EndUnreadSources(NodeRequest):
    """Removes the sources that the actor has added to a node, if nobody subscribes to the node any more."""


@dataclass(frozen=True, slots=True)
class SourcesEnded(Answer):
    """The number of sources that were removed."""

    count: int


class SourceAction(Enum):
    """An action of a user on a source."""

    REMOVE = "remove"
    POLL = "poll"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class ChangeSource(Request):
    """Removes, polls, pauses or resumes a source."""

    source_no: int
    action: SourceAction


@dataclass(frozen=True, slots=True)
class SourceShown(Answer):
    """A source after a change."""

    source: Source


def list_sources(tx: ReadTx, context: Context, request: ListSources) -> ListAnswer[SourceStatus]:
    """Sources with their state. The cost grows with the number of the actor's nodes, for admins of all sources."""
    if is_admin(context.policy, request.actor):
        rows = source_rows.sources(tx, 0, NO_LIMIT)
    else:
        owned = tx.affiliations_of(request.actor.bare_text, ALL_NUMBERS, kind=Affiliation.OWNER)
        rows = [row for node, _ in owned for row in source_rows.sources_of(tx, node.name)]
    listing = listing_of(rows, lambda row: listed_bytes(row.node, row.url))
    page_rows, result_set = page_of(listing, request.page, context.policy)
    return ListAnswer(tuple(map(SourceStatus, page_rows)), result_set)


def add_source(tx: WriteTx, context: Context, request: AddSource) -> SourceShown:
    """Adds a source to a node of the actor.

    Raises FeedError: FORBIDDEN unless the actor manages the node, NOT_ACCEPTABLE if the source is refused,
    POLICY_VIOLATION if the actor has too many, and the errors of `nodes.add_node` and `subscriptions.check_quotas`.
    """
    by_admin = is_admin(context.policy, request.actor)
    node = request.node or ""
    if not node and request.may_create:

        def in_node_of_actor() -> Source:
            source = new_source(request.url, request.url, context.now_us, request.settings)
            return sources.in_own_node(tx, source, lambda node: manages(tx, context, request.actor, node))

        node = _accepted(in_node_of_actor).node
    if request.may_create and tx.node(node) is None:
        add_node(tx, context, request.actor, node, None)
    if not manages(tx, context, request.actor, tx.node(node)):
        raise FeedError(Condition.FORBIDDEN, f"only owners of the node {node} may add sources to it")
    if request.subscriber is not None:
        check_quotas(tx, context, request.subscriber, node)
    settings = request.settings
    if not by_admin and (settings.allow_private or settings.publisher):
        raise FeedError(Condition.FORBIDDEN, "only admins may choose the publisher or allow private networks")

    def work() -> Source:
        owner = "" if by_admin else request.actor.bare_text
        return sources.add_source(tx, context, new_source(node, request.url, context.now_us, settings, owner=owner))

    return SourceShown(_accepted(work))


def find_source_node(tx: ReadTx, context: Context, request: FindSourceNode) -> SourceNode:
    """The oldest open node that has the whole feed at an address.

    Raises MayNotAddError if there is none and the actor may not create a node for it. So the service requests no
    address for a stranger (SRC-084).
    """
    may_add = may_create(context, request.actor)
    node = open_node_of(tx, sources.sources_of_feed(tx, request.url))
    if node is None and (request.is_site or not may_add):
        node = open_node_of(tx, sources.sources_of_site(tx, request.url))
    if node is not None:
        return SourceNode(node.name)
    if not may_add:
        raise MayNotAddError
    return SourceNode("")


def open_node_of(tx: ReadTx, rows: Iterable[Source]) -> Node | None:
    """Returns the first open node that has the whole feed of one of these sources."""
    for source in rows:
        node = tx.node(source.node)
        is_whole = not source.settings.only and not source.settings.user
        if is_whole and node is not None and node.options.access_model is AccessModel.OPEN:
            return node
    return None


def end_unread_sources(tx: WriteTx, context: Context, request: EndUnreadSources) -> SourcesEnded:
    """Removes the actor's sources of a node without subscriptions over XMPP, the hub and the cloud."""
    node = tx.node(request.node or "")
    if node is None or tx.subscription_count(node.node_no):
        return SourcesEnded(0)
    if callback_rows.has_any(tx, node.node_no):
        return SourcesEnded(0)
    owner = request.actor.bare_text
    rows = [row for row in source_rows.sources_of(tx, node.name) if row.owner == owner and not row.configured]
    for row in rows:
        sources.remove_source(tx, context, row)
    return SourcesEnded(len(rows))


def change_source(tx: WriteTx, context: Context, request: ChangeSource) -> SourceShown:
    """Changes a source of a node of the actor.

    Raises FeedError: ITEM_NOT_FOUND if there is none, or it is not theirs; NOT_ACCEPTABLE if it may not be changed.
    """
    source = source_rows.source(tx, request.source_no)
    if source is None or not manages(tx, context, request.actor, tx.node(source.node)):
        raise FeedError(Condition.ITEM_NOT_FOUND, f"there is no source {request.source_no}")
    row = source

    def work() -> Source:
        match request.action:
            case SourceAction.REMOVE:
                sources.remove_source(tx, context, row)
                return row
            case SourceAction.POLL:
                return sources.poll_now(tx, context, row)
            case SourceAction.RESUME:
                return sources.change_source(tx, context, row, resumed)
            case SourceAction.PAUSE:
                by = request.actor.bare_text
                return sources.change_source(tx, context, row, lambda row, now_us: paused(row, by, now_us))

    return SourceShown(_accepted(work))


def _accepted(work: Callable[[], Source]) -> Source:
    try:
        return work()
    except ConfigError as error:
        raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None


USE_CASES: Final = UseCases(
    reads={
        ListSources: ("list_sources", list_sources),
        FindSourceNode: ("find_source_node", find_source_node),
    },
    writes={
        AddSource: ("add_source", add_source),
        ChangeSource: ("change_source", change_source),
        EndUnreadSources: ("end_unread_sources", end_unread_sources),
    },
)
