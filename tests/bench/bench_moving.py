"""How fast nodes move in: `python tests/bench/bench_moving.py [items [form]]`, the form files or sql.

Writes Prosody's storage with one node of so many 1 KB entries, moves it into a new SQLite database, and compares the
digest of (id, payload, time) of the source with that of the store (IMP-070).
"""

import asyncio
import hashlib
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from lxml import etree

from bench.wire import BenchError
from smartfeeds.cli.reading import file_spool
from smartfeeds.core.model import NodeKind
from smartfeeds.core.times import US_PER_S
from smartfeeds.formats.atom import read_traits
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.moved import MovedNode
from smartfeeds.service.moving import MoveSettings, move_node
from smartfeeds.sources.prosody_sql import read_prosody
from smartfeeds.store.sqlite import SqliteStore
from support.prosody_data import ProsodyItem, ProsodyModel, list_entry, write_files, write_sqlite

HOST, NODE = "pubsub.example.org", "blog"
BEGIN_S = 1_700_000_000
TEXT = "The quick brown fox jumps over the lazy dog. " * 16
ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><id>tag:example.org,2026:{0}</id><title>Entry {0}</title>'
    "<updated>2026-01-02T03:04:05Z</updated><published>2026-01-02T03:04:05Z</published>"
    '<author><name>Alice</name></author><category term="news"/><content>{1}</content></entry>'
)


def write_source(folder: Path, form: str, count: int) -> Path:
    """Writes the node, and returns the source."""
    model = ProsodyModel(NODE, (), {"max_items": "max"}, {"alice@example.org": "owner"}, {"bob@example.org": True})
    first = ProsodyItem("i0", 0, "alice@example.org", etree.fromstring(ENTRY.format("@@", TEXT)))
    if form == "files":
        source = write_files(folder / "data", HOST, [model])
        template = list_entry(first)
        with (source / "pubsub%2eexample%2eorg" / f"pubsub_{NODE}.list").open("w") as file:
            for number in range(count):
                text = template.replace("@@", str(number)).replace('"i0"', f'"i{number}"')
                file.write(text.replace('["when"] = 0', f'["when"] = {BEGIN_S + number}'))
        return source
    source = write_sqlite(folder / "prosody.sqlite", HOST, [model])
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.executemany(
            "INSERT INTO prosodyarchive VALUES (NULL, ?, '', ?, ?, ?, 'alice@example.org', 'xml', ?)",
            (
                (HOST, f"pubsub_{NODE}", f"i{number}", BEGIN_S + number, ENTRY.format(number, TEXT))
                for number in range(count)
            ),
        )
    return source


def source_digest(count: int) -> str:
    """The digest of what was written, made without the importer."""
    digest = hashlib.sha256()
    for number in range(count):
        payload = accept_payload(parse_payload(ENTRY.format(number, TEXT).encode()))
        digest.update(f"i{number} {(BEGIN_S + number) * US_PER_S} ".encode() + payload)
    return digest.hexdigest()


def store_digest(path: Path) -> str:
    """The digest of what is stored, in the created order."""
    digest = hashlib.sha256()
    with closing(sqlite3.connect(path)) as connection:
        for item_id, created_us, payload in connection.execute(
            "SELECT id, created_us, payload FROM item ORDER BY created_us"
        ):
            digest.update(f"{item_id} {created_us} ".encode() + payload)
    return digest.hexdigest()


async def move(source: Path, database: Path) -> float:
    """Moves the node. Returns the seconds."""
    store = SqliteStore(database, read_traits)
    service = FeedService(
        store,
        Policy(HOST, default_kind=NodeKind.FEED),
        clock=lambda: time.time_ns() // 1000,
        new_id=lambda: "unused",
        on_change=lambda _nodes: None,
    )
    await store.open()
    start_s = time.perf_counter()
    for node in read_prosody(str(source), HOST):
        assert isinstance(node, MovedNode)
        with file_spool() as spool:
            report = await move_node(service, node, MoveSettings(HOST), spool, time.time_ns() // 1000)
        assert not report.problems, report.problems[:3]
        assert not report.counts.skipped
    seconds = time.perf_counter() - start_s
    await store.close()
    return seconds


def measure(folder: Path, form: str, count: int) -> Iterator[str]:
    """Yields one line for each measurement. Raises BenchError if the stored items are not those of the source."""
    source, database = write_source(folder, form, count), folder / "feeds.db"
    began = resource.getrusage(resource.RUSAGE_SELF)
    seconds = asyncio.run(move(source, database))
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    yield f"{form}: {count:,} items in {seconds:.1f} s, {count / seconds:,.0f}/s; {cpu_s:.1f} s of processor time"
    yield f"greatest memory: {ended.ru_maxrss / 1024:,.0f} MB"
    digests = source_digest(count), store_digest(database)
    if digests[0] != digests[1]:
        raise BenchError(f"the digests differ: {digests[0]} in the source, {digests[1]} here")
    yield f"the digests are equal: {digests[0]}"


def main(arguments: list[str], say: Callable[[str], None] = print) -> None:
    """Runs the benchmark."""
    count = int(arguments[0]) if arguments else 100_000
    for form in arguments[1:] or ["files", "sql"]:
        with tempfile.TemporaryDirectory() as folder:
            for line in measure(Path(folder), form, count):
                say(line)


if __name__ == "__main__":
    main(sys.argv[1:])
