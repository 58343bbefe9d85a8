"""Looks up what a batch of requests will touch, in one round trip instead of several for each request (PG-038, PG-049).

For writes, the first statement locks all nodes in the order of their numbers. So groups of several processes that
publish to the same feeds wait for each other and never deadlock (PG-039). The other statements run after it: a
transaction of writes is READ COMMITTED, so they see what was committed while it waited, and affiliations and items
change only under the lock. Keys of new items and subscriptions are drawn after it too, because they must grow within a
feed (PG-041).
"""

from collections import defaultdict
from collections.abc import Sequence

from smartfeeds.core.position import MAX_GROUP
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import ANYTHING, Order
from smartfeeds.store.engine import AheadRows
from smartfeeds.store.postgres_pipeline import Statement
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.rows import KEYS, digest
from smartfeeds.store.sql_tables import ITEM, ITEM_ROW, NODE, NODE_COLUMNS, NODE_ROW, SUBSCRIPTION
from smartfeeds.store.sql_tallies import BLOCKS, SUM, limiting_counts

_NODES = f"SELECT {NODE_ROW} FROM node WHERE state = 'live' AND name = ANY(CAST(? AS text[]))"
# By their numbers, which the index returns in order. With the names and a sort, the planner would rather read the whole
# index of numbers: sorts are off.
_LOCKED_NODES = (
    f"SELECT {NODE_ROW} FROM node WHERE node_no = ANY(ARRAY("
    "SELECT node_no FROM node WHERE state = 'live' AND name = ANY(CAST(? AS text[]))"
    ")) AND state = 'live' ORDER BY node_no FOR NO KEY UPDATE"
)
_NAME = NODE_COLUMNS.split(", ").index("name")
# LATERAL with LIMIT makes one look-up in an index for each key. With a plain join the planner may read a whole index
# that is short when the plan is made.
_HERE = (
    " CROSS JOIN LATERAL (SELECT node_no FROM node WHERE state = 'live' AND name = t.name LIMIT 1) AS n"
    " CROSS JOIN LATERAL"
)
_KEYS = f"unnest(CAST(? AS text[]), CAST(? AS text[])) AS t (name, id){_HERE}"
_AFFILIATIONS = (
    f"SELECT n.node_no, t.id, a.affiliation FROM {_KEYS}"
    " (SELECT affiliation FROM affiliation WHERE node_no = n.node_no AND jid = t.id LIMIT 1) AS a"
)
# With two ranges as in `sql_people`: the resources of an address are one range of the index. Only this index has their
# order, and sorts are off. So the plan is right for an empty table, too.
_ON = "SELECT 1 FROM subscription WHERE node_no = n.node_no AND"
_SUBSCRIBED = (
    f"SELECT n.node_no, t.id FROM {_KEYS}"
    f" ({_ON} jid = t.id UNION ALL ({_ON} jid > t.id || '/' AND jid < t.id || '0' ORDER BY jid LIMIT 1) LIMIT 1) AS s"
)
_SUMS = (
    "SELECT t.name, s.value FROM unnest(CAST(? AS text[])) AS t (name)"
    " CROSS JOIN LATERAL (SELECT coalesce(sum(value), 0) AS value FROM tally WHERE name = t.name) AS s"
)
_ITEMS = f"SELECT n.node_no, i.* FROM {_KEYS} (SELECT {ITEM_ROW} FROM item WHERE node_no = n.node_no"
_BY_ID = f"{_ITEMS} AND id = t.id LIMIT 1) AS i"
_BY_SYNC = f"{_ITEMS} AND sync_id = t.id AND sync_id <> '' LIMIT 1) AS i"
_GROUPS = {
    order: "SELECT n.node_no, t.key_us, i.item_no, i.id"
    " FROM unnest(CAST(? AS text[]), CAST(? AS bigint[]), CAST(? AS bigint[])) AS t (name, key_us, most)"
    f"{_HERE} (SELECT item_no, id FROM item WHERE node_no = n.node_no AND {key} = t.key_us ORDER BY item_no"
    " LIMIT t.most) AS i"
    for order, key in KEYS.items()
}
(_ANYTHING,) = map(digest, ANYTHING.facets)
_WILDCARDS = (
    f"SELECT n.node_no, x.has FROM unnest(CAST(? AS text[])) AS t (name){_HERE}"
    " (SELECT EXISTS (SELECT 1 FROM facet WHERE node_no = n.node_no AND facet = ?) AS has) AS x"
)
_NEW_KEYS = {
    table.name: f"SELECT nextval('{table.name}_{table.key}_seq') FROM generate_series(1, ?)"
    for table in (NODE, ITEM, SUBSCRIPTION)
}


