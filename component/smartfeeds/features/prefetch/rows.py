"""Enclosures that are loaded in advance, their items, and the log of arrivals in SQL (`enclosure`)."""

from collections.abc import Collection, Sequence
from typing import Final

from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState, EnclosureUse, FileArrival
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_tables import Table, none_of

ENCLOSURE = Table(
    "enclosure",
    "enclosure_no",
    "url, host, digest, media_type, length_bytes, state, reason, dated_us, since_us, failures, tried_us, asked_us,"
    " total_bytes, etag, modified, condition, partial_bytes, night_us, night_bytes",
)
ENCLOSURE_USE = Table("enclosure_use", "enclosure_no, source_no, item_id", "node, dated_us")
ARRIVAL = Table("arrival", "arrival_no", "at_us, node, item_id, url, size_bytes, seconds, reason")

_WAITING: Final = "state = 'waiting'"
_ARRIVED: Final = "state = 'arrived'"
_USE_COLUMNS: Final = "enclosure_no, source_no, item_id, node, dated_us"


def _to_enclosure(row: Row) -> Enclosure:
    enclosure = Enclosure(*row)
    return enclosure._replace(state=EnclosureState(enclosure.state))


def enclosure(tx: ReadTx, enclosure_no: int) -> Enclosure | None:
    """Returns the enclosure with this number."""
    return _one(tx, "enclosure_no = ?", enclosure_no)


def enclosure_at(tx: ReadTx, url: str) -> Enclosure | None:
    """Returns the enclosure at an address."""
    return _one(tx, "url = ?", url)


def enclosure_of_digest(tx: ReadTx, digest: str) -> Enclosure | None:
    """Returns the enclosure whose address has this digest."""
    return _one(tx, "digest = ?", digest)


def _one(tx: ReadTx, condition: str, value: object) -> Enclosure | None:
    row = tx.db.row(f"{ENCLOSURE.select} WHERE {condition}", (value,))
    return _to_enclosure(row) if row else None


def enclosures(tx: ReadTx, after_no: int, limit: int) -> list[Enclosure]:
    """Returns enclosures by number."""
    rows = tx.db.rows(f"{ENCLOSURE.select} WHERE enclosure_no > ? ORDER BY enclosure_no LIMIT ?", (after_no, limit))
    return [_to_enclosure(row) for row in rows]


def asked(tx: ReadTx, hosts: Collection[str], limit: int) -> list[Enclosure]:
    """Returns enclosures that an operator wants now and that no load of these hosts excludes, first asked first."""
    rows = tx.db.rows(
        f"{ENCLOSURE.select} WHERE asked_us IS NOT NULL AND {_WAITING} AND {none_of('host', hosts)}"
        " ORDER BY asked_us LIMIT ?",
        (*hosts, limit),
    )
    return [_to_enclosure(row) for row in rows]


def due(tx: ReadTx, open_us: int, hosts: Collection[str], limit: int) -> list[Enclosure]:
    """Returns waiting enclosures that were not tried since a window has opened, except those of some hosts: those
    with a partial file first, then the newest first (PRE-007)."""
    rows = tx.db.rows(
        f"{ENCLOSURE.select} WHERE {_WAITING} AND tried_us < ? AND {none_of('host', hosts)}"
        " ORDER BY condition = '', dated_us DESC LIMIT ?",
        (open_us, *hosts, limit),
    )
    return [_to_enclosure(row) for row in rows]


def uses(tx: ReadTx, enclosure_no: int) -> list[EnclosureUse]:
    """Returns the items that name an enclosure, the newest first."""
    rows = tx.db.rows(
        f"SELECT {_USE_COLUMNS} FROM enclosure_use WHERE enclosure_no = ? ORDER BY dated_us DESC, item_id",
        (enclosure_no,),
    )
    return [EnclosureUse(*row) for row in rows]


def uses_of(tx: ReadTx, source_no: int) -> list[EnclosureUse]:
    """Returns the items of a source that name enclosures, the newest first."""
    rows = tx.db.rows(
        f"SELECT {_USE_COLUMNS} FROM enclosure_use WHERE source_no = ? ORDER BY dated_us DESC, enclosure_no DESC",
        (source_no,),
    )
    return [EnclosureUse(*row) for row in rows]


def sources(tx: ReadTx, after_no: int, limit: int) -> list[int]:
    """Returns the numbers of sources whose items name enclosures, behind a number."""
    rows = tx.db.rows(
        "SELECT DISTINCT source_no FROM enclosure_use WHERE source_no > ? ORDER BY source_no LIMIT ?",
        (after_no, limit),
    )
    return [row[0] for row in rows]


def arrived_in(tx: ReadTx, node: str) -> list[tuple[Enclosure, str]]:
    """Returns the complete enclosures of a node with the ids of the items that name them."""
    columns = ", ".join(f"e.{column}" for column in ENCLOSURE.columns.split(", "))
    rows = tx.db.rows(
        f"SELECT {columns}, u.item_id FROM enclosure_use u JOIN enclosure e USING (enclosure_no)"
        f" WHERE u.node = ? AND e.{_ARRIVED}",
        (node,),
    )
    return [(_to_enclosure(row[:-1]), row[-1]) for row in rows]


