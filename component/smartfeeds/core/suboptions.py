"""Subscription options: `pubsub#subscribe_options` (XEP-0060 6.3, 12.19, 16.4.2; xep-map 125 to 129)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import BOOLEANS, PUBSUB, FieldType, Values
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.errors import Condition, FeedError


@dataclass(frozen=True, slots=True)
class SubscribeOption:
    """A field with one value.

    `read` returns the stored form of a submitted value at a time in microseconds. It raises ValueError with the reason
    for a value that may not be set. An empty default is a field without a value. `datatype` is the XEP-0122 hint.
    """

    var: str
    label: str
    type: FieldType
    default: str
    kinds: frozenset[NodeKind]
    read: Callable[[str, int], str]
    datatype: str = ""


def _read_flag(text: str, _now_us: int) -> str:
    value = BOOLEANS.get(text)
    if value is None:
        raise ValueError("must be true or false")
    return value


def _read_lease(text: str, now_us: int) -> str:
    """The end of a lease in UTC. The service knows no presence, so `presence` is no dateTime here (XEP-0060 12.5)."""
    if not text:
        return ""
    end_us = parse_datetime(text)
    if end_us is None:
        raise ValueError("must be a dateTime such as 2030-01-31T00:00:00Z")
    if end_us <= now_us:
        raise ValueError("is in the past; send a later time")
    return format_datetime(end_us)


_EVERY = frozenset(NodeKind)
# The items of a generic node have no text for a body (XEP-0060 12.8).
_FEEDS = frozenset({NodeKind.FEED})
SUBSCRIBE_OPTIONS: Mapping[str, SubscribeOption] = {
    option.var: option
    for option in (
        SubscribeOption("deliver", "Whether events are sent", FieldType.BOOLEAN, "true", _EVERY, _read_flag),
        SubscribeOption(
            "include_body", "Whether events carry a readable body", FieldType.BOOLEAN, "false", _FEEDS, _read_flag
        ),
        SubscribeOption(
            "expire", "When the subscription ends", FieldType.TEXT_SINGLE, "", _EVERY, _read_lease, "xs:dateTime"
        ),
    )
}
# Known fields of features that the service does not have, with the values that it accepts because they change nothing.
_NOTHING = ("", "0", "false")
_UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "digest": _NOTHING,
    "digest_frequency": _NOTHING,
    # Events are sent in every state of presence, so every choice of states is met. Clients send the field with forms
    # that they made from the examples of XEP-0060 6.3.
    "show-values": (*_NOTHING, "away", "chat", "dnd", "online", "xa"),
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
        value = _read(name, option, values, now_us)
        if value == option.default:
            options.pop(var, None)
        else:
            options[var] = (value,)
    return options


def _read(name: str, option: SubscribeOption, values: Values, now_us: int) -> str:
    # A field without a value clears a text. A flag has always a value.
    text = "" if not values else values[0].strip()
    try:
        if len(values) > 1:
            raise ValueError("must have one value")
        return option.read(text, now_us)
    except ValueError as error:
        raise FeedError(Condition.INVALID_OPTIONS, f"{name} {error}") from None


def flag(options: Mapping[str, Values], var: str) -> bool:
    """Returns the value of an option, or its default."""
    return options.get(var, (SUBSCRIBE_OPTIONS[var].default,)) == ("true",)


def lease_end_us(options: Mapping[str, Values]) -> int | None:
    """Returns when a subscription with these options ends, in microseconds; None without a lease."""
    return parse_datetime(options["expire"][0]) if "expire" in options else None
