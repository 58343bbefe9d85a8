"""The page for developers, and which tests run when."""

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
PAGE = (ROOT / "docs/contributing.md").read_text()


def test_every_test_runs_in_the_quick_part_or_in_the_rest() -> None:
    quick = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    (rest,) = re.findall(r"(?m)^REST := ([^$]*)", (ROOT / "Makefile").read_text())
    parts = [ROOT / name for name in (*quick, *rest.replace("\\", " ").split())]

    assert [part for part in parts if not part.exists()] == []
    files = [path for path in TESTS.rglob("test_*.py") if "node_modules" not in path.parts]
    left_out = [str(path.relative_to(ROOT)) for path in files if not any(path.is_relative_to(part) for part in parts)]
    assert left_out == [], "add the folder to testpaths in pyproject.toml, or to REST in the Makefile"


def test_page_says_what_each_folder_is_for() -> None:
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}

    new = folders - set(re.findall(r"(?m)^\| `tests/(\w+)/(?:NAME/)?` \|", PAGE))
    assert new == set(), "add a row to the table of folders in docs/contributing.md"
