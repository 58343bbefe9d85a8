"""Each state that a process has in memory is named here, with what becomes of it when several processes run.

A database that several processes share makes every cache and every module-level container a question: is it still
right if another process writes? The tests read the source, so new state without an answer fails. A cache names the test
in which another process changes what is cached.
"""

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "component" / "smartfeeds"

OWNED = "owned: the owner of the shard has it, and reads it from the store when it takes over"
LOCAL = "local: it describes this process, its connections or its own requests"
WORK = "work: it lives for one work or one request"


class Checked(NamedTuple):
    """A cache that each use compares with the store, or that other processes send changes for; and its test."""

    test: str


class Bound(NamedTuple):
    """A limit for each process, so several processes allow several times as much; how docs/scaling.md names it."""

    words: str


CACHES = "features/cluster/test_process_caches.py"
PAGES = Checked(f"{CACHES}::test_page_shows_what_another_process_has_published")
ENTRIES = Checked(f"{CACHES}::test_entry_shows_the_version_of_another_process")
PROCESSES = "features/cluster/test_processes.py"
HOSTS = Bound("requests to one host")

STATES = {
    "service.feeds.FeedService": LOCAL,
    "service.feeds.RequestTasks": LOCAL,
    "app.background.BackgroundTasks": LOCAL,
    "telemetry.Durations": LOCAL,
    "telemetry.Tally": LOCAL,
    "features.bot.delivery.ChatSender": OWNED,
    "features.bot.room_verifier.RoomVerifier": LOCAL,  # what addresses are; each process asks for itself, once a minute
    "features.bot.rooms.Rooms": Checked(
        "features/bot/test_room_processes.py::test_each_process_answers_what_it_receives"
    ),
    "core.fairness.FairOrder": LOCAL,
    "features.presence.interests.Interests": Checked(
        "features/presence/test_notify.py::test_newest_item_comes_once_from_several_processes"
    ),
    "core.last_items.LastItems": LOCAL,  # a resource may receive the newest item once from each process
    "features.presence.states.Availability": Checked(
        f"{PROCESSES}::test_presence_that_another_process_receives_while_the_locks_are_lost"
    ),
    "core.rates.TokenBuckets": Bound("`limits.publishes_per_s`"),
    "features.polling.source_entries._Memory": WORK,
    "features.polling.source_entries._Page": WORK,
    "delivery.changes.ChangeNotifier": LOCAL,
    "delivery.changes.WatchedNodes": Checked(f"{CACHES}::test_held_pull_ends_with_the_notice_of_another_process"),
    "delivery.dispatcher.Dispatcher": OWNED,  # PG-070, PG-071
    "delivery.lane.DeliveryLane": OWNED,  # PG-070
    "features.cluster.letters.Letterbox": LOCAL,
    "delivery.ownership.SoleOwnership": LOCAL,
    "features.cluster.ownership.SharedOwnership": LOCAL,
    "delivery.turns.DeliveryTurns": OWNED,
    "delivery.turns.HostPlaces": OWNED,
    "http.byte_cache.ByteCache": LOCAL,  # the classes that have one are below
    "http.encode.Encoder": PAGES,
    "http.feeds.Feeds": PAGES,
    "features.pages.image_requests.Images": LOCAL,  # bodies of other servers, for as long as those permit
    "features.documents.http.NnoLists": Checked(f"{CACHES}::test_whole_list_is_kept_for_ten_seconds"),
    "http.lists.Lists": Checked(f"{CACHES}::test_whole_list_is_kept_for_ten_seconds"),
    "features.pages.feed_page.Pages": PAGES,
    "features.pages.river_page.RiverPages": PAGES,
    "features.pages.writer.HtmlWriter": ENTRIES,
    "http.changes.Changes": LOCAL,
    "features.authoring.rendering.MarkdownTurns": Bound("Markdown"),
    "http.quotas.Quota": Bound("uploads"),
    "http.server.HttpListener": Bound("`http.connections`"),
    "http.shared_work.SharedWork": WORK,
    "http.waiting.HeldPulls": LOCAL,  # PG-079: notices of other processes end them
    "features.pages.sanitise._Rewriter": WORK,
    "net.limiter.HostLimiter": HOSTS,
    "net.limiter._Host": HOSTS,
    "net.names.NameCache": LOCAL,
    "push.audience.AudienceCache": Checked(f"{CACHES}::test_audience_follows_what_another_process_changes"),
    "push.bounces.Bounces": Bound("bounces"),
    "recent.RecentEvents": LOCAL,
    "recent.RecentRates": LOCAL,
    "features.administration.process.ServiceOperations": LOCAL,
    "service.damage.DamageLog": LOCAL,
    "features.accounts.sign_ins.SignIns": Checked(
        "features/accounts/test_sign_in_processes.py::test_confirmation_reaches_the_browser_at_another_process"
    ),
    "features.polling.history._Walk": WORK,
    "features.mirrors.mirror_peer.PeerMemory": OWNED,
    "features.mirrors.mirror_state.MirrorStateStore": OWNED,  # PG-074
    "features.mirrors.mirrors.Mirrors": OWNED,  # PG-074
    "features.nno.files.Puller": OWNED,  # PG-075
    "features.nno.planet.Planet": OWNED,  # PG-075
    "features.polling.poller.Poller": OWNED,  # PG-075
    "features.prefetch.prefetcher.Prefetcher": OWNED,
    "features.polling.push_inbox.PushInbox": LOCAL,  # the documents that hubs have sent to this process
    "features.polling.subscriber.Subscriber": OWNED,
    "store.indexer.ReadAhead": WORK,
    "features.cluster.letter_table.HeardLetters": LOCAL,
    "features.cluster.lock_session.LockSession": LOCAL,
    "store.looked_ahead.LookedAhead": WORK,
    "store.postgres.PostgresStore": LOCAL,
    "store.postgres_engine.PostgresEngine": WORK,
    "store.postgres_session.PostgresSession": LOCAL,
    "parts.Parts": LOCAL,
    "store.sql_counts.Counts": Checked(f"{CACHES}::test_count_of_a_view_includes_what_another_process_has_published"),
    "store.sql_nodes.NodeReads": WORK,
    "store.sql_nodes.NodeWrites": WORK,
    "store.sql_tallies.TallyWrites": WORK,
    "store.sqlite.SqliteStore": LOCAL,
    "store.work_queue.SenderQueue": LOCAL,
    "store.work_queue.WorkQueue": LOCAL,
    "store.work_queue._SenderAccount": LOCAL,
    "features.callbacks.consumers.CallbackConsumers": LOCAL,  # labels for metrics; the store lists the consumers
    "features.hub.documents.DocumentDesk": WORK,
    "features.hub.questions.HubQuestions": OWNED,
    "features.callbacks.results.DeliveryResults": OWNED,
    "workers.DocumentWorkers": LOCAL,
    "workers._Party": LOCAL,
    "features.cluster.canary.Canary": LOCAL,
    "features.presence.capabilities.CapabilityReader": LOCAL,
    "xmpp.command_sessions.CommandSessions": Checked(f"{CACHES}::test_command_goes_on_at_another_process"),
    "xmpp.listeners.Listeners": LOCAL,
    "xmpp.ordering.RequestOrder": LOCAL,
    "xmpp.ordering._Lane": LOCAL,
    "xmpp.outbox.Outbox": LOCAL,
    "features.presence.xmpp.Presences": LOCAL,
    "xmpp.requests.Requests": LOCAL,  # PG-072: ids name the process, and responses are passed on
    "xmpp.tasks.Tasks": LOCAL,
    "xmpp.turns.StanzaTurns": LOCAL,
    "xmpp.turns._Sender": LOCAL,
}
# Packages whose objects do not live as long as a service.
SHORT_LIVED = (
    "cli/",
    "client/",
    "formats/",
    "sync/",
    "features/demo/",
    "features/doctor/",
    "features/moving_in/",
    "features/nno/entries.py",
)
CONTAINERS = {
    *("set", "dict", "list", "OrderedDict", "deque", "Counter", "defaultdict", "WeakValueDictionary"),
    *("Shares", "ByteCache"),
}
# Functions whose results are kept. Each of them returns the same for the same arguments, whatever a store contains.
PURE = {
    "features.bot.schedule": {"_zones"},
    "features.prefetch.settings": {"_times", "parsed_rules"},
    "core.options": {"listed", "shows_publisher"},
    "core.person": {"_pattern", "hint"},
    "core.filters": {"_known_fold", "change_facets"},
    "core.stringprep": {"_flags", "_folded", "_without_ignored"},
    "features.callbacks.topics": {"read_topic"},
    "core.urls": {"_quoted"},
    "core.view": {"_facets", "from_canonical"},
    "http.calls": {"parse_address", "split_base_url"},
    "http.conditions": {"representation_mark"},
    "http.feeds": {"_links"},
    "http.negotiation": {"choose", "languages", "takes_gzip"},
    "http.openapi": {"_reply"},
    "http.parameter_names": {"_folded_names"},
    "http.queries": {"_view"},
    "http.replies": {"_date"},
    "features.pages.api_docs": {"self._page"},
    "features.pages.feed_page": {"_code"},
    "features.pages.frame": {"_environment"},
    "features.pages.static_files": {"static_files"},
    "service.networks": {"network_of"},
    "service.syncing": {"endpoint", "is_own_endpoint"},
    "store.postgres_engine": {"_returning"},
    "store.postgres_session": {"to_psycopg"},
    # The log of a process has each damaged subscription once.
    "store.rows": {"_log_damaged", "_log_damaged_row", "read_node_options", "read_options"},
    "store.sql_nodes": {"_listed_statements"},
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
        elif isinstance(node, ast.Assign) and "lru_cache(" in ast.unparse(node.value):
            found |= {ast.unparse(target) for target in node.targets}
    return found


def long_lived() -> list[Path]:
    return [path for path in modules() if not name_of(path).startswith(SHORT_LIVED)]


def module_of(path: Path) -> str:
    return name_of(path).removesuffix(".py").replace("/", ".")


def test_each_class_with_state_says_what_becomes_of_it() -> None:
    """[TOP-013]"""
    classes = {
        f"{module_of(path)}.{name}"
        for path in long_lived()
        for name in stateful_classes(ast.parse(path.read_text("utf-8")))
    }
    assert classes == set(STATES)


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
    found = {
        module_of(path): names for path in long_lived() if (names := kept_results(ast.parse(path.read_text("utf-8"))))
    }
    assert found == PURE


def test_no_module_has_a_container_that_changes() -> None:
    """[TOP-013] It would be shared by all requests of a process, and unknown to the other processes."""
    found = {
        f"{name_of(path)}: {name}"
        for path in long_lived()
        for name in mutable_globals(ast.parse(path.read_text("utf-8")))
    }
    assert found == set()


def test_searches_find_state() -> None:
    """The tests above cannot pass because they search badly."""
    source = "_seen = {}\n_table = {1: 2}\n\ndef note(key):\n    _seen[key] = 1\n    return _table[key]\n"
    assert mutable_globals(ast.parse(source)) == {"_seen"}
    source = "class A:\n    def __init__(self):\n        self.seen: dict[int, int] = {}\n"
    assert stateful_classes(ast.parse(source)) == {"A"}
    source = "@functools.lru_cache(3)\ndef keep(): ...\n\n@cache\ndef hold(): ...\n\nself._a = lru_cache(1)(read)\n"
    assert kept_results(ast.parse(source)) == {"keep", "hold", "self._a"}
