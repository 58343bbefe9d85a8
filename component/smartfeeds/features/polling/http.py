"""Callback paths of our subscriptions at hubs and clouds of other servers: `/push/TOKEN` (WebSub sections 5.3 and 7;
RSS-022 to RSS-025).

The token is the only proof of a sender without a signature, so nothing here tells whether a token exists, except by the
status that the protocols demand.
"""

import re
from dataclasses import replace
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote_plus

from smartfeeds.core.limits import Quota
from smartfeeds.core.urls import PUSH
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.cloud_messages import read_notification, read_remote_call
from smartfeeds.features.callbacks.remote_calls import RemoteCallError
from smartfeeds.features.polling import following_http
from smartfeeds.features.polling.following_http import FollowingEndpoint
from smartfeeds.features.polling.push_inbox import PushInbox
from smartfeeds.features.polling.push_states import LONGEST_LEASE_S, MAX_PUSH_BYTES
from smartfeeds.features.polling.source import PushKind
from smartfeeds.features.polling.source_push import Delivery, HubCheck, IncomingPush
from smartfeeds.http.bodies import BodyReader, charset_of
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import PLAIN_TEXT, HttpError
from smartfeeds.http.negotiation import PLAIN, WEB_FORM
from smartfeeds.http.operations import Operation
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.threads import OwnThreads

MAX_NOTIFICATION_BYTES: Final = 65_536
BODY_S: Final = 30.0  # the longest pause of a sender (WS-125)
PUSHES_AT_ONCE: Final = 4  # bodies that are received for one subscription, each in memory
BUSY_S: Final = 60  # after which a hub may send again what had no room
XML_AT_ONCE: Final = 4  # notifications that are read at a time
_MAX_CHALLENGE: Final = 512  # of a cloud
_MAX_FIELDS: Final = 100
_DIGITS: Final = re.compile(r"[0-9]{1,12}")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
# WordPress writes the address of the feed into the query as it is, with its own "&" and "=".
_RAW_CHALLENGE: Final = re.compile(r"(?:^|&)url=(.*)&challenge=([^&]*)\Z")
_XML: Final = "text/xml"
_NAMESPACE: Final = "http://www.soapware.org/"

CHECK_PUSH = Operation(
    "checkSourcePush",
    "Answers the check of a hub or the challenge of a cloud that this service has subscribed at",
    {200: {PLAIN: {"type": "string"}}},
    for_hubs=True,
)
RECEIVE_PUSH = Operation(
    "receiveSourcePush",
    "Takes content from a hub, or a notification from a cloud, that this service has subscribed at",
    {200: {}, 202: {}},
    any_site=True,
    for_hubs=True,
)

_STATUSES: Final = {
    Delivery.STORED: HTTPStatus.ACCEPTED,
    Delivery.HINT: HTTPStatus.ACCEPTED,
    Delivery.FORGED: HTTPStatus.FORBIDDEN,
    Delivery.ENDED: HTTPStatus.GONE,
    Delivery.UNKNOWN: HTTPStatus.NOT_FOUND,
    Delivery.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
}


