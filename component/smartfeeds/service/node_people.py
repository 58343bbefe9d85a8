"""The lists of the people of a node: its affiliations and its subscriptions (XEP-0060 8.8, 8.9)."""

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import Affiliation
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.answers import check_applied
from smartfeeds.service.requests import (
    AffiliationList,
    AffiliationShown,
    Answer,
    GetAffiliations,
    GetNodeSubscriptions,
    SetAffiliations,
    SetSubscriptions,
    SubscriptionList,
    SubscriptionShown,
)
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    ActionRoute,
    Caller,
    Column,
    Field,
    Fields,
    Form,
    ListAnswer,
    ListCommand,
    Resource,
    TablePage,
    text_of,
)
from smartfeeds.service.standing import Standing
from smartfeeds.texts import N_

_JID = Field("jid", N_("XMPP address"), required=True, hint="alice@example.org")
_AFFILIATIONS = tuple(affiliation.value for affiliation in Affiliation)
_ROLES = {
    Affiliation.MEMBER: N_("Member: may read"),
    Affiliation.PUBLISHER: N_("Publisher: may publish and read"),
    Affiliation.PUBLISH_ONLY: N_("Publish-only: may publish, not read"),
    Affiliation.OWNER: N_("Owner: may do everything"),
    Affiliation.OUTCAST: N_("Outcast: may do nothing"),
}


def bare_jid(text: str) -> str:
    """Returns a bare JID in its normal form. Raises FeedError(JID_MALFORMED)."""
    jid = parse_jid(text)
    if jid is None or jid.resource:
        raise FeedError(Condition.JID_MALFORMED, N_("the address is not a bare JID such as alice@example.org"))
    return str(jid)


async def _read_members(caller: Caller, page: ResultSetRequest, _narrow: bool) -> ListAnswer[AffiliationShown]:
    request = GetAffiliations(caller.actor, caller.service, caller.node, True, page)
    answer = await caller.ask(request, AffiliationList)
    return ListAnswer(answer.entries, answer.result_set)


async def _affiliate(caller: Caller, fields: Fields) -> ActionResult:
    """Gives a bare JID an affiliation, or removes that which it has (XEP-0060 8.9.2)."""
    affiliation = fields.get("affiliation", Affiliation.NONE.value)
    entries = ((bare_jid(fields.get("jid", "")), affiliation),)
    check_applied(await caller.ask(SetAffiliations(caller.actor, caller.service, caller.node, entries), Answer))
    return ActionResult(done="saved" if "affiliation" in fields else "removed")


async def _put_member(caller: Caller, fields: Fields) -> ActionResult:
    text_of(fields, "affiliation", _AFFILIATIONS)
    return await _affiliate(caller, fields)


def _member_form(_actor: Jid, _standing: Standing) -> Form:
    roles = tuple((affiliation.value, text) for affiliation, text in _ROLES.items())
    fields = (_JID, Field("affiliation", N_("Role"), "choice", choices=roles))
    return Form(N_("Add or change a member"), N_("Save"), fields)


MEMBERS: Resource[AffiliationShown] = Resource(
    "members",
    "affiliation",
    (
        Column("jid", lambda entry: entry.jid, "JID", heading=N_("XMPP address")),
        Column(
            "affiliation",
            lambda entry: entry.affiliation.value,
            "Affiliation",
            "word",
            heading=N_("Role"),
            words=_AFFILIATIONS,
        ),
    ),
    empty="The node has no affiliations; only admins of the service own it.",
    read=_read_members,
    of_node=True,
    command=ListCommand("list-affiliations", "List the affiliations of a node", ("jid", "affiliation")),
    summary="The affiliations of a node",
    table=TablePage(
        N_("Members"),
        N_("Who has a role at this feed. The access model of the feed decides about all others."),
        N_("Nobody has a role at this feed."),
        ("jid", "affiliation"),
    ),
    actions=(
        Action("affiliate", _affiliate, form=_member_form),
        Action("affiliate", _affiliate, button=N_("Remove"), key="jid"),
        Action(
            "put",
            _put_member,
            route=ActionRoute(
                "PUT",
                "putMember",
                "Gives a bare JID an affiliation with a node",
                ("jid", "jid"),
                ("affiliation",),
                "Member",
                errors=(409,),
            ),
        ),
        Action(
            "delete",
            _affiliate,
            route=ActionRoute(
                "DELETE", "deleteMember", "Removes the affiliation of a bare JID", ("jid", "jid"), errors=(409,)
            ),
        ),
    ),
)


async def _read_subscriptions(caller: Caller, page: ResultSetRequest, _narrow: bool) -> ListAnswer[SubscriptionShown]:
    answer = await caller.ask(GetNodeSubscriptions(caller.actor, caller.service, caller.node, page), SubscriptionList)
    return ListAnswer(answer.entries, answer.result_set)


async def _subscribe(caller: Caller, fields: Fields) -> ActionResult:
    """Subscribes an address, or approves its request (XEP-0060 8.8.2)."""
    await _set_subscription(caller, fields, "subscribed")
    return ActionResult(done="saved")


async def _unsubscribe(caller: Caller, fields: Fields) -> ActionResult:
    """Ends the subscriptions of an address (XEP-0060 8.8.4)."""
    await _set_subscription(caller, fields, "none")
    return ActionResult(done="removed")


async def _set_subscription(caller: Caller, fields: Fields, state: str) -> None:
    entries = ((fields.get("jid", ""), state),)
    answer = await caller.ask(SetSubscriptions(caller.actor, caller.service, caller.node, entries), Answer)
    check_applied(answer, ends=state == "none")


def _subscription_form(_actor: Jid, _standing: Standing) -> Form:
    return Form(N_("Add a subscription, or approve a request"), N_("Subscribe"), (_JID,))


SUBSCRIPTIONS: Resource[SubscriptionShown] = Resource(
    "subscriptions",
    "subscription",
    (
        Column("jid", lambda entry: entry.jid, "JID", heading=N_("XMPP address")),
        Column("state", None, "Subscription", text=lambda entry: entry.state.value),
    ),
    read=_read_subscriptions,
    of_node=True,
    command=ListCommand("list-subscriptions", "List the subscriptions of a node", ("jid", "state")),
    summary="The subscribed addresses of a node",
    table=TablePage(
        N_("Subscriptions"),
        N_("The addresses that are notified of new entries over XMPP."),
        N_("Nobody is subscribed."),
        ("jid",),
    ),
    actions=(
        Action(
            "subscribe",
            _subscribe,
            form=_subscription_form,
            route=ActionRoute(
                "PUT",
                "putSubscription",
                "Subscribes an address to a node, or approves its request",
                ("jid", "jid"),
            ),
        ),
        Action(
            "unsubscribe",
            _unsubscribe,
            button=N_("End"),
            key="jid",
            route=ActionRoute(
                "DELETE", "deleteSubscription", "Ends the subscriptions of an address to a node", ("jid", "jid")
            ),
        ),
    ),
)
