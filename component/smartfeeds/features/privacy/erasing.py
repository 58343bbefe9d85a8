"""Erases the data of a person: a job of small steps, each in a transaction, which survives a stop (OPS-021 to OPS-029).

While a job is open, its person may not use the service. The command and the running service may work at one job: each
step reads where the job is, and a step that was done already changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from smartfeeds.core.blocklist import DIGEST_PREFIX, ListKind
from smartfeeds.core.consumers import HELD, ConsumerRow, failure_of
from smartfeeds.core.model import ALL_TEXTS, Affiliation, Item, Node, NodeState
from smartfeeds.core.person import Person
from smartfeeds.core.view import Order
from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing_items import belongs_to, erase_item, rename_erased, strip_item
from smartfeeds.features.privacy.erasures import (
    DELETE_NODES,
    LEFT_SHOWN,
    Erasure,
    ErasurePhase,
    ErasureSettings,
    LeftReason,
    merged_settings,
)
from smartfeeds.service.context import Context
from smartfeeds.service.item_writes import reap, retire
from smartfeeds.service.requests import EmptyResult, Request
from smartfeeds.service.standing import check_admin
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.store.base import ReadTx, WriteTx

# Items that one step looks at, and rows that it removes: 5 to 20 ms, during which other writes wait.
ITEM_CHUNK = 200
ROW_CHUNK = 500
OF_ITEMS_LEFT = frozenset({"mentions", "joined-addresses"})  # counts of items that are looked at once more
_NAMED = 1  # the place of a job in the phase FOLLOWERS that has seen rows which name the person

ErasureSteps = Erasure | MoreSteps[Erasure]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Whether a follower of a node has received the deletions. `confirmed` is None if it cannot be told."""

    node: str
    consumer: str
    confirmed: bool | None


@dataclass(frozen=True, slots=True)
class LeftItem:
    """An item that still has the address of the person, and why. `node` is empty if the node was deleted."""

    node: str
    item_id: str
    reason: LeftReason


@dataclass(frozen=True, slots=True)
class ErasureStatus:
    """A job with what is known of the followers, and of what is left. `node_names` are those of live nodes, by
    number."""

    job: Erasure
    node_names: Mapping[int, str]
    confirmations: tuple[Confirmation, ...]
    left: tuple[LeftItem, ...]


@dataclass(frozen=True, slots=True)
class ErasePerson(Request):
    """Begins the erasure of a person, on behalf of an admin (XEP-0133 section 4.2, OPS-065)."""

    jid: str
    settings: ErasureSettings


def erase_person(tx: WriteTx, context: Context, request: ErasePerson) -> EmptyResult:
    """Stores the job. The background work of the service does it (`delivery.sweeps`). Raises FeedError."""
    check_admin(context.policy, request.actor)
    begin_erasure(tx, context, read_person(request.jid), request.settings)
    return EmptyResult()


def read_person(text: str) -> Person:
    """Returns the person of a JID that a user has written. Raises FeedError(JID_MALFORMED)."""
    try:
        return Person(text)
    except ConfigError as error:
        raise FeedError(Condition.JID_MALFORMED, str(error)) from None


def sole_nodes(tx: ReadTx, jid: str) -> list[Node]:
    """Returns the live nodes that only this bare JID owns."""
    nodes = [node for node, _ in tx.affiliations_of(jid, kind=Affiliation.OWNER)]
    return [node for node in nodes if len(tx.affiliations(node.node_no, ALL_TEXTS, kind=Affiliation.OWNER)) == 1]


def begin_erasure(tx: WriteTx, context: Context, person: Person, settings: ErasureSettings) -> Erasure:
    """Stores the job to erase a person, or adds these settings to the open one. From now on the JID is blocked.

    Raises FeedError if the person is an admin or the next owner, or owns nodes alone for which nothing was decided.
    """
    if person.jid in context.policy.admins:
        raise FeedError(Condition.NOT_ALLOWED, f"{person.jid} is an admin; remove it from pubsub.admins first")
    if settings.nodes == person.jid:
        raise FeedError(Condition.NOT_ALLOWED, f"{person.jid} is erased and cannot own nodes; name another next owner")
    former = privacy_rows.erasure(tx, person)
    if former is not None and former.is_open:
        settings = merged_settings(former.settings, settings)
    names = [node.name for node in sole_nodes(tx, person.jid)]
    if names and not settings.nodes:
        raise FeedError(
            Condition.CONFLICT,
            f"{person.jid} is the only owner of {', '.join(names)}; delete them with --nodes delete, or name the next"
            " owner with --nodes transfer=JID",
        )
    if not tx.person_salt():
        privacy_rows.set_person_salt(tx, context.new_id().encode())
    job = Erasure(person.digest(tx.person_salt()), person.jid, settings, ErasurePhase.NODES, 0, context.now_us)
    if former is not None:
        # Also after its end: the command reports all that was erased, and the keys lead to the followers.
        job = (
            replace(former, settings=settings)
            if former.is_open
            else replace(job, counts=former.counts, keys=former.keys)
        )
    privacy_rows.put_erasure(tx, job)
    return job


