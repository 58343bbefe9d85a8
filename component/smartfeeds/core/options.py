"""Node options: every field of `pubsub#node_config` that is offered, its default, and what may be set.

One table for forms, configuration, publish-options and defaults (XEP-0060 16.4.4; xep-map 2.1; R10). A node stores
only what differs from the defaults of its kind. Values are tuples of texts in one normal form: booleans `true` and
`false`, JIDs normalised, numbers without leading zeros.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from smartfeeds.core.access import KEPT_OUT, READERS, AccessModel, PublishModel
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Affiliation, Node, NodeKind
from smartfeeds.core.text import is_xml_text
from smartfeeds.errors import Condition, FeedError, unsupported

PUBSUB = "pubsub#"
KIND = "{urn:smartfeeds:0}kind"
# What an imported feed says of itself (`formats.feed_details`): kept with the options, and no field of any form.
DETAILS = "feed-details"
SOCIAL_FEED = "urn:xmpp:pubsub-social-feed:1"
GALLERY = "urn:xmpp:pubsub-social-feed:gallery:1"
MAX_TEXT = 2_000  # characters of one field, all values together: forms have to fit in stanzas
MAX_VALUES = 100
DEFAULT_PAYLOAD_SIZE_BYTES = 65_536

Values = tuple[str, ...]
Options = Mapping[str, Values]


class FieldType(Enum):
    """XEP-0004 3.3, the types in use."""

    BOOLEAN = "boolean"
    LIST_SINGLE = "list-single"
    TEXT_SINGLE = "text-single"
    JID_MULTI = "jid-multi"


@dataclass(frozen=True, slots=True)
class Limits:
    """The service's ceilings. `max_items` is the most a generic node keeps; on a feed anything from there is max."""

    max_payload_size_bytes: int = DEFAULT_PAYLOAD_SIZE_BYTES
    max_items: int = 10_000


# What a value of the field becomes. Raises FeedError.
Check = Callable[[Values, Limits], Values]


@dataclass(frozen=True, slots=True)
class Option:
    """One field of the configuration form.

    `defaults` by node kind (a kind that is missing does not offer the field); `choices` of a list-single, which are
    also all values it takes; `check` what else is demanded, by kind; `datatype` the XEP-0122 hint.
    """

    var: str
    label: str
    type: FieldType
    defaults: Mapping[NodeKind, Values]
    choices: tuple[str, ...] = ()
    check: Mapping[NodeKind, Check] | None = None
    datatype: str = ""
    metadata: bool = False


def _refuse(name: str, why: str) -> FeedError:
    return FeedError(Condition.NOT_ACCEPTABLE, f"{PUBSUB}{name}: {why}")


def _must_be(name: str, wanted: str, why: str) -> Check:
    def check(values: Values, _limits: Limits) -> Values:
        if values != (wanted,):
            raise _refuse(name, why)
        return values

    return check


def _number(name: str, values: Values, ceiling: int, *, lowest: int = 1) -> int:
    text = values[0].strip() if values else ""
    if not (text.isascii() and text.isdigit() and len(text) < 19 and lowest <= int(text) <= ceiling):
        raise _refuse(name, f"a whole number from {lowest} to {ceiling}")
    return int(text)


def _unlimited_items(values: Values, limits: Limits) -> Values:
    """Feeds do not expire items: max, or so many that it means max (xep-map 71; SF-012)."""
    if values in ((), ("",), ("max",)):
        return ("max",)
    if _number("max_items", values, 10**18, lowest=0) < limits.max_items:
        raise _refuse("max_items", "a feed never expires items; leave it at max, or make a generic node")
    return ("max",)


def _limited_items(values: Values, limits: Limits) -> Values:
    return ("max",) if values == ("max",) else (str(_number("max_items", values, limits.max_items)),)


def _no_expiry(values: Values, _limits: Limits) -> Values:
    if values not in ((), ("",), ("max",)):
        raise _refuse("item_expire", "items of this service do not expire")
    return ("max",)


def _payload_size(values: Values, limits: Limits) -> Values:
    return (str(_number("max_payload_size", values, limits.max_payload_size_bytes)),)


def _access_model(values: Values, _limits: Limits) -> Values:
    if values[:1] not in {(model.value,) for model in AccessModel}:
        raise FeedError(Condition.UNSUPPORTED_ACCESS_MODEL, "open, authorize and whitelist are supported")
    return values


def _leaf(values: Values, _limits: Limits) -> Values:
    if values != ("leaf",):
        raise unsupported("collections")
    return values


