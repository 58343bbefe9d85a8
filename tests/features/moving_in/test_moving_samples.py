"""What the readers of ejabberd and sat-pubsub yield for the storage that these services wrote.

All samples were made by the same requests, so the readers must agree on the nodes.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from features.moving_in.samples import DUMP, HOST, ODD_NODE, SAMPLES, loaded_samples
from smartfeeds.core.model import NO_OPTIONS
from smartfeeds.errors import ConfigError, DocumentError
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    MovedReader,
    MovedSubscription,
    UnreadableItem,
    UnreadableNode,
)
from smartfeeds.features.moving_in.sat_pubsub import read_sat_pubsub
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from support.postgres import PostgresServer

MINUTE_US = 60 * 1_000_000
# One source of each kind, and when its sample was made.
SOURCES = {
    "dump": 1_795_312_496_000_000,
    "sqlite": 1_795_312_600_000_000,
    "postgresql": 1_795_312_612_000_000,
    "sat-pubsub": 1_795_312_693_000_000,
}


@pytest.fixture(scope="module")
def sources(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of each sample."""
    with loaded_samples(postgres, tmp_path_factory.mktemp("ejabberd")) as samples:
        yield samples


def reader(kind: str) -> MovedReader:
    return read_sat_pubsub if kind == "sat-pubsub" else read_ejabberd


def read(kind: str, source: str, host: str = HOST) -> tuple[dict[str, MovedNode], list[MovedProblem]]:
    """The nodes by name, with their items in lists, and the problems of the source."""
    nodes: dict[str, MovedNode] = {}
    problems: list[MovedProblem] = []
    for value in reader(kind)(source, host):
        if isinstance(value, MovedProblem):
            problems.append(value)
        else:
            items = list(value.items)
            nodes[value.name] = MovedNode(
                value.name, value.options, value.affiliations, value.subscriptions, items, value.problems
            )
    return nodes, problems


def items(node: MovedNode) -> list[MovedItem]:
    """The items, oldest first. A database yields them in any order."""
    for item in node.items:
        assert isinstance(item, MovedItem), item
    moved = [item for item in node.items if isinstance(item, MovedItem)]
    return sorted(moved, key=lambda item: item.created_us or 0)


def made_id(item: MovedItem) -> str:
    """The id of an item, without the id that the service chose for the item that had none."""
    return "made" if b"no id given" in item.payload else item.id


@pytest.mark.parametrize("kind", SOURCES)
def test_sample_has_the_nodes_that_were_made(kind: str, sources: dict[str, str]) -> None:
    """[IMP-021] [IMP-023] [IMP-026] [IMP-028] [IMP-030] [IMP-040] [IMP-041]"""
    nodes, _problems = read(kind, sources[kind])

    assert sorted(nodes) == ["blog", "geo", "private", "transient", ODD_NODE]
    assert {name: dict(node.affiliations) for name, node in nodes.items()} == {
        "blog": {"alice@localhost": "owner", "bob@localhost": "publisher"},
        "geo": {"alice@localhost": "owner"},
        "private": {
            "alice@localhost": "owner",
            "bob@localhost": "member",
            "carol@example.org": "publisher",
            "mallory@example.org": "outcast",
        },
        "transient": {"alice@localhost": "owner"},
        ODD_NODE: {"alice@localhost": "owner"},
    }
    assert {name: list(node.subscriptions) for name, node in nodes.items()} == {
        "blog": [
            MovedSubscription("alice@localhost", "subscribed", NO_OPTIONS),
            MovedSubscription("bob@localhost", "subscribed", NO_OPTIONS),
        ],
        "geo": [MovedSubscription("bob@localhost/b", "subscribed", NO_OPTIONS)],
        "private": [MovedSubscription("bob@localhost", "subscribed", NO_OPTIONS)],
        "transient": [],
        ODD_NODE: [],
    }
    assert {name: [made_id(item) for item in items(node)] for name, node in nodes.items()} == {
        "blog": ["i0", "i1", "i2", "i4", "urn:uuid:ä/: ,<", "made", "by-b"],
        "geo": ["g2", "g3", "g4"],
        "private": ["p1"],
        "transient": [],
        ODD_NODE: ["only"],
    }
    assert {name for name, node in nodes.items() if node.problems} == set()


