"""docs/logs.md has every log event of the source with its level and fields, and no other."""

import ast
import re
from pathlib import Path

import pytest

from support.log_events import LogCalls, log_calls

ROW = re.compile(r"(?m)^\| `(\w+)` \| ([a-z, ]+) \| (.*?) \| (.+?) \| (.+?) \|$")


@pytest.fixture(scope="module")
def calls(root: Path) -> dict[str, LogCalls]:
    """The events in the source."""
    return log_calls(root / "component/smartfeeds")


@pytest.fixture(scope="module")
def rows(root: Path) -> list[tuple[str, ...]]:
    """The rows of the tables of events."""
    page = (root / "docs/logs.md").read_text("utf-8")
    return [match.groups() for match in ROW.finditer(page.partition("## ")[2])]


def test_page_has_every_event_once_and_no_other(calls: dict[str, LogCalls], rows: list[tuple[str, ...]]) -> None:
    assert sorted(name for name, *_ in rows) == sorted(calls)
    assert len(rows) > 50


def test_page_has_the_levels_and_fields_of_each_event(calls: dict[str, LogCalls], rows: list[tuple[str, ...]]) -> None:
    for name, levels, fields, *_ in rows:
        assert set(levels.split(", ")) == calls[name].levels, name
        assert set(re.findall(r"`(\w+)`", fields)) == calls[name].fields, name


def test_example_line_has_the_fields_of_its_event(root: Path, calls: dict[str, LogCalls]) -> None:
    (line,) = re.findall(r"(?s)```json\n(.*?)\n```", (root / "docs/logs.md").read_text("utf-8"))
    event = ast.literal_eval(line)

    assert set(event) == calls[event["event"]].fields | {"event", "level", "timestamp"}
    assert event["level"] in calls[event["event"]].levels


SOURCE = """
log = structlog.get_logger()

def work(many):
    write = log.warning if many else log.debug
    write("dropped", count=1)
    event, number = "incomplete", 0
    try:
        event = "complete"
    finally:
        log.info(event, number=number)
    (log.error if many else log.warning)("refused" if many else "offline", detail="")
    log.exception("failed", node=1)
    log.error("broken", exc_info=ValueError())
"""


def test_calls_are_read_in_all_forms(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(SOURCE)

    calls = log_calls(tmp_path)

    assert {name: (sorted(call.levels), sorted(call.fields)) for name, call in calls.items()} == {
        "dropped": (["debug", "warning"], ["count"]),
        "incomplete": (["info"], ["number"]),
        "complete": (["info"], ["number"]),
        "refused": (["error"], ["detail"]),
        "offline": (["warning"], ["detail"]),
        "failed": (["error"], ["exception", "node"]),
        "broken": (["error"], ["exception"]),
    }


def test_call_with_an_unknown_event_is_reported(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("log = structlog.get_logger()\n\ndef work(name):\n    log.info(name)\n")

    with pytest.raises(ValueError, match=r"work\.py:4"):
        log_calls(tmp_path)
