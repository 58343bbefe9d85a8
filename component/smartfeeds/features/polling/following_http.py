"""Following over HTTP for programs: what is at an address, what the caller follows, and lists of feeds (SRC-083).

The pages for people are another feature (`features/following`); both send the same requests. A token needs the scope
admin on all feeds: who follows makes nodes, and subscribes.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import format_second
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling.follower import (
    AddressFollowed,
    FollowAddress,
    FollowList,
    FollowNode,
    FoundFeed,
    ListedFollow,
    ListFollowedUp,
    LookAt,
    LookedAt,
    UnfollowNode,
)
from smartfeeds.features.polling.following import FollowingBegun, Tell, TriedAgain, TryAgain
from smartfeeds.features.polling.source import MAX_URL_BYTES
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.http.bodies import BodyReader, unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import JSON
from smartfeeds.http.openapi_schemas import COUNT, DATE, TEXT, Schema, exactly, ref
from smartfeeds.http.operations import Operation, Parameter
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.http.resources import PRIVATE, object_of
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.resources import text_of

MAX_LIST_BYTES: Final = 1_000_000  # 1,000 feeds take 300,000
LOOK: Final = "/look"
FOLLOWING: Final = "/following/"
_LIST_TYPES: Final = ("text/x-opml", "application/xml", "text/xml", "text/x-opml+xml", "application/octet-stream")
_TELLS: Final = (Tell.CHAT.value, Tell.NOBODY.value)
_JSON: Final = (JSON.bare_type,)
_RIGHT: Final = TokenScope.ADMIN

LOOK_AT = Operation(
    "lookAtAddress",
    "The feeds at a web address, and what the service knows of them; nothing is stored",
    {200: {JSON.bare_type: ref("AddressLook")}},
    errors=(406, 429),
    parameters=(Parameter("url", TEXT, "the address of a site or of a feed", required=True),),
    scope=_RIGHT,
)
FOLLOW = Operation(
    "followAddress",
    "Makes you follow the feed at an address; with a subscription list (OPML), all feeds of the list",
    {
        200: {JSON.bare_type: ref("ListImported")},
        201: {JSON.bare_type: ref("Followed")},
    },
    errors=(406, 409, 413, 429),
    body={JSON.bare_type: ref("FollowRequest"), **{kind: {"type": "string"} for kind in _LIST_TYPES}},
    parameters=(Parameter("tell", {"enum": list(_TELLS)}, "who is told of new items of the feeds of a list"),),
    scope=_RIGHT,
)
FOLLOW_NODE = Operation(
    "followFeed",
    "Makes you follow a feed of this service, or changes who is told of its new items",
    {204: {}},
    errors=(406, 429),
    body={JSON.bare_type: ref("TellRequest")},
    scope=_RIGHT,
)
TRY_AGAIN = Operation(
    "retryFollowed",
    "Makes the service read again what fills a feed that you follow and cannot be read",
    {200: {JSON.bare_type: ref("Retried")}},
    errors=(406,),
    scope=_RIGHT,
)
UNFOLLOW = Operation("unfollow", "Makes you follow a feed no longer", {204: {}}, errors=(409,), scope=_RIGHT)

_TELL: Final[Schema] = {"enum": list(_TELLS), "description": "who is told of new items: you by chat, or nobody"}
_LISTED: Final[Schema] = {"type": "array", "items": ref("ListedFeed")}
SCHEMAS: Final[Mapping[str, Schema]] = {
    "FollowRequest": exactly(
        {"address": {**TEXT, "maxLength": MAX_URL_BYTES, "description": "the address of a site or of a feed"}},
        {
            "node": {
                "type": "string",
                "maxLength": MAX_ID_BYTES,
                "description": "the feed to fill, yours or a new one; default: the one that has this feed already, or "
                "a new one named by the address",
            },
            "tell": _TELL,
        },
    ),
    "TellRequest": exactly({"tell": _TELL}),
    "Followed": exactly(
        {"node": TEXT, "title": TEXT, "url": TEXT, "address": TEXT, "isNew": {"type": "boolean"}},
        {"pending": {"const": True, "description": "an owner of the feed has to approve"}},
    ),
    "Retried": exactly({"sources": {**COUNT, "description": "addresses that are read now"}}),
    "ListedFeed": exactly({"address": TEXT}, {"title": TEXT, "folder": TEXT, "node": TEXT, "reason": TEXT}),
    "ListImported": exactly({"added": _LISTED, "followed": _LISTED, "refused": _LISTED}),
    "AddressLook": exactly(
        {
            "url": TEXT,
            "feeds": {"type": "array", "items": ref("FoundFeed")},
            "mayAdd": {"type": "boolean", "description": "you may follow feeds that the service does not have"},
            "chat": {"type": "boolean", "description": "the service can tell you by chat"},
        },
        {"title": {**TEXT, "description": "of the web page"}},
    ),
    "FoundFeed": exactly(
        {"address": TEXT, "follows": {"type": "boolean"}},
        {
            "title": TEXT,
            "format": TEXT,
            "entries": COUNT,
            "newest": exactly({}, {"at": DATE, "title": TEXT}),
            "node": {**TEXT, "description": "the feed of this service that has it already"},
            "problem": {**TEXT, "description": "the reason why it cannot be followed"},
        },
    ),
}


class FollowingEndpoint:
    """Handles the requests of programs. `perform` finishes changes even if their client disconnects."""

    def __init__(self, tools: SiteTools) -> None:
        self._handle: Handle = tools.handle
        self._perform: Handle = tools.perform
        self._service = tools.domain
        self._bodies = tools.bodies
        self._lists = list_reader(tools.bodies)

    async def look(self, call: HttpCall) -> Reply:
        """The feeds at an address. Raises FeedError."""
        address = read_parameters(call.query, ("url",)).get("url", "")
        if not address:
            raise FeedError(Condition.BAD_REQUEST, "url is the address of a site or of a feed")
        request = LookAt(call.actor, self._service, address, is_from_another_page(call), call.site_url)
        looked = await ask(self._handle, request, LookedAt)
        body: JsonObject = {
            "url": looked.url,
            **({"title": looked.title} if looked.title else {}),
            "feeds": [_found(feed) for feed in looked.feeds],
            "mayAdd": looked.may_add,
            "chat": looked.has_chat,
        }
        return call.zipped(_json(body))

    async def follow(self, call: HttpCall) -> Reply:
        """Follows an address, or the feeds of a list. Raises FeedError, HttpError."""
        if call.media_type != JSON.bare_type:
            return await self._follow_list(call)
        fields = await object_of(self._bodies, call, _JSON, "address", "node", "tell")
        request = FollowAddress(
            call.actor,
            self._service,
            text_of(fields, "address"),
            text_of(fields, "node", default=""),
            Tell(text_of(fields, "tell", _TELLS, Tell.NOBODY.value)),
            call.site_url,
        )
        followed = await ask(self._perform, request, AddressFollowed)
        body: JsonObject = {
            "node": followed.node,
            "title": followed.title,
            "url": f"{call.site_url}{feed_path(followed.node)}",
            "address": followed.url,
            "isNew": followed.is_new,
        }
        return _json(body | ({"pending": True} if followed.pending else {}), HTTPStatus.CREATED)

    async def _follow_list(self, call: HttpCall) -> Reply:
        tell = read_parameters(call.query, ("tell",)).get("tell", Tell.NOBODY.value)
        if call.media_type not in _LIST_TYPES:
            media_types = (*_JSON, *_LIST_TYPES)
            raise unsupported("send an address as JSON, or a subscription list (OPML)", media_types)
        document = await self._lists.read(call, _LIST_TYPES)
        request = FollowList(call.actor, self._service, document, Tell(text_of({"tell": tell}, "tell", _TELLS)))
        answer = await ask(self._perform, request, ListFollowedUp)
        body = {
            name: [_listed(feed) for feed in feeds]
            for name, feeds in (("added", answer.added), ("followed", answer.followed), ("refused", answer.refused))
        }
        return call.zipped(_json(body))

    async def follow_node(self, call: HttpCall) -> Reply:
        """Follows a feed of this service. Raises FeedError, HttpError."""
        fields = await object_of(self._bodies, call, _JSON, "tell")
        tell = Tell(text_of(fields, "tell", _TELLS))
        await ask(self._perform, FollowNode(call.actor, self._service, call.name, tell), FollowingBegun)
        return Reply(status=HTTPStatus.NO_CONTENT, headers=PRIVATE)

    async def try_again(self, call: HttpCall) -> Reply:
        """Lets the sources of a feed be read again. Raises FeedError."""
        answer = await ask(self._perform, TryAgain(call.actor, self._service, call.name), TriedAgain)
        return _json({"sources": answer.count})

    async def unfollow(self, call: HttpCall) -> Reply:
        """Ends following a feed. Raises FeedError."""
        await self._perform(UnfollowNode(call.actor, self._service, call.name))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=PRIVATE)


def is_from_another_page(call: HttpCall) -> bool:
    """Whether a page of another site may have led a browser to a request. Such a page must not make the browser of an
    admin read the networks of the operator. Programs, and addresses that people type, are no such requests."""
    return bool(call.session_id) and call.header("Sec-Fetch-Site") not in ("same-origin", "none")


def list_reader(bodies: BodyReader) -> BodyReader:
    """Returns the reader of uploaded lists."""
    return BodyReader(MAX_LIST_BYTES, bodies.timeout_s, bodies.admit)


def _json(body: JsonObject, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(dump_json(body), JSON.media_type, status, headers=PRIVATE)


def _found(feed: FoundFeed) -> JsonObject:
    seen, known = feed
    newest = {
        **({} if seen.newest_us is None else {"at": format_second(seen.newest_us)}),
        **({"title": seen.newest_title} if seen.newest_title else {}),
    }
    fields = {
        "title": seen.title,
        "format": seen.format,
        "newest": newest,
        "node": known.node,
        "problem": seen.problem,
    }
    counted = {"entries": seen.count} if seen.is_read and not seen.problem else {}
    return {
        "address": seen.url,
        "follows": known.follows,
        **{name: value for name, value in fields.items() if value},
        **counted,
    }


def _listed(feed: ListedFollow) -> JsonObject:
    fields = {"title": feed.title, "folder": feed.folder, "node": feed.node, "reason": feed.reason}
    return {"address": feed.url, **{name: value for name, value in fields.items() if value}}
