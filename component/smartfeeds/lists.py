"""The one writer of lists on the command line, and of reports in sentences.

A list fits the terminal, and 80 columns where there is none, so that a pipe always gets the same text. Texts such as
titles are cut for that. A text in the last column, such as the reason of a failure, is folded below its row. What
identifies something is neither cut nor folded: it gets a line of its own if it is too long. `--wide` shows all columns
as long as they are.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from unicodedata import combining, east_asian_width

import click

from smartfeeds.console import print_err, print_json
from smartfeeds.core.text import one_line

Command = TypeVar("Command", bound=Callable[..., Any])

WIDTH: Final = 80  # columns, where the output is no terminal
_LEAST_WIDTH: Final = 40  # of a terminal; a narrower one breaks the lines itself
_GAP: Final = 2
_INDENT: Final = 4  # of a text that has a line of its own
_LEAST_TEXT: Final = 20  # columns to which a text is cut before the columns of identifiers become narrower


def wide_option(command: Command) -> Command:
    """Add `--wide` to a command that lists."""
    return click.option("--wide", is_flag=True, help="Print all columns, however long the lines are.")(command)


def print_rows(
    rows: Sequence[dict[str, Any]],
    *,
    as_json: bool,
    empty: str,
    wide: bool = False,
    brief: Sequence[str] = (),
    cut: Sequence[str] = (),
) -> None:
    """Prints rows with the same columns as a table or as JSON. Prints `empty` if there are no rows.

    Without `wide` the table has the columns `brief`, by default all, and the texts of the columns `cut` are cut if the
    lines would be too long, or folded in the last column.
    """
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_err(empty)
        return
    print_columns(rows, list(rows[0]) if wide or not brief else brief, cut, wide=wide)


def print_columns(
    rows: Sequence[dict[str, Any]],
    keys: Sequence[str],
    cut: Sequence[str] = (),
    *,
    wide: bool = False,
    heading: bool = True,
    indent: int = 0,
) -> None:
    """Prints the columns `keys` of rows, each line behind `indent` blanks."""
    heads = [key.replace("_", " ") if heading else "" for key in keys]
    numbers = [all(isinstance(row[key], int | None) for row in rows) for key in keys]
    encoding = sys.stdout.encoding or "utf-8"
    cells = [[_cell(row[key], encoding) for key in keys] for row in rows]
    longest = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    limit = None if wide else _terminal_width() - indent
    texts = [key in cut for key in keys]
    widths = longest if limit is None else _fitted(heads, longest, texts, limit)
    table = _Table(widths, numbers, texts, limit, "…" if _can_write("…", encoding) else "...")
    for row in ([heads] if heading else []) + cells:
        for line in table.lines(row):
            click.echo(click.style(" " * indent + line, bold=True) if row is heads else " " * indent + line)


def folded(text: str, head: str = "", indent: int = 0) -> list[str]:
    """Returns the lines of a text, folded between words to fit the terminal, and 80 columns where there is none.

    The first line begins with `head`, the others with `indent` blanks. No word is cut, because it may be an identifier,
    a path or an address. One that is too long for its column gets a line of its own that begins further left.
    """
    return _folded(_cell(text, sys.stdout.encoding or "utf-8"), head, indent, _terminal_width())


def _folded(text: str, head: str, indent: int, limit: int) -> list[str]:
    lines, gap = [head], ""
    for word in text.split(" "):
        if _width(lines[-1] + gap + word) > limit:
            if lines[-1].strip():
                lines.append("")
            lines[-1] = " " * max(0, min(indent, limit - _width(word))) + word
        else:
            lines[-1] += gap + word
        gap = " "
    return [line.rstrip() for line in lines]


def _terminal_width() -> int:
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH) if sys.stdout.isatty() else WIDTH


def _can_write(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _cell(value: object, encoding: str) -> str:
    """Returns a value on one line, with escapes for the characters that the output cannot have."""
    text = "" if value is None else one_line(str(value))
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _width(text: str) -> int:
    """Returns the number of columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _fitted(heads: Sequence[str], longest: Sequence[int], texts: Sequence[bool], limit: int) -> list[int]:
    """Returns the widths of columns that together fit a line: first the longest texts become narrower, then the
    longest identifiers, whose long values then get lines of their own."""
    widths = list(longest)
    least = [max(len(head), _LEAST_TEXT) if text else len(head) for head, text in zip(heads, texts, strict=True)]
    for narrows in (texts, [not text for text in texts]):
        while sum(widths) + _GAP * (len(widths) - 1) > limit:
            place = max(
                (number for number, narrow in enumerate(narrows) if narrow and widths[number] > least[number]),
                key=lambda number: widths[number],
                default=None,
            )
            if place is None:
                break
            widths[place] -= 1
    return widths


class _Table:
    """The columns of a table. `limit` is the longest line, None for any."""

    def __init__(
        self, widths: Sequence[int], numbers: Sequence[bool], texts: Sequence[bool], limit: int | None, ellipsis: str
    ) -> None:
        self._widths = widths
        self._numbers = numbers
        self._texts = texts
        self._limit = limit
        self._ellipsis = ellipsis

    def lines(self, row: Sequence[str]) -> list[str]:
        """Returns the lines of a row. A value that is longer than its column ends its line, and the next one stands in
        its column of a new line. A text in the last column that is longer than it is folded below the row."""
        lines: list[str] = []
        line, start = "", 0
        for number, cell in enumerate(row):
            width = self._widths[number]
            if self._texts[number] and number == len(row) - 1 and self._limit is not None and _width(cell) > width:
                return [*filter(None, [*lines, line]), *_folded(cell, " " * _INDENT, _INDENT, self._limit)]
            text = self._cut(cell, width) if self._texts[number] else cell
            if self._numbers[number]:
                text = " " * (width - _width(text)) + text
            if text:
                place = start
                if line and (_width(line) + _GAP > start or not self._fits(place, text)):
                    lines.append(line)
                    line = ""
                if not self._fits(place, text):
                    # An identifier that is too long even for a line of its own: the terminal breaks it.
                    place = max(0, min(place, (self._limit or 0) - _width(text)))
                line += " " * (place - _width(line)) + text
            start += width + _GAP
        return [*lines, line]

    def _fits(self, place: int, text: str) -> bool:
        return self._limit is None or place + _width(text) <= self._limit

    def _cut(self, text: str, width: int) -> str:
        if self._limit is None or _width(text) <= width:
            return text
        room = width - len(self._ellipsis)
        beginning = ""
        for sign in text:
            if _width(beginning + sign) > room:
                break
            beginning += sign
        return beginning.rstrip() + self._ellipsis
