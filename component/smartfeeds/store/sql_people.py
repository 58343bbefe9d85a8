"""Subscriptions and affiliations in SQL. The row of a node contains the number of its subscriptions in force."""

from collections.abc import Iterable

from smartfeeds.core.access import READERS
from smartfeeds.core.attachment_names import is_listed
from smartfeeds.core.consumers import held_consumer
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.model import (
    ALL_NUMBERS,
    ALL_TEXTS,
    AUDIENCE_CHANGE,
    Affiliation,
    KeyRange,
    Node,
    NodeState,
    SubscriberUse,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import (
    WITH_PRESENCE_US,
    prefixed,
    read_affiliation,
    subscription_values,
    to_listed_node,
    to_subscription,
    to_views,
    undamaged,
)
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tables import (
    AFFILIATION,
    CONTACT,
    MARK,
    NODE,
    NODE_COLUMNS,
    REQUEST_FORM,
    SUBSCRIPTION,
    SUBSCRIPTION_ROW,
    order_few_by,
)
from smartfeeds.store.sql_tallies import SUBSCRIPTIONS_BY

# Leaves out subscriptions whose lease ended at this time or before it. They stay until a sweep ends them
# (`service.leases`), and a read with the time of its reader must not see them. The parameter 0 leaves out none.
_UNENDED = "coalesce(expires_us, 0) NOT BETWEEN 1 AND ?"
_PENDING = f"SELECT DISTINCT node_no FROM subscription WHERE state = 'pending' AND {_UNENDED}"
_PENDING_OWNED = (
    "SELECT a.node_no FROM affiliation a WHERE a.jid = ? AND a.affiliation = 'owner'"
    f" AND EXISTS (SELECT 1 FROM subscription s WHERE s.node_no = a.node_no AND s.state = 'pending' AND {_UNENDED})"
)
# One index seek for each view: there are few of them, and there may be a million subscriptions.
SUBSCRIBED_VIEWS = (
    "WITH RECURSIVE step (view) AS (SELECT min(view) FROM subscription WHERE node_no = ? AND state = 'subscribed'"
    " UNION ALL SELECT (SELECT min(s.view) FROM subscription s"
    " WHERE s.node_no = ? AND s.state = 'subscribed' AND s.view > step.view) FROM step WHERE step.view IS NOT NULL)"
    " SELECT view FROM step WHERE view IS NOT NULL"
)
# "0" is the character behind "/": the resources of an address are one range of the index. With OR, or with an ORDER BY,
# SQLite reads all subscriptions of the node.
_ONE_ON = f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE {_UNENDED} AND node_no = ? AND"
_SUBSCRIPTIONS_ON = f"{_ONE_ON} jid = ? UNION ALL {_ONE_ON} jid > ? AND jid < ?"
_NODE_WIDTH = NODE_COLUMNS.count(",") + 1


def _on(node_no: int, bare: str, now_us: int | None) -> tuple[str, Row]:
    end_us = now_us or 0
    return _SUBSCRIPTIONS_ON, (end_us, node_no, bare, end_us, node_no, f"{bare}/", f"{bare}0")


def to_affiliation(row: Row) -> tuple[str, Affiliation]:
    """A bare JID and its affiliation from the columns `jid` and `affiliation`. Raises StoreError."""
    jid, affiliation = row
    return jid, read_affiliation(affiliation)


def to_contact(row: Row) -> Contact:
    """A contact from the columns of CONTACT. Raises ValueError."""
    address, jid, state = row
    return Contact(address, jid, ContactState(state))


def _by_number(rows: Iterable[Row]) -> list[Subscription]:
    return sorted(map(to_subscription, rows), key=lambda subscription: subscription.sub_no)


class PeopleReads(NodeReads):
    """The part of ReadTx that is about affiliations and subscriptions.

    Reads with `now_us` leave out subscriptions whose lease has ended by then; None includes them.
    """

    def affiliation(self, node_no: int, jid: str) -> Affiliation:
        """Returns the affiliation of a bare JID, or NONE."""
        affiliation = self._ahead.affiliations.get((node_no, jid))
        if affiliation is not None:
            return affiliation
        row = self.db.row("SELECT affiliation FROM affiliation WHERE node_no = ? AND jid = ?", (node_no, jid))
        return read_affiliation(row[0]) if row else Affiliation.NONE

    def affiliations(
        self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, kind: Affiliation | None = None
    ) -> list[tuple[str, Affiliation]]:
        """Returns the affiliations of a node by JID; with `kind` only those of this kind. The cost grows with the
        result.
        """
        condition = " AND affiliation = ?" if kind is not None else ""
        params: Row = (node_no, kind.value) if kind is not None else (node_no,)
        statement = f"SELECT jid, affiliation FROM affiliation WHERE node_no = ?{condition}"
        rows = self.part(statement, params, "jid", part)
        return undamaged(AFFILIATION, to_affiliation, rows)

    def affiliation_count(self, node_no: int) -> int:
        """Returns the number of affiliations of a node."""
        return self.number("SELECT count(*) FROM affiliation WHERE node_no = ?", (node_no,))

    def affiliations_of(
        self, jid: str, part: KeyRange[int] = ALL_NUMBERS, *, kind: Affiliation | None = None
    ) -> list[tuple[Node, Affiliation]]:
        """Returns the affiliations of a bare JID with live nodes, by node_no; with `kind` only those of this kind. The
        cost grows with the affiliations in between.
        """
        self.settle()
        condition = " AND a.affiliation = ?" if kind is not None else ""
        params: Row = (jid, kind.value) if kind is not None else (jid,)
        statement = (
            f"SELECT {prefixed(NODE_COLUMNS, 'n')}, a.affiliation"
            " FROM affiliation a JOIN node n ON n.node_no = a.node_no"
            f" WHERE a.jid = ? AND n.state = 'live'{condition}"
        )
        rows = self.part(statement, params, "a.node_no", part)
        return undamaged(NODE, lambda row: (to_listed_node(row), read_affiliation(row[-1])), rows)

    def contact(self, address: str, jid: str) -> Contact | None:
        """Returns the contact with this bare JID at one of our addresses."""
        row = self.db.row(f"{CONTACT.select} WHERE address = ? AND jid = ?", (address, jid))
        return to_contact(row) if row else None

    def contact_keys(self, jid: str) -> list[tuple[str, str]]:
        """Returns the keys of the contacts with a bare JID, or at an address of the service that begins with it."""
        rows = self.db.rows("SELECT address, jid FROM contact WHERE jid = ? OR address = ?", (jid, jid))
        return [(row[0], row[1]) for row in rows]

    def owned_count(self, jid: str) -> int:
        """Returns the number of live nodes that a bare JID owns. The cost grows with its affiliations."""
        return self.number(
            "SELECT count(*) FROM affiliation a JOIN node n ON n.node_no = a.node_no"
            " WHERE a.jid = ? AND a.affiliation = 'owner' AND n.state = 'live'",
            (jid,),
        )

    def addresses(self, *, owners: bool, after: str, limit: int) -> list[str]:
        """Returns the distinct bare JIDs that own a live node, or else those with a subscription, in their order."""
        whose = (
            "SELECT DISTINCT a.jid FROM affiliation a JOIN node n ON n.node_no = a.node_no"
            " WHERE a.affiliation = 'owner' AND n.state = 'live' AND a.jid > ? ORDER BY a.jid LIMIT ?"
            if owners
            else "SELECT DISTINCT bare FROM subscription WHERE state = 'subscribed' AND bare > ? ORDER BY bare LIMIT ?"
        )
        return [str(row[0]) for row in self.db.rows(whose, (after, limit))]

    def affiliated(self, jid: str) -> int:
        """Returns the number of affiliations of a bare JID, including those with nodes still to be reaped."""
        return self.number("SELECT count(*) FROM affiliation WHERE jid = ?", (jid,))

    def subscription(self, node_no: int, jid: str, view: str, *, now_us: int | None) -> Subscription | None:
        """Returns the subscription of exactly this address to this canonical view."""
        if (node_no, jid.partition("/")[0]) in self._ahead.unsubscribed:
            return None
        row = self.db.row(
            f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE node_no = ? AND jid = ? AND view = ? AND {_UNENDED}",
            (node_no, jid, view, now_us or 0),
        )
        return to_subscription(row) if row else None

    def subscription_by_no(self, sub_no: int) -> Subscription | None:
        """Returns the subscription with this number."""
        row = self.db.row(f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE sub_no = ?", (sub_no,))
        return to_subscription(row) if row else None

    def subscriptions(self, node_no: int, after_no: int, limit: int) -> list[Subscription]:
        """Returns the subscriptions of a node in all states, by sub_no."""
        rows = self.db.rows(
            f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE node_no = ? AND sub_no > ? ORDER BY sub_no LIMIT ?",
            (node_no, after_no, limit),
        )
        return [to_subscription(row) for row in rows]

    def subscribers(self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, now_us: int | None) -> list[str]:
        """Returns the addresses in state subscribed on a node, each once, even if it follows several views. The cost
        grows with the result.
        """
        statement = f"SELECT DISTINCT jid FROM subscription WHERE node_no = ? AND state = 'subscribed' AND {_UNENDED}"
        return [str(row[0]) for row in self.part(statement, (node_no, now_us or 0), "jid", part)]

    def subscriptions_of(
        self, bare: str, part: KeyRange[int] = ALL_NUMBERS, *, now_us: int | None
    ) -> list[tuple[Node, Subscription]]:
        """Returns the subscriptions of a bare JID and its resources on live nodes, by sub_no. The cost grows with the
        result.
        """
        self.settle()
        statement = (
            f"SELECT {prefixed(NODE_COLUMNS, 'n')}, {prefixed(SUBSCRIPTION_ROW, 's')}"
            " FROM subscription s JOIN node n ON n.node_no = s.node_no"
            f" WHERE s.bare = ? AND n.state = 'live' AND {_UNENDED}"
        )
        rows = self.part(statement, (bare, now_us or 0), "s.sub_no", part)
        return undamaged(NODE, lambda row: (to_listed_node(row), to_subscription(row[_NODE_WIDTH:])), rows)

    def subscriptions_on(self, node_no: int, bare: str, *, now_us: int | None) -> list[Subscription]:
        """Returns the subscriptions of a bare JID and its resources to one node, by sub_no. The cost grows with the
        result.
        """
        return _by_number(self.db.rows(*_on(node_no, bare, now_us)))

    def subscriber_use(self, node_no: int, bare: str, *, now_us: int | None) -> SubscriberUse:
        """Returns what the quotas of a new subscription of a bare JID to a node depend on."""
        is_new = (node_no, bare) in self._ahead.unsubscribed
        here = [] if is_new else self.subscriptions_on(node_no, bare, now_us=now_us)
        own, domain = SUBSCRIPTIONS_BY.names_of(bare)
        return SubscriberUse(here, self.sum_once(own), self.sum_once(domain))

    def pending_subscriptions(self, node_no: int, limit: int, *, now_us: int | None) -> list[Subscription]:
        """Returns the oldest subscriptions of a node in state pending, by sub_no. The cost grows with the result."""
        rows = self.db.rows(
            f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE node_no = ? AND state = 'pending' AND {_UNENDED}"
            " ORDER BY sub_no LIMIT ?",
            (node_no, now_us or 0, limit),
        )
        return [to_subscription(row) for row in rows]

    def pending_nodes(self, owner: str | None, limit: int, *, now_us: int | None) -> list[Node]:
        """Returns the live nodes of an owner, or of the service, with subscriptions in state pending, by name.

        The cost grows with the number of nodes of the owner, or of pending subscriptions in the service.
        """
        self.settle()
        source, params = _PENDING if owner is None else _PENDING_OWNED, () if owner is None else (owner,)
        # With another kind of join SQLite may read all nodes in the order of their names, and PostgreSQL with the plain
        # column in the order.
        return self._nodes(
            f"SELECT {prefixed(NODE_COLUMNS, 'n')} FROM ({source}) p"
            f" {self.db.ordered_join} node n ON n.node_no = p.node_no"
            f" WHERE n.state = 'live' {order_few_by('n.name')} LIMIT ?",
            (*params, now_us or 0),
            limit,
        )

    def request_forms(self, node_no: int, whom: str, after_us: int) -> int:
        """Returns the number of forms sent for a requester of a node in its window, if this began after `after_us`."""
        return self.number(
            "SELECT forms FROM request_form WHERE node_no = ? AND whom = ? AND since_us > ?", (node_no, whom, after_us)
        )

    def ended_leases(self, now_us: int, limit: int) -> list[Subscription]:
        """Returns the subscriptions whose lease ended at this time or before it, the first ended first. The cost grows
        with the result.
        """
        rows = self.db.rows(
            f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE expires_us > ? AND expires_us <= ?"
            " ORDER BY expires_us, sub_no LIMIT ?",
            (WITH_PRESENCE_US, now_us, limit),
        )
        return [to_subscription(row) for row in rows]

    def temporary_subscriptions(self, after_no: int, limit: int) -> list[Subscription]:
        """Returns the subscriptions that end when the subscriber goes offline, by sub_no. The cost grows with the
        result.
        """
        rows = self.db.rows(
            f"SELECT {SUBSCRIPTION_ROW} FROM subscription WHERE expires_us = ? AND sub_no > ? ORDER BY sub_no LIMIT ?",
            (WITH_PRESENCE_US, after_no, limit),
        )
        return [to_subscription(row) for row in rows]

    def has_temporary(self, bare: str) -> bool:
        """Returns whether a bare JID and its resources have subscriptions that end when the subscriber goes offline."""
        statement = "SELECT EXISTS (SELECT 1 FROM subscription WHERE bare = ? AND expires_us = ?)"
        return bool(self.number(statement, (bare, WITH_PRESENCE_US)))

    def subscribed_by(self, bare: str) -> int:
        """Returns the number of subscriptions of a bare JID and its resources in all states, including those to deleted
        nodes that are not yet reaped. O(1).
        """
        return self.sum_once(SUBSCRIPTIONS_BY.of + bare)

    def subscribed_views(self, node_no: int) -> list[str]:
        """Returns the distinct canonical views to which a node has subscriptions in state subscribed."""
        return to_views(self.db.rows(SUBSCRIBED_VIEWS, (node_no, node_no)))


class PeopleWrites(NodeWrites, PeopleReads):
    """The part of WriteTx that is about affiliations and subscriptions."""

    def set_affiliation(self, node_no: int, jid: str, affiliation: Affiliation) -> None:
        """Stores an affiliation; NONE removes it. The audience number increases."""
        node = self._more_audience(node_no).node
        self._ahead.affiliations.pop((node_no, jid), None)
        if affiliation is Affiliation.NONE:
            self.db.run(AFFILIATION.delete, (node_no, jid))
            return
        is_visible = is_listed(node) or node.state is not NodeState.LIVE or affiliation not in READERS
        self.db.run(AFFILIATION.replace, (node_no, jid, affiliation.value, None if is_visible else node.name))

    def put_subscription(self, subscription: Subscription) -> Subscription:
        """Stores a subscription: a new one if sub_no is 0, returned with a number above all others.

        The audience number increases, for a new subscription by 1.
        """
        # A smaller step for a new one: it is behind all others, so full pages of subscriptions stay cached
        # (`push.audience.AudienceCache`).
        row = self._more_audience(subscription.node_no, AUDIENCE_CHANGE if subscription.sub_no else 1)
        added = int(subscription.state is SubscriptionState.SUBSCRIBED)
        bare = subscription.jid.partition("/")[0]
        self._ahead.unsubscribed.discard((subscription.node_no, bare))
        values = subscription_values(subscription, bare)
        if subscription.sub_no:
            old = self.subscription_by_no(subscription.sub_no)
            if old is None or old.node_no != subscription.node_no:
                raise StoreError(f"node {subscription.node_no} has no subscription number {subscription.sub_no}")
            self.db.run(SUBSCRIPTION.update, (*values, subscription.sub_no))
            row.subscribed += added - int(old.state is SubscriptionState.SUBSCRIBED)
            if old.jid != subscription.jid:
                self.add_tallies(SUBSCRIPTIONS_BY.names_of(old.jid.partition("/")[0]), -1)
                self.add_tallies(SUBSCRIPTIONS_BY.names_of(bare), 1)
            return subscription
        sub_no = self.db.add(SUBSCRIPTION, values)
        row.subscribed += added
        self.add_tallies(SUBSCRIPTIONS_BY.names_of(bare), 1)
        return Subscription(sub_no, *subscription[1:])

    def remove_subscription(self, sub_no: int) -> None:
        """Removes a subscription. The audience number increases."""
        old = self.subscription_by_no(sub_no)
        if old is None:
            return
        row = self._more_audience(old.node_no)
        row.subscribed -= int(old.state is SubscriptionState.SUBSCRIBED)
        self.db.run(SUBSCRIPTION.delete, (sub_no,))
        held = held_consumer(old.node_no, sub_no)
        # Otherwise its mark would stay in the backlog: nothing looks it up without the subscription.
        self.db.run_many(MARK.delete, [(held.node_no, order.value, held.name) for order in Order])
        self.add_tallies(SUBSCRIPTIONS_BY.names_of(old.jid.partition("/")[0]), -1)

    def count_request_form(self, node_no: int, names: Iterable[str], now_us: int, after_us: int) -> None:
        """Counts a form for each of these requesters of a node. Windows that did not begin after `after_us` end before
        that.
        """
        self.change("DELETE FROM request_form WHERE since_us <= ?", (after_us,))
        self.db.run_many(
            f"{REQUEST_FORM.insert} ON CONFLICT (node_no, whom) DO UPDATE SET forms = request_form.forms + 1",
            [(node_no, whom, now_us, 1) for whom in names],
        )
