"""The tables of the web administration: their columns, forms and actions.

A new page is one more row of SECTIONS, and a link in `admin_frame.html`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from smartfeeds.core.model import Affiliation, NodeKind
from smartfeeds.core.options import KIND, PUBSUB, AccessModel
from smartfeeds.core.token import ALL_FEEDS, SCOPES
from smartfeeds.core.urls import ADMIN, ADMIN_FEEDS, ADMIN_MEMBERS, ADMIN_SUBSCRIPTIONS, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts.listing import RevokeToken, TokenRevoked
from smartfeeds.features.administration.http import create_token, set_affiliation, set_subscription
from smartfeeds.features.administration.lists import (
    ENCLOSURES,
    MEMBERS,
    MIRRORS,
    NODES,
    SUBSCRIPTIONS,
    TOKENS,
    RowList,
)
from smartfeeds.features.administration.page_lists import Column, Field, Form, RowAction, Table
from smartfeeds.features.administration.pages import ROWS, Fields, Outcome, Section, WebAdmin
from smartfeeds.features.administration.process import GetRecentEvents, RecentEventList
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.resources import caller_of, read_page
from smartfeeds.service.answers import ask
from smartfeeds.service.consumer_requests import CONSUMERS, ConsumersRetried, RetryConsumers
from smartfeeds.service.requests import CreateNode, NodeCreated
from smartfeeds.service.resources import RowPage
from smartfeeds.service.standing import Standing
from smartfeeds.texts import N_


async def _create_feed(admin: WebAdmin, call: HttpCall, fields: Fields) -> Outcome:
    form = {PUBSUB + name: (fields[name],) for name in ("title", "access_model") if fields.get(name)}
    name = fields.get("name", "").strip()
    if not name:
        raise FeedError(Condition.BAD_REQUEST, "the feed needs a name")
    request = CreateNode(call.actor, admin.service, name, {KIND: (fields.get("kind", NodeKind.FEED.value),), **form})
    created = await ask(admin.change, request, NodeCreated)
    return Outcome("created", entry_path(created.node, folder=ADMIN_FEEDS))


async def _affiliate(admin: WebAdmin, call: HttpCall, fields: Fields) -> Outcome:
    affiliation = fields.get("affiliation", Affiliation.NONE.value)
    await set_affiliation(admin.change, call, admin.service, fields.get("jid", "").strip(), affiliation)
    return Outcome("saved" if "affiliation" in fields else "removed")


async def _subscribe(admin: WebAdmin, call: HttpCall, fields: Fields, state: str) -> Outcome:
    await set_subscription(admin.change, call, admin.service, fields.get("jid", "").strip(), state)
    return Outcome("removed" if state == "none" else "saved")


async def _create_token(admin: WebAdmin, call: HttpCall, fields: Fields) -> Outcome:
    texts = {name: text.strip() for name, text in fields.items() if text.strip()}
    _, secret, _ = await create_token(admin.change, call, admin.service, texts)
    return Outcome(secret=secret)


async def _revoke(admin: WebAdmin, call: HttpCall, fields: Fields) -> Outcome:
    await ask(admin.change, RevokeToken(call.actor, admin.service, fields.get("id", "")), TokenRevoked)
    return Outcome("revoked")


async def _retry(admin: WebAdmin, call: HttpCall, fields: Fields) -> Outcome:
    request = RetryConsumers(call.actor, admin.service, fields.get("consumer") or None)
    await ask(admin.change, request, ConsumersRetried)
    return Outcome("retried")


async def _read_consumers(admin: WebAdmin, call: HttpCall, after: str) -> RowPage:
    return await read_page(CONSUMERS, caller_of(call, admin.handle, admin.service), ROWS, after)


async def _read_mirrors(admin: WebAdmin, call: HttpCall, after: str) -> RowPage:
    page = await admin.rows(MIRRORS, call, after)
    rows = [
        {**row, **way, "step": N_("in step") if way["in_step"] else N_("behind")}
        for row in page.rows
        for way in row["directions"]
    ]
    return replace(page, rows=tuple(rows))


async def _read_events(admin: WebAdmin, call: HttpCall, _after: str) -> RowPage:
    answer = await ask(admin.handle, GetRecentEvents(call.actor, admin.service), RecentEventList)
    rows = tuple(
        {
            "time": event.time,
            "level": event.level,
            "event": event.event,
            "fields": ", ".join(f"{name}: {value}" for name, value in event.fields.items()),
        }
        for event in answer.events
    )
    return RowPage(rows, len(rows), "")


def _read(rows: RowList) -> Callable[[WebAdmin, HttpCall, str], Awaitable[RowPage]]:
    return lambda admin, call, after: admin.rows(rows, call, after)


_JID = Field("jid", N_("XMPP address"), required=True, hint="alice@example.org")
_ROLES = {
    Affiliation.MEMBER: N_("Member: may read"),
    Affiliation.PUBLISHER: N_("Publisher: may publish and read"),
    Affiliation.PUBLISH_ONLY: N_("Publish-only: may publish, not read"),
    Affiliation.OWNER: N_("Owner: may do everything"),
    Affiliation.OUTCAST: N_("Outcast: may do nothing"),
}
_MODELS = (
    (AccessModel.OPEN.value, N_("Everybody")),
    (AccessModel.AUTHORIZE.value, N_("Users whom an owner has approved")),
    (AccessModel.WHITELIST.value, N_("Members only")),
)
_SCOPE_TEXTS = {
    "read": N_("Read"),
    "publish": N_("Read, publish and retract"),
    "admin": N_("Everything that the user may do"),
}


def _feed_form(_admin: WebAdmin, _call: HttpCall, standing: Standing) -> Form | None:
    if not standing.creator:
        return None
    kinds = tuple((kind.value, kind.value) for kind in NodeKind)
    return Form(
        "create",
        N_("Create a feed"),
        N_("Create"),
        (
            Field("name", N_("Name"), required=True, hint=N_("The name in the address; it stays")),
            Field("title", N_("Title")),
            Field("access_model", N_("Who may subscribe and retrieve"), "choice", choices=_MODELS),
            Field("kind", N_("Kind"), "choice", choices=kinds),
        ),
    )


def _token_form(_admin: WebAdmin, call: HttpCall, standing: Standing) -> Form:
    jid = Field("jid", N_("XMPP address"), value=str(call.actor.bare), required=True)
    feed_hint = N_("The name of a feed, or * for all") if standing.admin else N_("The name of a feed that you own")
    return Form(
        "create",
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


def _member_form(_admin: WebAdmin, _call: HttpCall, _standing: Standing) -> Form:
    roles = tuple((affiliation.value, text) for affiliation, text in _ROLES.items())
    return Form(
        "affiliate",
        N_("Add or change a member"),
        N_("Save"),
        (_JID, Field("affiliation", N_("Role"), "choice", choices=roles)),
    )


def _subscription_form(_admin: WebAdmin, _call: HttpCall, _standing: Standing) -> Form:
    return Form("subscribe", N_("Add a subscription, or approve a request"), N_("Subscribe"), (_JID,))


SECTIONS: tuple[Section, ...] = (
    Section(
        "feeds",
        ADMIN_FEEDS,
        Table(
            N_("Feeds"),
            N_("The feeds that you manage, with their entries and subscriptions."),
            N_("You own no feed yet."),
            (
                Column("node", N_("Name")),
                Column("items", N_("Entries"), "number"),
                Column("deleted", N_("Deleted"), "number"),
                Column("subscriptions", N_("Subscriptions"), "number"),
                Column("creator", N_("Created by")),
                Column("created", N_("Created"), "time"),
            ),
            links=True,
        ),
        _read(NODES),
        {"create": _create_feed},
        _feed_form,
    ),
    Section(
        "members",
        f"{ADMIN_MEMBERS}{{name}}/",
        Table(
            N_("Members"),
            N_("Who has a role at this feed. The access model of the feed decides about all others."),
            N_("Nobody has a role at this feed."),
            (Column("jid", N_("XMPP address")), Column("affiliation", N_("Role"), "word")),
            row_action=RowAction("affiliate", N_("Remove"), "jid"),
        ),
        _read(MEMBERS),
        {"affiliate": _affiliate},
        _member_form,
    ),
    Section(
        "subscriptions",
        f"{ADMIN_SUBSCRIPTIONS}{{name}}/",
        Table(
            N_("Subscriptions"),
            N_("The addresses that are notified of new entries over XMPP."),
            N_("Nobody is subscribed."),
            (Column("jid", N_("XMPP address")),),
            row_action=RowAction("unsubscribe", N_("End"), "jid"),
        ),
        _read(SUBSCRIPTIONS),
        {
            "subscribe": partial(_subscribe, state="subscribed"),
            "unsubscribe": partial(_subscribe, state="none"),
        },
        _subscription_form,
    ),
    Section(
        "tokens",
        f"{ADMIN}tokens/",
        Table(
            N_("Tokens"),
            N_("Programs sign in with tokens. A token has the rights of an XMPP address."),
            N_("There are no tokens."),
            (
                Column("id", N_("ID"), "code"),
                Column("label", N_("Label")),
                Column("jid", N_("XMPP address")),
                Column("scope", N_("Scope"), "word"),
                Column("feed", N_("Feed")),
                Column("state", N_("State"), "word"),
                Column("created", N_("Created"), "time"),
                Column("expires", N_("Expires"), "time"),
            ),
            row_action=RowAction("revoke", N_("Revoke"), "id"),
        ),
        _read(TOKENS),
        {"create": _create_token, "revoke": _revoke},
        _token_form,
    ),
    Section(
        "consumers",
        f"{ADMIN}consumers/",
        Table(
            N_("Consumers"),
            N_("What follows your feeds, how far it is behind, and the last error."),
            N_("There are no consumers."),
            (
                Column("consumer", N_("Consumer")),
                Column("node", N_("Feed")),
                Column("state", N_("State"), "word"),
                Column("waiting", N_("Waiting"), "number"),
                Column("lag_s", N_("Lag in seconds"), "number"),
                Column("failures", N_("Failures"), "number"),
                Column("next_attempt", N_("Next attempt"), "time"),
                Column("error", N_("Last error")),
            ),
            row_action=RowAction("retry", N_("Retry"), "consumer", for_admins=True),
        ),
        _read_consumers,
        {"retry": _retry},
    ),
    Section(
        "mirrors",
        f"{ADMIN}mirrors/",
        Table(
            N_("Mirrors"),
            N_("Feeds that are kept in step with a feed elsewhere, each direction in a row."),
            N_("There are no mirrors."),
            (
                Column("node", N_("Feed")),
                Column("direction", N_("Direction"), "word"),
                Column("address", N_("Address")),
                Column("step", N_("State"), "word"),
                Column("changes", N_("Changes"), "number"),
                Column("waiting", N_("Waiting"), "number"),
                Column("refused", N_("Refused"), "number"),
                Column("failure", N_("Last error")),
            ),
        ),
        _read_mirrors,
        {},
    ),
    Section(
        "enclosures",
        f"{ADMIN}enclosures/",
        Table(
            N_("Enclosures"),
            N_("Files of feeds elsewhere that are loaded in advance."),
            N_("No file is loaded in advance."),
            (
                Column("node", N_("Feed")),
                Column("address", N_("Address")),
                Column("state", N_("State"), "word"),
                Column("percent", N_("Progress"), "progress"),
                Column("bytes", N_("Bytes"), "number"),
                Column("failures", N_("Failures"), "number"),
                Column("reason", N_("Last error")),
                Column("since", N_("Since"), "time"),
            ),
        ),
        _read(ENCLOSURES),
        {},
    ),
    Section(
        "log",
        f"{ADMIN}log/",
        Table(
            N_("Warnings and errors"),
            N_("The newest warnings and errors of the log since the start, newest first."),
            N_("Nothing has gone wrong since the start."),
            (
                Column("time", N_("Time"), "time"),
                Column("level", N_("Level"), "word"),
                Column("event", N_("Event"), "code"),
                Column("fields", N_("Details"), "code"),
            ),
        ),
        _read_events,
        {},
    ),
)
