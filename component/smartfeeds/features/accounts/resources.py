"""The list of bearer tokens, and what users do with tokens in pages and over HTTP."""

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import format_datetime, format_second, parse_duration
from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts.bearer import ID_CHARACTERS
from smartfeeds.features.accounts.listing import (
    AddToken,
    ListedToken,
    ListTokens,
    RevokeToken,
    TokenAdded,
    TokenRevoked,
)
from smartfeeds.features.accounts.tokens import new_token
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.service.node_people import bare_jid
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    ActionRoute,
    Brief,
    Caller,
    Choice,
    Column,
    Field,
    Fields,
    Form,
    ListCommand,
    Resource,
    TablePage,
    reader,
    text_of,
)
from smartfeeds.service.standing import Standing
from smartfeeds.texts import N_
from smartfeeds.xmpp.command_lists import cell

_SCOPE_TEXTS = {
    "read": N_("Read"),
    "publish": N_("Read, publish and retract"),
    "admin": N_("Everything that the user may do"),
}


async def _create(caller: Caller, fields: Fields) -> ActionResult:
    feed, scope = text_of(fields, "feed"), text_of(fields, "scope", tuple(SCOPES))
    label, expires = text_of(fields, "label", default=""), text_of(fields, "expires", default="")
    jid = bare_jid(text_of(fields, "jid", default=caller.actor.bare_text))
    for name, text, most_bytes in (("feed", feed, MAX_ID_BYTES), ("label", label, MAX_LABEL_BYTES)):
        if not text.isprintable() or len(text.encode()) > most_bytes:
            raise FeedError(Condition.BAD_REQUEST, f"{name}: printable text of at most {most_bytes} bytes")
    lifetime_s = parse_duration(expires) if expires else None
    if expires and lifetime_s is None:
        raise FeedError(Condition.BAD_REQUEST, "expires: a number and one of s, m, h, d, w, such as 90d")
    token, text = new_token(jid, SCOPES[scope], feed, label)
    answer = await caller.ask(AddToken(caller.actor, caller.service, token, lifetime_s), TokenAdded)
    return ActionResult(secret=text, body={"id": token.token_id, "token": text, "nodeExists": answer.node_there})


async def _revoke(caller: Caller, fields: Fields) -> ActionResult:
    token_id = fields.get("id", "")
    answer = await caller.ask(RevokeToken(caller.actor, caller.service, token_id), TokenRevoked)
    return ActionResult(f"Revoked the token {token_id}, which acted as {answer.token.jid}.", "revoked")


def _form(actor: Jid, standing: Standing) -> Form:
    jid = Field("jid", N_("XMPP address"), value=actor.bare_text, required=True)
    feed_hint = N_("The name of a feed, or * for all") if standing.admin else N_("The name of a feed that you own")
    return Form(
        N_("Create a token"),
        N_("Create"),
        (
            *((jid,) if standing.admin else ()),
            Field("feed", N_("Feed"), value=ALL_FEEDS if standing.admin else "", required=True, hint=feed_hint),
            Field("scope", N_("Scope"), "choice", choices=tuple((scope, _SCOPE_TEXTS[scope]) for scope in SCOPES)),
            Field("expires", N_("Expires after"), hint=N_("For example 12h, 90d or 52w; empty: never")),
            Field("label", N_("Label"), hint=N_("A name for your own use")),
        ),
    )


def _option(entry: ListedToken) -> tuple[str, str]:
    token = entry.token
    facts = (token.label, token.jid, token.scope.text, token.feed)
    return token.token_id, cell(f"{token.token_id}: {', '.join(fact for fact in facts if fact)}")


TOKENS: Resource[ListedToken] = Resource(
    "tokens",
    "token",
    (
        Column("id", lambda entry: entry.token.token_id, N_("ID"), "code"),
        Column("jid", lambda entry: entry.token.jid, "JID", heading=N_("XMPP address")),
        Column("scope", lambda entry: entry.token.scope.text, N_("Scope"), "word", words=tuple(SCOPES)),
        Column("feed", lambda entry: entry.token.feed, "Node", heading=N_("Feed")),
        Column(
            "created",
            lambda entry: format_second(entry.token.created_us),
            N_("Created"),
            "time",
            text=lambda entry: format_datetime(entry.token.created_us),
        ),
        Column(
            "expires",
            lambda entry: "never" if entry.token.expires_us is None else format_second(entry.token.expires_us),
            N_("Expires"),
            "time",
            text=lambda entry: entry.end,
            words=("never",),
        ),
        Column(
            "state",
            lambda entry: "expired" if entry.expired else "valid",
            N_("State"),
            "word",
            words=("valid", "expired"),
        ),
        Column("label", lambda entry: entry.token.label, N_("Label")),
    ),
    empty="There are no tokens.",
    brief=Brief(("id", "label", "jid", "scope", "feed", "state"), cut=("label",)),
    read=reader(ListTokens),
    command=ListCommand("list-tokens", "List tokens", ("id", "jid", "scope", "feed", "created", "expires", "label")),
    summary="Your bearer tokens without their secrets; those of everybody for admins",
    table=TablePage(
        N_("Tokens"),
        N_("Programs sign in with tokens. A token has the rights of an XMPP address."),
        N_("There are no tokens."),
        ("id", "label", "jid", "scope", "feed", "state", "created", "expires"),
    ),
    choice=Choice(
        "token", "Token", ID_CHARACTERS, _option, "The ID of the token, from the list of tokens.", newest=True
    ),
    actions=(
        Action(
            "create",
            _create,
            form=_form,
            route=ActionRoute(
                "POST",
                "postToken",
                "Creates a bearer token, which only this response shows",
                members=("feed", "scope", "jid", "expires", "label"),
                body="TokenRequest",
                answers={201: ref("TokenCreated")},
            ),
        ),
        Action(
            "revoke",
            _revoke,
            "Revoke a token",
            button=N_("Revoke"),
            key="id",
            route=ActionRoute("DELETE", "deleteToken", "Revokes a bearer token at once", ("id", "token")),
        ),
    ),
)
