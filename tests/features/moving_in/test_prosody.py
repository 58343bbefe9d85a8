"""Data of Prosody: genuine samples of 0.12 and 13.0, and what is damaged or missing in them."""

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from smartfeeds.errors import ConfigError, DocumentError
from smartfeeds.features.moving_in import prosody_files
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    MovedSubscription,
    UnreadableItem,
    UnreadableNode,
)
from smartfeeds.features.moving_in.prosody_files import encoded, read_items
from smartfeeds.features.moving_in.prosody_sql import read_prosody
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from support.postgres import PostgresServer

SAMPLES = Path(__file__).parent / "data"
HOST = "pubsub.localhost"
SQL_HOST = "sql.localhost"
ODD = "ünï/c ode?a=b&c"
NAMES = [ODD, "blog", "geo", "private", "transient"]


def database(folder: Path, version: str) -> str:
    """A SQLite database from a sample."""
    path = folder / f"{version}.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SAMPLES / f"prosody-{version}.sqlite.sql").read_text())
    return str(path)


@pytest.fixture(params=["0.12 files", "13.0 files", "0.12 sqlite", "13.0 sqlite"])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The source and the host of each sample in turn."""
    version, kind = request.param.split()
    if kind == "files":
        return str(SAMPLES / f"prosody-{version}-files"), HOST
    return database(tmp_path, version), SQL_HOST


def whole(node: MovedNode) -> tuple[list[MovedItem], list[MovedProblem]]:
    parts = list(node.items)
    return [part for part in parts if isinstance(part, MovedItem)], [
        part for part in parts if isinstance(part, MovedProblem)
    ]


def everything(source: str, host: str) -> list[MovedNode | MovedProblem]:
    """What the reader yields. The items of each node are read before the next node."""
    parts = read_prosody(source, host)
    return [replace(part, items=list(part.items)) if isinstance(part, MovedNode) else part for part in parts]


def nodes(parts: Iterable[MovedNode | MovedProblem]) -> dict[str, MovedNode]:
    return {part.name: part for part in parts if isinstance(part, MovedNode)}


def test_sample_has_its_nodes_with_options_and_people(sample: tuple[str, str]) -> None:
    """[IMP-001] [IMP-002] [IMP-003] [IMP-008] [IMP-009] [IMP-010] Both storages of both versions give equal nodes."""
    parts = nodes(everything(*sample))

    assert sorted(parts) == sorted(NAMES)
    assert parts["blog"].options == {
        "pubsub#access_model": ("open",),
        "pubsub#description": ("about ü",),
        "pubsub#max_items": ("max",),
        "pubsub#notify_retract": ("true",),
        "pubsub#title": ("A blog & more",),
        "pubsub#type": ("urn:xmpp:microblog:0",),
    }
    assert parts["transient"].options == {"pubsub#persist_items": ("false",)}
    assert parts["private"].affiliations == {
        "alice@localhost": "owner",
        "bob@localhost": "member",
        "carol@example.org": "publisher",
        "mallory@example.org": "outcast",
    }
    assert parts["geo"].subscriptions == (
        MovedSubscription("bob@localhost/b", options={"pubsub#include_body": ("true",)}),
    )
    assert [subscription.jid for subscription in parts["blog"].subscriptions] == ["alice@localhost", "bob@localhost"]
    assert not any(node.problems for node in parts.values())


def test_sample_has_its_items_in_the_order_of_their_last_change(sample: tuple[str, str]) -> None:
    """[IMP-004] [IMP-005] [IMP-006] [IMP-007] [IMP-009]"""
    parts = nodes(everything(*sample))
    items = {name: whole(node)[0] for name, node in parts.items()}

    blog = items["blog"]
    assert [item.id for item in blog[:4]] == ["i0", "i2", "i4", "i1"]
    assert {"urn:uuid:ä/: ,<", "by-b"} < {item.id for item in blog} and len(blog) == 7
    assert {item.id: item.publisher for item in blog}["by-b"] == "bob@localhost"
    assert [item.id for item in items["geo"]] == ["g2", "g3", "g4"]
    assert not items["transient"]
    geoloc = accept_payload(parse_payload(items["geo"][0].payload)).decode()
    assert geoloc == (
        '<geoloc xmlns="http://jabber.org/protocol/geoloc"><lat>2.5</lat><text xml:lang="de">Straße 2</text></geoloc>'
    )
    assert all(
        item.created_us is not None and item.created_us % 1_000_000 == 0 and item.modified_us is None for item in blog
    )


def test_payloads_of_files_and_of_sql_are_the_same(tmp_path: Path) -> None:
    """[IMP-004] [IMP-006] [IMP-009]"""
    from_files = nodes(everything(str(SAMPLES / "prosody-13.0-files"), HOST))
    from_sql = nodes(everything(database(tmp_path, "13.0"), SQL_HOST))

    for name in NAMES:
        files, sql = (
            {item.id: accept_payload(parse_payload(item.payload)) for item in whole(node[name])[0]}
            for node in (from_files, from_sql)
        )
        generated = {item_id for item_id in files if len(item_id) == 36}
        assert {item_id: files[item_id] for item_id in files.keys() - generated}.items() <= sql.items()


def test_namespaces_of_attributes_are_kept() -> None:
    """[IMP-006]"""
    items = list(read_items(SAMPLES / "prosody-0.12-files" / "odd" / "pubsub_a_b%2ec%2dd.list"))

    by_id = {item.id: parse_payload(item.payload) for item in items if isinstance(item, MovedItem)}
    assert by_id["ns"].attrib == {"c": "3", "{urn:y}b": "2", "{urn:x}a": "1"}
    assert by_id["q\"'\\x"].text == 'line1\nline2\ttab "quote" \\back'


@pytest.mark.parametrize(
    ("name", "node_file", "list_file"),
    [
        ("a_b.c-d", "a%5fb%2ec%2dd", "a_b%2ec%2dd"),
        (ODD, "%c3%bcn%c3%af%2fc%20ode%3fa%3db%26c", "%c3%bcn%c3%af%2fc%20ode%3fa%3db%26c"),
        ("pubsub.localhost", "pubsub%2elocalhost", "pubsub%2elocalhost"),
    ],
)
def test_names_of_files(name: str, node_file: str, list_file: str) -> None:
    """[IMP-001]"""
    assert (encoded(name), encoded(name, keep="_")) == (node_file, list_file)


def test_folder_of_the_component_is_a_source_too() -> None:
    """[IMP-001]"""
    folder = SAMPLES / "prosody-0.12-files" / "pubsub%2elocalhost"
    assert sorted(nodes(everything(str(folder), HOST))) == sorted(NAMES)


def test_postgresql(postgres: PostgresServer) -> None:
    """[IMP-009] The tables are the same as in SQLite."""
    import psycopg

    url = postgres.create_database()
    dump = (SAMPLES / "prosody-13.0.sqlite.sql").read_text().replace("INTEGER PRIMARY KEY AUTOINCREMENT", "SERIAL")
    lines = [line for line in dump.splitlines() if line.startswith(("CREATE TABLE", 'INSERT INTO "prosody'))]
    with psycopg.connect(url) as connection:
        for line in lines:
            connection.execute(line.encode())
    try:
        parts = {name: (node, whole(node)[0]) for name, node in nodes(everything(url, SQL_HOST)).items()}
        with pytest.raises(ConfigError, match=r"name another component with --host: sql\.localhost"):
            list(read_prosody(url, "other.example"))
    finally:
        postgres.drop_database(url)

    assert {name: len(items) for name, (_, items) in parts.items()} == {
        ODD: 1,
        "blog": 7,
        "geo": 3,
        "private": 1,
        "transient": 0,
    }
    assert parts["private"][0].affiliations["mallory@example.org"] == "outcast"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files of 0.12."""
    shutil.copytree(SAMPLES / "prosody-0.12-files", tmp_path / "data")
    return tmp_path / "data" / "pubsub%2elocalhost"


