"""Looks up what a group of writes will touch, in two round trips instead of several for each write (PG-038).

The first statement locks all nodes in the order of their numbers. So groups of several processes that publish to the
same feeds wait for each other and never deadlock (PG-039). Everything else is looked up after the lock: affiliations
and items change only under it. Numbers of items are drawn after it too, because they must grow within a feed (PG-041).
"""

from collections.abc import Sequence

from smartfeeds.core.touches import Touch
from smartfeeds.store.engine import AheadRows
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.sql_tables import ITEM_ROW, NODE_COLUMNS, NODE_ROW

_NODES = (
    f"SELECT {NODE_ROW} FROM node WHERE state = 'live' AND name = ANY(CAST(? AS text[]))"  # noqa: S608 - columns
    " ORDER BY node_no FOR NO KEY UPDATE"
)
_NAME = NODE_COLUMNS.split(", ").index("name")
_AFFILIATIONS = (
    "SELECT a.node_no, a.jid, a.affiliation"
    " FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS t (node_no, jid)"
    " JOIN affiliation a ON a.node_no = t.node_no AND a.jid = t.jid"
)
_COLUMNS = ", ".join(f"i.{column}" for column in ITEM_ROW.split(", "))
_ITEMS = (
    f"SELECT i.node_no, {_COLUMNS} FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS t (node_no, id)"  # noqa: S608
    " JOIN item i ON i.node_no = t.node_no AND i."
)
_BY_ID = f"{_ITEMS}id = t.id"
_BY_SYNC = f"{_ITEMS}sync_id = t.id AND i.sync_id <> ''"
_NUMBERS = "SELECT nextval('item_item_no_seq') FROM generate_series(1, ?)"


def look_ahead(session: PostgresSession, touches: Sequence[Touch]) -> AheadRows:
    """Locks the nodes of these touches and returns their rows, affiliations and items. Raises psycopg.Error."""
    nodes = session.execute(_NODES, (sorted({touch.node for touch in touches}),))
    node_nos = {str(row[_NAME]): int(row[0]) for row in nodes}
    here = [(node_nos[touch.node], touch) for touch in touches if touch.node in node_nos]
    jids = sorted({(node_no, touch.jid) for node_no, touch in here})
    ids = sorted({(node_no, item_id) for node_no, touch in here for item_id in touch.item_ids})
    new_items = sum(touch.new_items for _, touch in here)
    statements: list[tuple[str, tuple[object, ...]]] = [(_AFFILIATIONS, _columns(jids))]
    if ids:
        statements += [(_BY_ID, _columns(ids)), (_BY_SYNC, _columns(ids))]
    if new_items:
        statements.append((_NUMBERS, (new_items,)))
    results = session.execute_all(statements) if here else [[]]
    numbers = [int(row[0]) for row in results[-1]] if new_items and here else []
    by_id, by_sync = (results[1], results[2]) if ids else ([], [])
    return AheadRows(nodes, jids, results[0], ids, by_id, by_sync, sorted(numbers))


def _columns(pairs: Sequence[tuple[int, str]]) -> tuple[list[int], list[str]]:
    return [node_no for node_no, _ in pairs], [text for _, text in pairs]