@pytest.mark.parametrize("kind", SOURCES)
def test_sample_has_the_dates_and_publishers(kind: str, sources: dict[str, str]) -> None:
    """[IMP-024] [IMP-030] [IMP-043]"""
    nodes, _problems = read(kind, sources[kind])
    blog = {made_id(item): item for item in items(nodes["blog"])}

    for item in blog.values():
        assert item.created_us is not None and item.modified_us is not None
        assert SOURCES[kind] < item.created_us <= item.modified_us < SOURCES[kind] + MINUTE_US
        assert (item.created_us < item.modified_us) == (item.id == "i1")  # edited
    assert blog["i0"].publisher == "alice@localhost/a"
    assert blog["by-b"].publisher == "bob@localhost/b"


def test_dates_are_those_of_the_sample(sources: dict[str, str]) -> None:
    """[IMP-024] [IMP-030] [IMP-043] To the microsecond."""
    dates = {
        kind: (item.created_us, item.modified_us)
        for kind in SOURCES
        for item in items(read(kind, sources[kind])[0]["blog"])
        if item.id == "i1"
    }

    assert dates == {
        "dump": (1_795_312_496_070_264, 1_795_312_496_073_662),
        "sqlite": (1_795_312_600_848_929, 1_795_312_600_860_126),
        "postgresql": (1_795_312_612_375_836, 1_795_312_612_396_545),
        "sat-pubsub": (1_795_312_693_164_375, 1_795_312_693_271_027),
    }


def test_payloads_are_the_same_in_every_sample(sources: dict[str, str]) -> None:
    """[IMP-022] [IMP-025] [IMP-030] [IMP-042]"""
    payloads = {
        kind: {
            (name, made_id(item)): bytes(accept_payload(parse_payload(item.payload)))
            for name, node in read(kind, sources[kind])[0].items()
            for item in items(node)
        }
        for kind in SOURCES
    }

    assert payloads["dump"] == payloads["sqlite"] == payloads["postgresql"] == payloads["sat-pubsub"]
    assert payloads["dump"]["geo", "g2"].decode() == (
        '<geoloc xmlns="http://jabber.org/protocol/geoloc"><lat>2.5</lat><text xml:lang="de">Straße 2</text></geoloc>'
    )
    assert "<name>Alïce &amp; co</name>" in payloads["dump"]["blog", "i1"].decode()
    assert "<b>bold</b> 😀 &lt;x&gt; ]]&gt;</div>" in payloads["dump"]["blog", "i1"].decode()


@pytest.mark.parametrize("kind", ["dump", "sqlite", "postgresql"])
def test_options_of_ejabberd_are_fields_of_the_form(kind: str, sources: dict[str, str]) -> None:
    """[IMP-027] [IMP-029] [IMP-030]"""
    nodes, _problems = read(kind, sources[kind])

    assert nodes["blog"].options == {
        "pubsub#access_model": ("open",),
        "pubsub#deliver_notifications": ("true",),
        "pubsub#deliver_payloads": ("true",),
        "pubsub#description": ("about ü",),
        "pubsub#itemreply": ("none",),
        "pubsub#max_items": ("1000",),
        "pubsub#max_payload_size": ("250000",),
        "pubsub#notification_type": ("headline",),
        "pubsub#notify_config": ("false",),
        "pubsub#notify_delete": ("false",),
        "pubsub#notify_retract": ("true",),
        "pubsub#persist_items": ("true",),
        "pubsub#presence_based_delivery": ("false",),
        "pubsub#publish_model": ("publishers",),
        "pubsub#purge_offline": ("false",),
        "pubsub#send_last_published_item": ("on_sub_and_presence",),
        "pubsub#subscribe": ("true",),
        "pubsub#title": ("A blog & more",),
        "pubsub#type": ("urn:xmpp:microblog:0",),
    }
    assert nodes["private"].options["pubsub#access_model"] == ("whitelist",)


