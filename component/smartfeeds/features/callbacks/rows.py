"""Registrations of callbacks in SQL (`registration`)."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from smartfeeds.features.callbacks.registration import Callback, CallbackKind
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.row_readers import RowReader
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_tables import Table, none_of

CALLBACK = Table(
    "callback",
    "callback_no",
    "kind, active, url, topic, node_no, host, reader, token_id, created_us, expires_us, settings, question, due_us,"
    " tried_us, result",
)


def to_callback(row: Row) -> Callback:
    callback_no, kind, active, *rest = row
    (url, topic, node_no, host, reader, token_id, created_us, expires_us, *changing) = rest
    settings, question, due_us, tried_us, result = changing
    return Callback(
        kind,
        node_no,
        url,
        topic,
        host,
        created_us,
        expires_us,
        callback_no,
        reader,
        token_id,
        bool(active),
        settings,
        question,
        due_us,
        tried_us,
        result,
    )


def _values(callback: Callback) -> tuple[object, ...]:
    one = callback
    return (
        *(one.kind, int(one.active), one.url, one.topic, one.node_no, one.host, one.reader, one.token_id),
        *(one.created_us, one.expires_us, one.settings, one.question, one.due_us, one.tried_us, one.result),
    )


def to_sound_callback(kind: CallbackKind, row: Row) -> Callback:
    """A registration of a kind whose texts its protocol can read. Raises one of `rows.DAMAGES`.

    A registration that was looked up alone is read by its protocol alone.
    """
    callback = to_callback(row)
    kind.check(callback)
    return callback


def row_reader(kind: CallbackKind) -> RowReader:
    """Returns the reader of the rows of one kind, which leaves those of other kinds to theirs."""

    def read(row: Row) -> Callback:
        callback = to_callback(row)
        return to_sound_callback(kind, row) if callback.kind == kind.name else callback

    return RowReader(CALLBACK, "callback_no", CALLBACK.columns, read)


def callback(tx: ReadTx, callback_no: int) -> Callback | None:
    """Returns the registration with this number."""
    row = tx.db.row(f"{CALLBACK.select} WHERE callback_no = ?", (callback_no,))
    return to_callback(row) if row else None


def callback_for(tx: ReadTx, kind: CallbackKind, url: str, topic: str) -> Callback | None:
    """Returns the registration of a callback for a topic, both spelt as here."""
    values = (kind.name, url, topic)
    row = tx.db.row(f"{CALLBACK.select} WHERE kind = ? AND url = ? AND topic = ?", values)
    return to_callback(row) if row else None


def callbacks(tx: ReadTx, kind: CallbackKind, after_no: int, limit: int) -> list[Callback]:
    """Returns registrations by number."""
    statement = f"{CALLBACK.select} WHERE kind = ? AND callback_no > ? ORDER BY callback_no LIMIT ?"
    return tx.values(CALLBACK, partial(to_sound_callback, kind), statement, (kind.name, after_no), limit)


def due(
    tx: ReadTx, kind: CallbackKind, until_us: int, limit: int, *, without_hosts: Collection[str] = ()
) -> list[Callback]:
    """Returns the registrations whose question is due at this time, the one that was due first at the beginning.

    The cost grows with the number of due questions of the hosts that are left out.
    """
    condition = f"kind = ? AND due_us <= ? AND {none_of('host', without_hosts)}"
    statement = f"{CALLBACK.select} WHERE {condition} ORDER BY due_us, callback_no LIMIT ?"
    return tx.values(
        CALLBACK, partial(to_sound_callback, kind), statement, (kind.name, until_us, *without_hosts), limit
    )


def ended(tx: ReadTx, now_us: int, limit: int) -> list[Callback]:
    """Returns the registrations that have ended by this time, of all kinds, the first ones first."""
    rows = tx.db.rows(f"{CALLBACK.select} WHERE expires_us <= ? ORDER BY expires_us LIMIT ?", (now_us, limit))
    return undamaged(CALLBACK, to_callback, rows)


def count(tx: ReadTx, kind: CallbackKind, *, node_no: int | None = None, host: str | None = None) -> int:
    """Returns the number of registrations of a kind: of a node, of a host, or of all. It grows with the number."""
    if node_no is not None:
        return tx.number("SELECT count(*) FROM callback WHERE node_no = ? AND kind = ?", (node_no, kind.name))
    if host is not None:
        return tx.number("SELECT count(*) FROM callback WHERE kind = ? AND host = ?", (kind.name, host))
    return tx.number("SELECT count(*) FROM callback WHERE kind = ?", (kind.name,))


def has_any(tx: ReadTx, node_no: int) -> bool:
    """Whether a node has registrations of any kind."""
    return tx.db.row("SELECT 1 FROM callback WHERE node_no = ? LIMIT 1", (node_no,)) is not None


def put(tx: WriteTx, callback: Callback) -> Callback:
    """Stores a registration, or replaces the one with its number. Returns it with its number."""
    tx.changes += 1
    if not callback.callback_no:
        return replace(callback, callback_no=tx.db.add(CALLBACK, _values(callback)))
    tx.db.run(CALLBACK.update, (*_values(callback), callback.callback_no))
    return callback


def note_deliveries(tx: WriteTx, results: Iterable[tuple[int, int, str]]) -> None:
    """Stores the last deliveries of registrations: number, time in microseconds, result."""
    tx.changes += 1
    tx.db.run_many(
        "UPDATE callback SET tried_us = ?, result = ? WHERE callback_no = ?",
        [(tried_us, result, callback_no) for callback_no, tried_us, result in results],
    )


def remove(tx: WriteTx, callback_no: int) -> None:
    """Removes a registration. Its consumer remains."""
    tx.change(CALLBACK.delete, (callback_no,))
