"""Imports go one way, the core stays pure (design section 2), and other rules for all modules."""

import ast
import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import NamedTuple

from smartfeeds.features import FEATURES

PACKAGE = Path(__file__).parents[2] / "component" / "smartfeeds"

# layer -> the layers of ours that it may import; a layer is a package or a module of smartfeeds.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "formats": {"errors", "core", "xml_names"},
    "sync": {"errors", "core", "formats", "xml_names"},
    "store": {"errors", "core", "telemetry", "json_form"},
    "service": {"errors", "core", "formats", "sync", "store.base", "telemetry", "recent", "texts"},
    "parts": set(),
    "recent": set(),
    "telemetry": {"errors", "recent"},
    "delivery": {"errors", "core", "store.base", "service", "telemetry"},
    "push": {"errors", "core", "formats", "store.base", "service", "telemetry", "delivery"},
    "xmpp": {"app.config_types", "errors", "core", "formats", "sync", "service", "telemetry", "xml_names"},
    "http": {"app.config_types", "errors", "parts", "texts", "threads", "core", "formats", "sync", "service", "recent"},
    "texts": set(),
    "chat": {"core", "service", "store.base", "texts"},
    "net": {"errors", "core", "hidden", "threads"},
    "local": {"errors"},
    "client": {"errors", "core"},
    "system": set(),
    "threads": set(),
    "watchdog": set(),
    "xml_names": set(),
    "worker_codec": {"errors"},
    "worker_process": {"errors", "worker_codec"},
    "workers": {"core", "errors", "worker_codec", "worker_process"},
    "app": {
        "errors", "core", "formats", "store", "service", "delivery", "push", "xmpp", "http", "net", "client",
        "parts", "telemetry", "recent", "system", "workers", "features", "chat",
    },
    "console": {"errors", "core"},
    "hidden": set(),
    "json_form": set(),
    "lists": {"console", "core"},
    "terminal": set(),
    "features": {  # the kernel; test_features_import_only_what_they_need has the rest
        "errors", "core", "formats", "sync", "store", "service", "delivery", "push", "xmpp", "http", "net", "client",
        "app", "cli", "console", "lists", "terminal", "telemetry", "recent", "system", "texts", "threads", "workers",
        "xml_names", "watchdog", "parts", "chat", "local", "json_form",
    },
    "cli": {
        "errors", "core", "formats", "store", "service", "xmpp", "app", "client", "telemetry",
        "sync", "net", "console", "hidden", "lists", "terminal", "watchdog", "features",
    },
}  # fmt: skip

PURE = {
    "abc", "array", "ast", "base64", "bisect", "codecs", "collections", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "difflib", "email", "enum",
    "fractions", "functools", "hashlib", "heapq", "hmac", "html", "importlib", "io", "ipaddress", "itertools", "json",
    "math", "operator", "re", "string", "stringprep", "struct", "types", "typing", "typing_extensions", "unicodedata",
    "urllib", "zlib",
}  # fmt: skip
# What a pure layer may import beside PURE.
PURE_LAYERS = {"errors": set(), "core": set(), "formats": {"lxml", "markdown_it", "xml"}, "sync": {"lxml"}}
NOT_PURE = {"urllib.request", "importlib.metadata", "email.mime", "datetime.now"}

# library -> modules that may import it
OWNERS = {
    "slixmpp": ("xmpp/stream.py", "client/transport.py", "features/demo/person.py"),
    "sqlite3": (
        "store/",
        "features/backup/",
        "features/doctor/",
        "features/moving_in/foreign_database.py",
        "features/moving_in/item_file.py",
        "features/privacy/scrub.py",
    ),
    "psycopg": (
        "store/postgres",
        "store/migrate_postgres.py",
        "features/cluster/letter_table.py",
        "features/cluster/lock_session.py",
        "features/backup/copy_postgres.py",
        "features/backup/copy_postgres.py",
        "features/cluster/",
        "features/doctor/",
        "features/moving_in/foreign_database.py",
        "features/privacy/postgres_scrub.py",
    ),
    "aiohttp": ("http/", "net/", "features/"),
    "jinja2": ("features/pages/",),
    "nh3": ("features/pages/",),
    "markdown_it": ("features/authoring/markdown.py", "features/authoring/markdown.py"),
    "pydantic": ("app/config", "features/", "json_form.py", "http/settings.py", "xmpp/settings.py"),
    "click": ("app/commands.py", "app/feature.py", "cli/", "features/", "console.py", "lists.py", "terminal.py"),
    "rich": ("features/", "terminal.py"),
    "prometheus_client": ("telemetry.py", "features/"),
}


