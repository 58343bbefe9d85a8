"""Writes rules.md: each rule, the modules that implement it, the tests that show it.

Rules are listed in docs/rules.toml. Modules name what they implement in their docstrings and comments ("xep-map 47 to
53", "SF-085"); tests name it in their docstrings and in the names of their cases as "[xep-map 192]" or "[SF-106]".

`python tools/rules_table.py` writes the page, which is not committed: it changes with every test. `--missing` lists the
rules that say they are implemented and that no test names. A rule under `later` that a test names is an error.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[1]
RULES = ROOT / "docs" / "rules.toml"
PAGE = ROOT / "docs" / "rules.md"
SOURCE = ROOT / "component" / "smartfeeds"
TESTS = ROOT / "tests"

_HEAD = """\
# Rules

This page is for readers of the code and the tests. It lists each requirement, the modules that implement it and the
tests that prove it. `make rules` writes it from `docs/rules.toml`, the sources and the tests.

| rules | requirements of |
|---|---|
| `SF` | Smart Feeds |
| `ESS` | ESS and NNO |
| `RSS` | RSS 0.92, rssCloud and payloads |
| `FS` | FeedSync 1.0.2 |
| `SSE` | SSE 0.91 |
| `WS` | WebSub and PubSubHubbub, and what this project decides where they are silent |
| `SRC` | sources: polling of other feeds |
| `PRE` | prefetch of enclosures |
| `PG` | PostgreSQL as the second engine |
| `TOP` | several processes, one component JID, one database |
| `IMP` | moving in from other services |
| `OPS` | operations: personal data, administration, metrics, images |
| `CAM` | the reliability campaign |
| `RC` | rssCloud, and what this project decides where its documents are silent or differ |
| `A` | this project, where the documents above leave a point open |
| `xep-map` | the XEPs, as a checklist of this project |

[XMPP map](xmpp.md) has the sections such as 3.1. [Decisions](decisions.md) has the decisions such as R7 and D10.

{implemented} rules are implemented. {later} rules are planned; the column of the modules has the reason.
"""

# The kinds of rules with the digits of their numbers.
_DIGITS = {
    **dict.fromkeys(("SF", "ESS", "RSS", "FS", "SSE", "WS", "SRC", "RC", "PRE", "PG", "TOP", "IMP", "OPS", "CAM"), 3),
    "A": 2,
}
_KINDS = "|".join(_DIGITS)
_BRACKETED = re.compile(rf"\[((?:(?:{_KINDS})-\d|xep-map \d)[^\]]*)\]")
_SEED = re.compile(rf"\b({_KINDS})-(\d{{2,3}})\b(?:\s*(?:to|-)\s*(?:\1-)?(\d{{2,3}})\b)?")
# "xep-map" and what follows: numbers, ranges, references to sections (3.2) and to rows of tables, which are no rules.
_MAP = re.compile(r"xep-map\s+((?:rows?\s+\d+|\d+(?:\.\d+)+|[A-Z]\b|\d+|to\b|and\b|[-,;\s])+)")
_TOKEN = re.compile(r"rows?\s+\d+|\d+(?:\.\d+)+|\d+\s+[A-Z]\b|(\d+)(?:\s*(?:to|-)\s*(\d+)(?!\.))?")


@dataclass(slots=True)
class Rule:
    """One line of the page."""

    id: str
    section: str
    text: str
    later: str = ""
    modules: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)


def read_rules() -> dict[str, Rule]:
    """The rules of docs/rules.toml by id, in their order."""
    rules: dict[str, Rule] = {}
    for section in tomllib.loads(RULES.read_text("utf-8"))["section"]:
        later = section.get("later", {})
        for rule_id, text in section["rules"].items():
            rules[rule_id] = Rule(
                rule_id, section["title"], text, later.get(rule_id, ""), set(section.get("modules", ()))
            )
    return rules


def cited(text: str) -> set[str]:
    """The ids of the rules that a text names."""
    rule_ids: set[str] = set()
    for match in _SEED.finditer(text):
        kind, first, last = match[1], int(match[2]), int(match[3] or match[2])
        rule_ids |= {f"{kind}-{number:0{_DIGITS[kind]}d}" for number in range(first, last + 1)}
    for match in _MAP.finditer(text):
        for token in _TOKEN.finditer(match[1]):
            if token[1]:
                rule_ids |= {f"xep-map {number}" for number in range(int(token[1]), int(token[2] or token[1]) + 1)}
    return rule_ids


def citations_in_source() -> Iterator[tuple[str, str]]:
    """Yields pairs of a rule's id and a module that cites it."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for rule_id in cited(path.read_text("utf-8")):
            yield rule_id, name


