"""Requests of owners: `pubsub#owner` elements to typed requests (XEP-0060 section 8; xep-map 16, 66 to 97)."""

from collections.abc import Iterator

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.decode import ActionTable, PubsubAction
from smartfeeds.xmpp.elements import Element, node_of, result_set_of
from smartfeeds.xmpp.forms import find_form, parse_submit
from smartfeeds.xmpp.namespaces import NODE_CONFIG, OWNER, tag

# Each entry reads and writes a row, in one transaction that blocks other writers.
MAX_ENTRIES = 256

_REDIRECT = tag(OWNER, "redirect")
_AFFILIATION = tag(OWNER, "affiliation")
_SUBSCRIPTION = tag(OWNER, "subscription")


def _get_configure(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    return r.GetConfiguration(actor, service, node_of(action))


def _set_configure(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    return r.Configure(actor, service, node_of(action), parse_submit(find_form(action), NODE_CONFIG))


def _get_default(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    return r.GetDefaultConfiguration(actor, service, action.get("type") or "leaf")


def _delete(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    if next(action.iterchildren(_REDIRECT), None) is not None:
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, "redirects are not supported; delete the node without one")
    return r.DeleteNode(actor, service, node_of(action))


def _purge(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    return r.Purge(actor, service, node_of(action))


def _get_affiliations(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    return r.GetAffiliations(actor, service, node_of(action), True, result_set_of(rest))


def _set_affiliations(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    entries = tuple((jid, entry.get("affiliation")) for jid, entry in _entries(action, _AFFILIATION))
    return r.SetAffiliations(actor, service, node_of(action), entries)


def _get_subscriptions(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    return r.GetNodeSubscriptions(actor, service, node_of(action), result_set_of(rest))


def _set_subscriptions(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    entries = tuple((jid, _state(entry)) for jid, entry in _entries(action, _SUBSCRIPTION))
    return r.SetSubscriptions(actor, service, node_of(action), entries)


def _entries(action: Element, name: str) -> Iterator[tuple[str, Element]]:
    if len(action) > MAX_ENTRIES:
        raise FeedError(
            Condition.NOT_ACCEPTABLE, f"the request has {len(action)} entries; send at most {MAX_ENTRIES} at once"
        )
    for entry in action.iterchildren(name):
        jid = entry.get("jid")
        if not jid:
            raise FeedError(Condition.JID_REQUIRED, "an entry has no jid")
        yield jid, entry


def _state(entry: Element) -> str:
    state = entry.get("subscription")
    if not state:
        raise FeedError(Condition.BAD_REQUEST, "an entry has no subscription state")
    return state


OWNER_GET: ActionTable = {
    tag(OWNER, "configure"): PubsubAction(_get_configure, ("config-node",)),
    tag(OWNER, "default"): PubsubAction(_get_default, ("retrieve-default",)),
    tag(OWNER, "affiliations"): PubsubAction(_get_affiliations, ("modify-affiliations",)),
    tag(OWNER, "subscriptions"): PubsubAction(_get_subscriptions, ("manage-subscriptions",)),
}

OWNER_SET: ActionTable = {
    tag(OWNER, "configure"): PubsubAction(_set_configure, ("config-node",)),
    tag(OWNER, "delete"): PubsubAction(_delete, ("delete-nodes",)),
    tag(OWNER, "purge"): PubsubAction(_purge, ("purge-nodes",)),
    tag(OWNER, "affiliations"): PubsubAction(_set_affiliations, ("modify-affiliations",)),
    tag(OWNER, "subscriptions"): PubsubAction(_set_subscriptions, ("manage-subscriptions",)),
}
