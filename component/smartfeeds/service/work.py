"""Work that goes on after the answer to a request: purges and removals of deleted nodes (OPS-070).

Each is a row of the store, so it continues after a stop, and any process can do the next step and tell its state. A
number names it, which stays the same until the work ends. The erasure of a person is work of the same list, and belongs
to a feature.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from smartfeeds.core.model import Node
from smartfeeds.core.times import format_second
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.resources import Column, ListAnswer, ListCommand, ListRequest, Resource, reader
from smartfeeds.service.standing import manages
from smartfeeds.store.base import ReadTx

# The bound of a list: one page of a chat client.
WORK_SHOWN = 50


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A piece of work. `subject` is the name of a node, or the bare JID of a person whose erasure has not ended.

    `kind` and `state` are words, `rest` is the number of items that are still to be done, None if nobody has counted
    them.
    """

    number: str
    kind: str
    subject: str
    state: str
    rest: int | None = None
    since_us: int | None = None


@dataclass(frozen=True, slots=True)
class ListWork(ListRequest):
    """The work on the nodes of an owner, or all work for an admin."""


def list_work(tx: ReadTx, context: Context, request: ListWork) -> ListAnswer[OpenWork]:
    """Purges, and then removals, that the actor may know of. At most WORK_SHOWN entries, in one page: purges and
    removals end within minutes, and erasures are rare."""
    purges = (
        OpenWork(purge_number(node.node_no), "purge", node.name, "retracting", node.live)
        for purge in tx.open_purges()
        if (node := tx.node_by_no(purge.node_no)) is not None and manages(tx, context, request.actor, node)
    )
    removals = _removals(tx) if is_admin(context.policy, request.actor) else ()
    return ListAnswer(tuple(islice(chain(purges, removals), WORK_SHOWN)))


def purge_number(node_no: int) -> str:
    """The number of the purge of a node."""
    return f"p{node_no}"


def _removals(tx: ReadTx) -> Iterator[OpenWork]:
    for node_no in tx.deleted_nodes():
        node: Node | None = tx.node_by_no(node_no)
        if node is not None:
            yield OpenWork(f"r{node_no}", "removal", node.name, "removing")


WORK: Resource[OpenWork] = Resource(
    "work",
    "piece of work",
    (
        Column("number", lambda work: work.number, "Number"),
        Column("work", lambda work: work.kind, "Work"),
        Column("subject", lambda work: work.subject, "Node or person"),
        Column("state", lambda work: work.state, "State"),
        Column("rest", lambda work: work.rest, "Items left"),
        Column("since", lambda work: "" if work.since_us is None else format_second(work.since_us), "Since"),
    ),
    read=reader(ListWork),
    command=ListCommand("list-work", "List work in progress", ("number", "work", "subject", "state", "rest", "since")),
)
