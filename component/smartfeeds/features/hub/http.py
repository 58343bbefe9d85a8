"""The address of the WebSub hub: requests of subscribers as forms (WebSub section 5.1; SF-076).

The hub of all feeds is at `/hub`, that of one feed at `/feeds/NAME/hub/`. Responses are plain text, as both versions of
the protocol demand. The query string of the address means nothing (A-22).
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

from smartfeeds.features.callbacks.registrations import NOBODY, CallbackReader
from smartfeeds.features.hub.protocol import MAX_BODY_BYTES
from smartfeeds.http import negotiation as n
from smartfeeds.http.bodies import BodyReader, unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.openapi_schemas import TEXT
from smartfeeds.http.operations import Operation
from smartfeeds.http.replies import Reply

_REQUIRED = ("hub.mode", "hub.callback", "hub.topic")
_OTHERS = ("hub.lease_seconds", "hub.secret", "hub.verify", "hub.verify_token")

HUB_REQUEST = Operation(
    "hubRequest",
    "Subscribes a callback to a feed, or unsubscribes it (WebSub, PubSubHubbub)",
    {202: {}, 204: {}},
    errors=(404, 429),
    body={
        n.WEB_FORM: {
            "type": "object",
            "required": list(_REQUIRED),
            "properties": {name: dict(TEXT) for name in (*_REQUIRED, *_OTHERS)},
        }
    },
    any_site=True,
    plain_errors=True,
)
HUB_REQUEST_FOR_ANY = replace(HUB_REQUEST, name="hubRequestForAny", summary="The same for any feed: hub.topic names it")


class HubRequests(Protocol):
    """The hub, as `hub` implements it."""

    async def request(self, body: bytes, feed: str, reader: CallbackReader, address: str) -> HTTPStatus:
        """Serves the request of a subscriber, and returns the status of a success. Raises FeedError."""


class HubEndpoint:
    """Handles requests for the hub; it is None if the service has no public address."""

    def __init__(self, hub: HubRequests | None, bodies: BodyReader) -> None:
        self._hub = hub
        self._bodies = replace(bodies, limit_bytes=MAX_BODY_BYTES)

    async def post(self, call: HttpCall) -> Reply:
        """Subscribes or unsubscribes a callback. Raises FeedError, HttpError."""
        if self._hub is None:
            text = "this service has no hub, because its operator has not set http.base_url"
            raise HttpError(HTTPStatus.NOT_FOUND, text)
        body = await self._bodies.read(call, (n.WEB_FORM,))
        if call.media_type != n.WEB_FORM:
            raise unsupported(f"a request is a form: {n.WEB_FORM}", (n.WEB_FORM,))
        status = await self._hub.request(body, call.name, _reader(call), call.address)
        return Reply(b"", "", status, {"Cache-Control": "no-store"})


def _reader(call: HttpCall) -> CallbackReader:
    """The subscriber. Cookies do not count, because a page of another site can make a browser send them."""
    if call.token is None or not call.bearer:
        return NOBODY
    return CallbackReader(call.token.jid, call.token.token_id)
