"""Subscriptions of sources at hubs and clouds in SQL (`push_states`)."""

from collections.abc import Sequence
from dataclasses import replace

from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling.push_states import FOLLOWING, PUSH_COLUMNS, PUSH_DETAILS, PushState, SourcePush
from smartfeeds.features.polling.rows import SPREAD_FACTOR, SPREAD_MODULUS
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_tables import Table, first_due

SOURCE_PUSH = Table(
    "source_push",
    "push_no",
    "source_no, token, state, due_us, created_us, since_us, reason, host, url, details",
)

_DUE = first_due(SOURCE_PUSH)
_FOLLOWING = ", ".join(f"'{state.value}'" for state in PushState if state in FOLLOWING)


def to_push(row: Row) -> SourcePush:
    """A subscription from the columns of SOURCE_PUSH. Raises one of `rows.DAMAGES`."""
    *columns, _host, _url, details = row
    return PUSH_DETAILS.read(details, **dict(zip(PUSH_COLUMNS, columns, strict=True)))


def _values(push: SourcePush) -> tuple[object, ...]:
    return (
        *(push.source_no, push.token, push.state.value, push.due_us, push.created_us, push.since_us, push.reason),
        *(push.host, push.target.url, PUSH_DETAILS.write(push)),
    )


def push(tx: ReadTx, push_no: int) -> SourcePush | None:
    """Returns the subscription with this number."""
    row = _push_row(tx, push_no)
    return to_push(row) if row else None


def _push_row(tx: ReadTx, push_no: int) -> Row | None:
    return tx.db.row(f"{SOURCE_PUSH.select} WHERE push_no = ?", (push_no,))


def push_of_token(tx: ReadTx, token: str) -> SourcePush | None:
    """Returns the subscription whose callback path ends with this token."""
    row = tx.db.row(f"{SOURCE_PUSH.select} WHERE token = ?", (token,))
    return to_push(row) if row else None


def pushes_of(tx: ReadTx, source_no: int) -> list[SourcePush]:
    """Returns the subscriptions of a source by number. The cost grows with the result."""
    rows = tx.db.rows(f"{SOURCE_PUSH.select} WHERE source_no = ? ORDER BY push_no", (source_no,))
    return undamaged(SOURCE_PUSH, to_push, rows)


def pushes(tx: ReadTx, after_no: int, limit: int) -> list[SourcePush]:
    """Returns subscriptions by number."""
    statement = f"{SOURCE_PUSH.select} WHERE push_no > ? ORDER BY push_no LIMIT ?"
    return tx.values(SOURCE_PUSH, to_push, statement, (after_no,), limit)


def due(tx: ReadTx, until_us: int, limit: int) -> list[SourcePush]:
    """Returns the subscription of each host that was due first, up to this time, in the order of their times.

    The cost grows with the number of subscriptions that are due.
    """
    numbers = [row[0] for row in tx.db.rows(_DUE, (until_us, limit))]
    rows = [row for number in numbers if (row := _push_row(tx, number)) is not None]
    return undamaged(SOURCE_PUSH, to_push, rows)


def next_due_us(tx: ReadTx) -> int | None:
    """Returns the time at which a subscription is due next, None if none is."""
    row = tx.db.row("SELECT due_us FROM source_push WHERE due_us IS NOT NULL ORDER BY due_us LIMIT 1")
    return row[0] if row else None


def has_active(tx: ReadTx, url: str) -> bool:
    """Returns whether a subscription at this hub or cloud is active."""
    row = tx.db.row("SELECT 1 FROM source_push WHERE url = ? AND state = 'active' LIMIT 1", (url,))
    return row is not None


def without_source(tx: ReadTx, limit: int) -> Sequence[SourcePush]:
    """Returns the subscriptions whose source was removed, paused or stopped, without those of mirrors. The cost
    grows with the number of subscriptions."""
    rows = tx.db.rows(
        f"{SOURCE_PUSH.select} WHERE state IN ({_FOLLOWING}) AND source_no > 0"
        " AND NOT EXISTS (SELECT 1 FROM source WHERE"
        " source.source_no = source_push.source_no AND source.state NOT IN ('paused', 'stopped'))"
        " ORDER BY push_no LIMIT ?",
        (limit,),
    )
    return undamaged(SOURCE_PUSH, to_push, rows)


def states(tx: ReadTx) -> dict[PushState, int]:
    """Returns the number of subscriptions in each state. The cost grows with the number of subscriptions."""
    rows = tx.db.rows("SELECT state, count(*) FROM source_push GROUP BY state")
    counts: dict[str, int] = dict(rows)
    return {state: counts[state.value] for state in PushState if state.value in counts}


def put(tx: WriteTx, push: SourcePush) -> SourcePush:
    """Stores a subscription, or replaces the one with its number. Returns it with its number."""
    tx.changes += 1
    if not push.push_no:
        return replace(push, push_no=tx.db.add(SOURCE_PUSH, _values(push)))
    tx.db.run(SOURCE_PUSH.update, (*_values(push), push.push_no))
    return push


def remove(tx: WriteTx, push_no: int) -> None:
    """Removes a subscription; its path is unknown after that."""
    tx.change(SOURCE_PUSH.delete, (push_no,))


def spread_overdue(tx: WriteTx, now_us: int, within_s: int) -> None:
    """Spreads the subscriptions that are overdue over so many seconds. The cost grows with their number."""
    tx.change(
        f"UPDATE source_push SET due_us = ? + push_no * {SPREAD_FACTOR} % {SPREAD_MODULUS} * ? / {SPREAD_MODULUS}"
        " WHERE due_us < ?",
        (now_us, within_s * US_PER_S, now_us),
    )
