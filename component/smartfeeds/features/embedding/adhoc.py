"""The ad-hoc command in which owners and publishers decide on the replies of guests.

It has three steps: choose a node, decide on the oldest replies that wait, and the result. The fields of the second form
name the replies that it shows, so nobody decides on a reply that they have not seen.
"""

from smartfeeds.core.times import format_second
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding.guests import GuestReply, quotation_of
from smartfeeds.features.embedding.requests import DecideReplies, ListReplies, RepliesDecided, ReplyList
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import CommandField, choice_field
from smartfeeds.xmpp.commands import CommandForm, CommandNote, CommandResult, StepInput, note_result, project_command
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.node_field import NODE, ask_node
from smartfeeds.xmpp.side import XmppSide

LISTED = 10  # replies in one form, which is smaller than a stanza, whatever guests write
_REPLY = "reply-"  # and the id of a reply: the field of the decision
_PUBLISH, _REFUSE = "publish", "refuse"
_CHOICES = {"later": "Decide later", _PUBLISH: "Publish", _REFUSE: "Refuse"}


def _field(reply_id: str, label: str = "") -> CommandField[str]:
    return choice_field(f"{_REPLY}{reply_id}", label, _CHOICES)


async def _show(step: StepInput) -> CommandForm | CommandResult:
    node = NODE.read(step)
    waiting = (await step.answer(ListReplies(step.actor, step.service, node), ReplyList)).replies
    if not waiting:
        return note_result("No reply of a guest waits.")
    fields = [field for reply in waiting[:LISTED] for field in _fields(reply, step)]
    more = (CommandNote(f"The form shows {LISTED} of {len(waiting)} replies; decide on some to see the others."),)
    return CommandForm(
        (NODE.hide(node), *fields),
        instructions="Nobody sees a reply before you publish it. A long one is cut; the page /guests/NODE/ has it all.",
        notes=more if len(waiting) > LISTED else (),
    )


def _fields(reply: GuestReply, step: StepInput) -> tuple[FormField, FormField]:
    """The words of a guest, and the field of the decision."""
    decision = _field(reply.reply_id, f"Reply of {format_second(reply.created_us)}")
    return FormField("", "fixed", (quotation_of(reply),)), decision.again(step)


async def _decide(step: StepInput) -> CommandResult:
    node = NODE.read(step)
    reply_ids = [var.removeprefix(_REPLY) for var in step.values if var.startswith(_REPLY)]
    choices = {reply_id: _field(reply_id).read(step) for reply_id in reply_ids}
    approve, refuse = (
        tuple(reply_id for reply_id, choice in choices.items() if choice == wish) for wish in (_PUBLISH, _REFUSE)
    )
    request = DecideReplies(step.actor, step.service, node, approve, refuse)
    try:
        answer = await step.answer(request, RepliesDecided)
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise FeedError(error.condition, "somebody else has decided otherwise; start the command again") from error
    notes = [CommandNote(f"Published {answer.approved}, refused {answer.refused}.")]
    former_count = len(approve) + len(refuse) - answer.approved - answer.refused
    if former_count:
        notes.append(CommandNote(f"Somebody else had decided {former_count} in the same way."))
    return CommandResult(tuple(notes))


XMPP = XmppSide(
    commands=(project_command("guest-replies", "Replies of guests", Audience.PUBLISHERS, ask_node, _show, _decide),)
)
