"""Filtered views in SQL: which items a view contains, and which of those have left it (`core.view.Standing`).

The table `facet` has a row for each facet that any version of an item has had; bit n of its column `states` says that
state n has it (`rows.STATES`). So the versions that match several filters at once are the bits that their rows share.
The words of a version are a document of the full text whose number holds the item and the state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from smartfeeds.core.model import Edge
from smartfeeds.core.view import ANYTHING, Order, View
from smartfeeds.store.engine import Engine
from smartfeeds.store.rows import KEYS, STATES, digest

Facets = frozenset[str]

_NUMBERS = f"(VALUES {', '.join(f'({state})' for state in range(STATES))}) n"


@dataclass(slots=True)
class Condition:
    """A part of a statement and its parameters."""

    text: str
    params: list[object] = field(default_factory=list)


@dataclass(slots=True)
class Query:
    """The rest of a SELECT: what stands behind FROM, and its parameters in order.

    `key` and `number` are the columns of its order. `join` brings in the items, as `i`, where the source has rows of
    the index only. `present` is an expression that is true where the present version of an item matches.
    """

    source: str
    key: str
    number: str
    where: list[str] = field(default_factory=list)
    params: list[object] = field(default_factory=list)
    present: Condition = field(default_factory=lambda: Condition("1"))
    join: str = ""

    def add(self, condition: str, *params: object) -> None:
        """One condition more."""
        self.where.append(condition)
        self.params.extend(params)

    @property
    def text(self) -> str:
        """What stands behind FROM."""
        return f"{self.source}{self.join} WHERE {' AND '.join(self.where) or '1'}"

    @property
    def rows(self) -> str:
        """The same for an index that is up to date and a count, without the items: a third of the work or less."""
        return replace(self, join="").text


def all_items(node_no: int, order: Order, after: Edge | None, before: Edge | None) -> Query:
    """Every item of a node between two edges."""
    key = f"i.{KEYS[order]}"
    query = Query("item i", key, "i.item_no")
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
) -> Query:
    """The items of a filtered view between two edges, tombstones too. `publishers` as in `View.facets`; `wildcard`:
    the node has items of which the index remembers ANYTHING."""
    filters = list(view.facets(publishers=publishers))
    lead = _lead(view, filters)
    if lead is not None:
        filters.remove(lead)
    if wildcard:
        filters = [facets | ANYTHING.facets for facets in filters]
        lead = lead | ANYTHING.facets if lead is not None else None
    documents = Condition(*db.documents_with(node_no, view.query, wildcard=wildcard)) if view.query else None
    if lead is None:
        query = all_items(node_no, view.order, after, before)
        if documents is not None:
            # Lets the planner begin with the full text where the words are rare.
            query.add(f"i.item_no IN (SELECT document / {STATES} FROM ({documents.text}))", *documents.params)
    else:
        query = _facet_items(node_no, lead, view.order, after, before)
    # One value's rows come with their states; those of several are looked up again.
    own = ["f.states"] if lead is not None and len(lead) == 1 else []
    others = filters if lead is None or own else [*filters, lead]
    row = "i" if lead is None else "f"
    if filters or (lead is not None and documents is not None):
        some = _one_state(row, node_no, others, own, documents, present=False)
        query.add(some.text, *some.params)
    query.present = _one_state(row, node_no, others, own, documents, present=True)
    return query


def _lead(view: View, filters: Sequence[Facets]) -> Facets | None:
    """The filter whose index rows are walked in the order of the view, or None where the items are.

    Several kinds of change are most of a feed, and the rows of several values must be sorted; and where words are
    asked for, the full text is the better beginning. So `kind` leads only with one value and alone.
    """
    narrow = filters[:-1] if view.kinds else filters
    if narrow:
        return min(narrow, key=len)
    return filters[0] if len(view.kinds) == 1 and not view.query else None


def _facet_items(node_no: int, facets: Facets, order: Order, after: Edge | None, before: Edge | None) -> Query:
    """The items that have, in some state, one of these facets, in the order of the view: the rows of one value come in
    it, those of several are merged first."""
    inner = Query("facet", KEYS[order], "item_no")
    inner.add("node_no = ?", node_no)
    inner.add(*_one_of("facet", facets))
    _between(inner, after, before)
    distinct, states = ("", ", states") if len(facets) == 1 else ("DISTINCT ", "")
    rows = f"SELECT {distinct}modified_us, created_us, item_no{states} FROM {inner.text}"
    query = Query(f"({rows}) f", f"f.{inner.key}", "f.item_no", params=inner.params)
    query.join = " CROSS JOIN item i ON i.item_no = f.item_no AND i.modified_us = f.modified_us"
    return query


def _one_state(
    row: str,
    node_no: int,
    filters: Sequence[Facets],
    states: Sequence[str],
    documents: Condition | None,
    *,
    present: bool,
) -> Condition:
    """Whether one state of the item of a row has a facet of every filter, and its document is among these; with
    `present` the present state. `states` are the states of filters that are looked up already."""
    tables: list[str] = []
    query = Query("", "", "")
    for number, facets in enumerate(filters):
        name = f"x{number}"
        tables.append(f"facet {name}")
        query.add(f"{name}.node_no = ?", node_no)
        query.add(*_one_of(f"{name}.facet", facets))
        query.add(f"{name}.modified_us = {row}.modified_us AND {name}.item_no = {row}.item_no")
    shared = " & ".join([*states, *(f"x{number}.states" for number in range(len(filters)))])
    if present:
        if shared:
            query.add(f"({shared}) & 1 <> 0")
        if documents is not None:
            # Asked for the items of one page only: some small look-ups are cheaper than all documents once more.
            one = f"SELECT 1 FROM ({documents.text}) d WHERE d.document = {row}.item_no * {STATES}"
            query.add(f"EXISTS ({one})", *documents.params)
    elif documents is None:
        query.add(f"({shared}) <> 0")
    else:
        tables.append(_NUMBERS)
        query.add(f"(({shared}) >> n.column1) & 1 <> 0")
        document = f"{row}.item_no * {STATES} + n.column1"
        query.add(f"{document} IN (SELECT document FROM ({documents.text}))", *documents.params)
    where = " AND ".join(query.where)
    text = f"EXISTS (SELECT 1 FROM {', '.join(tables)} WHERE {where})" if tables else f"({where})"
    return Condition(text, query.params)


def _one_of(column: str, facets: Facets) -> tuple[str, *tuple[bytes, ...]]:
    marks = "= ?" if len(facets) == 1 else f"IN ({', '.join('?' * len(facets))})"
    return f"{column} {marks}", *map(digest, sorted(facets))


def _between(query: Query, after: Edge | None, before: Edge | None) -> None:
    if after:
        query.add(f"({query.key}, {query.number}) > (?, ?)", after.key_us, after.item_no)
    if before:
        query.add(f"({query.key}, {query.number}) <= (?, ?)", before.key_us, before.item_no)
