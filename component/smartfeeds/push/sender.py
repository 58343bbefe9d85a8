"""The deliverer of XMPP notifications: reads a batch of changes and hands frames to the link, in order.

Smart Feeds, Push Interface (SF-037 to SF-044). Changes that wait too long under back-pressure are dropped and counted,
and the next PreviousCursor shows the gap (SF-041): nothing is ever queued in memory.

A batch is read (`push.batch`), its recipients are read by pages (`push.audience`), frames are made (`push.frames`) and
written. Then events are removed and marks move. A crash at any point repeats notifications, and loses none.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from smartfeeds.core.consumers import Consumer, held_consumer
from smartfeeds.core.model import QUIET, RELEASE, TRANSIENT_ITEM, Mark, Node, NodeEvent, NodeState, Subscription
from smartfeeds.core.position import format_cursor
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order
from smartfeeds.delivery.deliverer import (
    ConsumerPosition,
    Delivered,
    Outcome,
    RetryAfter,
    StanzaSender,
)
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.push.audience import (
    PAGE,
    AudienceCache,
    AudiencePage,
    PresenceRecipient,
    hold,
    presence_recipient,
    read_audience,
    read_held,
    read_interested,
)
from smartfeeds.push.batch import NodeBatch, PushedChange, read_batch, read_views
from smartfeeds.push.frames import (
    PushFrame,
    PushHeaders,
    RecipientGroup,
    authorization_message,
    item_frame,
    node_frame,
    subscription_message,
    transient_item,
)
from smartfeeds.push.side import Interest, PushSide
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.item_writes import reap
from smartfeeds.service.subscription_states import REFUSAL, REQUEST, STATE

RETRY_S = 1.0  # how long a delivery waits after its events could not be removed
FLUSH_BYTES = 65_536  # bytes of frames that one write joins; as a write of the link (`xmpp.outbox`)
SPLICE_BYTES = 524_288  # bytes of frames made before they are written: a large item times many recipients is too much
RECIPIENT_BYTES = 40  # an estimate for `frames.recipient`: the exact sum would need a look at each recipient


@dataclass(slots=True)
class PushCounters:
    """Counts since the start, for metrics: changes dropped because they were too old. `lag_us` is the age of the change
    that was sent last."""

    dropped: int = 0
    lag_us: int = 0


@dataclass(frozen=True, slots=True)
class SentCursors:
    """The memory of the sender between two batches of a node.

    `by_view` has the cursor that was sent last in each view; after a restart the sender reads it from the store. One
    purge event announced the items up to the key `purged_us`; after a restart each is announced, which is correct too.
    So are items that came without notifications, up to the key `quiet_us` of the modified order.
    `sent_events` are the numbers of events that were sent, but whose removal from the store failed.
    """

    by_view: Mapping[str, str] = field(default_factory=dict)
    purged_us: int = -1
    quiet_us: int = -1
    sent_events: frozenset[int] = frozenset()


@dataclass(slots=True)
class _BatchRun:
    """One batch that is being sent: the frames to write together, and the position behind them."""

    batch: NodeBatch
    last_cursors: dict[str, str]
    purged_us: int
    quiet_us: int
    sent_events: frozenset[int]
    marks: dict[Order, Mark]  # the end of what was sent in each order
    held_nos: set[int] = field(default_factory=set)  # subscriptions that the run began to hold
    events_sent: int = 0
    dropped: int = 0
    frames: list[bytes] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def node(self) -> Node:
        return self.batch.node

    def notifies(self, change: PushedChange) -> bool:
        """Whether no event has announced the change, or kept it quiet."""
        return change.key_us > self.purged_us and change.item.modified_us > self.quiet_us

    def splice(self, frame: PushFrame, recipients: Iterable[bytes]) -> None:
        head, tail = frame.head, frame.tail
        before = len(self.frames)
        self.frames.extend([head + recipient + tail for recipient in recipients])
        self.size_bytes += (len(self.frames) - before) * (len(head) + len(tail) + RECIPIENT_BYTES)


@dataclass(frozen=True, slots=True)
class PushForms:
    """The encoders of forms in notifications. `configuration` receives the node. `authorization` receives the
    number, the node and the subscriber of a subscription that an owner may approve."""

    configuration: Callable[[Node], bytes]
    authorization: Callable[[str, str, str], bytes]


class PushSender:
    """Sends the notifications of nodes (`delivery.deliverer.Deliverer`).

    `side` has what running parts know of the recipients. `release` starts the delivery to a consumer of held events.
    `clock` returns the time in microseconds. A change that is `max_age_s` older than this time is not sent.
    """

    def __init__(
        self,
        service: FeedService,
        wire: StanzaSender,
        forms: PushForms,
        side: PushSide,
        *,
        release: Callable[[Consumer], None],
        clock: Callable[[], int],
        max_age_s: float,
    ) -> None:
        self._service = service
        self._wire = wire
        self._clock = clock
        self._max_age_us = int(max_age_s * US_PER_S)
        self._forms = forms
        self._is_available = side.availability.is_available
        self._interests = side.interests
        self._explain = side.explain
        self._release = release
        self._audience = AudienceCache()
        self.counters = PushCounters()

    def host(self, _consumer: Consumer) -> str:
        """Returns "": all notifications use one link, which has its own back-pressure."""
        return ""

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends one batch. `more` of the outcome is set if other changes wait. Raises LinkError, StoreError."""
        # Every look at the store wakes each feed that is behind. Reading their changes without a link would be wasted.
        if not self._wire.online:
            raise LinkError("the link to the XMPP server is down")
        node_no, marks = consumer.node_no, position.marks
        sent = position.memory if isinstance(position.memory, SentCursors) else SentCursors()
        known = frozenset(sent.by_view)
        turn = f"push {node_no}"
        interested_since = self._interests.since_us
        batch = await self._service.read(
            lambda tx, context: read_batch(tx, context, node_no, marks, known, interested_since), turn=turn
        )
        while batch is not None and batch.due:
            batch = await self._service.read(partial(read_views, batch=batch, known=known), turn=turn)
        if batch is None:
            return Delivered(ConsumerPosition())
        if (first := batch.first) is not None:
            # Before the sending: the mark must exist when the mechanism moves it.
            await self._service.write(lambda tx, _context: add_consumer(tx, consumer, Order.MODIFIED, first))
        last_cursors = {view: cursor for view, cursor in sent.by_view.items() if view in batch.views}
        run = _BatchRun(
            batch,
            {**last_cursors, **batch.previous},
            sent.purged_us,
            sent.quiet_us,
            sent.sent_events,
            dict(batch.starts),
        )
        for order in batch.orders:
            for change in order.changes:
                if order.order is Order.MODIFIED or not batch.behind:
                    await self._send_events(run, change.key_us)
                await self._send_change(run, change)
                run.marks[order.order] = Mark(change.key_us, change.cursor)
        behind = any(order.more for order in batch.orders)
        if not behind:
            await self._send_events(run, None)
        await self._flush(run, 0)
        self.counters.dropped += run.dropped
        ends = {order.order: order.end for order in batch.orders}
        memory = SentCursors(run.last_cursors, run.purged_us, run.quiet_us)
        position = ConsumerPosition(ends, memory)
        try:
            reaped = await self._clean_up(batch, run.events_sent)
        except StoreError as error:
            sent_events = frozenset(event.event_no for event in batch.events[: run.events_sent])
            position = ConsumerPosition(ends, replace(memory, sent_events=sent_events))
            # The pause is short and constant: new items of the feed wait for it, too.
            return RetryAfter(f"sent events cannot be removed from the store: {error}", RETRY_S, position)
        return Delivered(ConsumerPosition()) if reaped else Delivered(position, more=batch.more)

    async def _clean_up(self, batch: NodeBatch, events_sent: int) -> bool:
        """Removes the events that were sent and, once nothing is left to send, a deleted node, in small transactions.

        Returns whether the node is gone.
        """
        if events_sent:
            # After their sending: a crash in between sends them again.
            event_nos = [event.event_no for event in batch.events[:events_sent]]
            await self._service.write(lambda tx, _context: tx.remove_events(event_nos))
        node = batch.node
        if node.state is NodeState.LIVE or batch.more:
            return False
        await self._service.write(partial(reap, node=node), turn=f"push {node.node_no}")
        return True

    async def _send_change(self, run: _BatchRun, change: PushedChange) -> None:
        node, item = run.node, change.item
        views = [view for view in change.views if run.batch.notifies(view, change)]
        lag_us = self._clock() - item.modified_us
        self.counters.lag_us = max(lag_us, 0)
        if lag_us > self._max_age_us:
            run.dropped += 1
        elif run.notifies(change) and node.options.deliver_notifications:
            chains = {
                view: PushHeaders(run.batch.total_of(view, item), run.last_cursors.get(view, ""), change.cursor)
                for view in views
            }

            def frame(group: RecipientGroup) -> PushFrame:
                return run.batch.frame(change, group, chains[group.view])

            await self._send_frames(run, chains, frame, change.key_us, holding=True)
        run.last_cursors.update(dict.fromkeys(views, change.cursor))

    async def _send_events(self, run: _BatchRun, before_us: int | None) -> None:
        """Sends the events that lie before a key of the modified order, or all that are left."""
        for event in run.batch.events[run.events_sent :]:
            if before_us is not None and event.at_us >= before_us:
                return
            run.events_sent += 1
            if event.event_no in run.sent_events:
                continue
            if event.kind in (STATE, REFUSAL):
                run.frames += [subscription_message(run.node, event), *await self._explain(run.node, event)]
            elif event.kind == REQUEST:
                run.frames += [
                    authorization_message(event, self._forms.authorization),
                    *await self._explain(run.node, event),
                ]
            elif event.kind == QUIET:
                run.quiet_us = int(event.data)
            elif event.kind == RELEASE:
                await self._release_held(run.node, event)
            elif event.kind == TRANSIENT_ITEM:
                await self._send_transient(run, event)
            else:
                await self._send_node_event(run, event)

    async def _send_transient(self, run: _BatchRun, event: NodeEvent) -> None:
        """Sends an item that the node does not store, to subscribers of the bare node: followers of views have exactly
        the items that the node stores. Its last cursor is the key of the event."""
        node = run.node
        item = transient_item(event)
        if self._clock() - event.at_us > self._max_age_us:
            run.dropped += 1
            return
        cursor = format_cursor(Order.MODIFIED, event.at_us, [item.id])
        chains = {
            text: PushHeaders(node.live, run.last_cursors.get(text, ""), cursor)
            for text, view in run.batch.views.items()
            if not view.smart
        }
        if node.options.deliver_notifications:
            await self._send_frames(
                run, chains, lambda group: item_frame(node, group, item, chains[group.view]), event.at_us
            )
        run.last_cursors.update(dict.fromkeys(chains, cursor))

    async def _send_node_event(self, run: _BatchRun, event: NodeEvent) -> None:
        node = run.node
        payloads = node.options.deliver_payloads
        form = self._forms.configuration(node) if event.kind == "configuration" and payloads else b""
        if event.kind == "purge":
            run.purged_us = int(event.data)
        if not node.options.deliver_notifications:
            return
        deleted = event.kind == "delete"
        async for page in self._pages(run.batch, everybody=deleted):
            unreached: list[Subscription] = []
            for group, members in page.groups.items():
                # A purge would make a client that subscribed after it discard the items that it has pulled since.
                recipients = members.recipients if deleted else members.after(event.at_us + 1)
                await self._send(run, node_frame(node, group, event, form), recipients)
            for each in page.by_presence:
                if each.since_us > event.at_us or each.subscription.sub_no in run.held_nos:
                    continue
                if self._reaches(each):
                    await self._send(run, node_frame(node, each.group, event, form), (each.part,))
                elif event.kind == "purge" and each.group.view in run.batch.views:
                    unreached.append(each.subscription)
            if unreached:
                await self._miss_purge(run, unreached, event)

    async def _miss_purge(self, run: _BatchRun, subscriptions: Sequence[Subscription], event: NodeEvent) -> None:
        """Holds a purge for subscribers who are not reached: those of Smart views receive the tombstones later.

        Retractions of a bare view are not notified, so its next PreviousCursor must show the gap.
        """
        views = {sub.view for sub in subscriptions}
        await self._hold(run, [sub for sub in subscriptions if run.batch.views[sub.view].smart])
        cursor = format_cursor(Order.MODIFIED, event.at_us, ["purge"])
        run.last_cursors.update({text: cursor for text in views if not run.batch.views[text].smart})

    async def _send_frames(
        self,
        run: _BatchRun,
        chains: Mapping[str, PushHeaders],
        frame: Callable[[RecipientGroup], PushFrame],
        key_us: int,
        *,
        holding: bool = False,
    ) -> None:
        """Sends a change to the recipients of its views. With `holding` the change is held for recipients who are
        offline or in another state than they have chosen."""
        if not chains:
            return
        async for page in self._pages(run.batch):
            # Their release may have been lost by a restart.
            for consumer in page.overdue:
                self._release(consumer)
            for group, members in page.groups.items():
                if group.view in chains:
                    await self._send(run, frame(group), members.after(key_us))
            if page.by_presence:
                recipients = [each for each in page.by_presence if each.group.view in chains and each.since_us < key_us]
                await self._send_by_presence(run, recipients, frame, holding=holding)

    async def _send_by_presence(
        self,
        run: _BatchRun,
        recipients: Iterable[PresenceRecipient],
        frame: Callable[[RecipientGroup], PushFrame],
        *,
        holding: bool,
    ) -> None:
        offline: list[Subscription] = []
        frames: dict[RecipientGroup, PushFrame] = {}
        for each in recipients:
            if each.subscription.sub_no in run.held_nos:
                continue
            if not self._reaches(each):
                offline.append(each.subscription)
                continue
            if each.group not in frames:
                frames[each.group] = frame(each.group)
            await self._send(run, frames[each.group], (each.part,))
        if holding and offline:
            # Before the mark of the node passes this change: a crash must not lose it for these subscribers.
            await self._hold(run, offline)

    async def _hold(self, run: _BatchRun, subscriptions: Sequence[Subscription]) -> None:
        stored = await hold(self._service, subscriptions, run.marks)
        run.held_nos.update(sub.sub_no for sub in subscriptions)
        # An arrival before the hold was durable did not see it and released nothing.
        for sub in stored:
            if self._reaches(presence_recipient(sub)):
                self._release(held_consumer(sub.node_no, sub.sub_no))

    async def _release_held(self, node: Node, event: NodeEvent) -> None:
        if event.data:
            self._release(held_consumer(node.node_no, int(event.data)))
            return
        after_no: int | None = 0
        while after_no is not None:
            read = partial(read_held, node=node, after_no=after_no)
            consumers, after_no = await self._service.read(read, turn=f"push {node.node_no}")
            for consumer in consumers:
                self._release(consumer)

    def _reaches(self, recipient: PresenceRecipient) -> bool:
        """Whether events are sent to a subscriber now. If its presence is unknown, they are."""
        return self._is_available(recipient.subscription.jid, recipient.shows) is not False

    async def _pages(self, batch: NodeBatch, *, everybody: bool = False) -> AsyncIterator[AudiencePage]:
        """The recipients of a node: its subscribers, then the resources that request it by `NODE+notify`."""
        node, blocks = batch.node, (batch.blocks_version,)
        after_no: int | None = 0
        while after_no is not None:
            page = None if everybody else self._audience.get(node, after_no, blocks)
            if page is None:
                page = await self._read_page(node, after_no, blocks, everybody=everybody)
            yield page
            after_no = page.next_after
        if not batch.is_requested:
            return
        interests, version = self._interests.of(node.name), self._interests.version(node.name)
        for start in range(0, len(interests), PAGE):
            yield await self._interested_page(node, -1 - start, interests[start : start + PAGE], (*blocks, *version))

    async def _interested_page(
        self, node: Node, place: int, interests: Sequence[Interest], version: tuple[int, ...]
    ) -> AudiencePage:
        page = self._audience.get(node, place, version)
        if page is None:
            page = await self._service.read(
                lambda tx, context: read_interested(tx, context, node, interests), turn=f"push {node.node_no}"
            )
            self._audience.put(node, place, page, version)
        return page

    async def _read_page(self, node: Node, after_no: int, blocks: tuple[int, ...], *, everybody: bool) -> AudiencePage:
        page = await self._service.read(
            lambda tx, context: read_audience(tx, context, node, after_no, everybody=everybody),
            turn=f"push {node.node_no}",
        )
        if not everybody:
            self._audience.put(node, after_no, page, blocks)
        return page

    async def _send(self, run: _BatchRun, frame: PushFrame, recipients: tuple[bytes, ...]) -> None:
        step = max(1, SPLICE_BYTES // (len(frame.head) + len(frame.tail)))
        for start in range(0, len(recipients), step):
            run.splice(frame, recipients[start : start + step])
            await self._flush(run, FLUSH_BYTES)

    async def _flush(self, run: _BatchRun, at_least_bytes: int) -> None:
        """Writes the frames of the run if they have at least so many bytes."""
        if run.frames and run.size_bytes >= at_least_bytes:
            await self._wire.notify(run.frames)
            run.frames, run.size_bytes = [], 0
