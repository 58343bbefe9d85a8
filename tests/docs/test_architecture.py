"""docs/architecture.md names packages and modules that exist, and shows only imports that the layer test allows."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import pytest

from smartfeeds.app.feature import Feature
from smartfeeds.features import FEATURES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "component" / "smartfeeds"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
MODULES = sorted(path.name for path in PACKAGE.glob("[!_]*.py"))


def layers() -> dict[str, set[str]]:
    """The table of tests/unit/test_layers.py: layer -> the layers that it may import."""
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tests" / "unit" / "test_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table: dict[str, set[str]] = module.LAYERS
    return table


def arrows() -> list[tuple[str, str]]:
    """The arrows of the diagram of packages."""
    (diagram,) = re.findall(r"(?s)```mermaid\nflowchart TD\n(.*?)```", PAGE)
    return re.findall(r"(?m)^ +(\w+)(?:\[.*?\])? --> (\w+)", diagram)


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_in_the_table_and_in_the_diagram(package: str) -> None:
    assert re.search(rf"(?m)^\| (?:`\w+/`, )*`{package}/`", PAGE), "no line in the table"
    assert re.search(rf"(?:\"|, ){package}/", PAGE.partition("```mermaid")[2].partition("```")[0]), "not in the diagram"


@pytest.mark.parametrize("module", MODULES)
def test_module_beside_the_packages_is_in_the_table(module: str) -> None:
    assert re.search(rf"(?m)^\| (?:`\w+\.py`, )*`{module}`", PAGE)


def test_modules_of_the_page_exist() -> None:
    modules = set(re.findall(r"\b(?:\w+/)*\w+\.py\b", PAGE)) - {"tests/unit/test_layers.py"}

    assert len(modules) > 20
    assert [module for module in sorted(modules) if not (PACKAGE / module).exists()] == []


def test_arrows_are_imports_that_the_layer_test_allows() -> None:
    table = layers()

    assert len(arrows()) > 15
    for importer, imported in arrows():
        assert any(name.partition(".")[0] == imported for name in table[importer]), f"{importer} --> {imported}"


def test_features_are_in_the_table() -> None:
    table = PAGE.partition("\n## Features\n")[2].partition("\n## ")[0]

    assert re.findall(r"(?m)^\| `(\w+)/` \|", table) == [feature.name for feature in FEATURES]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \|", table)))) == {
        field.name for field in fields(Feature)
    } - {"name", "needs"}


@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES])
def test_page_of_a_feature_names_its_modules_and_no_other(feature: str) -> None:
    folder = PACKAGE / "features" / feature
    named = set(re.findall(r"`(\w+\.py)`", (folder / "README.md").read_text("utf-8")))

    assert named == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
