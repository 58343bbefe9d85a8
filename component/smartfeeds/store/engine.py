"""What the SQL store needs of a database: one connection, used synchronously by one thread.

The SQL of `store/sql_*.py` keeps to what SQLite and PostgreSQL share; an engine holds the rest: placeholders (the
statements write `?`), keys of new rows, row locks, full text. Every method raises StoreError with what the operator
has to do; values reach the database as bound parameters only (xep-map 248).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from smartfeeds.core.view import Traits

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

    def tokens(self, node_no: int, traits: Traits) -> frozenset[str]:
        """The facets and words of a version of an item as the full text holds them."""

    def documents(self, item_no: int) -> dict[int, str]:
        """The versions of an item, by number (`rows.STATES`): their tokens, each between two spaces. A text, because
        most callers look for a few tokens, and sets of all of them take ten times as long to make."""

    def put_documents(self, documents: Mapping[tuple[int, int], frozenset[str]]) -> None:
        """Stores the tokens of versions, by item_no and number, in place of those that they had; a version without
        tokens is removed. Many at once take a third of the time."""

    def drop_documents(self, item_nos: Sequence[int]) -> None:
        """Takes items out of the full text."""

    def documents_with(self, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        """A query, and its parameters, for the numbers of the documents that hold a token of each term, as column
        `document`."""

    def present_has(self, item_no: str, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        """An expression, and its parameters: whether the present version of an item, whose number is the SQL text
        `item_no`, holds a token of each term. For the items of a page."""
