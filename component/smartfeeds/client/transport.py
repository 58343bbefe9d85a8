"""What a follower needs of XMPP, over slixmpp (xep-map 6.2): requests and messages as elements, and a session.

`SlixLink` uses an object that a bot already has and never connects it. `ClientLink` has its own and keeps it connected:
slixmpp does not reconnect by itself, and its back-off starts anew with every TCP connection.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from xml.etree.ElementTree import Element, SubElement

from slixmpp import JID, BaseXMPP, ClientXMPP, Iq
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase
from slixmpp.xmlstream.stanzabase import StanzaBase

from smartfeeds.client.errors import LoginError, RequestTimeoutError
from smartfeeds.client.stanzas import EVENT, read_error

log = logging.getLogger("smartfeeds.client")

HEALTHY_S = 30.0
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait: for the answer to a request, for a session after TCP, for the own server's pong."""

    request_s: float = 30.0
    session_s: float = 60.0
    ping_s: float = 10.0


DEFAULT_TIMEOUTS = Timeouts()


class Listener(Protocol):
    """Who is told what happens on a link. All calls come from the event loop and return at once."""

    def on_up(self) -> None:
        """A session has begun."""

    def on_down(self) -> None:
        """The session has ended; nothing asked on it will be answered."""

    def on_message(self, message: Element) -> None:
        """A message stanza with a pubsub event."""

    def on_failure(self, error: Exception) -> None:
        """There will be no session."""


class Link(Protocol):
    """A way to an XMPP server."""

    @property
    def subscriber(self) -> str:
        """The address to subscribe. Valid while a session is up."""

    def open(self, listener: Listener) -> None:
        """Starts to tell the listener; `on_up` follows when there is a session."""

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Sends an IQ of type `kind` and returns the reply stanza. Raises RequestError, RequestTimeoutError."""

    async def close(self) -> None:
        """Stops telling, and gives back what `open` took."""


Slixmpp = BaseXMPP  # what a bot has: a client or a component


def link_over(xmpp: Slixmpp | Link, *, subscribe_as: str | None = None) -> Link:
    """A link over what the caller has, or the link itself."""
    return SlixLink(xmpp, subscribe_as=subscribe_as) if isinstance(xmpp, BaseXMPP) else xmpp


def back_off_s(attempt: int, spread: float) -> float:
    """How long to wait before try number `attempt` (from 0), with `spread` in 0..1 chosen at random."""
    return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(attempt, 16)) * (0.5 + spread / 2)


async def _send(iq: Iq, timeout_s: float) -> Iq:
    reply: Iq = await iq.send(timeout=timeout_s)  # type: ignore[no-untyped-call]
    return reply


class _PubsubEvent(MatcherBase):
    """Messages with an event, in whatever namespace the stream has."""

    def match(self, stanza: StanzaBase) -> bool:
        xml = stanza.xml
        return xml.tag.endswith("}message") and xml.find(f"{{{EVENT}}}event") is not None


class SlixLink:
    """A link over a slixmpp client or component that somebody else connects.

    A client that subscribes with its bare address (the default) must have sent presence to get the notifications.
    """

    def __init__(
        self, xmpp: BaseXMPP, *, subscribe_as: str | None = None, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> None:
        self._xmpp = xmpp
        self._subscribe_as = subscribe_as
        self._timeouts = timeouts
        self._listener: Listener | None = None
        self._handler = f"smartfeeds follower {id(self)}"

    @property
    def subscriber(self) -> str:
        """The address to subscribe."""
        return self._subscribe_as or str(self._xmpp.boundjid.bare)

    def open(self, listener: Listener) -> None:
        """Starts to tell the listener; `on_up` comes at once where a session is up already."""
        self._listener = listener
        self._xmpp.register_handler(Callback(self._handler, _PubsubEvent(None), self._on_message))
        self._xmpp.add_event_handler("session_start", self._on_session_start)
        self._xmpp.add_event_handler("disconnected", self._on_disconnected)
        if self._xmpp.is_connected() and self._xmpp.session_bind_event.is_set():
            listener.on_up()

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Sends an IQ and returns its reply. Raises RequestError, RequestTimeoutError."""
        iq = self._xmpp.Iq()
        iq["type"] = kind
        iq["to"] = to
        if getattr(self._xmpp, "is_component", False):
            iq["from"] = JID(self.subscriber)
        iq.xml.append(payload)
        try:
            reply = await _send(iq, self._timeouts.request_s)
        except IqError as error:
            raise read_error(error.iq.xml) from None
        except IqTimeout:
            raise RequestTimeoutError(f"{to} did not answer in {self._timeouts.request_s:g} s") from None
        return reply.xml

    async def close(self) -> None:
        """Stops telling. The XMPP object stays as it is."""
        self._xmpp.remove_handler(self._handler)
        self._xmpp.del_event_handler("session_start", self._on_session_start)
        self._xmpp.del_event_handler("disconnected", self._on_disconnected)
        self._listener = None

    def _on_message(self, stanza: StanzaBase) -> None:
        if self._listener is not None:
            self._listener.on_message(stanza.xml)

    def _on_session_start(self, _event: object) -> None:
        if self._listener is not None:
            self._listener.on_up()

    def _on_disconnected(self, _event: object) -> None:
        if self._listener is not None:
            self._listener.on_down()


