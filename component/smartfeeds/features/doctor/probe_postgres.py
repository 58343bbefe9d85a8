"""The checks of `smartfeeds doctor` on a PostgreSQL server (OPS-093).

Each check is a function from the facts about the server to a finding, and a line of one table.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from smartfeeds.core.stores import StoreAddress
from smartfeeds.core.text import counted
from smartfeeds.errors import StoreError
from smartfeeds.features.doctor.findings import Check, Finding
from smartfeeds.store.migrate import HEAD, check_known

if TYPE_CHECKING:
    from smartfeeds.features.doctor.postgres_facts import PostgresFacts

OLDEST: Final = 140_000  # the first version with idle_session_timeout, which ends the locks of a process that hangs
CONNECTIONS: Final = 12  # of one process: 10 readers, a writer, and the one for locks and notices
CLOCK_S: Final = 1.0  # above half a round trip, by which the measurement may be wrong
_STORE, _SERVER, _DURABLE, _STANDBYS = map(Check, ("store", "database server", "durability", "standbys"))
_POOLING, _CLOCK, _VACUUM, _CONNECTIONS = map(Check, ("pooling", "database clock", "autovacuum", "connections"))


def check_postgres(address: StoreAddress) -> Iterator[Finding]:
    """Run all checks. The first finding is about the connection; if it fails, it is the only one."""
    try:
        from smartfeeds.features.doctor.postgres_facts import read_facts
    except ImportError:
        yield _STORE.fix("psycopg is not installed", "install it with: pip install 'psycopg[binary]'")
        return
    try:
        facts = read_facts(address)
    except StoreError as error:
        yield _STORE.fix(str(error))
        return
    yield _schema(facts, address.name)
    for check in _CHECKS:
        yield check(facts)


def serving_processes(address: StoreAddress) -> str:
    """Return how many processes of the service use the database, as a text, or an empty text if none does.

    A database that cannot be read has none; `check_postgres` reports the reason.
    """
    try:
        from smartfeeds.features.doctor.postgres_facts import read_facts

        count = read_facts(address).processes
    except (ImportError, StoreError):
        return ""
    return f"the service ({counted(count, 'process', 'es')})" if count else ""


def check_schema(name: str, schema: str, oldest: str | None) -> Finding | None:
    """Return a finding if this program can neither use nor upgrade a database of this schema."""
    try:
        check_known(schema, oldest)
    except StoreError as error:
        text, _, advice = str(error).partition("; ")
        return _STORE.fix(f"{name}: {text}", advice)
    return None


def _schema(facts: "PostgresFacts", name: str) -> Finding:
    if facts.schema is None:
        if facts.has_tables:
            return _STORE.fix(
                f"{name} has tables, but not those of smartfeeds",
                "create a database for smartfeeds with createdb, and name it in store.url",
            )
        if facts.can_create:
            return _STORE.ok(f"{name} is empty; smartfeeds run creates its tables")
        return _STORE.fix(
            f"{name}: this user may not create tables",
            "make the user the owner of the database: ALTER DATABASE ... OWNER TO ...",
        )
    if fault := check_schema(name, facts.schema, facts.oldest):
        return fault
    if facts.schema != HEAD:
        return _STORE.note(
            f"{name} has schema {facts.schema}; this program was made for {HEAD}",
            "make a backup; the next start of smartfeeds run upgrades an older schema, and uses a newer one as it is",
        )
    return _STORE.ok(f"{name}, schema {facts.schema}")


def _server(facts: "PostgresFacts") -> Finding:
    release = f"PostgreSQL {facts.version // 10_000}.{facts.version % 10_000}"
    if facts.version < OLDEST:
        return _SERVER.fix(f"{release} is too old", "upgrade the server to PostgreSQL 14 or newer")
    if facts.encoding != "UTF8":
        return _SERVER.fix(
            f"the encoding of the database is {facts.encoding}",
            "create the database with: createdb --encoding=UTF8 --template=template0",
        )
    if facts.is_standby:
        return _SERVER.fix(
            f"{release} is a standby, which rejects writes",
            "name all hosts in store.url, so that the service finds the primary",
        )
    if facts.is_read_only:
        return _SERVER.fix(
            "default_transaction_read_only is on, so writes are rejected",
            "set it to off; providers set it to on when the disk is full",
        )
    return _SERVER.ok(f"{release}, {facts.encoding}")


def _durable(facts: "PostgresFacts") -> Finding:
    settings = {"fsync": facts.fsync, "full_page_writes": facts.full_page_writes}
    switched_off = [name for name, is_on in settings.items() if not is_on]
    if facts.synchronous_commit == "off":
        switched_off.append("synchronous_commit")
    if switched_off:
        return _DURABLE.fix(
            f"{', '.join(switched_off)} is off, so acknowledged items are lost when the server crashes",
            "set it to on in postgresql.conf",
        )
    return _DURABLE.ok(f"fsync and full_page_writes are on, synchronous_commit is {facts.synchronous_commit}")


def _standbys(facts: "PostgresFacts") -> Finding:
    if not facts.standbys and not facts.standby_names:
        return _STANDBYS.ok("none; the data is on one machine, so make backups")
    if not facts.standby_names or facts.synchronous_commit == "local":
        return _STANDBYS.note(
            f"{facts.standbys} standbys, none of them synchronous: acknowledged items can be lost in a failover",
            "set synchronous_standby_names, with Patroni synchronous_mode; see docs/postgres.md",
        )
    if facts.synchronous_standbys is None:
        return _STANDBYS.note(
            f"{facts.standbys} connected; this user may not see whether one of them is synchronous",
            "as an administrator of the server: GRANT pg_read_all_stats TO the user of store.url",
        )
    if not facts.synchronous_standbys:
        return _STANDBYS.fix(
            f"synchronous_standby_names is {facts.standby_names!r}, but no such standby is connected; writes wait",
            "start the standby, or correct synchronous_standby_names",
        )
    return _STANDBYS.ok(f"{facts.synchronous_standbys} synchronous of {facts.standbys}")


def _pooling(facts: "PostgresFacts") -> Finding:
    if facts.pools_transactions:
        return _POOLING.fix(
            "a pooler shares connections between transactions, so locks and notices of sessions are lost",
            "connect to the server directly, or set pool_mode = session in PgBouncer",
        )
    return _POOLING.ok("each connection has a session of its own")


def _clock(facts: "PostgresFacts") -> Finding:
    if abs(facts.clock_apart_s) > CLOCK_S:
        return _CLOCK.note(
            f"the clock of the server differs by {abs(facts.clock_apart_s):.1f} seconds",
            "correct the clock that is wrong, for example with chrony",
        )
    return _CLOCK.ok("agrees with the local clock")


def _vacuum(facts: "PostgresFacts") -> Finding:
    if not facts.autovacuum:
        return _VACUUM.fix("autovacuum is off, so tables grow and become slow", "set autovacuum to on")
    return _VACUUM.ok("on")


def _connections(facts: "PostgresFacts") -> Finding:
    needed, text = CONNECTIONS, f"a process of the service needs {CONNECTIONS}"
    if facts.processes:
        # A process opens most of its connections when it first needs them.
        needed = max(0, CONNECTIONS * facts.processes - facts.connections)
        text = f"the processes that run ({facts.processes}) need {needed} more"
    text = f"{facts.free_connections} are free; {text}"
    if facts.free_connections < needed:
        return _CONNECTIONS.fix(
            text, "raise max_connections of the server, or the limit of the user or the database, or end other clients"
        )
    return _CONNECTIONS.ok(text)


_CHECKS: Final[tuple[Callable[["PostgresFacts"], Finding], ...]] = (
    _server,
    _durable,
    _standbys,
    _pooling,
    _clock,
    _vacuum,
    _connections,
)
