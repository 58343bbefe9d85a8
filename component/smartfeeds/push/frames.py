"""Event messages as byte frames: one head and one tail for each event, with recipients between them (0.35 us each).

XEP-0060 7.1.2, 8.4.2, 8.5.2; XEP-0131 headers (xep-map 164 to 180). A frame is `head + recipient + tail`, and a
recipient is its address and subscription number, prepared once. Texts are joined, not built as trees: a fan-out makes
thousands of messages that differ in the recipient only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from smartfeeds.core.model import Item, Node, NodeEvent
from smartfeeds.core.text import attribute, escape
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.subscription_states import read_notice

_EVENT = "<event xmlns='http://jabber.org/protocol/pubsub#event'>"
_STORE = b"<store xmlns='urn:xmpp:hints'/>"
_NO_STORE = b"<no-store xmlns='urn:xmpp:hints'/>"


@dataclass(frozen=True, slots=True)
class PushHeaders:
    """The three headers of a push: TotalItems (None: left out), PreviousCursor (empty: left out), LastCursor."""

    total: int | None
    previous: str
    last: str


@dataclass(frozen=True, slots=True)
class RecipientGroup:
    """Recipients whose frames differ in the address only."""

    view: str
    node_text: str
    service: str
    body: bool


@dataclass(frozen=True, slots=True)
class PushFrame:
    """The bytes before and after the recipient."""

    head: bytes
    tail: bytes


def recipient(jid: str, sub_no: int) -> bytes:
    """The part of a frame that differs between recipients. It ends inside the id, which the tail completes."""
    return f"{attribute(jid)}' id='{sub_no}".encode()


def item_frame(node: Node, group: RecipientGroup, item: Item, chain: PushHeaders) -> PushFrame:
    """A new or changed item, or the tombstone of one for a Smart view."""
    publisher = ""
    if item.publisher and node.options.shows_publisher:
        publisher = f" publisher='{attribute(item.publisher)}'"
    payload = item.payload if node.options.deliver_payloads else b""
    inner = (
        b"<item id='%b'%b>%b</item>" % (attribute(item.id).encode(), publisher.encode(), payload) if item.id else b""
    )
    body = read_meta(item.payload).body if group.body else ""
    return _items_frame(node, group, inner, chain, str(item.modified_us), body)


def transient_item(event: NodeEvent) -> Item:
    """The item of an event of the kind TRANSIENT_ITEM; its id is empty if there is only a notification."""
    publisher, item_id, payload = event.data.split(" ", 2)
    return Item(0, unquote(item_id), event.at_us, event.at_us, payload.encode(), publisher)


def retract_frame(node: Node, group: RecipientGroup, item_id: str, chain: PushHeaders, key_us: int) -> PushFrame:
    """A retraction, in the form of the bare view."""
    inner = f"<retract id='{attribute(item_id)}'/>".encode()
    return _items_frame(node, group, inner, chain, str(key_us), "")


def node_frame(node: Node, group: RecipientGroup, event: NodeEvent, form: bytes) -> PushFrame:
    """A purge, a deletion or a change of configuration; no headers (xep-map 179)."""
    name = attribute(group.node_text)
    redirect = f"<redirect uri='{attribute(event.data)}'/>" if event.data else ""
    content = {
        "purge": f"<purge node='{name}'/>".encode(),
        "delete": f"<delete node='{name}'>{redirect}</delete>".encode(),
        "configuration": b"<configuration node='%b'>%b</configuration>" % (name.encode(), form),
    }[event.kind]
    return _frame(node, group, _EVENT.encode() + content + b"</event>", f"{event.at_us}e{event.event_no}", "")


def subscription_message(node: Node, event: NodeEvent) -> bytes:
    """A change of a subscription: for its entity, if somebody else made it (XEP-0060 12.14), or for an owner."""
    notice = read_notice(event)
    kind = node.options.notification_type
    return (
        f"<message from='{attribute(notice.service)}' to='{attribute(event.to)}' id='0.{event.event_no}' type='{kind}'>"
        f"{_EVENT}<subscription node='{attribute(notice.node_text)}' jid='{attribute(notice.jid)}' "
        f"subscription='{notice.value}'/></event></message>"
    ).encode()


def authorization_message(event: NodeEvent, encode_form: Callable[[str, str, str], bytes]) -> bytes:
    """A request to subscribe, for an owner (XEP-0060 8.6). `encode_form` makes the form of subid, node and address.

    The message has no body, as in the example of the XEP: Movim ignores forms in messages with a body.
    The owner may be offline, so the hint asks servers to store the message although it is no conversation.
    """
    service, subid, jid, node_text = read_notice(event)
    return b"<message from='%b' to='%b' id='0.%d' type='normal'>%b%b</message>" % (
        attribute(service).encode(),
        attribute(event.to).encode(),
        event.event_no,
        encode_form(subid, node_text, jid),
        _STORE,
    )


def _items_frame(node: Node, group: RecipientGroup, inner: bytes, chain: PushHeaders, key: str, body: str) -> PushFrame:
    name = attribute(group.node_text)
    total = f"<header name='TotalItems'>{chain.total}</header>" if chain.total is not None else ""
    previous = f"<header name='PreviousCursor'>{chain.previous}</header>" if chain.previous else ""
    headers = (
        f"<headers xmlns='http://jabber.org/protocol/shim'>{total}{previous}"
        f"<header name='LastCursor'>{chain.last}</header></headers>"
    )
    content = b"%b<items node='%b'>%b</items></event>" % (_EVENT.encode(), name.encode(), inner)
    return _frame(node, group, content, key, body, headers.encode())


def _frame(node: Node, group: RecipientGroup, event: bytes, key: str, body: str, headers: bytes = b"") -> PushFrame:
    kind = node.options.notification_type
    text = f"<body>{escape(body)}</body>".encode() if body else b""
    # Servers store messages of type `normal` for users who are offline (XEP-0160). Nobody can read one without a body,
    # and cursors show clients what they have missed (XEP-0334, section 4.2).
    hint = _NO_STORE if kind == "normal" and not body else b""
    head = f"<message from='{attribute(group.service)}' to='".encode()
    tail = b".%b' type='%b'>%b%b%b%b</message>" % (key.encode(), kind.encode(), text, event, hint, headers)
    return PushFrame(head, tail)
