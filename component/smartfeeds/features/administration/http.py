"""Administration over HTTP: options, affiliations and subscriptions of nodes, tokens, consumers, mirrors, statistics.

The requests are those of the ad-hoc commands, so the same rules decide: owners manage their own nodes, admins of the
service all nodes. The rows are those that the commands print with `--json`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus

from smartfeeds.core import urls
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ID_BYTES, Affiliation
from smartfeeds.core.options import OPTIONS, PUBSUB
from smartfeeds.core.page import parse_number
from smartfeeds.core.times import parse_duration
from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES, TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts.listing import AddToken, RevokeToken, TokenAdded, TokenRevoked
from smartfeeds.features.accounts.tokens import new_token
from smartfeeds.features.administration.lists import (
    MEMBERS,
    MIRRORS,
    SUBSCRIPTIONS,
    TOKENS,
    RowList,
    read_rows,
)
from smartfeeds.features.administration.process import GetStatistics, Statistics
from smartfeeds.formats.json_text import Json, JsonObject, dump_json
from smartfeeds.http import negotiation as n
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import is_any, strong_tags_of, unless_known
from smartfeeds.http.openapi_schemas import AFFILIATIONS, exactly, ref
from smartfeeds.http.operations import IF_MATCH, IF_NONE_MATCH, WHOLE_NUMBER, Operation, Parameter
from smartfeeds.http.options_json import KIND_NAME, check_names, form_values, options_json
from smartfeeds.http.queries import read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask, check_applied
from smartfeeds.service.consumer_requests import ConsumersRetried, RetryConsumers
from smartfeeds.service.preconditions import options_tag
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    GetConfiguration,
    SetAffiliations,
    SetSubscriptions,
)
from smartfeeds.service.resources import RowPage
from smartfeeds.texts import N_

USUAL, MOST = 100, 500  # rows in a page
_JSON = (n.JSON.bare_type,)
_PATCHES = ("application/merge-patch+json", n.JSON.bare_type)
_PRIVATE = {"Cache-Control": "no-store", "Vary": "Authorization, Cookie"}
_MAX = Parameter("max", WHOLE_NUMBER, "largest number of rows")
_AFTER = Parameter(
    "after", {"type": "string"}, "rows after this position, from the address in next; empty for the first"
)
_ROWS = {200: {n.JSON.bare_type: ref("Rows")}}
_OPTIONS = {n.JSON.bare_type: ref("Options")}


def _list(name: str, summary: str) -> Operation:
    """A list in which a position can be one that the list does not have."""
    return Operation(name, summary, _ROWS, errors=(404,), parameters=(_MAX, _AFTER), scope=TokenScope.ADMIN)


GET_OPTIONS = Operation(
    "getOptions",
    "The options of a node",
    {200: _OPTIONS},
    parameters=(IF_NONE_MATCH,),
    scope=TokenScope.ADMIN,
)
PATCH_FEED = Operation(
    "configureFeed",
    "Changes options of a node by a JSON merge patch (RFC 7396); null restores the default. If-Match has the entity "
    "tag of /options/NAME/",
    {200: _OPTIONS},
    errors=(406, 412),
    parameters=(IF_MATCH,),
    body=dict.fromkeys(_PATCHES, ref("OptionChanges")),
    scope=TokenScope.ADMIN,
)
LIST_MEMBERS = _list("listMembers", "The affiliations of a node")
PUT_MEMBER = Operation(
    "putMember",
    "Gives a bare JID an affiliation with a node",
    {204: {}},
    errors=(409,),
    body={n.JSON.bare_type: ref("Member")},
    scope=TokenScope.ADMIN,
)
DELETE_MEMBER = Operation(
    "deleteMember", "Removes the affiliation of a bare JID", {204: {}}, errors=(409,), scope=TokenScope.ADMIN
)
LIST_SUBSCRIPTIONS = _list("listSubscriptions", "The subscribed addresses of a node")
SUBSCRIBE = Operation(
    "putSubscription", "Subscribes an address to a node, or approves its request", {204: {}}, scope=TokenScope.ADMIN
)
UNSUBSCRIBE = Operation(
    "deleteSubscription", "Ends the subscriptions of an address to a node", {204: {}}, scope=TokenScope.ADMIN
)
LIST_TOKENS = _list("listTokens", "Your bearer tokens without their secrets; those of everybody for admins")
POST_TOKEN = Operation(
    "postToken",
    "Creates a bearer token, which only this response shows",
    {201: {n.JSON.bare_type: ref("TokenCreated")}},
    body={n.JSON.bare_type: ref("TokenRequest")},
    scope=TokenScope.ADMIN,
)
DELETE_TOKEN = Operation("deleteToken", "Revokes a bearer token at once", {204: {}}, scope=TokenScope.ADMIN)
RETRY_CONSUMERS = Operation(
    "retryConsumers",
    "Makes the next attempt for consumers that failed now, also for those that were given up",
    {200: {n.JSON.bare_type: exactly({"retried": WHOLE_NUMBER})}},
    errors=(404,),
    body={n.JSON.bare_type: ref("Retry")},
    scope=TokenScope.ADMIN,
)
LIST_MIRRORS = _list("listMirrors", "The mirrors of your nodes with their state; all mirrors for admins")
GET_STATISTICS = Operation(
    "getStatistics",
    "Counts of the service, for admins",
    {200: {n.JSON.bare_type: ref("Statistics")}},
    scope=TokenScope.ADMIN,
)


class Administration:
    """Handles the requests. `service` is the address of the service; `change` performs a request even if the client
    disconnects."""

    def __init__(self, handle: Handle, change: Handle, service: str, bodies: BodyReader) -> None:
        self._handle = handle
        self._change = change
        self._service = service
        self._bodies = bodies

    async def get_options(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        return unless_known(call.header("If-None-Match"), _options_reply(await self._configuration(call)))

    async def configure(self, call: HttpCall) -> Reply:
        """Changes options of a node (XEP-0060 8.2). Raises FeedError."""
        changes = await self._body(call, _PATCHES)
        kind = changes.pop(KIND_NAME, None)
        check_names(changes)
        options = (await self._configuration(call)).options
        if kind not in (None, options.kind.value):
            raise FeedError(Condition.NOT_ACCEPTABLE, f"{KIND_NAME}: this node stays a {options.kind.value} node")
        form = {
            f"{PUBSUB}{name}": OPTIONS[name].defaults[options.kind] if value is None else form_values(name, value)
            for name, value in changes.items()
        }
        match = call.header("If-Match")
        expected = strong_tags_of(match) if match and not is_any(match) else None
        await self._change(Configure(call.actor, self._service, call.name, form, expected))
        path = f"{call.site_url}{urls.entry_path(call.name, folder=urls.OPTIONS)}"
        return _options_reply(await self._configuration(call)).with_headers(Content_Location=path)

    async def _configuration(self, call: HttpCall) -> Configuration:
        return await ask(self._handle, GetConfiguration(call.actor, self._service, call.name), Configuration)

    async def members(self, call: HttpCall) -> Reply:
        """The affiliations of a node (XEP-0060 8.9.1). Raises FeedError."""
        return await self._rows(call, MEMBERS)

    async def affiliate(self, call: HttpCall) -> Reply:
        """Gives a JID an affiliation (XEP-0060 8.9.2). Raises FeedError."""
        affiliation = _text(await self._body(call, _JSON, "affiliation"), "affiliation", AFFILIATIONS)
        await set_affiliation(self._change, call, self._service, call.subject, affiliation)
        return _DONE

    async def disaffiliate(self, call: HttpCall) -> Reply:
        """Removes an affiliation. Raises FeedError."""
        await set_affiliation(self._change, call, self._service, call.subject, Affiliation.NONE.value)
        return _DONE

    async def subscriptions(self, call: HttpCall) -> Reply:
        """The subscribed addresses of a node (XEP-0060 8.8.1). Raises FeedError."""
        return await self._rows(call, SUBSCRIPTIONS)

    async def subscribe(self, call: HttpCall) -> Reply:
        """Subscribes an address (XEP-0060 8.8.2). Raises FeedError."""
        await set_subscription(self._change, call, self._service, call.subject, "subscribed")
        return _DONE

    async def unsubscribe(self, call: HttpCall) -> Reply:
        """Ends subscriptions (XEP-0060 8.8.4). Raises FeedError."""
        await set_subscription(self._change, call, self._service, call.subject, "none")
        return _DONE

    async def tokens(self, call: HttpCall) -> Reply:
        """Bearer tokens. Raises FeedError."""
        return await self._rows(call, TOKENS)

    async def post_token(self, call: HttpCall) -> Reply:
        """Creates a bearer token. Raises FeedError."""
        body = await self._body(call, _JSON, "feed", "scope", "jid", "expires", "label")
        token_id, text, node_there = await create_token(self._change, call, self._service, body)
        created = {"id": token_id, "token": text, "nodeExists": node_there}
        return Reply(dump_json(created), n.JSON.media_type, HTTPStatus.CREATED, headers=_PRIVATE)

    async def delete_token(self, call: HttpCall) -> Reply:
        """Revokes a bearer token. Raises FeedError."""
        await ask(self._change, RevokeToken(call.actor, self._service, call.subject), TokenRevoked)
        return _DONE

    async def retry(self, call: HttpCall) -> Reply:
        """Retries consumers that failed. Raises FeedError."""
        name = _text(await self._body(call, _JSON, "consumer"), "consumer")
        request = RetryConsumers(call.actor, self._service, None if name == ALL_FEEDS else name)
        answer = await ask(self._change, request, ConsumersRetried)
        return Reply(dump_json({"retried": answer.count}), n.JSON.media_type, headers=_PRIVATE)

    async def mirrors(self, call: HttpCall) -> Reply:
        """Mirrors with their state. Raises FeedError."""
        return await self._rows(call, MIRRORS)

    async def statistics(self, call: HttpCall) -> Reply:
        """Counts of the service. Raises FeedError."""
        answer = await ask(self._handle, GetStatistics(call.actor, self._service), Statistics)
        counts: JsonObject = {
            **asdict(answer.counts),
            "uptime_s": answer.uptime_s,
            "requests": answer.requests,
            "notifications": answer.readings.sent,
            "rates": answer.rates._asdict(),
        }
        return Reply(dump_json(counts), n.JSON.media_type, headers=_PRIVATE)

    async def _rows(self, call: HttpCall, rows: RowList) -> Reply:
        query = _page_query(call)
        page = await read_rows(
            self._handle, rows, call.actor, self._service, call.name, _most(query), query.get("after", "")
        )
        return _rows_reply(call, query, page)

    async def _body(self, call: HttpCall, media_types: tuple[str, ...], *members: str) -> JsonObject:
        """A JSON object with at most these members, or with any. Raises FeedError, HttpError."""
        value = await self._bodies.json(call, media_types)
        if not isinstance(value, dict) or (members and not value.keys() <= set(members)):
            names = f" of {', '.join(members)}" if members else ""
            raise FeedError(Condition.BAD_REQUEST, f"the body is a JSON object{names}")
        return value


async def set_affiliation(change: Handle, call: HttpCall, service: str, jid: str, affiliation: str) -> None:
    """Gives a bare JID an affiliation with the node of a call. Raises FeedError."""
    entries = ((_bare_jid(jid), affiliation),)
    check_applied(await change(SetAffiliations(call.actor, service, call.name, entries)))


async def set_subscription(change: Handle, call: HttpCall, service: str, jid: str, state: str) -> None:
    """Subscribes an address to the node of a call, or with the state `none` ends its subscriptions. Raises
    FeedError."""
    answer = await change(SetSubscriptions(call.actor, service, call.name, ((jid, state),)))
    check_applied(answer, ends=state == "none")


async def create_token(
    change: Handle, call: HttpCall, service: str, fields: Mapping[str, Json]
) -> tuple[str, str, bool]:
    """Stores a new token with these fields. Returns its id, its text, and whether its node exists. Raises FeedError."""
    feed, scope = _text(fields, "feed"), _text(fields, "scope", tuple(SCOPES))
    label, expires = _text(fields, "label", default=""), _text(fields, "expires", default="")
    jid = _bare_jid(_text(fields, "jid", default=str(call.actor.bare)))
    for name, text, most_bytes in (("feed", feed, MAX_ID_BYTES), ("label", label, MAX_LABEL_BYTES)):
        if not text.isprintable() or len(text.encode()) > most_bytes:
            raise FeedError(Condition.BAD_REQUEST, f"{name}: printable text of at most {most_bytes} bytes")
    lifetime_s = parse_duration(expires) if expires else None
    if expires and lifetime_s is None:
        raise FeedError(Condition.BAD_REQUEST, "expires: a number and one of s, m, h, d, w, such as 90d")
    token, text = new_token(jid, SCOPES[scope], feed, label)
    answer = await ask(change, AddToken(call.actor, service, token, lifetime_s), TokenAdded)
    return token.token_id, text, answer.node_there


def _bare_jid(text: str) -> str:
    """A bare JID in its normal form. Raises FeedError(JID_MALFORMED)."""
    jid = parse_jid(text)
    if jid is None or jid.resource:
        raise FeedError(Condition.JID_MALFORMED, N_("the address is not a bare JID such as alice@example.org"))
    return str(jid)


def _text(fields: Mapping[str, Json], name: str, choices: tuple[str, ...] = (), default: str | None = None) -> str:
    """A text of a body. Raises FeedError(BAD_REQUEST)."""
    value = fields.get(name, default)
    if not isinstance(value, str) or (not value and default is None) or (choices and value not in choices):
        raise FeedError(Condition.BAD_REQUEST, f"{name}: {'one of ' + ', '.join(choices) if choices else 'a text'}")
    return value


def _page_query(call: HttpCall) -> dict[str, str]:
    return read_parameters(call.query, ("max", "after"))


def _most(query: Mapping[str, str]) -> int:
    return min(max(1, parse_number(query.get("max", str(USUAL)), "max")), MOST)


def _rows_reply(call: HttpCall, query: Mapping[str, str], page: RowPage) -> Reply:
    head: JsonObject = {"count": len(page.rows)}
    if page.total is not None:
        head["totalItems"] = page.total
    if page.after:
        head["next"] = f"{call.site_url}{call.path}?{write_query({**query, 'after': page.after})}"
    return call.zipped(Reply(dump_json({**head, "items": list(page.rows)}), n.JSON.media_type, headers=_PRIVATE))


def _options_reply(configuration: Configuration) -> Reply:
    options = configuration.options
    headers = {**_PRIVATE, "Cache-Control": "private, no-cache", "ETag": f'"{options_tag(options)}"'}
    return Reply(dump_json(options_json(options)), n.JSON.media_type, headers=headers)


_DONE = Reply(status=HTTPStatus.NO_CONTENT, headers=_PRIVATE)
