"""The one tree of errors that a request can end with.

Core and service raise these; `xmpp/stanza_errors.py` maps every `Condition` to a stanza error, and the HTTP side
will map the same enum to a status. `text` is written for the peer and never holds the text of another exception.

Conditions are the pairs that XEP-0060 names: a defined condition of RFC 6120 and, where there is one, the
`http://jabber.org/protocol/pubsub#errors` element beside it.
"""

from enum import Enum


class Condition(Enum):
    """Why a request was refused. The values are stable names for logs, metrics and documents."""

    BAD_REQUEST = "bad-request"
    NODEID_REQUIRED = "nodeid-required"
    JID_REQUIRED = "jid-required"
    INVALID_JID = "invalid-jid"
    ITEM_REQUIRED = "item-required"
    PAYLOAD_REQUIRED = "payload-required"
    INVALID_PAYLOAD = "invalid-payload"
    INVALID_OPTIONS = "invalid-options"
    JID_MALFORMED = "jid-malformed"
    NOT_ACCEPTABLE = "not-acceptable"
    UNSUPPORTED_ACCESS_MODEL = "unsupported-access-model"
    PAYLOAD_TOO_BIG = "payload-too-big"
    FORBIDDEN = "forbidden"
    NOT_AUTHORIZED = "not-authorized"
    NOT_SUBSCRIBED_READER = "not-subscribed-reader"
    PENDING_SUBSCRIPTION = "pending-subscription"
    NOT_ALLOWED = "not-allowed"
    CLOSED_NODE = "closed-node"
    ITEM_NOT_FOUND = "item-not-found"
    NOT_SUBSCRIBED = "not-subscribed"
    CONFLICT = "conflict"
    PRECONDITION_NOT_MET = "precondition-not-met"
    UNSUPPORTED = "unsupported"
    FEATURE_NOT_IMPLEMENTED = "feature-not-implemented"
    TOO_MANY_SUBSCRIPTIONS = "too-many-subscriptions"
    POLICY_VIOLATION = "policy-violation"
    BUSY = "resource-constraint"
    UNAVAILABLE = "service-unavailable"
    INTERNAL = "internal-server-error"


class SmartfeedsError(Exception):
    """Anything this project raises on purpose."""


class ConfigError(SmartfeedsError):
    """The operator has to change something; the text says what."""


class DocumentError(SmartfeedsError):
    """A document cannot be read; the text says which one and why."""


class StoreError(SmartfeedsError):
    """The data cannot be used: full, locked, read-only, corrupt, or newer than this program."""


class LinkError(SmartfeedsError):
    """The XMPP server is away or refuses us."""


class FollowError(SmartfeedsError):
    """Following cannot go on; the text says why. What was handed over stays good, and so does its position."""


class LoginError(FollowError, LinkError):
    """The server does not accept the account."""


class FeedError(SmartfeedsError):
    """A request that is answered with an error.

    `condition` decides the answer on every wire; `text` helps the person behind the peer; `feature` names the
    XEP-0060 feature (without its URI) when the condition is `UNSUPPORTED`.
    """

    __slots__ = ("condition", "feature", "text")

    def __init__(self, condition: Condition, text: str = "", *, feature: str = "") -> None:
        super().__init__(text or condition.value)
        self.condition = condition
        self.text = text
        self.feature = feature


def unsupported(feature: str, text: str = "") -> FeedError:
    """The error for a XEP-0060 feature that this node or service does not have."""
    return FeedError(Condition.UNSUPPORTED, text, feature=feature)
