"""Work that goes on after the answer to a request: purges, removals of deleted nodes, and erasures (OPS-070).

Each is a row of the store, so it continues after a stop, and any process can do the next step and tell its state. A
number names it, which stays the same until the work ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice

from smartfeeds.core.model import Node
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.attachments import requests as attachments
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing import ErasureStatus, erasure_status, read_person
from smartfeeds.features.privacy.erasures import Erasure
from smartfeeds.service.context import Context, is_admin, locate_for
from smartfeeds.service.requests import Answer, NodeRequest, Purge, Request
from smartfeeds.service.standing import check_admin, manages
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import ReadTx, WriteTx

# The bound of a list: one page of a chat client. Erasures that have ended are at its end.
WORK_SHOWN = 50
_DIGEST_DIGITS = 8


class WorkKind(Enum):
    """The kinds of work, by the first letter of their numbers."""

    PURGE = "purge"
    REMOVAL = "removal"
    ERASURE = "erasure"


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work. `subject` is the name of a node, or the bare JID of a person whose erasure has not ended.

    `state` is a word, `rest` the number of items that are still to be done, None if nobody has counted them.
    """

    number: str
    kind: WorkKind
    subject: str
    state: str
    rest: int | None = None
    since_us: int | None = None


@dataclass(frozen=True, slots=True)
class ListWork(Request):
    """The work on the nodes of an owner, or all work for an admin."""


@dataclass(frozen=True, slots=True)
class WorkList(Answer):
    """Pieces of work: purges, removals, and then erasures, the newest first."""

    entries: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class BeginPurge(NodeRequest):
    """Retracts every item of a node. The answer does not wait for a large node."""


@dataclass(frozen=True, slots=True)
class PurgeBegun(Answer):
    """The number of the work that goes on, empty if all items are retracted."""

    number: str


@dataclass(frozen=True, slots=True)
class GetErasure(Request):
    """The erasure of a person, for admins."""

    jid: str


@dataclass(frozen=True, slots=True)
class ErasureShown(Answer):
    """The number of the work, the job, and which followers have received the deletions."""

    number: str
    status: ErasureStatus


def list_work(tx: ReadTx, context: Context, request: ListWork) -> WorkList:
    """Work in progress that the actor may know of, and the erasures that began last. At most WORK_SHOWN entries."""
    purges = (
        _purge(node)
        for purge in tx.open_purges()
        if (node := tx.node_by_no(purge.node_no)) is not None and manages(tx, context, request.actor, node)
    )
    work: Iterator[Work] = purges
    if is_admin(context.policy, request.actor):
        work = chain(purges, _removals(tx), map(_erasure, privacy_rows.newest_erasures(tx, WORK_SHOWN)))
    return WorkList(tuple(islice(work, WORK_SHOWN)))


def begin_purge(tx: WriteTx, context: Context, request: BeginPurge) -> PurgeBegun:
    """Retracts the first items of a node. The background work of the service retracts the others (`delivery.sweeps`).

    Raises FeedError as `Purge` does.
    """
    result = attachments.purge(tx, context, Purge(request.actor, request.service, request.node))
    if not isinstance(result, MoreSteps):
        return PurgeBegun("")
    return PurgeBegun(_purge(locate_for(tx, context, request.node, request.actor).node).number)


def get_erasure(tx: ReadTx, context: Context, request: GetErasure) -> ErasureShown:
    """The erasure of a person. Raises FeedError: FORBIDDEN, ITEM_NOT_FOUND if there was none."""
    check_admin(context.policy, request.actor)
    person = read_person(request.jid)
    status = erasure_status(tx, context, person)
    if status is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"{person.jid} was never erased here")
    return ErasureShown(_erasure(status.job).number, status)


def _purge(node: Node) -> Work:
    return Work(f"p{node.node_no}", WorkKind.PURGE, node.name, "retracting", node.live)


def _removals(tx: ReadTx) -> Iterator[Work]:
    for node_no in privacy_rows.deleted_nodes(tx):
        node = tx.node_by_no(node_no)
        if node is not None:
            yield Work(f"r{node_no}", WorkKind.REMOVAL, node.name, "removing")


def _erasure(job: Erasure) -> Work:
    number = f"e{job.digest.hex()[:_DIGEST_DIGITS]}"
    return Work(number, WorkKind.ERASURE, job.jid, job.phase.value, since_us=job.started_us)
