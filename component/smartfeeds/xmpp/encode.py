"""Responses as bytes: stored payloads and escaped attributes, joined (XEP-0060 5 to 7; xep-map 5 K, 208, X7).

Everything except stored payloads passes through `core.text`. A character that XML forbids raises
ForbiddenCharacterError, because sending it would end the link for everybody. Elements name their own namespaces; only
the stanza itself is in the namespace of the stream.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_datetime
from smartfeeds.service import requests as r
from smartfeeds.xmpp.forms import encode_form, subscribe_fields
from smartfeeds.xmpp.namespaces import DELAY, EVENT, PUBSUB, RSM, SUBSCRIBE_OPTIONS

Encoder = Callable[[Any], bytes]

# Printable ASCII without the characters that an attribute escapes.
_PLAIN = bytes(code for code in range(0x20, 0x7F) if chr(code) not in "&<>'\"")
# Attribute values such as node names and addresses recur. Longer values are not cached, so that nobody can fill the
# memory with them.
_CACHED = 4_096
_CACHED_CHARACTERS = 256


@lru_cache(_CACHED)
def _known_attribute(text: str) -> bytes:
    return attribute(text).encode()


def attribute_bytes(text: str) -> bytes:
    """Returns an escaped attribute value; short values are cached. Raises ForbiddenCharacterError."""
    return _known_attribute(text) if len(text) <= _CACHED_CHARACTERS else attribute(text).encode()


def envelope(kind: bytes, head: bytes, body: bytes) -> bytes:
    """Returns an IQ of type `kind` (result, error) around a body. `head` is its id and addresses."""
    return b"<iq type='%b'%b>%b</iq>" % (kind, head, body)


def encode_items(items: Sequence[Item], *, show_publisher: bool) -> bytes:
    """Returns items with their stored payloads in one join. Raises ForbiddenCharacterError."""
    parts: list[bytes] = []
    add = parts.append
    safe = None if _is_plain("".join([item.id + item.publisher for item in items])) else attribute
    for item in items:
        item_id, publisher = item.id, item.publisher if show_publisher else ""
        if safe is not None:
            item_id, publisher = safe(item_id), safe(publisher)
        publisher_attribute = f" publisher='{publisher}'" if publisher else ""
        add(f"</item><item id='{item_id}'{publisher_attribute}>".encode())
        add(item.payload)
    if parts:
        parts[0] = parts[0].removeprefix(b"</item>")
        add(b"</item>")
    return b"".join(parts)


def _is_plain(text: str) -> bool:
    """Returns whether a text needs no escaping. One check for all ids of a page is faster than one per id."""
    return text.isascii() and not text.encode().translate(None, _PLAIN)


def encode_result_set(result_set: r.ResultSet | None) -> bytes:
    """Returns the `<set/>` of a response (XEP-0059), or nothing for None."""
    if result_set is None:
        return b""
    index = f" index='{result_set.index}'" if result_set.index is not None else ""
    first = f"<first{index}>{escape(result_set.first)}</first>" if result_set.first is not None else ""
    last = f"<last>{escape(result_set.last)}</last>" if result_set.last is not None else ""
    count = f"<count>{result_set.count}</count>" if result_set.count is not None else ""
    return f"<set xmlns='{RSM}'>{first}{last}{count}</set>".encode()


_PUBSUB_START = f"<pubsub xmlns='{PUBSUB}'>".encode()


def pubsub(*parts: bytes) -> bytes:
    """Returns a `<pubsub/>` element around the parts."""
    return b"".join((_PUBSUB_START, *parts, b"</pubsub>"))


def _done(_answer: r.EmptyResult) -> bytes:
    return b""


def _page(page: r.Page) -> bytes:
    return pubsub(
        b"<items node='%b'>" % attribute_bytes(page.node),
        encode_items(page.items, show_publisher=page.show_publisher),
        b"</items>",
        encode_result_set(page.result_set),
    )


def _published(answer: r.Published) -> bytes:
    node, item_id = attribute_bytes(answer.node), attribute_bytes(answer.item_id)
    return pubsub(b"<publish node='%b'><item id='%b'/></publish>" % (node, item_id))


def _node_created(answer: r.NodeCreated) -> bytes:
    return pubsub(b"<create node='%b'/>" % attribute_bytes(answer.node)) if answer.generated else b""


def subscription(entry: r.SubscriptionShown) -> bytes:
    """Returns one `<subscription/>` in the form for subscribers."""
    node, jid = attribute_bytes(entry.node), attribute_bytes(entry.jid)
    return b"<subscription node='%b' jid='%b' subscription='%b'/>" % (node, jid, entry.state.value.encode())


def _subscribed(answer: r.Subscribed) -> bytes:
    options = b""
    if answer.options is not None:
        form = encode_form("result", SUBSCRIBE_OPTIONS, subscribe_fields(answer.kind, answer.options))
        options = f"<options>{form}</options>".encode()
    return pubsub(subscription(answer.subscription), options)


def _subscribe_options(answer: r.SubscribeOptions) -> bytes:
    node = node_attribute(answer.node)
    fields = subscribe_fields(answer.kind, answer.options)
    if answer.jid is None:
        form = encode_form("result", SUBSCRIBE_OPTIONS, fields)
        return pubsub(f"<default{node}>{form}</default>".encode())
    form = encode_form("form", SUBSCRIBE_OPTIONS, fields)
    return pubsub(f"<options{node} jid='{attribute(answer.jid)}'>{form}</options>".encode())


def encode_subscriptions(answer: r.SubscriptionList) -> bytes:
    """Returns the requester's own subscriptions (XEP-0060 5.6)."""
    node, entries = node_attribute(answer.node).encode(), map(subscription, answer.entries)
    result_set = encode_result_set(answer.result_set)
    return pubsub(b"<subscriptions%b>" % node, *entries, b"</subscriptions>", result_set)


