"""Subscription options: `pubsub#subscribe_options` (XEP-0060 6.3, 16.4.2; xep-map 125 to 129)."""

from collections.abc import Mapping
from dataclasses import dataclass

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import BOOLEANS, PUBSUB, Values
from smartfeeds.errors import Condition, FeedError


@dataclass(frozen=True, slots=True)
class SubscribeOption:
    """A boolean field, its default, and the node kinds that have it."""

    var: str
    label: str
    default: str
    kinds: frozenset[NodeKind]


# The items of a generic node have no text for a body (XEP-0060 12.8).
SUBSCRIBE_OPTIONS: Mapping[str, SubscribeOption] = {
    option.var: option
    for option in (
        SubscribeOption("deliver", "Whether events are sent", "true", frozenset(NodeKind)),
        SubscribeOption("include_body", "Whether events carry a readable body", "false", frozenset({NodeKind.FEED})),
    )
}
# Known fields of features that the service does not have, with the values that it accepts because they change nothing.
_NOTHING = ("", "0", "false")
_UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "digest": _NOTHING,
    "digest_frequency": _NOTHING,
    "show-values": _NOTHING,
    "expire": _NOTHING,
    "subscription_type": ("", "items"),
    "subscription_depth": ("", "1"),
}


def apply(kind: NodeKind, current: Mapping[str, Values], submitted: Mapping[str, Values]) -> dict[str, Values]:
    """Returns the options after a submit. `submitted` has full field names. Raises FeedError(INVALID_OPTIONS)."""
    options = dict(current)
    for name, values in submitted.items():
        var = name.removeprefix(PUBSUB)
        if var in _UNSUPPORTED and not set(values) <= set(_UNSUPPORTED[var]):
            raise FeedError(Condition.INVALID_OPTIONS, f"{name} is not supported")
        option = SUBSCRIBE_OPTIONS.get(var) if name.startswith(PUBSUB) else None
        if option is None or kind not in option.kinds:
            continue
        value = BOOLEANS.get(values[0].strip()) if len(values) == 1 else None
        if value is None:
            raise FeedError(Condition.INVALID_OPTIONS, f"{name} must be true or false")
        if value == option.default:
            options.pop(var, None)
        else:
            options[var] = (value,)
    return options


def flag(options: Mapping[str, Values], var: str) -> bool:
    """Returns the value of an option, or its default."""
    return options.get(var, (SUBSCRIBE_OPTIONS[var].default,)) == ("true",)
