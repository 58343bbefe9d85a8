"""Use cases of the replies of guests: sending one, listing those that wait, and deciding.

A decision publishes the item and ends the wait in one transaction, so no reply is published twice or lost, whatever is
killed, and however many owners decide at the same moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from smartfeeds.core.access import Access
from smartfeeds.core.jid import ANONYMOUS, Jid, parse_jid
from smartfeeds.core.model import Affiliation, KeyRange, Node
from smartfeeds.core.options import GUESTS_WITH_APPROVAL, NodeKind
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.urls import GUESTS, feed_path
from smartfeeds.core.view import BARE
from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding import rows
from smartfeeds.features.embedding.guests import (
    DECIDED_S,
    MAX_TARGET_BYTES,
    MOST_WAITING,
    WAITING_DAYS,
    GuestReply,
    QueuePlace,
    ReplyState,
    clean_name,
    clean_text,
    entry_of,
    is_news,
    reference_of,
)
from smartfeeds.formats.entry import ReplyReference
from smartfeeds.service.context import Context, Hooks, LocatedNode, Personal, locate_for, lock_located, no_such_node
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.personal import MENTION, PersonalTable
from smartfeeds.service.publishing import publish
from smartfeeds.service.replies import Answered, find_named, reference_to
from smartfeeds.service.requests import Answer, NodeRequest, Publish
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.service.subscription_states import is_subscriber
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import N_

MOST_DECIDED = 50  # replies that one transaction publishes or refuses: other writes wait meanwhile
MOST_TOLD = 100  # owners and publishers of a feed, of whom those who follow it hear of its queue: each is looked up
STEP = 500  # replies that one transaction removes


@dataclass(frozen=True, slots=True)
class SubmitReply(NodeRequest):
    """Puts a reply into the queue of a feed. A reply with the same id changes nothing."""

    reply_id: str
    name: str
    text: str
    target: str


@dataclass(frozen=True, slots=True)
class QueueNews:
    """News of a queue: its newest reply, and how many wait. `people` are those who hear of it, `page` is the address of
    the page on which they decide, "" without one."""

    node: Node
    reply: GuestReply
    count: int
    people: tuple[Jid, ...]
    page: str


@dataclass(frozen=True, slots=True)
class ReplyStored(Answer):
    """A reply is in the queue. `news` is None if those who decide have heard of the queue."""

    news: QueueNews | None = None


@dataclass(frozen=True, slots=True)
class ListReplies(NodeRequest):
    """The replies to a feed that wait. With `base_url`, that of the site over HTTP, also the entries that they answer.
    `decided` is the id of a reply about which the actor wants to know how it was decided."""

    base_url: str | None = None
    decided: str = ""


@dataclass(frozen=True, slots=True)
class CountReplies(NodeRequest):
    """The number of replies to a feed that wait for the actor to decide."""


@dataclass(frozen=True, slots=True)
class ReplyCount(Answer):
    """The number of replies that wait, 0 for an actor who may not decide."""

    count: int


@dataclass(frozen=True, slots=True)
class ReplyList(Answer):
    """Replies, oldest first."""

    node: Node
    replies: tuple[GuestReply, ...]
    answered: Mapping[ReplyReference, Answered] = field(default_factory=dict)
    decided: GuestReply | None = None


@dataclass(frozen=True, slots=True)
class DecideReplies(NodeRequest):
    """Publishes replies, and refuses others. `refuse_to` is the place of the last reply that the actor has seen, and
    refuses every other one up to it: a reply that came meanwhile waits until somebody has read it. `base_url` is that
    of the site, "" for the one that the operator has set."""

    approve: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    refuse_to: QueuePlace | None = None
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class RepliesDecided(Answer):
    """The number of replies that this request has published and refused. Others had decided the rest."""

    approved: int
    refused: int


def submit(tx: WriteTx, context: Context, request: SubmitReply) -> ReplyStored:
    """Stores a reply. Raises FeedError."""
    located = _located(tx, context, request)
    located.check_read()
    if not takes_guests(located.node):
        raise FeedError(Condition.FORBIDDEN, N_("This feed takes no replies from guests."))
    if len(request.target.encode("utf-8", "surrogatepass")) > MAX_TARGET_BYTES or not is_xml_text(request.target):
        raise FeedError(Condition.BAD_REQUEST, N_("This frame answers something that has no valid address."))
    name, text = clean_name(request.name), clean_text(request.text)
    node = lock_located(tx, located)
    if rows.reply(tx, request.reply_id) is not None:
        return ReplyStored()
    times_us = rows.waiting_times(tx, node.node_no)
    if len(times_us) >= MOST_WAITING:
        raise FeedError(Condition.BUSY, N_("Too many replies wait for approval here. Try again on another day."))
    expires_us = context.now_us + WAITING_DAYS * 86_400 * US_PER_S
    texts = (name, text, request.target)
    reply = GuestReply(request.reply_id, node.node_no, ReplyState.WAITING, *texts, context.now_us, expires_us)
    rows.put(tx, reply)
    if not is_news(times_us, context.now_us):
        return ReplyStored()
    base_url = context.policy.base_url
    page = f"{base_url}{feed_path(node.name, folder=GUESTS)}" if base_url else ""
    return ReplyStored(QueueNews(node, reply, len(times_us) + 1, _people(tx, context, node), page))


def _people(tx: ReadTx, context: Context, node: Node) -> tuple[Jid, ...]:
    """Those who hear of the queue of a node: of those who may decide its creator, and everybody who follows it.

    An owner can appoint any JID, and be the guest, too. That must not bring the words of the guest to a person who did
    not choose the feed (as with `notify_sub`).
    """
    kinds = (Affiliation.OWNER, Affiliation.PUBLISHER)
    first: KeyRange[str] = KeyRange(MOST_TOLD)
    appointed = [jid for kind in kinds for jid, _ in tx.affiliations(node.node_no, first, kind=kind)][:MOST_TOLD]
    people = (jid for jid in appointed if jid == node.creator or is_subscriber(tx, context, node, jid))
    return tuple(filter(None, map(parse_jid, people)))


def takes_guests(node: Node) -> bool:
    """Whether guests may reply to a node."""
    return node.kind is NodeKind.FEED and node.options.guest_replies == GUESTS_WITH_APPROVAL


def list_replies(tx: ReadTx, context: Context, request: ListReplies) -> ReplyList:
    """The replies that wait, also if guests may reply no more. Raises FeedError."""
    located = _located(tx, context, request)
    _check_moderator(located.access)
    node = located.node
    replies = tuple(rows.waiting(tx, node.node_no))
    answered: Mapping[ReplyReference, Answered] = {}
    if request.base_url is not None:
        references = filter(None, map(reference_of, replies))
        answered = find_named(tx, context, request.actor, node, references, request.base_url)
    is_id = bool(request.decided) and is_xml_text(request.decided)  # PostgreSQL takes no other text
    decided = rows.reply(tx, request.decided) if is_id else None
    if decided is not None and (decided.node_no != node.node_no or decided.state is ReplyState.WAITING):
        decided = None
    return ReplyList(node, replies, answered, decided)


def count_replies(tx: ReadTx, context: Context, request: CountReplies) -> ReplyCount:
    """Counts the replies that wait. Raises FeedError."""
    located = locate_for(tx, context, request.node, request.actor)
    return ReplyCount(rows.waiting_count(tx, located.node.node_no) if _may_decide(located.access) else 0)


def decide(tx: WriteTx, context: Context, request: DecideReplies) -> RepliesDecided:
    """Publishes and refuses replies. The item belongs to the actor, who answers for it. Raises FeedError."""
    located = _located(tx, context, request)
    _check_moderator(located.access)
    if len(request.approve) + len(request.refuse) > MOST_DECIDED or set(request.approve) & set(request.refuse):
        raise FeedError(Condition.BAD_REQUEST, f"a decision is about at most {MOST_DECIDED} replies, each once")
    node = lock_located(tx, located)
    refuse = request.refuse
    approved = [
        _decide(tx, context, node, reply_id, ReplyState.APPROVED) for reply_id in dict.fromkeys(request.approve)
    ]
    for reply in filter(None, approved):
        # With the rights of the guest, who chose what the answer names.
        base_url = request.base_url or context.policy.base_url
        answered = reference_to(tx, context, ANONYMOUS, node, reply.target, base_url)
        draft = draft_of(entry_of(reply, answered))
        publish(tx, context, Publish(request.actor, request.service, node.name, reply.item_id, draft, may_create=False))
    if request.refuse_to is not None:
        seen = (reply.reply_id for reply in rows.waiting(tx, node.node_no) if reply.place <= request.refuse_to)
        refuse = (*refuse, *seen)
    refused = [_decide(tx, context, node, reply_id, ReplyState.REFUSED) for reply_id in dict.fromkeys(refuse)]
    return RepliesDecided(len(list(filter(None, approved))), len(list(filter(None, refused))))


def _decide(tx: WriteTx, context: Context, node: Node, reply_id: str, state: ReplyState) -> GuestReply | None:
    """Ends the wait of a reply, and returns it. None if the same was decided before. Raises FeedError."""
    reply = rows.reply(tx, reply_id)
    if reply is None or reply.node_no != node.node_no:
        raise FeedError(Condition.ITEM_NOT_FOUND, N_("there is no such reply; it may be older than 30 days"))
    if reply.state is state:
        return None
    if reply.state is not ReplyState.WAITING:
        raise FeedError(Condition.CONFLICT, N_("somebody else has decided otherwise; load the page again"))
    # Texts that nobody needs any more are not stored. The id stays, so that the form cannot be sent again.
    end_us = context.now_us + DECIDED_S * US_PER_S
    rows.put(tx, replace(reply, state=state, name="", text="", target="", expires_us=end_us))
    return reply


def _located(tx: ReadTx, context: Context, request: NodeRequest) -> LocatedNode:
    """Returns the node of exactly this name: a view has no queue of its own. Raises FeedError."""
    located = locate_for(tx, context, request.node, request.actor)
    if located.view is not BARE or located.node.name != request.node:
        raise no_such_node(tx, request.node)
    return located


def _may_decide(access: Access) -> bool:
    """Whether the actor was appointed to publish, and may read. A publish model that lets everybody publish appoints
    nobody."""
    return access.rights.publish is True and access.may_read


def _check_moderator(access: Access) -> None:
    """Raises FeedError unless the actor may decide."""
    if not _may_decide(access):
        raise FeedError(Condition.FORBIDDEN, N_("only owners and publishers of the feed see the replies of guests"))


def due_replies(tx: ReadTx, context: Context, _after: int) -> tuple[Sequence[WriteStep[None]], None]:
    """Returns `remove_ended` if the time of a reply is over."""
    return ([remove_ended] if rows.ended(tx, context.now_us, 1) else []), None


def remove_ended(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
    """Removes replies that nobody has decided for 30 days, and decisions that no form needs."""
    reply_ids = rows.ended(tx, context.now_us, STEP)
    for reply_id in reply_ids:
        rows.remove(tx, reply_id)
    return MoreSteps(remove_ended) if len(reply_ids) == STEP else None


def _remove_of_node(tx: WriteTx, _context: Context, node: Node) -> None:
    rows.remove_of_node(tx, node.node_no)


_TABLE = PersonalTable(
    "guest_reply",
    "reply_id",
    # A guest may write the address of somebody. The reply is removed with the other rows that name the person.
    {"name": MENTION, "text": MENTION, "target": MENTION},
    frozenset({"reply_id", "state"}),
)
HOOKS = Hooks(node_removed=(_remove_of_node,), personal=(Personal((_TABLE,)),))
USE_CASES = UseCases(
    reads={
        ListReplies: ("list_guest_replies", list_replies),
        CountReplies: ("count_guest_replies", count_replies),
    },
    writes={SubmitReply: ("submit_guest_reply", submit), DecideReplies: ("decide_guest_replies", decide)},
)
SWEEP = Sweep("guest replies", due_replies, 3_600.0)
