"""Conflicts over HTTP: lists of items with conflicts, and decisions (FeedSync 3.4, SSE 5; A-62).

`/conflicts/NAME/` lists the items of a feed that have conflicts. `/conflicts/NAME/ID` shows one of them, as JSON or as
a page, and takes the decision as JSON or as the form of that page. The router accepts the form only from a page of this
service. Pages of other hosts cannot send JSON, because these routes do not allow CORS.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import CONFLICTS, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.conflicts.page import conflicts_page
from smartfeeds.features.conflicts.requests import (
    CombinedText,
    ConflictedItem,
    ConflictList,
    ListConflicts,
    ResolveConflicts,
    ResolvedItem,
)
from smartfeeds.features.pages.frame import page_reply, writing_frame
from smartfeeds.formats.entry import TextKind
from smartfeeds.formats.json_text import Json, JsonObject, dump_json
from smartfeeds.http.authentication import FORM_TOKEN
from smartfeeds.http.bodies import unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import HTML, JSON, WEB_FORM, negotiate
from smartfeeds.http.openapi_schemas import COUNT, TAGS, TEXT, Schema, exactly, page_of, ref
from smartfeeds.http.operations import WHOLE_NUMBER, Content, Operation, Parameter
from smartfeeds.http.queries import page_path, read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.http.sync_json import write_version
from smartfeeds.service.answers import ask

USUAL, MOST = 20, 100  # items in a page
_FORMS = (JSON, HTML)
_BODIES = (JSON.bare_type, WEB_FORM)
_MEMBERS = ("keep", "decided", "seen")
_COMBINED = ("title", "text", "html")  # of a combined version
_PAGE_NUMBER: Schema = {"type": "string", "pattern": "^[0-9]{0,18}$"}


def _content(schema: str) -> Content:
    return {JSON.bare_type: ref(schema), HTML.bare_type: {"type": "string"}}


LIST_CONFLICTS = Operation(
    "listConflicts",
    "The items of a feed that have conflicts",
    {200: _content("Conflicts")},
    errors=(406,),
    parameters=(
        Parameter("max", WHOLE_NUMBER, "largest number of items"),
        Parameter("after", _PAGE_NUMBER, "items after this one, from the address in next"),
    ),
    scope=TokenScope.READ,
)
GET_CONFLICT = Operation(
    "getConflict",
    "The versions of an item that has conflicts",
    {200: _content("Conflicted")},
    errors=(406,),
    scope=TokenScope.READ,
)
RESOLVE_CONFLICT = Operation(
    "decide",
    "Resolves the conflicts of an item; a form must come from the page of the conflicts and redirects to their list",
    {200: {JSON.bare_type: ref("Decided")}, 303: {}},
    errors=(409, 429),
    body=dict.fromkeys(_BODIES, ref("Decision")),
    scope=TokenScope.PUBLISH,
)


class Conflicts:
    """Handles GET, HEAD and POST of conflicts."""

    def __init__(self, tools: SiteTools) -> None:
        self._handle = tools.handle
        self._change = tools.perform
        self._service = tools.domain
        self._bodies = tools.bodies

    async def get(self, call: HttpCall) -> Reply:
        """A page of the items that have conflicts, or one such item. Raises FeedError."""
        form = negotiate(call.header("Accept"), _FORMS, "a list of conflicts")
        query = read_parameters(call.query, () if call.item_id else ("max", "after"))
        conflict_list, next_url = await (self._one(call) if call.item_id else self._page(call, query))
        if form is HTML:
            write_body = partial(
                conflicts_page,
                await writing_frame(call),
                call.name,
                conflict_list,
                next_url.removeprefix(call.site_url),
                single=bool(call.item_id),
                first="after" not in query,
            )
        else:
            write_body = partial(_json, call, conflict_list, next_url)
        body = await asyncio.to_thread(write_body)
        if form is HTML:
            return call.zipped(page_reply(body))
        headers = {"Cache-Control": "no-store", "Vary": "Accept, Authorization"}
        return call.zipped(Reply(body, form.media_type, headers=headers))

    async def post(self, call: HttpCall) -> Reply:
        """Resolves the conflicts of an item. Raises FeedError."""
        if call.media_type not in _BODIES:
            raise unsupported(f"a decision is one of {', '.join(_BODIES)}", _BODIES)
        by_form = call.media_type == WEB_FORM
        if by_form:
            decision = _of_form(await self._bodies.form(call))
        else:
            decision = _of_json(await self._bodies.json(call, _BODIES[:1]))
        answer = await ask(
            self._change, ResolveConflicts(call.actor, self._service, call.name, call.item_id, *decision), ResolvedItem
        )
        if by_form:
            return call.see_other(entry_path(call.name, folder=CONFLICTS))
        body = dump_json({"id": answer.item.id, "left": answer.left})
        return Reply(body, JSON.media_type, headers={"Cache-Control": "no-store"})

    async def _one(self, call: HttpCall) -> tuple[ConflictList, str]:
        conflict_list = await self._ask(ListConflicts(call.actor, self._service, call.name, item_id=call.item_id))
        if not conflict_list.entries:
            raise FeedError(Condition.ITEM_NOT_FOUND, "no such item, or it has no conflicts")
        return conflict_list, ""

    async def _page(self, call: HttpCall, query: Mapping[str, str]) -> tuple[ConflictList, str]:
        """A page of items, and the address of the next one."""
        most = min(parse_number(query.get("max", str(USUAL)), "max"), MOST)
        # An item more than needed shows whether there is a next page. The service may cut a page short.
        conflict_list = await self._ask(
            ListConflicts(call.actor, self._service, call.name, ResultSetRequest(str(most + 1), query.get("after")))
        )
        entries = conflict_list.entries[:most]
        if not entries:
            return replace(conflict_list, entries=()), ""
        last = str(entries[-1].item.item_no)
        if not (len(conflict_list.entries) > most or await self._any_behind(call, last)):
            return conflict_list, ""
        return replace(conflict_list, entries=entries), page_path(_url(call), query, after=last)

    async def _any_behind(self, call: HttpCall, last: str) -> bool:
        conflict_list = await self._ask(
            ListConflicts(call.actor, self._service, call.name, ResultSetRequest("1", last))
        )
        return bool(conflict_list.entries)

    async def _ask(self, request: ListConflicts) -> ConflictList:
        return await ask(self._handle, request, ConflictList)


def _url(call: HttpCall, item_id: str = "") -> str:
    return f"{call.site_url}{entry_path(call.name, item_id, CONFLICTS)}"


_Decision = tuple[str, tuple[str, ...] | None, tuple[str, ...] | None, CombinedText | None]


def _of_json(value: Json) -> _Decision:
    """The tags to keep, to settle, and that were seen, and the combined version, from JSON. Raises FeedError."""
    members = (*_MEMBERS, *_COMBINED)
    if not isinstance(value, dict) or not value.keys() <= set(members):
        raise FeedError(Condition.BAD_REQUEST, f"a decision is a JSON object of {', '.join(members)}")
    keep = value.get("keep", "")
    if not isinstance(keep, str):
        raise FeedError(Condition.BAD_REQUEST, "keep is the tag of a version")
    texts = {name: text for name in _COMBINED if isinstance(text := value.get(name, ""), str)}
    if len(texts) < len(_COMBINED):
        raise FeedError(Condition.BAD_REQUEST, "title, text and html are texts")
    return keep, _tags(value, "decided"), _tags(value, "seen"), _combined(texts)


def _combined(fields: Mapping[str, str]) -> CombinedText | None:
    """The version that the actor wrote, None if there is none. Raises FeedError for two texts."""
    text, html, title = (fields.get(name, "") for name in ("text", "html", "title"))
    if text and html:
        raise FeedError(Condition.BAD_REQUEST, "the combined version is either text or html")
    if not (text or html or title):
        return None
    return CombinedText(text or html, title, TextKind.HTML if html else TextKind.TEXT)


def _tags(value: Mapping[str, Json], name: str) -> tuple[str, ...] | None:
    tags = value.get(name)
    if tags is None:
        return None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise FeedError(Condition.BAD_REQUEST, f"{name} is an array of tags")
    return tuple(tags)


def _of_form(fields: list[tuple[str, str]]) -> _Decision:
    """The same from a form, where a name is repeated for each tag."""
    names = (*_MEMBERS, *_COMBINED, "combine")
    pairs = [(name, value) for name, value in fields if name != FORM_TOKEN]
    tags = {member: tuple(value for name, value in pairs if name == member) for member in names}
    repeated = any(len(tags[name]) > 1 for name in names if name not in ("decided", "seen"))
    if sum(map(len, tags.values())) < len(pairs) or repeated or (tags["keep"] and tags["combine"]):
        raise FeedError(Condition.BAD_REQUEST, f"a decision is one keep, and tags as {' and '.join(_MEMBERS[1:])}")
    # The page sends its fields with every button; only the button of the combined version means them.
    written = {name: "".join(tags[name]) for name in _COMBINED} if tags["combine"] else {}
    combined = _combined(written)
    if tags["combine"] and combined is None:
        raise FeedError(Condition.BAD_REQUEST, "the combined version is empty; write a title or a text")
    return "".join(tags["keep"] or tags["combine"]), tags["decided"] or None, tags["seen"] or None, combined


def _json(call: HttpCall, conflict_list: ConflictList, next_url: str) -> bytes:
    """Items with their versions as activities with sync data, the winner first."""
    items = [_conflicted(call, entry) for entry in conflict_list.entries]
    if call.item_id:
        return items[0]
    total = len(items) if conflict_list.result_set is None else conflict_list.result_set.count
    head: JsonObject = {"count": len(items), "totalItems": total, "url": _url(call)}
    if next_url:
        head["next"] = next_url
    return dump_json(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _conflicted(call: HttpCall, entry: ConflictedItem) -> bytes:
    head = dump_json({"id": entry.item.id, "url": _url(call, entry.item.id)})
    versions = [
        dump_json({"tag": tag})[:-1] + b',"item":' + write_version(entry.item, entry.dialect, version) + b"}"
        for tag, version in entry.versions
    ]
    return head[:-1] + b',"versions":[' + b",".join(versions) + b"]}"


_SCHEMAS: Mapping[str, Schema] = {
    "Conflicts": page_of("Conflicted", "A page of the items of a feed that have conflicts."),
    "Conflicted": exactly(
        {
            "id": {"type": "string"},
            "url": {**TEXT, "description": "address for the decision"},
            "versions": {
                "type": "array",
                "minItems": 2,
                "items": exactly({"tag": TEXT, "item": ref("Item")}),
                "description": "the winner first",
            },
        }
    ),
    "Decision": {
        "type": "object",
        "properties": {
            "keep": {"type": "string", "description": "tag of the version whose content stays; default: the winner"},
            "decided": {
                **TAGS,
                "description": "tags of the conflicts to settle, in addition to your own; default: all",
            },
            "seen": {
                **TAGS,
                "description": "tags of all versions that you have seen; if the item has others now, nothing changes",
            },
            "title": {"type": "string", "description": "title of a version that you wrote out of several"},
            "text": {"type": "string", "description": "its plain text; it replaces that of the version to keep"},
            "html": {"type": "string", "description": "its text as HTML, in place of text"},
        },
        "additionalProperties": False,
    },
    "Decided": exactly({"id": {"type": "string"}, "left": {**COUNT, "description": "number of conflicts that remain"}}),
}
HTTP = HttpSide(
    (
        Route("GET", "/conflicts/{name}/", "conflicts", LIST_CONFLICTS, lambda h: h.get),
        Route("GET", "/conflicts/{name}/{id}", "conflicts", GET_CONFLICT, lambda h: h.get),
        Route("POST", "/conflicts/{name}/{id}", "conflicts", RESOLVE_CONFLICT, lambda h: h.post),
    ),
    Conflicts,
    schemas=_SCHEMAS,
)