def test_options_of_sat_pubsub_are_fields_of_the_form(sources: dict[str, str]) -> None:
    """[IMP-040] [IMP-041] [IMP-044] The report names what this service does not store."""
    nodes, problems = read("sat-pubsub", sources["sat-pubsub"])

    assert nodes["private"].options == {
        "pubsub#access_model": ("whitelist",),
        "pubsub#persist_items": ("true",),
        "pubsub#deliver_payloads": ("true",),
        "pubsub#max_items": ("5",),
        "pubsub#send_last_published_item": ("on_sub",),
        "pubsub#publish_model": ("publishers",),
    }
    assert nodes[ODD_NODE].options["pubsub#max_items"] == ("max",)
    assert nodes["transient"].options["pubsub#persist_items"] == ("false",)
    assert [problem.subject for problem in problems] == ["titles, descriptions and types"]


@pytest.mark.parametrize("kind", ["dump", "sqlite", "postgresql"])
def test_host_must_be_in_the_source(kind: str, sources: dict[str, str]) -> None:
    """[IMP-023]"""
    with pytest.raises(ConfigError, match=r"no nodes of other\.localhost.*with --host: pubsub\.localhost$"):
        read(kind, sources[kind], "other.localhost")


def test_nodes_of_other_services_and_users_are_left_out(tmp_path: Path, sources: dict[str, str]) -> None:
    """[IMP-023] In SQL a node of a user has the address of the user as its host."""
    path = tmp_path / "ejabberd.db"
    path.write_bytes(Path(sources["sqlite"]).read_bytes())
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE pubsub_node SET host = 'alice@localhost' WHERE node = 'geo'")
        connection.execute("UPDATE pubsub_node SET host = 'second.localhost' WHERE node = 'private'")
    connection.close()

    nodes, problems = read("sqlite", str(path), HOST)

    assert sorted(nodes) == ["blog", "transient", ODD_NODE]
    assert problems == [MovedProblem("nodes of user accounts", "1 node (PEP) stays on the server")]
    with pytest.raises(ConfigError, match=r"with --host: pubsub\.localhost, second\.localhost$"):
        read("sqlite", str(path), "other.localhost")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("ejabberd-23.01-mnesia/mnesia.backup", "is a binary backup of mnesia; restore it.*ejabberdctl dump"),
        ("ejabberd-23.01-mnesia/pubsub_item.dump", "has no table pubsub_node, pubsub_state; dump all tables"),
        ("ejabberd-23.01.sqlite.sql", "is no text dump of mnesia"),
        ("missing", "cannot read .*No such file"),
        ("prosody-0.12-files", "has no files; name the folder into which ejabberdctl dump_table has written"),
    ],
)
def test_other_files_are_refused_with_advice(file: str, message: str) -> None:
    """[IMP-020] [IMP-021]"""
    with pytest.raises(DocumentError, match=message):
        read("dump", str(SAMPLES / file))


def test_database_of_mysql_is_refused_with_advice() -> None:
    """[IMP-032]"""
    with pytest.raises(ConfigError, match="mysql databases cannot be read"):
        read("dump", "mysql://localhost/ejabberd")


def test_tables_may_be_in_files_of_one_folder(tmp_path: Path) -> None:
    """[IMP-020] [IMP-021] What `dump_table` writes: each file begins with its own table."""
    text = DUMP.read_bytes()
    for table in (b"pubsub_node", b"pubsub_state", b"pubsub_item"):
        head = re.search(rb"\{%s,\[\{record_name.*?\}\]\}" % table, text, re.DOTALL)
        assert head is not None
        records = re.findall(rb"^\{%s,.*?\}\.\n" % table, text, re.DOTALL | re.MULTILINE)
        (tmp_path / table.decode()).write_bytes(b"{tables,[%b]}.\n" % head[0] + b"".join(records))

    assert read("dump", str(tmp_path)) == read("dump", str(DUMP))