class SourcePushEndpoint:
    """Handles requests to callback paths; `pushes` is None if the service has no public address."""

    def __init__(self, pushes: PushInbox | None, bodies: BodyReader) -> None:
        self._pushes = pushes
        self._bodies = replace(bodies, limit_bytes=MAX_PUSH_BYTES, timeout_s=BODY_S)
        self._reading = Quota(PUSHES_AT_ONCE)
        self._threads = OwnThreads(XML_AT_ONCE)
        self._notifications = replace(bodies, limit_bytes=MAX_NOTIFICATION_BYTES, timeout_s=BODY_S)

    async def get(self, call: HttpCall) -> Reply:
        """Repeats a challenge that is about a subscription of ours (WS-108, WS-109, RC-072). Raises HttpError."""
        pushes = self._open()
        if await pushes.kind(call.subject) is PushKind.CLOUD:
            text = await self._challenged(pushes, call)
        else:
            text = await self._checked(pushes, call)
        if text is None:
            raise _unknown()
        return Reply(text.encode(), PLAIN_TEXT, headers={"Cache-Control": "no-store"})

    async def _checked(self, pushes: PushInbox, call: HttpCall) -> str | None:
        fields = _fields(call.query)
        check = HubCheck(
            fields.get("hub.mode", ""),
            fields.get("hub.topic", ""),
            fields.get("hub.challenge", ""),
            _lease_s(fields.get("hub.lease_seconds", "")),
            fields.get("hub.reason", ""),
        )
        if not await pushes.check(call.subject, check):
            return None
        return "" if check.mode == "denied" else check.challenge

    async def _challenged(self, pushes: PushInbox, call: HttpCall) -> str | None:
        fields, raw = _fields(call.query), _RAW_CHALLENGE.search(call.query)
        challenge = fields.get("challenge", "")
        if len(challenge) > _MAX_CHALLENGE or _PRINTABLE.fullmatch(challenge) is None:
            return None
        urls = [fields.get("url", ""), *([raw[1], unquote_plus(raw[1])] if raw else [])]
        for url in dict.fromkeys(urls):
            if url and await pushes.knows(call.subject, url):
                return challenge
        return None

    async def post(self, call: HttpCall) -> Reply:
        """Takes a push or a notification. Raises HttpError."""
        pushes = self._open()
        kind = await pushes.kind(call.subject)
        if kind is PushKind.CLOUD or (kind is not PushKind.HUB and _is_notification(call)):
            return await self._notified(pushes, call)
        if kind is None:
            raise _unknown()
        if kind is PushKind.NONE:
            return _reply(Delivery.ENDED)
        if not self._reading.take(call.subject):
            return _reply(Delivery.BUSY)
        try:
            body = await self._bodies.read_coded(call)
        finally:
            self._reading.release(call.subject)
        signatures = [text for value in call.request.headers.getall("X-Hub-Signature", ()) for text in value.split(",")]
        coding = call.header("Content-Encoding")
        incoming = IncomingPush(body, tuple(signatures), charset_of(call), coding)
        return _reply(await pushes.deliver(call.subject, incoming))

    async def _notified(self, pushes: PushInbox, call: HttpCall) -> Reply:
        body = await self._notifications.read(call, (WEB_FORM, _XML))
        if call.media_type == WEB_FORM:
            delivery = await pushes.notify(call.subject, _fields(body.decode("utf-8", "replace")).get("url", ""))
            if delivery is Delivery.HINT:
                return Reply(b"", PLAIN_TEXT, HTTPStatus.OK)
            return _reply(delivery)
        return await self._called(pushes, call, body)

    async def _called(self, pushes: PushInbox, call: HttpCall, body: bytes) -> Reply:
        """The answer to a notification by XML-RPC or SOAP: whether its feed is one of ours (RSS-024, A-132)."""
        is_soap, notification = await self._threads(read_remote_call, body)
        try:
            if isinstance(notification, RemoteCallError):
                raise notification
            url = read_notification(notification)
        except RemoteCallError as fault:
            # SOAP 1.1 section 6.2: a fault has the status 500.
            return (
                _xml(soap.write_fault(fault), HTTPStatus.INTERNAL_SERVER_ERROR)
                if is_soap
                else _xml(xml_rpc.write_fault(fault))
            )
        is_ours = await pushes.notify(call.subject, url) is Delivery.HINT
        return _xml(
            soap.write_result(notification.name, is_ours, _NAMESPACE) if is_soap else xml_rpc.write_result(is_ours)
        )

    def _open(self) -> PushInbox:
        if self._pushes is None:
            raise _unknown()
        return self._pushes


def _is_notification(call: HttpCall) -> bool:
    """Whether a request looks like the notification of a cloud: it is answered in its own protocol (RC-071)."""
    return call.media_type in (WEB_FORM, _XML)


def _fields(query: str) -> dict[str, str]:
    """The first value of each parameter."""
    try:
        values = parse_qs(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return {}
    return {name: texts[0] for name, texts in values.items()}


def _reply(delivery: Delivery) -> Reply:
    headers = {"Retry-After": str(BUSY_S)} if delivery is Delivery.BUSY else {}
    return Reply(b"", PLAIN_TEXT, _STATUSES[delivery], headers)


def _xml(body: bytes, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(body, f"{_XML}; charset=utf-8", status)


def _unknown() -> HttpError:
    return HttpError(HTTPStatus.NOT_FOUND, "there is no such subscription")


def _lease_s(text: str) -> int | None:
    """The seconds of a lease, None if the hub does not say them."""
    lease_s = int(text) if _DIGITS.fullmatch(text) else 0
    return min(lease_s, LONGEST_LEASE_S) if lease_s else None


class PollingHandlers(NamedTuple):
    """The objects that hold the handlers."""

    pushes: SourcePushEndpoint
    following: FollowingEndpoint


def _handlers(tools: SiteTools) -> PollingHandlers:
    return PollingHandlers(
        SourcePushEndpoint(tools.parts.find(PushInbox), tools.bodies),
        FollowingEndpoint(tools),
    )


_NODE: Final = f"{following_http.FOLLOWING}{{name}}"
HTTP = HttpSide(
    (
        Route("GET", f"{PUSH}{{token}}", "push", CHECK_PUSH, lambda h: h.pushes.get),
        Route("POST", f"{PUSH}{{token}}", "push", RECEIVE_PUSH, lambda h: h.pushes.post),
        Route("GET", following_http.LOOK, "following", following_http.LOOK_AT, lambda h: h.following.look),
        Route("POST", following_http.FOLLOWING, "following", following_http.FOLLOW, lambda h: h.following.follow),
        Route("PUT", _NODE, "following", following_http.FOLLOW_NODE, lambda h: h.following.follow_node),
        Route("POST", _NODE, "following", following_http.TRY_AGAIN, lambda h: h.following.try_again),
        Route("DELETE", _NODE, "following", following_http.UNFOLLOW, lambda h: h.following.unfollow),
    ),
    _handlers,
    schemas=following_http.SCHEMAS,
)
