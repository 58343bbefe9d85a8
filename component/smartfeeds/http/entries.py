"""Answers GET of a single item, `/entries/NAME/ID`: an Atom entry, an activity, or a page (SF-065, SF-070).

The conditions of changes are read here, too (RFC 9110 8.8.3, 13.1).

An item has one entity tag for each representation. The tag changes whenever the item changes. Only that of a page also
changes for other reasons: a page shows the title of the feed and the entries beside it.
"""

from dataclasses import replace
from http import HTTPStatus

from smartfeeds.core.options import AccessModel
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom_feed import write_entry
from smartfeeds.formats.representation import Representation
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import is_any, strong_tags_of, unless_known
from smartfeeds.http.encode import Encoder, FeedLinks
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import ATOM, HTML, JSON, OF_ENTRY, OF_ENTRY_PAGE, negotiate
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import IF_NONE_MATCH, SYNC, Content, Operation
from smartfeeds.http.page_writer import PageWriter
from smartfeeds.http.queries import read_flag
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.requests import GetItem, ItemPrecondition, ItemShown

ITEM_CONTENT: Content = {ATOM.bare_type: {"type": "string"}, JSON.bare_type: ref("Item")}
_PAGE_CONTENT: Content = {**ITEM_CONTENT, HTML.bare_type: {"type": "string"}}
GET_ITEM = Operation(
    "getItem",
    "One item in the accepted media type; .atom or .json after the id chooses one, unless an item has that id",
    {200: _PAGE_CONTENT, 410: _PAGE_CONTENT},
    errors=(406,),
    parameters=(IF_NONE_MATCH, SYNC),
    scope=TokenScope.READ,
    cors=True,
)
_JSON_MARK, _SYNC_MARK = ".json", ".sync"
_SUFFIXES = {form.suffix: form for form in OF_ENTRY}


class Entries:
    """Handles GET and HEAD of items. `service` is the address of the service. `pages` writes the pages for browsers,
    with the files of `links`."""

    def __init__(self, handle: Handle, service: str, encoder: Encoder, pages: PageWriter, links: FeedLinks) -> None:
        self._handle = handle
        self._service = service
        self._encoder = encoder
        self._pages = pages
        self._links = links
        self._forms = pages.offered(OF_ENTRY_PAGE)

    async def get(self, call: HttpCall) -> Reply:
        """One item; the tombstone of a deleted item with status 410. Raises FeedError."""
        sync = read_flag(call.query, "sync")
        answer, form = await self._item(call, sync=sync)
        if form is HTML:
            public = _is_public(call, answer)
            if self._links.local is not None:
                answer = self._links.local.in_item(answer, call.site_url)
            reply = await self._pages.entry(call, answer, public=public)
        else:
            reply = self.reply(call, answer, form, sync=sync)
        if answer.item.deleted:
            return replace(reply, status=HTTPStatus.GONE)
        return unless_known(call.header("If-None-Match"), reply)

    async def _item(self, call: HttpCall, *, sync: bool) -> tuple[ItemShown, Representation]:
        """The item of the path and the representation to send. An id may end like a suffix, so the whole id is tried
        first. Raises FeedError."""
        form = negotiate(call.header("Accept"), self._forms, "an item")
        try:
            return await self.read(call, call.item_id, sync=sync, neighbours=form is HTML), form
        except FeedError as error:
            item_id, _, suffix = call.item_id.rpartition(".")
            if error.condition is not Condition.ITEM_NOT_FOUND or not item_id or suffix not in _SUFFIXES:
                raise
        return await self.read(call, item_id, sync=sync), _SUFFIXES[suffix]

    async def read(self, call: HttpCall, item_id: str, *, sync: bool = False, neighbours: bool = False) -> ItemShown:
        """The item, with `sync` including its sync data, with `neighbours` the items beside it. Raises FeedError."""
        request = GetItem(call.actor, self._service, call.name, item_id, sync and not neighbours, neighbours)
        return await ask(self._handle, request, ItemShown)

    def reply(self, call: HttpCall, answer: ItemShown, form: Representation, *, sync: bool = False) -> Reply:
        """The response with an item and its entity tag. `sync`: the item was read with its sync data."""
        as_json = form is JSON
        headers = {
            "ETag": f'"{item_tag(answer.item)}{_SYNC_MARK if sync else ""}{_JSON_MARK if as_json else ""}"',
            "Vary": "Accept, Authorization",
            **access_headers(public=_is_public(call, answer), bearer=call.bearer, expose="ETag, Location"),
        }
        if as_json:
            body = self._encoder.activity(answer.node, answer.item, sync=sync)
        else:
            name, item = answer.node.name, answer.item
            # The name of the feed, not its title: the title may change while the tag of the item stays.
            body = write_entry(item) if sync else write_entry(item, name, f"{call.site_url}{entry_path(name, item.id)}")
        return Reply(body, form.media_type, headers=headers)


def _is_public(call: HttpCall, answer: ItemShown) -> bool:
    return answer.node.options.access_model is AccessModel.OPEN and call.anonymous


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