@pytest.mark.parametrize("lost", [3, 5, 200, 1_000])
def test_torn_last_item_is_a_problem_and_the_others_are_read(copy: Path, lost: int) -> None:
    """[IMP-012]"""
    path = copy / "pubsub_blog.list"
    path.write_bytes(path.read_bytes()[:-lost])

    items, problems = whole(nodes(everything(str(copy), HOST))["blog"])

    assert [item.id for item in items][:4] == ["i0", "i2", "i4", "i1"] and len(items) == 6
    (problem,) = problems
    assert problem.subject == "file pubsub_blog.list" and "which is the last" in problem.reason


@pytest.mark.parametrize(("rest", "damaged"), [(b"\n" * 100, 0), (b"\n" * 100 + b"oops", 1), (bytes(100), 1)])
def test_only_blanks_end_a_list(copy: Path, rest: bytes, damaged: int) -> None:
    """[IMP-012] [IMP-068] A mirror would take the items behind a silent end for deleted ones."""
    path = copy / "pubsub_blog.list"
    path.write_bytes(path.read_bytes() + rest)

    items, problems = whole(nodes(everything(str(copy), HOST))["blog"])

    assert len(items) == 7
    assert [type(problem) for problem in problems] == [UnreadableItem] * damaged


def test_item_behind_a_damaged_one_is_read(copy: Path) -> None:
    """[IMP-012] A text of the damaged item that looks like an item is not taken for one."""
    path = copy / "pubsub_blog.list"
    text = path.read_text()
    forged = '"x\\\nitem({ ["key"] = "forged"; ["name"] = "e" });'
    path.write_text(text.replace('"Entry 2"', forged + " oops", 1))

    items, problems = whole(nodes(everything(str(copy), HOST))["blog"])

    assert [item.id for item in items][:3] == ["i0", "i4", "i1"] and len(items) == 6
    assert len(problems) == 1 and "is damaged" in problems[0].reason
    assert isinstance(problems[0], UnreadableItem)


