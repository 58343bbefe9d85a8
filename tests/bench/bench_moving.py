"""How fast nodes move in: `python tests/bench/bench_moving.py [items [form]]`, the form files or sql.

Writes Prosody's storage with one node of so many 1 KB entries, moves it into a new SQLite database, and compares the
digest of (id, dates, payload) of the source with that of the store (IMP-070).
"""

import asyncio
import hashlib
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from lxml import etree

from bench.wire import BenchError
from features.moving_in.prosody_data import ProsodyItem, ProsodyModel, list_entry, write_files, write_sqlite
from smartfeeds.cli.reading import file_spool
from smartfeeds.core.model import NodeKind
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.moving_in.moved import MovedNode, MovedReader
from smartfeeds.features.moving_in.moving import MoveSettings, move_node
from smartfeeds.features.moving_in.prosody_sql import read_prosody
from smartfeeds.formats.atom import read_traits
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.sqlite import SqliteStore

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
    return digest_of(
        (f"i{number}", ((BEGIN_S + number) * US_PER_S,) * 2, stored_payload(ENTRY.format(number, TEXT)))
        for number in range(count)
    )


def stored_payload(entry: str) -> bytes:
    """What the store has of an entry."""
    return accept_payload(parse_payload(entry.encode()))


def digest_of(items: Iterable[tuple[str, tuple[int, ...], bytes]]) -> str:
    """The digest of ids, dates and payloads."""
    digest = hashlib.sha256()
    for item_id, dates, payload in items:
        digest.update(f"{item_id} {dates} ".encode() + payload)
    return digest.hexdigest()


def check_digests(expected: str, database: Path) -> str:
    """Returns a line about the stored items. Raises BenchError if they are not those of the source."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, created_us, modified_us, payload FROM item ORDER BY created_us")
        stored = digest_of((item_id, (created, modified), payload) for item_id, created, modified, payload in rows)
    if stored != expected:
        raise BenchError(f"the digests differ: {expected} in the source, {stored} here")
    return f"the digests are equal: {expected}"


async def move(reader: MovedReader, source: Path, database: Path) -> float:
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
    for node in reader(str(source), HOST):
        assert isinstance(node, MovedNode)
        with file_spool() as spool:
            report = await move_node(service, node, MoveSettings(HOST), spool, time.time_ns() // 1000)
        assert not report.problems, report.problems[:3]
        assert not report.counts.skipped
    seconds = time.perf_counter() - start_s
    await store.close()
    return seconds


def cost_lines(reader: MovedReader, source: Path, database: Path, count: int) -> Iterator[str]:
    """Moves the node, and yields lines about the time and the memory."""
    began = resource.getrusage(resource.RUSAGE_SELF)
    seconds = asyncio.run(move(reader, source, database))
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    yield f"{count:,} items in {seconds:.1f} s, {count / seconds:,.0f}/s; {cpu_s:.1f} s of processor time"
    yield f"greatest memory: {ended.ru_maxrss / 1024:,.0f} MB"


def measure(folder: Path, form: str, count: int) -> Iterator[str]:
    """Yields one line for each measurement. Raises BenchError if the stored items are not those of the source."""
    source, database = write_source(folder, form, count), folder / "feeds.db"
    for line in cost_lines(read_prosody, source, database, count):
        yield f"{form}: {line}"
    yield f"{form}: {check_digests(source_digest(count), database)}"


def main(arguments: list[str], say: Callable[[str], None] = print) -> None:
    """Runs the benchmark."""
    count = int(arguments[0]) if arguments else 100_000
    for form in arguments[1:] or ["files", "sql"]:
        with tempfile.TemporaryDirectory() as folder:
            for line in measure(Path(folder), form, count):
                say(line)


if __name__ == "__main__":
    main(sys.argv[1:])
