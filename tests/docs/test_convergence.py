"""The essay on convergence names the tests that carry it."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "convergence.md"
NAMED = re.findall(r"\[`(test_\w+)`\]\((\.\./tests/[\w/]+\.py)\)", PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("name", "file"), NAMED, ids=[f"{Path(file).stem}-{name}" for name, file in NAMED])
def test_named_test_exists(name: str, file: str) -> None:
    """In the file that the page points to."""
    assert re.search(rf"^\s*def {name}\(", (PAGE.parent / file).read_text("utf-8"), re.MULTILINE)


def test_every_obligation_names_a_test() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")][2:]

    assert len(rows) > 20
    assert [row for row in rows if "[`test_" not in row] == []
    assert sum(row.count("`test_") for row in rows) == len(NAMED)