# The layers that join the features to the kernel.
COMPOSING = {"app", "features", "cli"}
NO_LAYER = {"__init__", "__main__"}  # name and start the package


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


class Reading(NamedTuple):
    """What a file imports and says of itself, so that it is parsed once."""

    imports: frozenset[str]
    docstring: str | None


@cache
def reading(path: Path) -> Reading:
    tree = ast.parse(path.read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return Reading(frozenset(found), ast.get_docstring(tree))


def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports, at the top or inside a function; for `from a import b` both a and a.b."""
    return reading(path).imports


def top_of(name: str) -> str:
    """The package or module of smartfeeds to which a file belongs."""
    return name.partition("/")[0].removesuffix(".py")


def violations(layer: str, imported: AbstractSet[str]) -> set[str]:
    """The imports of ours that a layer may not have."""
    allowed = LAYERS[layer] | {layer}
    found = set()
    for module in imported:
        # `test_features_import_only_what_they_need` is about features.
        if not module.startswith("smartfeeds.") or module.startswith("smartfeeds.features"):
            continue
        inner = module.removeprefix("smartfeeds.")
        if inner == "__version__":
            continue
        inside = any(inner == name or inner.startswith(f"{name}.") for name in allowed)
        if not inside and not any(name.startswith(f"{inner}.") for name in allowed):
            found.add(inner)
    return found


def impure(layer: str, imported: AbstractSet[str]) -> set[str]:
    """The libraries that a pure layer may not have."""
    tops = {module.partition(".")[0] for module in imported}
    return (tops - PURE - PURE_LAYERS[layer] - {"smartfeeds", "__future__"}) | (imported & NOT_PURE)


def test_modules_import_only_layers_below_them() -> None:
    layers = {name: layer for path in modules() if (layer := top_of(name := name_of(path))) not in NO_LAYER}
    assert {name for name, layer in layers.items() if layer not in LAYERS} == set(), (
        "LAYERS says where a module belongs"
    )

    found = {name: violations(layer, imports(PACKAGE / name)) for name, layer in layers.items()}
    assert {name: upwards for name, upwards in found.items() if upwards} == {}


def circles(imported: Mapping[str, AbstractSet[str]]) -> set[str]:
    """The modules that are in a circle of imports, or between two circles."""
    left = dict(imported)
    while True:
        users = {name: {other for other in left if name in left[other]} for name in left}
        ends = {name for name in left if not users[name] or not left[name] & left.keys()}
        if not ends:
            return set(left)
        left = {name: imports for name, imports in left.items() if name not in ends}


def test_no_modules_of_the_kernel_import_each_other() -> None:
    """Imports for types count, and those inside functions. `app` makes the settings of the features that use them."""
    names = {dotted(path): name_of(path) for path in modules() if top_of(name_of(path)) not in COMPOSING}
    found = {name: {names[module] for module in imported_modules(name, names)} - {name} for name in names.values()}
    assert circles(found) == set()


def imported_modules(name: str, known: Collection[str]) -> set[str]:
    """The modules that a file imports. `from a import b` imports the module b of the package a, if there is one."""
    found = {module for module in imports(PACKAGE / name) if module in known}
    return found - {module.rpartition(".")[0] for module in found}


def dotted(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(("smartfeeds", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def test_test_finds_circles() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == {"b", "c"}


def test_features_import_only_what_they_need() -> None:
    """A feature imports the kernel and the features that it needs; the kernel imports the tuple of features alone."""
    needs = {feature.name: {feature.name, *feature.needs} for feature in FEATURES}
    folders = {
        path.name for path in (PACKAGE / "features").iterdir() if path.is_dir() and not path.name.startswith("_")
    }
    assert folders == set(needs)

    for path in modules():
        name = name_of(path)
        own = name.split("/")[1] if name.startswith("features/") and "/" in name.removeprefix("features/") else ""
        imported = {module.split(".")[2] for module in imports(path) if module.startswith("smartfeeds.features.")}
        if name != "features/__init__.py":
            assert imported - {"FEATURES"} <= needs.get(own, set()), name


def test_pure_modules_import_nothing_that_does_something() -> None:
    layers = {name: layer for path in modules() if (layer := top_of(name := name_of(path))) in PURE_LAYERS}

    found = {name: impure(layer, imports(PACKAGE / name)) for name, layer in layers.items()}
    assert {name: libraries for name, libraries in found.items() if libraries} == {}


def test_libraries_are_imported_where_they_belong() -> None:
    users = {
        library: {name_of(path) for path in modules() if library in {name.partition(".")[0] for name in imports(path)}}
        for library in OWNERS
    }

    found = {library: {name for name in users[library] if not name.startswith(OWNERS[library])} for library in OWNERS}
    assert {library: names for library, names in found.items() if names} == {}


def test_one_module_can_fetch_a_url() -> None:
    """[xep-map 247] And what serves XMPP does not reach it; XML parsers are set to open nothing (tests of formats)."""
    fetchers = {"urllib.request", "http.client", "ftplib", "requests", "httpx", "aiohttp.client"}
    session = re.compile(r"\b(?:ClientSession|aiohttp\.request)\b")

    assert {name_of(path): found for path in modules() if (found := imports(path) & fetchers)} == {}
    assert [name_of(path) for path in modules() if session.search(path.read_text("utf-8"))] == ["net/session.py"]
    serving = ("core", "formats", "service", "push", "xmpp", "http")
    assert all(LAYERS[layer].isdisjoint({"net"}) for layer in serving)


PARAMETERS = 7
# The modules that make the parts of a service and connect them.
COMPOSITION = ("app/", "http/site.py", "xmpp/side.py")


def long_constructors(path: Path) -> set[str]:
    """The classes of a file whose `__init__` has too many parameters beside `self`."""
    return {
        each.name
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.ClassDef)
        for method in each.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        if len([*method.args.posonlyargs, *method.args.args[1:], *method.args.kwonlyargs]) > PARAMETERS
    }


def unnamed_arguments(path: Path) -> set[str]:
    """The functions and classes that a file calls with too many arguments without a name."""
    calls = (each for each in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(each, ast.Call))
    return {ast.unparse(call.func) for call in calls if len(call.args) > PARAMETERS}


def test_constructors_have_seven_parameters_at_most() -> None:
    """A part gets the section of the settings that concerns it, and functions that belong together as one value."""
    found = {f"{name_of(path)}: {name}" for path in modules() for name in long_constructors(path)}
    assert found == set()


def test_composition_names_the_fields_of_long_values() -> None:
    """`Host`, `SiteTools` and others have more fields than a reader can count."""
    composing = [path for path in modules() if name_of(path).startswith(COMPOSITION) or path.name == "setup.py"]
    assert {name_of(path): found for path in composing if (found := unnamed_arguments(path))} == {}


def test_test_finds_long_constructors(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "class A:\n    def __init__(self, a, b, c, d, /, e, f, *, g, h=1):\n        B(a, b, c, d, e, f, g, h)\n"
        "class B:\n    def __init__(self, a, b, c, d, e, f, *, g=1, **options):\n        A(a, b, c, d, e, f, g, h=1)\n"
    )
    assert long_constructors(bad) == {"A"} and unnamed_arguments(bad) == {"B"}


def test_test_finds_what_it_looks_for(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "def f():\n    import time\n    from smartfeeds.xmpp import stream\n    from smartfeeds.store import sqlite\n"
    )

    assert violations("core", imports(bad)) == {"xmpp", "xmpp.stream", "store", "store.sqlite"}
    assert violations("service", imports(bad)) == {"xmpp", "xmpp.stream", "store.sqlite"}
    assert impure("core", imports(bad)) == {"time"}


def test_modules_say_what_they_are() -> None:
    assert [
        name_of(path) for path in modules() if path.read_text("utf-8").strip() and not reading(path).docstring
    ] == []


def test_no_group_is_possessive_that_may_fail_in_the_middle() -> None:
    """Before Python 3.11.5 such a group leaves the position in the middle (gh-106052), and Debian 12 has 3.11.2. Groups
    with `*+` remain, which fail at their first byte or at the end of the text."""
    possessive = re.compile(r"\)(?:[?+]|\{[\d,]+\})\+")
    assert [name_of(path) for path in modules() if possessive.search(path.read_text("utf-8"))] == []
