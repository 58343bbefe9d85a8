"""Every document that the code cites is in docs/: decisions, sections of the XMPP map, numbered rules."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import rules_table  # noqa: E402 - the tools are no package

# "xep-map 3.1 row 22, 55" or "xep-map F, G": what follows names sections, rows, letters and numbers of the checklist.
MAP = re.compile(r"xep-map\s+((?:(?:sections?|rows?|to|and)\b|\d+(?:\.\d+)*|[A-Z]\b|[-,:;\s])+)")
ROWS = re.compile(r"rows?\s+(\d+)(?:\s+to\s+(\d+))?")
SECTION = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])|section\s+(\d+)(?!\.\d)")


def cited(text: str) -> set[str]:
    """The decisions, design sections, and sections, letters and rows of the XMPP map that a text cites."""
    found = set(re.findall(r"(?<![%\w./-])[DRX]\d{1,2}\b|\bstyle (?:section )?\d+", text))
    for numbers in re.findall(r"\bdesign (?:sections? )?(\d+(?: (?:and|to) \d+)?)", text):
        found |= {f"design {number}" for number in re.findall(r"\d+", numbers)}
    for match in MAP.finditer(text):
        found |= {f"xep-map {one or two}" for one, two in SECTION.findall(match[1])}
        found |= {f"xep-map {letter}" for letter in re.findall(r"\b[A-Z]\b", match[1])}
        for first, last in ROWS.findall(match[1]):
            found |= {f"xep-map row {row}" for row in range(int(first), int(last or first) + 1)}
    return found


def described() -> set[str]:
    """What the pages describe."""
    decisions = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    xmpp = (ROOT / "docs" / "xmpp.md").read_text("utf-8")
    return {
        *re.findall(r"(?m)^### ([DRX]\d+)$", decisions),
        *(f"design {number}" for number in re.findall(r"(?m)^## (\d+)\. ", decisions)),
        *(f"xep-map {number}" for number in re.findall(r"(?m)^##+ (\d+(?:\.\d+)?) ", xmpp)),
        *(f"xep-map {letter}" for letter in re.findall(r"(?m)^\| ([A-Z]) \|", xmpp)),
        *(f"xep-map row {row}" for row in re.findall(r"(?m)^\| (\d+) \|", xmpp)),
    }


def citations() -> Iterator[tuple[str, str]]:
    """(file, citation) pairs of the sources and the tests; of the tests only what documents them."""
    for path in sorted((ROOT / "component").rglob("*.py")):
        text = path.read_text("utf-8")
        for citation in cited(text) | rules_table.cited(text):
            yield path.relative_to(ROOT).as_posix(), citation
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for text in re.findall(r'"""(.*?)"""', path.read_text("utf-8"), re.DOTALL):
            for citation in cited(text):
                yield path.relative_to(ROOT).as_posix(), citation


def test_every_citation_leads_to_a_page() -> None:
    known = described() | set(rules_table.read_rules())
    unknown = sorted({(citation, file) for file, citation in citations() if citation not in known})

    assert unknown == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(design section 3; xep-map 9)", {"design 3"}),
        ("[design 5] and design sections 3 and 5", {"design 3", "design 5"}),
        ("(D17; 47 to 53)", {"D17"}),
        ("xep-map 3.1, rows 1 to 3", {"xep-map 3.1", "xep-map row 1", "xep-map row 2", "xep-map row 3"}),
        ("xep-map 3.1 row 22, 55, 208", {"xep-map 3.1", "xep-map row 22"}),
        ("xep-map section 0; xep-map F, G", {"xep-map 0", "xep-map F", "xep-map G"}),
        ("xep-map 5 K, 208, X7", {"xep-map K", "X7"}),
        ("xep-map 3-5, 9, 11", set()),
        ("(style section 10)", {"style section 10"}),
        ("timeout=%D9%A1, SHA-1", set()),
    ],
)
def test_citations_are_read(text: str, expected: set[str]) -> None:
    assert cited(text) == expected
