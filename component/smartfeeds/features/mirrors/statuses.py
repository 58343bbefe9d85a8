"""Adds, removes and configures mirrors, and reports their status.

The store contains the mirrors, so that a running service and the command line see the same ones. The service reads the
store for changes. The state of a mirror survives restarts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from smartfeeds.core.consumers import Consumer, Failure, failure_of
from smartfeeds.core.model import Mark, Node
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order
from smartfeeds.errors import ConfigError
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import POLLED, Direction, Mirror, MirrorRow, MirrorState, check_elsewhere
from smartfeeds.service.consumers import add_consumer, waiting_items
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx

# Before every key, also of dates before 1970, and within the 64 bits of its column.
BEGINNING = Mark(-(2**62), "")


@dataclass(frozen=True, slots=True)
class MirrorStanding:
    """The status of one direction of a mirror.

    `behind_us` is the time since the direction was last in step; None if it never was or the time is unknown. `waiting`
    counts the items that are still to be sent (outgoing only).
    """

    direction: Direction
    state: MirrorState
    behind_us: int | None
    waiting: int = 0

    @property
    def in_step(self) -> bool:
        """Whether no item is known to be missing. A refused item counts as missing."""
        return self.behind_us == 0 and not self.state.refused


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """A mirror and the status of its directions. `node_there`: its node exists. `conflicted` counts the node's items
    with conflicts."""

    mirror: Mirror
    configured: bool
    node_there: bool
    conflicted: int
    standings: tuple[MirrorStanding, ...]


def describe_standing(standing: MirrorStanding) -> str:
    """Returns whether a direction is in step, how far it is behind, and how it learns of changes, for people."""
    if standing.behind_us is None:
        return "not started yet"
    refused, means = standing.state.refused, standing.state.means
    parts = [f"behind by {_span(standing.behind_us)}" if standing.behind_us else "in step"]
    if refused and not standing.behind_us:
        parts.append(f"{counted(refused, 'item')} rejected")
    if means:
        parts.append(POLLED if means == POLLED else f"followed by {means}")
    return ", ".join(parts)


def _span(behind_us: int) -> str:
    seconds = behind_us // US_PER_S
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size_s:
            return f"{seconds // size_s} {unit}"
    return f"{seconds} s"


def add_mirror(tx: WriteTx, context: Context, mirror: Mirror) -> Mirror:
    """Adds a mirror and returns it.

    Raises ConfigError if a mirror has the same name or the same node and address, or if the feed is at this service.
    """
    check_elsewhere(mirror, context.policy.domain)
    for row in stored_mirrors.mirrors(tx):
        other = row.mirror
        if _is_same(other, mirror):
            raise ConfigError(f"the mirror {other.name} is for this node and address already: remove it first")
        if other.name == mirror.name:
            raise ConfigError(f"there is a mirror {mirror.name}: give another --name, or remove that one first")
    stored_mirrors.put(tx, MirrorRow(mirror))
    return mirror


def remove_mirror(tx: WriteTx, _context: Context, name: str) -> Mirror:
    """Removes a mirror and its state; the items remain. Raises ConfigError if the mirror is unknown or configured."""
    row = _row(tx, name)
    if row.configured:
        raise ConfigError(f"the mirror {name} comes from the configuration: take its [[mirror]] out there and restart")
    stored_mirrors.remove(tx, name)
    _remove_consumer(tx, row.mirror)
    return row.mirror


def restart_mirror(tx: WriteTx, _context: Context, name: str) -> Mirror:
    """Restarts a mirror: it reads and sends everything again. Raises ConfigError if it is unknown."""
    row = _row(tx, name)
    for way in row.mirror.direction.ways:
        state = row.state(way)
        row = row.with_state(way, MirrorState(epoch=state.epoch + 1, filling=state.filling))
    stored_mirrors.put(tx, row)
    _remove_consumer(tx, row.mirror)
    return row.mirror


def no_such_mirror(name: str, known: Iterable[str]) -> str:
    """Returns the text of the error for a name that no mirror has."""
    return f"there is no mirror {name}{did_you_mean(name, known) or '; smartfeeds mirror list shows all mirrors'}"


def _row(tx: ReadTx, name: str) -> MirrorRow:
    row = stored_mirrors.mirror(tx, name)
    if row is None:
        raise ConfigError(no_such_mirror(name, (other.mirror.name for other in stored_mirrors.mirrors(tx))))
    return row


def consumer_of_mirror(tx: WriteTx, _context: Context, mirror: Mirror, epoch: int) -> Consumer | None:
    """Returns the consumer that sends the node of a mirror. A new consumer starts before the first item.

    Returns None if the node does not exist, or if the mirror was removed or restarted and `epoch` is outdated.
    """
    node, row = tx.node(mirror.node), stored_mirrors.mirror(tx, mirror.name)
    if node is None or row is None or row.state(Direction.OUT).epoch != epoch:
        return None
    consumer = Consumer(node.node_no, mirror.consumer_name)
    add_consumer(tx, consumer, Order.MODIFIED, BEGINNING)
    return consumer


def _remove_consumer(tx: WriteTx, mirror: Mirror) -> None:
    node_no = tx.node_no(mirror.node)
    if node_no is not None:
        tx.remove_consumer(Consumer(node_no, mirror.consumer_name))


def set_configured(tx: WriteTx, _context: Context, mirrors: Sequence[Mirror]) -> None:
    """Stores the mirrors of the configuration. A mirror with the same node and address keeps its state, even if its
    name has changed. Raises ConfigError if the name belongs to another mirror that the command line added."""
    former = {row.mirror.name: row for row in stored_mirrors.mirrors(tx)}
    same = {
        mirror.name: next((row for row in former.values() if _is_same(row.mirror, mirror)), None) for mirror in mirrors
    }
    renamed = {row.mirror.name for row in same.values() if row is not None}
    for mirror in mirrors:
        other = former.get(mirror.name)
        if other is not None and not other.configured and other.mirror.name not in renamed:
            raise ConfigError(
                f"the [[mirror]] {mirror.name} of node {mirror.node} and {mirror.address} has the name of one of node "
                f"{other.mirror.node} and {other.mirror.address} that was added on the command line: give another "
                f"name, or smartfeeds mirror remove {mirror.name}"
            )
    rows = {}
    for mirror in mirrors:
        former_row = same[mirror.name]
        rows[mirror.name] = MirrorRow(
            mirror, configured=True, states=former_row.states if former_row is not None else {}
        )
    for name, row in former.items():
        if name not in rows and (row.configured or name in renamed):
            stored_mirrors.remove(tx, name)
    for name, row in rows.items():
        if former.get(name) != row:
            stored_mirrors.put(tx, row)
    senders = [row.mirror for row in stored_mirrors.mirrors(tx) if Direction.OUT in row.mirror.direction.ways]
    for row in former.values():
        if not any(_is_same(row.mirror, sender) for sender in senders):
            _remove_consumer(tx, row.mirror)


def _is_same(one: Mirror, other: Mirror) -> bool:
    return (one.node, one.address) == (other.node, other.address)


def mirror_statuses(tx: ReadTx, context: Context, configured: Sequence[Mirror] = ()) -> list[MirrorStatus]:
    """Returns the status of every mirror by name, including `configured` ones that no service has started yet.

    The cost grows with the number of items that are still to be sent.
    """
    rows = {mirror.name: MirrorRow(mirror, configured=True) for mirror in configured}
    rows |= {row.mirror.name: row for row in stored_mirrors.mirrors(tx)}
    return [mirror_status(tx, context, rows[name]) for name in sorted(rows)]


def mirror_status(tx: ReadTx, context: Context, row: MirrorRow) -> MirrorStatus:
    """Returns the status of a mirror. The cost grows with the number of items that are still to be sent."""
    node = tx.node(row.mirror.node)
    standings = tuple(
        _outgoing(tx, context, row, node) if way is Direction.OUT else _incoming(context, row.state(way))
        for way in row.mirror.direction.ways
    )
    conflicted = 0 if node is None else tx.conflict_count(node.node_no)
    return MirrorStatus(row.mirror, row.configured, node is not None, conflicted, standings)


def _incoming(context: Context, state: MirrorState) -> MirrorStanding:
    """A mirror is in step if it has been in step and has not failed since. More is not known here: the other service
    does not report its new items."""
    if state.in_step_us is None:
        return MirrorStanding(Direction.IN, state, None)
    behind_us = 0 if state.failure is None else max(1, context.now_us - state.in_step_us)
    return MirrorStanding(Direction.IN, state, behind_us)


def _outgoing(tx: ReadTx, context: Context, row: MirrorRow, node: Node | None) -> MirrorStanding:
    state = row.state(Direction.OUT)
    if node is None:
        missing = f"there is no node {row.mirror.node} here: create it, or correct the node of the mirror"
        return MirrorStanding(Direction.OUT, replace(state, failure=Failure(0, context.now_us, None, missing)), None)
    consumer = Consumer(node.node_no, row.mirror.consumer_name)
    failure = failure_of(tx.wait(consumer))
    state = replace(state, failure=failure)
    mark = tx.mark(node.node_no, Order.MODIFIED, consumer.name) or BEGINNING
    failing_us = 0 if failure is None else max(1, context.now_us - failure.since_us)
    waiting, oldest_us = waiting_items(tx, node.node_no, Order.MODIFIED, mark)
    behind_us = failing_us if oldest_us is None else max(1, context.now_us - oldest_us)
    return MirrorStanding(Direction.OUT, state, behind_us, waiting)


def save_state(tx: WriteTx, name: str, direction: Direction, state: MirrorState) -> bool:
    """Stores the state of a direction. Returns False if the mirror was removed or restarted meanwhile."""
    row = stored_mirrors.mirror(tx, name)
    if row is None or row.state(direction).epoch != state.epoch:
        return False
    stored_mirrors.put(tx, row.with_state(direction, state))
    return True


def mirror_reader(node: str) -> str:
    """The name under which the store has the documents that mirrors have read for a node (`ReadTx.documents`)."""
    return f"mirror of {node}"


def document_readers(tx: ReadTx) -> set[str]:
    """Returns the readers of all mirrors."""
    return {mirror_reader(row.mirror.node) for row in stored_mirrors.mirrors(tx)}
