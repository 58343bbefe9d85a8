"""Micropub: blog editors create, change and delete entries of a feed (W3C Recommendation of 23 May 2017).

`/micropub/NAME` publishes in the feed NAME, or in the one that `mp-destination` names. `/media/NAME` takes files. A
token is in the header Authorization or in the field `access_token`. A browser adds neither by itself, so pages of other
hosts may use these addresses; the password of Basic counts only from our own pages.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import unquote

from smartfeeds.core.model import Affiliation, Item
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.token import TokenScope, covers
from smartfeeds.core.urls import ENTRIES, feed_path, media_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.form_parts import FormParts, read_parts
from smartfeeds.features.authoring.micropub_requests import (
    TOKEN_FIELD,
    MicropubRequest,
    command,
    first_of,
    is_names,
    lists_of,
    request_of_form,
    request_of_json,
    values_of,
)
from smartfeeds.features.authoring.post_fields import MAX_FIELDS
from smartfeeds.features.authoring.uploads import Uploads
from smartfeeds.formats import microformats
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.formats.microformats import ENTRY_TYPE, Properties
from smartfeeds.formats.xml import Element, parse_stored
from smartfeeds.http.bodies import unsupported
from smartfeeds.http.calls import HttpCall, is_from_here
from smartfeeds.http.entries import entry_url
from smartfeeds.http.http_errors import HttpError, InsufficientScopeError, error_reply
from smartfeeds.http.negotiation import JSON, MULTIPART, WEB_FORM
from smartfeeds.http.openapi_schemas import TEXT, Schema, exactly
from smartfeeds.http.operations import Content, Operation, Parameter
from smartfeeds.http.paths import PathTemplate, decode_value
from smartfeeds.http.queries import read_fields
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import ask
from smartfeeds.service.drafts import PayloadDraft, draft_of
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.requests import (
    AffiliationList,
    GetAffiliations,
    GetItem,
    ItemPrecondition,
    ItemShown,
    Publish,
    Published,
    Retract,
)

TRIES = 3  # an update is repeated if somebody else has changed the entry meanwhile
DESTINATIONS = "500"
_PUBLISHERS = frozenset({Affiliation.OWNER, Affiliation.PUBLISHER})
_ENTRY = PathTemplate(f"{ENTRIES}{{name}}/{{id}}")
_HEADERS = {
    "Cache-Control": "no-store",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Location, Link",
}
# The name of an error by its status (Micropub 3.8; RFC 6750 3.1).
_ERRORS: Mapping[int, str] = {
    401: "unauthorized",
    403: "forbidden",
    413: "invalid_request",
    429: "temporarily_unavailable",
}
_OBJECT: Content = {JSON.bare_type: {"type": "object"}}
_TEXT = {"type": "string"}
_VISIBLE: Schema = {"type": "string", "pattern": "\\S"}
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_VALUES: Schema = {"type": "object", "additionalProperties": {"type": "array"}}
_ADDRESS: Schema = TEXT | {"description": "the address of an entry of this service"}
_H_ENTRY = exactly(
    {
        "type": {"const": [ENTRY_TYPE]},
        "properties": {
            "type": "object",
            "required": ["content"],
            "properties": {
                "content": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"anyOf": [_VISIBLE, exactly({"html": _VISIBLE})]},
                },
                "name": _TEXTS,
                "summary": _TEXTS,
                "category": _TEXTS,
            },
            "additionalProperties": {"type": "array"},
        },
    }
)
_UPDATE = exactly(
    {"action": {"const": "update"}, "url": _ADDRESS},
    {"replace": _VALUES, "add": _VALUES, "delete": {"anyOf": [_VALUES, _TEXTS]}},
)
_DELETE = exactly({"action": {"const": "delete"}, "url": _ADDRESS})
_FORM: Schema = {
    "type": "object",
    "anyOf": [
        {
            "required": ["content"],
            "properties": {
                "h": {"const": "entry"},
                "content": _VISIBLE,
                "name": {"type": "string"},
                "summary": {"type": "string"},
                "category": {"type": "string"},
            },
        },
        {
            "required": ["action", "url"],
            "properties": {"action": {"const": "delete"}, "url": _ADDRESS},
        },
    ],
}
_FORM_WITH_FILES = _FORM | {"properties": {"photo": {"type": "string", "format": "binary"}}}
_FILE_PART: Schema = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
    # No header of a part can hold the control characters in the name of a field (RFC 9110 5.5).
    "propertyNames": {"pattern": "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f]*$"},
}

QUERY = Operation(
    "micropubQuery",
    "Micropub: the configuration, or the source of an entry",
    {200: _OBJECT},
    errors=(403,),
    parameters=(
        Parameter("q", {"enum": ["config", "source", "syndicate-to"]}, "what to return", required=True),
        Parameter("url", _TEXT, "for source: the address of the entry"),
        Parameter("properties[]", _TEXT, "for source: a property to return, repeatable"),
    ),
    cors=True,
)
CREATE = Operation(
    "micropub",
    "Micropub: creates, updates, deletes an entry; JSON, a form, or a form with files",
    {201: {}, 204: {}},
    errors=(403, 429),
    body={JSON.bare_type: {"anyOf": [_H_ENTRY, _UPDATE, _DELETE]}, WEB_FORM: _FORM, MULTIPART: _FORM_WITH_FILES},
    cors=True,
    any_site=True,
)
MEDIA = Operation(
    "micropubMedia",
    "Micropub: stores the part named file of a form, for an entry that follows",
    {201: {}},
    errors=(403, 429),
    body={MULTIPART: _FILE_PART},
    cors=True,
    any_site=True,
)


class Micropub:
    """Handles GET and POST of Micropub endpoints."""

    def __init__(self, tools: SiteTools, uploads: Uploads) -> None:
        self._change = tools.perform
        self._handle = tools.handle
        self._read_token = tools.authenticator.read_token
        self._service = tools.domain
        self._bodies = tools.bodies
        self._uploads = uploads

    async def query(self, call: HttpCall) -> Reply:
        """Answers a query (Micropub 3.7)."""
        return await _answered(call, self._query)

    async def post(self, call: HttpCall) -> Reply:
        """Creates, updates or deletes an entry (Micropub 3.3 to 3.5)."""
        return await _answered(call, self._post)

    async def media(self, call: HttpCall) -> Reply:
        """Stores a file (Micropub 3.6)."""
        return await _answered(call, self._media)

    async def _query(self, call: HttpCall) -> Reply:
        await self._identify(call, "")
        fields = lists_of(read_fields(call.query, MAX_FIELDS) if call.query else ())
        what = first_of(fields, "q")
        if what == "syndicate-to":
            return _json({"syndicate-to": []})
        if what == "config":
            return _json(await self._config(call))
        if what != "source":
            raise FeedError(Condition.BAD_REQUEST, f"q: {what[:40]!r}; there are config, source and syndicate-to")
        item_id = _take_address(call, first_of(fields, "url"))
        _require(call, TokenScope.READ)
        item = await self._item(call, item_id)
        if item.deleted:
            raise FeedError(Condition.BAD_REQUEST, "url: the entry was deleted")
        properties = microformats.properties_of(read_entry(item))
        if "properties" in fields:
            return _json({"properties": {name: properties.get(name, []) for name in fields["properties"]}})
        return _json({"type": [ENTRY_TYPE], "properties": {**properties, "url": [entry_url(call, item.id)]}})

    async def _config(self, call: HttpCall) -> JsonObject:
        own = await ask(
            self._handle,
            GetAffiliations(call.actor, self._service, page=ResultSetRequest(max=DESTINATIONS)),
            AffiliationList,
        )
        token = call.token
        names = [entry.node for entry in own.entries if entry.affiliation in _PUBLISHERS]
        destinations = [
            {"uid": f"{call.site_url}{feed_path(name)}", "name": name}
            for name in names
            if token is not None and covers(token, TokenScope.PUBLISH, name)
        ]
        return {
            "media-endpoint": f"{call.site_url}{media_path(call.name)}",
            "syndicate-to": [],
            "destination": destinations,
            "q": ["config", "source", "syndicate-to"],
        }

    async def _post(self, call: HttpCall) -> Reply:
        request = await self._read(call)
        _require(call)
        handler = _ACTIONS.get(request.action)
        if handler is None:
            raise FeedError(Condition.BAD_REQUEST, f"action: {request.action[:40]!r}; there are {', '.join(_ACTIONS)}")
        return await handler(self, call, request)

    async def _media(self, call: HttpCall) -> Reply:
        if call.media_type != MULTIPART:
            raise unsupported(f"a file is a part named file of {MULTIPART}", (MULTIPART,))
        parts = await self._parts(call)
        if len(parts.files) != 1:
            raise FeedError(Condition.BAD_REQUEST, f"{len(parts.files)} files; send one, as the part file")
        return _created(parts.files[0][1].href)

    # The actions.

    async def create(self, call: HttpCall, request: MicropubRequest) -> Reply:
        """A new entry. A slug that is free becomes its id; with a slug that is taken the service chooses an id."""
        builder = EntryBuilder(0, "")
        microformats.fill(builder, request.properties)
        slug = command(request, "mp-slug").strip()
        if slug:
            try:
                return await self._create(call, builder.entry, slug, ItemPrecondition(absent=True))
            except FeedError as error:
                if error.condition is not Condition.PRECONDITION_NOT_MET:
                    raise
        return await self._create(call, builder.entry, "", None)

    async def _create(self, call: HttpCall, entry: Element, slug: str, expected: ItemPrecondition | None) -> Reply:
        published = await self._publish(call, draft_of(entry, call.actor.bare_text), slug, expected)
        return _created(entry_url(call, published.item_id))

    async def update(self, call: HttpCall, request: MicropubRequest) -> Reply:
        """Changes properties of an entry. Everything else of the entry stays."""
        replace, add = (values_of(request.commands.get(name, {}), name) for name in ("replace", "add"))
        delete = request.commands.get("delete", {})
        removals: Properties | Sequence[str] = delete if is_names(delete) else values_of(delete, "delete")
        item_id = _take_address(call, command(request, "url"))
        _require(call)
        for _ in range(TRIES):
            item = await self._item(call, item_id)
            if item.deleted:
                raise FeedError(Condition.BAD_REQUEST, "url: the entry was deleted")
            builder = EntryBuilder(0, "")
            builder.entry = parse_stored(item.payload)
            microformats.change(builder, read_entry(item), replace=replace, add=add, delete=removals)
            try:
                draft = draft_of(builder.entry)
                await self._publish(call, draft, item_id, ItemPrecondition(frozenset({item_tag(item)})))
            except FeedError as error:
                if error.condition is not Condition.PRECONDITION_NOT_MET:
                    raise
            else:
                return Reply(status=HTTPStatus.NO_CONTENT, headers=_HEADERS)
        raise FeedError(Condition.BUSY, "somebody else changes the entry again and again; retry later")

    async def delete(self, call: HttpCall, request: MicropubRequest) -> Reply:
        """Deletes an entry."""
        item_id = _take_address(call, command(request, "url"))
        _require(call)
        await self._change(Retract(call.actor, self._service, call.name, item_id))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_HEADERS)

    async def undelete(self, call: HttpCall, request: MicropubRequest) -> Reply:
        """Refused: the tombstone of an entry has nothing of its content."""
        _take_address(call, command(request, "url"))
        raise FeedError(
            Condition.BAD_REQUEST, "undelete: the service stores nothing of a deleted entry; publish it again"
        )

    async def _publish(
        self, call: HttpCall, draft: PayloadDraft, item_id: str, expected: ItemPrecondition | None
    ) -> Published:
        return await ask(
            self._change,
            Publish(
                call.actor,
                self._service,
                call.name,
                item_id or None,
                draft,
                expected=expected,
                may_create=False,
            ),
            Published,
        )

    async def _item(self, call: HttpCall, item_id: str) -> Item:
        return (await ask(self._handle, GetItem(call.actor, self._service, call.name, item_id), ItemShown)).item

    # Requests.

    async def _identify(self, call: HttpCall, field: str) -> None:
        """Sets the caller by the token in the header or in the field, not both (RFC 6750 2). Raises FeedError."""
        header = call.header("Authorization")
        if field:
            if header:
                raise FeedError(Condition.BAD_REQUEST, f"send the token in the header or as {TOKEN_FIELD}, not both")
            call.act_as(await self._read_token(field))
        elif call.token is None or not header:
            raise FeedError(
                Condition.NOT_AUTHORIZED, f"this takes a token, in the header Authorization or as {TOKEN_FIELD}"
            )
        elif not header.lower().startswith("bearer ") and not is_from_here(call):
            raise HttpError(HTTPStatus.FORBIDDEN, "a page of another site must send a bearer token")

    async def _read(self, call: HttpCall) -> MicropubRequest:
        """The request of a body in one of its three forms, after the caller was identified. Raises FeedError."""
        if call.media_type in _JSON:
            await self._identify(call, "")
            request = request_of_json(await self._bodies.json(call, _JSON))
        elif call.media_type == MULTIPART:
            parts = await self._parts(call)
            request = request_of_form(parts.fields, parts)
        elif call.media_type == WEB_FORM:
            pairs = await self._bodies.form(call)
            await self._identify(call, first_of(lists_of(pairs), TOKEN_FIELD))
            request = request_of_form(pairs)
        else:
            raise unsupported(f"the body is one of {', '.join(_BODIES)}", _BODIES)
        if destination := command(request, "mp-destination"):
            call.name = _destination(call, destination)
        return request

    async def _parts(self, call: HttpCall) -> FormParts:
        """The parts of a body. The caller is identified before the first file is read, so the token comes first."""
        identified = False

        async def identify(fields: Sequence[tuple[str, str]]) -> None:
            nonlocal identified
            if not identified:
                lists = lists_of(fields)
                await self._identify(call, first_of(lists, TOKEN_FIELD))
                if destination := first_of(lists, "mp-destination"):
                    call.name = _destination(call, destination)
                _require(call)
                identified = True

        parts = await read_parts(call, self._uploads, self._bodies.limit_bytes, before_file=identify)
        await identify(parts.fields)
        return parts


_Action = Callable[[Micropub, HttpCall, MicropubRequest], Awaitable[Reply]]
_ACTIONS: Mapping[str, _Action] = {
    "create": Micropub.create,
    "update": Micropub.update,
    "delete": Micropub.delete,
    "undelete": Micropub.undelete,
}
_JSON = JSON.accept_types[:1]
_BODIES = (WEB_FORM, *_JSON, MULTIPART)


async def _answered(call: HttpCall, work: Callable[[HttpCall], Awaitable[Reply]]) -> Reply:
    """The response, or the error in the form of Micropub 3.8, which is a problem (RFC 9457) with two members more."""
    try:
        return await work(call)
    except FeedError as error:
        problem = error_reply(error, anonymous=call.anonymous)
        code = _ERRORS.get(problem.status, "invalid_request")
        if isinstance(error, InsufficientScopeError):
            code = "insufficient_scope"
        reply = error_reply(
            error, anonymous=call.anonymous, error=code, error_description=problem.detail or problem.title
        )
        return reply.with_headers(Access_Control_Allow_Origin="*")


def _require(call: HttpCall, scope: TokenScope = TokenScope.PUBLISH) -> None:
    """Raises InsufficientScopeError if the token does not have this scope on the feed. The router cannot check it,
    because the body or the query may name another feed than the path."""
    if call.token is None or not covers(call.token, scope, call.name):
        raise InsufficientScopeError(
            Condition.FORBIDDEN, f"this takes a token with the scope {scope.text} on this feed"
        )


def _take_address(call: HttpCall, url: str) -> str:
    """The id of the entry with this address; the call is for its feed from now on. Raises FeedError(BAD_REQUEST)."""
    match = _ENTRY.match(url.removeprefix(call.site_url)) if url.startswith(f"{call.site_url}/") else None
    if match is None:
        raise FeedError(Condition.BAD_REQUEST, f"url: {url[:80]!r} is no entry of this service")
    call.name = decode_value(match["name"])
    return decode_value(match["id"])


def _destination(call: HttpCall, text: str) -> str:
    """The name of the feed that a client chose by its address or name."""
    path = text.removeprefix(f"{call.site_url}{feed_path('')[:-1]}")
    return unquote(path.rstrip("/")) if path != text else text


def _created(url: str) -> Reply:
    return Reply(status=HTTPStatus.CREATED, headers={**_HEADERS, "Location": url})


def _json(value: JsonObject) -> Reply:
    return Reply(dump_json(value), JSON.media_type, headers=_HEADERS)
