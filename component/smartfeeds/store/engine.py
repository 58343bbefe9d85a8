"""What the SQL store needs of a database: one connection, used synchronously by one thread.

The SQL of `store/sql_*.py` keeps to what SQLite and PostgreSQL share; an engine holds the rest: placeholders (the
statements write `?`), keys of new rows, row locks, full text. Every method raises StoreError with what the operator
has to do; values reach the database as bound parameters only (xep-map 248).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Engine(Protocol):
    """A connection inside a transaction."""

    @property
    def for_update(self) -> str:
        """What a SELECT ends with to lock its row; empty where writers are alone anyway."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""

    def row(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        """The first row of a query that has at most one."""

    def run(self, sql: str, params: Sequence[object] = ()) -> int:
        """Runs a statement; how many rows it changed."""

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        """Runs a statement once for each set of parameters."""

    def insert(self, sql: str, params: Sequence[object], key: str) -> int:
        """Runs an INSERT of one row; the number that its column `key` was given."""

    def within(self, steps: int, work: Callable[[], T]) -> T | None:
        """What the work returns, or None where it needs more than this many steps (`SqliteEngine.allow`)."""

    def tokens(self, node_no: int, words: Iterable[str]) -> frozenset[str]:
        """Words of items of a node as the full text holds them."""

    def documents(self, item_no: int) -> dict[int, frozenset[str]]:
        """The tokens of an item by state (`rows.STATES`); a state without words has no document."""

    def put_document(self, item_no: int, state: int, tokens: frozenset[str]) -> None:
        """Stores the tokens of one state of an item, in place of those it had."""

    def drop_documents(self, item_nos: Sequence[int]) -> None:
        """Takes items out of the full text."""

    def documents_with(self, node_no: int, words: frozenset[str], *, wildcard: bool) -> tuple[str, list[object]]:
        """A query, and its parameters, for the numbers of the documents of this node that hold all these words, as
        column `document`. With `wildcard` the word of `core.view.ANYTHING` stands for every word."""
