"""Options of a moved node as options of ours (IMP-063, IMP-067)."""

from typing import Final

from smartfeeds.core.kinds import decide_kind
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import (
    OPTIONS,
    PUBSUB,
    AccessModel,
    FormFields,
    NodeOptions,
    OptionLimits,
    Values,
    whole_number,
)
from smartfeeds.errors import FeedError
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem, Report
from smartfeeds.service.context import Policy

_MAX_ITEMS: Final = f"{PUBSUB}max_items"
_ACCESS_MODEL: Final = f"{PUBSUB}access_model"
_EMPTY: Final[tuple[Values, ...]] = ((), ("",))


def moved_kind(policy: Policy, moved: MovedNode, *, has_items: bool, for_feed: bool) -> NodeKind:
    """Returns the kind of a new node: a feed if a feed can store every item. Without items the options decide, but a
    number of items does not, because most nodes of other services have one (IMP-063)."""
    if has_items:
        return NodeKind.FEED if for_feed else NodeKind.GENERIC
    form = {name: values for name, values in moved.options.items() if name != _MAX_ITEMS}
    return decide_kind(form, policy.default_kind, policy.options, name=moved.name)


def moved_options(options: NodeOptions, form: FormFields, limits: OptionLimits, report: Report) -> NodeOptions:
    """Returns the options after those of the source. Reports each option that differs from the source.

    An access model that this service does not have, or that the reader could not read, becomes `whitelist`, so that no
    node opens by moving (IMP-045).
    """
    for name, values in form.items():
        values = _fitting(options.kind, name, values, limits, report)
        if values in _EMPTY:
            if name == _ACCESS_MODEL:
                options = _closed(options, limits, report)
            continue
        if name.removeprefix(PUBSUB) not in OPTIONS:
            report(MovedProblem(f"option {name}", f"this service does not have it; the source has {_text(values)}"))
            continue
        try:
            options = options.apply({name: values}, limits)
        except FeedError as error:
            report(MovedProblem(f"option {name}", f"{_text(values)} is not accepted: {error.text}"))
            if name == _ACCESS_MODEL:
                options = _closed(options, limits, report)
    return options


def _closed(options: NodeOptions, limits: OptionLimits, report: Report) -> NodeOptions:
    report(MovedProblem(f"option {_ACCESS_MODEL}", "the access model is whitelist now, with the same affiliations"))
    return options.apply({_ACCESS_MODEL: (AccessModel.WHITELIST.value,)}, limits)


def _fitting(kind: NodeKind, name: str, values: Values, limits: OptionLimits, report: Report) -> Values:
    """Returns the values of an option without a bound that the node cannot have."""
    number = whole_number(values)
    if name != _MAX_ITEMS or number is None:
        return values
    if kind is NodeKind.FEED:
        report(MovedProblem(f"option {name}", f"a feed never expires items; the limit of {number} is dropped"))
        return ()
    if number > limits.max_items:
        report(MovedProblem(f"option {name}", f"{number} is above {limits.max_items}; the node has no limit now"))
        return ("max",)
    return values


def _text(values: Values) -> str:
    return ", ".join(values)[:200]
