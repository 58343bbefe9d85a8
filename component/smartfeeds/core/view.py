"""Views of a feed: node names with a query string, their parameters and their canonical form.

Smart Feeds, XMPP: parameters are appended to the node name like a query string (SF-086, SF-087). The bare node is
the stock projection: modified order, tombstones hidden (design section 1). A node name with parameters is a Smart
view: tombstones are visible, counted, and pushed as items.

`service.context` decides whether a text is a view or a literal NodeID, because that depends on the existing nodes
(D17).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from smartfeeds.core.filters import FILTERS, ROWS, LastChange, ParameterSchema, change_facets
from smartfeeds.errors import Condition, FeedError

MAX_FIELDS = 64

# The names of rows in `core.filters.FILTERS` with their values, in the order of that table.
Filters = tuple[tuple[str, frozenset[str]], ...]


class Order(Enum):
    """The ordering key of a view. Every order is ascending: oldest first, newest last (R1)."""

    MODIFIED = "modified"
    CREATED = "created"

    __hash__ = object.__hash__  # Enum.__hash__ is a slow Python function


_ORDERS = [[order.value] for order in Order]
# Positions travel in the result set, never in the node name.
RESERVED_PARAMETERS = frozenset({"since", "until", "max", "callback", "timeout"})

_ORDER, _SYNC = "order", "sync"
# Every parameter of a view: name -> description. The filters are described in `core.filters`.
PARAMETERS: Mapping[str, str] = {
    _ORDER: "modified (default) or created: the order of the items",
    **{row.name: row.text for row in FILTERS.values()},
    _SYNC: "true: items say who changed them when, and which versions conflict (FeedSync)",
}
# Clients write parameters as in addresses (XEP-0147), or escape an ampersand twice. Elsewhere in a value a semicolon is
# an ordinary character.
_SEPARATOR = re.compile(rf"(?:&amp)?;(?=(?:{'|'.join(PARAMETERS)})=)")
_AMPERSAND = re.compile("&(?:amp;)?")
PARAMETER_SCHEMAS: Mapping[str, ParameterSchema] = {
    _ORDER: {"enum": [order.value for order in Order]},
    **{row.name: row.schema for row in FILTERS.values()},
    _SYNC: {"const": "true"},
}


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at a feed. `smart` distinguishes a node name with parameters from the bare node.

    `filters` are the names of rows in `core.filters.FILTERS` with their values, in the order of that table. An item
    must match all of them. `sync` shows who changed the items and when.

    `hides_tombstones`: the view has no deleted items: the bare node has none, a Smart view has them (R5). `filtered`:
    the view can lack items of the feed other than tombstones. Every read asks for both, several times.
    """

    smart: bool = False
    order: Order = Order.MODIFIED
    filters: Filters = ()
    sync: bool = False
    hides_tombstones: bool = field(init=False, repr=False, compare=False)
    filtered: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hides_tombstones", not self.smart)
        object.__setattr__(self, "filtered", bool(self.filters))

    @property
    def query(self) -> frozenset[str]:
        """The words that must all occur in the text of an item."""
        return frozenset(word for name, values in self.filters if ROWS[name].index is None for word in values)

    def facets(self, *, publishers: bool, broad: bool | None = None) -> tuple[frozenset[str], ...]:
        """One set of facets for each filter by facets. A version matches a set if it has one of its facets.

        `publishers`: the node shows its publishers, so `author` selects by them too. `broad`: only the filters that are
        broad, or only those that are not.
        """
        return _facets(self.filters, publishers, broad)


# Every push and every page of a filtered view needs the facets, and folding the values takes 3 us.
@lru_cache(4_096)
def _facets(
    filters: tuple[tuple[str, frozenset[str]], ...], publishers: bool, broad: bool | None
) -> tuple[frozenset[str], ...]:
    rows = ((ROWS[name], values) for name, values in filters)
    sets = (row.facets(values, publishers=publishers) for row, values in rows if broad in (None, row.broad))
    return tuple(facets for facets in sets if facets)


BARE = View()
SMART = View(smart=True)
CREATED = View(smart=True, order=Order.CREATED)
SHARED = View(smart=True, sync=True)


class Traits(NamedTuple):
    """The properties of one version of an item that filters compare: facets (see `facet`) and the words of its text."""

    facets: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


NO_TRAITS = Traits()
# Stands for every version: no facet and no word is empty.
ANYTHING = Traits(frozenset({""}), frozenset({""}))


