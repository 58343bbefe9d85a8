"""Routes stanzas: reads them as requests, starts the requests in order, and sends the responses (xep-map 12 to 16).

Every IQ of type get or set to this component gets exactly one result or error, from the address that it was sent to
(RFC 6120 section 8.2.3). Those of one sender take effect in their order (`ordering`). Only FeedError reaches the wire;
any other exception is logged under an incident id.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import structlog

from smartfeeds.core.jid import Jid
from smartfeeds.core.options import FormFields
from smartfeeds.errors import (
    Condition,
    FeedError,
    StoreClosedError,
    StoreError,
    store_failure,
)
from smartfeeds.service.feeds import Finish, RequestTasks
from smartfeeds.service.requests import PartlyRefused, Request, Subscribed
from smartfeeds.service.subscriptions import Bounce
from smartfeeds.service.use_cases import UseCases
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.authorization import read_authorization
from smartfeeds.xmpp.avatar import avatar_answers
from smartfeeds.xmpp.calls import AddressReader, IncomingIq, StanzaAddress
from smartfeeds.xmpp.command_sessions import CommandSessions
from smartfeeds.xmpp.commands import (
    COMMAND,
    CommandReply,
    CommandRunner,
    ListCommands,
    RunCommand,
    encode_about,
    encode_command,
    table_of,
)
from smartfeeds.xmpp.decode import decode, reader_of_gets
from smartfeeds.xmpp.disco import PASSED_ON, Disco, ServiceInfo
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.encode import ENCODERS, encode_last_item, envelope
from smartfeeds.xmpp.forms import X, form_type_of, parse_submit
from smartfeeds.xmpp.framer import CUT_NS
from smartfeeds.xmpp.ordering import RequestOrder, StoreAccess
from smartfeeds.xmpp.parsing import COMPONENT_NS, ITEM_TOO_LARGE
from smartfeeds.xmpp.service_queries import service_readers
from smartfeeds.xmpp.side import Reader, Response, ResponseEncoder, XmppSide, body_only
from smartfeeds.xmpp.stanza_errors import encode_error, error_condition
from smartfeeds.xmpp.stanza_side import ANY_TYPE, NO_OTHER, StanzaReader, StanzaSide
from smartfeeds.xmpp.turns import StanzaWork

log = structlog.get_logger()

# Forms that users submit in messages, by FORM_TYPE. The function returns the request in the fields of a form.
MESSAGE_FORMS: Mapping[str, Callable[[FormFields, Jid, str], Request]] = {
    ns.SUBSCRIBE_AUTHORIZATION: read_authorization,
}
_STORE_AWAY = "the store is not available; try again later"
_TOO_LONG = "the response exceeds the size of a stanza; request less at once"
_ERROR_BYTES = 4_096  # upper bound of an error response without its addresses: `commands.ABOUT_BYTES` and a text
_EVENT = ns.tag(ns.EVENT, "event")
# slixmpp answers these queries itself. To other queries it would answer in the namespace of clients.
_PASSED_ON = frozenset(("get", ns.tag(*query)) for query in PASSED_ON.items())
_LONG_ID = 1_024  # slixmpp repeats an id of any length in its response, which could exceed the server's limit
_CUT = ns.tag(CUT_NS, "cut")  # the stream's replacement for content that it did not parse
DISCOVER = "discover"  # operation of requests answered from prepared bytes
ANSWER_LIMIT_BYTES = 212_992  # `pubsub.stanza_bytes` of the default settings
UNREAD = "unread"  # operation of requests rejected before their kind is known

# The id of a notification: the number of the subscription, then the key of the change, and that of an event
# (`push.frames`).
_EVENT_ID = re.compile(r"([0-9]{1,18})\.-?[0-9]{1,18}(?:e[0-9]{1,18})?", re.ASCII)


def _partly_refused(answer: PartlyRefused, _iq: IncomingIq, _new_id: Callable[[], str]) -> Response:
    body = ENCODERS[PartlyRefused](answer)
    return Response(body, kind=b"error", outcome=Condition.NOT_ACCEPTABLE.value)


def _subscribed(answer: Subscribed, iq: IncomingIq, new_id: Callable[[], str]) -> Response:
    body = ENCODERS[Subscribed](answer)
    if answer.last is None:
        return Response(body)
    return Response(body, after=(encode_last_item(answer, answer.last, iq.address.bare, new_id()),))


def _at_address(encoders: Mapping[type, Callable[[Any, str], bytes]]) -> dict[type, ResponseEncoder]:
    """Returns encoders that use the address of the request."""

    def encoder(encode: Callable[[Any, str], bytes]) -> ResponseEncoder:
        return lambda answer, iq, _new_id: Response(encode(answer, iq.address.bare))

    return {kind: encoder(encode) for kind, encode in encoders.items()}


_ENCODERS: Mapping[type, ResponseEncoder] = {
    CommandReply: body_only(encode_command),
    PartlyRefused: _partly_refused,
    Subscribed: _subscribed,
}
# Of the answers that are an IQ alone. Most requests have one of them.
_BODIES = {kind: encode for kind, encode in ENCODERS.items() if kind not in (PartlyRefused, Subscribed)}
_OPERATIONS: Mapping[type[Request], str] = {RunCommand: "command", ListCommands: DISCOVER}

StanzaHandler = Callable[[Element], bool | StanzaWork]


class RequestHandler(Protocol):
    """The service that answers requests."""

    def handle(self, request: Request) -> Awaitable[object]:
        """Returns the response. Raises FeedError, StoreError."""

    def submit(self, request: Request, finish: Finish) -> object:
        """Handles a request, and calls `finish` with the response, or with an error: FeedError, StoreError."""


@dataclass(frozen=True, slots=True)
class RouterTools:
    """The tools of the router, and its limit.

    `session_key` signs the ids of ad-hoc sessions (`command_sessions`). `observe` receives the operation, its outcome
    (ok or a condition) and its duration in seconds. A response above `answer_limit_bytes` is replaced by an error,
    because a server ends the link for everybody if it receives a stanza above its limit. There is no response at all if
    the id of the request alone exceeds the limit.
    """

    session_key: bytes
    observe: Callable[[str, str, float], object] = lambda _operation, _outcome, _seconds: None
    answer_limit_bytes: int = ANSWER_LIMIT_BYTES
    now_us: Callable[[], int] = lambda: time.time_ns() // 1_000
    clock: Callable[[], float] = time.perf_counter
    new_id: Callable[[], str] = lambda: secrets.token_hex(8)


class _RequestRun(StanzaWork):
    """A request in progress, and the IQ that it came in, if it is answered."""

    __slots__ = ("_began_s", "_router", "iq", "request", "sender")

    def __init__(self, router: "StanzaRouter", request: Request, iq: IncomingIq | None) -> None:
        self._listeners = ()  # as StanzaWork, without a call for each request
        self.has_ended, self.spent_s = False, 0.0
        self._router = router
        self.request = request
        self.iq = iq
        self.sender = str(request.actor) if iq is None else iq.sender.full
        self._began_s = router.clock()

    def begin(self) -> None:
        """Passes the request to what handles it. It may end before this returns."""
        router, request = self._router, self.request
        handle = router.handlers.get(type(request))
        try:
            if handle is None:
                router.service.submit(request, self.finish)
            else:
                router.tasks.start(handle(request), self.finish)
        except Exception as fault:
            # The request has its response already, so this is no fault of the request.
            if self.has_ended:
                raise
            self.finish(None, fault)

    def finish(self, answer: object, error: BaseException | None) -> None:
        """Sends the response, unless the request came in a message, and ends the request. Raises nothing."""
        router, request, iq = self._router, self.request, self.iq
        operation, outcome, spent_s = router.operations[type(request)], "ok", 0.0
        try:
            if error is not None:
                raise error
            if iq is not None:
                # Processor time, because the sender must not pay for the threads that run meanwhile.
                began_s = time.thread_time()
                outcome = router.answer(iq, answer)
                spent_s = time.thread_time() - began_s
        except FeedError as refusal:
            outcome = router.fail(iq, refusal, type(request))
            if iq is None:
                _log_ignored(request.actor.bare_text, operation, refusal)
        except asyncio.CancelledError:  # the process stops, and the link with it: no response could be sent
            outcome = "cancelled"
        except Exception as fault:  # noqa: BLE001  the boundary: nothing internal reaches the wire
            outcome = router.fail(iq, router.incident(operation, fault))
        finally:
            router.observe(operation, outcome, router.clock() - self._began_s)
            router.leave(self.sender)
            self.end(spent_s)


class StanzaRouter:
    """Handles the stanzas from the stream.

    `reply` sends one stanza. `use_cases` are those of the service. `side` has what its parts do over XMPP, and
    `stanzas` what running parts do with messages and presence.
    """

    def __init__(
        self,
        service: RequestHandler,
        reply: Callable[[bytes], object],
        info: ServiceInfo,
        use_cases: UseCases,
        side: XmppSide,
        stanzas: StanzaSide,
        tools: RouterTools,
    ) -> None:
        self.service = service
        self._reply = reply
        self._stanzas = stanzas
        self.observe = tools.observe
        self._answer_limit_bytes = tools.answer_limit_bytes
        self._most_head_bytes = tools.answer_limit_bytes - _ERROR_BYTES
        self.clock = tools.clock
        self._new_id = tools.new_id
        self.addresses = AddressReader(info.domain)
        commands = table_of(*side.commands)
        disco = Disco(info, side, stanzas)
        self._encoders: Mapping[type, ResponseEncoder] = {
            **_ENCODERS,
            **_at_address(disco.encoders),
            **side.encoders,
        }
        sessions = CommandSessions(key=tools.session_key, now_us=tools.now_us, new_id=tools.new_id)
        self._commands = CommandRunner(commands, service.handle, sessions)
        # IQ requests by the type of the IQ and the tag of its payload.
        self._readers: Mapping[tuple[str, str], Reader] = {
            **{
                (kind, ns.tag(namespace, "pubsub")): partial(decode, kind)
                for kind in ("get", "set")
                for namespace in (ns.PUBSUB, ns.OWNER)
            },
            ("get", ns.tag(ns.PUBSUB, "pubsub")): reader_of_gets(avatar_answers(stanzas.picture), info.domain),
            **disco.readers,
            ("set", COMMAND): self._commands.read,
            **side.readers,
            **service_readers(info.name, info.http_base_url, tools.now_us, stanzas.nick, stanzas.picture),
        }
        # Requests that the service does not handle itself.
        self.handlers: Mapping[type[Request], Callable[..., Awaitable[object]]] = {
            RunCommand: self._commands.run,
            ListCommands: self._commands.list_commands,
            **stanzas.handlers,
        }
        # The service handles a request by one read or one write. Other handlers do any number of both.
        self._access: Mapping[type[Request], StoreAccess] = {
            **dict.fromkeys(use_cases.reads, StoreAccess.READ),
            **dict.fromkeys(use_cases.writes, StoreAccess.WRITE),
            **dict.fromkeys(self.handlers, StoreAccess.MIXED),
        }
        self.operations = {**use_cases.names, **stanzas.operations, **_OPERATIONS}
        self._rooms: Set[str] = frozenset() if stanzas.rooms is None else stanzas.rooms.known
        # Messages by their type and the tag of a child. Other messages are ignored (xep-map 14).
        self._messages: Mapping[tuple[str, str], StanzaHandler] = {
            (ANY_TYPE, _EVENT): self._on_event,
            ("normal", X): self._on_form,
            **{key: partial(self._read, read) for key, read in stanzas.messages.items()},
            **{key: partial(self._read_personal, read) for key, read in stanzas.personal_messages.items()},
        }
        self._order = RequestOrder()
        self.tasks = RequestTasks()
        self._drained: asyncio.Future[None] | None = None
        self.in_flight = 0  # requests in progress
        self._kinds: Mapping[str, StanzaHandler] = {
            ns.tag(COMPONENT_NS, "iq"): self._on_iq,
            ns.tag(COMPONENT_NS, "message"): self._on_message,
            ns.tag(COMPONENT_NS, "presence"): self._on_presence,
        }

    async def drain(self) -> None:
        """Waits until all requests in progress are answered."""
        while self.in_flight:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)  # a caller that is cancelled must not cancel the wait of others

    def on_stanza(self, element: Element) -> bool | StanzaWork:
        """Handles a stanza, or returns False if it is not for the router. Never waits.

        Returns the request that it has started, whose processor time is that of encoding the response.
        """
        handler = self._kinds.get(element.tag)
        return handler is not None and handler(element)

    def on_full(self, name: str, attributes: Mapping[str, str]) -> None:
        """Answers a stanza that the queue rejected, using the attributes of its start tag only."""
        iq = self.addresses.read(attributes)
        if name == "iq" and attributes.get("type") in ("get", "set") and iq is not None and self._answerable(iq):
            self._refuse(iq, FeedError(Condition.BUSY, "too many requests at once; try again later"))
        else:
            self.observe(UNREAD, "dropped", 0.0)

    def _answerable(self, iq: IncomingIq) -> bool:
        return len(iq.head) <= self._most_head_bytes

    def _on_iq(self, element: Element) -> bool | StanzaWork:
        kind = element.get("type", "")
        if kind in ("result", "error"):
            return False
        children = len(element)  # elements alone: a stream has neither comments nor instructions
        payload = element[0] if children else None
        tag: str = payload.tag if payload is not None else ""
        reader = self._readers.get((kind, tag))
        iq = self.addresses.read(element)
        if iq is None or len(iq.head) > self._most_head_bytes:
            log.debug("stanza_dropped", stanza_id=(element.get("id") or "")[:64], sender=element.get("from"))
            self.observe(UNREAD, "dropped", 0.0)
            return True
        if (kind, tag) in _PASSED_ON and children == 1 and len(element.get("id") or "") < _LONG_ID:
            return False
        if payload is not None and tag == COMMAND:
            iq = replace(iq, about=encode_about(payload))
        if kind not in ("get", "set"):
            self._refuse(iq, FeedError(Condition.BAD_REQUEST, "the type of an IQ must be get, set, result or error"))
        elif payload is None or children != 1:
            self._refuse(iq, FeedError(Condition.BAD_REQUEST, "a request must have exactly one child element"))
        elif tag == _CUT:
            self._refuse(iq, _unread(payload.text or ""))
        elif reader is None:
            self._refuse(iq, FeedError(Condition.UNAVAILABLE))
        elif kind == "set" and iq.sender.bare in self._rooms and self._is_room(iq.sender):
            self._refuse(iq, FeedError(Condition.FORBIDDEN, "a room does not prove who sends; use your own address"))
        else:
            return self._begin(iq, reader, payload)
        return True

    def _is_room(self, sender: StanzaAddress) -> bool:
        """Whether a stanza may be of any occupant of a room (XEP-0045 section 7.5), who has not the room's rights."""
        return self._stanzas.rooms is not None and self._stanzas.rooms.is_in(sender.bare)

    def _begin(self, iq: IncomingIq, read: Reader, payload: Element) -> bool | StanzaWork:
        """Reads a request and starts it."""
        request: Request | bytes | None = None
        try:
            request = read(payload, iq.sender.jid, iq.address.bare)
        except FeedError as error:
            self._refuse(iq, error)
        except Exception as error:  # noqa: BLE001  the boundary: nothing internal reaches the wire
            self._refuse(iq, self.incident(UNREAD, error))
        if isinstance(request, bytes):
            if self._order.is_idle(iq.sender.full):
                self._send_known(request, iq)
            else:
                return self._send_in_turn(request, iq)
        elif request is not None:
            return self.start(request, iq)
        return True

    def start(self, request: Request, iq: IncomingIq | None = None) -> StanzaWork:
        """Starts a request, after those that its actor has sent before. A request without an IQ has no response."""
        run = _RequestRun(self, request, iq)
        self.in_flight += 1
        self._order.enter(run.sender, self._access[type(request)], run.begin)
        return run

    def leave(self, sender: str) -> None:
        """Removes a request that has ended."""
        self._order.leave(sender)
        self.in_flight -= 1
        if not self.in_flight and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _send_known(self, body: bytes, iq: IncomingIq) -> None:
        self._reply(envelope(b"result", iq.head, body))
        self.observe(DISCOVER, "ok", 0.0)

    def _send_in_turn(self, body: bytes, iq: IncomingIq) -> StanzaWork:
        """Sends a prepared response after those to the requests that the sender has sent before."""
        work = StanzaWork()

        def send() -> None:
            self._send_known(body, iq)
            self.leave(iq.sender.full)
            work.end(0.0)

        self.in_flight += 1
        self._order.enter(iq.sender.full, StoreAccess.READ, send)
        return work

    def answer(self, iq: IncomingIq, answer: object) -> str:
        """Sends a response and what follows it. Returns the outcome."""
        encode = _BODIES.get(type(answer))
        if encode is not None:
            stanza = envelope(b"result", iq.head, encode(answer))
            if len(stanza) > self._answer_limit_bytes:
                raise FeedError(Condition.NOT_ACCEPTABLE, _TOO_LONG)
            self._reply(stanza)
            return "ok"
        response = self._encoders[type(answer)](answer, iq, self._new_id)
        stanza = envelope(response.kind, iq.head, response.body)
        if max(map(len, (*response.before, stanza))) > self._answer_limit_bytes:
            raise FeedError(Condition.NOT_ACCEPTABLE, _TOO_LONG)
        for message in (*response.before, stanza, *response.after):
            self._reply(message)
        return response.outcome

    def fail(self, iq: IncomingIq | None, error: FeedError, request: type[Request] | None = None) -> str:
        """Sends an error response, if a response is due. Returns the outcome."""
        if iq is not None:
            self._reply(envelope(b"error", iq.head, iq.about + encode_error(error, request)))
        return error.condition.value

    def _refuse(self, iq: IncomingIq, error: FeedError) -> None:
        self.observe(UNREAD, self.fail(iq, error), 0.0)

    def incident(self, operation: str, error: Exception) -> FeedError:
        """Logs an unexpected exception. Returns an error that names only the id of the log entry."""
        incident = self._new_id()
        if isinstance(error, StoreError):
            failure = store_failure(error, Condition.BUSY, _STORE_AWAY)
            if isinstance(error, StoreClosedError):
                return failure
            log.error("store_failed", operation=operation, incident=incident, reason=str(error))
        else:
            failure = FeedError(Condition.INTERNAL, "internal error")
            log.error("request_failed", operation=operation, incident=incident, exc_info=error)
        return FeedError(failure.condition, f"{failure.text} (incident {incident})")

    def _on_presence(self, element: Element) -> bool | StanzaWork:
        """Starts the requests of a presence."""
        sender, address = self.addresses.sender(element), self.addresses.own(element)
        if sender is None or address is None:
            return True
        readers = self._stanzas.room_presence
        request = next(filter(None, (read(element, sender.jid, address.bare) for read in readers)), None)
        if request is not None:
            return self.start(request)
        requests = [reader.read(element, sender.jid, address.bare) for reader in self._stanzas.presence]
        tasks = [self.start(request) for request in requests if request is not None]
        # They run in this order (`ordering`), so the last one ends the work on the presence.
        return tasks[-1] if tasks else True

    def _on_message(self, element: Element) -> bool | StanzaWork:
        kind = element.get("type", "normal")
        kinds = (kind,) if kind == "error" else (kind, ANY_TYPE)
        keys = (*((each, child.tag) for child in element for each in kinds), (kind, NO_OTHER))
        handler = next((self._messages[key] for key in keys if key in self._messages), None)
        if handler is not None:
            return handler(element)
        return self._on_error(element) if kind == "error" else True

    def _read(self, read: StanzaReader, element: Element) -> bool | StanzaWork:
        """Starts the request of a message, if it requires one."""
        sender, address = self.addresses.sender(element), self.addresses.own(element)
        request = read(element, sender.jid, address.bare) if sender is not None and address is not None else None
        return True if request is None else self.start(request)

    def _read_personal(self, read: StanzaReader, element: Element) -> bool | StanzaWork:
        sender = self.addresses.sender(element)
        return True if sender is None or self._is_room(sender) else self._read(read, element)

    def _on_event(self, element: Element) -> bool:
        """Leaves the notifications of a feed that we follow to the follower (xep-map 241)."""
        sender = self.addresses.sender(element)
        return sender is None or not any(follows(sender.bare) for follows in self._stanzas.follows)

    def _on_form(self, element: Element) -> bool | StanzaWork:
        """Starts the request in a form of a message. A message has no response, so a fault of the form is logged."""
        form = next(element.iterchildren(X))
        form_type = form_type_of(form)
        read = MESSAGE_FORMS.get(form_type)
        sender, address = self.addresses.sender(element), self.addresses.own(element)
        if read is None or sender is None or address is None or self._is_room(sender):
            return True
        try:
            fields = parse_submit(element, form_type)
            if fields is None:
                raise FeedError(Condition.BAD_REQUEST, "the form is cancelled")
            request = read(fields, sender.jid, address.bare)
        except FeedError as error:
            _log_ignored(sender.bare, form_type, error)
            self.observe(UNREAD, error.condition.value, 0.0)
            return True
        return self.start(request)

    def _on_error(self, element: Element) -> bool | StanzaWork:
        """Starts the request of an error: a bounce of a notification carries the number of the subscription in its
        id."""
        match = _EVENT_ID.fullmatch(element.get("id") or "")
        sender, address = self.addresses.sender(element), self.addresses.own(element)
        if sender is None or address is None:
            return True
        if match is not None:
            return self.start(Bounce(sender.jid, address.bare, int(match[1]), error_condition(element)))
        readers = self._stanzas.errors
        request = next(filter(None, (read(element, sender.jid, address.bare) for read in readers)), None)
        return True if request is None else self.start(request)


def _unread(reason: str) -> FeedError:
    """Returns the error for a request that the stream did not parse."""
    condition = Condition.PAYLOAD_TOO_BIG if reason == ITEM_TOO_LARGE else Condition.NOT_ACCEPTABLE
    return FeedError(condition, reason)


def _log_ignored(sender: str, subject: str, error: FeedError) -> None:
    log.debug("message_ignored", sender=sender, subject=subject, reason=error.text or error.condition.value)