def encode_affiliations(answer: r.AffiliationList) -> bytes:
    """Returns the requester's own affiliations (XEP-0060 5.7)."""
    entries = [
        b"<affiliation node='%b' affiliation='%b'/>" % (attribute_bytes(e.node), e.affiliation.value.encode())
        for e in answer.entries
    ]
    node, result_set = node_attribute(answer.node).encode(), encode_result_set(answer.result_set)
    return pubsub(b"<affiliations%b>" % node, *entries, b"</affiliations>", result_set)


def node_attribute(node: str | None) -> str:
    """Returns the node attribute with a leading space, or nothing for None."""
    return f" node='{attribute(node)}'" if node is not None else ""


def encode_last_item(answer: r.Subscribed, item: Item, service: str, message_id: str) -> bytes:
    """Returns the message with the newest item for a new subscriber (XEP-0060 6.1.7; xep-map 116)."""
    entry = answer.subscription
    body = f"<body>{escape(answer.body)}</body>" if answer.body else ""
    return b"".join(
        (
            b"<message type='%b' id='%b' from='%b' to='%b'>"
            % (
                answer.message_type.encode(),
                attribute_bytes(message_id),
                attribute_bytes(service),
                attribute_bytes(entry.jid),
            ),
            body.encode(),
            b"<event xmlns='%b'><items node='%b'>" % (EVENT.encode(), attribute_bytes(entry.node)),
            encode_items((item,), show_publisher=answer.show_publisher),
            f"</items></event><delay xmlns='{DELAY}' stamp='{format_datetime(item.modified_us)}'/></message>".encode(),
        )
    )


ENCODERS: Mapping[type, Encoder] = {
    r.EmptyResult: _done,
    r.Page: _page,
    r.Published: _published,
    r.NodeCreated: _node_created,
    r.Subscribed: _subscribed,
    r.SubscribeOptions: _subscribe_options,
}
