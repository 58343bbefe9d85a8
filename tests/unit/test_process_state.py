"""Each state that a process has in memory is named here, with what becomes of it when several processes run.

A database that several processes share makes every cache and every module-level container a question: is it still
right if another process writes? The tests read the source, so new state without an answer fails.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "component" / "smartfeeds"

OWNED = "owned: the owner of the shard has it, and reads it from the store when it takes over"
LOCAL = "local: it describes this process, its connections or its own requests"
BOUND = "bound: a limit for each process, so several processes allow several times as much (docs/scaling.md)"
CHECKED = "checked: each use compares it with the store, or the other processes send what changes it"
WORK = "work: it lives for one work or one request"

STATES = {
    "app.App": LOCAL,
    "background.BackgroundTasks": LOCAL,
    "bot.delivery.ChatSender": OWNED,
    "bot.rooms.Rooms": CHECKED,  # presence of rooms is shown to all processes
    "core.fairness.FairOrder": LOCAL,
    "core.interests.Interests": CHECKED,  # presence is shown to all processes
    "core.last_items.LastItems": LOCAL,  # a resource may receive the newest item once from each process
    "core.presence.Availability": CHECKED,
    "core.rates.TokenBuckets": BOUND,  # PG-078
    "core.source_entries._Memory": WORK,
    "delivery.changes.ChangeNotifier": LOCAL,
    "delivery.changes.WatchedNodes": CHECKED,  # PG-079
    "delivery.dispatcher.Dispatcher": OWNED,  # PG-070, PG-071
    "delivery.lane.DeliveryLane": OWNED,  # PG-070
    "delivery.letters.Letterbox": LOCAL,
    "delivery.ownership.Ownership": LOCAL,
    "delivery.turns.DeliveryTurns": OWNED,
    "delivery.turns.HostPlaces": OWNED,
    "http.byte_cache.ByteCache": CHECKED,  # by the version of the node at each use
    "http.changes.Changes": LOCAL,
    "http.markdown.MarkdownTurns": BOUND,
    "http.quotas.Quota": BOUND,
    "http.server.HttpListener": BOUND,  # PG-078
    "http.shared_work.SharedWork": WORK,
    "http.waiting.HeldPulls": LOCAL,  # PG-079: notices of other processes end them
    "http.web.sanitise._Rewriter": WORK,
    "net.limiter.HostLimiter": BOUND,  # PG-078
    "net.limiter._Host": BOUND,
    "net.names.NameCache": LOCAL,
    "push.audience.AudienceCache": CHECKED,  # by the audience number of the node, read with each batch
    "push.bounces.Bounces": BOUND,  # PG-078
    "recent.RecentEvents": LOCAL,
    "recent.RecentRates": LOCAL,
    "service.admin_process.ServiceOperations": LOCAL,
    "service.sign_ins.SignIns": CHECKED,  # TOP-013: letters carry each change to all processes
    "sources.history._Walk": WORK,
    "sources.mirror_peer.PeerMemory": OWNED,
    "sources.mirror_state.MirrorStateStore": OWNED,  # PG-074
    "sources.mirrors.Mirrors": OWNED,  # PG-074
    "sources.nno.Puller": OWNED,  # PG-075
    "sources.planet.Planet": OWNED,  # PG-075
    "sources.poller.Poller": OWNED,  # PG-075
    "sources.prefetcher.Prefetcher": OWNED,
    "sources.push_inbox.PushInbox": LOCAL,  # the documents that hubs have sent to this process
    "sources.subscriber.Subscriber": OWNED,
    "store.indexer.ReadAhead": WORK,
    "store.heard_letters.HeardLetters": LOCAL,
    "store.lock_session.LockSession": LOCAL,
    "store.looked_ahead.LookedAhead": WORK,
    "store.postgres.PostgresStore": LOCAL,
    "store.postgres_engine.PostgresEngine": WORK,
    "store.postgres_session.PostgresSession": LOCAL,
    "store.sql_counts.Counts": CHECKED,  # by the moment of the feed at each use
    "store.sql_nodes.NodeReads": WORK,
    "store.sql_nodes.NodeWrites": WORK,
    "store.sql_tallies.TallyWrites": WORK,
    "store.sqlite.SqliteStore": LOCAL,
    "store.work_queue.WorkQueue": LOCAL,
    "store.work_queue._SenderAccount": LOCAL,
    "webhooks.consumers.CallbackConsumers": CHECKED,  # labels for metrics; the store lists the consumers
    "webhooks.documents.DocumentDesk": WORK,
    "webhooks.questions.HubQuestions": OWNED,
    "webhooks.results.DeliveryResults": OWNED,
    "xmpp.canary.Canary": LOCAL,
    "xmpp.capabilities.CapabilityReader": LOCAL,
    "xmpp.command_sessions.CommandSessions": CHECKED,  # any process checks the ids
    "xmpp.listeners.Listeners": LOCAL,
    "xmpp.names.NameGuard": BOUND,  # PG-078
    "xmpp.ordering.RequestOrder": LOCAL,
    "xmpp.ordering._Lane": LOCAL,
    "xmpp.outbox.Outbox": LOCAL,
    "xmpp.presence.Presences": LOCAL,
    "xmpp.requests.Requests": LOCAL,  # PG-072: ids name the process, and responses are passed on
    "xmpp.router.StanzaRouter": LOCAL,
    "xmpp.tasks.Tasks": LOCAL,
    "xmpp.turns.StanzaTurns": LOCAL,
    "xmpp.turns._Sender": LOCAL,
}
# Packages whose objects do not live as long as a service.
SHORT_LIVED = ("demo/", "cli/", "client/", "formats/", "sync/")
CONTAINERS = {"set", "dict", "list", "OrderedDict", "deque", "Counter", "defaultdict", "WeakValueDictionary"}


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


def long_lived() -> list[Path]:
    return [path for path in modules() if not name_of(path).startswith(SHORT_LIVED)]


def test_each_class_with_state_says_what_becomes_of_it() -> None:
    """[PG-070] [PG-071] [PG-072] [PG-074] [PG-075] [PG-076] [PG-078] [PG-079] [TOP-013]"""
    classes = {
        f"{name_of(path).removesuffix('.py').replace('/', '.')}.{name}"
        for path in long_lived()
        for name in stateful_classes(ast.parse(path.read_text("utf-8")))
    }
    assert classes == set(STATES)


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
