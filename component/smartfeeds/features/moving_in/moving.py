"""Moves a node of another service into this one (IMP-060 to IMP-069).

A new node is written under a name that nobody can reach, in transactions of `BATCH` items, and gets its own name, its
options and its people in the last transaction. So readers see the complete node or none. An import that was
interrupted leaves its unfinished node behind, which the next import of the node removes.

A node that exists gets what has changed: items with the next keys, and the options and people of the source. Its
subscribers are not notified of items, because they have received them from the other service.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from smartfeeds.core.model import MAX_ID_BYTES, Edge, Node, NodeKind, Slice
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.view import BARE, names_view
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem, Report
from smartfeeds.features.moving_in.moved_items import ItemSpool, KeyedItem, fitted_payload
from smartfeeds.features.moving_in.moved_options import moved_kind, moved_options
from smartfeeds.features.moving_in.moved_people import (
    MovedPeople,
    PeopleChanges,
    plan_people,
    prepare_people,
    store_affiliations,
    store_people,
)
from smartfeeds.features.moving_in.moving_steps import (
    add_batch,
    begin_node,
    compare_items,
    locked_node,
    retract_items,
    unfinished_node,
    write_changes,
)
from smartfeeds.service.context import Context
from smartfeeds.service.importing import ImportCounts
from smartfeeds.service.nodes import change_options, check_name
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.joining import Spool

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

BATCH: Final = 1_000  # items that one transaction stores in a node that nobody can reach: some 30 ms
CHUNK: Final = 64  # items that one transaction compares and stores in a node that has readers
BATCH_BYTES: Final = 8 * 1024 * 1024  # of payloads in a transaction: the memory does not depend on the sizes of items


@dataclass(frozen=True, slots=True)
class MoveSettings:
    """The settings of a move. `operator` is the bare JID that owns nodes without an owner, and the publisher of items
    without a publisher. `kind` overrides the kind of new nodes. With `mirror` what the source does not have is removed
    here. With `dry_run` nothing is written."""

    operator: str
    kind: NodeKind | None = None
    mirror: bool = False
    dry_run: bool = False


@dataclass(slots=True)
class NodeReport:
    """The effects of moving one node. `outcome` is `created`, `updated`, `unchanged` or `refused`.

    `affiliations` and `subscriptions` count those that were stored, `ended` the subscriptions that were removed.
    `problems` are the parts that were left out or changed.
    """

    node: str
    outcome: str = "unchanged"
    kind: str = ""
    counts: ImportCounts = field(default_factory=ImportCounts)
    affiliations: int = 0
    subscriptions: int = 0
    ended: int = 0
    problems: list[MovedProblem] = field(default_factory=list)


async def move_node(
    service: "FeedService",
    moved: MovedNode,
    settings: MoveSettings,
    spool: Spool,
    now_us: int,
    *,
    on_progress: Callable[[int], None] = lambda _count: None,
) -> NodeReport:
    """Moves a node. The payloads of its items wait in `spool`. This function checks no rights: it is for operators.

    `on_progress` is called with the number of items that were read since the call before. Raises StoreError, and what
    the reader of the source raises.
    """
    report = NodeReport(moved.name, problems=list(moved.problems))
    items = ItemSpool(spool, settings.operator, now_us, problems=report.problems)
    try:
        node = await service.read(partial(_node_or_room, moved=moved, settings=settings))
        for _ in items.fill(moved.items):
            on_progress(1)
        people = prepare_people(moved, settings.operator, _once(report))
        move = _Move(service, moved, settings, items, report, people)
        await (move.create() if node is None else move.update(node))
    except FeedError as error:
        # Also if somebody creates or deletes a node of this name meanwhile: the other nodes are still moved.
        report.outcome = "refused"
        report.problems.append(MovedProblem("node", error.text or error.condition.value))
    return report


def _once(report: NodeReport) -> Report:
    """Returns the function that adds a problem to a report. A transaction that runs twice reports a problem once."""

    known = set(report.problems)

    def add(problem: MovedProblem) -> None:
        if problem not in known:
            known.add(problem)
            report.problems.append(problem)

    return add


def _node_or_room(tx: ReadTx, context: Context, moved: MovedNode, settings: MoveSettings) -> Node | None:
    """Returns the node of this name, or None if there is room for it. Raises FeedError for a name that no node of this
    service can have (IMP-064)."""
    name = moved.name
    if not name or not is_xml_text(name) or len(name.encode()) > MAX_ID_BYTES:
        raise FeedError(
            Condition.NOT_ACCEPTABLE,
            f"the name is empty, is longer than {MAX_ID_BYTES} bytes, or has characters that XML forbids",
        )
    if names_view(name):
        raise FeedError(
            Condition.NOT_ALLOWED, "the name is that of a view; give the node another name on the old service"
        )
    node = tx.node(name)
    if node is None:
        creator = prepare_people(moved, settings.operator, lambda _problem: None).creator
        check_name(tx, context, name, creator)
    return node


@dataclass(slots=True)
class _Move:
    """One node on its way."""

    service: "FeedService"
    moved: MovedNode
    settings: MoveSettings
    items: ItemSpool
    report: NodeReport
    people: MovedPeople
    skipped: list[tuple[str, str]] = field(default_factory=list)

    async def create(self) -> None:
        """Writes a new node."""
        node = self._new_node()
        batches = self._batches(self._fitting(node, self.items.in_created_order()), BATCH)
        first = next(batches, [])
        self.report.outcome, self.report.kind = "created", node.kind.value
        if self.settings.dry_run:
            added = len(first) + sum(map(len, batches))
            changes = await self.service.read(lambda tx, context: self._plan(tx, context, node))
            self._count(changes, ImportCounts(added=added))
            return
        second = next(batches, None)
        if second is None:
            added = await self.service.write(lambda tx, context: self._write_whole(tx, context, node, first))
        else:
            added = await self.service.write(partial(begin_node, node=node, items=first))
            while second is not None:
                writing = asyncio.create_task(self.service.write(partial(add_batch, name=node.name, items=second)))
                # The store writes in its thread while this one prepares the next batch.
                await asyncio.sleep(0)
                try:
                    second = next(batches, None)
                finally:
                    # Also if the source cannot be read further: the write must end before the store is closed.
                    added += await writing
            await self.service.write(lambda tx, context: self._reveal(tx, context, node))
        self._count(None, ImportCounts(added=added))

    def _new_node(self) -> Node:
        """Returns the node to create, with the options of the source."""
        policy, items = self.service.policy, self.items
        kind = self.settings.kind or moved_kind(policy, self.moved, has_items=bool(len(items)), for_feed=items.for_feed)
        initial = NodeOptions.initial(kind, policy.options)
        options = moved_options(initial, self.moved.options, policy.options, _once(self.report))
        return Node(0, self.moved.name, kind, self.people.creator, 0, options)

    def _fitting(self, node: Node, items: Iterable[KeyedItem]) -> Iterator[KeyedItem]:
        """Yields the items that a node can store, with their payloads as it stores them."""
        surplus = 0
        if node.kind is NodeKind.GENERIC:
            # The node would remove the oldest items with the next publish.
            surplus = max(0, len(self.items) - (node.options.max_items or len(self.items)))
        if surplus:
            self.skipped.append((f"{surplus} oldest items", f"the node has up to {node.options.max_items} items"))
        if not node.options.persist_items and len(self.items):
            self.skipped.append((f"{len(self.items)} items", "the node stores no items"))
            return
        for item in items:
            if item.rank <= surplus:
                continue
            try:
                payload = fitted_payload(self.service.policy, node, item)
            except FeedError as error:
                self.skipped.append((item.id, error.text or error.condition.value))
            else:
                yield item._replace(payload=payload, rank=item.rank - surplus)

    @staticmethod
    def _batches(items: Iterator[KeyedItem], size: int) -> Iterator[list[KeyedItem]]:
        batch: list[KeyedItem] = []
        batch_bytes = 0
        for item in items:
            batch.append(item)
            batch_bytes += len(item.payload)
            if len(batch) == size or batch_bytes >= BATCH_BYTES:
                yield batch
                batch, batch_bytes = [], 0
        if batch:
            yield batch

    def _write_whole(self, tx: WriteTx, context: Context, node: Node, items: list[KeyedItem]) -> int:
        """Writes a small node in one transaction."""
        added = begin_node(tx, context, node, items)
        self._reveal(tx, context, node)
        return added

    def _reveal(self, tx: WriteTx, context: Context, node: Node) -> None:
        """Gives the complete node its name, options and people. Raises FeedError if somebody has created a node of this
        name meanwhile."""
        staged = unfinished_node(tx, node.name)
        if staged is None:
            raise FeedError(Condition.CONFLICT, f"another import of {node.name} has begun; run one at a time")
        check_name(tx, context, node.name, node.creator)
        if tx.redirect(node.name) is not None:
            tx.remove_redirect(node.name)
        tx.rename_node(staged.node_no, node.name, node.creator)
        tx.set_options(staged.node_no, node.options.stored)
        self._store_people(tx, context, node.name)
        context.changed.add(staged.node_no)

    def _plan(self, tx: ReadTx, context: Context, node: Node) -> PeopleChanges:
        return plan_people(tx, context, node, self.people, _once(self.report), mirror=self.settings.mirror)

    def _store_people(self, tx: WriteTx, context: Context, name: str) -> None:
        node = locked_node(tx, name)
        changes = self._plan(tx, context, node)
        self.report.subscriptions = store_people(tx, context, node, changes, _once(self.report))
        self.report.affiliations, self.report.ended = len(changes.affiliations), len(changes.removed)

    def _store_rights(self, tx: WriteTx, context: Context, name: str, options: NodeOptions) -> int:
        """Stores the options and the affiliations in one transaction: the options alone could admit an outcast.

        Returns the number of affiliations.
        """
        node = locked_node(tx, name)
        if options != node.options:
            change_options(tx, context, node, options)
            node = locked_node(tx, name)
        changes = self._plan(tx, context, node)
        store_affiliations(tx, context, node, changes)
        return len(changes.affiliations)

    def _count(self, changes: PeopleChanges | None, counts: ImportCounts) -> None:
        report = self.report
        if changes is not None:
            report.affiliations, report.subscriptions = len(changes.affiliations), len(changes.stored)
            report.ended = len(changes.removed)
        report.counts = replace(counts, skipped=tuple(self.skipped))
        changed = counts.added + counts.changed + counts.deleted
        if report.outcome == "unchanged" and changed + report.affiliations + report.subscriptions + report.ended:
            report.outcome = "updated"

    async def update(self, node: Node) -> None:
        """Brings what has changed into a node that exists."""
        service, settings = self.service, self.settings
        self.report.kind = node.kind.value
        options = moved_options(node.options, self.moved.options, service.policy.options, _once(self.report))
        if options != node.options:
            self.report.outcome = "updated"
        affiliations = 0
        if not settings.dry_run:
            # Before the items, which the new rights must protect. New subscriptions come last: they push nothing.
            affiliations = await service.write(partial(self._store_rights, name=node.name, options=options))
        total = ImportCounts()
        for chunk in self._batches(
            self._fitting(node._replace(options=options), self.items.in_modified_order()), CHUNK
        ):
            if settings.dry_run:
                total += await service.read(partial(compare_items, name=node.name, items=chunk))
            else:
                total += await service.write(partial(write_changes, name=node.name, items=chunk))
        if settings.mirror:
            total += ImportCounts(deleted=await self._retract_missing(node))
        if settings.dry_run:
            self._count(await service.read(lambda tx, context: self._plan(tx, context, node)), total)
        else:
            await service.write(lambda tx, context: self._store_people(tx, context, node.name))
            self.report.affiliations += affiliations
            self._count(None, total)

    async def _retract_missing(self, node: Node) -> int:
        """Retracts the items that the source does not have. Returns their number."""
        if not self.items.is_whole:
            self.report.problems.append(
                MovedProblem("items", "no item is removed here, because some items of the source cannot be read")
            )
            return 0
        ids = {item.id for item in self.items.in_modified_order()} | self.items.refused_ids
        after, count = None, 0
        # B023: the read has called the function before `after` changes.
        while items := await self.service.read(
            lambda tx, _context: tx.slice(node.node_no, Slice(BARE, CHUNK, after=after))  # noqa: B023
        ):
            after = Edge(items[-1].modified_us, items[-1].item_no)
            missing = [item.id for item in items if item.id not in ids]
            # Retracted items move behind the last item of the source, where this loop meets no live item of them.
            if missing and not self.settings.dry_run:
                await self.service.write(partial(retract_items, name=node.name, ids=missing, by=self.settings.operator))
            count += len(missing)
        return count
