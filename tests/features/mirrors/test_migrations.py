"""Mirrors that former versions stored."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, Mirror, MirrorState, dump_settings, dump_states, refusal
from smartfeeds.store import migrations
from smartfeeds.store.sqlite import SqliteStore
from store.values import read_payload


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def test_marks_and_positions_of_mirrors_become_marks_of_consumers(path: Path, raw: sqlite3.Connection) -> None:
    migrations.run(path, "0009")
    raw.execute("INSERT INTO node VALUES (1, 'f', 'feed', 'live', 'o@x', 1, '{}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)")
    raw.execute("INSERT INTO mark VALUES (1, 'modified', 5, 'm'), (1, 'created', 4, 'c')")
    out = MirrorState("1700000000000000:12", 7, None, 3, reasons=(refusal("i", "too large", 6),))
    for number, (node, states) in enumerate((("f", {Direction.OUT: out}), ("f", {}), ("gone", {Direction.OUT: out}))):
        mirror = Mirror(f"m{number}", node, f"xmpp:b{number}.example?;node=n", Direction.OUT)
        put_former_mirror(raw, mirror, states, failure="away", failed_us=8)
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        rows = await store.read(lambda tx: tx.consumers((0, "", ""), 9))
        mirrors = await store.read(lambda tx: stored_mirrors.mirrors(tx))
    finally:
        await store.close()
    assert [(row.consumer, row.order, row.mark) for row in rows] == [
        (Consumer(1, PUSH), Order.CREATED, Mark(4, "c")),
        (Consumer(1, "mirror:xmpp:b0.example?;node=n"), Order.MODIFIED, Mark(1_699_999_999_999_999, "")),
        (Consumer(1, PUSH), Order.MODIFIED, Mark(5, "m")),
    ]
    kept = replace(out, position="")
    assert [row.states for row in mirrors] == [{Direction.OUT: kept}, {}, {Direction.OUT: kept}]


async def test_failure_of_an_incoming_mirror_gets_the_form_of_a_delivery_failure(
    path: Path, raw: sqlite3.Connection
) -> None:
    migrations.run(path, "0012")
    well = MirrorState("12", 7, None, 3, note="read")
    for number, (failure, failed_us) in enumerate((("", None), ("answered 404", 8), ("away", None))):
        mirror = Mirror(f"m{number}", "f", "https://b.example/f.xml")
        put_former_mirror(raw, mirror, {Direction.IN: well}, failure=failure, failed_us=failed_us)
    store = SqliteStore(path, read_payload)
    await store.open()
    try:
        mirrors = await store.read(lambda tx: stored_mirrors.mirrors(tx))
    finally:
        await store.close()
    failed, undated = Failure(1, 8, 8, "answered 404"), Failure(1, 0, 0, "away")
    assert [row.state(Direction.IN) for row in mirrors] == [
        well,
        replace(well, failure=failed),
        replace(well, failure=undated),
    ]


def put_former_mirror(
    raw: sqlite3.Connection,
    mirror: Mirror,
    states: Mapping[Direction, MirrorState],
    *,
    failure: str,
    failed_us: int | None,
) -> None:
    """Stores a mirror as the schema 0012 has it."""
    fields = json.loads(dump_states(states))
    for state in fields.values():
        del state["node_no"]
        state |= {"failure": failure, "failed_us": failed_us}
    raw.execute("INSERT INTO mirror VALUES (?, 0, ?, ?)", (mirror.name, dump_settings(mirror), json.dumps(fields)))
