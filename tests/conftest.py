"""Fixtures that several folders of tests use."""

import gc
import logging
import os
import sqlite3
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from hypothesis import HealthCheck, settings

from smartfeeds.cli.run import GC_THRESHOLD
from smartfeeds.core.stores import parse_store
from smartfeeds.features import FEATURES
from smartfeeds.local import process
from smartfeeds.store import migrate
from smartfeeds.store.base import Store
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload
from support.client import Client, ClientFactory, log_in
from support.component import Component, Starter, own_or_shared, starting
from support.effort import PROFILE, runs
from support.logs import LOGS
from support.postgres import PostgresServer, running_postgres
from support.postgres_store import EmptyDatabase
from support.servers import TestServer, run_server
from support.standing import standing_tasks
from support.stores import opened
from support.web import Web, WebStarter, starting_web

pytest_plugins = ["support.needs", "support.notes", "support.units"]

# Tests start hundreds of processes. A start costs 0.5 s more of processor time if it compiles all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples in each run, so that no run fails by chance. Nightly runs search for new ones.
settings.register_profile(
    "suite",
    max_examples=runs(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=PROFILE != "nightly",
)
settings.load_profile("suite")

# Every test process takes its ports from a range of its own, which commands that are run take none from: a port stays
# with whom it was given to, also while nobody listens there.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
process.PORTS = range(10_000 + 600 * (_WORKER % 8), 10_600 + 600 * (_WORKER % 8))

# The collected tests are a million objects that live to the end. Searching them for garbage takes seconds each time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Excludes the collected tests from garbage collection, and collects rarely, as `smartfeeds run` does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    gc.enable()


_ENGINE = os.environ.get("SMARTFEEDS_TEST_STORE", "sqlite")
_CHOSEN = {"component", "web"}  # fixtures that the mark `shared` chooses
# The fixtures that run programs of others, which may fail without a fault of ours.
_REAL_SERVERS = {"prosody", "ejabberd", "server", "prosody_with_pubsub", "country", "postgres"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests with real servers a second try. The summary has each test that needed it, with its first failure.

    Tests with the component of their file run in its event loop.
    """
    for item in items:
        if PROFILE == "nightly":
            item.add_marker(pytest.mark.timeout(2 * 3_600))
        names = getattr(item, "fixturenames", ())
        if not _REAL_SERVERS.isdisjoint(names):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if "shared_start" in names or (item.get_closest_marker("shared") and not _CHOSEN.isdisjoint(names)):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(autouse=True)
def default_logging() -> Iterator[None]:
    """Undoes `set_up_logging`, so that no test depends on which tests ran before it in the same process."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session", autouse=True)
def _no_certificates() -> Iterator[None]:
    """slixmpp reads all certificates of the system twice for each stream, which takes longer than most tests with a
    stream. The links of components have no TLS, and no test trusts an authority of the system.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "set_default_verify_paths", lambda _context: None)
        yield


@pytest.fixture(scope="session")
def prosody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    """A real Prosody."""
    yield from run_server("prosody", tmp_path_factory.mktemp("prosody"))


@pytest.fixture(scope="session")
def ejabberd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    """A real ejabberd."""
    yield from run_server("ejabberd", tmp_path_factory.mktemp("ejabberd"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL, which each test asks for a database of its own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def empty_database(postgres: PostgresServer) -> Iterator[EmptyDatabase]:
    """A PostgreSQL database with the schema, which a test empties before it uses it."""
    database = EmptyDatabase(postgres)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store in turn, open and empty."""
    if request.param == "postgres":
        database: EmptyDatabase = request.getfixturevalue("empty_database")
        with database.emptied() as url:
            async with opened(PostgresStore(parse_store(url), read_payload)) as made:
                yield made
    else:
        async with opened(SqliteStore(tmp_path / "s.db", read_payload)) as made:
            yield made


@pytest.fixture(params=["prosody", "ejabberd"])
def server(request: pytest.FixtureRequest) -> TestServer:
    """Each of the two real servers in turn."""
    found: TestServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def client() -> AsyncIterator[ClientFactory]:
    """`await client(server, "alice")` logs in a client; all of them are logged out at the end."""
    clients: list[Client] = []

    async def make(where: TestServer, name: str, resource: str = "test", *, presence: bool = True) -> Client:
        made = await log_in(where, name, resource, presence=presence)
        clients.append(made)
        return made

    yield make
    for one in clients:
        await one.logout()


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the project."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def blank_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without nodes, made once."""
    path = tmp_path_factory.mktemp("blank") / "feeds.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.prepare(connection, path)
    connection.close()
    return path


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The database of the component: "sqlite" unless the test has the mark `both_engines`. SMARTFEEDS_TEST_STORE names
    another one for all tests.
    """
    return getattr(request, "param", _ENGINE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests with the mark `both_engines` on each engine."""
    if metafunc.definition.get_closest_marker("both_engines"):
        assert "shared_start" not in metafunc.fixturenames, f"{metafunc.function}: the file has one engine"
        if "engine" in metafunc.fixturenames:
            # A service on PostgreSQL needs a feature that keeps other processes from its work.
            engines = ["sqlite", "postgres"] if any(feature.group for feature in FEATURES) else ["sqlite"]
            metafunc.parametrize("engine", engines, indirect=True)


@pytest.fixture
async def start(request: pytest.FixtureRequest, tmp_path: Path, engine: str) -> AsyncIterator[Starter]:
    """`await start(pubsub={...})` is a running component with these settings, a fixed clock and counted ids."""
    if engine == "postgres":
        database: EmptyDatabase = request.getfixturevalue("empty_database")
        with database.emptied() as url:
            async with starting(tmp_path, url) as starter:
                yield starter
    else:
        async with starting(tmp_path, request.getfixturevalue("blank_database")) as starter:
            yield starter


@pytest.fixture
def component(request: pytest.FixtureRequest) -> Component:
    """A running component whose users at example.org may create nodes."""
    found: Component = own_or_shared(request, "component")
    return found


@pytest.fixture
async def own_component(start: Starter) -> Component:
    """A component of the test alone."""
    return await start()


@pytest.fixture
async def start_web(start: Starter) -> AsyncIterator[WebStarter]:
    """`await start_web(http={...})` is a running component with HTTP on a port of its own."""
    async with starting_web(start) as starter:
        yield starter


@pytest.fixture
def web(request: pytest.FixtureRequest) -> Web:
    """A running component with HTTP."""
    found: Web = own_or_shared(request, "web")
    return found


@pytest.fixture
async def own_web(start_web: WebStarter) -> Web:
    """A component with HTTP of the test alone."""
    return await start_web()


# The component that the tests of a file with the mark `shared` have together. It has no nodes when a test begins.


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared_start(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Starter]:
    """`start` for a whole file, whose tests with it run in one event loop."""
    with ExitStack() as stack:
        database = request.getfixturevalue("blank_database")
        if _ENGINE == "postgres":
            # Tests of the file that start a component of their own use `empty_database` meanwhile.
            own = stack.enter_context(closing(EmptyDatabase(request.getfixturevalue("postgres"))))
            database = stack.enter_context(own.emptied())
        async with starting(tmp_path_factory.mktemp("shared"), database) as starter:
            yield starter


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, dict[str, Any]]:
    """The settings of `shared_component` and `shared_web`; a file may have others."""
    return {}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def _component_of_the_file(shared_start: Starter, shared_settings: dict[str, dict[str, Any]]) -> Component:
    return await shared_start(**shared_settings)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def _web_of_the_file(shared_start: Starter, shared_settings: dict[str, dict[str, Any]]) -> AsyncIterator[Web]:
    async with starting_web(shared_start) as start:
        yield await start(**shared_settings)


@pytest_asyncio.fixture(loop_scope="module")
async def shared_component(_component_of_the_file: Component) -> AsyncIterator[Component]:
    """The component of the file."""
    yield _component_of_the_file
    await _component_of_the_file.clear()


@pytest_asyncio.fixture(loop_scope="module")
async def shared_web(_web_of_the_file: Web) -> AsyncIterator[Web]:
    """The component of the file with HTTP."""
    yield _web_of_the_file
    await _web_of_the_file.component.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begins with the logs of a test before its fixtures start servers."""
    LOGS.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Shows what servers and processes wrote during a failed test. A service in this process is in pytest's capture."""
    report = yield
    if report.failed and hasattr(report.longrepr, "addsection"):
        if call.excinfo is not None and str(call.excinfo.value).startswith(("Timeout", "not seen:")):
            report.longrepr.addsection("where the tasks stand", standing_tasks())
        for title, text in LOGS.sections():
            # Not in `report.sections`, which the summary of the tests that needed a second try leaves out.
            report.longrepr.addsection(title, text)
    return report