class ClientLink(SlixLink):
    """A link with a client of its own, which is kept connected with a jittered back-off.

    With a resource in `jid` that full address is subscribed, else the bare one. `server` overrides the DNS.
    `plaintext` allows a connection without TLS: for a server on the same machine only.
    """

    def __init__(
        self,
        jid: str,
        password: str,
        *,
        server: tuple[str, int] | None = None,
        plaintext: bool = False,
        ca_certs: Path | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        spread: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        plain = {"unencrypted_plain": True, "unencrypted_scram": True} if plaintext else {}
        self._client = ClientXMPP(jid, password, plugin_config={"feature_mechanisms": plain})
        full = self._client.requested_jid
        super().__init__(
            self._client,
            subscribe_as=str(full) if full.resource else None,
            timeouts=timeouts,
        )
        self._client.enable_plaintext = plaintext
        self._client.enable_direct_tls = self._client.enable_starttls = not plaintext
        if ca_certs is not None:
            self._client.ca_certs = ca_certs
        self._server = server or (None, None)
        self._spread = spread
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._login_refused = False
        self._without_tls = False
        self._had_session = False

    @property
    def client(self) -> ClientXMPP:
        """The client itself, for a bot that wants more of the connection than to follow."""
        return self._client

    def open(self, listener: Listener) -> None:
        """Begins to connect."""
        super().open(listener)
        self._client.add_event_handler("failed_all_auth", self._on_login_refused)
        self._client.add_event_handler("no_auth", self._on_nothing_to_log_in_with)
        self._task = asyncio.get_running_loop().create_task(self._stay_connected())
        self._task.add_done_callback(self._on_task_done)

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """As in SlixLink; when there is no answer and the own server does not answer either, the connection is dead."""
        try:
            return await super().ask(kind, to, payload)
        except RequestTimeoutError:
            await self._check()
            raise

    async def close(self) -> None:
        """Ends the session and the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await super().close()
        self._client.cancel_connection_attempt()
        if self._client.is_connected():
            await self._client.disconnect(wait=2.0)

    async def _stay_connected(self) -> None:
        attempt = 0
        while True:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            await self._one_connection()
            if self._login_refused and not self._had_session:
                self._fail(LoginError(self._why_no_login()))
                return
            attempt = 0 if self._had_session and loop.time() - began_s > HEALTHY_S else attempt + 1
            delay_s = back_off_s(attempt, self._spread())
            level = logging.INFO if attempt > 1 else logging.WARNING  # an outage is news once
            log.log(level, "no connection for %s, next try in %.1f s", self._client.requested_jid.bare, delay_s)
            await self._sleep(delay_s)

    async def _one_connection(self) -> None:
        """Connects, and returns when the connection has ended or could not be made."""
        self._login_refused = self._without_tls = False
        self._up.clear()
        self._down.clear()
        await self._client.connect(*self._server)
        self._client.cancel_connection_attempt()  # the next try is ours to time
        if not self._client.is_connected():
            return
        try:
            async with asyncio.timeout(self._timeouts.session_s):
                await self._first_of(self._up, self._down)
        except TimeoutError:
            log.warning("%s does not let the session begin", self._client.requested_jid.host)
            self._client.abort()
        await self._down.wait()

    async def _first_of(self, *events: asyncio.Event) -> None:
        tasks = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _check(self) -> None:
        """Drops the connection when the own server does not answer a ping (XEP-0199) with anything."""
        ping = self._client.Iq()
        ping["type"] = "get"
        ping["to"] = self._client.requested_jid.host
        SubElement(ping.xml, "{urn:xmpp:ping}ping")
        try:
            await _send(ping, self._timeouts.ping_s)
        except IqError:
            return
        except IqTimeout:
            log.warning("%s does not answer, connecting again", self._client.requested_jid.host)
            self._client.abort()

    def _why_no_login(self) -> str:
        account = self._client.requested_jid
        if self._without_tls and not self._client.enable_plaintext:
            return (
                f"the server of {account.host} offers no TLS, so the password was not sent: let it have a certificate "
                "or, where it runs on this machine, allow a connection without TLS (--plaintext)"
            )
        return f"the server refuses the login of {account.bare}"

    def _fail(self, error: Exception) -> None:
        if self._listener is not None:
            self._listener.on_failure(error)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._fail(error)

    def _on_login_refused(self, _event: Any) -> None:
        self._login_refused = True

    def _on_nothing_to_log_in_with(self, _event: Any) -> None:
        """The server offers no way to log in that may be used, as it is where nothing is encrypted."""
        transport = self._client.transport
        self._without_tls = transport is not None and transport.get_extra_info("ssl_object") is None

    def _on_session_start(self, event: object) -> None:
        self._had_session = True
        self._up.set()
        self._client.send_presence()
        super()._on_session_start(event)

    def _on_disconnected(self, event: object) -> None:
        self._down.set()
        super()._on_disconnected(event)