def continue_erasure(tx: WriteTx, context: Context, jid: str) -> ErasureSteps | None:
    """Does the next step of the open job of a person. Returns the job if it waits or has ended, None without a job."""
    person = Person(jid)
    job = privacy_rows.erasure(tx, person)
    if job is None or not job.is_open:
        return job
    next_job = _STEPS[job.phase](tx, context, job, person)
    if next_job is None:
        return job
    privacy_rows.put_erasure(tx, next_job)
    return MoreSteps(partial(_continued, jid=jid)) if next_job.is_open else next_job


def _continued(tx: WriteTx, context: Context, jid: str) -> ErasureSteps:
    job = continue_erasure(tx, context, jid)
    assert job is not None  # the step before has stored the job, and jobs are never removed
    return job


def due_erasures(tx: ReadTx, _context: Context, _after: int) -> tuple[Sequence[WriteStep[object]], None]:
    """Returns the steps for jobs that have not ended: they wait for followers, or their process was stopped."""
    return [partial(continue_erasure, jid=job.jid) for job in privacy_rows.open_erasures(tx)], None


def erasure_status(tx: ReadTx, context: Context, person: Person) -> ErasureStatus | None:
    """Returns the job of a person and the confirmation of each follower (OPS-027), None if there was no job."""
    job = privacy_rows.erasure(tx, person)
    if job is None:
        return None
    names = {no: node.name for no in job.keys if (node := tx.node_by_no(no)) is not None}
    confirmations = [confirmation for no in names for confirmation in _confirmations(tx, names[no], no, job.keys[no])]
    confirmations += [
        Confirmation(node, address, None)
        for part in context.hooks.personal
        if part.unconfirmed is not None
        for node, address in part.unconfirmed(tx)
        if node in names.values()
    ]
    return ErasureStatus(job, names, tuple(confirmations), tuple(items_left(tx, job)))


def items_left(tx: ReadTx, job: Erasure) -> list[LeftItem]:
    """Returns the items that an erasure has left, without those that were removed since. The numbers of all are in the
    counts."""
    nodes: dict[int, str] = {}
    items: list[LeftItem] = []
    for node_no, item in privacy_rows.items_by_no(tx, job.left):
        if node_no not in nodes:
            node = tx.node_by_no(node_no)
            nodes[node_no] = node.name if node is not None else ""
        items.append(LeftItem(nodes[node_no], item.id, job.left[item.item_no]))
    return items


def _confirmations(tx: ReadTx, name: str, node_no: int, key_us: int) -> list[Confirmation]:
    return [Confirmation(name, row.consumer.name, row.mark.key_us >= key_us) for row in _followers(tx, node_no)]


def _followers(tx: ReadTx, node_no: int) -> Iterator[ConsumerRow]:
    """Yields the consumers of a node that receive its changes in modified order."""
    after = ("", "")
    while rows := tx.consumers_of(node_no, after, ROW_CHUNK):
        yield from (row for row in rows if row.order is Order.MODIFIED and row.consumer.kind != HELD)
        after = (rows[-1].order.value, rows[-1].consumer.name)


def _counted(job: Erasure, **changes: int) -> Erasure:
    """Returns the job with more counts; names have "-" in place of "_"."""
    counts = job.counts + Counter({name.replace("_", "-"): number for name, number in changes.items() if number})
    return replace(job, counts=counts)


def _next_phase(job: Erasure) -> Erasure:
    phases = list(ErasurePhase)
    return replace(job, phase=phases[phases.index(job.phase) + 1], place=0)


def _back_to_nodes(job: Erasure) -> Erasure:
    """Returns the job in its first phase: the other owners of a node have left, and nobody could manage the node."""
    counts = Counter({name: number for name, number in job.counts.items() if name not in OF_ITEMS_LEFT})
    return replace(job, phase=ErasurePhase.NODES, place=0, counts=counts, left={})


