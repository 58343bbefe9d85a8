"""The web administration under `/admin/`: for admins of the service, and for owners with their own feeds.

The requests are those of `http/administration.py`, so the same rules decide. Every form is sent by POST and redirects
to a page that shows the result. One response cannot redirect: that with a new token, which is shown only once.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Affiliation, NodeKind
from smartfeeds.core.options import KIND, PUBSUB, AccessModel
from smartfeeds.core.tokens import ALL_FEEDS, SCOPES, TokenScope
from smartfeeds.core.urls import ADMIN, ADMIN_FEEDS, ADMIN_MEMBERS, ADMIN_SUBSCRIPTIONS, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http import negotiation as n
from smartfeeds.http.admin_lists import (
    MEMBERS,
    MIRRORS,
    NODES,
    SUBSCRIPTIONS,
    TOKENS,
    RowList,
    RowPage,
    read_consumers,
    read_rows,
)
from smartfeeds.http.administration import create_token
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.entries import Handle
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.openapi_schemas import TEXT
from smartfeeds.http.operations import Operation, Parameter
from smartfeeds.http.queries import read_fields, read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.http.web.admin_pages import (
    Column,
    Field,
    Form,
    RowAction,
    Table,
    View,
    feed_page,
    form_of_options,
    overview_page,
    table_page,
)
from smartfeeds.http.web.frame import frame_of, page_reply
from smartfeeds.service.admin_consumers import ConsumersRetried, RetryConsumers
from smartfeeds.service.admin_process import GetRecentEvents, GetStatistics, RecentEventList, Statistics
from smartfeeds.service.admin_tokens import RevokeToken, TokenRevoked
from smartfeeds.service.administration import GetStanding, Standing, check_applied
from smartfeeds.service.answers import ask
from smartfeeds.service.preconditions import options_tag
from smartfeeds.service.requests import (
    Answer,
    Configuration,
    Configure,
    CreateNode,
    DeleteNode,
    GetConfiguration,
    NodeCreated,
    Request,
    SetAffiliations,
    SetSubscriptions,
)
from smartfeeds.texts import N_

ROWS = 50  # in a page
_MAX_FIELDS = 64
_PAGE = {200: {n.HTML.bare_type: {"type": "string"}}}
_AFTER = Parameter("after", TEXT, "rows after this position")
_DONE = Parameter("done", {"type": "string"}, "what a form has done")
# The messages after a form, by the parameter `done`.
DONE: Mapping[str, str] = {
    "created": N_("Created."),
    "saved": N_("Saved."),
    "deleted": N_("Deleted."),
    "removed": N_("Removed."),
    "revoked": N_("Revoked."),
    "retried": N_("The next attempt is made now."),
}
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A page with a table. `read` returns the rows behind a position, and `actions` the function for each value of the
    form field `action`, which returns the key of its message and the path of the next page ("" for this one)."""

    key: str
    path: str
    table: Table
    read: Callable[["WebAdmin", HttpCall, str], Awaitable[RowPage]]
    actions: Mapping[str, Callable[["WebAdmin", HttpCall, Fields], Awaitable[tuple[str, str]]]]
    form: Callable[["WebAdmin", HttpCall, Standing], Form | None] = lambda _admin, _call, _standing: None

    @property
    def get(self) -> Operation:
        """The operation that shows the page."""
        return Operation(
            f"admin-{self.key}",
            f"Web administration: {self.table.title}",
            _PAGE,
            errors=(404,),
            parameters=(_AFTER, _DONE),
            scope=TokenScope.ADMIN,
        )

    @property
    def post(self) -> Operation:
        """The operation of the forms of the page."""
        created = {201: _PAGE[200]} if self.key == "tokens" else {}
        return Operation(
            f"admin-{self.key}-form",
            f"Web administration: the forms of {self.table.title}",
            {303: {}, **created},
            errors=(400, 404, 406, 409),
            body={n.WEB_FORM: {"type": "object"}},
            scope=TokenScope.ADMIN,
        )


OVERVIEW = Operation("admin", "Web administration: overview", _PAGE, scope=TokenScope.ADMIN)
FEED = Operation(
    "admin-feed", "Web administration: options of a feed", _PAGE, parameters=(_DONE,), scope=TokenScope.ADMIN
)
FEED_FORM = Operation(
    "admin-feed-form",
    "Web administration: configures or deletes a feed",
    {303: {}},
    errors=(400, 406, 412),
    body={n.WEB_FORM: {"type": "object"}},
    scope=TokenScope.ADMIN,
)