def oldest(tx: ReadTx, limit: int) -> list[Enclosure]:
    """Returns complete enclosures, those of the oldest items first."""
    rows = tx.db.rows(f"{ENCLOSURE.select} WHERE {_ARRIVED} ORDER BY dated_us, enclosure_no LIMIT ?", (limit,))
    return [_to_enclosure(row) for row in rows]


def enclosures_before(tx: ReadTx, since_us: int, limit: int) -> list[Enclosure]:
    """Returns enclosures whose state is older than a time. The cost grows with the number of enclosures."""
    rows = tx.db.rows(f"{ENCLOSURE.select} WHERE since_us < ? LIMIT ?", (since_us, limit))
    return [_to_enclosure(row) for row in rows]


def unused(tx: ReadTx, limit: int) -> list[Enclosure]:
    """Returns enclosures that no item names. The cost grows with the number of enclosures."""
    rows = tx.db.rows(
        f"{ENCLOSURE.select} WHERE NOT EXISTS"
        " (SELECT 1 FROM enclosure_use u WHERE u.enclosure_no = enclosure.enclosure_no) LIMIT ?",
        (limit,),
    )
    return [_to_enclosure(row) for row in rows]


def enclosure_bytes(tx: ReadTx, since_us: int = 0, *, but: int = 0) -> int:
    """Returns the size of the complete files of items from a time on, and of all partial files except one. The cost
    grows with their number."""
    complete = tx.number(
        f"SELECT coalesce(sum(length_bytes), 0) FROM enclosure WHERE {_ARRIVED} AND dated_us >= ?", (since_us,)
    )
    partial = f"SELECT coalesce(sum(partial_bytes), 0) FROM enclosure WHERE {_WAITING} AND enclosure_no <> ?"
    return complete + tx.number(partial, (but,))


def night_bytes(tx: ReadTx, source_no: int, night_us: int) -> int:
    """Returns how much was loaded for a source in the window that opened at a time."""
    return tx.number(
        "SELECT coalesce(sum(night_bytes), 0) FROM enclosure WHERE night_us = ? AND enclosure_no IN"
        " (SELECT enclosure_no FROM enclosure_use WHERE source_no = ?)",
        (night_us, source_no),
    )


def totals(tx: ReadTx) -> list[tuple[str, int, int]]:
    """Returns the number and the bytes of the enclosures in each state. The cost grows with their number."""
    size = f"sum(CASE WHEN {_ARRIVED} THEN length_bytes ELSE partial_bytes END)"
    rows = tx.db.rows(f"SELECT state, count(*), {size} FROM enclosure GROUP BY state")
    return [(row[0], row[1], int(row[2])) for row in rows]


def known(tx: ReadTx, digests: Collection[str], *, complete: bool) -> set[str]:
    """Returns those of the digests that belong to complete files, or to files that wait for their rest."""
    exists = f"SELECT 1 FROM enclosure WHERE digest = ? AND {_ARRIVED if complete else _WAITING}"
    return {digest for digest in digests if tx.db.row(exists, (digest,))}


def arrivals(tx: ReadTx, after_no: int, limit: int) -> list[FileArrival]:
    """Returns entries of the log, the oldest first."""
    rows = tx.db.rows(f"{ARRIVAL.select} WHERE arrival_no > ? ORDER BY arrival_no LIMIT ?", (after_no, limit))
    return [FileArrival(*row) for row in rows]


def add(tx: WriteTx, enclosure: Enclosure) -> Enclosure:
    """Stores a new enclosure and returns it with its number."""
    tx.changes += 1
    return enclosure._replace(enclosure_no=tx.db.add(ENCLOSURE, enclosure[1:]))


def put(tx: WriteTx, enclosure: Enclosure) -> None:
    """Replaces an enclosure."""
    tx.change(ENCLOSURE.update, (*enclosure[1:], enclosure.enclosure_no))


def remove(tx: WriteTx, enclosure_no: int) -> None:
    """Removes an enclosure and its uses."""
    tx.change(ENCLOSURE.delete, (enclosure_no,))


def put_use(tx: WriteTx, use: EnclosureUse) -> None:
    """Stores that an item names an enclosure."""
    tx.change(ENCLOSURE_USE.replace, use)


def remove_uses(tx: WriteTx, uses: Sequence[EnclosureUse]) -> None:
    """Removes uses. An enclosure without uses stays until `remove`."""
    for use in uses:
        tx.change(ENCLOSURE_USE.delete, (use.enclosure_no, use.source_no, use.item_id))


def add_arrival(tx: WriteTx, arrival: FileArrival, before_us: int) -> None:
    """Adds an entry to the log, and removes those from before a time."""
    tx.changes += 1
    tx.db.run(ARRIVAL.add, arrival[1:])
    tx.db.run("DELETE FROM arrival WHERE at_us < ?", (before_us,))