# The phases. Each returns the job after the step, or None if it must wait.


def _settle_node(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure | None:
    """Deletes or transfers the next node that only the person owns (OPS-024)."""
    node = _locked_sole_node(tx, person.jid)
    if node is None:
        return _next_phase(job)
    if not job.settings.nodes:
        # The other owners have left since the job began (`begin_erasure`): the operator decides about the node, too.
        return None
    if job.settings.nodes == DELETE_NODES:
        retire(tx, context, node)
        return _counted(job, nodes_deleted=1)
    tx.set_affiliation(node.node_no, job.settings.nodes, Affiliation.OWNER)
    tx.set_affiliation(node.node_no, person.jid, Affiliation.NONE)
    tx.set_creator(node.node_no, job.settings.nodes)
    return _counted(job, nodes_transferred=1)


def _locked_sole_node(tx: WriteTx, jid: str) -> Node | None:
    """Returns the next live node that only this bare JID owns, locked: a publish of another process would otherwise get
    a key above that of the event of the deletion, which its subscribers would then miss."""
    for each in sole_nodes(tx, jid):
        node = tx.lock_no(each.node_no)
        if node is not None and any(node.node_no == again.node_no for again in sole_nodes(tx, jid)):
            return node
    return None


def _remove_people(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure:
    """Removes the rows of the person: the subscriptions first, in chunks."""
    sub_nos = privacy_rows.subscription_nos(tx, person.jid, ROW_CHUNK)
    for sub_no in sub_nos:
        tx.remove_subscription(sub_no)
    if sub_nos:
        return _counted(job, subscriptions=len(sub_nos))
    if sole_nodes(tx, person.jid):
        return _back_to_nodes(job)
    return _next_phase(_remove_records(tx, context, job, person))


def _remove_records(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure:
    domain = context.policy.domain
    node_nos = privacy_rows.affiliated_nodes(tx, person.jid)
    for node_no in node_nos:
        tx.set_affiliation(node_no, person.jid, Affiliation.NONE)
    created_nos = privacy_rows.nodes_created_by(tx, person.jid)
    for node_no in created_nos:
        tx.set_creator(node_no, domain)
    rows = privacy_rows.person_rows(tx, context.hooks.personal_data, person)
    tables = Counter(row.table.name for row in rows)
    privacy_rows.remove_rows(tx, rows)
    # `remove_counts` reads the sums of the counts, which another process must not change meanwhile.
    tx.lock_quotas(person.jid)
    tx.remove_counts(person.jid)
    job = _counted(job, affiliations=len(node_nos), nodes_created=len(created_nos), **tables)
    for part in context.hooks.personal:
        if part.erase is not None:
            job = _counted(job, **part.erase(tx, context, person))
    return job


def _erase_items(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure:
    """Erases the person from the next items."""
    entries = _locked_items(tx, job.place)
    if not entries:
        return _finish_items(tx, context, job, person)
    indexed = privacy_rows.published_before(tx, person, entries[0][1].item_no, entries[-1][1].item_no)
    for node_no, item in entries:
        node = tx.lock_no(node_no)
        # The rows of deleted nodes go as a whole.
        if node is None or node.state is NodeState.DELETED:
            continue
        changed = None
        ids = f"{item.id} {item.sync_id}"
        names = person.is_in(ids)
        if belongs_to(context, node, item, person):
            changed = erase_item(tx, context, node, item, person)
            names = person.may_be_in(ids)
            job = _counted(job, items_erased=1)
        elif item.item_no in indexed or person.is_in(item.sync or b""):
            changed = strip_item(tx, context, node, item, person, indexed=item.item_no in indexed)
            job = _counted(job, items_edited=int(changed is not None))
        if changed is not None:
            job.keys[node_no] = changed.modified_us
        deleted = changed.deleted if changed is not None else item.deleted
        if names and deleted:
            job = _counted(job, ids=1)
        elif not deleted and (names or person.is_in(item.payload)):
            job = _with_left(_counted(job, mentions=1), item, LeftReason.MENTION)
        elif person.may_be_in(ids) or (not deleted and person.may_be_in(item.payload)):
            job = _with_left(_counted(job, joined_addresses=1), item, LeftReason.JOINED)
    return replace(job, place=entries[-1][1].item_no)


def _with_left(job: Erasure, item: Item, reason: LeftReason) -> Erasure:
    if len(job.left) >= LEFT_SHOWN:
        return job
    return replace(job, left={**job.left, item.item_no: reason})


def _locked_items(tx: WriteTx, after_no: int) -> Sequence[tuple[int, Item]]:
    """Returns the next items. Their nodes are locked, so no other process changes them meanwhile.

    The nodes are locked in the order of their numbers, as publishes lock them: another order could deadlock.
    """
    locked_nos: set[int] = set()
    while True:
        # An item that was read before its node was locked may be an old version.
        entries = privacy_rows.items_after(tx, after_no, ITEM_CHUNK)
        node_nos = sorted({node_no for node_no, _ in entries} - locked_nos)
        if not node_nos:
            return entries
        for node_no in node_nos:
            tx.lock_no(node_no)
        locked_nos.update(node_nos)


def _finish_items(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure:
    """Ends the phase of the items."""
    for part in context.hooks.personal:
        if part.erase_after_items is not None:
            job = _counted(job, **part.erase_after_items(tx, context, person))
    return _next_phase(job)


def _await_followers(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure | None:
    """Waits until the followers have received the deletions under the ids that they know, if an id names the person."""
    deleted_nos = tx.deleted_nodes()
    if job.settings.now:
        for node_no in deleted_nos:
            node = tx.node_by_no(node_no)
            if node is not None and isinstance(reap(tx, context, node), MoreSteps):
                return job
        return _next_phase(job)
    if deleted_nos:
        return None
    if not _is_behind(tx, job):
        return _next_phase(job)
    if job.place == _NAMED:
        return None
    # Searched once: this reads whole tables, and a job that waits is looked at every few seconds.
    is_named = bool(job.counts["ids"] or privacy_rows.mention_rows(tx, context.hooks.personal_data, person))
    return replace(job, place=_NAMED) if is_named else _next_phase(job)


def _is_behind(tx: ReadTx, job: Erasure) -> bool:
    """Returns whether a follower still has to receive a deletion. The service has given up some of them."""
    for node_no, key_us in job.keys.items():
        for row in _followers(tx, node_no):
            failure = failure_of(row.wait)
            if row.mark.key_us < key_us and not (failure is not None and failure.next_us is None):
                return True
    return False


def _replace_texts(tx: WriteTx, context: Context, job: Erasure, person: Person) -> Erasure:
    """Renames tombstones, then removes and changes the other rows that name the person."""
    entries = _locked_items(tx, job.place) if job.counts["ids"] else []
    for node_no, item in entries:
        node = tx.lock_no(node_no)
        if node is not None:
            rename_erased(tx, context, node, item, person)
    if entries:
        return replace(job, place=entries[-1][1].item_no)
    if sole_nodes(tx, person.jid):
        return _back_to_nodes(job)
    rows = privacy_rows.mention_rows(tx, context.hooks.personal_data, person)
    for row in rows:
        if row.table.name == "subscription":
            tx.remove_subscription(row.key[0])
    privacy_rows.remove_rows(tx, rows)
    texts = privacy_rows.replace_texts(
        tx, privacy_rows.text_rows(tx, context.hooks.personal_data, person), person, context.policy.domain
    )
    job = _counted(_remove_records(tx, context, job, person), rows=len(rows), texts=texts)
    _hide_blocks(tx, job, person)
    job = replace(job, left_texts=privacy_rows.texts_left(tx, context.hooks.personal_data, person))
    settings = replace(job.settings, nodes="")
    return replace(job, jid="", settings=settings, phase=ErasurePhase.DONE, place=0, ended_us=context.now_us)


def _hide_blocks(tx: WriteTx, job: Erasure, person: Person) -> None:
    """Replaces the person by the digest on the lists that the operator has put the person on (OPS-028)."""
    for kind in ListKind:
        is_named = person.jid in privacy_rows.blocks(tx, kind)
        privacy_rows.remove_blocks(tx, kind, (person.jid,))
        if is_named or (job.settings.block and kind is ListKind.DENY):
            privacy_rows.add_blocks(tx, kind, (f"{DIGEST_PREFIX}{job.digest.hex()}",))


_STEPS: Mapping[ErasurePhase, Callable[[WriteTx, Context, Erasure, Person], Erasure | None]] = {
    ErasurePhase.NODES: _settle_node,
    ErasurePhase.PEOPLE: _remove_people,
    ErasurePhase.ITEMS: _erase_items,
    ErasurePhase.FOLLOWERS: _await_followers,
    ErasurePhase.TEXTS: _replace_texts,
}

# Erasures wait for followers. A sweep without one is one look-up in an index.
SWEEP = Sweep("erasures", due_erasures, 5.0)