class WebAdmin:
    """Handles the pages and their forms. `service` is the address of the service, and `now_us` returns microseconds;
    `change` performs a request even if the client disconnects."""

    def __init__(
        self,
        handle: Handle,
        change: Callable[[Request], Awaitable[Answer]],
        service: str,
        bodies: BodyReader,
        now_us: Callable[[], int],
    ) -> None:
        self.handle = handle
        self.change = change
        self.service = service
        self._bodies = bodies
        self._now_us = now_us

    async def overview(self, call: HttpCall) -> Reply:
        """The first page. Raises FeedError."""
        view = await self._view(call)
        statistics = None
        if view.standing.admin:
            statistics = await ask(self.handle, GetStatistics(call.actor, self.service), Statistics)
        return call.zipped(page_reply(overview_page(frame_of(call), view, statistics, self._now_us())))

    async def show(self, section: Section, call: HttpCall) -> Reply:
        """A page with a table. Raises FeedError."""
        return await self._table(section, call, await self._view(call))

    async def submit(self, section: Section, call: HttpCall) -> Reply:
        """Performs the action of a form. Raises HttpError."""
        fields = await self._fields(call)
        action = section.actions.get(fields.get("action", ""))
        if action is None:
            raise FeedError(Condition.BAD_REQUEST, "the form has no known action; load the page again")
        try:
            done, path = await action(self, call, fields)
        except HttpError:
            raise
        except FeedError as error:
            view = replace(await self._view(call), problem=error.text or error.condition.value)
            return replace(await self._table(section, call, view), status=STATUSES[error.condition])
        if done == "token":  # the only text that no other page can show
            view = await self._view(call)
            return replace(await self._table(section, call, view, secret=path), status=HTTPStatus.CREATED)
        return _redirect(call, path or call.path, done)

    async def feed(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        view = await self._view(call)
        found = await ask(self.handle, GetConfiguration(call.actor, self.service, call.name), Configuration)
        body = feed_page(frame_of(call), view, found.options, found.limits, options_tag(found.options))
        return call.zipped(page_reply(body))

    async def submit_feed(self, call: HttpCall) -> Reply:
        """Configures or deletes a node. Raises FeedError."""
        fields = await self._fields(call)
        view = await self._view(call)
        found = await ask(self.handle, GetConfiguration(call.actor, self.service, call.name), Configuration)
        form = None
        try:
            if fields.get("action") == "delete":
                if fields.get("confirm") != call.name:
                    raise FeedError(Condition.BAD_REQUEST, "to delete the feed, type its name exactly as it is shown")
                await self.change(DeleteNode(call.actor, self.service, call.name))
                return _redirect(call, ADMIN_FEEDS, "deleted")
            form = form_of_options(fields)
            expected = frozenset({fields.get("tag", "")})
            await self.change(Configure(call.actor, self.service, call.name, form, expected))
        except HttpError:
            raise
        except FeedError as error:
            view = replace(view, problem=error.text or error.condition.value)
            # The values of the reader stay in the form, and the next attempt replaces what somebody else has saved.
            body = feed_page(frame_of(call), view, found.options, found.limits, options_tag(found.options), form)
            return replace(page_reply(body), status=STATUSES[error.condition])
        return _redirect(call, call.path, "saved")

    async def rows(self, rows: RowList, call: HttpCall, after: str) -> RowPage:
        """A page of rows of a list. Raises FeedError."""
        return await read_rows(self.handle, rows, call.actor, self.service, call.name, ROWS, after)

    async def _view(self, call: HttpCall) -> View:
        """Raises FeedError(FORBIDDEN) for users who administer nothing."""
        standing = await ask(self.handle, GetStanding(call.actor, self.service), Standing)
        if not (standing.admin or standing.owner or standing.creator):
            raise FeedError(Condition.FORBIDDEN, "you own no feed, and you are no admin of the service")
        done = DONE.get(_query(call).get("done", ""), "") if call.method in ("GET", "HEAD") else ""
        return View(standing, call.path, call.name, frame_of(call).texts.say(done) if done else "")

    async def _table(self, section: Section, call: HttpCall, view: View, secret: str = "") -> Reply:
        after = _query(call).get("after", "")
        page, action = await section.read(self, call, after), section.table.row_action
        table = replace(
            section.table,
            rows=page.rows,
            total=page.total,
            next_path=f"{call.path}?{urlencode({'after': page.after}, quote_via=quote, safe='')}" if page.after else "",
            first=not after,
            form=section.form(self, call, view.standing),
            row_action=None if action is not None and action.for_admins and not view.standing.admin else action,
            secret=secret,
        )
        return call.zipped(page_reply(table_page(frame_of(call), view, table)))

    async def _fields(self, call: HttpCall) -> Fields:
        """The fields of a form, each once. Raises FeedError, HttpError."""
        if call.media_type != n.WEB_FORM:
            text = f"a form is {n.WEB_FORM}; programs use the resources that /openapi.json describes"
            raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text, Accept=n.WEB_FORM)
        body = await self._bodies.read(call, (n.WEB_FORM,))
        try:
            pairs = read_fields(body.decode("ascii"), _MAX_FIELDS)
        except UnicodeDecodeError:
            raise FeedError(Condition.BAD_REQUEST, "a form is ASCII") from None
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise FeedError(Condition.BAD_REQUEST, "a field of the form is repeated; load the page again")
        return fields


