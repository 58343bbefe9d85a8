"""The description of a feed for programs that only use HTTP (Smart Feeds, Feed Requirements: SF-112 to SF-114).

Over XMPP the same is in disco#info (`xmpp/disco.py`).
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import ATOM
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.position import kinds_of_positions
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import entry_path, hub_path, xmpp_uri
from smartfeeds.core.view import PARAMETERS, Order, canonical
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.http import negotiation
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import PageAddress
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import VIEW_PARAMETERS, Operation
from smartfeeds.http.queries import read_query
from smartfeeds.http.replies import Reply
from smartfeeds.service.requests import FeedPage, PullFeed

GET_REQUIREMENTS = Operation(
    "requirements",
    "The addresses of a feed in all its forms, its positions and parameters, and the format of its items",
    {200: {negotiation.JSON.bare_type: ref("Requirements")}},
    parameters=VIEW_PARAMETERS,
    scope=TokenScope.READ,
    cors=True,
)
_WITH_SYNC = (negotiation.ATOM, negotiation.RSS, negotiation.OPML)


class Requirements:
    """Handles GET of /about/NAME/. `domain` is the address of the service, `suffixes` are those of documents;
    `has_hub`: feeds have a hub."""

    def __init__(
        self,
        pull: Callable[[PullFeed], Awaitable[FeedPage]],
        domain: str,
        suffixes: Collection[str],
        *,
        has_hub: bool,
    ) -> None:
        self._suffixes = suffixes
        self._pull = pull
        self._domain = domain
        self._has_hub = has_hub

    async def get(self, call: HttpCall) -> Reply:
        """The requirements of a view. Raises FeedError for a feed that the caller may not read, and for other nodes."""
        query = read_query(call.query)
        if query.positioned or query.timeout_s is not None or query.callback:
            raise FeedError(Condition.BAD_REQUEST, "only parameters of a view can be given here")
        asker = call.address if call.actor is ANONYMOUS else ""
        # A page without items: the use case checks that the caller may read the feed.
        pull = PullFeed(call.actor, self._domain, call.name, query.view, page=ResultSetRequest("0"), asker=asker)
        answer = await self._pull(pull)
        if answer.node.kind is not NodeKind.FEED:
            raise FeedError(Condition.ITEM_NOT_FOUND, "this node is no feed")
        public = answer.public and call.actor is ANONYMOUS
        headers = {"Cache-Control": "no-cache" if public else "private, no-cache", "Vary": "Authorization"}
        if public or call.bearer:
            headers["Access-Control-Allow-Origin"] = "*"
        place = PageAddress(call.site_url, call.name, query)
        described = _json(answer, place, self._domain, self._suffixes)
        if self._has_hub:
            described["push"] = {"hub": f"{call.site_url}{hub_path(call.name)}", "topic": place.base_url}
        body = dump_json(described)
        return call.zipped(Reply(body, negotiation.JSON.media_type, headers=headers))


def _json(answer: FeedPage, place: PageAddress, domain: str, suffixes: Collection[str]) -> JsonObject:
    node = f"{answer.node.name}?{canonical(answer.view)}"
    shared = place._replace(query=read_query(canonical(replace(answer.view, sync=True))))
    return {
        "name": answer.node.name,
        "title": title_of(answer.node),
        "url": place.base_url,
        "pull": {form.bare_type: place.base_url for form in (negotiation.JSON, negotiation.ATOM)},
        "stream": {negotiation.EVENTS.bare_type: place.base_url},
        "documents": {suffix: place.document_url(suffix) for suffix in suffixes},
        "sync": {form.suffix: shared.document_url(form.suffix) for form in _WITH_SYNC},
        "complete": {form.suffix: shared.complete_url(form.suffix) for form in _WITH_SYNC},
        "item": f"{place.site_url}{entry_path(place.name)}{{id}}",
        "xmpp": {"jid": domain, "node": node, "uri": xmpp_uri(domain, node)},
        "positions": list(kinds_of_positions(answer.view)),
        "orders": [order.value for order in Order],
        "parameters": dict(PARAMETERS),
        "itemFormat": ATOM,
    }
