"""The ad-hoc command that creates a bearer token of HTTP, as `smartfeeds token add` does."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import parse_duration
from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES
from smartfeeds.features.accounts.listing import AddToken, TokenAdded
from smartfeeds.features.accounts.tokens import new_token
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import choice_field, jid_field, text_field
from smartfeeds.xmpp.commands import CommandForm, CommandResult, StepInput, project_command
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

_JID = jid_field("jid", "JID", description="The token has the rights of this bare JID.")
_FEED = text_field(
    "feed",
    "Node",
    MAX_ID_BYTES,
    description=f"The node that the token is valid for. Admins may write {ALL_FEEDS} for all.",
)
_SCOPE = choice_field(
    "scope",
    "Scope",
    {"read": "Read", "publish": "Read, publish and retract", "admin": "Everything that the JID may do"},
)
_EXPIRES = text_field(
    "expires", "Expires after", 5, required=False, description="For example 12h, 90d or 52w. Empty: never."
)
_LABEL = text_field("label", "Label", MAX_LABEL_BYTES, required=False, description="A name for your own use.")


async def _ask(step: StepInput) -> CommandForm:
    jid = _JID.show(*(step.values.get(_JID.var) or (step.actor.bare_text,)))
    return CommandForm((jid, *(field.again(step) for field in (_FEED, _SCOPE, _EXPIRES, _LABEL))))


async def _add(step: StepInput) -> CommandResult:
    jid, feed, scope, label, expires = (field.read(step) for field in (_JID, _FEED, _SCOPE, _LABEL, _EXPIRES))
    lifetime_s = parse_duration(expires) if expires else None
    if expires and lifetime_s is None:
        raise CommandError(CommandFault.BAD_PAYLOAD, "the field expires must be empty or a duration such as 90d")
    token, text = new_token(jid, SCOPES[scope], feed, label)
    answer = await step.answer(AddToken(step.actor, step.service, token, lifetime_s), TokenAdded)
    # Cheogram shows no notes beside a form, so the advice is in the fields.
    fields = [FormField("secret", "text-single", (text,), "Token, shown only once")]
    if not answer.node_there:
        missing = f"The node {feed} does not exist yet. The token works after it is created."
        fields.append(FormField("", "fixed", (missing,)))
    return CommandResult((), tuple(fields))


COMMANDS = (project_command("add-token", "Create a token", Audience.OWNERS, _ask, _add),)
XMPP = XmppSide(commands=COMMANDS)