def test_dates_of_the_newest_schema_are_microseconds(tmp_path: Path, sources: dict[str, str]) -> None:
    """[IMP-030] Since 2026 `creation` and `modification` are numbers."""
    path = tmp_path / "ejabberd.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SAMPLES / "ejabberd-23.01.sqlite.sql").read_text("utf-8"))
        items_of_old = connection.execute(
            "SELECT nodeid, itemid, publisher, creation, modification, payload FROM pubsub_item"
        )
        rows = [
            (node, item, by, *(int(text.replace(":", "")) for text in dates), payload)
            for node, item, by, *dates, payload in items_of_old
        ]
        connection.execute("DROP TABLE pubsub_item")
        connection.execute(
            "CREATE TABLE pubsub_item (nodeid bigint, itemid text NOT NULL, publisher text NOT NULL,"
            " creation bigint NOT NULL, modification bigint NOT NULL, payload text NOT NULL)"
        )
        connection.executemany("INSERT INTO pubsub_item VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()

    new, old = (read("sqlite", source)[0] for source in (str(path), sources["sqlite"]))
    assert {name: items(node) for name, node in new.items()} == {name: items(node) for name, node in old.items()}


SUBSCRIBE_OPTIONS = {"pubsub#deliver": ("false",), "pubsub#show-values": ("away", "xa")}


def test_options_of_subscriptions_are_read_from_a_dump(tmp_path: Path) -> None:
    """[IMP-026] The table is there if a plugin stores options."""
    (tmp_path / "mnesia.dump").write_bytes(DUMP.read_bytes())
    options = b'[{deliver,false},{show_values,[<<"away">>,<<"xa">>]}]'
    (tmp_path / "options.dump").write_bytes(
        b"{tables,[{pubsub_subscription,[{record_name,pubsub_subscription},{attributes,[subid,options]}]}]}.\n"
        b'{pubsub_subscription,<<"7034C4B016CFB">>,%b}.\n{pubsub_subscription,<<"other">>,[]}.\n' % options
    )

    nodes, problems = read("dump", str(tmp_path))

    with_options = [each for node in nodes.values() for each in node.subscriptions if each.options]
    assert [dict(each.options) for each in with_options] == [SUBSCRIBE_OPTIONS]
    assert problems == read("dump", str(DUMP))[1]


def test_options_of_subscriptions_are_read_from_sql(tmp_path: Path) -> None:
    """[IMP-029]"""
    path = tmp_path / "ejabberd.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SAMPLES / "ejabberd-23.01.sqlite.sql").read_text("utf-8"))
        connection.executemany(
            "INSERT INTO pubsub_subscription_opt VALUES ('7034C518DF37B', ?, ?)",
            [("DELIVER", "0"), ("SHOW_VALUES", "awayxa")],
        )
        connection.commit()

    nodes, _problems = read("sqlite", str(path))

    assert {each.jid: dict(each.options) for each in nodes["blog"].subscriptions} == {
        "alice@localhost": {},
        "bob@localhost": SUBSCRIBE_OPTIONS | {"pubsub#deliver": ("0",)},
    }


def test_records_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    """[IMP-021] [IMP-067] The others are read."""
    text = DUMP.read_bytes()
    damaged = (
        text.replace(b'{<<"i2">>,1}', b"{<<300>>,1}")
        .replace(b'{xmlcdata,<<"odd node">>}', b'<<"odd node">>')
        .replace(b'{subscribe,true},\n              {title,<<"secret">>}', b"{subscribe,{1}}")
        .replace(b"member,\n", b"[],\n")
    )
    path = tmp_path / "mnesia.dump"
    path.write_bytes(damaged)

    nodes, problems = read("dump", str(path))

    blog = [made_id(part) for part in nodes["blog"].items if isinstance(part, MovedItem)]
    assert blog == ["i0", "i1", "i4", "urn:uuid:ä/: ,<", "made", "by-b"]
    assert problems == []
    unreadable = [part for name in ("blog", ODD_NODE) for part in nodes[name].items if isinstance(part, MovedProblem)]
    assert [part.reason for part in unreadable] == [
        "the text is no Erlang term (at byte 21)",
        "the payload is no element of ejabberd (xmlel)",
    ]
    assert all(re.fullmatch(r"record at byte \d+ of mnesia\.dump", part.subject) for part in unreadable)
    assert {type(part) for part in unreadable} == {UnreadableItem}
    assert nodes["private"].problems == [
        MovedProblem("a row of pubsub_state", "unknown form of the record"),
        MovedProblem("option pubsub#subscribe", "the value cannot be read"),
    ]


def test_damaged_access_model_does_not_open_the_node(tmp_path: Path, sources: dict[str, str]) -> None:
    """[IMP-030] [IMP-045] The moved node is a whitelist, as that of any unknown model."""
    dump, database = tmp_path / "mnesia.dump", tmp_path / "ejabberd.sqlite"
    dump.write_bytes(DUMP.read_bytes().replace(b"{access_model,whitelist}", b"{access_model,{whitelist}}"))
    database.write_bytes(Path(sources["sqlite"]).read_bytes())
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE pubsub_node_option SET val = '{' WHERE name = 'access_model' AND val = 'whitelist'")

    for kind, source in (("dump", dump), ("sqlite", database)):
        nodes, _problems = read(kind, str(source))
        assert nodes["private"].options["pubsub#access_model"] == ()
        assert nodes["private"].problems == [MovedProblem("option pubsub#access_model", "the value cannot be read")]
        assert nodes["blog"].options["pubsub#access_model"] == ("open",)


def test_date_beyond_every_clock_is_no_date(tmp_path: Path) -> None:
    """[IMP-024]"""
    path = tmp_path / "mnesia.dump"
    path.write_bytes(DUMP.read_bytes().replace(b"{1795,", b"{1795000000000000000,"))

    nodes, _problems = read("dump", str(path))

    assert {(item.created_us, item.modified_us) for item in items(nodes["blog"])} == {(None, None)}


def test_torn_dump_is_reported(tmp_path: Path) -> None:
    """[IMP-067] Everything before the last record is read."""
    path = tmp_path / "mnesia.dump"
    path.write_bytes(DUMP.read_bytes()[:-60])

    nodes, problems = read("dump", str(path))

    assert sorted(nodes) == ["blog", "geo", "transient", ODD_NODE]
    assert [problem.reason for problem in problems] == ["the term ends in the middle"]
    assert isinstance(problems[0], UnreadableNode)


@pytest.mark.parametrize(
    ("version", "message"),
    [("4", "version 4 .*version 5 is the oldest.*libervia_pubsub_update_4_5.sql"), ("", "version none")],
)
def test_old_version_of_sat_pubsub_is_refused(version: str, message: str, postgres: PostgresServer) -> None:
    """[IMP-046]"""
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE metadata (key text PRIMARY KEY, value text)")
        connection.execute("INSERT INTO metadata VALUES ('version', %s)", [version])

    with pytest.raises(DocumentError, match=message):
        read("sat-pubsub", url)


def test_newer_version_of_sat_pubsub_is_reported(sources: dict[str, str]) -> None:
    """[IMP-046] It may have further rules of access."""
    with psycopg.connect(sources["sat-pubsub"], autocommit=True) as connection:
        connection.execute("UPDATE metadata SET value = '11'")
        try:
            nodes, problems = read("sat-pubsub", sources["sat-pubsub"])
        finally:
            connection.execute("UPDATE metadata SET value = '10'")

    assert len(nodes) == 5
    assert problems[0].subject == "version 11 of the schema"


# What the upgrade scripts of sat-pubsub add from version 5 to version 10.
SINCE_VERSION_5 = """
    DROP TABLE roster;
    DROP TRIGGER nodes_fts_language_update ON nodes;
    DROP TRIGGER items_fts_tsvector_update ON items;
    ALTER TABLE nodes DROP COLUMN fts_language, DROP COLUMN overwrite_policy;
    ALTER TABLE items DROP COLUMN data_fts_cfg, DROP COLUMN data_fts;
    ALTER TABLE subscriptions DROP COLUMN ext_service, DROP COLUMN ext_node, DROP COLUMN public;
    UPDATE metadata SET value = '5';
"""


def test_version_5_of_sat_pubsub_is_read(sources: dict[str, str], postgres: PostgresServer) -> None:
    """[IMP-046]"""
    url = postgres.create_database(sources["sat-pubsub"].rpartition("/")[2])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SINCE_VERSION_5)

    assert read("sat-pubsub", url) == read("sat-pubsub", sources["sat-pubsub"])
    postgres.drop_database(url)


