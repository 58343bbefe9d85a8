"""Each state that a process has in memory is named here, with what becomes of it when several processes run.

A database that several processes share makes every cache and every module-level container a question: is it still
right if another process writes? The tests read the source, so new state without an answer fails. A cache names the test
in which another process changes what is cached. A feature names its own in `states.py` beside its tests.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.process_state import CACHES, HOSTS, LOCAL, OWNED, PAGES, WORK, Bound, Checked

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "component" / "smartfeeds"


def _load_states() -> dict[str, ModuleType]:
    """The modules `states.py` of the tests of features, by feature: their tables are as those here, without the name of
    the feature."""
    modules = {}
    for path in sorted((ROOT / "tests" / "features").glob("*/states.py")):
        spec = spec_from_file_location(f"states_of_{path.parent.name}", path)
        assert spec is not None and spec.loader is not None
        modules[path.parent.name] = module_from_spec(spec)
        spec.loader.exec_module(modules[path.parent.name])
    return modules


OF_FEATURES = _load_states()


def of_features(table: str) -> dict[str, Any]:
    return {
        f"features.{feature}.{name}": value
        for feature, states in OF_FEATURES.items()
        for name, value in getattr(states, table, {}).items()
    }


STATES = of_features("STATES") | {
    "service.feeds.FeedService": LOCAL,
    "service.feeds.RequestTasks": LOCAL,
    "service.scans.Scans": LOCAL,
    "app.background.BackgroundTasks": LOCAL,
    "telemetry.Durations": LOCAL,
    "telemetry.Tally": LOCAL,
    "core.fairness.FairOrder": LOCAL,
    "core.limits.TokenBuckets": Bound("`limits.publishes_per_s`"),
    "delivery.changes.ChangeNotifier": LOCAL,
    "delivery.changes.WatchedNodes": Checked(f"{CACHES}::test_held_pull_ends_with_the_notice_of_another_process"),
    "delivery.dispatcher.Dispatcher": OWNED,  # PG-070, PG-071
    "delivery.lane.DeliveryLane": OWNED,  # PG-070
    "delivery.ownership.SoleOwnership": LOCAL,
    "delivery.turns.DeliveryTurns": OWNED,
    "http.byte_cache.ByteCache": LOCAL,  # the classes that have one are below
    "http.encode.Encoder": PAGES,
    "http.feeds.Feeds": PAGES,
    "http.feed_list.Lists": Checked(f"{CACHES}::test_whole_list_is_kept_for_ten_seconds"),
    "http.changes.Changes": LOCAL,
    "core.limits.Quota": Bound("uploads"),
    "http.server.HttpListener": Bound("`http.connections`"),
    "http.shared_work.SharedWork": WORK,
    "http.waiting.HeldPulls": LOCAL,  # PG-079: notices of other processes end them
    "net.limiter.HostLimiter": HOSTS,
    "net.limiter._Host": HOSTS,
    "net.resolver.NameCache": LOCAL,
    "push.audience.AudienceCache": Checked(f"{CACHES}::test_audience_follows_what_another_process_changes"),
    "push.bounces.Bounces": Bound("bounces"),
    "recent.RecentEvents": LOCAL,
    "recent.RecentRates": LOCAL,
    "service.damage.DamageLog": LOCAL,
    "store.indexer.ReadAhead": WORK,
    "store.looked_ahead.LookedAhead": WORK,
    "store.postgres.PostgresStore": LOCAL,
    "store.postgres_engine.PostgresEngine": WORK,
    "store.postgres_pipeline.PostgresPipeline": LOCAL,
    "store.postgres_session.PostgresSession": LOCAL,
    "parts.Parts": LOCAL,
    "store.sql_counts.Counts": Checked(f"{CACHES}::test_count_of_a_view_includes_what_another_process_has_published"),
    "store.sql_items.ItemReads": WORK,
    "store.sql_nodes.NodeReads": WORK,
    "store.sql_nodes.NodeWrites": WORK,
    "store.sql_tallies.TallyReads": WORK,
    "store.sqlite_engine.SqliteEngine": WORK,
    "store.sqlite.SqliteStore": LOCAL,
    "store.work_queue.SenderQueue": LOCAL,
    "store.work_queue.WorkQueue": LOCAL,
    "store.work_queue._SenderAccount": LOCAL,
    "workers.DocumentWorkers": LOCAL,
    "workers._Party": LOCAL,
    "xmpp.command_sessions.CommandSessions": Checked(f"{CACHES}::test_command_goes_on_at_another_process"),
    "xmpp.listeners.Listeners": LOCAL,
    "xmpp.ordering.RequestOrder": LOCAL,
    "xmpp.ordering._Lane": LOCAL,
    "xmpp.outbox.Outbox": LOCAL,
    "xmpp.pending_iqs.Requests": LOCAL,  # PG-072: ids name the process, and responses are passed on
    "xmpp.turns.StanzaTurns": LOCAL,
    "xmpp.turns._Sender": LOCAL,
}
# Packages and modules whose objects do not live as long as a service.
SHORT_LIVED = (
    "cli/",
    "client/",
    "formats/",
    "sync/",
    "local/",
    *(
        f"features/{feature}/{path}"
        for feature, states in OF_FEATURES.items()
        for path in getattr(states, "SHORT_LIVED", ())
    ),
)
CONTAINERS = {
    *("set", "dict", "list", "OrderedDict", "deque", "Counter", "defaultdict", "WeakValueDictionary"),
    *("Shares", "ByteCache"),
}
# Functions whose results are kept. Each of them returns the same for the same arguments, whatever a store contains.
PURE = of_features("PURE") | {
    "core.options": {"listed", "shows_publisher"},
    "core.person": {"_certain", "_possible", "_spellings", "hint"},
    "core.ip_addresses": {"network_of", "plain_address"},
    "core.filters": {"_known_fold", "change_facets"},
    "core.stringprep": {"_flags", "_folded", "_without_ignored"},
    "core.urls": {"_quoted", "feed_path"},
    "core.view": {"_facets", "from_canonical"},
    "http.calls": {"_plain_address", "split_base_url"},
    "http.conditions": {"representation_mark"},
    "http.feeds": {"_links"},
    "http.negotiation": {"choose", "languages", "takes_gzip"},
    "http.openapi": {"_reply"},
    "http.parameter_names": {"_folded_names"},
    "http.queries": {"_view"},
    "http.replies": {"_date"},
    "http.router": {"self._remembered"},
    "json_form": {"_adapter"},
    "service.feeds": {"_kind_of"},
    "service.nodes": {"_initial_options"},
    "service.syncing": {"endpoint", "is_own_endpoint"},
    "store.postgres_engine": {"_returning"},
    "store.postgres_pipeline": {"_numbered"},
    # The log of a process has each damaged subscription once.
    "store.rows": {"_log_damaged", "_log_damaged_row", "read_node_options", "read_options"},
    "store.sql_items": {"_ordered"},
    "store.sql_node_lists": {"_listed_statements"},
    "store.sqlite_engine": {"_of_rows"},
    "texts": {"_error_forms", "translation_of"},
    "worker_codec": {"_admitted", "_fields", "_slots"},
    "xmpp.calls": {"self._known_own", "self._known_sender"},
    "xmpp.command_sessions": {"session_key"},
    "xmpp.encode": {"_known_attribute"},
    "xmpp.framer": {"_tags_of"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def mutable_globals(tree: ast.Module) -> set[str]:
    """The names of containers at module level that the module changes in a function."""
    containers = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Dict | ast.List | ast.Set | ast.Call)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    changed: set[str] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                changed |= {node.value.id} if isinstance(node.value, ast.Name) else set()
            if isinstance(node, ast.Global):
                changed |= set(node.names)
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr in ("append", "add", "update", "setdefault", "pop", "clear", "extend"):
                changed |= {node.func.value.id} if isinstance(node.func.value, ast.Name) else set()
        arguments = {argument.arg for argument in function.args.args}
        local = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        changed -= arguments | local
    return containers & changed


def is_empty_container(value: ast.expr | None) -> bool:
    """Whether an expression makes a container that grows later."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in CONTAINERS


