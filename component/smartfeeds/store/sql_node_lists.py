"""Lists of nodes in SQL: by name, by last change, and those that a reader may see."""

from collections.abc import Iterator, Sequence
from functools import cache
from operator import attrgetter

from smartfeeds.core.access import KEPT_OUT
from smartfeeds.core.model import Node
from smartfeeds.core.node_place import NodePlace
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import end_of_prefix, prefixed
from smartfeeds.store.sql_nodes import LISTED, NodeReads
from smartfeeds.store.sql_tables import LOOK_UP_EACH, NODE_COLUMNS

_KEPT_OUT = ", ".join(sorted(f"'{affiliation.value}'" for affiliation in KEPT_OUT))
_NAME = attrgetter("name")
# The condition that a node `n` does not exclude a JID.
_NOT_EXCLUDED = (
    "NOT EXISTS (SELECT 1 FROM affiliation a WHERE a.node_no = n.node_no AND a.jid = ?"
    f" AND a.affiliation IN ({_KEPT_OUT}) {LOOK_UP_EACH})"
)
_PLACE = attrgetter("last_modified_us", "name")
_BEFORE = " AND (n.last_modified_us, n.name) < (?, ?)"
_NEWEST_FIRST = " ORDER BY n.last_modified_us DESC, n.name DESC LIMIT ?"
_NODES_OF = f"SELECT {prefixed(NODE_COLUMNS, 'n')} FROM"
_LIVE = f"{_NODES_OF} node n WHERE n.state = 'live' AND n.listed = ?"
_HIDDEN = (
    f"{_NODES_OF} affiliation a JOIN node n ON n.node_no = a.node_no AND n.state = 'live'"
    " WHERE a.jid = ? AND a.hidden IS NOT NULL"
)


@cache
def _listed_statements(*, bounded: bool, newest: bool) -> tuple[str, str]:
    """Selects the nodes that strangers may know of, and the nodes that only its affiliation makes known to a JID."""
    direction = "DESC" if newest else "ASC"
    select = f"SELECT {prefixed(NODE_COLUMNS, 'n')}"
    by_name, by_hidden = ("AND n.name < ?", "AND a.hidden < ?") if bounded else ("", "")
    return (
        f"{select} FROM node n WHERE n.state = 'live' AND n.listed = 1 AND n.name > ? {by_name} AND {_NOT_EXCLUDED}"
        f" ORDER BY n.name {direction} LIMIT ?",
        f"{select} FROM affiliation a JOIN node n ON n.node_no = a.node_no"
        f" WHERE a.jid = ? AND a.hidden > ? {by_hidden} ORDER BY a.hidden {direction} LIMIT ?",
    )


