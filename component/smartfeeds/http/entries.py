"""Single items over HTTP: `/entries/NAME/ID`, as an Atom entry or an activity (SF-065, SF-070; RFC 9110 8.8.3, 13.1).

An item has one entity tag for each representation. The tag changes whenever the item changes, and only then.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from smartfeeds.core.options import AccessModel
from smartfeeds.core.tokens import TokenScope
from smartfeeds.core.urls import entry_path
from smartfeeds.formats.atom_feed import write_entry
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import is_any, strong_tags_of, unless_known
from smartfeeds.http.encode import Encoder
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import Representation
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import IF_NONE_MATCH, Content, Operation
from smartfeeds.http.queries import SYNC, read_flag
from smartfeeds.http.replies import Reply
from smartfeeds.service.preconditions import item_tag
from smartfeeds.service.requests import Answer, GetItem, ItemPrecondition, ItemShown, Request

Handle = Callable[[Request], Awaitable[Answer]]

ITEM_CONTENT: Content = {n.ATOM.bare_type: {"type": "string"}, n.JSON.bare_type: ref("Item")}
GET_ITEM = Operation(
    "getItem",
    "One item",
    {200: ITEM_CONTENT, 410: ITEM_CONTENT},
    errors=(406,),
    parameters=(IF_NONE_MATCH, SYNC),
    scope=TokenScope.READ,
    cors=True,
)
_JSON_MARK, _SYNC_MARK = ".json", ".sync"
_EXPOSED = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Location"}


class Entries:
    """Handles GET and HEAD of items. `service` is the address of the service."""

    def __init__(self, handle: Handle, service: str, encoder: Encoder) -> None:
        self._handle = handle
        self._service = service
        self._encoder = encoder

    async def get(self, call: HttpCall) -> Reply:
        """One item; the tombstone of a deleted item with status 410. Raises FeedError."""
        form = n.negotiate(call.header("Accept"), n.OF_ENTRY, "an item")
        sync = read_flag(call.query, "sync")
        answer = await self.read(call, call.item_id, sync=sync)
        reply = self.reply(call, answer, form, sync=sync)
        if answer.item.deleted:
            return Reply(reply.body, reply.media_type, HTTPStatus.GONE, reply.headers)
        return unless_known(call.header("If-None-Match"), reply)

    async def read(self, call: HttpCall, item_id: str, *, sync: bool = False) -> ItemShown:
        """The item, with `sync` including its sync data. Raises FeedError."""
        answer = await self._handle(GetItem(call.actor, self._service, call.name, item_id, sync))
        assert isinstance(answer, ItemShown)
        return answer

    def reply(self, call: HttpCall, answer: ItemShown, form: Representation, *, sync: bool = False) -> Reply:
        """The response with an item and its entity tag. `sync`: the item was read with its sync data."""
        public = answer.node.options.access_model is AccessModel.OPEN and call.anonymous
        as_json = form is n.JSON
        headers = {
            "ETag": f'"{item_tag(answer.item)}{_SYNC_MARK if sync else ""}{_JSON_MARK if as_json else ""}"',
            "Cache-Control": "no-cache" if public else "private, no-cache",
            "Vary": "Accept, Authorization",
        }
        if public or call.bearer:
            headers |= _EXPOSED
        if as_json:
            body = self._encoder.activity(answer.node, answer.item, sync=sync)
        else:
            name, item = answer.node.name, answer.item
            # The name of the feed, not its title: the title may change while the tag of the item stays.
            body = write_entry(item) if sync else write_entry(item, name, f"{call.site_url}{entry_path(name, item.id)}")
        return Reply(body, form.media_type, headers=headers)


def entry_url(call: HttpCall, item_id: str) -> str:
    """The address of an item of the feed."""
    return f"{call.site_url}{entry_path(call.name, item_id)}"


def expected_of(call: HttpCall) -> ItemPrecondition | None:
    """The condition of a change (RFC 9110 13.1). Tags are compared strongly; any representation will do.

    Raises HttpError(400) for a condition that changes do not support.
    """
    match, none_match = call.header("If-Match").strip(), call.header("If-None-Match").strip()
    if match and none_match:
        raise HttpError(HTTPStatus.BAD_REQUEST, "a change cannot have both If-Match and If-None-Match")
    if none_match:
        if not is_any(none_match):
            raise HttpError(
                HTTPStatus.BAD_REQUEST, "a change supports only If-None-Match: *, for an item that must not exist yet"
            )
        return ItemPrecondition(absent=True)
    if not match:
        return None
    if is_any(match):
        return ItemPrecondition()
    tags = strong_tags_of(match)
    return ItemPrecondition(frozenset(tag.removesuffix(_JSON_MARK).removesuffix(_SYNC_MARK) for tag in tags))
