"""Node options: every field of `pubsub#node_config` that the service offers (XEP-0060 16.4.4).

`NodeOptions` is the one table. Configuration forms, the checks of submitted forms, publish-options (XEP-0060 7.1.5),
the OpenAPI schema and the values that the code reads (`node.options.max_items`) all come from it.

A node stores only what differs from the defaults of its kind. Stored values are tuples of texts in one normal form:
booleans `true` and `false`, JIDs normalised, numbers without leading zeros.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar, overload

from smartfeeds.core.frame_origins import MAX_ORIGINS, read_origin
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.text import MAX_LANGUAGE_CHARACTERS, is_language_tag, is_xml_text
from smartfeeds.errors import Condition, FeedError, unsupported

PUBSUB = "pubsub#"
KIND = "{urn:smartfeeds:0}kind"
ATOM = "http://www.w3.org/2005/Atom"
# Data about an imported feed (`formats.feed_details`). It is stored with the options, but it is not a form field.
DETAILS = "feed-details"
SOCIAL_FEED = "urn:xmpp:pubsub-social-feed:1"
GALLERY = "urn:xmpp:pubsub-social-feed:gallery:1"
MAX_TEXT = 2_000  # characters of one field, all its values together: a form must fit into one stanza
MAX_VALUES = 100
DEFAULT_PAYLOAD_SIZE_BYTES = 65_536
MAX_EXPIRE_S = 10**10  # three hundred years: microseconds of it, added to any date, fit into a column of the store
# Values of `pubsub#sync_dialect`.
FEEDSYNC, SSE = "feedsync", "sse"
# Values of `pubsub#guest_replies`.
NO_GUESTS, GUESTS_WITH_APPROVAL = "no", "approval"
# Values of `pubsub#publish_node_full`. The first one is the default of XEP-0060 7.1.2.5.
RETRACT_OLDEST, DISCARD_OLDEST, REJECT = FULL_POLICIES = ("retract-oldest", "discard-oldest", "reject")

_MODELS = frozenset({"access_model", "publish_model"})  # the same defaults for both kinds

T = TypeVar("T")
Values = tuple[str, ...]
FormFields = Mapping[str, Values]


class NodeKind(Enum):
    """A feed node obeys the Smart Feeds rules; a generic node is plain XEP-0060."""

    FEED = "feed"
    GENERIC = "generic"

    # Options are looked up by kind everywhere, and Enum.__hash__ is a slow Python function.
    __hash__ = object.__hash__


class AccessModel(Enum):
    """Values of `pubsub#access_model`.

    `PRESENCE` admits the contacts of the service (`features.presence.states`). A component cannot read the rosters of
    the owners.
    """

    OPEN = "open"
    AUTHORIZE = "authorize"
    WHITELIST = "whitelist"
    PRESENCE = "presence"


class PublishModel(Enum):
    """Values of `pubsub#publish_model`."""

    PUBLISHERS = "publishers"
    SUBSCRIBERS = "subscribers"
    OPEN = "open"


class FieldType(Enum):
    """The field types of XEP-0004 3.3 that node options use."""

    BOOLEAN = "boolean"
    LIST_SINGLE = "list-single"
    TEXT_SINGLE = "text-single"
    LIST_MULTI = "list-multi"
    JID_MULTI = "jid-multi"
    TEXT_MULTI = "text-multi"


# Fields with any number of values.
LISTS = frozenset({FieldType.JID_MULTI, FieldType.TEXT_MULTI})


@dataclass(frozen=True, slots=True)
class OptionLimits:
    """The upper bounds of the service.

    `max_items` is the largest number of items of a generic node. A feed accepts greater numbers and stores them as
    `max`, because it never expires items. `presence_access`: the operator restricts who becomes a contact, so that the
    access model `presence` closes a node.
    """

    max_payload_size_bytes: int = DEFAULT_PAYLOAD_SIZE_BYTES
    max_items: int = 10_000
    presence_access: bool = False


# Returns the stored form of a field's values on a node of this kind. Raises ValueError with the reason (the condition
# is then NOT_ACCEPTABLE), or FeedError for another condition.
Check = Callable[[Values, NodeKind, OptionLimits], Values]
# Returns the texts that a service with these bounds accepts.
Choices = Callable[[OptionLimits], Values]
# The bounds of a service that accepts every choice.
EVERY_CHOICE = OptionLimits(presence_access=True)

# The four spellings of XEP-0004 3.3, and the normal form of each.
BOOLEANS = {"1": "true", "true": "true", "0": "false", "false": "false"}


def _refuse(name: str, why: str, condition: Condition = Condition.NOT_ACCEPTABLE) -> FeedError:
    return FeedError(condition, f"{PUBSUB}{name}: {why}")


@dataclass(eq=False)
class Option(Generic[T]):
    """One field of the configuration form. As an attribute of `NodeOptions` it is the typed value in force.

    `defaults` are stored values by node kind. `read` makes the typed value of stored values. A list-single accepts its
    `choices` of the service and nothing else; `check` tests the values further. `datatype` is the XEP-0122 hint.
    `metadata` fields are part of the node's meta-data (XEP-0060 5.4). Publish-options on an existing node must have the
    values in force, except for fields that are no `precondition`. `var` is the field name without `pubsub#`.
    """

    label: str
    type: FieldType
    defaults: Mapping[NodeKind, Values]
    read: Callable[[Values], T]
    choices: Choices = lambda _limits: ()
    check: Check | None = None
    datatype: str = ""
    metadata: bool = False
    precondition: bool = True
    var: str = field(default="", init=False)

    def __set_name__(self, _owner: object, name: str) -> None:
        self.var = name

    @overload
    def __get__(self, options: None, owner: object) -> "Option[T]": ...

    @overload
    def __get__(self, options: "NodeOptions", owner: object) -> T: ...

    def __get__(self, options: "NodeOptions | None", owner: object) -> "Option[T] | T":
        if options is None:
            return self
        value = self.read(options.values_of(self))
        # The instance's dictionary comes before this descriptor, so each value is read from its texts only once.
        options.__dict__[self.var] = value
        return value

    def normalise(self, kind: NodeKind, values: Values, limits: OptionLimits) -> Values:
        """Returns the stored form of submitted values. Raises FeedError, NOT_ACCEPTABLE where they may not be set."""
        if len(values) > MAX_VALUES or sum(map(len, values)) > MAX_TEXT or not is_xml_text("".join(values)):
            raise _refuse(self.var, "too many values, too long, or with characters that XML forbids")
        values = self._typed(values)
        try:
            if self.check is not None:
                return self.check(values, kind, limits)
        except ValueError as error:
            raise _refuse(self.var, str(error)) from None
        choices = self.choices(limits)
        if choices and values[:1] not in {(choice,) for choice in choices}:
            raise _refuse(self.var, f"the values are {', '.join(choices)}")
        return values

    def _typed(self, values: Values) -> Values:
        if self.type is FieldType.JID_MULTI:
            jids = [parse_jid(value) for value in values if value]
            if None in jids:
                raise _refuse(self.var, "not an address", Condition.JID_MALFORMED)
            return tuple(str(jid) for jid in jids)
        if self.type is FieldType.TEXT_MULTI:
            return tuple(value for value in values if value.strip())
        if len(values) > 1:
            raise _refuse(self.var, "one value")
        if self.type is FieldType.BOOLEAN:
            value = BOOLEANS.get(values[0].strip() if values else "")
            if value is None:
                raise _refuse(self.var, "true or false")
            return (value,)
        return values or ("",)


# Checks.


def how_to_generic(limits: OptionLimits) -> str:
    """The end of every error for what a feed refuses and a generic node accepts. Stock clients can send these fields,
    but not `KIND` (`core.kinds`).
    """
    return (
        f"create a node for it whose configuration has persist_items false, item_expire, max_items below "
        f"{limits.max_items}, or another pubsub#type"
    )


def whole_number(values: Values) -> int | None:
    """The number that a field has as its value, or None for any other text. 18 digits fit every column of the store."""
    text = values[0].strip() if values else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def is_false(values: Values) -> bool:
    """Whether a field has one of the spellings of false as its only value."""
    return len(values) == 1 and BOOLEANS.get(values[0].strip()) == "false"


def _number(values: Values, ceiling: int) -> int:
    number = whole_number(values)
    if number is None or not 1 <= number <= ceiling:
        raise ValueError(f"a whole number from 1 to {ceiling}")
    return number


def _check_max_items(values: Values, kind: NodeKind, limits: OptionLimits) -> Values:
    if kind is NodeKind.GENERIC:
        return values if values == ("max",) else (str(_number(values, limits.max_items)),)
    if values not in ((), ("",), ("max",)) and (whole_number(values) or 0) < limits.max_items:
        raise ValueError(
            f"a feed never expires items; send max, or a whole number from {limits.max_items}, which means max,"
            f" or {how_to_generic(limits)}"
        )
    return ("max",)


def _check_language(values: Values, _kind: NodeKind, _limits: OptionLimits) -> Values:
    if values != ("",) and not is_language_tag(values[0]):
        raise ValueError(f"{values[0][:MAX_LANGUAGE_CHARACTERS]!r} is not a language tag; send one such as en or pt-BR")
    return values


def _check_item_expire(values: Values, kind: NodeKind, limits: OptionLimits) -> Values:
    if values in ((), ("",), ("max",)):
        return ("max",)
    if kind is NodeKind.FEED:
        raise ValueError(f"the items of a feed do not expire; send max, or {how_to_generic(limits)}")
    return (str(_number(values, MAX_EXPIRE_S)),)


def _check_persistent(values: Values, kind: NodeKind, limits: OptionLimits) -> Values:
    if kind is NodeKind.FEED and values != ("true",):
        raise ValueError(f"a feed stores its items; send true, or {how_to_generic(limits)}")
    return values


def _check_payload_size(values: Values, _kind: NodeKind, limits: OptionLimits) -> Values:
    return (str(_number(values, limits.max_payload_size_bytes)),)


# Why a service refuses an access model that XEP-0060 section 4.5 defines. With `presence` on a service that accepts
# everybody as a contact, a node would be open although its owner closed it.
REFUSED_MODELS = {
    "presence": (
        "everybody may subscribe to the presence of this service, so the access model presence would open the node to "
        "everybody; use authorize or whitelist, or ask the operator to restrict the setting pubsub.contacts"
    ),
    "roster": "this service cannot read the contact list of the owner; use authorize or whitelist",
}


def access_models(limits: OptionLimits) -> Values:
    """The access models that a service accepts."""
    return tuple(model.value for model in AccessModel if model is not AccessModel.PRESENCE or limits.presence_access)


def _check_access_model(values: Values, _kind: NodeKind, limits: OptionLimits) -> Values:
    model, models = _first(values), access_models(limits)
    if model not in models and model in REFUSED_MODELS:
        raise FeedError(Condition.UNSUPPORTED_ACCESS_MODEL, REFUSED_MODELS[model])
    if model not in models:
        raise FeedError(Condition.UNSUPPORTED_ACCESS_MODEL, f"the access models are {', '.join(models)}")
    return values


def _check_origins(values: Values, _kind: NodeKind, _limits: OptionLimits) -> Values:
    origins = tuple(dict.fromkeys(read_origin(value) for value in values))
    if len(origins) > MAX_ORIGINS:
        raise ValueError(f"at most {MAX_ORIGINS} sites")
    return origins


def _check_leaf(values: Values, _kind: NodeKind, _limits: OptionLimits) -> Values:
    if values != ("leaf",):
        raise unsupported("collections")
    return values


# Kinds of fields. Each returns an option whose typed value has its type.


def _same(*values: str) -> Mapping[NodeKind, Values]:
    """Returns the same default for nodes of every kind."""
    return dict.fromkeys(NodeKind, values)


def _first(values: Values) -> str:
    return values[0] if values else ""


def _text(label: str, *, feeds: str = "", check: Check | None = None) -> Option[str]:
    """A text of the meta-data, empty by default. `feeds` is the default on feeds."""
    defaults = {NodeKind.FEED: (feeds,), NodeKind.GENERIC: ("",)}
    return Option(label, FieldType.TEXT_SINGLE, defaults, _first, check=check, metadata=True)


def _flag(label: str, *, default: bool, check: Check | None = None, precondition: bool = True) -> Option[bool]:
    defaults = _same("true" if default else "false")
    return Option(
        label,
        FieldType.BOOLEAN,
        defaults,
        lambda values: values == ("true",),
        check=check,
        precondition=precondition,
    )


def _fixed(label: str, why: str, *, value: bool) -> Option[bool]:
    """A flag that can only have this value. `why` is the text of the error for the other value."""
    option = _flag(label, default=value)

    def check(values: Values, _kind: NodeKind, _limits: OptionLimits) -> Values:
        if values != option.defaults[NodeKind.FEED]:
            raise ValueError(why)
        return values

    option.check = check
    return option


def _choice(label: str, *choices: str, check: Check | None = None) -> Option[str]:
    """One of these texts; the first is the default."""
    return Option(label, FieldType.LIST_SINGLE, _same(choices[0]), _first, lambda _limits: choices, check)


E = TypeVar("E", AccessModel, PublishModel)


def _model(label: str, default: E, choices: Choices, *, check: Check | None = None) -> Option[E]:
    """A member of the enumeration of `default`."""
    model = type(default)
    return Option(
        label,
        FieldType.LIST_SINGLE,
        _same(default.value),
        lambda values: model(_first(values)),
        choices,
        check,
        metadata=True,
    )


def _count(label: str, check: Check) -> Option[int | None]:
    """A number, or None for `max`."""
    return Option(
        label,
        FieldType.TEXT_SINGLE,
        _same("max"),
        lambda values: None if values == ("max",) else int(_first(values)),
        check=check,
        datatype="pubsub:integer-or-max",
        metadata=True,
    )


class NodeOptions:
    """The options of a node. `stored` is what differs from the defaults of its kind; the attributes below are the
    values in force. An instance never changes. Each attribute is read from its texts once, so instances are shared.
    """

    title = _text("A short name")
    description = _text("What is published here")
    type = _text("The type of the payloads", feeds=SOCIAL_FEED)
    language = _text("The language of the texts (BCP 47, such as en or pt-BR)", check=_check_language)
    contact = Option("Whom to contact", FieldType.JID_MULTI, _same(), lambda values: values, metadata=True)
    access_model = _model("Who may subscribe and retrieve", AccessModel.OPEN, access_models, check=_check_access_model)
    publish_model = _model(
        "Who may publish", PublishModel.PUBLISHERS, lambda _limits: tuple(model.value for model in PublishModel)
    )
    max_items = _count("How many items are kept", _check_max_items)
    item_expire = _count("Seconds after which items expire", _check_item_expire)
    max_payload_size = Option(
        "The largest payload in bytes",
        FieldType.TEXT_SINGLE,
        _same(str(DEFAULT_PAYLOAD_SIZE_BYTES)),
        lambda values: int(_first(values)),
        check=_check_payload_size,
    )
    persist_items = _flag("Whether items are stored", default=True, check=_check_persistent)
    # A feed accepts every policy, because it is never full.
    publish_node_full = _choice("What the service does with an item above max_items", *FULL_POLICIES)
    purge_offline = _fixed(
        "Whether items go when the publisher goes offline", "items of this service stay", value=False
    )
    deliver_notifications = _flag("Whether events are sent", default=True)
    deliver_payloads = _flag("Whether events carry payloads", default=True)
    notification_type = _choice("The type of event messages", "headline", "normal")
    notify_config = _flag("Whether subscribers are notified of configuration changes", default=False)
    notify_delete = _flag("Whether subscribers are notified of the deletion of the node", default=True)
    notify_retract = _flag("Whether subscribers are notified of retractions", default=True)
    # Only owners notice this field, so a publisher cannot mean it as a condition for its item. Movim sends it with
    # every post, and would publish each post twice.
    notify_sub = _flag("Whether owners are notified of new subscriptions", default=False, precondition=False)
    itemreply = _choice("Whom a reply to an item should go to", "publisher", "owner", "none")
    # For subscribers whose presence the service does not know, `on_sub_and_presence` means `on_sub`.
    send_last_published_item = _choice(
        "When the newest item is sent without a request", "never", "on_sub", "on_sub_and_presence"
    )
    subscribe = _flag("Whether users can subscribe", default=True)
    presence_based_delivery = _flag("Whether events wait for subscribers who are offline", default=False)
    tempsub = _flag("Whether subscriptions end when the subscriber goes offline", default=False)
    node_type = _choice("Leaf or collection", "leaf", check=_check_leaf)
    # Items keep the form in which they came, so this concerns items that are published here.
    sync_dialect = _choice("The form of the sync data of new items: FeedSync, or SSE", FEEDSYNC, SSE)
    frame_origins = Option(
        "Web sites that may show the feed in a frame, such as https://blog.example",
        FieldType.TEXT_MULTI,
        _same(),
        lambda values: values,
        check=_check_origins,
    )
    guest_replies = _choice("Whether people without an account may reply in frames", NO_GUESTS, GUESTS_WITH_APPROVAL)

    def __init__(self, kind: NodeKind, stored: FormFields | None = None) -> None:
        self.kind = kind
        self.stored: FormFields = stored or {}

    @classmethod
    def initial(cls, kind: NodeKind, limits: OptionLimits) -> "NodeOptions":
        """Returns the options of a new node. The bounds of the service replace greater defaults."""
        ceiling_bytes = limits.max_payload_size_bytes
        lower = ceiling_bytes < DEFAULT_PAYLOAD_SIZE_BYTES
        return cls(kind, {"max_payload_size": (str(ceiling_bytes),)} if lower else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeOptions) and (self.kind, self.stored) == (other.kind, other.stored)

    __hash__ = None  # type: ignore[assignment]  # `stored` is a dictionary

    def __repr__(self) -> str:
        return f"NodeOptions({self.kind}, {self.stored})"

    def values_of(self, option: Option[T]) -> Values:
        """The texts of an option in force."""
        return self.stored[option.var] if option.var in self.stored else option.defaults[self.kind]

    @cached_property
    def listed(self) -> bool:
        """Whether anybody may know that the node exists. To request authorisation, users must find the node first."""
        return self.access_model is not AccessModel.WHITELIST

    @cached_property
    def shows_publisher(self) -> bool:
        """Whether items are shown with their publisher, and can be found by publisher (`pubsub#itemreply`)."""
        return self.itemreply == "publisher"

    @property
    def details(self) -> str:
        """Data about the imported feed in this node, empty for other nodes."""
        return "".join(self.stored.get(DETAILS, ()))

    def with_details(self, text: str) -> "NodeOptions":
        """Returns these options with other data about the imported feed."""
        return NodeOptions(self.kind, {**self.stored, DETAILS: (text,)})

    def with_models(self, options: "NodeOptions") -> "NodeOptions":
        """Returns these options with the access model and the publish model of another node."""
        own = {name: values for name, values in self.stored.items() if name not in _MODELS}
        return NodeOptions(self.kind, own | {name: v for name, v in options.stored.items() if name in _MODELS})

    def apply(self, form: FormFields, limits: OptionLimits) -> "NodeOptions":
        """Returns the options after a submit: the fields of the form change, unknown ones are ignored (xep-map 64, 67).

        `form` has full field names. Raises FeedError for a value that may not be set.
        """
        stored = dict(self.stored)
        for name, values in form.items():
            var = name.removeprefix(PUBSUB)
            if var in REFUSED and values not in ((), ("",)):
                raise _refuse(var, "not supported")
            option = _by_name(name)
            if option is None:
                continue
            value = option.normalise(self.kind, values, limits)
            if value == option.defaults[self.kind]:
                stored.pop(var, None)
            else:
                stored[var] = value
        return NodeOptions(self.kind, stored)

    def unmet(self, form: FormFields, limits: OptionLimits) -> str | None:
        """Returns the full name of the first publish-option that is not met, or None (xep-map 145 to 149)."""
        for name, values in form.items():
            option = _by_name(name)
            if option is None:
                return name
            try:
                value = option.normalise(self.kind, values, limits)
            except FeedError:
                return name
            if option.precondition and value != self.values_of(option):
                return name
        return None


OPTIONS: Mapping[str, Option[object]] = {
    name: option for name, option in vars(NodeOptions).items() if isinstance(option, Option)
}

# Known fields that the service rejects, because it fetches no URL of a configuration and has no rosters.
REFUSED = frozenset({"body_xslt", "dataform_xslt", "roster_groups_allowed"})


def _by_name(name: str) -> Option[object] | None:
    return OPTIONS.get(name.removeprefix(PUBSUB)) if name.startswith(PUBSUB) else None
