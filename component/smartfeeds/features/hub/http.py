"""The address of the WebSub hub: requests of subscribers as forms (WebSub section 5.1; SF-076).

The hub of all feeds is at `/hub`, that of one feed at `/feeds/NAME/hub/`. Responses are plain text, as both versions of
the protocol demand. The query string of the address means nothing (A-22).
"""

from dataclasses import replace
from http import HTTPStatus

from smartfeeds.core.urls import HUB
from smartfeeds.features.callbacks.registrations import NOBODY, CallbackReader
from smartfeeds.features.hub.hub import Hub
from smartfeeds.features.hub.protocol import MAX_BODY_BYTES
from smartfeeds.http.bodies import unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import FeedLinks
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import WEB_FORM
from smartfeeds.http.openapi_schemas import TEXT
from smartfeeds.http.operations import Operation
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.parts import Parts

_REQUIRED = ("hub.mode", "hub.callback", "hub.topic")
_OTHERS = ("hub.lease_seconds", "hub.secret", "hub.verify", "hub.verify_token")

HUB_REQUEST = Operation(
    "hubRequest",
    "Subscribes a callback to a feed, or unsubscribes it (WebSub, PubSubHubbub)",
    {202: {}, 204: {}},
    errors=(404, 429),
    body={
        WEB_FORM: {
            "type": "object",
            "required": list(_REQUIRED),
            "properties": {name: dict(TEXT) for name in (*_REQUIRED, *_OTHERS)},
        }
    },
    any_site=True,
    plain_errors=True,
)
HUB_REQUEST_FOR_ANY = replace(HUB_REQUEST, name="hubRequestForAny", summary="The same for any feed: hub.topic names it")


class HubEndpoint:
    """Handles requests for the hub, which does not run if the service has no public address."""

    def __init__(self, tools: SiteTools) -> None:
        self._hub = tools.parts.find(Hub)
        self._bodies = replace(tools.bodies, limit_bytes=MAX_BODY_BYTES)

    async def post(self, call: HttpCall) -> Reply:
        """Subscribes or unsubscribes a callback. Raises FeedError, HttpError."""
        if self._hub is None:
            text = "this service has no hub, because its operator has not set http.base_url"
            raise HttpError(HTTPStatus.NOT_FOUND, text)
        body = await self._bodies.read(call, (WEB_FORM,))
        if call.media_type != WEB_FORM:
            raise unsupported(f"a request is a form: {WEB_FORM}", (WEB_FORM,))
        status = await self._hub.request(body, call.name, _reader(call), call.address)
        return Reply(b"", "", status, {"Cache-Control": "no-store"})


def _reader(call: HttpCall) -> CallbackReader:
    """The subscriber. Cookies do not count, because a page of another site can make a browser send them."""
    if call.token is None or not call.bearer:
        return NOBODY
    return CallbackReader(call.token.jid, call.token.token_id)


def _links(links: FeedLinks, parts: Parts) -> FeedLinks:
    return links._replace(has_hub=parts.find(Hub) is not None)


HTTP = HttpSide(
    (
        Route("POST", HUB, "hub", HUB_REQUEST_FOR_ANY, lambda h: h.post),
        Route("POST", "/feeds/{name}/hub/", "hub", HUB_REQUEST, lambda h: h.post),
    ),
    HubEndpoint,
    links=_links,
)