def test_node_that_cannot_be_read_is_a_problem(copy: Path) -> None:
    """[IMP-012]"""
    (copy / "pubsub_nodes" / "blog.dat").write_text("return { [")

    parts = everything(str(copy), HOST)

    assert sorted(nodes(parts)) == sorted(set(NAMES) - {"blog"})
    (problem,) = [part for part in parts if isinstance(part, MovedProblem)]
    assert isinstance(problem, UnreadableNode) and problem.subject == "file blog.dat"


@pytest.mark.parametrize("part", ["config", "affiliations", "subscribers"])
def test_node_with_a_part_that_is_no_table_is_left_out(copy: Path, tmp_path: Path, part: str) -> None:
    """[IMP-010] [IMP-012] Without its configuration a whitelist is open, and without its outcasts, they may read."""
    (copy / "pubsub_nodes" / "private.dat").write_text(f'return {{ ["name"] = "private"; ["{part}"] = 5; }};')
    path = database(tmp_path, "0.12")
    with closing(sqlite3.connect(path)) as connection, connection:
        changes = [("{", "private"), ('"text"', "geo")]
        connection.executemany(f"UPDATE prosody SET value = ? WHERE user = ? AND key = '{part}'", changes)

    for source, host, names in ((str(copy), HOST, ["private"]), (path, SQL_HOST, ["geo", "private"])):
        parts = everything(source, host)
        assert sorted(nodes(parts)) == sorted(set(NAMES) - set(names))
        problems = [problem for problem in parts if isinstance(problem, UnreadableNode)]
        assert [problem.reason for problem in problems] == [f"the node cannot be read: its {part} is no table"] * len(
            names
        )


def test_items_without_a_time_a_publisher_or_an_id(copy: Path) -> None:
    """[IMP-004] Times may have a fraction."""
    (copy / "pubsub_geo.list").write_text(
        'item({["key"] = "a"; ["when"] = 1.5; ["name"] = "e"; ["attr"] = {}});\n'
        'item({["key"] = "b"; ["name"] = "e"});\n'
        'item({["key"] = "c"; ["when"] = 1e999; ["with"] = "bob@localhost"; ["name"] = "e"});\n'
        'item({["when"] = 3; ["name"] = "e"});\nitem({["key"] = "d"; ["name"] = 5});\n'
    )

    items, problems = whole(nodes(everything(str(copy), HOST))["geo"])

    assert items == [
        MovedItem("a", "", 1_500_000, None, b"<e/>"),
        MovedItem("b", "", None, None, b"<e/>"),
        MovedItem("c", "bob@localhost", None, None, b"<e/>"),
    ]
    assert [problem.reason for problem in problems] == [
        "an item has no id",
        "an element of the payload has no name or no table of attributes",
    ]
    assert {type(problem) for problem in problems} == {UnreadableItem}


def test_node_whose_list_would_have_too_long_a_name_has_no_items(copy: Path) -> None:
    """[IMP-001] Prosody cannot store items of such a node either: names of files have up to 255 bytes."""
    name = "ä" * 41
    (copy / "pubsub_nodes" / f"{encoded(name)}.dat").write_text(f'return {{ ["name"] = "{name}" }};')

    assert list(nodes(everything(str(copy), HOST))[name].items) == []


