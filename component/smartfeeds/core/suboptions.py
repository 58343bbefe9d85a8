"""Subscription options: `pubsub#subscribe_options` (XEP-0060 6.3, 12.19, 16.4.2; xep-map 125 to 129)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import BOOLEANS, PUBSUB, FieldType, Values
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError

ONLINE = "online"  # a presence without <show/> (RFC 6121 section 4.7.2.1)
# The states of an available resource, as `pubsub#show-values` names them (XEP-0060 section 16.4.2).
SHOWS = ("away", "chat", "dnd", ONLINE, "xa")
# The value of `expire` for a subscription that ends when the subscriber goes offline (XEP-0060 section 12.5).
PRESENCE = "presence"
# Marks a subscription whose items the chat bot delivers. It is no field of a form, because only the bot sets it
# together with the consumer that delivers. `CHAT_ONLY`: no client has subscribed, so no events are sent.
CHAT = "chat"
CHAT_ONLY = ("only",)
CHAT_TOO = ("too",)


@dataclass(frozen=True, slots=True)
class SubscribeOption:
    """A field of the form.

    `read` returns the stored form of submitted values at a time in microseconds. It raises ValueError with the reason
    for a value that may not be set. A field that has the stored form `default` is not stored. `choices` are the
    values of a list.
    """

    var: str
    label: str
    type: FieldType
    default: Values
    kinds: frozenset[NodeKind]
    read: Callable[[Values, int], Values]
    choices: Values = ()


def _one(values: Values) -> str:
    """The text of a field with at most one value."""
    if len(values) > 1:
        raise ValueError("must have one value")
    return values[0].strip() if values else ""


def _read_flag(values: Values, _now_us: int) -> Values:
    value = BOOLEANS.get(_one(values))
    if value is None:
        raise ValueError("must be true or false")
    return (value,)


def _read_lease(values: Values, now_us: int) -> Values:
    """The end of a lease in UTC, or `PRESENCE`."""
    text = _one(values)
    if text in ("", PRESENCE):
        return (text,) if text else ()
    end_us = parse_datetime(text)
    if end_us is None:
        raise ValueError("must be a dateTime such as 2030-01-31T00:00:00Z, or presence")
    if end_us <= now_us:
        raise ValueError("is in the past; send a later time")
    return (format_datetime(end_us),)


def _read_shows(values: Values, _now_us: int) -> Values:
    """The chosen states. If none is chosen, all: a subscriber who wants no events uses `deliver`."""
    # Some clients send a list without a choice as a single empty or false value.
    chosen = {value.strip() for value in values} - set(_NOTHING)
    if not chosen <= set(SHOWS):
        raise ValueError(f"must be some of {', '.join(SHOWS)}")
    return tuple(show for show in SHOWS if show in chosen) or SHOWS


_EVERY = frozenset(NodeKind)
# The items of a generic node have no text for a body (XEP-0060 12.8).
_FEEDS = frozenset({NodeKind.FEED})
_NOTHING = ("", "0", "false")
_BOOLEAN = FieldType.BOOLEAN
SUBSCRIBE_OPTIONS: Mapping[str, SubscribeOption] = {
    option.var: option
    for option in (
        SubscribeOption("deliver", "Whether events are sent", _BOOLEAN, ("true",), _EVERY, _read_flag),
        SubscribeOption(
            "include_body", "Whether events carry a readable body", _BOOLEAN, ("false",), _FEEDS, _read_flag
        ),
        SubscribeOption("expire", "When the subscription ends", FieldType.TEXT_SINGLE, (), _EVERY, _read_lease),
        SubscribeOption(
            "show-values",
            "In which states of presence events are sent",
            FieldType.LIST_MULTI,
            SHOWS,
            _EVERY,
            _read_shows,
            choices=SHOWS,
        ),
    )
}
# Known fields of features that the service does not have, with the values that it accepts because they change nothing.
_UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "digest": _NOTHING,
    "digest_frequency": _NOTHING,
    "subscription_type": ("", "items"),
    "subscription_depth": ("", "1"),
}


def apply(
    kind: NodeKind, current: Mapping[str, Values], submitted: Mapping[str, Values], now_us: int
) -> dict[str, Values]:
    """Returns the options after a submit. `submitted` has full field names. Raises FeedError(INVALID_OPTIONS)."""
    options = dict(current)
    for name, values in submitted.items():
        var = name.removeprefix(PUBSUB)
        if var in _UNSUPPORTED and not set(values) <= set(_UNSUPPORTED[var]):
            raise FeedError(Condition.INVALID_OPTIONS, f"{name} is not supported")
        option = SUBSCRIBE_OPTIONS.get(var) if name.startswith(PUBSUB) else None
        if option is None or kind not in option.kinds:
            continue
        try:
            stored = option.read(values, now_us)
        except ValueError as error:
            raise FeedError(Condition.INVALID_OPTIONS, f"{name} {error}") from None
        if stored == option.default:
            options.pop(var, None)
        else:
            options[var] = stored
    return options


def takes_effect(kind: NodeKind, name: str, values: Values) -> bool:
    """Returns whether `apply` does what a field asks for. It ignores fields that this kind of node does not have, which
    is no loss if the value is the one without an effect."""
    var = name.removeprefix(PUBSUB)
    option = SUBSCRIBE_OPTIONS.get(var)
    return var in _UNSUPPORTED or set(values) <= set(_NOTHING) or (option is not None and kind in option.kinds)


def values_of(options: Mapping[str, Values], var: str) -> Values:
    """Returns the values of an option, or its default."""
    return options.get(var, SUBSCRIBE_OPTIONS[var].default)


def flag(options: Mapping[str, Values], var: str) -> bool:
    """Returns whether a boolean option is true."""
    return values_of(options, var) == ("true",)


def wants_events(options: Mapping[str, Values]) -> bool:
    """Returns whether a subscriber's clients receive events."""
    return flag(options, "deliver") and options.get(CHAT) != CHAT_ONLY


def for_client(options: Mapping[str, Values]) -> Mapping[str, Values]:
    """Returns the options of a subscription that a client uses from now on."""
    return {**options, CHAT: CHAT_TOO} if CHAT in options else options


def is_temporary(options: Mapping[str, Values]) -> bool:
    """Returns whether a subscription with these options ends when the subscriber goes offline."""
    return options.get("expire") == (PRESENCE,)


def lease_end_us(options: Mapping[str, Values]) -> int | None:
    """Returns when a subscription with these options ends, in microseconds; None without a lease."""
    return parse_datetime(options["expire"][0]) if "expire" in options else None
