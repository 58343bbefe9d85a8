"""Handles changes over HTTP: creates, replaces, moves and retracts items, creates and deletes feeds (SF-009, SF-013,
SF-110).

A bearer token acts as its JID, within its scope, through the same use cases as over XMPP. A change that has begun is
finished even if its client disconnects (`changes`).
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import structlog

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import feed_path
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.formats.json_text import Json
from smartfeeds.formats.representation import Representation
from smartfeeds.formats.xml import Element
from smartfeeds.http.bodies import BodyReader, unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.entries import ITEM_CONTENT, Entries, entry_url, expected_of
from smartfeeds.http.negotiation import ATOM, JSON, OF_ENTRY, choose
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import IF_MATCH, IF_NONE_MATCH, SYNC, Content, Operation
from smartfeeds.http.options_json import options_of_json
from smartfeeds.http.queries import read_flag
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.placing import MoveItem
from smartfeeds.service.requests import (
    DeleteNode,
    EnsureNode,
    ItemShown,
    NodeEnsured,
    Publish,
    Published,
    Purge,
    Retract,
)
from smartfeeds.sync.moves import MoveStep

_log = structlog.get_logger()

_CHANGED = {"Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"}
_EXPOSED = {**_CHANGED, "Access-Control-Expose-Headers": "ETag, Location"}

_JSON = JSON.accept_types[:1]
_BODIES: Content = {kind: {"type": "string"} for kind in ATOM.accept_types}
_MOVES = ({"step"}, {"parent"}, {"after"}, {"parent", "after"})

PUT_ITEM = Operation(
    "putItem",
    "Creates or replaces an item",
    {200: ITEM_CONTENT, 201: ITEM_CONTENT, 204: {}},
    errors=(409, 412, 429),
    parameters=(IF_MATCH, IF_NONE_MATCH, SYNC),
    body=_BODIES,
    scope=TokenScope.PUBLISH,
    cors=True,
)
POST_ITEM = Operation(
    "postItem",
    "Publishes an item; the service chooses its id",
    {200: ITEM_CONTENT, 201: ITEM_CONTENT, 204: {}},
    errors=(429,),
    parameters=(SYNC,),
    body=_BODIES,
    body_required=False,
    scope=TokenScope.PUBLISH,
    cors=True,
)
RETRACT_ITEM = Operation(
    "retractItem",
    "Retracts an item",
    {204: {}},
    errors=(412, 429),
    parameters=(IF_MATCH,),
    scope=TokenScope.PUBLISH,
    cors=True,
)
MOVE_ITEM = Operation(
    "moveItem",
    "Moves an item in the outline of the feed: by a step, or to a parent and behind another item",
    {204: {}},
    errors=(409, 412, 429),
    parameters=(IF_MATCH,),
    body={JSON.bare_type: ref("Move")},
    scope=TokenScope.PUBLISH,
    cors=True,
)
PURGE = Operation("purge", "Retracts all items of a feed", {204: {}}, scope=TokenScope.ADMIN, cors=True)
CREATE_FEED = Operation(
    "createFeed",
    "Creates a feed; 204 if the caller owns a feed with these options already",
    {201: {}, 204: {}},
    errors=(406, 409),
    body={JSON.bare_type: ref("Options")},
    body_required=False,
    scope=TokenScope.ADMIN,
    cors=True,
)
DELETE_FEED = Operation("deleteFeed", "Deletes a feed with all its items", {204: {}}, scope=TokenScope.ADMIN, cors=True)


# Reads the payload in the body of a request, None for an item without one, and the representation for the response if
# the client prefers none. Raises FeedError for a payload that XMPP would reject too, HttpError for a body that cannot
# be read.
ReadItem = Callable[[HttpCall], Awaitable[tuple[Element | None, Representation]]]


class Publishing:
    """Handles PUT, POST, PATCH and DELETE of items and feeds."""

    def __init__(self, change: Handle, service: str, bodies: BodyReader, entries: Entries) -> None:
        self._change = change
        self._service = service
        self._bodies = bodies
        self._entries = entries

    async def retract(self, call: HttpCall) -> Reply:
        """Retracts an item (XEP-0060 7.2)."""
        expected = expected_of(call)
        await self._change(Retract(call.actor, self._service, call.name, call.item_id, expected=expected))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)

    async def move(self, call: HttpCall) -> Reply:
        """Moves an item (SSE 3.2)."""
        step, parent, after = _move_of(await self._bodies.json(call, _JSON))
        request = MoveItem(call.actor, self._service, call.name, call.item_id, step, parent, after, expected_of(call))
        result = await ask(self._change, request, Published)
        return Reply(status=HTTPStatus.NO_CONTENT, headers={**_EXPOSED, "ETag": f'"{result.tag}"'})

    async def purge(self, call: HttpCall) -> Reply:
        """Retracts all items of a feed (XEP-0060 8.5)."""
        await self._change(Purge(call.actor, self._service, call.name))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)

    async def create_feed(self, call: HttpCall) -> Reply:
        """Creates a feed with the options in the body (XEP-0060 8.1). A repeated request changes nothing."""
        options = options_of_json(await self._bodies.json(call, _JSON) if call.request.body_exists else {})
        result = await ask(self._change, EnsureNode(call.actor, self._service, call.name, options), NodeEnsured)
        if not result.created:
            return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)
        headers: Mapping[str, str] = {**_EXPOSED, "Location": f"{call.site_url}{feed_path(call.name)}"}
        return Reply(status=HTTPStatus.CREATED, headers=headers)

    async def delete_feed(self, call: HttpCall) -> Reply:
        """Deletes a feed with all its items (XEP-0060 8.4)."""
        await self._change(DeleteNode(call.actor, self._service, call.name))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)

    async def publish_entry(self, call: HttpCall) -> Reply:
        """Publishes an Atom entry (`publish`)."""
        return await self.publish(call, self._read_entry)

    async def publish(self, call: HttpCall, read: ReadItem) -> Reply:
        """Creates or replaces the item with the id in the path (XEP-0060 7.1). For a path without an id the service
        chooses it. The caller becomes the author of an entry that names nobody."""
        expected = expected_of(call) if call.item_id else None
        sync = read_flag(call.query, "sync")
        payload, form = await read(call)
        request = Publish(
            call.actor,
            self._service,
            call.name,
            call.item_id or None,
            None if payload is None else draft_of(payload, call.actor.bare_text),
            expected=expected,
            # Only a token with the scope admin may create a feed by publishing to it.
            may_create=call.token is not None and call.token.scope >= TokenScope.ADMIN,
        )
        result = await ask(self._change, request, Published)
        if not result.tag:
            return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)
        url = entry_url(call, result.item_id)
        headers = {**_EXPOSED, "Location": url} if result.created else dict(_EXPOSED)
        status = HTTPStatus.CREATED if result.created else HTTPStatus.OK
        answer = await self._read_back(call, result, sync=sync)
        if answer is None and sync:
            sync = False  # the items of a generic node have no sync data
            answer = await self._read_back(call, result, sync=sync)
        if answer is None:
            return Reply(status=status if result.created else HTTPStatus.NO_CONTENT, headers=headers)
        entry = self._entries.reply(call, answer, _response_form(call, form), sync=sync)
        return Reply(entry.body, entry.media_type, status, {**entry.headers, **headers, "Content-Location": url})

    async def _read_entry(self, call: HttpCall) -> tuple[Element | None, Representation]:
        if call.media_type not in ATOM.accept_types:
            raise unsupported("an item is an Atom entry", ATOM.accept_types)
        data = await self._bodies.read(call, ATOM.accept_types)
        return (self._bodies.entry(call, data) if data.strip() else None), ATOM

    async def _read_back(self, call: HttpCall, result: Published, *, sync: bool) -> ItemShown | None:
        """The item as stored; None if its publisher may not read it, if it has changed again, or if the store fails."""
        try:
            answer = await self._entries.read(call, result.item_id, sync=sync)
        except FeedError:
            return None
        except StoreError as error:
            # The item is stored: after a 503 the client would send it again, and POST would make a second item of it.
            _log.error("store_failed", reason=str(error))
            return None
        return answer if item_tag(answer.item) == result.tag else None


def _move_of(value: Json) -> tuple[MoveStep | None, str | None, str | None]:
    """The step, or the parent and the item before. Raises FeedError(BAD_REQUEST)."""
    members = value if isinstance(value, dict) else {}
    texts = {name: text for name, text in members.items() if isinstance(text, str)}
    if not texts or len(texts) < len(members) or texts.keys() not in _MOVES:
        raise FeedError(
            Condition.BAD_REQUEST, "a move is a JSON object with step, or with parent, after or both, which are texts"
        )
    try:
        step = MoveStep(texts["step"]) if "step" in texts else None
    except ValueError:
        raise FeedError(Condition.BAD_REQUEST, f"step is one of {', '.join(step.value for step in MoveStep)}") from None
    return step, texts.get("parent"), texts.get("after")


def _response_form(call: HttpCall, body_form: Representation) -> Representation:
    """The representation of the response: by Accept, else the one of the request body."""
    offered = (body_form, *(form for form in OF_ENTRY if form is not body_form))
    return choose(call.header("Accept"), offered) or body_form
