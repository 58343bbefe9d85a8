"""The document at /about/NAME/: the addresses of a feed, and how to request them (SF-112 to SF-114).

Smart Feeds calls this the Feed Requirements. Programs that use XMPP get the same facts by disco#info (`xmpp/disco.py`).
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

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
from smartfeeds.http.queries import FeedQuery, read_query
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.requests import FeedPage, PullFeed

GET_REQUIREMENTS = Operation(
    "requirements",
    "The addresses of a feed in all its forms, its positions and parameters, and the format of its items",
    {200: {negotiation.JSON.bare_type: ref("Requirements")}},
    parameters=VIEW_PARAMETERS,
    scope=TokenScope.READ,
    cors=True,
)
_SYNC_FORMS = (negotiation.ATOM, negotiation.RSS, negotiation.OPML)


class Requirements:
    """Handles GET of /about/NAME/.

    `domain` is the XMPP address of the service. `suffixes` are those of the documents that it writes. With `has_hub`
    each feed has a WebSub hub.
    """

    def __init__(
        self,
        pull: Callable[[PullFeed], Awaitable[FeedPage]],
        domain: str,
        suffixes: Collection[str],
        *,
        has_hub: bool,
    ) -> None:
        self._pull = pull
        self._domain = domain
        self._suffixes = suffixes
        self._has_hub = has_hub

    async def get(self, call: HttpCall) -> Reply:
        """Returns the requirements of a view. Raises FeedError for any node but a feed that the caller may read."""
        query = read_query(call.query)
        if query.is_pull:
            raise FeedError(Condition.BAD_REQUEST, "only parameters of a view can be given here")
        # A pull of no items: its use case checks that the caller may read the feed, and returns the node and the view.
        none = ResultSetRequest("0")
        answer = await self._pull(
            PullFeed(call.actor, self._domain, call.name, query.view, page=none, asker=call.asker)
        )
        if answer.node.kind is not NodeKind.FEED:
            raise FeedError(Condition.ITEM_NOT_FOUND, "this node is no feed")
        headers = {
            "Vary": "Authorization",
            **access_headers(public=answer.public and call.anonymous, bearer=call.bearer),
        }
        place = PageAddress(call.site_url, call.name, query)
        requirements = _json(answer, place, self._domain, self._suffixes)
        if self._has_hub:
            requirements["push"] = {"hub": f"{call.site_url}{hub_path(call.name)}", "topic": place.base_url}
        return call.zipped(Reply(dump_json(requirements), negotiation.JSON.media_type, headers=headers))


def _json(answer: FeedPage, place: PageAddress, domain: str, suffixes: Collection[str]) -> JsonObject:
    node = f"{answer.node.name}?{canonical(answer.view)}"
    with_sync = place._replace(query=FeedQuery(canonical(replace(answer.view, sync=True))))
    return {
        "name": answer.node.name,
        "title": title_of(answer.node),
        "url": place.base_url,
        "pull": {form.bare_type: place.base_url for form in (negotiation.JSON, negotiation.ATOM)},
        "stream": {negotiation.EVENTS.bare_type: place.base_url},
        "documents": {suffix: place.document_url(suffix) for suffix in suffixes},
        "sync": {form.suffix: with_sync.document_url(form.suffix) for form in _SYNC_FORMS},
        "complete": {form.suffix: with_sync.complete_url(form.suffix) for form in _SYNC_FORMS},
        "item": f"{place.site_url}{entry_path(place.name)}{{id}}",
        "xmpp": {"jid": domain, "node": node, "uri": xmpp_uri(domain, node)},
        "positions": list(kinds_of_positions(answer.view)),
        "orders": [order.value for order in Order],
        "parameters": dict(PARAMETERS),
        "itemFormat": ATOM,
    }
