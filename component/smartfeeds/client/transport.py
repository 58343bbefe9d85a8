"""The XMPP link of a follower, over slixmpp (docs/xmpp.md): requests and messages as elements, and a session.

`SlixLink` uses the slixmpp object of a bot and never connects it. `ClientLink` has an object of its own and keeps it
connected: slixmpp does not reconnect by itself, and its back-off starts anew with every TCP connection.
"""

import asyncio
import logging
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack
from xml.etree.ElementTree import Element, SubElement

from slixmpp import JID, BaseXMPP, ClientXMPP, Iq
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase
from slixmpp.xmlstream.stanzabase import StanzaBase

from smartfeeds.client.errors import (
    CertificateError,
    FollowError,
    LoginError,
    RequestTimeoutError,
    UnreachableError,
)
from smartfeeds.client.stanzas import EVENT, read_error
from smartfeeds.core.backoff import Backoff

log = logging.getLogger("smartfeeds.client")

# A connection that lasted longer resets the back-off. A shorter one counts as a failure: otherwise a client would
# connect every second to a server that ends each session at once.
HEALTHY_S = 30.0
BACKOFF = Backoff(first_s=1.0, longest_s=60.0)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Longest waits in seconds: for TCP and TLS, for a response, for a session after TCP, and for a pong."""

    connect_s: float = 30.0
    request_s: float = 30.0
    session_s: float = 60.0
    ping_s: float = 10.0


DEFAULT_TIMEOUTS = Timeouts()


class LinkListener(Protocol):
    """The receiver of the events of a link. All calls come from the event loop and must return at once."""

    def on_up(self) -> None:
        """A session has started."""

    def on_down(self) -> None:
        """The session has ended. No further response arrives."""

    def on_message(self, message: Element) -> None:
        """A message stanza with a pubsub event."""

    def on_failure(self, error: Exception) -> None:
        """The link gives up. There will be no session."""


class FollowerLink(Protocol):
    """A connection to an XMPP server."""

    @property
    def subscriber(self) -> str:
        """The address to subscribe. Valid while a session is up."""

    def open(self, listener: LinkListener) -> None:
        """Starts to call the listener. `on_up` is called when there is a session."""

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Sends an IQ of type `kind` and returns the response. Raises RequestError, RequestTimeoutError."""

    async def close(self) -> None:
        """Stops calling the listener, and releases the resources of `open`."""


Slixmpp = BaseXMPP  # the object of a bot: a client or a component


def link_over(xmpp: Slixmpp | FollowerLink, *, subscribe_as: str | None = None) -> FollowerLink:
    """Returns a link over the slixmpp object, or the link itself."""
    return SlixLink(xmpp, subscribe_as=subscribe_as) if isinstance(xmpp, BaseXMPP) else xmpp


async def _send(iq: Iq, timeout_s: float) -> Iq:
    reply: Iq = await iq.send(timeout=timeout_s)  # type: ignore[no-untyped-call]
    return reply


class _PubsubEvent(MatcherBase):
    """Matches messages with a pubsub event, in any namespace of the stream (client or component)."""

    def match(self, stanza: StanzaBase) -> bool:
        xml = stanza.xml
        return xml.tag.endswith("}message") and xml.find(f"{{{EVENT}}}event") is not None


