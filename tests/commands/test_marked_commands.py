"""The marked commands of all pages run."""

import re
from pathlib import Path

import pytest

from support.shell import program_in, run_block

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```sh test\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# As many processes as the page has commands.
@pytest.mark.parametrize("path", [path for path in PAGES if BLOCK.search(path.read_text())], ids=page_id)
def test_marked_commands_run(path: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, in one folder."""
    environment = program_in(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()

    for block in BLOCK.findall(path.read_text()):
        run_block(block, work, environment)
