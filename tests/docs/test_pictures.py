"""docs/pages.md shows the pictures that `support.pictures` makes."""

import re
from pathlib import Path

from support.pictures import FOLDER, files


def test_page_shows_every_picture_and_no_other(root: Path) -> None:
    shown = re.findall(r"!\[[^]]+\]\(pages/([^)]+)\)", (root / "docs" / "pages.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(files())
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(files())
