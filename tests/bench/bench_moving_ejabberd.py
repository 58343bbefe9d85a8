"""How fast nodes move in from ejabberd: `python tests/bench/bench_moving_ejabberd.py [items [form]]`.

The form is `sql` (a SQLite file) or `dump` (mnesia). The script writes the storage of a node with so many entries of
1 KB, every tenth of them edited later, and moves it into a new SQLite database. It compares the digest of (id, payload,
created, modified) of the source with that of the store (IMP-070).
"""

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lxml import etree

from bench.bench_moving import HOST, NODE, check_digests, cost_lines, digest_of, stored_payload
from features.moving_in.erlang import HEADER, item_term, node_term, state_term, text_of_term, write_terms
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.erlang_terms import ErlangAtom
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode

ALICE = "alice@example.org/home"
BEGIN_US, STEP_US, EDITED_US = 1_700_000_000_000_000, 1_000_003, 2_000_000_000_007
SCHEMA = Path(__file__).parents[1] / "features/moving_in/data" / "ejabberd-23.01.sqlite.sql"
TEXT = "The quick brown fox jumps over the lazy dog. " * 15
ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:{0}</id><title>Entry {0}</title>"
    "<updated>2026-01-02T03:04:05Z</updated><published>2026-01-02T03:04:05Z</published>"
    "<author><name>Alice</name></author><category term='news'/><content>{1}</content></entry>"
)


def dates(number: int) -> tuple[int, int]:
    """When an item was created and changed."""
    created_us = BEGIN_US + number * STEP_US
    return created_us, created_us + (EDITED_US if number % 10 == 3 else 0)


def date_text(time_us: int) -> str:
    seconds, micro = divmod(time_us, 1_000_000)
    return f"{seconds // 1_000_000:06}:{seconds % 1_000_000:06}:{micro:06}"


def write_sql(folder: Path, count: int) -> Path:
    """Writes the database, and returns its path."""
    path = folder / "ejabberd.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(SCHEMA.read_text("utf-8"))
        for table in ("item", "node", "node_option", "state"):
            connection.execute(f"DELETE FROM pubsub_{table}")
        connection.execute("INSERT INTO pubsub_node VALUES (?, ?, '', 'flat', 1)", (HOST, NODE))
        connection.execute("INSERT INTO pubsub_state VALUES (1, 'alice@example.org', 'o', 's:7034', NULL)")
        connection.executemany(
            "INSERT INTO pubsub_item VALUES (1, ?, ?, ?, ?, ?)",
            (
                (f"i{number}", ALICE, *map(date_text, dates(number)), ENTRY.format(number, TEXT))
                for number in range(count)
            ),
        )
        connection.commit()
    return path


def write_dump(folder: Path, count: int) -> Path:
    """Writes the dump, and returns its path."""
    path = folder / "mnesia.dump"
    created, changed = "{1,2,3}", "{4,5,6}"
    item = MovedItem("@@", ALICE, 1_000_002_000_003, 4_000_005_000_006, b"")
    template = text_of_term(item_term(1, item, etree.fromstring(ENTRY.format("@@", TEXT)))).decode()
    template = template.replace("{1,\n 2,\n 3}", created).replace("{4,\n 5,\n 6}", changed).replace('"@@"', '"i@@"')
    with path.open("wb") as file:
        file.write(HEADER)
        for number in range(count):
            text = template.replace("@@", str(number))
            for place, time_us in zip((created, changed), dates(number), strict=True):
                seconds, micro = divmod(time_us, 1_000_000)
                text = text.replace(place, f"{{{seconds // 1_000_000},{seconds % 1_000_000},{micro}}}")
            file.write(f"{text}.\n".encode())
        file.write(write_terms([state_term("alice@example.org", 1, "owner", ["subscribed"])]))
        file.write(write_terms([node_term(HOST, NODE, 1, {"access_model": ErlangAtom("open")})]))
    return path


def source_digest(count: int) -> str:
    """The digest of what was written, made without the importer."""
    return digest_of(
        (f"i{number}", dates(number), stored_payload(ENTRY.format(number, TEXT))) for number in range(count)
    )


def read_alone(source: Path) -> float:
    """The seconds that the reader needs without the import."""
    start_s = time.perf_counter()
    for node in read_ejabberd(str(source), HOST):
        assert isinstance(node, MovedNode)
        for _ in node.items:
            pass
    return time.perf_counter() - start_s


def measure(folder: Path, form: str, count: int) -> Iterator[str]:
    """Yields one line for each measurement. Raises BenchError if the stored items are not those of the source."""
    source, database = {"sql": write_sql, "dump": write_dump}[form](folder, count), folder / "feeds.db"
    yield f"{form}: {source.stat().st_size / 1e6:,.0f} MB"
    for line in cost_lines(read_ejabberd, source, database, count):
        yield f"{form}: {line}"
    yield f"{form}: the reader alone: {read_alone(source):.1f} s"
    yield f"{form}: {check_digests(source_digest(count), database)}"


def main(arguments: list[str]) -> None:
    """Runs the benchmark."""
    count = int(arguments[0]) if arguments else 100_000
    for form in arguments[1:] or ["sql", "dump"]:
        with tempfile.TemporaryDirectory() as folder:
            for line in measure(Path(folder), form, count):
                print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
