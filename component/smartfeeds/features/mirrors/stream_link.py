"""XMPP for mirrors, over the component's own stream.

Stanzas come as trees of the stream's parser and items go out as bytes. slixmpp's element tree sees neither: it would
parse each item once more, and it loses attributes that have a namespace.
"""

from collections.abc import Callable
from typing import Protocol, cast
from xml.etree import ElementTree

from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.stanzas import PUBSUB, read_error
from smartfeeds.client.transport import LinkListener
from smartfeeds.core.text import attribute
from smartfeeds.errors import LinkError
from smartfeeds.formats.xml import Element


class StanzaStream(Protocol):
    """The part of `xmpp.stream.ComponentStream` that mirrors use."""

    @property
    def domain(self) -> str:
        """The component's domain."""

    async def call(self, kind: str, to: str, payload: bytes, timeout_s: float) -> Element:
        """The answer to an IQ, an error as well. Raises LinkError, TimeoutError."""

    def listen(
        self, on_up: Callable[[], None], on_down: Callable[[], None], on_message: Callable[[Element], None]
    ) -> Callable[[], None]:
        """Calls back when the stream is online or gone, and for messages to followers; the result stops that."""


class StreamLink:
    """A `client.transport.FollowerLink` that can publish, too. `answer_s` bounds each request."""

    def __init__(self, stream: StanzaStream, answer_s: float) -> None:
        self._stream = stream
        self._answer_s = answer_s
        self._stop: Callable[[], None] = lambda: None

    @property
    def subscriber(self) -> str:
        """The address to subscribe."""
        return self._stream.domain

    def open(self, listener: LinkListener) -> None:
        """Passes events of the stream to the listener."""
        # The client's types name the standard library's elements; it reads both kinds in the same way.
        on_message = cast(Callable[[Element], None], listener.on_message)
        self._stop = self._stream.listen(listener.on_up, listener.on_down, on_message)

    async def ask(self, kind: str, to: str, payload: ElementTree.Element) -> ElementTree.Element:
        """Sends an IQ and returns its reply. Raises RequestError, RequestTimeoutError."""
        try:
            return cast(ElementTree.Element, await self._call(kind, to, ElementTree.tostring(payload)))
        except RequestError:
            raise
        except LinkError as error:
            raise RequestTimeoutError(str(error)) from None

    async def publish(self, service: str, node: str, item_id: str, payload: bytes) -> None:
        """Publishes an item, under an id of the service if `item_id` is empty. Raises RequestError,
        RequestTimeoutError, and LinkError if our own link is down."""
        named = f" id='{attribute(item_id)}'" if item_id else ""
        head = f"<pubsub xmlns='{PUBSUB}'><publish node='{attribute(node)}'><item{named}>"
        await self._call("set", service, head.encode() + payload + b"</item></publish></pubsub>")

    async def close(self) -> None:
        """Passes no more events to the listener. The stream stays as it is."""
        self._stop()
        self._stop = lambda: None

    async def _call(self, kind: str, to: str, payload: bytes) -> Element:
        try:
            reply = await self._stream.call(kind, to, payload, self._answer_s)
        except TimeoutError:
            raise RequestTimeoutError(f"{to} did not answer in {self._answer_s:g} s") from None
        if reply.get("type") == "error":
            raise read_error(cast(ElementTree.Element, reply))
        return reply
