"""A link to a model feed, at the level of stanzas, and a clock that only a test moves."""

import asyncio
from collections.abc import Callable
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from smartfeeds.client.change import ReceivedItem
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.events import PageRequest, PushReceived
from smartfeeds.client.stanzas import EVENT, PUBSUB, RSM, SHIM
from smartfeeds.client.transport import LinkListener
from smartfeeds.xmpp.framer import TOO_LONG, cut_down
from unit.client.model_feed import ModelFeed, UnknownCursorError

SERVICE = "feeds.example.org"
NODE = "comments?order=modified"
ADDRESS = f"xmpp:{SERVICE}?;node=comments"
ME = "bob@example.org"

Fault = Callable[[Element], RequestError | RequestTimeoutError | None]


def atom(item_id: str, title: str, *, deleted: bool = False) -> ReceivedItem:
    """An entry as the service stores it."""
    sync = '<sync xmlns="http://feedsync.org/2007/feedsync" deleted="true"/>' if deleted else ""
    payload = f'<entry xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>{sync}</entry>'
    return ReceivedItem(item_id, payload.encode(), deleted=deleted)


class MemoryStore:
    """A position in memory, as a caller of the follower may store it."""

    def __init__(self) -> None:
        self.position: str | None = None

    def load(self) -> str | None:
        """The text that was saved last."""
        return self.position

    def save(self, position: str) -> None:
        """Saves the text."""
        self.position = position


class ModelLink:
    """Answers as the service does. `asked` are the payloads it was sent; `fault` may refuse a request.

    Answers above `limit_bytes` are cut down as a component's stream does it, or with `limit_drops` do not come at all.
    """

    def __init__(self, feed: ModelFeed | None = None) -> None:
        self.feed = feed if feed is not None else ModelFeed()
        self.asked: list[Element] = []
        self.fault: Fault = lambda _request: None
        self.subscriptions: set[tuple[str, str]] = set()
        self.pending = False
        self.hold: asyncio.Event | None = None
        self.closed = False
        self.listener: LinkListener | None = None
        self.up_at_once = True
        self.limit_bytes = 1_048_576
        self.limit_drops = False

    @property
    def subscriber(self) -> str:
        """Who follows."""
        return ME

    @property
    def told(self) -> LinkListener:
        """Who listens."""
        assert self.listener is not None
        return self.listener

    def open(self, listener: LinkListener) -> None:
        """Is up at once, unless told otherwise."""
        self.listener = listener
        if self.up_at_once:
            listener.on_up()

    async def close(self) -> None:
        """Notes it."""
        self.closed = True

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Answers from the feed."""
        assert to == SERVICE
        self.asked.append(payload)
        if self.hold is not None:
            await self.hold.wait()
        error = self.fault(payload)
        if error is not None:
            raise error
        request = payload[0]
        name = request.tag.removeprefix(f"{{{PUBSUB}}}")
        assert kind == ("get" if name == "items" else "set")
        reply = Element("{jabber:client}iq", {"type": "result"})
        pubsub = SubElement(reply, f"{{{PUBSUB}}}pubsub")
        if name == "items":
            self._page(payload, pubsub)
            return self._within_limit(reply)
        pair = (request.get("node", ""), request.get("jid", ""))
        if name == "subscribe":
            self.subscriptions.add(pair)
            state = "pending" if self.pending else "subscribed"
            SubElement(pubsub, f"{{{PUBSUB}}}subscription", {"node": pair[0], "jid": pair[1], "subscription": state})
        else:
            self.subscriptions.remove(pair)
        return reply

    def _within_limit(self, reply: Element) -> Element:
        if len(tostring(reply)) <= self.limit_bytes:
            return reply
        if self.limit_drops:
            raise RequestTimeoutError("no answer")
        return fromstring(cut_down(b"<iq xmlns='jabber:client' type='result'>", TOO_LONG))

    def _page(self, payload: Element, pubsub: Element) -> None:
        result_set = payload.find(f"{{{RSM}}}set")
        assert result_set is not None and payload[0].get("node") == NODE
        after = result_set.findtext(f"{{{RSM}}}after", "")
        assert after == "" or after.startswith("cursor:")
        newest = result_set.find(f"{{{RSM}}}before") is not None
        pull = PageRequest(0, after.removeprefix("cursor:"), newest, int(result_set.findtext(f"{{{RSM}}}max", "")))
        try:
            page = self.feed.page(pull)
        except UnknownCursorError:
            raise RequestError("item-not-found", "cancel") from None
        items = SubElement(pubsub, f"{{{PUBSUB}}}items", {"node": NODE})
        for entry in page.items:
            item = SubElement(items, f"{{{PUBSUB}}}item", {"id": entry.item_id})
            item.append(fromstring(entry.payload))
        answer = SubElement(pubsub, f"{{{RSM}}}set")
        if page.items:
            SubElement(answer, f"{{{RSM}}}first", {"index": str(page.index)}).text = f"cursor:{page.first}"
            SubElement(answer, f"{{{RSM}}}last").text = f"cursor:{page.last}"
        SubElement(answer, f"{{{RSM}}}count").text = str(page.count)

    def deliver(self, push: PushReceived, *, sender: str = SERVICE, node: str = NODE) -> None:
        """Sends the notification of a change."""
        message = Element("{jabber:client}message", {"from": sender, "type": "headline"})
        items = SubElement(SubElement(message, f"{{{EVENT}}}event"), f"{{{EVENT}}}items", {"node": node})
        for entry in push.items:
            SubElement(items, f"{{{EVENT}}}item", {"id": entry.item_id}).append(fromstring(entry.payload))
        headers = SubElement(message, f"{{{SHIM}}}headers")
        named = {"TotalItems": push.total, "PreviousCursor": push.previous, "LastCursor": push.last}
        for name, value in named.items():
            if value is not None:
                SubElement(headers, f"{{{SHIM}}}header", {"name": name}).text = str(value)
        self.told.on_message(message)

    def deliver_event(self, xml: str) -> None:
        """Sends another event."""
        message = Element("{jabber:client}message", {"from": SERVICE})
        message.append(fromstring(f'<event xmlns="{EVENT}">{xml}</event>'))
        self.told.on_message(message)


class FakeTimers:
    """Timers that run when a test says so. `planned` are the delays of those that wait."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Callable[[], None]]] = []

    @property
    def planned(self) -> list[float]:
        """The delays, shortest first."""
        return sorted(delay for delay, _ in self._waiting)

    def call_later(self, delay: float, callback: Callable[[], None], /) -> "FakeTimer":
        """Plans a call."""
        entry = (delay, callback)
        self._waiting.append(entry)
        return FakeTimer(lambda: self._waiting.remove(entry) if entry in self._waiting else None)

    def fire(self) -> float:
        """Runs the call with the shortest delay, and says what that was."""
        entry = min(self._waiting, key=lambda waiting: waiting[0])
        self._waiting.remove(entry)
        entry[1]()
        return entry[0]


class FakeTimer:
    """A planned call."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget

    def cancel(self) -> None:
        """Lets it not happen."""
        self._forget()
