"""Stanzas to requests and answers to stanzas: who gets what, within which limits (design section 3; xep-map 12 to 16).

Every IQ of type get or set that is ours gets exactly one result or error, from the address it went to. Requests run
as tasks of their own. Nothing that is no FeedError reaches the wire: it is logged under an incident id.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.service import requests as r
from smartfeeds.service.feeds import OPERATIONS
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.calls import Call, Calls
from smartfeeds.xmpp.command_sessions import Sessions
from smartfeeds.xmpp.commands import (
    COMMAND,
    Command,
    Commands,
    CommandShown,
    RunCommand,
    encode_about,
    encode_command,
    table_of,
)
from smartfeeds.xmpp.conflict_command import CONFLICTS
from smartfeeds.xmpp.decode import GET, SET, Actions, decode
from smartfeeds.xmpp.decode_owner import OWNER_GET, OWNER_SET
from smartfeeds.xmpp.disco import INFO_QUERY, ITEMS_QUERY, PASSED_ON, Disco, ServiceInfo
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.encode import ENCODERS, Encoder, encode_last_item, envelope
from smartfeeds.xmpp.encode_owner import OWNER_ENCODERS
from smartfeeds.xmpp.framer import CUT_NS
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.screening import LARGE_ITEM
from smartfeeds.xmpp.stanza_errors import encode_error

log = structlog.get_logger()

ACTIONS: Mapping[tuple[str, str], Actions] = {
    ("get", ns.tag(ns.PUBSUB, "pubsub")): GET,
    ("set", ns.tag(ns.PUBSUB, "pubsub")): SET,
    ("get", ns.tag(ns.OWNER, "pubsub")): OWNER_GET,
    ("set", ns.tag(ns.OWNER, "pubsub")): OWNER_SET,
}
COMMANDS: Mapping[str, Command] = table_of(CONFLICTS)
_ERROR_BYTES = 4_096  # no error is longer
_EVENT = ns.tag(ns.EVENT, "event")
# To anything else slixmpp would answer with an error in the namespace of clients.
_PASSED_ON = frozenset(("get", ns.tag(*query)) for query in PASSED_ON.items())
_LONG_ID = 1_024  # slixmpp would answer with it whatever its length
_CUT = ns.tag(CUT_NS, "cut")  # what the stream puts in the place of content that it did not read
CUT_REASON_CHARACTERS = 200

DISCOVER = "discover"  # answered from prepared bytes
ANSWER_LIMIT_BYTES = 212_992
UNREAD = "unread"  # refused before it was known what it is

_EVENT_ID = re.compile(r"([0-9]{1,18})\.-?[0-9]{1,18}(?:e[0-9]{1,18})?", re.ASCII)
_STANZA_CONDITIONS = f"{{{ns.STANZAS}}}"
_ENCODERS: Mapping[type, Encoder] = {**ENCODERS, **OWNER_ENCODERS, CommandShown: encode_command}
_OPERATIONS: Mapping[type[r.Request], str] = {**OPERATIONS, RunCommand: "command"}

# (the payload, who asks, our address) -> the request, or the body of an answer that is known already.
Reader = Callable[[Element, Jid, str], r.Request | bytes]


class Service(Protocol):
    """What answers requests."""

    def handle(self, request: r.Request) -> Awaitable[object]:
        """The answer. Raises FeedError, StoreError."""


class Router:
    """Takes stanzas from the stream; see the module.

    `reply` sends one stanza. `observe` gets the operation, its outcome (ok or a condition) and how long it took in
    seconds. `on_bounce` gets the bounces of events, the service where it is not given. `follows` says of which bare
    JIDs events are left to somebody else, because we follow feeds there. An answer above `answer_limit_bytes` is
    refused instead, and there is none where the id of the request alone is too long for it: a server that gets too long
    a stanza ends the link for everybody.
    """

    def __init__(
        self,
        service: Service,
        reply: Callable[[bytes], object],
        info: ServiceInfo,
        *,
        observe: Callable[[str, str, float], object] = lambda _operation, _outcome, _seconds: None,
        on_bounce: Callable[[r.Bounce], Awaitable[object]] | None = None,
        follows: Callable[[str], bool] = lambda _jid: False,
        answer_limit_bytes: int = ANSWER_LIMIT_BYTES,
        commands: Mapping[str, Command] = COMMANDS,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        clock: Callable[[], float] = time.perf_counter,
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._service = service
        self._reply = reply
        self._observe = observe
        self._on_bounce = on_bounce or service.handle
        self._follows = follows
        self._answer_limit_bytes = answer_limit_bytes
        self._clock = clock
        self._new_id = new_id
        self._calls = Calls(info.domain)
        self._disco = disco = Disco(info, commands)
        sessions = Sessions(now_us=now_us, new_id=new_id)
        self._commands = Commands(commands, service.handle, sessions)
        self._readers: Mapping[tuple[str, str], Reader] = {
            **{key: partial(decode, actions) for key, actions in ACTIONS.items()},
            **{("get", query): disco.read for query in (INFO_QUERY, ITEMS_QUERY)},
            **{("set", query): _no_setting for query in (INFO_QUERY, ITEMS_QUERY)},
            ("set", COMMAND): self._commands.read,
        }
        self._tasks: set[asyncio.Task[float]] = set()
        self._kinds: Mapping[str, Callable[[Element], bool | asyncio.Task[float]]] = {
            ns.tag(COMPONENT_NS, "iq"): self._on_iq,
            ns.tag(COMPONENT_NS, "message"): self._on_message,
            ns.tag(COMPONENT_NS, "presence"): lambda _element: True,
        }

    @property
    def in_flight(self) -> int:
        """How many requests are being worked on."""
        return len(self._tasks)

    async def drain(self) -> None:
        """Waits until the requests that have begun are answered."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def on_stanza(self, element: Element) -> bool | asyncio.Task[float]:
        """Takes a stanza, or returns False for one that is not ours. Never waits.

        Returns the work that a request begins, whose result is the processor seconds spent on encoding its answer.
        """
        handler = self._kinds.get(element.tag)
        return handler is not None and handler(element)

    def on_full(self, name: str, attributes: Mapping[str, str]) -> None:
        """Answers a stanza that was not admitted, from the attributes of its start tag."""
        call = self._calls.read(attributes)
        if name == "iq" and attributes.get("type") in ("get", "set") and call is not None and self._answerable(call):
            self._refuse(call, FeedError(Condition.BUSY, "too many requests at once"))
        else:
            self._observe(UNREAD, "dropped", 0.0)

    def _answerable(self, call: Call) -> bool:
        return len(call.head) + _ERROR_BYTES <= self._answer_limit_bytes

    def _on_iq(self, element: Element) -> bool | asyncio.Task[float]:
        kind = element.get("type")
        if kind not in ("get", "set"):
            return False
        payload = next(element.iterchildren("*"), None)
        tag: str = payload.tag if payload is not None else ""
        reader = self._readers.get((kind, tag))
        call = self._calls.read(element)
        if call is None or not self._answerable(call):
            log.debug("stanza_dropped", stanza_id=(element.get("id") or "")[:64], sender=element.get("from"))
            self._observe(UNREAD, "dropped", 0.0)
            return True
        if (kind, tag) in _PASSED_ON and len(element.get("id") or "") < _LONG_ID:
            return False
        if payload is not None and tag == COMMAND:
            call = replace(call, about=encode_about(payload))
        if payload is None or len(element) != 1:
            self._refuse(call, FeedError(Condition.BAD_REQUEST, "a request has exactly one child"))
        elif tag == _CUT:
            self._refuse(call, _unread(payload.text or ""))
        elif reader is None:
            self._refuse(call, FeedError(Condition.UNAVAILABLE))
        else:
            return self._begin(call, reader, payload)
        return True

    def _begin(self, call: Call, read: Reader, payload: Element) -> bool | asyncio.Task[float]:
        """Reads a request and starts it."""
        request: r.Request | bytes | None = None
        try:
            request = read(payload, call.sender.jid, call.place.bare)
        except FeedError as error:
            self._refuse(call, error)
        except Exception as error:  # noqa: BLE001  the boundary: nothing internal reaches the wire
            self._refuse(call, self._incident(UNREAD, error))
        if isinstance(request, bytes):
            self._reply(envelope(b"result", call.head, request))
            self._observe(DISCOVER, "ok", 0.0)
        elif request is not None:
            return self._start(self._run(call, request))
        return True

    async def _run(self, call: Call, request: r.Request) -> float:
        operation, started = _OPERATIONS[type(request)], self._clock()
        outcome, spent_s = "cancelled", 0.0
        try:
            if isinstance(request, RunCommand):
                answer: object = await self._commands.run(request)
            else:
                answer = await self._service.handle(request)
            began_s = time.thread_time()
            outcome = self._answer(call, answer)
            spent_s = time.thread_time() - began_s
        except FeedError as error:
            outcome = error.condition.value
            self._reply(envelope(b"error", call.head, call.about + encode_error(error, type(request))))
        except Exception as error:  # noqa: BLE001  the boundary: nothing internal reaches the wire
            failure = self._incident(operation, error)
            outcome = failure.condition.value
            self._reply(envelope(b"error", call.head, call.about + encode_error(failure)))
        finally:
            self._observe(operation, outcome, self._clock() - started)
        return spent_s

    def _answer(self, call: Call, answer: object) -> str:
        """Sends an answer and what follows it; the outcome."""
        discovered = self._disco.encoders.get(type(answer))
        body = discovered(answer, call.place.bare) if discovered is not None else _ENCODERS[type(answer)](answer)
        if len(call.head) + len(body) > self._answer_limit_bytes:
            raise FeedError(Condition.NOT_ACCEPTABLE, "the answer is too long for one stanza; ask for less at a time")
        if isinstance(answer, r.PartlyRefused):
            self._reply(envelope(b"error", call.head, body))
            return Condition.NOT_ACCEPTABLE.value
        self._reply(envelope(b"result", call.head, body))
        if isinstance(answer, r.Subscribed) and answer.last is not None:
            self._reply(encode_last_item(answer, answer.last, call.place.bare, self._new_id()))
        return "ok"

    def _refuse(self, call: Call, error: FeedError) -> None:
        self._reply(envelope(b"error", call.head, call.about + encode_error(error)))
        self._observe(UNREAD, error.condition.value, 0.0)

    def _incident(self, operation: str, error: Exception) -> FeedError:
        """Logs what went wrong; the peer gets only the id under which it stands in the log."""
        incident = self._new_id()
        if isinstance(error, StoreError):
            log.error("store_failed", operation=operation, incident=incident, reason=str(error))
            return FeedError(Condition.BUSY, f"the store cannot be used now; incident {incident}")
        log.error("request_failed", operation=operation, incident=incident, exc_info=error)
        return FeedError(Condition.INTERNAL, f"incident {incident}")

    def _on_message(self, element: Element) -> bool | asyncio.Task[float]:
        """Bounces of events are counted; what else comes as a message is not for us (xep-map 14, 241), unless it is an
        event of a feed that we follow."""
        if element.get("type") != "error" and element.find(_EVENT) is not None:
            sender = self._calls.sender(element)
            return sender is None or not self._follows(str(sender.bare))
        match = _EVENT_ID.fullmatch(element.get("id") or "") if element.get("type") == "error" else None
        sender, place = self._calls.sender(element), self._calls.place(element)
        if match is None or sender is None or place is None:
            return True
        return self._start(self._count(r.Bounce(sender.jid, place.bare, int(match[1]), _condition_of(element))))

    async def _count(self, bounce: r.Bounce) -> float:
        started = self._clock()
        outcome = "cancelled"
        try:
            await self._on_bounce(bounce)
            outcome = "ok"
        except FeedError as error:
            outcome = error.condition.value
        except Exception as error:  # noqa: BLE001  the boundary: one bounce must not end anything
            outcome = self._incident(OPERATIONS[r.Bounce], error).condition.value
        finally:
            self._observe(OPERATIONS[r.Bounce], outcome, self._clock() - started)
        return 0.0

    def _start(self, work: Coroutine[None, None, float]) -> asyncio.Task[float]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _unread(reason: str) -> FeedError:
    """Why the stream did not read a request."""
    condition = Condition.PAYLOAD_TOO_BIG if reason == LARGE_ITEM else Condition.NOT_ACCEPTABLE
    return FeedError(condition, reason[:CUT_REASON_CHARACTERS])


def _no_setting(_query: Element, _actor: Jid, _service: str) -> r.Request:
    raise FeedError(Condition.BAD_REQUEST, "discovery is of type get")


def _condition_of(message: Element) -> str:
    """The defined condition of an error, empty where there is none."""
    for error in message.iterchildren(ns.tag(COMPONENT_NS, "error")):
        for child in error.iterchildren("*"):
            name: str = child.tag
            if name.startswith(_STANZA_CONDITIONS) and not name.endswith("}text"):
                return name.removeprefix(_STANZA_CONDITIONS)
    return ""
