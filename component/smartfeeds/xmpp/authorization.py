"""Requests to subscribe, for the owners of a node: the form, its answer, and the command (XEP-0060 8.6, 8.7)."""

from smartfeeds.core.jid import Jid
from smartfeeds.core.options import BOOLEANS, PUBSUB, FormFields
from smartfeeds.core.text import counted
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.authorization import (
    AnswerAuthorization,
    GetPendingNodes,
    PendingNodes,
    ResendPending,
    ResentRequests,
)
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.commands import Command, CommandForm, CommandNote, CommandResult, StepInput, note_result
from smartfeeds.xmpp.forms import FormField, encode_form

_SUBID, _NODE, _JID, _ALLOW = (f"{PUBSUB}{name}" for name in ("subid", "node", "subscriber_jid", "allow"))


def authorization_form(subid: str, node: str, jid: str) -> bytes:
    """Returns the form that asks an owner whether an address may subscribe. Raises ForbiddenCharacterError."""
    fields = (
        FormField(_SUBID, "hidden", (subid,)),
        FormField(_NODE, "text-single", (node,), "Node"),
        FormField(_JID, "jid-single", (jid,), "Subscriber address"),
        FormField(_ALLOW, "boolean", ("false",), "Allow this address to subscribe to this node?"),
    )
    return encode_form(
        "form",
        ns.SUBSCRIBE_AUTHORIZATION,
        fields,
        title="Subscription request",
        instructions=f"{jid} asks to subscribe to {node}. The request waits until an owner decides.",
    ).encode()


def read_authorization(fields: FormFields, actor: Jid, service: str) -> AnswerAuthorization:
    """Returns the answer in a submitted form. Raises FeedError(BAD_REQUEST)."""
    subid, node, jid, allow = (_single(fields, var) for var in (_SUBID, _NODE, _JID, _ALLOW))
    value = BOOLEANS.get(allow.strip())
    if value is None:
        raise FeedError(Condition.BAD_REQUEST, f"the field {_ALLOW} must be true or false")
    return AnswerAuthorization(actor, service, node, jid, subid, value == "true")


def _single(fields: FormFields, var: str) -> str:
    values = fields.get(var, ("",))
    if len(values) != 1:
        raise FeedError(Condition.BAD_REQUEST, f"the field {var} has {len(values)} values; send one")
    return values[0]


# Instructions, because some clients show no notes beside a form.
_MORE_NODES = "More nodes have pending requests. Answer those of these nodes, then run the command again."


async def _choose_node(step: StepInput) -> CommandForm | CommandResult:
    answer = await step.answer(GetPendingNodes(step.actor, step.service), PendingNodes)
    if not answer.names:
        return note_result("No subscription requests are pending.")
    choices = tuple((name, "") for name in answer.names)
    # The form has no value yet, because the client's user chooses the node (XEP-0060 8.7.2, example 177).
    field = FormField(_NODE, "list-single", (), "Node", choices, "xs:string", required=True)
    return CommandForm((field,), instructions=_MORE_NODES if answer.more else "")


async def _resend(step: StepInput) -> CommandResult:
    request = ResendPending(step.actor, step.service, step.one(_NODE))
    answer = await step.answer(request, ResentRequests)
    notes = [CommandNote(f"{counted(answer.count, 'request')} sent to you as messages.")]
    if answer.more:
        notes.append(CommandNote("More requests are pending. Answer these, then run the command again.", "warn"))
    return CommandResult(tuple(notes))


COMMANDS = (
    Command(
        ns.GET_PENDING,
        "Pending subscription requests",
        ns.SUBSCRIBE_AUTHORIZATION,
        (_choose_node, _resend),
        Audience.OWNERS,
        form_first=True,
    ),
)