class SlixLink:
    """A link over a slixmpp client or component that the caller connects.

    A client that subscribes with its bare address (the default) receives notifications only after it has sent presence.
    """

    def __init__(
        self, xmpp: BaseXMPP, *, subscribe_as: str | None = None, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> None:
        self._xmpp = xmpp
        self._subscribe_as = subscribe_as
        self._timeouts = timeouts
        self._listener: LinkListener | None = None
        self._handler = f"smartfeeds follower {id(self)}"  # several links may use one slixmpp object

    @property
    def subscriber(self) -> str:
        """The address to subscribe."""
        return self._subscribe_as or str(self._xmpp.boundjid.bare)

    def open(self, listener: LinkListener) -> None:
        """Starts to call the listener. Calls `on_up` at once if there is a session."""
        self._listener = listener
        self._xmpp.register_handler(Callback(self._handler, _PubsubEvent(None), self._on_message))
        self._xmpp.add_event_handler("session_start", self._on_session_start)
        self._xmpp.add_event_handler("disconnected", self._on_disconnected)
        if self._xmpp.is_connected() and self._xmpp.session_bind_event.is_set():
            listener.on_up()

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Sends an IQ and returns the response. Raises RequestError, RequestTimeoutError."""
        iq = self._xmpp.Iq()
        iq["type"] = kind
        iq["to"] = to
        if getattr(self._xmpp, "is_component", False):  # a component names the sender itself (XEP-0114)
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
        """Stops calling the listener. The slixmpp object stays connected."""
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


def parse_server(text: str) -> tuple[str, int]:
    """Reads HOST:PORT. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:5222")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ConnectOptions(TypedDict, total=False):
    """The options of a connection. `server` is a host and a port, such as `"127.0.0.1:5222"`; without it, the DNS
    records of the account's domain name them. `plaintext=True` allows a connection without TLS: for a server on the
    same machine only. `ca_certs` is a file of certificates to trust in place of the system's."""

    server: tuple[str, int] | str | None
    plaintext: bool
    ca_certs: Path | None


class ClientLink(SlixLink):
    """A link with its own client, which it keeps connected with a jittered back-off.

    If `jid` has a resource, that full address is subscribed, else the bare address. `options` are those of
    `ConnectOptions`.

    A failed connection is retried for ever, and the logger `smartfeeds.client` gets a warning with server and cause.
    With `waits_for_server=False` the first attempt ends the link if it fails: the listener gets UnreachableError.
    A refused login, a server without TLS and an invalid certificate end the link, unless there was a session before:
    the listener gets LoginError or CertificateError.
    """

    def __init__(
        self,
        jid: str,
        password: str,
        *,
        waits_for_server: bool = True,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        spread: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **options: Unpack[ConnectOptions],
    ) -> None:
        server, ca_certs = options.get("server"), options.get("ca_certs")
        plaintext = options.get("plaintext", False)
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
        self._server = parse_server(server) if isinstance(server, str) else server or (None, None)
        self._waits_for_server = waits_for_server
        self._spread = spread
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._settled = asyncio.Event()  # the session has started, or the connection has ended without one
        self._failures: list[object] = []
        self._refusal = ""
        self._final_error: FollowError | None = None  # another attempt cannot succeed
        self._had_session = False
        self._cause = ""

    @property
    def server(self) -> str:
        """The name of the server in messages."""
        host, port = self._server
        return f"{host}:{port}" if host else f"the server of {self._client.requested_jid.host}"

    @property
    def _account(self) -> str:
        return str(self._client.requested_jid.bare)

    @property
    def client(self) -> ClientXMPP:
        """The slixmpp client, for a bot that also sends messages or requests."""
        return self._client

    def open(self, listener: LinkListener) -> None:
        """Starts to connect."""
        super().open(listener)
        for event, handler in self._handlers().items():
            self._client.add_event_handler(event, handler)
        self._task = asyncio.get_running_loop().create_task(self._stay_connected())
        self._task.add_done_callback(self._on_task_done)

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """As in SlixLink. After a timeout, a ping finds out whether the connection itself is dead."""
        try:
            return await super().ask(kind, to, payload)
        except RequestTimeoutError:
            await self._check()
            raise

    async def close(self) -> None:
        """Ends the session and the connection."""
        # The task first, because it would connect again. Then the handlers: the listener has asked for this end.
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await super().close()
        self._client.cancel_connection_attempt()
        if self._client.is_connected():
            await self._client.disconnect(wait=2.0)
        # slixmpp ends this task only when the client is collected, which may be after the event loop has ended.
        sender = self._client._run_out_filters
        if sender is not None:
            sender.cancel()
            await asyncio.wait([sender], timeout=2.0)

    async def _stay_connected(self) -> None:
        failures = 0
        while True:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            await self._one_connection()
            if self._final_error is not None and not self._had_session:
                self._fail(self._final_error)
                return
            if not self._waits_for_server and not self._had_session:
                self._fail(UnreachableError(f"cannot connect to {self.server} as {self._account}: {self._reason()}"))
                return
            failures = 1 if self._had_session and loop.time() - began_s > HEALTHY_S else failures + 1
            delay_s = BACKOFF.pause_s(failures, self._spread())
            self._log_failure(delay_s)
            await self._sleep(delay_s)

    def _log_failure(self, delay_s: float) -> None:
        """Logs an outage as a warning once, and again when its cause changes."""
        cause = self._reason()
        level, self._cause = logging.INFO if cause == self._cause else logging.WARNING, cause
        what = "lost the connection" if self._up.is_set() else "cannot connect"
        log.log(level, "%s to %s as %s: %s; next try in %.1f s", what, self.server, self._account, cause, delay_s)

    def _reason(self) -> str:
        return _cause_of(_worst(self._failures)) or "the connection was closed"

    async def _one_connection(self) -> None:
        """Connects. Returns when the connection has failed or ended."""
        self._final_error, self._refusal = None, ""
        self._failures.clear()
        for event in (self._up, self._down, self._settled):
            event.clear()
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                await self._client.connect(*self._server)
        except TimeoutError:
            self._failures.append(f"no answer in {self._timeouts.connect_s:g} s")
        self._client.cancel_connection_attempt()  # this class plans the next attempt
        if not self._client.is_connected():
            return
        try:
            async with asyncio.timeout(self._timeouts.session_s):
                await self._settled.wait()
        except TimeoutError:
            self._failures.append(f"no session in {self._timeouts.session_s:g} s after TCP was connected")
            self._client.abort()
        await self._down.wait()

    async def _check(self) -> None:
        """Drops the connection if the account's server does not answer a ping (XEP-0199), not even with an error."""
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

    def _fail(self, error: Exception) -> None:
        if self._listener is not None:
            self._listener.on_failure(error)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._fail(error)

    def _handlers(self) -> dict[str, Callable[[Any], None]]:
        return {
            "connection_failed": self._on_connection_failed,
            "ssl_invalid_chain": self._on_bad_certificate,
            "failed_auth": self._on_mechanism_refused,
            "failed_all_auth": self._on_login_refused,
            "no_auth": self._on_nothing_to_log_in_with,
            "stream_error": self._on_stream_error,
        }

    def _on_connection_failed(self, reason: object) -> None:
        # slixmpp gives a text if a name has no address. It names the domain of the account, whatever was looked up.
        self._failures.append("the host name has no address" if isinstance(reason, str) else reason)
        if isinstance(reason, ssl.SSLCertVerificationError):
            self._final_error = CertificateError(
                f"cannot connect to {self.server} as {self._account}: {_cause_of(reason)}; it needs a certificate "
                "for the domain of the account, from an authority that this machine trusts"
            )

    def _on_bad_certificate(self, error: ssl.SSLError) -> None:
        self._on_connection_failed(error)
        self._client.abort()  # slixmpp leaves the connection open for the handler of this event

    def _on_mechanism_refused(self, failure: Any) -> None:
        # The event `failed_all_auth`, which ends the attempts, has no condition.
        self._refusal = str(failure["condition"])

    def _on_login_refused(self, _event: Any) -> None:
        self._failures.append(f"the login is refused, {self._refusal}")
        if self._refusal != "temporary-auth-failure":  # after this condition another try may succeed (RFC 6120 6.5.11)
            refusal = self._refusal or "it offers no way to log in that this program knows"
            self._final_error = LoginError(
                f"{self.server} refuses the login of {self._account}: {refusal}; check the account and its password"
            )

    def _on_stream_error(self, error: Any) -> None:
        self._failures.append(f"the server ends the stream, {error['condition']} {error['text']}".strip())

    def _on_nothing_to_log_in_with(self, _event: Any) -> None:
        """The server offers no way to log in that may be used, as happens without encryption."""
        transport = self._client.transport
        is_encrypted = transport is None or transport.get_extra_info("ssl_object") is not None
        if not is_encrypted and not self._client.enable_plaintext:
            self._final_error = LoginError(
                f"{self.server} offers no TLS, so the password of {self._account} was not sent: let it have a "
                "certificate or, if it runs on this machine, allow a connection without TLS (--plaintext, "
                "plaintext=True)"
            )

    def _on_session_start(self, event: object) -> None:
        self._had_session = True
        self._cause = ""
        self._up.set()
        self._settled.set()
        self._client.send_presence()  # before the follower subscribes: see `SlixLink`
        super()._on_session_start(event)

    def _on_disconnected(self, event: object) -> None:
        if event and not self._failures:
            self._failures.append(event)
        self._down.set()
        self._settled.set()
        super()._on_disconnected(event)


def _cause_of(reason: object) -> str:
    """Returns the cause that an event of slixmpp or an exception names, or an empty text."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate is not valid, {reason.verify_message}"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed, {(reason.reason or str(reason)).lower().replace('_', ' ')}"
    if isinstance(reason, OSError) and reason.errno:
        return os.strerror(reason.errno).lower()
    return str(reason or "")


def _worst(reasons: list[object]) -> object:
    """Returns the cause to report after several attempts: an invalid certificate if there was one, else the last cause.

    An invalid certificate is the only cause that another attempt cannot repair.
    """
    bad = [reason for reason in reasons if isinstance(reason, ssl.SSLCertVerificationError)]
    return (bad or reasons or [None])[-1]
