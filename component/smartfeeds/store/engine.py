"""The interface between the SQL store and a database: one connection, used synchronously by one thread.

The statements in `store/sql_*.py` use the SQL that SQLite and PostgreSQL share. An engine implements the rest:
transactions, placeholders (statements write `?`), keys of new rows, row locks, ranges of two columns, the order of
joins, full text. Every method raises StoreError with advice for the operator. Values reach the database as bound
parameters only (xep-map 248).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from smartfeeds.core.model import Edge
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.database_state import DatabaseState
from smartfeeds.store.sql_tables import Table

T = TypeVar("T")
Row = tuple[Any, ...]
Direction = Literal["ASC", "DESC", ""]  # of an order; "" for no order


class AheadRows(NamedTuple):
    """The rows that touches name. A key without a row does not exist. Other fields are as in `LookedAhead`."""

    nodes: list[Row]
    ids: list[tuple[int, str]]  # node_no and an id or a sync id: the keys of `by_id` and `by_sync`
    by_id: list[Row]  # node_no and the columns ITEM_ROW
    by_sync: list[Row]
    absent_names: Sequence[str] = ()
    blocks_version: int | None = None
    jids: Sequence[tuple[int, str]] = ()  # node_no and a bare JID: the keys of `affiliations`
    affiliations: Sequence[Row] = ()  # node_no, JID, affiliation
    # item_no and id of the first items, by node_no, order, key and the number of items that were asked for.
    groups: Sequence[tuple[tuple[int, Order, int, int], list[tuple[int, str]]]] = ()
    wildcards: Sequence[tuple[int, bool]] = ()
    unused_names: Sequence[str] = ()
    unsubscribed: Collection[tuple[int, str]] = ()
    sums: Sequence[tuple[str, int]] = ()  # counts by their names (`TallyReads.sum_once`)
    new_keys: Mapping[str, Sequence[int]] = {}  # keys for new rows by the name of their table, ascending


class TransientError(StoreError):
    """The transaction failed without effect and may succeed when it runs again: a lost connection, a deadlock, a row
    that another process has added at the same time.

    `reason` is a label of metrics: `lost`, `deadlock`, `serialization`, `unique` or `rollback`.
    """

    def __init__(self, text: str, reason: str = "lost") -> None:
        super().__init__(text)
        self.reason = reason


class OverBudgetError(Exception):
    """A work needs more steps than `Engine.allow` permits. Run it again without this bound."""


class Engine(Protocol):
    """A connection, and the transaction that is open on it."""

    def begin(self) -> None:
        """Starts a transaction that may write."""

    def begin_read(self) -> None:
        """Starts a snapshot."""

    def end_read(self) -> None:
        """Ends the snapshot if one is open."""

    def commit(self) -> None:
        """Commits the transaction; its changes are durable afterwards."""

    def rollback(self) -> None:
        """Rolls back the transaction if one is open."""

    def allow(self, steps: int | None) -> None:
        """Limits the reads that follow to a number of steps; they raise OverBudgetError beyond it. None removes the
        limit. A step is a small piece of the engine's work.
        """

    @property
    def for_update(self) -> str:
        """The end of a SELECT that locks its row; empty if writers are serialised anyway."""

    def lock_text(self, text: str, *, shared: bool = False) -> None:
        """Makes other transactions that lock this text wait until this one ends; nothing if writers are serialised.

        Transactions with a shared lock do not wait for each other.
        """

    @property
    def tally_slot(self) -> int:
        """The slot of the rows of `sql_tallies` that this connection changes, so that no other connection waits."""

    @property
    def skip_locked(self) -> str:
        """As `for_update`, for a SELECT that ignores rows which another transaction has locked."""

    @property
    def has_failed(self) -> bool:
        """Whether the transaction must be rolled back, because the connection is lost or a statement has failed."""

    @property
    def is_far(self) -> bool:
        """Whether each query costs a round trip, so that reading more at once is faster."""

    def look_ahead(self, touches: Sequence[Touch], *, writing: bool) -> AheadRows | None:
        """Reads what these touches name. A writer locks the nodes. None if the engine does not gain from it."""

    def database_state(self) -> DatabaseState | None:
        """Returns the state of the server; None if the database is a file."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Returns all rows of a query."""

    def rows_of(self, queries: Sequence[tuple[str, Sequence[object]]]) -> list[list[Row]]:
        """Returns all rows of each of several queries, which may share a round trip."""

    def row(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        """Returns the first row of a query, or None."""

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        """Runs a statement that changes rows. An engine may send it later, before the next query or the commit."""

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        """Runs a statement once for each set of parameters, as `run`."""

    @property
    def ordered_join(self) -> str:
        """The join that reads the rows of its left side in their order, each with the row of its right side."""

    def merged(self, selects: Sequence[str], key: str, direction: Direction) -> str:
        """Returns a query for the rows of several queries, each row once, by the columns `key` and `item_no`, which
        identify a row. Each query reads its rows from an index in this order.
        """

    def ranges(self, key: str, after: Edge | None, before: Edge | None) -> list[tuple[str, list[int]]]:
        """Returns the range between two edges as disjoint conditions on the columns `key` and `item_no`, ascending.

        Each has its parameters and is one range of an index on these columns. A range without bounds has the
        condition "". No condition is returned for an empty range.
        """

    def add(self, table: Table, values: Sequence[object]) -> int:
        """Adds a row whose key the database assigns. Returns the key."""

    def insert(self, table: Table, values: Sequence[object]) -> None:
        """Adds a row with its key. The engine may send it later, as with `run`, and behind new rows of nodes."""

    def add_many(self, table: Table, rows: Sequence[Sequence[object]]) -> None:
        """Adds rows whose keys the database assigns, ascending."""

    def within(self, steps: int, work: Callable[[], T]) -> T | None:
        """Returns the result of the work, or None if it needs more than this number of steps (`allow`)."""

    def facets(self, node_no: int, item_nos: Sequence[int]) -> list[Row]:
        """Returns the columns item_no, facet and states of the facets of these items. The cost grows with the items."""

    def documents(self, item_nos: Sequence[int]) -> dict[int, dict[int, str]]:
        """Returns the versions of items, by item_no and number (`rows.STATES`): their tokens, each between two spaces.

        The value is a text, because most callers search for a few tokens, and building sets takes ten times as long.
        """

    def put_documents(self, documents: Mapping[tuple[int, int], frozenset[str]]) -> None:
        """Replaces the tokens of versions, by item_no and number. A version without tokens is removed.

        Storing many versions in one call takes a third of the time.
        """

    def drop_documents(self, item_nos: Sequence[int]) -> None:
        """Removes items from the full-text index."""

    def items_with(self, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        """Returns the items that have a document with a token of each term, in any node: a text after FROM that names
        them `i`, and its parameters. The cost of a few documents does not grow with the items.
        """

    def present_has(self, item_no: str, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        """Returns an expression and its parameters: whether the present version of an item has a token of each term.

        `item_no` is the SQL text of the item's number. The expression is meant for the items of a page.
        """
