"""The headings of pages in Markdown."""

import re
from pathlib import Path


def anchors(path: Path) -> set[str]:
    """The fragments of a page: its headings as GitHub writes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?s)```.*?```", "", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
