"""`smartfeeds doctor` on PostgreSQL: what it finds on real servers, and what it advises."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from smartfeeds.core.stores import StoreAddress, parse_store
from smartfeeds.features.doctor import postgres_facts
from smartfeeds.features.doctor.findings import CheckState, Finding
from smartfeeds.features.doctor.postgres_facts import PostgresFacts, read_facts
from smartfeeds.features.doctor.probe_postgres import check_postgres, serving_processes
from smartfeeds.store.migrate import HEAD
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_session import PostgresSession
from support.postgres import PostgresServer, running_postgres

OK, NOTE, FIX = CheckState.OK, CheckState.NOTE, CheckState.FIX
SOUND = PostgresFacts(
    version=150_018,
    encoding="UTF8",
    is_standby=False,
    is_read_only=False,
    can_create=True,
    has_tables=False,
    synchronous_commit="on",
    standby_names="",
    standbys=0,
    synchronous_standbys=0,
    fsync=True,
    full_page_writes=True,
    autovacuum=True,
    free_connections=88,
    connections=0,
    processes=0,
    clock_apart_s=0.01,
    pools_transactions=False,
    schema=HEAD,
    oldest=HEAD,
)


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def address(postgres: PostgresServer) -> Iterator[StoreAddress]:
    url = postgres.create_database()
    yield parse_store(url)
    postgres.drop_database(url)


def found(address: StoreAddress) -> dict[str, tuple[CheckState, str]]:
    return {finding.check: (finding.state, finding.text) for finding in check_postgres(address)}


def judged(monkeypatch: pytest.MonkeyPatch, **facts: object) -> list[Finding]:
    """The findings that are not ok, for a server with these facts."""
    changed = replace(SOUND, **facts)  # type: ignore[arg-type]
    monkeypatch.setattr(postgres_facts, "read_facts", lambda _address: changed)
    return [finding for finding in check_postgres(parse_store("postgresql://db/f")) if finding.state is not OK]


def test_settings_of_a_server_are_judged() -> None:
    """[OPS-093] [TOP-050] A server with its default settings, then restarted with bad settings."""
    bad = {
        "fsync": "off",
        "full_page_writes": "off",
        "autovacuum": "off",
        "max_connections": "10",
        "synchronous_standby_names": "other",
    }
    with running_postgres(durable=True) as server:
        run(server.url(), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        address = parse_store(server.create_database())
        empty = found(address)
        session = PostgresSession(address)
        session.open_at_once()
        prepare_postgres(session)
        session.close()
        filled = found(address)
        server.stop()
        server.options |= bad
        server.start()
        findings = found(parse_store(server.url("latin")))

    assert empty["store"] == (OK, f"{address.name} is empty; smartfeeds run creates its tables")
    assert filled["store"] == (OK, f"{address.name}, schema {HEAD}")
    assert {state for state, _ in [*empty.values(), *filled.values()]} == {OK}
    assert len(filled) == 8
    assert {check for check, (state, _) in findings.items() if state is FIX} == {
        "database server",
        "durability",
        "standbys",
        "autovacuum",
        "connections",
    }
    assert findings["database server"][1] == "the encoding of the database is LATIN1"
    assert findings["durability"][1].startswith("fsync, full_page_writes is off")
    assert "'other', but no such standby is connected" in findings["standbys"][1]
    assert findings["connections"][1].endswith("a process of the service needs 12")


def test_server_that_refuses_the_service() -> None:
    """[OPS-093] Passwords, a full server, and a standby. Each finding is the only one, and has advice."""
    roles = ["CREATE ROLE guarded LOGIN PASSWORD 'right'", "CREATE ROLE visitor LOGIN"]
    with running_postgres(max_connections="10") as server:
        run(server.url(), *roles)
        server.stop()
        rules = server.data / "pg_hba.conf"
        rules.write_text(
            f"host all guarded 127.0.0.1/32 scram-sha-256\nhost postgres nobody all reject\n{rules.read_text()}"
        )
        server.start()
        refused = {
            "guarded": (
                "guess",
                "the password is missing or wrong; check it, its file (store.password_file, --password-file) and the"
                " user",
            ),
            "absent": ("", "the server rejects the user; check store.url and pg_hba.conf of the server"),
            "nobody": ("", "the server rejects the user; check store.url and pg_hba.conf of the server"),
        }
        for user, (password, text) in refused.items():
            address = replace(parse_store(server.url().replace("postgres@", f"{user}@")), password=password)
            (finding,) = check_postgres(address)
            assert finding.state is FIX
            assert f": {text} (" in finding.text
            assert not password or password not in finding.text
        guarded = replace(parse_store(server.url().replace("postgres@", "guarded@")), password="right")
        assert found(guarded)["database server"][0] is OK
        (missing,) = check_postgres(parse_store(server.url("missing")))
        assert ": it does not exist; create it with createdb, or check store.url (" in missing.text
        visitor = server.url().replace("postgres@", "visitor@")
        sessions = [psycopg.connect(visitor) for _ in range(7)]  # three are reserved for superusers
        (full,) = check_postgres(parse_store(visitor))
        for session in sessions:
            session.close()
        server.stop()
        (server.data / "standby.signal").touch()
        server.start()
        standby = found(parse_store(server.url()))

    assert ": the server has too many connections; raise max_connections or end other clients (" in full.text
    assert standby["database server"][0] is FIX
    assert standby["database server"][1].endswith(" is a standby, which rejects writes")


def test_user_without_rights_is_found(postgres: PostgresServer, address: StoreAddress) -> None:
    """[OPS-093]"""
    run(address.url, "CREATE ROLE reader LOGIN")
    url = address.url.replace("postgres@", "reader@")
    try:
        assert found(parse_store(url))["store"][1].endswith("this user may not create tables")
    finally:
        run(address.url, "DROP ROLE reader")


def test_connections_of_other_users_count_for_a_user_without_rights(
    postgres: PostgresServer, address: StoreAddress
) -> None:
    """[OPS-093] The server hides most facts about the sessions of other users. Limits of a user count as well."""
    run(address.url, "CREATE ROLE visitor LOGIN")
    visitor = parse_store(address.url.replace("postgres@", "visitor@"))
    try:
        before = read_facts(visitor).free_connections
        with psycopg.connect(postgres.url()), psycopg.connect(postgres.url()):
            assert read_facts(visitor).free_connections == before - 2
        run(address.url, "ALTER ROLE visitor CONNECTION LIMIT 7")
        assert read_facts(visitor).free_connections == 7
        run(address.url, f"ALTER DATABASE {address.name.rpartition('/')[2]} CONNECTION LIMIT 3")
        with psycopg.connect(address.url):
            assert found(visitor)["connections"] == (FIX, "2 are free; a process of the service needs 12")
    finally:
        run(postgres.url(), "DROP ROLE visitor")


def test_processes_that_run_need_the_rest_of_their_connections(address: StoreAddress) -> None:
    """[OPS-093]"""
    names = ["smartfeeds 0a1b locks", "smartfeeds", "smartfeeds"]
    sessions = [psycopg.connect(address.url, application_name=name) for name in names]
    try:
        state, text = found(address)["connections"]
        holder = serving_processes(address)
    finally:
        for session in sessions:
            session.close()

    assert state is OK
    assert text.endswith("are free; the processes that run (1) need 9 more")
    assert holder == "the service (1 process)"
    assert serving_processes(replace(address, url=address.url.replace("127.0.0.1", "127.0.0.9"))) == ""


def test_database_that_cannot_be_written(address: StoreAddress) -> None:
    """[OPS-093] A database of another program, and one whose default is to refuse writes."""
    name = address.name.rpartition("/")[2]
    run(address.url, "CREATE TABLE theirs (id int)", f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    findings = found(address)

    assert findings["store"] == (FIX, f"{address.name} has tables, but not those of smartfeeds")
    assert findings["database server"] == (FIX, "default_transaction_read_only is on, so writes are rejected")


def test_server_that_cannot_be_reached_is_the_only_finding() -> None:
    (finding,) = check_postgres(parse_store("postgresql://a@127.0.0.1:1/f"))

    assert finding.state is FIX
    assert "the server cannot be reached" in finding.text


def test_facts_of_a_server(address: StoreAddress) -> None:
    facts = read_facts(address)

    assert (facts.schema, facts.is_standby, facts.pools_transactions) == (None, False, False)
    assert abs(facts.clock_apart_s) < 60
    assert facts.version >= 140_000


def test_pooler_that_shares_a_connection_is_noticed(address: StoreAddress) -> None:
    """[OPS-093] [TOP-044] A pooler in transaction mode gives one connection to two clients."""
    with (
        psycopg.connect(address.url, autocommit=True) as connection,
        psycopg.connect(address.url, autocommit=True) as another,
    ):
        assert postgres_facts._is_shared(connection, connection)
        assert not postgres_facts._is_shared(connection, another)


@pytest.mark.parametrize(
    ("facts", "state", "text", "advice"),
    [
        ({"version": 130_010}, FIX, "PostgreSQL 13.10 is too old", "14 or newer"),
        ({"is_standby": True}, FIX, "is a standby", "name all hosts"),
        ({"is_read_only": True}, FIX, "default_transaction_read_only is on", "set it to off"),
        ({"synchronous_commit": "off"}, FIX, "synchronous_commit is off", "set it to on"),
        ({"standbys": 2}, NOTE, "2 standbys, none of them synchronous", "synchronous_standby_names"),
        (
            {"standbys": 1, "standby_names": "*", "synchronous_commit": "local"},
            NOTE,
            "can be lost in a failover",
            "Patroni",
        ),
        (
            {"standbys": 1, "standby_names": "*", "synchronous_standbys": None},
            NOTE,
            "1 connected; this user may not see whether one of them is synchronous",
            "GRANT pg_read_all_stats",
        ),
        ({"pools_transactions": True}, FIX, "a pooler shares connections", "pool_mode = session"),
        ({"clock_apart_s": -3.0}, NOTE, "differs by 3.0 seconds", "chrony"),
        ({"schema": "9999", "oldest": "9998"}, FIX, "newer than this program", "install a newer smartfeeds"),
        ({"schema": "9999", "oldest": HEAD}, NOTE, "has schema 9999", "uses a newer one as it is"),
    ],
)
def test_each_finding_has_advice(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, object], state: CheckState, text: str, advice: str
) -> None:
    """[OPS-093] [TOP-044] [TOP-050] [CAM-073] Versions, standbys and poolers that no server here has."""
    (finding,) = judged(monkeypatch, **facts)

    assert finding.state is state
    assert text in finding.text
    assert advice in finding.advice


def test_synchronous_standby_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """[CAM-073]"""
    assert judged(monkeypatch, standbys=2, synchronous_standbys=1, standby_names="ANY 1 (a, b)") == []
