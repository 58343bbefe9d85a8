"""Names and first sentences that a stranger can read (docs/contributing.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("component/smartfeeds", "tools", "tests/support")

# A docstring begins with the noun or the verb of its subject. "Whether" begins those of a truth value only.
RELATIVE = re.compile(r"(What|How|Who|Whom|Whose|Which|Where|When|Why)\b")
# The number of a rule follows the sentence that it is the reason of.
NUMBER = re.compile(r"(xep-map \d|RFC \d|[A-Z]+-\d)")
# They say what happened to a value, and not what it is.
PARTICIPLES = frozenset({"found", "told", "wanted", "kept", "shown"})


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the fault of each place in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for text in _docstrings(node):
                start = str(text.value).strip()
                if match := RELATIVE.match(start) or NUMBER.match(start):
                    yield text.lineno, f"a docstring begins with {match[0]}"
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name) and target.id == "one":
                    yield target.lineno, "`for one in` does not name the thing"
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.asname is not None and len(alias.asname) == 1:
                    yield node.lineno, f"{alias.name} has the alias {alias.asname}"
        name = _bound_name(node)
        if name in PARTICIPLES:
            yield node.lineno, f"the name {name} is a participle"  # type: ignore[attr-defined]


def _docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Constant]:
    """Yields the docstring, and the strings under fields and constants."""
    for statement in node.body:
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_and_first_sentences_say_what_a_thing_is(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    places = [
        f"{path.relative_to(ROOT)}:{line}: {fault}" for path in paths for line, fault in faults(path.read_text("utf-8"))
    ]
    assert not places, "\n".join(places)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""What a module has."""', "1 a docstring begins with What"),
        ('def f():\n    """How it is done."""', "2 a docstring begins with How"),
        ('class C:\n    """Who asks."""', "2 a docstring begins with Who"),
        ('class C:\n    x: int\n    """Why it is so."""', "3 a docstring begins with Why"),
        ('def f():\n    """SF-008: a list."""', "2 a docstring begins with SF-0"),
        ("for one in x: pass", "1 `for one in` does not name the thing"),
        ("y = [one for _, one in x]", "1 `for one in` does not name the thing"),
        ("from a import b as c", "1 b has the alias c"),
        ("import a as b", "1 a has the alias b"),
        ("found = 1", "1 the name found is a participle"),
        ("def f(wanted): pass", "1 the name wanted is a participle"),
        ("class C:\n    told: bool", "2 the name told is a participle"),
    ],
)
def test_each_fault_is_found(source: str, fault: str) -> None:
    assert [f"{line} {text}" for line, text in faults(source)] == [fault]


def test_other_names_and_sentences_are_no_faults() -> None:
    source = '"""Whatever it is."""\nfrom a import b as bb\ndef f(x):\n    """Whether it is."""\n    [y for y in x]'
    assert list(faults(source)) == []


def test_public_classes_have_names_of_their_own() -> None:
    """A reader who meets a name in a message or a signature finds one class."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "component/smartfeeds").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 1_000
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
