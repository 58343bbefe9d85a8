"""Views of a feed: node names with a query string, their parameters and their canonical form.

Smart Feeds, XMPP: parameters are appended to the node name like a query string (SF-086, SF-087). The bare node is
the stock projection: modified order, tombstones hidden (design section 1). A node name with parameters is a Smart
view: tombstones are visible, counted, and pushed as items.

Whether a text is a view or a literal NodeID is decided by who knows the nodes that exist (`service.nodes`, D17).
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from smartfeeds.core.text import words
from smartfeeds.errors import Condition, FeedError

MAX_FILTER_VALUES = 32
MAX_QUERY_WORDS = 32  # each takes a look-up of its own
MAX_FIELDS = 64


class Order(Enum):
    """The ordering key of a view. Every order is ascending: oldest first, newest last (R1)."""

    MODIFIED = "modified"
    CREATED = "created"


class Change(Enum):
    """What last happened to an item, for the parameter `kind`."""

    NEW = "new"
    EDITED = "edited"
    DELETED = "deleted"


# Positions travel in the result set, never in the node name.
RESERVED_PARAMETERS = frozenset({"since", "until", "max", "callback", "timeout"})

# name -> what it does, shown in the Feed Requirements form.
PARAMETERS = {
    "order": "modified (default) or created",
    "author": "entries whose author or publisher has this name, address or URI; repeatable, any of them",
    "category": "entries with this category term; repeatable, any of them",
    "in-reply-to": "entries that answer the one with this id or address; repeatable, any of them",
    "kind": "new, edited or deleted: what last happened to the entry; repeatable, any of them",
    "q": "entries whose text holds all these words",
    "sync": "true: entries say who changed them when, and which versions conflict (FeedSync)",
}


@dataclass(frozen=True, slots=True)
class View:
    """One way to look at a feed. `smart` tells a node name with parameters from the bare node.

    Filters are ANDed with each other; the values of one filter are alternatives. `query` holds words that must all
    occur. `sync` shows who changed the entries and when.
    """

    smart: bool = False
    order: Order = Order.MODIFIED
    authors: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    replies_to: frozenset[str] = frozenset()
    kinds: frozenset[Change] = frozenset()
    query: frozenset[str] = frozenset()
    sync: bool = False

    @property
    def hides_tombstones(self) -> bool:
        """The bare node shows what is there, a Smart view also what was deleted (R5)."""
        return not self.smart

    @property
    def filtered(self) -> bool:
        """Whether the view can lack items of the feed other than tombstones."""
        return bool(self.authors or self.categories or self.replies_to or self.kinds or self.query)

    def facets(self, *, publishers: bool) -> tuple[frozenset[str], ...]:
        """One set of facets for each filter except `q`. A version matches a set if it has one of its facets. The set
        of `kind` comes last.

        `publishers`: the node shows its publishers, so `author` finds them too.
        """
        authors = {facet("p" if publishers else "a", value) for value in self.authors}
        categories = {facet("c", value) for value in self.categories}
        replies = {facet("r", value) for value in self.replies_to}
        kinds = {facet("k", kind.value) for kind in self.kinds}
        return tuple(frozenset(values) for values in (authors, categories, replies, kinds) if values)


BARE = View()
SMART = View(smart=True)
CREATED = View(smart=True, order=Order.CREATED)
SHARED = View(smart=True, sync=True)


class Traits(NamedTuple):
    """What filters compare of one version of an item: its facets (see `facet`) and the words of its text."""

    facets: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


NO_TRAITS = Traits()
# Stands for every version: no facet and no word is empty.
ANYTHING = Traits(frozenset({""}), frozenset({""}))


class Standing(Enum):
    """How an item stands to a view.

    A view contains an item if one of the versions that the item has had matches all its filters at once. `LEFT`: the
    view contains the item, but the present version does not match, and the item is not deleted.
    """

    ABSENT = "absent"
    PRESENT = "present"
    LEFT = "left"

    __hash__ = object.__hash__


def facet(kind: str, value: str) -> str:
    """One comparable property of a version: its kind and the folded value.

    Kinds: a author, p author or publisher, c category, r reply, k kind of change. A view of a node that shows its
    publishers uses `p` only: a condition on two facets would sort all their items for every page.
    """
    return f"{kind}:{_fold(value)}"


def _fold(value: str) -> str:
    """A text as it is compared. Folding it again changes nothing, so a canonical view is read back as it is."""
    folded = value.strip().casefold()
    while folded.startswith("xmpp:"):
        folded = folded.removeprefix("xmpp:").strip()
    return folded


def entry_facets(authors: frozenset[str], categories: frozenset[str], replies_to: frozenset[str]) -> frozenset[str]:
    """The facets that an entry itself gives a version."""
    values = (("a", authors), ("p", authors), ("c", categories), ("r", replies_to))
    return frozenset(facet(kind, value) for kind, texts in values for value in texts if value)


def change_of(*, deleted: bool, revision: int) -> Change:
    """What last happened to an item of this state."""
    if deleted:
        return Change.DELETED
    return Change.NEW if revision == 1 else Change.EDITED


def version_traits(content: Traits, publisher: str, *, deleted: bool, revision: int) -> Traits:
    """The traits of a version. A deleted item has lost its `content` (SF-013): its publisher and kind are left."""
    own = {facet("k", change_of(deleted=deleted, revision=revision).value)}
    if publisher:
        own.add(facet("p", publisher))
    return Traits(frozenset(own)) if deleted else Traits(content.facets | own, content.words)


def matches(view: View, version: Traits, *, publishers: bool) -> bool:
    """Whether a version matches every filter of a view. `publishers` as in `View.facets`."""
    facets = view.facets(publishers=publishers)
    return all(alternatives & version.facets for alternatives in facets) and view.query <= version.words


def split_name(text: str) -> tuple[str, str] | None:
    """The base and the query string of a NodeID, split at the first "?", or None where there is none."""
    base, mark, query = text.partition("?")
    return (base, query) if mark and base else None


def shared_splits(text: str) -> list[tuple[str, str]]:
    """The ways to split a NodeID whose base has a query string of its own, the longest base first (SF-087)."""
    start = text.find("?")
    if start < 1:
        return []
    places = [start + 1 + n for n, character in enumerate(text[start + 1 :]) if character == "&"]
    return [(text[:place], text[place + 1 :]) for place in reversed(places[-MAX_FIELDS:])]


def parse_view(text: str) -> View | None:
    """The Smart view that a query string names, or None where a parameter or value is unknown (SF-024, A-24).

    Raises FeedError(BAD_REQUEST) for the reserved names since, until, max, callback and timeout (A-25).
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in RESERVED_PARAMETERS:
            raise FeedError(Condition.BAD_REQUEST, f"{name} is a position: use the result set")
        if name not in PARAMETERS or (name != "q" and not _fold(value)) or "\0" in value:
            return None
        values.setdefault(name, []).append(value)
    if any(len(found) > MAX_FILTER_VALUES for found in values.values()) or len(values.get("order", ())) > 1:
        return None
    if values.get("sync", ["true"]) != ["true"]:
        return None
    query = words(" ".join(values.get("q", [])))
    if len(query) > MAX_QUERY_WORDS:
        return None
    try:
        return View(
            smart=True,
            order=Order(values.get("order", ["modified"])[0]),
            authors=frozenset(map(_fold, values.get("author", []))),
            categories=frozenset(map(_fold, values.get("category", []))),
            replies_to=frozenset(map(_fold, values.get("in-reply-to", []))),
            kinds=frozenset(Change(value) for value in values.get("kind", [])),
            query=query,
            sync="sync" in values,
        )
    except ValueError:
        return None


def names_view(text: str) -> bool:
    """Whether a NodeID reads as a view of some feed, whatever feeds there are."""
    first = split_name(text)
    return any(_is_view(query) for _, query in ([first] if first else []) + shared_splits(text))


def _is_view(query: str) -> bool:
    try:
        return parse_view(query) is not None
    except FeedError:
        return False


def canonical(view: View) -> str:
    """The one text of a view: parameters sorted, values folded, defaults spelt out; empty for the bare node."""
    if not view.smart:
        return ""
    pairs = [("order", view.order.value)]
    pairs += [("author", value) for value in view.authors]
    pairs += [("category", value) for value in view.categories]
    pairs += [("in-reply-to", value) for value in view.replies_to]
    pairs += [("kind", kind.value) for kind in view.kinds]
    if view.query:
        pairs.append(("q", " ".join(sorted(view.query))))
    if view.sync:
        pairs.append(("sync", "true"))
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(pairs))


@lru_cache(4_096)
def from_canonical(text: str) -> View:
    """The view that `canonical` wrote. Raises ValueError for anything else."""
    if not text:
        return BARE
    view = parse_view(text)
    if view is None:
        raise ValueError(text)
    return view
