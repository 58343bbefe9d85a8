"""A plug-in of pytest that selects tests by the features that their marks name, for `tools/without`."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from support.features import FEATURE_NAMES

# The features that `tools/without` has removed. Names that begin with SMARTFEEDS_ would be those of settings.
_WITHOUT: Final = frozenset(os.environ.get("WITHOUT_FEATURES", "").split(","))
# Files for the features that the marks of tests name: by path, all different lists of names.
_WRITE_NEEDS, _READ_NEEDS = (os.environ.get(name) for name in ("WRITE_NEEDS", "READ_NEEDS"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects the tests that the program has the features for, or those of READ_NEEDS."""
    needs = {item: _needs(item) for item in items}
    paths = {item: item.path.relative_to(config.rootpath).as_posix() for item in items}
    if _WRITE_NEEDS:
        names_of: dict[str, list[list[str]]] = {}
        for item in items:
            names = names_of.setdefault(paths[item], [])
            if sorted(needs[item]) not in names:
                names.append(sorted(needs[item]))
        Path(_WRITE_NEEDS).write_text(json.dumps(names_of), "utf-8")
    if _READ_NEEDS:
        needs_read = json.loads(Path(_READ_NEEDS).read_text("utf-8"))
        selection = [item for item in items if sorted(needs[item]) in needs_read[paths[item]]]
    else:
        selection = [item for item in items if needs[item].isdisjoint(_WITHOUT)]
    if len(selection) < len(items):
        config.hook.pytest_deselected(items=[*({*items} - {*selection})])
        items[:] = selection


def _needs(item: pytest.Item) -> set[str]:
    """The features that the marks of a test name. Raises UsageError if there is no such feature."""
    names = {name for mark in item.iter_markers("needs") for name in mark.args}
    if unknown := names - FEATURE_NAMES - _WITHOUT:
        raise pytest.UsageError(f"{item.nodeid}: mark.needs: there is no feature {', '.join(sorted(unknown))}")
    return names
