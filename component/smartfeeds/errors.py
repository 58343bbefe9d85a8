"""The error tree of the project.

Core and service raise these errors. `xmpp/stanza_errors.py` maps each `Condition` to a stanza error, and `http/` maps
it to a status. The text of an error is written for the peer and never contains the text of another exception.

The conditions are the pairs that XEP-0060 defines: a condition of RFC 6120 section 8.3.3 and, where XEP-0060 names one,
the application-specific element in `http://jabber.org/protocol/pubsub#errors`.
"""

from enum import Enum


class Condition(Enum):
    """The reason of an error. Logs, metrics and documents use the values, so they must not change."""

    BAD_REQUEST = "bad-request"
    NODEID_REQUIRED = "nodeid-required"
    JID_REQUIRED = "jid-required"
    INVALID_JID = "invalid-jid"
    ITEM_REQUIRED = "item-required"
    ITEM_FORBIDDEN = "item-forbidden"
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
    PRESENCE_REQUIRED = "presence-subscription-required"
    PENDING_SUBSCRIPTION = "pending-subscription"
    NOT_ALLOWED = "not-allowed"
    CLOSED_NODE = "closed-node"
    ITEM_NOT_FOUND = "item-not-found"
    NOT_SUBSCRIBED = "not-subscribed"
    GONE = "gone"
    CONFLICT = "conflict"
    NODE_FULL = "node-full"
    PRECONDITION_NOT_MET = "precondition-not-met"
    UNSUPPORTED = "unsupported"
    FEATURE_NOT_IMPLEMENTED = "feature-not-implemented"
    TOO_MANY_SUBSCRIPTIONS = "too-many-subscriptions"
    POLICY_VIOLATION = "policy-violation"
    BUSY = "resource-constraint"
    UNAVAILABLE = "service-unavailable"
    INTERNAL = "internal-server-error"


class SmartfeedsError(Exception):
    """Base class of all errors that this package raises on purpose."""


class ConfigError(SmartfeedsError):
    """A setting or an argument is wrong. The text says what the operator should change."""


class DocumentError(SmartfeedsError):
    """A document cannot be read. The text names the document and the reason."""


class DocumentFormatError(DocumentError):
    """A document is in a format that the command does not read. The text names the document and the formats."""


class StoreError(SmartfeedsError):
    """The database cannot be used: full, locked, read-only or corrupt."""


class StoreClosedError(StoreError):
    """The service stops. What it did not begin is not done, and is no fault of the database."""


class StoreLostError(StoreError):
    """The files of an open database were removed, replaced or moved, so that nothing may be acknowledged any more."""


class NewerSchemaError(StoreError):
    """A newer version of this program has changed the schema of the database."""


class UnknownOutcomeError(StoreError):
    """The connection to the database was lost during a commit, and the database could not be asked again. The write may
    or may not have happened."""


_STOPPING = "the service is stopping; try again later"
# For the peer: a request that is sent again without a look may take effect twice.
_UNKNOWN_OUTCOME = "the database was lost while it stored the change: look whether it did before you repeat the request"


class LinkError(SmartfeedsError):
    """The XMPP server cannot be reached or rejects the component."""


class FollowError(SmartfeedsError):
    """A follower stopped, or a request of a bot failed. Delivered changes and the stored position remain valid."""


class LoginError(FollowError, LinkError):
    """The server rejected the account or its password."""


class FeedError(SmartfeedsError):
    """A request failed, and the peer receives an error response.

    `condition` selects the stanza error and the HTTP status. `text` explains the failure to the user of the peer.
    `feature` is the name of a XEP-0060 feature without its URI; it is set only if the condition is `UNSUPPORTED`. `uri`
    is the new address of a node; it is set only if the condition is `GONE`.
    """

    __slots__ = ("condition", "feature", "text", "uri")

    def __init__(self, condition: Condition, text: str = "", *, feature: str = "", uri: str = "") -> None:
        super().__init__(text or condition.value)
        self.condition = condition
        self.text = text
        self.feature = feature
        self.uri = uri


def store_failure(error: StoreError, condition: Condition, text: str) -> FeedError:
    """Returns the error for the peer. `condition` and `text` are for a store that cannot be used at the moment."""
    if isinstance(error, UnknownOutcomeError):
        # Clients repeat a request after `condition`, and a repeated publish would make a second item.
        return FeedError(Condition.INTERNAL, _UNKNOWN_OUTCOME)
    return FeedError(condition, _STOPPING if isinstance(error, StoreClosedError) else text)


class FormatError(FeedError):
    """A document is in a format that the reader does not support. The condition is `INVALID_PAYLOAD`.

    `feeds` are the addresses of the feeds that the document is about.
    """

    __slots__ = ("feeds",)

    def __init__(self, text: str, feeds: tuple[str, ...] = ()) -> None:
        super().__init__(Condition.INVALID_PAYLOAD, text)
        self.feeds = feeds


def unsupported(feature: str, text: str = "") -> FeedError:
    """Returns the error for a XEP-0060 feature that the node or the service does not support."""
    return FeedError(Condition.UNSUPPORTED, text, feature=feature)
