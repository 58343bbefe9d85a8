"""A client that sends XML as written and gives back what arrives as lxml elements.

It is slixmpp for the login only: every stanza that comes in is taken before slixmpp looks at it.
"""

import asyncio
import itertools
import re
import ssl
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import slixmpp
from lxml import etree
from slixmpp.xmlstream.xmlstream import NotConnectedError

from smartfeeds.local.process import HOST
from support.waiting import wait_for, waiting

# A client that repeats what got lost does so after this time without an answer: servers lose stanzas while a connection
# ends.
LOST_S = 20.0
_CLIENT = "{jabber:client}"
_ids = itertools.count(1)
_ID = re.compile(r"""^<iq\b[^>]*\sid=(["'])(.*?)\1""")


ClientFactory = Callable[..., Awaitable["Client"]]


class Client(slixmpp.ClientXMPP):
    """A logged-in client. `messages` and `presences` hold what has arrived and was not yet taken."""

    def __init__(self, jid: str, password: str, *, presence: bool) -> None:
        mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
        # slixmpp would load the certificates of the system, twice and for 50 ms. This client has no TLS.
        unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        super().__init__(jid, password, plugin_config={"feature_mechanisms": mechanisms}, ssl_context=unused)
        self.enable_plaintext, self.enable_starttls, self.enable_direct_tls = True, False, False
        self.whitespace_keepalive = False
        self.messages: deque[etree._Element] = deque()
        self.presences: deque[etree._Element] = deque()
        self.requests: deque[etree._Element] = deque()
        self._arrived = asyncio.Event()
        self._replies: dict[str, asyncio.Future[etree._Element]] = {}
        self._presence = presence
        self._online = False

    @property
    def jid(self) -> str:
        """The full JID that the server has bound."""
        return str(self.boundjid.full)

    @property
    def bare(self) -> str:
        """The bare JID."""
        return str(self.boundjid.bare)

    async def login(self, port: int) -> None:
        """Connects, logs in and, unless told otherwise, sends presence."""
        online: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(reason: Any) -> None:
            if not online.done():
                online.set_exception(ConnectionError(f"{self.boundjid}: {reason}"))

        def succeed(_event: Any) -> None:
            if not online.done():
                online.set_result(None)

        self.add_event_handler("session_start", succeed)
        for event in ("failed_all_auth", "connection_failed", "disconnected"):
            self.add_event_handler(event, fail)
        self.connect(HOST, port)
        await wait_for(online, f"the session of {self.boundjid}")
        self._online = True
        if self._presence:
            self.send_raw("<presence/>")

    async def logout(self) -> None:
        """Closes the stream in good order."""
        if self.transport is not None:
            await self.disconnect(wait=2.0)
        self._finish()

    def drop(self) -> None:
        """Cuts the connection without a word."""
        self.abort()
        self._finish()

    async def iq(self, xml: str) -> etree._Element:
        """Sends an IQ exactly as written (with an id where it has none) and returns the answer, error or result."""
        match = _ID.match(xml)
        if match:
            stanza_id = match.group(2)
        else:
            stanza_id = f"c{next(_ids)}"
            xml = xml.replace("<iq", f'<iq id="{stanza_id}"', 1)
        return await self.answer(stanza_id, xml)

    async def answer(self, stanza_id: str, xml: str) -> etree._Element:
        """Sends any text, and returns the answer to the IQ of this id in it."""
        reply: asyncio.Future[etree._Element] = asyncio.get_running_loop().create_future()
        self._replies[stanza_id] = reply
        try:
            self.send_raw(xml)
            return await wait_for(reply, f"the answer to {stanza_id} of {self.boundjid}")
        except NotConnectedError as error:
            # The server has ended the connection, and the event that says so has not come yet.
            raise ConnectionError("the session has ended") from error
        finally:
            self._replies.pop(stanza_id, None)

    async def get(self, to: str, payload: str) -> etree._Element:
        """The answer to an IQ of type get."""
        return await self.iq(f'<iq type="get" to="{to}">{payload}</iq>')

    async def set(self, to: str, payload: str) -> etree._Element:
        """The answer to an IQ of type set."""
        return await self.iq(f'<iq type="set" to="{to}">{payload}</iq>')

    async def next_message(self) -> etree._Element:
        """The oldest message that was not taken yet; waits for one."""
        return await self._next(self.messages, f"a message to {self.boundjid}")

    async def next_presence(self) -> etree._Element:
        """The oldest presence that was not taken yet; waits for one."""
        return await self._next(self.presences, f"a presence to {self.boundjid}")

    async def settle(self) -> None:
        """Returns when everything that the server had routed to us before has arrived."""
        await self.iq(f'<iq type="get" to="{self.boundjid.host}"><ping xmlns="urn:xmpp:ping"/></iq>')

    async def _next(self, queue: deque[etree._Element], what: str) -> etree._Element:
        async with waiting(what):
            while not queue:
                self._arrived.clear()
                await self._arrived.wait()
        return queue.popleft()

    def _spawn_event(self, xml: ET.Element) -> None:
        if not self._online or not xml.tag.startswith(_CLIENT):
            super()._spawn_event(xml)
            return
        stanza = etree.fromstring(ET.tostring(xml))
        kind = xml.tag.removeprefix(_CLIENT)
        if kind == "iq" and xml.get("type") in ("result", "error"):
            reply = self._replies.get(xml.get("id", ""))
            if reply is not None and not reply.done():
                reply.set_result(stanza)
            return
        {"message": self.messages, "presence": self.presences, "iq": self.requests}[kind].append(stanza)
        self._arrived.set()

    def _finish(self) -> None:
        self._online = False
        for reply in self._replies.values():
            reply.cancel()
        if self._run_out_filters is not None:
            self._run_out_filters.cancel()


