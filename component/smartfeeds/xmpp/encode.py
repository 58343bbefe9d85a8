"""Writes responses as bytes: stored payloads and escaped attributes (XEP-0060 5 to 8; xep-map 5 K, 65 to 96, 208).

Everything except stored payloads passes through `core.text`. A character that XML forbids raises
ForbiddenCharacterError, because sending it would end the link for everybody. Elements name their own namespaces; only
the stanza itself is in the namespace of the stream.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from smartfeeds.core.model import Item, SubscriptionState
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests
from smartfeeds.xmpp.forms import config_fields, encode_form, subscribe_fields
from smartfeeds.xmpp.namespaces import DELAY, EVENT, NODE_CONFIG, OWNER, PUBSUB, RSM, SUBSCRIBE_OPTIONS
from smartfeeds.xmpp.stanza_errors import encode_error

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
    """Returns items with their stored payloads. Raises ForbiddenCharacterError."""
    return b"".join(item_parts(items, show_publisher=show_publisher))


def item_parts(items: Sequence[Item], *, show_publisher: bool) -> list[bytes]:
    """Returns what `encode_items` joins."""
    parts: list[bytes] = []
    safe = None if is_plain("".join([item.id + item.publisher for item in items])) else attribute
    for item in items:
        item_id, publisher = item.id, item.publisher if show_publisher else ""
        if safe is not None:
            item_id, publisher = safe(item_id), safe(publisher)
        publisher_attribute = f" publisher='{publisher}'" if publisher else ""
        parts += (f"<item id='{item_id}'{publisher_attribute}>".encode(), item.payload, b"</item>")
    return parts


def is_plain(text: str) -> bool:
    """Returns whether a text needs no escaping. One check for all texts of a page is faster than one for each."""
    return text.isascii() and not text.encode().translate(None, _PLAIN)


def encode_result_set(result_set: requests.ResultSet | None) -> bytes:
    """Returns the `<set/>` of a response (XEP-0059), or nothing for None."""
    if result_set is None:
        return b""
    index = f" index='{result_set.index}'" if result_set.index is not None else ""
    first = f"<first{index}>{escape(result_set.first)}</first>" if result_set.first is not None else ""
    last = f"<last>{escape(result_set.last)}</last>" if result_set.last is not None else ""
    count = f"<count>{result_set.count}</count>" if result_set.count is not None else ""
    return f"<set xmlns='{RSM}'>{first}{last}{count}</set>".encode()


_STATES = {state: state.value.encode() for state in SubscriptionState}
_STARTS = {namespace: f"<pubsub xmlns='{namespace}'>".encode() for namespace in (PUBSUB, OWNER)}


def _pubsub(*parts: bytes, namespace: str = PUBSUB) -> bytes:
    return b"".join((_STARTS[namespace], *parts, b"</pubsub>"))


def _page(page: requests.Page) -> bytes:
    return _pubsub(
        b"<items node='%b'>" % attribute_bytes(page.node),
        *item_parts(page.items, show_publisher=page.show_publisher),
        b"</items>",
        encode_result_set(page.result_set),
    )


def _published(answer: requests.Published) -> bytes:
    node = attribute_bytes(answer.node)
    item = b"<item id='%b'/>" % attribute(answer.item_id).encode() if answer.item_id else b""
    return b"%b<publish node='%b'>%b</publish></pubsub>" % (_STARTS[PUBSUB], node, item)


def _node_created(answer: requests.NodeCreated) -> bytes:
    return _pubsub(b"<create node='%b'/>" % attribute_bytes(answer.node)) if answer.generated else b""


def _subscription(entry: requests.SubscriptionShown) -> bytes:
    # Nodes recur, and addresses of subscribers do not.
    node, jid = attribute_bytes(entry.node), attribute(entry.jid).encode()
    expiry = b"" if entry.lease_end_us is None else b" expiry='%b'" % format_datetime(entry.lease_end_us).encode()
    return b"<subscription node='%b' jid='%b' subscription='%b'%b/>" % (node, jid, _STATES[entry.state], expiry)


def _unsubscribed(answer: requests.Unsubscribed) -> bytes:
    """Returns the former subscription, which XEP-0060 6.2.2 allows and clients of Prosody expect."""
    return _pubsub(_subscription(answer.subscription))


def _subscribed(answer: requests.Subscribed) -> bytes:
    options = b""
    if answer.options is not None:
        form = encode_form("result", SUBSCRIBE_OPTIONS, subscribe_fields(answer.kind, answer.options))
        options = f"<options>{form}</options>".encode()
    return b"%b%b%b</pubsub>" % (_STARTS[PUBSUB], _subscription(answer.subscription), options)


def _subscribe_options(answer: requests.SubscribeOptions) -> bytes:
    node = node_attribute(answer.node)
    fields = subscribe_fields(answer.kind, answer.options)
    if answer.jid is None:
        form = encode_form("result", SUBSCRIBE_OPTIONS, fields)
        return _pubsub(f"<default{node}>{form}</default>".encode())
    form = encode_form("form", SUBSCRIBE_OPTIONS, fields)
    return _pubsub(f"<options{node} jid='{attribute(answer.jid)}'>{form}</options>".encode())


def _subscriptions(answer: requests.SubscriptionList) -> bytes:
    """Returns the requester's own subscriptions (XEP-0060 5.6), or those of a node for its owner (8.8.1)."""
    if answer.owner:
        return _owner_list(b"subscription", answer, ((entry.jid, entry.state.value) for entry in answer.entries))
    return _list(PUBSUB, b"subscription", answer, map(_subscription, answer.entries))


