"""The kind of a node, decided from a request (docs/xmpp.md 2.1).

No stock client can send the field `KIND`. A configuration that asks for what a feed is not therefore makes a generic
node, and so does a payload that no feed accepts.
"""

from collections.abc import Callable, Mapping

from smartfeeds.core.options import (
    ATOM,
    KIND,
    PUBSUB,
    FormFields,
    NodeKind,
    OptionLimits,
    Values,
    is_false,
    whole_number,
)
from smartfeeds.errors import Condition, FeedError

# The types of nodes with Atom entries: XEP-0277 names its node so, and the social feeds of XEP-0472 have profiles such
# as the gallery behind the prefix. Movim still reads the former prefix of the gallery.
_FEED_TYPES = frozenset({"", ATOM, "urn:xmpp:microblog:0"})
_FEED_TYPE_PREFIXES = ("urn:xmpp:pubsub-social-feed:", "urn:xmpp:pubsub-social-gallery:")


def _is_number(values: Values, _limits: OptionLimits) -> bool:
    return bool(whole_number(values))


def _is_low_number(values: Values, limits: OptionLimits) -> bool:
    return 0 < (whole_number(values) or 0) < limits.max_items


def _is_foreign_type(values: Values, _limits: OptionLimits) -> bool:
    return len(values) == 1 and values[0] not in _FEED_TYPES and not values[0].startswith(_FEED_TYPE_PREFIXES)


# The fields by which a configuration asks for a generic node, each with the test of its values. A value that no node
# accepts decides nothing, so the error is that of the default kind.
GENERIC_REASONS: Mapping[str, Callable[[Values, OptionLimits], bool]] = {
    f"{PUBSUB}max_items": _is_low_number,
    f"{PUBSUB}item_expire": _is_number,
    f"{PUBSUB}persist_items": lambda values, _limits: is_false(values),
    f"{PUBSUB}type": _is_foreign_type,
}


# The options of form nodes, by the prefix of the name (XEP-0346 2 and 4). Everybody submits forms, and only the owners
# and the people whom they appoint read these.
_FORM_OPTIONS: Mapping[str, FormFields] = {
    "fdp/template/": {},
    "fdp/submitted/": {f"{PUBSUB}access_model": ("whitelist",), f"{PUBSUB}publish_model": ("open",)},
}

_FORM_PREFIXES = tuple(_FORM_OPTIONS)


def options_by_name(name: str) -> FormFields | None:
    """Returns the options of a new form node, unless its configuration has others; None for other names."""
    if not name.startswith(_FORM_PREFIXES):
        return None
    return next(options for prefix, options in _FORM_OPTIONS.items() if name.startswith(prefix))


def decide_kind(
    form: FormFields, default: NodeKind, limits: OptionLimits, *, name: str = "", foreign: bool = False
) -> NodeKind:
    """Returns the kind of a node that has never held an item, from a configuration or publish-options.

    The field `KIND` decides if it is present, then the table of reasons, then the `name` of a new node, then the
    default. A name with a prefix of XEP-0346 makes a generic node, because a data form is no Atom entry. `foreign` says
    that the request publishes an item that no feed accepts. Raises FeedError(NOT_ACCEPTABLE) for an unknown kind.
    """
    if not form and not foreign:
        return default if options_by_name(name) is None else NodeKind.GENERIC
    text = ", ".join(form.get(KIND, ()))
    if text:
        try:
            return NodeKind(text)
        except ValueError:
            raise FeedError(
                Condition.NOT_ACCEPTABLE, f"{KIND}: {text[:40]!r} is no kind; send feed or generic"
            ) from None
    if foreign or any(name in form and asks(form[name], limits) for name, asks in GENERIC_REASONS.items()):
        return NodeKind.GENERIC
    return default if options_by_name(name) is None else NodeKind.GENERIC