def test_personal_nodes_are_named_and_left_out(copy: Path, tmp_path: Path) -> None:
    """[IMP-011] They belong to the hosts of the accounts."""
    for name in ("pep", "pep_urn%3axmpp%3amicroblog%3a0"):
        (copy.parent / "localhost" / name).mkdir(parents=True)
    (copy.parent / "empty").mkdir()
    path = database(tmp_path, "0.12")
    row = ("localhost", "alice", "pep", "urn:xmpp:microblog:0", "json", "{}")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO prosody VALUES (?, ?, ?, ?, ?, ?)", row)

    for source, host, subject in ((str(copy.parent), HOST, "folder localhost"), (path, SQL_HOST, "host localhost")):
        parts = everything(source, host)
        assert len(nodes(parts)) == 5
        assert parts[5:] == [MovedProblem(subject, "personal nodes (mod_pep) stay on the server")]
    assert len(everything(str(copy), HOST)) == 5


def test_empty_tables_may_be_arrays(tmp_path: Path) -> None:
    """[IMP-010]"""
    path = database(tmp_path, "0.12")
    with closing(sqlite3.connect(path)) as connection, connection:
        change = "UPDATE prosody SET value = ? WHERE user = ? AND key = ?"
        connection.execute(change, (json.dumps([]), "transient", "subscribers"))
        connection.execute(change, (json.dumps({"roster_groups_allowed": ["a", "b"]}), "blog", "config"))

    parts = everything(path, SQL_HOST)

    assert nodes(parts)["transient"].subscriptions == ()
    assert nodes(parts)["blog"].options == {"pubsub#roster_groups_allowed": ("a", "b")}
    assert len(nodes(parts)) == len(parts) == 5


@pytest.mark.parametrize(
    ("source", "host", "kind", "advice"),
    [
        ("nowhere", HOST, DocumentError, "name the data folder of Prosody"),
        (__file__, HOST, DocumentError, "is neither a folder nor a SQLite database"),
        (str(SAMPLES), HOST, DocumentError, "has no nodes of any component; name the data of the Prosody"),
        ("x" * 300, HOST, DocumentError, "cannot read x*: File name too long"),
        (str(SAMPLES / "prosody-0.12-files"), "other.example", ConfigError, "component with --host: pubsub.localhost"),
        ("mysql://localhost/prosody", HOST, ConfigError, "copy the tables to a SQLite file"),
        ("postgresql://127.0.0.1:1/none", HOST, DocumentError, "cannot open the PostgreSQL database"),
    ],
)
def test_source_that_cannot_be_read(source: str, host: str, kind: type[Exception], advice: str) -> None:
    """[IMP-009] MySQL is refused."""
    with pytest.raises(kind, match=advice):
        list(read_prosody(source, host))


def test_database_of_another_program(tmp_path: Path) -> None:
    """[IMP-009]"""
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("CREATE TABLE other (a)")

    with pytest.raises(DocumentError, match="no such table: prosody"):
        list(read_prosody(str(tmp_path / "x.db"), HOST))


def test_node_of_a_file_without_a_name_or_a_table(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[IMP-012] Prosody reads such a node by the name of its file."""
    folder = copy / "pubsub_nodes"
    (folder / "a%20b.dat").write_text("return { };")
    (folder / "none.dat").write_text("{ };")
    monkeypatch.setattr(prosody_files, "_MAX_NODE_BYTES", 10_000)
    (folder / "large.dat").write_bytes(b"return { };" + b" " * 10_000)

    parts = everything(str(copy), HOST)

    assert sorted(nodes(parts)) == sorted({*NAMES, "a b"})
    problems = {part.subject: part.reason for part in parts if isinstance(part, UnreadableNode)}
    assert sorted(problems) == ["file large.dat", "file none.dat"]
    assert "there is no `return`" in problems["file none.dat"]
    assert "is larger than" in problems["file large.dat"]


def test_affiliation_that_is_no_text_is_a_problem_of_its_node(copy: Path) -> None:
    """[IMP-012] The other affiliations are kept."""
    (copy / "pubsub_nodes" / "private.dat").write_text(
        'return { ["name"] = "private"; ["affiliations"] = { ["a@example.org"] = 5; ["b@example.org"] = "member"; }; };'
    )

    node = nodes(everything(str(copy), HOST))["private"]

    assert node.affiliations == {"b@example.org": "member"}
    assert [(problem.subject, problem.reason) for problem in node.problems] == [
        ("affiliation 'a@example.org'", "5 is no affiliation")
    ]