def _affiliations(answer: requests.AffiliationList) -> bytes:
    """Returns the requester's own affiliations (XEP-0060 5.7), or those of a node for its owner (8.9.1)."""
    if answer.owner:
        return _owner_list(b"affiliation", answer, ((entry.jid, entry.affiliation.value) for entry in answer.entries))
    entries = (
        b"<affiliation node='%b' affiliation='%b'/>" % (attribute_bytes(entry.node), entry.affiliation.value.encode())
        for entry in answer.entries
    )
    return _list(PUBSUB, b"affiliation", answer, entries)


def _owner_list(
    name: bytes, answer: requests.SubscriptionList | requests.AffiliationList, entries: Iterable[tuple[str, str]]
) -> bytes:
    """Returns a list of addresses, each with the value of the attribute that has the name of the element."""
    elements = (
        b"<%b jid='%b' %b='%b'/>" % (name, attribute_bytes(jid), name, value.encode()) for jid, value in entries
    )
    return _list(OWNER, name, answer, elements)


def _list(
    namespace: str, name: bytes, answer: requests.SubscriptionList | requests.AffiliationList, entries: Iterable[bytes]
) -> bytes:
    node, result_set = node_attribute(answer.node).encode(), encode_result_set(answer.result_set)
    return _pubsub(b"<%bs%b>" % (name, node), *entries, b"</%bs>" % name, result_set, namespace=namespace)


def _partly_refused(answer: requests.PartlyRefused) -> bytes:
    """Returns the body of an error response: the rejected entries, then the error (XEP-0060 8.8.2.4, 8.9.2.4)."""
    entries = b""
    if answer.affiliations is not None:
        entries = _affiliations(answer.affiliations)
    elif answer.subscriptions is not None:
        entries = _subscriptions(answer.subscriptions)
    return entries + encode_error(
        FeedError(Condition.NOT_ACCEPTABLE, "the entries in this response were rejected, all others were applied")
    )


def _configuration(answer: requests.Configuration) -> bytes:
    creating = answer.node is None
    name = "default" if creating else "configure"
    form = encode_form("form", NODE_CONFIG, config_fields(answer.options, answer.limits, creating=creating))
    return _pubsub(f"<{name}{node_attribute(answer.node)}>{form}</{name}>".encode(), namespace=OWNER)


def node_attribute(node: str | None) -> str:
    """Returns the node attribute with a leading space, or nothing for None."""
    return f" node='{attribute(node)}'" if node is not None else ""


def encode_last_item(answer: requests.Subscribed, item: Item, service: str, message_id: str) -> bytes:
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
    requests.EmptyResult: lambda _answer: b"",
    requests.Page: _page,
    requests.Published: _published,
    requests.NodeCreated: _node_created,
    requests.Subscribed: _subscribed,
    requests.Unsubscribed: _unsubscribed,
    requests.SubscribeOptions: _subscribe_options,
    requests.SubscriptionList: _subscriptions,
    requests.AffiliationList: _affiliations,
    requests.Configuration: _configuration,
    requests.PartlyRefused: _partly_refused,
}
