"""The stanza error for each condition (xep-map 1.1, 1.3; 17, 18, 19, 239; RFC 6120 section 8.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from lxml import etree

from smartfeeds.core.text import attribute, escape, is_xml_text
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import GetSubscribeOptions, Request, SetSubscribeOptions
from smartfeeds.xmpp.calls import own_spelling
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.namespaces import COMMANDS, ERRORS, STANZAS, tag
from smartfeeds.xmpp.parsing import COMPONENT_NS

_ERROR = tag(COMPONENT_NS, "error")


@dataclass(frozen=True, slots=True)
class StanzaError:
    """The type, the defined condition, and the name of the `pubsub#errors` element, which may be empty."""

    type: str
    condition: str
    detail: str = ""


STANZA_ERRORS: Mapping[Condition, StanzaError] = {
    Condition.BAD_REQUEST: StanzaError("modify", "bad-request"),
    Condition.NODEID_REQUIRED: StanzaError("modify", "bad-request", "nodeid-required"),
    Condition.JID_REQUIRED: StanzaError("modify", "bad-request", "jid-required"),
    Condition.INVALID_JID: StanzaError("modify", "bad-request", "invalid-jid"),
    Condition.ITEM_REQUIRED: StanzaError("modify", "bad-request", "item-required"),
    Condition.ITEM_FORBIDDEN: StanzaError("modify", "bad-request", "item-forbidden"),
    Condition.PAYLOAD_REQUIRED: StanzaError("modify", "bad-request", "payload-required"),
    Condition.INVALID_PAYLOAD: StanzaError("modify", "bad-request", "invalid-payload"),
    Condition.INVALID_OPTIONS: StanzaError("modify", "bad-request", "invalid-options"),
    Condition.JID_MALFORMED: StanzaError("modify", "jid-malformed"),
    Condition.NOT_ACCEPTABLE: StanzaError("modify", "not-acceptable"),
    Condition.UNSUPPORTED_ACCESS_MODEL: StanzaError("modify", "not-acceptable", "unsupported-access-model"),
    Condition.PAYLOAD_TOO_BIG: StanzaError("modify", "not-acceptable", "payload-too-big"),
    Condition.FORBIDDEN: StanzaError("auth", "forbidden"),
    Condition.NOT_AUTHORIZED: StanzaError("auth", "not-authorized"),
    Condition.NOT_SUBSCRIBED_READER: StanzaError("auth", "not-authorized", "not-subscribed"),
    Condition.PRESENCE_REQUIRED: StanzaError("auth", "not-authorized", "presence-subscription-required"),
    Condition.PENDING_SUBSCRIPTION: StanzaError("auth", "not-authorized", "pending-subscription"),
    Condition.NOT_ALLOWED: StanzaError("cancel", "not-allowed"),
    Condition.CLOSED_NODE: StanzaError("cancel", "not-allowed", "closed-node"),
    Condition.ITEM_NOT_FOUND: StanzaError("cancel", "item-not-found"),
    Condition.NOT_SUBSCRIBED: StanzaError("cancel", "unexpected-request", "not-subscribed"),
    # XEP-0060 6.1.3.12 shows the type modify; RFC 6120 8.3.3.5 recommends cancel.
    Condition.GONE: StanzaError("modify", "gone"),
    Condition.CONFLICT: StanzaError("cancel", "conflict"),
    Condition.NODE_FULL: StanzaError("cancel", "conflict", "node-full"),
    Condition.PRECONDITION_NOT_MET: StanzaError("cancel", "conflict", "precondition-not-met"),
    Condition.UNSUPPORTED: StanzaError("cancel", "feature-not-implemented", "unsupported"),
    Condition.FEATURE_NOT_IMPLEMENTED: StanzaError("cancel", "feature-not-implemented"),
    Condition.TOO_MANY_SUBSCRIPTIONS: StanzaError("wait", "policy-violation", "too-many-subscriptions"),
    Condition.POLICY_VIOLATION: StanzaError("wait", "policy-violation"),
    Condition.BUSY: StanzaError("wait", "resource-constraint"),
    Condition.UNAVAILABLE: StanzaError("cancel", "service-unavailable"),
    Condition.INTERNAL: StanzaError("cancel", "internal-server-error"),
}

# XEP-0060 uses type modify for options (6.3.4.2) where it uses cancel for unsubscribing (6.2.3.2).
_TYPE_BY_REQUEST: Mapping[tuple[Condition, type[Request] | None], str] = {
    (Condition.NOT_SUBSCRIBED, GetSubscribeOptions): "modify",
    (Condition.NOT_SUBSCRIBED, SetSubscribeOptions): "modify",
}


class CommandFault(Enum):
    """The conditions that XEP-0050 section 4.4 defines, except bad-locale: the service accepts every language."""

    MALFORMED_ACTION = "malformed-action"
    BAD_ACTION = "bad-action"
    BAD_PAYLOAD = "bad-payload"
    BAD_SESSIONID = "bad-sessionid"
    SESSION_EXPIRED = "session-expired"


class CommandError(FeedError):
    """An error of an ad-hoc command."""

    __slots__ = ("fault",)

    def __init__(self, fault: CommandFault, text: str = "") -> None:
        ended = fault is CommandFault.SESSION_EXPIRED
        super().__init__(Condition.NOT_ALLOWED if ended else Condition.BAD_REQUEST, text)
        self.fault = fault


def encode_error(error: FeedError, request: type[Request] | None = None) -> bytes:
    """Returns the `<error/>` element: the defined condition, the text, then the specific condition (xep-map 17).

    `request` is the type of the request that failed, or None if it could not be read.
    """
    row = STANZA_ERRORS[error.condition]
    kind = _TYPE_BY_REQUEST.get((error.condition, request), row.type)
    # The new address of a node is the text of the condition (RFC 6120 8.3.3.5).
    address = f">{escape(error.uri)}</{row.condition}>" if error.uri and is_xml_text(error.uri) else "/>"
    parts = [f"<error type='{kind}'><{row.condition} xmlns='{STANZAS}'{address}"]
    if error.text and is_xml_text(error.text):
        parts.append(f"<text xmlns='{STANZAS}'>{escape(error.text)}</text>")
    if isinstance(error, CommandError):
        parts.append(f"<{error.fault.value} xmlns='{COMMANDS}'/>")
    elif row.detail and error.condition is not Condition.UNSUPPORTED:
        parts.append(f"<{row.detail} xmlns='{ERRORS}'/>")
    elif row.detail:
        feature = error.feature if is_xml_text(error.feature) else ""
        parts.append(f"<{row.detail} xmlns='{ERRORS}' feature='{attribute(feature)}'/>")
    parts.append("</error>")
    return "".join(parts).encode()


def error_answer(request: "Mapping[str, str] | etree._Attrib", domain: str, condition: Condition) -> bytes:
    """The answer of this domain to an IQ that reached no handler or failed in one, from the attributes of its start
    tag."""
    address = own_spelling(request.get("to") or domain, domain)
    swapped = (("id", request.get("id")), ("to", request.get("from")), ("from", address))
    head = "".join(f" {name}='{attribute(value)}'" for name, value in swapped if value is not None)
    return b"<iq type='error'%b>%b</iq>" % (head.encode(), encode_error(FeedError(condition)))


def error_condition(stanza: Element) -> str:
    """Returns the defined condition of an error stanza, or an empty text."""
    prefix = tag(STANZAS, "")
    for error in stanza.iterchildren(_ERROR):
        for child in error.iterchildren("*"):
            name: str = child.tag
            if name.startswith(prefix) and not name.endswith("}text"):
                return name.removeprefix(prefix)
    return ""
