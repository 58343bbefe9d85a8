"""Lists in ad-hoc commands: one page is a table; a longer list is shown page by page, and its last step is a table.

A table of results is `reported` with `item` (XEP-0004 section 3.4). Gajim cannot submit a form with a table, so a page
of a longer list has one field of type `fixed` for each row, and the actions `prev`, `next` and `complete`.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted, cut
from smartfeeds.service.requests import ResultSet
from smartfeeds.xmpp.commands import CommandForm, CommandResult, Pages, Step, StepInput, note_result
from smartfeeds.xmpp.forms import FormField, FormTable, Values
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

# The bounds of a page and of a cell. A page fits into a stanza, whatever users write into names.
PAGE_ROWS = 50
CELL_CHARACTERS = 200
_POSITION = re.compile(r"(after|before):([0-9]{1,9}):(.+)", re.ASCII | re.DOTALL)

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CommandListPage:
    """Rows of a list. `hidden` are fields that carry what later pages need, `total` counts the entries of the list."""

    rows: Sequence[Values]
    pages: Pages
    total: int | None = None
    hidden: tuple[FormField, ...] = ()


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The page that a step requests: the entries after, or before, the entry with this UID and this index."""

    way: str
    index: int
    uid: str

    @property
    def request(self) -> ResultSetRequest:
        """The page in the terms of XEP-0059."""
        if self.way == "before":
            return ResultSetRequest(str(PAGE_ROWS), before=self.uid)
        return ResultSetRequest(str(PAGE_ROWS), after=self.uid or None)

    def page(
        self, text: str, rows: Sequence[Values], result_set: ResultSet | None, hidden: tuple[FormField, ...] = ()
    ) -> CommandListPage:
        """Returns the page with the pages around it. `text` is the position of this page."""
        if result_set is None or result_set.first is None or result_set.last is None:
            return CommandListPage(rows, Pages(text), None if result_set is None else result_set.count, hidden)
        start = max(0, self.index - len(rows)) if self.way == "before" else self.index
        end = start + len(rows)
        pages = Pages(
            text,
            f"before:{start}:{result_set.first}" if start else "",
            f"after:{end}:{result_set.last}" if result_set.is_longer_than(end) else "",
        )
        return CommandListPage(rows, pages, result_set.count, hidden)


def is_whole(result_set: ResultSet | None, entries: int) -> bool:
    """Returns whether a list with this result set has no more than so many entries."""
    return result_set is None or not result_set.is_longer_than(entries)


def position_of(step: StepInput) -> PagePosition:
    """Returns the page that a step requests. Raises CommandError(BAD_PAYLOAD)."""
    if not step.page:
        return PagePosition("after", 0, "")
    match = _POSITION.fullmatch(step.page)
    if match is None:
        raise CommandError(CommandFault.BAD_PAYLOAD, "the hidden field page is wrong; send all hidden fields back")
    return PagePosition(match[1], int(match[2]), match[3])


def list_steps(
    columns: Columns, what: str, read: Callable[[StepInput], Awaitable[CommandListPage]]
) -> tuple[Step, Step]:
    """Returns the two steps of a list: pages while there are several, and the table of a page at the end.

    `what` is the noun of an entry, such as "node". `read` returns the page that a step requests.
    """

    async def show(step: StepInput) -> CommandForm | CommandResult:
        page = await read(step)
        if step.page and not page.rows and not page.pages.next:
            return note_result("The list has changed. Start the command again.", "warn")
        if not page.pages.previous and not page.pages.next:
            return _result(columns, page.rows, what)
        total = "" if page.total is None else f"{counted(page.total, what)} in all. "
        lines = (FormField("", "fixed", (_line(columns, row),)) for row in page.rows)
        return CommandForm(
            (*page.hidden, *lines),
            instructions=f"{total}Next and Previous show other pages; Complete ends.",
            pages=page.pages,
        )

    async def finish(step: StepInput) -> CommandResult:
        return _result(columns, (await read(step)).rows, what)

    return show, finish


def _result(columns: Columns, rows: Sequence[Values], what: str) -> CommandResult:
    if not rows:
        return note_result(f"There is no {what}.")
    return CommandResult(table=FormTable(columns, tuple(tuple(map(cell, row)) for row in rows)))


def _line(columns: Columns, row: Values) -> str:
    first, *others = map(cell, row)
    facts = (f"{label}: {text}" for (_, label), text in zip(columns[1:], others, strict=True) if text)
    return "\n".join((first, ", ".join(facts)))


def cell(text: str) -> str:
    """Returns a text in one line, cut to the length of a cell."""
    return cut(text, CELL_CHARACTERS)
