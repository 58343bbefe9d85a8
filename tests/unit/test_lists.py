"""The writer of lists on the command line: 80 columns in a pipe, whole identifiers, cut texts."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner

from smartfeeds.app.sides import all_resources
from smartfeeds.lists import WIDTH, folded, print_columns, print_rows
from smartfeeds.service.resources import Resource

LONG = "x" * 300
REASON = " ".join(f"word-{number}" for number in range(40))
# The lists of features that have no resource of the service, and those of the kernel without one.
DICTS = {
    "items": (("id", "title", "modified"), ("title",)),
    "search": (("node", "id", "title", "modified"), ("title",)),
    "subscriptions": (("node", "view", "jid", "state"), ()),
}


def printed(work: Callable[[], None], charset: str = "utf-8") -> str:
    result = CliRunner(charset=charset).invoke(click.Command("list", callback=work))
    assert result.exit_code == 0, result.exception
    return result.stdout


def row_of(columns: tuple[str, ...], cut: tuple[str, ...], length: int) -> dict[str, Any]:
    """A row with long values: a text that may be cut, a text in the last column, and identifiers of a length, each with
    a name of its own."""
    texts = {name: REASON if name == columns[-1] else LONG for name in cut}
    return {name: texts.get(name) or (f"{name}-" * length)[:length] for name in columns}


def briefs() -> list[Any]:
    resources: list[Resource[Any]] = [resource for resource in all_resources() if resource.brief.columns]
    assert len(resources) >= 2
    rows = {resource.name: resource.brief for resource in resources} | DICTS
    return [pytest.param(*brief, id=name) for name, brief in rows.items()]


@pytest.mark.parametrize("length", [1, 12, 30, 60, 78])
@pytest.mark.parametrize("charset", ["utf-8", "ascii"])
@pytest.mark.parametrize(("columns", "cut"), briefs())
def test_lines_fit_and_identifiers_are_whole(
    columns: tuple[str, ...], cut: tuple[str, ...], charset: str, length: int
) -> None:
    rows = [row_of(columns, cut, length), dict.fromkeys(columns, "y")]
    text = printed(lambda: print_rows(rows, as_json=False, empty="", brief=columns, cut=cut), charset)

    for line in text.splitlines():
        assert len(line) <= WIDTH and line == line.rstrip()
    for name in set(columns) - set(cut):
        assert any(rows[0][name] in line for line in text.splitlines()), name
    ellipsis = "..." if charset == "ascii" else "…"
    assert (ellipsis in text) is (LONG in rows[0].values()) and LONG not in text
    if columns[-1] in cut:
        assert REASON in " ".join(text.split())


def test_identifier_that_is_longer_than_a_line_has_a_line_of_its_own() -> None:
    rows = [{"id": "i" * 100, "title": "t", "at": "now"}, {"id": "j", "title": "u", "at": "then"}]
    lines = printed(lambda: print_rows(rows, as_json=False, empty="", cut=("title",))).splitlines()

    assert lines[1] == "i" * 100
    assert lines[2].split() == ["t", "now"]
    assert lines[3].split() == ["j", "u", "then"]
    assert lines[2].index("t") == lines[3].index("u") == lines[0].index("title")


def test_all_columns_are_as_long_as_they_are() -> None:
    rows = [{"id": "i" * 100, "more": LONG, "note": "n"}]
    lines = printed(lambda: print_rows(rows, as_json=False, empty="", wide=True, brief=("id",), cut=("more",)))

    assert lines.splitlines()[1] == f"{'i' * 100}  {LONG}  n"


def test_table_of_short_values_has_its_natural_widths() -> None:
    rows = [{"node": "news", "items": 7, "title": "News"}, {"node": "a", "items": 12, "title": ""}]
    assert printed(lambda: print_rows(rows, as_json=False, empty="", cut=("title",))).splitlines() == [
        "node  items  title",
        "news      7  News",
        "a        12",
    ]


def test_signs_that_take_two_columns_are_counted_twice() -> None:
    rows = [{"title": "日本語" * 40, "id": "a"}, {"title": "e\u0301" * 70, "id": "b"}]
    first, second = printed(lambda: print_rows(rows, as_json=False, empty="", cut=("title",))).splitlines()[1:]

    assert 2 * first.count("日") + 2 * first.count("本") + 2 * first.count("語") <= WIDTH
    assert first.endswith(("…  a", "…   a"))
    assert second.startswith("e\u0301" * 70)


def test_hostile_value_stays_on_its_line() -> None:
    rows = [{"id": "a\nb\x1b[2J\u202e", "title": "[bold]x[/bold]\r\n"}]
    lines = printed(lambda: print_rows(rows, as_json=False, empty="")).splitlines()

    assert len(lines) == 2 and "\x1b" not in lines[1] and "[bold]x[/bold]" in lines[1]


def test_value_that_the_output_cannot_have_is_escaped() -> None:
    assert "\\xe4" in printed(lambda: print_rows([{"id": "ä"}], as_json=False, empty=""), "ascii")


def test_text_at_the_end_of_a_row_is_folded_below_it() -> None:
    """A reason that is cut says nothing. A short one stays on the line of its row."""
    rows = [{"number": 1, "node": "n", "reason": REASON}, {"number": 12, "node": "m", "reason": "answered 404"}]
    lines = printed(lambda: print_rows(rows, as_json=False, empty="", cut=("reason",))).splitlines()

    assert lines[1] == "     1  n"
    assert all(line.startswith("    word-") for line in lines[2:-1])
    assert " ".join(" ".join(lines[2:-1]).split()) == REASON
    assert lines[-1] == "    12  m     answered 404"


def test_rows_below_a_line_are_indented_and_have_no_heading() -> None:
    rows = [{"what": "wins", "title": LONG, "tag": "t"}, {"what": "conflict", "title": "", "tag": "u"}]
    text = printed(lambda: print_columns(rows, ("what", "title", "tag"), ("title",), heading=False, indent=2))

    assert text.startswith("  wins      xxx") and len(text.splitlines()[0]) == WIDTH


def test_json_has_all_columns() -> None:
    rows = [{"id": "i", "more": LONG}]
    assert json.loads(printed(lambda: print_rows(rows, as_json=True, empty="", brief=("id",)))) == rows


@pytest.mark.parametrize("length", [1, 12, 60, 76, 80, 120])
@pytest.mark.parametrize(("head", "indent"), [("", 2), ("ok    store  ", 13), ("             -> ", 16)])
def test_sentences_fold_between_words_and_no_word_is_cut(head: str, indent: int, length: int) -> None:
    path = ("/srv-é" * length)[:length]
    text = f"the file {path} has another owner, {'and so on ' * 20}until {path} and {path}"
    lines = printed(lambda: print("\n".join(folded(text, head, indent)))).splitlines()

    assert lines[0].startswith(head.rstrip()) and " ".join(lines).split() == [*head.split(), *text.split()]
    for line in lines[1:]:
        assert line == line.rstrip() and (line.startswith(" " * indent) or path in line)
    assert all(len(line) <= WIDTH or line == path for line in lines)


def test_sentence_cannot_control_the_terminal() -> None:
    """Wide signs count twice, and what the output cannot have is escaped."""
    assert printed(lambda: print(folded("a\nb\x1b[2J"))) == "['a b [2J']\n"
    assert printed(lambda: print(folded("ä")), "ascii") == "['\\\\xe4']\n"
    assert len(folded("日本 " * 20)) == 2


PROGRAM = (
    "from smartfeeds.lists import print_rows;"
    f"print_rows([{{'title': {LONG!r}, 'id': 'ii'}}], as_json=False, empty='', cut=('title',))"
)


def test_pipe_does_not_depend_on_the_terminal() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "COLUMNS": columns, "TERM": term},
            capture_output=True,
            check=True,
        ).stdout
        for columns, term in (("40", "xterm"), ("200", "dumb"), ("", ""))
    }
    assert len(outputs) == 1
    assert max(map(len, outputs.pop().decode().splitlines())) == WIDTH


def test_terminal_has_its_own_width() -> None:
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        subprocess.run([sys.executable, "-c", PROGRAM], stdin=slave, stdout=slave, env=environment, check=True)
        os.close(slave)
        text = os.read(master, 4096).decode()
    finally:
        os.close(master)
    assert len(text.splitlines()[1]) == 60 and "\x1b[1m" in text