def look_ahead(session: PostgresSession, touches: Sequence[Touch], *, lock: bool) -> AheadRows:
    """Returns the rows that these touches name, and locks their nodes. Raises psycopg.Error."""
    names = sorted({name for touch in touches for name in touch.names})
    jids = sorted({(name, touch.jid) for touch in touches for name in touch.names})
    ids = sorted({(name, item_id) for touch in touches for name in touch.names for item_id in touch.item_ids})
    limits = _group_limits(touches)
    feeds = sorted({touch.feed for touch in touches if touch.feed})
    subscribers = sorted({(name, touch.jid) for touch in touches if touch.subscribes for name in touch.names})
    # Without the locks of quotas, other processes may change these counts at any time.
    counts = limiting_counts(touches) if lock else []

    # In the order in which the server runs them: the locks first. A key only finds the rows again below.
    statements: dict[object, Statement] = {
        _NODES: (_LOCKED_NODES if lock else _NODES, (names,)),
        SUM: (SUM, (BLOCKS,)),
    }
    if jids:
        statements[_AFFILIATIONS] = _AFFILIATIONS, _columns(jids)
    if ids:
        statements |= {_BY_ID: (_BY_ID, _columns(ids)), _BY_SYNC: (_BY_SYNC, _columns(ids))}
    for order in {key[0] for key in limits}:
        keys = [(name, key_us, limit) for (part, name, key_us), limit in limits.items() if part is order]
        statements[order] = _GROUPS[order], _columns(keys)
    if feeds:
        statements[_WILDCARDS] = _WILDCARDS, (feeds, _ANYTHING)
    if subscribers:
        statements[_SUBSCRIBED] = _SUBSCRIBED, _columns(subscribers)
    if counts:
        statements[_SUMS] = _SUMS, (counts,)
    new_rows = _new_rows(touches) if lock else {}
    for table, number in new_rows.items():
        statements[table] = _NEW_KEYS[table], (number,)
    rows = defaultdict(list, zip(statements, session.execute_all(list(statements.values())), strict=True))

    node_nos = {str(row[_NAME]): int(row[0]) for row in rows[_NODES]}
    numbers = set(node_nos.values())  # without nodes that were created while the first statement waited
    groups = {
        (node_nos[name], order, key_us, limit): list[tuple[int, str]]()
        for (order, name, key_us), limit in limits.items()
        if name in node_nos
    }
    by_key = {key[:3]: group for key, group in groups.items()}
    for order in Order:
        for node_no, key_us, item_no, item_id in rows[order]:
            if node_no in numbers:
                by_key[node_no, order, key_us].append((item_no, item_id))
    return AheadRows(
        nodes=rows[_NODES],
        # Without a lock on a name, another process may create its node at any time.
        absent_names=[] if lock else [name for name in names if name not in node_nos],
        blocks_version=int(rows[SUM][0][0] or 0),
        jids=[(node_nos[name], jid) for name, jid in jids if name in node_nos],
        affiliations=[row for row in rows[_AFFILIATIONS] if row[0] in numbers],
        ids=[(node_nos[name], item_id) for name, item_id in ids if name in node_nos],
        by_id=[row for row in rows[_BY_ID] if row[0] in numbers],
        by_sync=[row for row in rows[_BY_SYNC] if row[0] in numbers],
        groups=list(groups.items()),
        unsubscribed={(node_nos[name], jid) for name, jid in subscribers if node_nos.get(name) in numbers}
        - {(row[0], row[1]) for row in rows[_SUBSCRIBED]},
        sums=[(row[0], int(row[1])) for row in rows[_SUMS]],
        wildcards=[(row[0], row[1]) for row in rows[_WILDCARDS] if row[0] in numbers],
        new_keys={table: sorted(int(row[0]) for row in rows[table]) for table in new_rows},
    )


def _new_rows(touches: Sequence[Touch]) -> dict[str, int]:
    """Returns how many rows these touches may add, by the name of the table."""
    subscriptions = sum(touch.subscribes for touch in touches)
    nodes = sum(bool(touch.quota_of) for touch in touches) - subscriptions
    items = sum(touch.new_items for touch in touches)
    counts = {NODE.name: nodes, ITEM.name: items, SUBSCRIPTION.name: subscriptions}
    return {table: count for table, count in counts.items() if count}


def _group_limits(touches: Sequence[Touch]) -> dict[tuple[Order, str, int], int]:
    """Returns the groups that cursors name by order, node and key, and how many items of each are read."""
    limits: dict[tuple[Order, str, int], int] = {}
    for touch in touches:
        for cursor in touch.cursors:
            limit = min(cursor.offset + 1, MAX_GROUP)
            for name in touch.names:
                key = cursor.order, name, cursor.key_us
                limits[key] = max(limit, limits.get(key, 0))
    return limits


def _columns(rows: Sequence[tuple[object, ...]]) -> tuple[list[object], ...]:
    return tuple(map(list, zip(*rows, strict=True)))
