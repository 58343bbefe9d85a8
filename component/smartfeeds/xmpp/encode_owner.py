"""Responses to owners as bytes, and lists that other entities request too (XEP-0060 5.6, 5.7, 8; xep-map 65 to 96)."""

from collections.abc import Iterable, Mapping

from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.encode import (
    Encoder,
    attribute_bytes,
    encode_affiliations,
    encode_result_set,
    encode_subscriptions,
    node_attribute,
)
from smartfeeds.xmpp.forms import config_fields, encode_form
from smartfeeds.xmpp.namespaces import NODE_CONFIG, OWNER
from smartfeeds.xmpp.stanza_errors import encode_error

_OWNER_START = f"<pubsub xmlns='{OWNER}'>".encode()


def _owner(*parts: bytes) -> bytes:
    return b"".join((_OWNER_START, *parts, b"</pubsub>"))


def _configuration(answer: r.Configuration) -> bytes:
    creating = answer.node is None
    name = "default" if creating else "configure"
    form = encode_form("form", NODE_CONFIG, config_fields(answer.options, creating=creating))
    return _owner(f"<{name}{node_attribute(answer.node)}>{form}</{name}>".encode())


def _subscriptions(answer: r.SubscriptionList) -> bytes:
    if not answer.owner:
        return encode_subscriptions(answer)
    return _entries(b"subscription", answer, ((entry.jid, entry.state.value) for entry in answer.entries))


def _affiliations(answer: r.AffiliationList) -> bytes:
    if not answer.owner:
        return encode_affiliations(answer)
    return _entries(b"affiliation", answer, ((entry.jid, entry.affiliation.value) for entry in answer.entries))


def _entries(name: bytes, answer: r.SubscriptionList | r.AffiliationList, entries: Iterable[tuple[str, str]]) -> bytes:
    """Returns a list of addresses, each with the value of the attribute that has the name of the element."""
    elements = [
        b"<%b jid='%b' %b='%b'/>" % (name, attribute_bytes(jid), name, value.encode()) for jid, value in entries
    ]
    node, result_set = node_attribute(answer.node).encode(), encode_result_set(answer.result_set)
    return _owner(b"<%bs%b>" % (name, node), *elements, b"</%bs>" % name, result_set)


def _partly_refused(answer: r.PartlyRefused) -> bytes:
    """Returns the body of an error response: the rejected entries, then the error (XEP-0060 8.8.2.4, 8.9.2.4)."""
    entries = b""
    if answer.affiliations is not None:
        entries = _affiliations(answer.affiliations)
    elif answer.subscriptions is not None:
        entries = _subscriptions(answer.subscriptions)
    return entries + encode_error(
        FeedError(Condition.NOT_ACCEPTABLE, "the entries in this response were rejected, all others were applied")
    )


OWNER_ENCODERS: Mapping[type, Encoder] = {
    r.Configuration: _configuration,
    r.SubscriptionList: _subscriptions,
    r.AffiliationList: _affiliations,
    r.PartlyRefused: _partly_refused,
}