class ViewStanding(Enum):
    """The relation of an item to a view.

    A view contains an item if one of the versions that the item has had matches all its filters at once. `LEFT`: the
    view contains the item, but the present version does not match, and the item is not deleted.
    """

    ABSENT = "absent"
    PRESENT = "present"
    LEFT = "left"

    __hash__ = object.__hash__


def version_traits(content: Traits, publisher: str, *, deleted: bool, revision: int) -> Traits:
    """Returns the traits of a version. A deleted item has no `content` (SF-013), only its publisher and its kind."""
    change = LastChange.DELETED if deleted else LastChange.NEW if revision == 1 else LastChange.EDITED
    own = change_facets(publisher, change)
    return Traits(own) if deleted else Traits(content.facets | own, content.words)


def matches(view: View, version: Traits, *, publishers: bool) -> bool:
    """Returns whether a version matches every filter of a view. `publishers` as in `View.facets`."""
    facets = view.facets(publishers=publishers)
    return all(alternatives & version.facets for alternatives in facets) and view.query <= version.words


# The marks between the name of a node and the parameters of a view, as `split_name` reads them.
MARKS = ("?", "%3F", "%3f")


def split_name(text: str) -> tuple[str, str] | None:
    """Returns the base and the query string of a NodeID, split at the first "?", or None if there is none.

    A NodeID without "?" that contains "%3F" is percent-encoded as a whole: a client copied it from an address.
    """
    if "?" not in text and "%3f" in text.lower():
        text = unquote(text)
    base, mark, query = text.partition("?")
    return (base, query) if mark and base else None


def shared_splits(text: str) -> list[tuple[str, str]]:
    """Returns the ways to split a NodeID whose base has a query string too, the longest base first (SF-087)."""
    start = text.find("?")
    if start < 1:
        return []
    ampersands = list(_AMPERSAND.finditer(text, start + 1))
    return [(text[: mark.start()], text[mark.end() :]) for mark in reversed(ampersands[-MAX_FIELDS:])]


def parse_view(text: str) -> View | None:
    """Returns the Smart view of a query string, or None if a parameter or value is unknown (SF-024, A-24).

    Raises FeedError(BAD_REQUEST) for the reserved names since, until, max, callback and timeout (A-25), and for a
    search without words.
    """
    if ";" in text:
        # In an address the parameters begin with a semicolon too: `?;order=created`.
        text = _SEPARATOR.sub("&", text).removeprefix("&")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in RESERVED_PARAMETERS:
            raise FeedError(Condition.BAD_REQUEST, f"{name} is a position; send positions in the result set")
        if name not in PARAMETERS:
            return None
        values.setdefault(name, []).append(value)
    orders, sync = values.pop(_ORDER, ["modified"]), values.pop(_SYNC, None)
    if orders not in _ORDERS or sync not in (None, ["true"]):
        return None
    filters: list[tuple[str, frozenset[str]]] = []
    for row in FILTERS.values():
        texts = values.get(row.name)
        if texts is None:
            continue
        selected = row.read(texts)
        if selected is None:
            return None
        if selected:
            filters.append((row.name, selected))
    return View(True, Order(orders[0]), tuple(filters), sync is not None)


def names_view(text: str) -> bool:
    """Returns whether a NodeID has the form of a view, whether or not the feed exists.

    Only the shortest query that the NodeID can have is parsed, because the longer ones end with it. If it is no view,
    they are none. If `parse_view` raises an error for it, they have a parameter of views too, and the answer is true.
    """
    split = split_name(text)
    splits = [*shared_splits(text), *([] if split is None else [split])]
    try:
        return bool(splits) and parse_view(splits[0][1]) is not None
    except FeedError:
        return True


def canonical(view: View) -> str:
    """Returns the canonical text of a view: sorted parameters, folded values, all defaults. Empty for the bare node."""
    if not view.smart:
        return ""
    pairs = [(_ORDER, view.order.value)]
    pairs += [(name, text) for name, values in view.filters for text in FILTERS[name].write(values)]
    if view.sync:
        pairs.append((_SYNC, "true"))
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(pairs))


@lru_cache(4_096)  # pushes and lists of subscriptions read the same texts again and again
def from_canonical(text: str) -> View:
    """Returns the view of a text that `canonical` returned. Raises ValueError for any other text."""
    if not text:
        return BARE
    view = parse_view(text)
    if view is None:
        raise ValueError(text)
    return view
