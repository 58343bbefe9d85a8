"""Lists of things, each described once: its columns, how a page of it is read, and what users do with its entries.

The views of a list derive from its `Resource`: the ad-hoc commands (`xmpp.resources`), the route (`http.resources`),
the table of the web administration, and the list of the command line (`cli.list_commands`). A list has a view if it has
texts for it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from smartfeeds.core.jid import Jid
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import Answer, Request, ResultSet
from smartfeeds.service.standing import Audience, Standing

E = TypeVar("E")
T = TypeVar("T")
Row = dict[str, Any]
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who reads a list, or changes something in it. `node` is the node of a list that every node has."""

    handle: Callable[[Request], Awaitable[object]]
    actor: Jid
    service: str
    node: str = ""

    async def ask(self, request: Request, kind: type[T]) -> T:
        """Returns the response of the service. Raises FeedError, StoreError."""
        return await ask(self.handle, request, kind)


@dataclass(frozen=True, slots=True)
class Column(Generic[E]):
    """A column of a list.

    `key` is the member of JSON and `value` returns its value for an entry; None if JSON does not have the column.
    `label` is its heading, in pages in the language of the reader; `heading` replaces it there. `kind` is how pages
    write it: `number`, `time`, `code`, `word` or `progress`, else as text. A word is translated: `words` are all of
    them, and those that stand for a time. In forms the column is the field `var`, by default `key`, and `text` writes
    it, by default as JSON does.
    """

    key: str
    value: Callable[[E], Any] | None
    label: str = ""
    kind: str = ""
    _: KW_ONLY
    heading: str = ""
    text: Callable[[E], str] | None = None
    var: str = ""
    words: tuple[str, ...] = ()

    def write(self, entry: E) -> str:
        """Returns the text in a form."""
        if self.text is not None:
            return self.text(entry)
        value = None if self.value is None else self.value(entry)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class ListRequest(Request):
    """A page of a list that has a request of its own (`reader`). The answer is a `ListAnswer`."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class ListAnswer(Answer, Generic[E]):
    """A page of a list. `result_set` is None if the list is complete, or has no result sets: such a list continues
    behind the position `after`, "" at its end."""

    entries: Sequence[E]
    result_set: ResultSet | None = None
    after: str = ""


ReadPage = Callable[[Caller, ResultSetRequest, bool], Awaitable[ListAnswer[E]]]


def reader(request: type[ListRequest]) -> ReadPage[Any]:
    """Returns the function that reads a list by its request."""

    async def read(caller: Caller, page: ResultSetRequest, _narrow: bool) -> ListAnswer[Any]:
        return await caller.ask(request(caller.actor, caller.service, page), ListAnswer)

    return read


class Places(NamedTuple):
    """The positions in a list without result sets, which is read forward only: their pattern, and the first one."""

    pattern: str
    first: str


class Filter(NamedTuple):
    """A flag that shortens a list: its name, its label and text in forms, and its text for HTTP."""

    name: str
    label: str
    description: str
    text: str


class Choice(NamedTuple, Generic[E]):
    """The field of a form that selects an entry: its name and label, and `option`, which returns value and text of an
    entry. `newest`: the newest entries come first."""

    var: str
    label: str
    max_bytes: int
    option: Callable[[E], tuple[str, str]]
    description: str = ""
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form in a page. `kind` is text, lines, choice or flag, `choices` are pairs of value and label."""

    name: str
    label: str
    kind: str = "text"
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    required: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A form below the table of a page: its heading, the label of its button, and its fields."""

    heading: str
    button: str
    fields: tuple[Field, ...]


class ActionResult(NamedTuple):
    """The result of an action: `note` for forms; for pages the key of the message and the path of the next page ("" for
    the same one), or a secret text, which no other page can show; and `body`, the object that programs get."""

    note: str = ""
    done: str = ""
    path: str = ""
    secret: str = ""
    body: Row | None = None


class ActionRoute(NamedTuple):
    """The operation of an action over HTTP: its method, its name and what it does.

    `subject` is the field that the end of the path has, and the name of this part of the path. `members` are those of
    the body, whose schema has the name `body`. `answers` has the schema of the response by its status.
    """

    method: str
    name: str
    summary: str
    subject: tuple[str, str] = ("", "")
    members: tuple[str, ...] = ()
    body: str = ""
    answers: Mapping[int, Mapping[str, Any]] = {204: {}}
    errors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """An action of users on a list or on an entry of it. `perform` receives the fields of a form or of an object of
    JSON.

    `title` and `audience` are those of an ad-hoc command for one entry, `NAME-NOUN`. In a page `button` is shown in
    each row and sends the member `key`; `for_admins` shows it only to admins. `form` returns a form below the table.
    `route` is its operation over HTTP.
    """

    name: str
    perform: Callable[[Caller, Fields], Awaitable[ActionResult]]
    title: str = ""
    audience: Audience = Audience.OWNERS
    button: str = ""
    key: str = ""
    for_admins: bool = False
    form: Callable[[Jid, Standing], Form | None] | None = None
    route: ActionRoute | None = None


@dataclass(frozen=True, slots=True)
class ListCommand:
    """The ad-hoc command of a list: its name, its title, its columns, and who may run it."""

    name: str
    title: str
    columns: tuple[str, ...]
    audience: Audience = Audience.OWNERS


@dataclass(frozen=True, slots=True)
class TablePage:
    """The page of a list: its title, a sentence about it, the text of an empty list, and its columns. `links` says
    whether the first column leads to the pages of a node."""

    title: str
    about: str
    empty: str
    columns: tuple[str, ...]
    links: bool = False


class Brief(NamedTuple):
    """The list on the command line: its columns without `--wide`, and those whose texts may be cut to fit a line.

    The other columns identify something, or are short: they are never cut.
    """

    columns: tuple[str, ...]
    cut: tuple[str, ...] = ()


_ALL_COLUMNS: Final = Brief(())


@dataclass(frozen=True, slots=True)
class Resource(Generic[E]):
    """A list. `columns` are in the order of JSON.

    `name` is its path over HTTP, and `noun` names an entry. `empty` is what the command line prints for an empty list,
    and `brief` is its list; by default it has all columns.
    `read` returns a page; the flag is that of `narrow`. `of_node`: each node has such a list. The list has an ad-hoc
    command if it has a `command`, a route if it has a `summary`, a page if it has a `table`.
    """

    name: str
    noun: str
    columns: tuple[Column[E], ...]
    empty: str = ""
    brief: Brief = _ALL_COLUMNS
    read: ReadPage[E] | None = None
    of_node: bool = False
    places: Places | None = None
    narrow: Filter | None = None
    command: ListCommand | None = None
    summary: str = ""
    table: TablePage | None = None
    choice: Choice[E] | None = None
    actions: tuple[Action, ...] = ()

    def row(self, entry: E) -> Row:
        """Returns an entry as an object of JSON."""
        return {column.key: column.value(entry) for column in self.columns if column.value is not None}

    def pick(self, keys: Sequence[str]) -> tuple[Column[E], ...]:
        """Returns the columns with these keys, in this order."""
        by_key = {column.key: column for column in self.columns}
        return tuple(by_key[key] for key in keys)


def text_of(fields: Fields, name: str, choices: Sequence[str] = (), default: str | None = None) -> str:
    """Returns a text of fields. Raises FeedError(BAD_REQUEST) for a missing one, or one that is not of the choices."""
    value = fields.get(name, default)
    if not isinstance(value, str) or (not value and default is None) or (choices and value not in choices):
        raise FeedError(Condition.BAD_REQUEST, f"{name}: {'one of ' + ', '.join(choices) if choices else 'a text'}")
    return value


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of rows. `total` counts the whole list, None if it is not counted. `after` is the position behind the
    page, "" at the end of the list."""

    rows: tuple[Row, ...]
    total: int | None
    after: str


async def read_rows(resource: Resource[E], caller: Caller, most: int, after: str, *, narrow: bool = False) -> RowPage:
    """Returns a page of at most `most` rows behind a position, "" for the first page. Raises FeedError.

    A page of a list with a filter may be empty although the list continues.
    """
    assert resource.read is not None  # callers pass lists that are read in pages

    async def read(count: int, position: str) -> ListAnswer[E]:
        assert resource.read is not None
        return await resource.read(caller, ResultSetRequest(str(count), position or None), narrow)

    page = await read(most, after)
    rows = tuple(map(resource.row, page.entries))
    if resource.places is not None or page.result_set is None:
        return RowPage(rows, None, page.after)
    last = page.result_set.last or ""
    # The service may cut a page short, so only a further request shows whether there are more rows.
    more = bool(last) and bool((await read(1, last)).entries)
    return RowPage(rows, page.result_set.count, last if more else "")
