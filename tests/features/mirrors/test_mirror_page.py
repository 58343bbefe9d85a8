"""The status table of the page on mirrors quotes what the program says, not what it once said."""

import ast
import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# The modules whose texts `smartfeeds mirror status` shows.
SPEAKERS = (
    *sorted((ROOT / "component/smartfeeds/features/mirrors").glob("*.py")),
    ROOT / "component/smartfeeds/service/merging.py",
    ROOT / "component/smartfeeds/sync/sharing.py",
)


def texts(path: Path) -> list[str]:
    """All texts of a module but its documentation, with `...` for what is put in."""
    tree = ast.parse(path.read_text())
    whole = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    left_out |= {id(part) for node in whole for part in ast.walk(node) if part is not node}
    found = (node for node in ast.walk(tree) if id(node) not in left_out)
    return [_text(node) for node in found if isinstance(node, ast.Constant | ast.JoinedStr)]


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) if isinstance(value, ast.Constant) else "..." for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def quoted() -> list[str]:
    """What the first column of the table quotes."""
    table = (ROOT / "docs/mirrors.md").read_text().partition("| message | what to do |")[2].partition("\n\n")[0]
    cells = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    return list(chain.from_iterable(re.findall(r"`([^`]+)`", cell) for cell in cells))


SAID = list(chain.from_iterable(texts(path) for path in SPEAKERS))


@pytest.mark.parametrize("quotation", quoted())
def test_program_says_what_the_page_quotes(quotation: str) -> None:
    """Word for word; `...` stands for what differs each time."""
    parts = [re.escape(part) for part in quotation.split("...")]
    assert any(re.search(".*".join(parts), text) for text in SAID)


def test_table_quotes_all_that_stops_what_goes_out() -> None:
    """Every reason for which an item is not sent is in it."""
    found = texts(SPEAKERS[0].with_name("mirror_out.py"))
    reasons = [text for text in found if "..." in text and not text.startswith("mirror ")]
    parts = [re.compile(".*".join(re.escape(part) for part in one.split("..."))) for one in quoted()]
    assert len(reasons) == 7
    assert [text for text in reasons if not any(part.search(text) for part in parts)] == []