class Session:
    """An account that is logged in again whenever its session has ended, and for requests that may get no answer.

    `gone` is set once the session of now has ended.
    """

    def __init__(self, server: Any, name: str, resource: str = "test", *, presence: bool = False) -> None:
        local = getattr(server, "server", server)
        account = local.account(name)
        self._jid, self._password, self._port = f"{account.jid}/{resource}", account.password, local.client_port
        self._presence = presence
        self._client: Client | None = None
        self.gone = asyncio.Event()

    async def client(self) -> Client:
        """The client, logged in. Raises ConnectionError, TimeoutError."""
        if self._client is None or self.gone.is_set():
            self.leave()
            self.gone = gone = asyncio.Event()
            self._client = Client(self._jid, self._password, presence=self._presence)
            self._client.add_event_handler("disconnected", lambda _reason: gone.set())
            try:
                async with asyncio.timeout(LOST_S):
                    await self._client.login(self._port)
            except BaseException:
                gone.set()
                raise
        return self._client

    async def ask(self, stanza_id: str, xml: str, *others: Callable[[], Awaitable[Any]]) -> etree._Element | None:
        """Sends any text; the answer to the IQ of this id in it. None once the session, or one of the others, ends, and
        if the request got lost.
        """
        client = await self.client()
        answer = asyncio.ensure_future(client.answer(stanza_id, xml))
        tasks = [answer, asyncio.ensure_future(self.gone.wait()), *(asyncio.ensure_future(other()) for other in others)]
        await asyncio.wait(tasks, timeout=LOST_S, return_when=asyncio.FIRST_COMPLETED)
        answered = answer.done() and not answer.cancelled()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return answer.result() if answered else None

    def leave(self) -> None:
        """Cuts the session."""
        if self._client is not None:
            self._client.cancel_connection_attempt()
            self._client.drop()
            self._client = None


async def log_in(server: Any, name: str, resource: str = "test", *, presence: bool = True) -> Client:
    """A client of this account on a test server or a `LocalServer`; the account is made when it is not there."""
    local = getattr(server, "server", server)
    account = await asyncio.to_thread(local.account, name)
    client = Client(f"{account.jid}/{resource}", account.password, presence=presence)
    await client.login(local.client_port)
    return client