def test_items_of_one_request_to_sat_pubsub_keep_their_order(sources: dict[str, str], postgres: PostgresServer) -> None:
    """[IMP-043] [IMP-061] They have one date. A table has its rows in the order of their last update."""
    url = postgres.create_database(sources["sat-pubsub"].rpartition("/")[2])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE items SET created = '2026-01-02', updated = '2026-01-02'")
        connection.execute("UPDATE items SET publisher = publisher WHERE item = 'i0'")
        statement = "SELECT item FROM items JOIN nodes USING (node_id) WHERE node = 'blog' ORDER BY item_id"
        ids = [row[0] for row in connection.execute(statement).fetchall()]

    nodes, _ = read("sat-pubsub", url)

    assert ids[0] == "i0"
    assert [item.id for item in items(nodes["blog"])] == ids
    postgres.drop_database(url)


def test_items_and_nodes_for_some_users_stay_closed(sources: dict[str, str]) -> None:
    """[IMP-045] The items are left out and named, unless the node is a whitelist."""
    with psycopg.connect(sources["sat-pubsub"], autocommit=True) as connection:
        connection.execute("UPDATE items SET access_model = 'whitelist' WHERE item IN ('i0', 'p1', 'g2')")
        connection.execute("INSERT INTO item_jids_authorized VALUES (901, 2, 'bob@localhost')")
        connection.execute("INSERT INTO item_groups_authorized VALUES (902, 3, 'friends')")
        connection.execute("UPDATE nodes SET access_model = 'publisher-roster' WHERE node = 'geo'")
        connection.execute("UPDATE nodes SET access_model = 'self-publisher' WHERE node = 'transient'")
        try:
            nodes, _problems = read("sat-pubsub", sources["sat-pubsub"])
        finally:
            connection.execute("UPDATE items SET access_model = 'open'")
            connection.execute("DELETE FROM item_jids_authorized")
            connection.execute("DELETE FROM item_groups_authorized")
            connection.execute("UPDATE nodes SET access_model = 'open' WHERE node IN ('geo', 'transient')")

    blog = list(nodes["blog"].items)
    assert {item.subject for item in blog if isinstance(item, MovedProblem)} == {"item i0", "item i1", "item i2"}
    assert {made_id(item) for item in blog if isinstance(item, MovedItem)} == {"i4", "urn:uuid:ä/: ,<", "made", "by-b"}
    warning, item = nodes["private"].items
    assert isinstance(item, MovedItem) and item.id == "p1"
    assert warning == MovedProblem("item p1", "only some members of the node could read it; now all of them may")
    # The node is a whitelist only here.
    assert [part.id for part in nodes["geo"].items if isinstance(part, MovedItem)] == ["g3", "g4"]
    assert nodes["geo"].options["pubsub#access_model"] == ("whitelist",)
    assert nodes["geo"].problems == [MovedProblem("option pubsub#access_model", "publisher-roster becomes whitelist")]
    assert nodes["transient"].options["pubsub#access_model"] == ("whitelist",)


