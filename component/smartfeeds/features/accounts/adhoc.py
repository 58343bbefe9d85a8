"""Ad-hoc commands for bearer tokens of HTTP: create, list and revoke them, as `smartfeeds token` does."""

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import format_datetime, parse_duration
from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES, Token, ended
from smartfeeds.features.accounts.bearer import ID_CHARACTERS
from smartfeeds.features.accounts.listing import AddToken, ListTokens, RevokeToken, TokenAdded, TokenList, TokenRevoked
from smartfeeds.features.accounts.tokens import new_token
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import choice_field, jid_field, text_field
from smartfeeds.xmpp.command_lists import ListPage, cell, is_whole, list_steps, position_of
from smartfeeds.xmpp.commands import CommandForm, CommandResult, StepInput, note_result, project_command
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
_ID = text_field("token", "Token", ID_CHARACTERS, description="The ID of the token, from the list of tokens.")
_COLUMNS = (
    ("id", "ID"),
    ("jid", "JID"),
    ("scope", "Scope"),
    ("feed", "Node"),
    ("created", "Created"),
    ("expires", "Expires"),
    ("label", "Label"),
)
_CHOICES = 50


async def _ask(step: StepInput) -> CommandForm:
    jid = _JID.show(*(step.values.get(_JID.var) or (str(step.actor.bare),)))
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


async def _page(step: StepInput) -> ListPage:
    position = position_of(step)
    answer = await step.answer(ListTokens(step.actor, step.service, position.request), TokenList)
    rows = [
        (
            token.token_id,
            token.jid,
            token.scope.text,
            token.feed,
            format_datetime(token.created_us),
            _end(token.expires_us, expired=ended(token, answer.now_us)),
            token.label,
        )
        for token in answer.tokens
    ]
    return position.page(step.page, rows, answer.result_set)


def _end(expires_us: int | None, *, expired: bool) -> str:
    if expires_us is None:
        return "never"
    return f"{format_datetime(expires_us)}{' (expired)' if expired else ''}"


async def _ask_token(step: StepInput) -> CommandForm | CommandResult:
    answer = await step.answer(
        ListTokens(step.actor, step.service, ResultSetRequest(str(_CHOICES), before="")), TokenList
    )
    if not answer.tokens:
        return note_result("There is no token.")
    choices = tuple((token.token_id, cell(_name(token))) for token in reversed(answer.tokens))
    return CommandForm((_ID.offer(step, choices, complete=is_whole(answer.result_set, len(choices))),))


def _name(token: Token) -> str:
    facts = (token.label, token.jid, token.scope.text, token.feed)
    return f"{token.token_id}: {', '.join(fact for fact in facts if fact)}"


async def _revoke(step: StepInput) -> CommandResult:
    token_id = _ID.read(step)
    answer = await step.answer(RevokeToken(step.actor, step.service, token_id), TokenRevoked)
    return note_result(f"Revoked the token {token_id}, which acted as {answer.token.jid}.")


COMMANDS = (
    project_command("add-token", "Create a token", Audience.OWNERS, _ask, _add),
    project_command("list-tokens", "List tokens", Audience.OWNERS, *list_steps(_COLUMNS, "token", _page)),
    project_command("revoke-token", "Revoke a token", Audience.OWNERS, _ask_token, _revoke),
)
XMPP = XmppSide(commands=COMMANDS)
