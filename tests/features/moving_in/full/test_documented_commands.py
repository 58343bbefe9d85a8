"""The commands of docs/moving-in.md for databases that ejabberd and sat-pubsub have written."""

import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from features.moving_in.samples import HOST, ODD_NODE, loaded_samples
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode
from smartfeeds.features.moving_in.sat_pubsub import read_sat_pubsub
from support.postgres import PostgresServer
from support.shell import Run, shell_in

PAGE = (Path(__file__).parents[4] / "docs" / "moving-in.md").read_text("utf-8")
# The sources of the page by sample.
ADDRESSES = {
    "dump": "/var/lib/ejabberd/move",
    "sqlite": "/var/lib/ejabberd/ejabberd.sqlite",
    "postgresql": "postgresql://ejabberd@127.0.0.1/ejabberd",
    "sat-pubsub": "postgresql://pubsub@127.0.0.1/pubsub",
}


@pytest.fixture(scope="module")
def sources(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The source of each sample."""
    with loaded_samples(postgres, tmp_path_factory.mktemp("samples")) as samples:
        yield samples


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return shell_in(tmp_path, monkeypatch)


def commands(address: str) -> list[list[str]]:
    """The commands of the page that import from an address."""
    lines = [line.strip() for line in PAGE.splitlines() if line.strip().startswith("smartfeeds import")]
    return [shlex.split(line)[1:] for line in lines if address in line.split()]


def rows(database: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


@pytest.mark.parametrize("kind", ADDRESSES)
def test_sample_is_moved_by_the_commands_of_the_page(
    kind: str, sources: dict[str, str], run: Run, tmp_path: Path
) -> None:
    """[IMP-020] [IMP-028] [IMP-031] [IMP-040] [IMP-060] [IMP-061] [IMP-063] [IMP-064] [IMP-068] [IMP-069]"""
    source, database = sources[kind], tmp_path / "smartfeeds.db"
    program = commands(ADDRESSES[kind])
    assert program
    run("init", HOST)

    for words in program:
        output = run(*[source if word == ADDRESSES[kind] else word for word in words]).output
        assert re.search(r"^5 nodes (?:would be )?moved", output, re.MULTILINE)
    again = json.loads(run("import", "--from", program[0][2], source, "--json").stdout)

    assert {node["node"]: (node["kind"], node["outcome"], node["unchanged"]) for node in again["nodes"]} == {
        "blog": ("feed", "unchanged", 7),
        "geo": ("generic", "unchanged", 3),
        "private": ("feed", "unchanged", 1),
        "transient": ("generic", "unchanged", 0),
        ODD_NODE: ("feed", "unchanged", 1),
    }
    reader = read_sat_pubsub if kind == "sat-pubsub" else read_ejabberd
    moved = sorted(
        (node.name, item.id, item.created_us, item.modified_us, item.publisher.partition("/")[0])
        for node in reader(source, HOST)
        if isinstance(node, MovedNode)
        for item in node.items
        if isinstance(item, MovedItem)
    )
    statement = "SELECT name, id, item.created_us, modified_us, publisher FROM item JOIN node USING (node_no)"
    assert sorted(rows(database, statement)) == moved
    assert rows(database, "SELECT bare, jid, name FROM subscription JOIN node USING (node_no) ORDER BY name, jid") == [
        ("alice@localhost", "alice@localhost", "blog"),
        ("bob@localhost", "bob@localhost", "blog"),
        ("bob@localhost", "bob@localhost/b", "geo"),
        ("bob@localhost", "bob@localhost", "private"),
    ]
    assert rows(
        database,
        "SELECT jid, affiliation FROM affiliation JOIN node USING (node_no) WHERE name = 'private' ORDER BY jid",
    ) == [
        ("alice@localhost", "owner"),
        ("bob@localhost", "member"),
        ("carol@example.org", "publisher"),
        ("mallory@example.org", "outcast"),
    ]
    ((options,),) = rows(database, "SELECT options FROM node WHERE name = 'private'")
    assert "whitelist" in str(options)