def test_record_of_an_unknown_form_is_reported_with_its_node(tmp_path: Path) -> None:
    """[IMP-067] The other items of the node are read."""
    path = tmp_path / "mnesia.dump"
    data = DUMP.read_bytes()
    path.write_bytes(
        data.replace(b'{{1795,312496,69497},{<<"alice">>', b'{[],{<<"alice">>', 1).replace(
            b'{{1795,312496,71159},{<<"alice">>,<<"localhost">>,<<>>}}', b"none", 1
        )
    )

    nodes, problems = read("dump", str(path))

    assert problems == []
    unreadable = [part for part in nodes["blog"].items if isinstance(part, MovedProblem)]
    assert [part.reason for part in unreadable] == ["unknown form of a record pubsub_item"]
    read_ids = [made_id(part) for part in nodes["blog"].items if isinstance(part, MovedItem)]
    assert read_ids == ["i0", "i1", "i4", "urn:uuid:ä/: ,<", "made", "by-b"]


def test_dump_whose_first_term_names_no_table_of_its_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mnesia.dump"
    path.write_bytes(DUMP.read_bytes().replace(b"{pubsub_node,[{record_name", b"{pubsub_nodes,[{record_name", 1))

    with pytest.raises(DocumentError, match="has records of pubsub_node, but not in its first term"):
        read("dump", str(path))
