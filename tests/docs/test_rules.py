"""The table rule -> module -> test, and what it is built from."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import rules_table  # noqa: E402 - the tools are no package


def test_page_lists_each_rule_once_with_its_modules_and_tests() -> None:
    rules = rules_table.collect()
    rows = [line for line in rules_table.page(rules).splitlines() if line.startswith("| ") and line.count(" | ") >= 3]

    assert [row[2:].partition(" | ")[0] for row in rows if not row.startswith("| rule |")] == list(rules)
    assert "`core/limits.py`" in next(row for row in rows if row.startswith("| xep-map 249 |"))


def test_every_implemented_rule_has_a_test_and_a_module() -> None:
    rules = [rule for rule in rules_table.collect().values() if not rule.later]

    assert [rule.id for rule in rules if not rule.tests] == []
    assert [rule.id for rule in rules if not rule.modules] == []


def test_no_test_names_a_rule_that_is_planned() -> None:
    """A rule that works must not be listed as planned, and a test must not name a rule that it cannot prove."""
    assert rules_table.planned_with_tests() == {}


def test_planned_rule_that_a_test_names_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_table, "citations_in_tests", lambda: (("FS-056", "a.py::test_one"), ("FS-001", "b.py")))

    assert rules_table.planned_with_tests() == {"FS-056": {"a.py::test_one"}}


def test_every_rule_of_all_lists_is_there() -> None:
    expected = {f"xep-map {number}" for number in range(1, 251)}
    topology = (1, 5, 6, *range(10, 14), 21, 22, 24, *range(30, 36), *range(40, 43), 44, 45, 50, 60, 62)
    expected |= {f"TOP-{number:03d}" for number in topology}
    for kind, last in (
        ("SF", 114),
        ("ESS", 25),
        ("RSS", 36),
        ("FS", 87),
        ("SSE", 50),
        ("WS", 141),
        ("SRC", 86),
        ("RC", 78),
        ("PRE", 36),
    ):
        expected |= {f"{kind}-{number:03d}" for number in range(1, last + 1)}
    operations = (*range(1, 16), *range(20, 30), 46, *range(60, 66), 67, 68, 70, *range(80, 87), *range(90, 95))
    expected |= {f"OPS-{number:03d}" for number in operations}
    moving = (range(1, 13), range(20, 33), range(40, 47), range(60, 72))
    expected |= {f"IMP-{number:03d}" for numbers in moving for number in numbers}
    campaign = (range(1, 14), range(20, 22), range(30, 39), range(50, 61), range(70, 78), range(80, 83))
    expected |= {f"CAM-{number:03d}" for numbers in campaign for number in numbers}
    resolved = (range(1, 39), range(40, 65), range(70, 88), range(100, 115), range(120, 140), range(150, 158))
    expected |= {f"A-{number:02d}" for numbers in resolved for number in numbers}

    postgres = (
        1,
        3,
        5,
        6,
        7,
        8,
        10,
        *range(36, 43),
        44,
        45,
        46,
        48,
        49,
        50,
        *range(61, 65),
        *range(70, 73),
        *range(74, 80),
    )
    expected |= {f"PG-{number:03d}" for number in postgres}
    assert set(rules_table.read_rules()) == expected


def test_tests_name_no_rule_that_is_none() -> None:
    assert rules_table.unknown() == {}


def test_modules_that_stand_for_a_section_exist() -> None:
    for rule in rules_table.collect().values():
        for module in rule.modules:
            assert (rules_table.SOURCE / module).exists(), f"{rule.id}: {module}"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[xep-map 192]", {"xep-map 192"}),
        ("[SF-045 to SF-047]", {"SF-045", "SF-046", "SF-047"}),
        ("[ESS-007] [A-104 to 106], RSS-010", {"ESS-007", "A-104", "A-105", "A-106", "RSS-010"}),
        ("[FS-057 to FS-059] [SSE-040] [A-43]", {"FS-057", "FS-058", "FS-059", "SSE-040", "A-43"}),
        ("xep-map 1-3, 11", {"xep-map 1", "xep-map 2", "xep-map 3", "xep-map 11"}),
        ("(xep-map 3.1 row 22, 55, 208)", {"xep-map 55", "xep-map 208"}),
        ("xep-map 1.1, 1.3; 17, 18; RFC 6120 8.3", {"xep-map 17", "xep-map 18"}),
        ("XEP-0060 5.4; xep-map 31 to 33", {"xep-map 31", "xep-map 32", "xep-map 33"}),
        ("xep-map 5 K, 208, X7", {"xep-map 208"}),
        ("[A-Z] and 42", set()),
    ],
)
def test_citations_are_read(text: str, ids: set[str]) -> None:
    assert rules_table.cited(text) == ids


SOURCE_OF_TESTS = '''
"""A module [SF-001]."""
DATA = ["[SF-002]"]
CASES = {"a case [SF-003]": 1}

def helper():
    """Not a test [SF-004]."""
    assert "[SF-005]"

class TestGroup:
    """A group [SF-006]."""

    @pytest.mark.parametrize("text", ["[SF-007]", pytest.param("x", id="named [SF-008]")])
    def test_one(self, text):
        """A test [SF-009]."""
        # a comment [SF-010]
        assert text != "[SF-011]"
'''


def test_only_names_of_tests_and_cases_are_evidence() -> None:
    evidence = [(function, text) for function, text in rules_table.evidence(ast.parse(SOURCE_OF_TESTS)) if text]

    assert evidence == [
        ("", "a case [SF-003]"),
        ("", "A group [SF-006]."),
        ("test_one", "A test [SF-009]."),
        ("test_one", "named [SF-008]"),
    ]


def test_strings_of_this_module_are_no_evidence() -> None:
    tests = {test for _, test in rules_table.citations_in_tests()}

    assert not [test for test in tests if test.startswith("docs/test_rules.py")]