def _both(*values: str) -> Mapping[NodeKind, Values]:
    return dict.fromkeys(NodeKind, values)


def _all(check: Check) -> Mapping[NodeKind, Check]:
    return dict.fromkeys(NodeKind, check)


_BOOL, _LIST, _TEXT, _JIDS = (
    FieldType.BOOLEAN,
    FieldType.LIST_SINGLE,
    FieldType.TEXT_SINGLE,
    FieldType.JID_MULTI,
)
_FEED, _GENERIC = NodeKind.FEED, NodeKind.GENERIC

_TABLE = (
    Option("title", "A short name", _TEXT, _both(""), metadata=True),
    Option("description", "What is published here", _TEXT, _both(""), metadata=True),
    Option("type", "The type of its payloads", _TEXT, {_FEED: (SOCIAL_FEED,), _GENERIC: ("",)}, metadata=True),
    Option("language", "The language of its texts", _TEXT, _both(""), metadata=True),
    Option("contact", "Whom to ask about it", _JIDS, _both(), metadata=True),
    Option(
        "access_model",
        "Who may subscribe and retrieve",
        _LIST,
        _both("open"),
        choices=tuple(model.value for model in AccessModel),
        check=_all(_access_model),
        metadata=True,
    ),
    Option(
        "publish_model",
        "Who may publish",
        _LIST,
        _both("publishers"),
        choices=tuple(model.value for model in PublishModel),
        metadata=True,
    ),
    Option(
        "max_items",
        "How many items are kept",
        _TEXT,
        _both("max"),
        check={_FEED: _unlimited_items, _GENERIC: _limited_items},
        datatype="pubsub:integer-or-max",
        metadata=True,
    ),
    Option(
        "item_expire",
        "Seconds after which items expire",
        _TEXT,
        _both("max"),
        check=_all(_no_expiry),
        datatype="pubsub:integer-or-max",
        metadata=True,
    ),
    Option(
        "max_payload_size",
        "The largest payload in bytes",
        _TEXT,
        _both(str(DEFAULT_PAYLOAD_SIZE_BYTES)),
        check=_all(_payload_size),
    ),
    Option(
        "persist_items",
        "Whether items are kept",
        _BOOL,
        _both("true"),
        check=_all(_must_be("persist_items", "true", "items of this service are kept")),
    ),
    Option(
        "purge_offline",
        "Whether items go when the publisher goes offline",
        _BOOL,
        _both("false"),
        check=_all(_must_be("purge_offline", "false", "items of this service stay")),
    ),
    Option("deliver_notifications", "Whether events are sent", _BOOL, _both("true")),
    Option("deliver_payloads", "Whether events carry payloads", _BOOL, _both("true")),
    Option("notification_type", "The type of event messages", _LIST, _both("headline"), choices=("headline", "normal")),
    Option("notify_config", "Whether changes of configuration are told", _BOOL, _both("false")),
    Option("notify_delete", "Whether the deletion of the node is told", _BOOL, _both("true")),
    Option("notify_retract", "Whether retractions are told", _BOOL, _both("true")),
    Option("notify_sub", "Whether new subscriptions are told", _BOOL, _both("false")),
    Option(
        "itemreply",
        "Whom a reply to an item should go to",
        _LIST,
        _both("publisher"),
        choices=("publisher", "none"),
    ),
    Option(
        "send_last_published_item",
        "When the newest item is sent unasked",
        _LIST,
        _both("never"),
        choices=("never", "on_sub"),
    ),
    Option("subscribe", "Whether one can subscribe", _BOOL, _both("true")),
    Option(
        "presence_based_delivery",
        "Whether events go only to who is online",
        _BOOL,
        _both("false"),
        check=_all(_must_be("presence_based_delivery", "false", "this service knows no presence")),
    ),
    Option(
        "tempsub",
        "Whether subscriptions end with the presence",
        _BOOL,
        _both("false"),
        check=_all(_must_be("tempsub", "false", "this service knows no presence")),
    ),
    Option("node_type", "Leaf or collection", _LIST, _both("leaf"), choices=("leaf",), check=_all(_leaf)),
)

OPTIONS: Mapping[str, Option] = {option.var: option for option in _TABLE}

# Fields that are known, but only ever refused: no URL of a configuration is fetched, no roster is known.
REFUSED = frozenset({"body_xslt", "dataform_xslt", "roster_groups_allowed"})

# The four spellings of XEP-0004 3.3, and the normal form of each.
BOOLEANS = {"1": "true", "true": "true", "0": "false", "false": "false"}