def stateful_classes(tree: ast.Module) -> set[str]:
    """The classes whose objects begin with an empty container."""
    return {
        kind.name
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
        for function in kind.body
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and is_empty_container(statement.value)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Attribute)
    }


def kept_results(tree: ast.Module) -> set[str]:
    """The functions and attributes whose results `functools` keeps."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = [ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list]
            found |= {node.name} if set(texts) & {"cache", "lru_cache", "cached_property"} else set()
        elif isinstance(node, ast.Assign) and any(map(is_lru_cache, ast.walk(node.value))):
            found |= {ast.unparse(target) for target in node.targets}
    return found


def is_lru_cache(node: ast.AST) -> bool:
    """Whether an expression calls `lru_cache`, by this name or as an attribute of its module."""
    return isinstance(node, ast.Call) and "lru_cache" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))


def long_lived() -> list[Path]:
    return [path for path in modules() if not name_of(path).startswith(SHORT_LIVED)]


@cache
def trees() -> dict[Path, ast.Module]:
    """The sources of the modules that live long, parsed once."""
    return {path: ast.parse(path.read_text("utf-8")) for path in long_lived()}


@pytest.fixture(scope="module", autouse=True)
def _forget_the_trees() -> Iterator[None]:
    yield
    trees.cache_clear()


def module_of(path: Path) -> str:
    return name_of(path).removesuffix(".py").replace("/", ".")


def test_each_class_with_state_says_what_becomes_of_it() -> None:
    """[TOP-013]"""
    classes = {f"{module_of(path)}.{name}" for path, tree in trees().items() for name in stateful_classes(tree)}
    assert classes == set(STATES)


@pytest.mark.needs("accounts", "administration", "bot", "cluster", "presence", "privacy")
def test_each_cache_names_its_test() -> None:
    """[TOP-013]"""
    tests = {state.test for state in STATES.values() if isinstance(state, Checked)}
    for file, _, name in (test.partition("::") for test in tests):
        tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}, f"{file}::{name}"


def test_each_bound_of_a_process_is_documented() -> None:
    """[PG-078]"""
    page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    section = page.partition("\n### Limits\n")[2].partition("\n### ")[0]
    words = {state.words for state in STATES.values() if isinstance(state, Bound)}
    assert [each for each in words if each not in section] == []


def test_results_are_kept_of_functions_that_read_nothing() -> None:
    """[TOP-013] A result that depends on the store would stay when another process writes."""
    found = {module_of(path): names for path, tree in trees().items() if (names := kept_results(tree))}
    assert found == PURE


def test_no_module_has_a_container_that_changes() -> None:
    """[TOP-013] It would be shared by all requests of a process, and unknown to the other processes."""
    found = {f"{name_of(path)}: {name}" for path, tree in trees().items() for name in mutable_globals(tree)}
    assert found == set()


def test_searches_find_state() -> None:
    """The tests above cannot pass because they search badly."""
    source = "_seen = {}\n_table = {1: 2}\n\ndef note(key):\n    _seen[key] = 1\n    return _table[key]\n"
    assert mutable_globals(ast.parse(source)) == {"_seen"}
    source = "class A:\n    def __init__(self):\n        self.seen: dict[int, int] = {}\n"
    assert stateful_classes(ast.parse(source)) == {"A"}
    source = "@functools.lru_cache(3)\ndef keep(): ...\n\n@cache\ndef hold(): ...\n\nself._a = lru_cache(1)(read)\n"
    assert kept_results(ast.parse(source)) == {"keep", "hold", "self._a"}
