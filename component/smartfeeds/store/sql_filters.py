"""Filtered views in SQL: which items a view contains, and which of them have left it (`core.view.ViewStanding`).

The table `facet` has a row for each facet that any version of an item has had. Each bit of its column `states` is a
version with the facet (`rows.STATES`). The versions that match several filters at once are the bits that their rows
share. Each version is also a document of the full-text index, with its words and facets. So a search for words is one
query of that index, whatever other filters the view has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from smartfeeds.core.model import Edge
from smartfeeds.core.view import ANYTHING, Order, Traits, View
from smartfeeds.store.engine import Direction, Engine
from smartfeeds.store.index_tokens import index_tokens
from smartfeeds.store.rows import KEYS, digest
from smartfeeds.store.sql_tables import LOOK_UP_EACH

Facets = frozenset[str]


@dataclass(slots=True)
class SqlCondition:
    """A condition of a statement and its parameters."""

    text: str
    params: list[object] = field(default_factory=list)


@dataclass(slots=True)
class ItemQuery:
    """The part of a SELECT after FROM, and its parameters in order.

    `key` and `number` are the columns of its order. `join` adds the items, as `i`, if the source has rows of the index
    only. `present` is an expression that is true if the present version of an item matches.
    """

    source: str
    key: str
    number: str
    where: list[str] = field(default_factory=list)
    params: list[object] = field(default_factory=list)
    present: SqlCondition = field(default_factory=lambda: SqlCondition("TRUE"))
    join: str = ""

    def add(self, condition: str, *params: object) -> None:
        """Adds a condition."""
        self.where.append(condition)
        self.params.extend(params)

    @property
    def text(self) -> str:
        """The text after FROM."""
        return f"{self.source}{self.join} WHERE {' AND '.join(self.where) or 'TRUE'}"

    @property
    def rows(self) -> str:
        """The text after FROM without the items, for a count over an index that is up to date: a third of the work or
        less.
        """
        return replace(self, join="").text


def all_items(
    node_no: int,
    order: Order,
    after: Edge | None,
    before: Edge | None,
    source: str = "item i",
    params: Sequence[object] = (),
) -> ItemQuery:
    """Returns a query for every item of a node between two edges, or for those of them that are in `source`, which has
    these parameters.
    """
    query = ItemQuery(source, f"i.{KEYS[order]}", "i.item_no", params=list(params))
    query.add("i.node_no = ?", node_no)
    _between(query, after, before)
    return query


def filtered_items(
    db: Engine,
    node_no: int,
    view: View,
    after: Edge | None,
    before: Edge | None,
    *,
    publishers: bool,
    wildcard: bool,
    direction: Direction,
) -> ItemQuery:
    """Returns a query for the items of a filtered view between two edges, including tombstones.

    `publishers` is that of `View.facets`. `wildcard`: the node has items for which the index has ANYTHING. `direction`:
    in which direction of the order of the view the first of them are read; "" if all of them are read.
    """
    filters = list(view.facets(publishers=publishers))
    if view.query:
        return _searched_items(db, node_no, view, filters, after, before, wildcard=wildcard)
    lead = _lead(filters, view.facets(publishers=publishers, broad=False), ordered=bool(direction))
    if lead is not None:
        filters.remove(lead)
    if wildcard:
        filters = [facets | ANYTHING.facets for facets in filters]
        lead = lead | ANYTHING.facets if lead is not None else None
    if lead is None:
        query = all_items(node_no, view.order, after, before)
    else:
        query = _facet_items(db, node_no, lead, view.order, after, before, direction)
    # Rows of one value include their states. Rows of several values are looked up again.
    own = ["f.states"] if lead is not None and len(lead) == 1 else []
    others = filters if lead is None or own else [*filters, lead]
    row = "i" if lead is None else "f"
    if filters or lead is None:
        some = _one_state(row, node_no, others, own, present=False)
        query.add(some.text, *some.params)
    query.present = _one_state(row, node_no, others, own, present=True)
    return query


def _searched_items(
    db: Engine,
    node_no: int,
    view: View,
    filters: Sequence[Facets],
    after: Edge | None,
    before: Edge | None,
    *,
    wildcard: bool,
) -> ItemQuery:
    """Returns a query for the items with a document that has all words of a view and a facet of each filter."""
    parts = [Traits(words=frozenset({word})) for word in sorted(view.query)]
    parts += [Traits(facets) for facets in filters]
    digests: dict[str, bytes] = {}
    terms = [index_tokens(node_no, part, digests) for part in parts]
    anything = index_tokens(node_no, ANYTHING, digests) if wildcard else frozenset()
    query = all_items(node_no, view.order, after, before, *db.items_with([term | anything for term in terms]))
    query.present = SqlCondition(*db.present_has("i.item_no", terms))
    return query


def _lead(filters: Sequence[Facets], narrow: Sequence[Facets], *, ordered: bool) -> Facets | None:
    """The filter whose index rows are walked in the order of the view, or None if the items are walked.

    A filter that is not `narrow` can select most of a feed, and a page of the rows of several values must sort all of
    them. So such a filter leads a page only with one value and if no other filter does.
    """
    if narrow:
        return min(narrow, key=len)
    fewest = min(filters, key=len)
    return fewest if len(fewest) == 1 or not ordered else None


def _facet_items(
    db: Engine,
    node_no: int,
    facets: Facets,
    order: Order,
    after: Edge | None,
    before: Edge | None,
    direction: Direction,
) -> ItemQuery:
    """Returns a query for the items that have one of these facets in some version, in the order of the view.

    Rows of one value are in this order already, rows of several values are merged.
    """
    parts: list[str] = []
    params: list[object] = []
    for facet in map(digest, sorted(facets)):
        part = ItemQuery("facet", KEYS[order], "item_no")
        part.add("node_no = ? AND facet = ?", node_no, facet)
        _between(part, after, before)
        states = ", states" if len(facets) == 1 else ""
        parts.append(f"SELECT modified_us, created_us, item_no{states} FROM {part.text}")
        params += part.params
    rows = parts[0] if len(parts) == 1 else db.merged(parts, KEYS[order], direction)
    query = ItemQuery(f"({rows}) f", f"f.{KEYS[order]}", "f.item_no", params=params)
    query.join = f" {db.ordered_join} item i ON i.item_no = f.item_no"
    return query


def _one_state(
    row: str, node_no: int, filters: Sequence[Facets], states: Sequence[str], *, present: bool
) -> SqlCondition:
    """Returns the condition that one version of the row's item has a facet of every filter; with `present` the present
    version.

    `states` are the states of filters that are looked up already.
    """
    tables: list[str] = []
    query = ItemQuery("", "", "")
    for number, facets in enumerate(filters):
        name = f"x{number}"
        tables.append(f"facet {name}")
        query.add(f"{name}.node_no = ?", node_no)
        query.add(*_one_of(f"{name}.facet", facets))
        # With the two columns above the whole primary key: one look-up for each value.
        query.add(f"{name}.modified_us = {row}.modified_us AND {name}.item_no = {row}.item_no")
    shared = " & ".join([*states, *(f"x{number}.states" for number in range(len(filters)))])
    query.add(f"({shared}) & 1 <> 0" if present else f"({shared}) <> 0")
    where = " AND ".join(query.where)
    text = f"EXISTS (SELECT 1 FROM {', '.join(tables)} WHERE {where} {LOOK_UP_EACH})" if tables else f"({where})"
    return SqlCondition(text, query.params)


def _one_of(column: str, facets: Facets) -> tuple[str, *tuple[bytes, ...]]:
    marks = "= ?" if len(facets) == 1 else f"IN ({', '.join('?' * len(facets))})"
    return f"{column} {marks}", *map(digest, sorted(facets))


def _between(query: ItemQuery, after: Edge | None, before: Edge | None) -> None:
    if after:
        query.add(f"({query.key}, {query.number}) > (?, ?)", after.key_us, after.item_no)
    if before:
        query.add(f"({query.key}, {query.number}) <= (?, ?)", before.key_us, before.item_no)