class NodeLists(NodeReads):
    """The part of ReadTx for lists of nodes."""

    def nodes(self, after: str, limit: int, *, before: str | None = None, newest: bool = False) -> list[Node]:
        """Returns live nodes by name in code point order, between `after` and `before`; with `newest` the last ones."""
        self.settle()
        bound, params = ("AND name < ?", [before]) if before is not None else ("", [])
        nodes = self._nodes(
            f"SELECT {NODE_COLUMNS} FROM node WHERE state = 'live' AND name > ? {bound}"
            f" ORDER BY name {'DESC' if newest else 'ASC'} LIMIT ?",
            (after, *params),
            limit,
        )
        return nodes[::-1] if newest else nodes

    def creators_behind(self, prefixes: Sequence[str], limit: int) -> list[list[tuple[str, str]]]:
        """Returns for each prefix the names that begin with it and the creators of up to `limit` live nodes, in one
        statement. It does not need the counts of nodes in memory.
        """
        names = "SELECT name, creator FROM node WHERE state = 'live' AND name >= ? AND name < ? ORDER BY name LIMIT ?"
        statement = " UNION ALL ".join([f"SELECT * FROM ({names}) AS part"] * len(prefixes))
        params = [value for prefix in prefixes for value in (prefix, end_of_prefix(prefix), limit)]
        rows = self.db.rows(statement, params)
        return [[(row[0], row[1]) for row in rows if row[0].startswith(prefix)] for prefix in prefixes]

    def expiring(self, after: int, limit: int) -> list[Node]:
        """Returns live nodes whose items expire, by node_no behind `after`. The cost grows with the result."""
        # The condition is that of the index, word for word, because SQLite uses a partial index only then.
        return self._nodes(
            f"SELECT {NODE_COLUMNS} FROM node WHERE state = 'live' AND kind = 'generic'"
            " AND instr(options, '\"item_expire\"') > 0 AND node_no > ? ORDER BY node_no LIMIT ?",
            (after,),
            limit,
        )

    def totals(self) -> tuple[int, int, int]:
        """Returns the numbers of items, tombstones and subscriptions of all nodes. The cost grows with the nodes."""
        self.settle()
        row = self.db.row(
            "SELECT coalesce(sum(live), 0), coalesce(sum(total - live), 0), coalesce(sum(subscribed), 0) FROM node"
            " WHERE state = 'live'"
        )
        return (int(row[0]), int(row[1]), int(row[2])) if row else (0, 0, 0)

    def listed_nodes(
        self, jid: str, after: str, limit: int, *, before: str | None = None, newest: bool = False
    ) -> list[Node]:
        """Returns the nodes that lists show to a bare JID (`core.access.Access.sees_description`), as `nodes` does.

        The cost grows with the result and with the nodes in between that exclude the JID, not with all hidden nodes.
        """
        self.settle()
        open_to_all, hidden = _listed_statements(bounded=before is not None, newest=newest)
        bounds = (after,) if before is None else (after, before)
        nodes = self._nodes(open_to_all, (*bounds, jid), limit) + self._nodes(hidden, (jid, *bounds), limit)
        nodes.sort(key=_NAME)
        return nodes[-limit:] if newest else nodes[:limit]

    def changed_nodes(self, jid: str | None, limit: int, before: NodePlace | None = None) -> list[Node]:
        """Returns the nodes that lists show to a bare JID (`listed_nodes`), or all live nodes for None, by last change,
        the newest first, and by name where the times are equal. `before` is the place of the last node before them.

        The cost grows with the result, with the nodes in between that exclude the JID, and with the hidden nodes that
        the JID may read.
        """
        self.settle()
        nodes = [node for sql, params in self._changed(jid, before) for node in self._nodes(sql, params, limit)]
        return sorted(nodes, key=_PLACE, reverse=True)[:limit]

    @staticmethod
    def _changed(jid: str | None, before: NodePlace | None) -> Iterator[tuple[str, Row]]:
        """The statements whose rows together are the nodes, with their parameters except the limit."""
        bound, place = ("", ()) if before is None else (_BEFORE, tuple(before))
        if jid is None:
            yield from ((f"{_LIVE}{bound}{_NEWEST_FIRST}", (listed, *place)) for listed in (0, 1))
        else:
            yield f"{_LIVE}{bound} AND {_NOT_EXCLUDED}{_NEWEST_FIRST}", (1, *place, jid)
            yield f"{_HIDDEN}{bound}{_NEWEST_FIRST}", (jid, *place)

    def listed_count(self, jid: str) -> int:
        """Returns the number of `listed_nodes`. The cost grows with the hidden nodes among them and those that exclude
        the JID.
        """
        self.settle()
        return self.number(
            f"SELECT (SELECT coalesce(sum(value), 0) FROM tally WHERE name = '{LISTED}')"
            " + (SELECT count(*) FROM affiliation WHERE jid = ? AND hidden IS NOT NULL)"
            " - (SELECT count(*) FROM affiliation a JOIN node n ON n.node_no = a.node_no WHERE a.jid = ?"
            f" AND a.affiliation IN ({_KEPT_OUT}) AND n.state = 'live' AND n.listed = 1)",
            (jid, jid),
        )