@cache
def citations_in_tests() -> tuple[tuple[str, str], ...]:
    """Returns pairs of a rule's id and a test that cites it. A test is `file::function`, or the file for a case that
    several functions may share.

    Only what names a test is evidence: the docstring of a test function or class, and the name of a case (`id=` of
    `pytest.param`, a key of a dict of cases). Any other string is data, as in the tests of this very tool.
    """
    citations = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS).as_posix()
        for function, text in evidence(ast.parse(path.read_text("utf-8"))):
            for match in _BRACKETED.finditer(text):
                citations += [(rule_id, f"{name}::{function}" if function else name) for rule_id in cited(match[1])]
    return tuple(citations)


def evidence(tree: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Yields pairs of a function and a text: the texts that name tests and cases, with their test function, if any."""
    for node in ast.iter_child_nodes(tree):
        inside = function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not function and not node.name.startswith("test_"):
                continue  # a helper proves nothing by itself
            inside = function or node.name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inside, ast.get_docstring(node) or ""
        names = node.keys if isinstance(node, ast.Dict) else [node.value] if _is_case_id(node) else []
        for name in names:
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield inside, name.value
        yield from evidence(node, inside)


def _is_case_id(node: ast.AST) -> TypeGuard[ast.keyword]:
    return isinstance(node, ast.keyword) and node.arg == "id"


def collect() -> dict[str, Rule]:
    """The rules with their modules and tests. Modules that a section names stand for rules that no module cites."""
    rules = read_rules()
    cited_modules: dict[str, set[str]] = defaultdict(set)
    for rule_id, module in citations_in_source():
        cited_modules[rule_id].add(module)
    for rule_id, test in citations_in_tests():
        if rule_id in rules:
            rules[rule_id].tests.add(test)
    for rule in rules.values():
        rule.modules = cited_modules.get(rule.id) or rule.modules
    return rules


def unknown() -> dict[str, set[str]]:
    """Ids that tests name and that are no rules."""
    rules = read_rules()
    tests: dict[str, set[str]] = defaultdict(set)
    for rule_id, test in citations_in_tests():
        if rule_id not in rules:
            tests[rule_id].add(test)
    return tests


def planned_with_tests() -> dict[str, set[str]]:
    """Rules under `later` that tests name."""
    return {rule.id: rule.tests for rule in collect().values() if rule.later and rule.tests}


def page(rules: dict[str, Rule]) -> str:
    """The text of docs/rules.md."""
    later = sum(1 for rule in rules.values() if rule.later)
    lines = [_HEAD.format(implemented=len(rules) - later, later=later)]
    section = ""
    for rule in rules.values():
        if rule.section != section:
            section = rule.section
            lines.append(f"\n## {section}\n\n| rule | what | module | test |\n|---|---|---|---|")
        where = f"later: {rule.later}" if rule.later else "<br>".join(f"`{module}`" for module in sorted(rule.modules))
        lines.append(f"| {rule.id} | {_cell(rule.text)} | {where} | {_tests(rule)} |")
    return "\n".join(lines) + "\n"


def _tests(rule: Rule) -> str:
    """Tests by file: functions where they are few, else how many there are."""
    files: dict[str, set[str]] = defaultdict(set)
    for test in rule.tests:
        file, _, function = test.partition("::")
        files[file].add(function)
    cells = []
    for file, functions in sorted(files.items()):
        named = sorted(functions - {""})
        text = ", ".join(f"`{name}`" for name in named[:2]) + (f" and {len(named) - 2} more" if len(named) > 2 else "")
        cells.append(f"`{file}`" + (f": {text}" if named else ""))
    return "<br>".join(cells)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="The table rule -> module -> test.")
    parser.add_argument("--missing", action="store_true", help="list implemented rules that no test names")
    options = parser.parse_args()
    rules = collect()
    if options.missing:
        for rule in rules.values():
            if not rule.later and not rule.tests:
                print(f"{rule.id}: {rule.text}")
        return 0
    for rule_id, tests in planned_with_tests().items():
        sys.exit(f"{rule_id} is under `later` in docs/rules.toml, and {', '.join(sorted(tests))} names it")
    PAGE.write_text(page(rules), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(rules)} rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