def normalise(option: Option, kind: NodeKind, values: Values, limits: Limits) -> Values:
    """The stored form of submitted values. Raises FeedError: NOT_ACCEPTABLE for what may not be set."""
    if len(values) > MAX_VALUES or sum(map(len, values)) > MAX_TEXT or not is_xml_text("".join(values)):
        raise _refuse(option.var, "too long, or with characters that XML cannot carry")
    values = _typed(option, values)
    check = option.check.get(kind) if option.check else None
    if check:
        return check(values, limits)
    if option.choices and values[:1] not in {(choice,) for choice in option.choices}:
        raise _refuse(option.var, "one of " + ", ".join(option.choices))
    return values


def _typed(option: Option, values: Values) -> Values:
    if option.type is FieldType.JID_MULTI:
        jids = [parse_jid(value) for value in values if value]
        if None in jids:
            raise FeedError(Condition.JID_MALFORMED, f"{PUBSUB}{option.var}: not an address")
        return tuple(str(jid) for jid in jids)
    if len(values) > 1:
        raise _refuse(option.var, "one value")
    if option.type is FieldType.BOOLEAN:
        value = BOOLEANS.get(values[0].strip() if values else "")
        if value is None:
            raise _refuse(option.var, "true or false")
        return (value,)
    return values or ("",)


def apply(kind: NodeKind, current: Options, submitted: Options, limits: Limits) -> dict[str, Values]:
    """The options after a submit: only the fields in it change, unknown ones are ignored (xep-map 64, 67).

    `submitted` has full field names. Raises FeedError, and then nothing has changed.
    """
    options = dict(current)
    for name, values in submitted.items():
        var = name.removeprefix(PUBSUB)
        if var in REFUSED and values not in ((), ("",)):
            raise _refuse(var, "not supported")
        option = OPTIONS.get(var) if name.startswith(PUBSUB) else None
        if option is None:
            continue
        value = normalise(option, kind, values, limits)
        if value == option.defaults[kind]:
            options.pop(var, None)
        else:
            options[var] = value
    return options


def initial(limits: Limits) -> dict[str, Values]:
    """What a new node has instead of a default that is above the service's ceiling."""
    ceiling_bytes = limits.max_payload_size_bytes
    if ceiling_bytes < DEFAULT_PAYLOAD_SIZE_BYTES:
        return {"max_payload_size": (str(ceiling_bytes),)}
    return {}


def value_of(kind: NodeKind, options: Options, var: str) -> Values:
    """The value in force."""
    return options[var] if var in options else OPTIONS[var].defaults[kind]


def text_of(kind: NodeKind, options: Options, var: str) -> str:
    """The single value in force."""
    values = value_of(kind, options, var)
    return values[0] if values else ""


def details_text(options: Options) -> str:
    """What an imported feed says of itself, "" for any other node."""
    return "".join(options.get(DETAILS, ()))


def is_listed(kind: NodeKind, options: Options) -> bool:
    """Whether a stranger may know of the node (xep-map 38): one that is open on request is there to be asked for."""
    return text_of(kind, options, "access_model") != AccessModel.WHITELIST.value


def is_open_to_publish(node: Node) -> bool:
    """Whether everybody except outcasts may publish. Such publishers may know that the node exists, even if they may
    not read it."""
    return text_of(node.kind, node.options, "publish_model") == PublishModel.OPEN.value


def is_known_to(affiliation: Affiliation, node: Node) -> bool:
    """Whether somebody of this affiliation may know of the node."""
    return affiliation in READERS or (affiliation not in KEPT_OUT and is_listed(node.kind, node.options))


def shows_publisher(kind: NodeKind, options: Options) -> bool:
    """Whether items are shown with who published them, and can be found by that (`pubsub#itemreply`)."""
    return text_of(kind, options, "itemreply") == "publisher"


def flag(kind: NodeKind, options: Options, var: str) -> bool:
    """The boolean in force."""
    return value_of(kind, options, var) == ("true",)


def unmet(kind: NodeKind, options: Options, wanted: Options, limits: Limits) -> str | None:
    """The first publish-option that the configuration does not meet, by its full name, or None (xep-map 145 to 149)."""
    for name, values in wanted.items():
        option = OPTIONS.get(name.removeprefix(PUBSUB)) if name.startswith(PUBSUB) else None
        if option is None:
            return name
        try:
            value = normalise(option, kind, values, limits)
        except FeedError:
            return name
        if value != value_of(kind, options, option.var):
            return name
    return None