def _query(call: HttpCall) -> dict[str, str]:
    return read_parameters(call.query, ("after", "done"))


def _redirect(call: HttpCall, path: str, done: str) -> Reply:
    headers = {"Location": f"{call.base_path}{path}?done={done}", "Cache-Control": "no-store"}
    return Reply(status=HTTPStatus.SEE_OTHER, headers=headers)


async def _create_feed(admin: WebAdmin, call: HttpCall, fields: Fields) -> tuple[str, str]:
    form = {PUBSUB + name: (fields[name],) for name in ("title", "access_model") if fields.get(name)}
    name = fields.get("name", "").strip()
    if not name:
        raise FeedError(Condition.BAD_REQUEST, "the feed needs a name")
    request = CreateNode(call.actor, admin.service, name, {KIND: (fields.get("kind", NodeKind.FEED.value),), **form})
    created = await ask(admin.change, request, NodeCreated)
    return "created", entry_path(created.node, folder=ADMIN_FEEDS)


async def _affiliate(admin: WebAdmin, call: HttpCall, fields: Fields) -> tuple[str, str]:
    affiliation = fields.get("affiliation", Affiliation.NONE.value)
    entries = ((_bare_jid(fields), affiliation),)
    check_applied(await admin.change(SetAffiliations(call.actor, admin.service, call.name, entries)))
    return "saved" if "affiliation" in fields else "removed", ""


async def _subscribe(admin: WebAdmin, call: HttpCall, fields: Fields, state: str) -> tuple[str, str]:
    entries = ((fields.get("jid", "").strip(), state),)
    answer = await admin.change(SetSubscriptions(call.actor, admin.service, call.name, entries))
    check_applied(answer, ends=state == "none")
    return "removed" if state == "none" else "saved", ""


async def _create_token(admin: WebAdmin, call: HttpCall, fields: Fields) -> tuple[str, str]:
    names = ("feed", "scope", "jid", "expires", "label")
    given = {name: fields[name].strip() for name in names if fields.get(name, "").strip()}
    _, text, _ = await create_token(admin.change, call, admin.service, given)
    return "token", text


async def _revoke(admin: WebAdmin, call: HttpCall, fields: Fields) -> tuple[str, str]:
    await ask(admin.change, RevokeToken(call.actor, admin.service, fields.get("id", "")), TokenRevoked)
    return "revoked", ""


async def _retry(admin: WebAdmin, call: HttpCall, fields: Fields) -> tuple[str, str]:
    request = RetryConsumers(call.actor, admin.service, fields.get("consumer") or None)
    await ask(admin.change, request, ConsumersRetried)
    return "retried", ""


def _bare_jid(fields: Fields) -> str:
    jid = parse_jid(fields.get("jid", "").strip())
    if jid is None or jid.resource:
        raise FeedError(Condition.JID_MALFORMED, "the address is not a bare JID such as alice@example.org")
    return str(jid)


async def _read_consumers(admin: WebAdmin, call: HttpCall, after: str) -> RowPage:
    return await read_consumers(admin.handle, call.actor, admin.service, ROWS, after)


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


def _member_form(*_: Any) -> Form:
    roles = tuple((affiliation.value, text) for affiliation, text in _ROLES.items())
    return Form(
        "affiliate",
        N_("Add or change a member"),
        N_("Save"),
        (_JID, Field("affiliation", N_("Role"), "choice", choices=roles)),
    )


def _subscription_form(*_: Any) -> Form:
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
            (),
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
            (Column("jid", N_("XMPP address")), Column("affiliation", N_("Role"))),
            (),
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
            (),
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
                Column("scope", N_("Scope")),
                Column("feed", N_("Feed")),
                Column("state", N_("State")),
                Column("created", N_("Created"), "time"),
                Column("expires", N_("Expires"), "time"),
            ),
            (),
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
                Column("state", N_("State")),
                Column("waiting", N_("Waiting"), "number"),
                Column("lag_s", N_("Lag in seconds"), "number"),
                Column("failures", N_("Failures"), "number"),
                Column("next_attempt", N_("Next attempt"), "time"),
                Column("error", N_("Last error")),
            ),
            (),
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
                Column("direction", N_("Direction")),
                Column("address", N_("Address")),
                Column("step", N_("State")),
                Column("changes", N_("Changes"), "number"),
                Column("waiting", N_("Waiting"), "number"),
                Column("refused", N_("Refused"), "number"),
                Column("failure", N_("Last error")),
            ),
            (),
        ),
        _read_mirrors,
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
                Column("level", N_("Level")),
                Column("event", N_("Event")),
                Column("fields", N_("Details")),
            ),
            (),
        ),
        _read_events,
        {},
    ),
)
