"""The connection of a bot: create, publish, retract, subscribe and follow over one session (XEP-0060 sections 6 to 8).

`FeedClient` shares its link between its own requests and its followers.
"""

import asyncio
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, Unpack
from weakref import WeakSet
from xml.etree.ElementTree import Element

from smartfeeds.client import stanzas
from smartfeeds.client.entry import EntryTexts, atom_entry, read_payload
from smartfeeds.client.errors import AnswerError, RefusedError, RequestError, RequestTimeoutError, UnreachableError
from smartfeeds.client.follow import Follower, FollowOptions
from smartfeeds.client.transport import DEFAULT_TIMEOUTS, ClientLink, ConnectOptions, FollowerLink, LinkListener
from smartfeeds.core.feed_address import FeedAddress, parse_address


class AccountLink(FollowerLink, Protocol):
    """A link that knows the server of its account."""

    @property
    def server(self) -> str:
        """The name of the server in messages."""


class FeedClient:
    """A session of an account, for `async with`. `connect` makes one.

    The requests, from `create` to `unsubscribe`, raise RefusedError if the service refuses them, and UnreachableError
    if no response arrives: the request may then have been carried out. Both name the feed, and what the service or the
    connection reported. All methods raise AddressError for a text that is not the address of a feed.

    After the session has started, the link reconnects by itself. A request waits up to `session_s` seconds for a new
    session. `new_id` returns the id of an item that is published without one.
    """

    def __init__(
        self,
        link: AccountLink,
        *,
        session_s: float = DEFAULT_TIMEOUTS.request_s,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._link = link
        self._session_s = session_s
        self._new_id = new_id
        self._listeners: list[LinkListener] = []
        self._followers: WeakSet[Follower] = WeakSet()  # a bot may open and close followers for years
        self._settled = asyncio.Event()  # the session has started, or will never start
        self._up = asyncio.Event()
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        self._link.open(self)
        try:
            await self._settled.wait()
            if self._failure is not None:
                raise self._failure
        except BaseException:  # a cancellation too: `__aexit__` is not called, so nothing else would end the attempts
            await self._link.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the followers and ends the session."""
        # First, because a follower with `leave` unsubscribes over the link.
        for follower in list(self._followers):
            await follower.aclose()
        await self._link.close()

    async def create(self, address: str) -> None:
        """Creates a feed with the default options of the service (XEP-0060 section 8.1)."""
        await self._request("create", address)

    async def publish(
        self,
        address: str,
        payload: str | bytes | None = None,
        *,
        item_id: str = "",
        **texts: Unpack[EntryTexts],
    ) -> str:
        """Publishes an item and returns its id, after the service has stored it (XEP-0060 section 7.1).

        The item is an Atom entry of the texts, or `payload`: an XML text. An item with the same id is replaced. Without
        `item_id` the client chooses an id. Raises ValueError if the texts or the payload cannot be XML.
        """
        if payload is not None and any(texts.values()):
            raise ValueError("publish takes a payload or texts, not both; put the texts into the payload")
        entry = atom_entry(**texts) if payload is None else read_payload(payload)
        item_id = item_id or self._new_id()
        await self._request("publish", address, _item(item_id, entry))
        return item_id

    async def retract(self, address: str, item_id: str) -> None:
        """Deletes an item, and notifies the subscribers (XEP-0060 section 7.2)."""
        await self._request("retract", address, _item(item_id), notify="true")

    async def subscribe(self, address: str) -> bool:
        """Subscribes the account to notifications (XEP-0060 section 6.1).

        Returns whether they begin now. They do not if the subscription waits for the approval of an owner. Write the
        view as a part of the node; without one, the account gets the notifications of the bare node.
        """
        return not stanzas.is_pending(await self._request("subscribe", address, jid=self._link.subscriber))

    async def unsubscribe(self, address: str) -> None:
        """Ends the subscription of the account (XEP-0060 section 6.2)."""
        await self._request("unsubscribe", address, jid=self._link.subscriber)

    def follow(self, address: str, **options: Unpack[FollowOptions]) -> Follower:
        """Follows a feed over this session. `options` are those of `FollowOptions`.

        The follower ends with the client at the latest. Followers of one client need different feeds or views, because
        an account has one subscription for each.
        """
        follower = Follower(_SharedLink(self, self._link), address, **options)
        self._followers.add(follower)
        return follower

    async def _request(self, action: str, address: str, item: Element | None = None, **attributes: str) -> Element:
        feed = parse_address(address, smart=False)
        payload = stanzas.request(action, node=feed.node, **attributes)
        if item is not None:
            payload[0].append(item)
        try:
            await self._session()
            return await self._link.ask("set", feed.service, payload)
        except RequestError as error:
            raise RefusedError(error.condition, _text(action, feed, error)) from None
        except (RequestTimeoutError, AnswerError) as error:
            raise UnreachableError(_text(action, feed, error)) from None

    async def _session(self) -> None:
        """Waits for a session. Raises RequestTimeoutError."""
        try:
            async with asyncio.timeout(self._session_s):
                await self._up.wait()
        except TimeoutError:
            raise RequestTimeoutError(
                f"there was no session with {self._link.server} for {self._session_s:g} s; the request was not sent"
            ) from None

    # Calls from the link, and from the links of followers.

    def listen(self, listener: LinkListener) -> None:
        """Passes the events of the link on to a listener."""
        self._listeners.append(listener)
        if self._up.is_set():
            listener.on_up()

    def ignore(self, listener: LinkListener) -> None:
        """Ends `listen`."""
        self._listeners.remove(listener)

    def on_up(self) -> None:
        """A session has started."""
        self._up.set()
        self._settled.set()
        for listener in self._listeners:
            listener.on_up()

    def on_down(self) -> None:
        """The session has ended. The link connects again."""
        self._up.clear()
        for listener in self._listeners:
            listener.on_down()

    def on_message(self, message: Element) -> None:
        """Each follower recognises the notifications of its feed."""
        for listener in self._listeners:
            listener.on_message(message)

    def on_failure(self, error: Exception) -> None:
        """There will be no session."""
        self._failure = error
        self._settled.set()
        for listener in self._listeners:
            listener.on_failure(error)


class _SharedLink:
    """The link of a client as one of its followers uses it. Closing it leaves the session open."""

    def __init__(self, client: FeedClient, link: FollowerLink) -> None:
        self._client = client
        self._link = link
        self._listener: LinkListener | None = None

    @property
    def subscriber(self) -> str:
        """The address to subscribe."""
        return self._link.subscriber

    def open(self, listener: LinkListener) -> None:
        """Starts to call the listener."""
        self._listener = listener
        self._client.listen(listener)

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Sends an IQ and returns the response. Raises RequestError, RequestTimeoutError."""
        return await self._link.ask(kind, to, payload)

    async def close(self) -> None:
        """Stops calling the listener."""
        if self._listener is not None:
            self._client.ignore(self._listener)
            self._listener = None


def connect(jid: str, password: str, **options: Unpack[ConnectOptions]) -> FeedClient:
    """Returns a client for `async with`, which connects when the block begins. Call it in a running event loop.

    Raises ValueError for an unreadable `server`. The block begins when there is a session. It raises UnreachableError
    if the first attempt to connect fails, LoginError and CertificateError as `follow` does.
    """
    return FeedClient(ClientLink(jid, password, **options, waits_for_server=False))


def _item(item_id: str, payload: Element | None = None) -> Element:
    item = Element(f"{{{stanzas.PUBSUB}}}item", {"id": item_id})
    if payload is not None:
        item.append(payload)
    return item


def _text(action: str, feed: FeedAddress, error: Exception) -> str:
    return f"cannot {action} at {feed}: {error}"
