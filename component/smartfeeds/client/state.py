"""The follower as a state machine without I/O (SF-045 to SF-051; xep-map 3.3).

`FollowState.receive` takes one input and returns outputs in order. The follower's position L is the cursor of the
newest item that it has. A push is applied only if its previous cursor equals L. In every other case the follower pulls
from L, which is always safe. Cursors are compared as strings and never parsed (SF-027).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from smartfeeds.client import events
from smartfeeds.client.change import Change, ChangeKind, ReceivedItem
from smartfeeds.client.errors import FollowError, NodeMissingError, PositionRefusedError
from smartfeeds.client.events import PAGE_ITEMS, FollowCounters, Input, Output, StartPoint
from smartfeeds.client.memory import ID_MARK, FollowMemory, fingerprint
from smartfeeds.client.position import BEGINNING, FollowPosition

# Item versions that are recognised when they arrive again, 300 bytes each. If the service rejects the position, the
# follower reads the whole feed again, and delivers the versions that it has forgotten a second time.
REMEMBER = 20_000
MAX_QUEUE = 1_000  # pushes that are queued while a pull runs; a pull covers them anyway, so this only bounds memory
PAGES_BEFORE_MORE = 4  # successful pages after a failed one before the page size grows again


class _Phase(Enum):
    AWAY = "no session"
    SUBSCRIBING = "subscribing"
    PULLING = "pulling"
    IN_STEP = "caught up"
    STOPPED = "stopped"


@dataclass(slots=True)
class _PullSeries:
    """A series of pulls that ends when the follower has caught up."""

    total_before: int | None
    bootstrap: bool
    item_count: int = 0
    has_changes: bool = False


class FollowState:
    """Follows one view of one feed.

    `start` is a stored position or a `StartPoint`. If the service rejects the cursor, `replay` reads the feed again
    from its beginning and skips the versions that the memory knows as delivered; without `replay` following ends.
    `remember` bounds the memory. `page_items` is the page size; it shrinks while pages of that size fail.
    """

    def __init__(
        self,
        node: str,
        start: FollowPosition | StartPoint,
        *,
        page_items: int = PAGE_ITEMS,
        remember: int = REMEMBER,
        replay: bool = True,
    ) -> None:
        self.node = node
        self.counters = FollowCounters()
        self._position = (
            start if isinstance(start, FollowPosition) else BEGINNING if start is StartPoint.BEGINNING else None
        )
        self._stored_marks = (
            {mark[:ID_MARK]: mark for mark in self._position.delivered} if self._position is not None else {}
        )
        self._page_items = page_items
        self._max_items = page_items
        self._good_pages = 0
        self._replay = replay
        self._memory = FollowMemory(remember)
        self._phase = _Phase.AWAY
        self._request_no = 0
        self._queue: list[events.PushReceived] = []
        self._covered_pushes: list[events.PushReceived] = []  # the running pull will cover them; without their payloads
        self._covered_versions: dict[str, str] = {}  # the versions they showed, by item
        self._again = False
        self._bootstrap = isinstance(start, StartPoint)
        self._series: _PullSeries | None = None

    @property
    def position(self) -> FollowPosition | None:
        """The position to store: every change before it was output. None until the first response."""
        return self._position

    @property
    def in_step(self) -> bool:
        """Whether the follower has everything that the service is known to have."""
        return self._phase is _Phase.IN_STEP

    def receive(self, event: Input) -> list[Output]:
        """Applies one input and returns the outputs. The changes among them are in the order of the feed."""
        if self._phase is _Phase.STOPPED:
            return []
        out: list[Output] = []
        match event:
            case events.PushReceived():
                self._push_received(event, out)
            case events.PageReceived() | events.CursorRefused() | events.PullFailed():
                self._pull_answered(event, out)
            case events.Connected():
                self._subscribe(out)
            case events.Disconnected():
                self._phase = _Phase.AWAY
            case events.SubscriptionAccepted(request_no) if self._phase is _Phase.SUBSCRIBING:
                if request_no == self._request_no:
                    self._pull(out)
            case events.NodeGone():
                self._stop(NodeMissingError, "the node was deleted", out)
            case events.GapSuspected() | events.IntegrityDue() if self._phase is _Phase.IN_STEP:
                # Silence may mean that the subscription was lost, so the follower subscribes again (SF-051).
                self._subscribe(out)
            case events.GapSuspected():
                self._again = True
        return out

    def _pull_answered(
        self, event: events.PageReceived | events.CursorRefused | events.PullFailed, out: list[Output]
    ) -> None:
        if self._phase is not _Phase.PULLING or event.request_no != self._request_no:
            return  # a late response to an earlier request
        match event:
            case events.PageReceived():
                self._page_received(event, out)
            case events.PullFailed():
                self._pull_failed(event, out)
            case events.CursorRefused():
                self._cursor_refused(out)

    def _subscribe(self, out: list[Output]) -> None:
        """Subscribes before pulling: later items are pushed, earlier ones are pulled, none falls between (SF-047)."""
        self._phase = _Phase.SUBSCRIBING
        self._request_no += 1
        out.append(events.SubscribeRequest(self._request_no))

    def _stop(self, error: type[FollowError], reason: str, out: list[Output]) -> None:
        self._phase = _Phase.STOPPED
        out.append(events.StopFollowing(error, reason))

    def _pull(self, out: list[Output]) -> None:
        out.append(self._next_pull())

    def _next_pull(self) -> events.PageRequest:
        """Returns the next page request. Its response covers every push received so far (SF-049)."""
        # The pushes become late only when the series has caught up: until then the page may fail or end before them.
        for push in self._queue:
            self._covered_pushes.append(replace(push, items=()))
            self._covered_versions.update((entry.item_id, fingerprint(entry)) for entry in push.items)
        del self._covered_pushes[:-MAX_QUEUE]
        while len(self._covered_versions) > MAX_QUEUE:
            del self._covered_versions[next(iter(self._covered_versions))]
        self._queue.clear()
        self._again = False
        if self._series is None:
            self._series = _PullSeries(self._position.total if self._position else None, self._bootstrap)
        self._phase = _Phase.PULLING
        self._request_no += 1
        self.counters.pulls += 1
        if self._position is None:
            return events.PageRequest(self._request_no, newest=True, max_items=1)
        return events.PageRequest(self._request_no, after=self._position.cursor, max_items=self._max_items)

    def _pull_failed(self, event: events.PullFailed, out: list[Output]) -> None:
        """Requests fewer items, because the page may have been too large for a server on the way.

        An error response shows that the service is reachable, so the smaller request goes out at once. Without a
        response the follower pauses first.
        """
        alone = self._position is None or self._max_items == 1
        if not alone:
            self._max_items //= 2
        self._good_pages = 0
        request = self._next_pull()
        if alone or not event.answered:
            out.append(events.DelayedPageRequest(request, event.reason, event.answered, alone))
        else:
            out.append(request)

    def _ask_for_more(self) -> None:
        """Increases the page size slowly after a failure, because the next large page may fail as well."""
        if self._max_items < self._page_items:
            self._good_pages += 1
            if self._good_pages == PAGES_BEFORE_MORE:
                self._max_items = min(self._page_items, 2 * self._max_items)
                self._good_pages = 0

    def _cursor_refused(self, out: list[Output]) -> None:
        if not self._replay:
            self._stop(PositionRefusedError, "the service no longer knows the stored position", out)
            return
        self._memory.read_again()
        self._position = FollowPosition()
        self._pull_again(self._position, out)

    def _pull_again(self, at: FollowPosition | None, out: list[Output]) -> None:
        """Continues the series from `at`, which is not the end of its last page."""
        if self._series is not None:
            self._series.total_before, self._series.item_count = at.total if at else None, 0
        self._pull(out)

    def _page_received(self, page: events.PageReceived, out: list[Output]) -> None:
        after = self._position.cursor if self._position is not None else ""
        reason = _contradiction(page, after)
        if reason:
            self._pull_failed(events.PullFailed(page.request_no, reason, answered=True), out)
            return
        if self._position is None:
            self._begin_after(page)
            self._settle(out)
            return
        self._ask_for_more()
        self._take_page(self._position, page, out)
        if _is_last(page, after):
            self._settle(out)
        else:
            self._pull(out)

    def _begin_after(self, page: events.PageReceived) -> None:
        """Starts at the end of the feed. The newest item is not delivered, but its push may still arrive (SF-047)."""
        self._position = FollowPosition(page.last or "", page.count)
        self._memory.pass_by(page.first, page.last)
        for entry in page.items:
            self._memory.keep(entry.item_id, fingerprint(entry), push_expected=True)

    def _take_page(self, at: FollowPosition, page: events.PageReceived, out: list[Output]) -> None:
        """Delivers a page and moves behind it. The new position has a total only if the total is certain there: at the
        end of the feed, or if all changes of the series are new or none is."""
        series = self._series
        assert series is not None  # a page is accepted only while pulling, and `_next_pull` starts the series
        remaining = None if page.index is None or page.count is None else page.count - page.index
        all_new = (
            None if remaining is None else _all_new(series.total_before, page.count, series.item_count + remaining)
        )
        series.item_count += len(page.items)
        if remaining is not None and remaining <= len(page.items):
            total = page.count
        elif all_new is None or series.total_before is None:
            total = None
        else:
            total = series.total_before + (series.item_count if all_new else 0)
        if not page.items:
            self._position = replace(at, total=page.count if page.count is not None else at.total)
            return
        cursor = at.cursor if page.last is None else page.last
        fresh = self._deliver(page.items, FollowPosition(cursor, total), all_new, page.count, out, pulled=True)
        self._memory.pass_by(page.first, page.last)
        if fresh and not series.bootstrap and not series.has_changes:
            series.has_changes = True
            self.counters.gaps_found += 1

    def _settle(self, out: list[Output]) -> None:
        """Ends the series: everything up to the last page request is there. Then applies the pushes queued since."""
        for push in self._covered_pushes:
            self._memory.pass_by(push.previous, push.last)
        for item_id, mark in self._covered_versions.items():
            self._memory.push_came(item_id, mark)
        self._covered_pushes.clear()
        self._covered_versions.clear()
        queue, self._queue = self._queue, []
        unsure = [push for push in queue if not self._fits(push, out)]
        # The newest first: a late push shows that the cursor before it was passed, so the push before it is late too.
        unsure = [push for push in reversed(unsure) if not self._is_late(push)]
        if unsure or self._again:
            self._queue = unsure
            self._pull_again(self._position, out)
            return
        if self._series is not None and self._series.has_changes:
            self.counters.gaps_healed += 1
        self._series = None
        self._bootstrap = False
        self._stored_marks.clear()
        self._memory.before.clear()
        if self._position is not None and self._position.delivered:
            self._position = replace(self._position, delivered=())
        self._phase = _Phase.IN_STEP
        out.append(events.CaughtUp())

    def _push_received(self, push: events.PushReceived, out: list[Output]) -> None:
        self.counters.pushes += 1
        if self._phase is not _Phase.IN_STEP:
            self._hold(push)
        elif not self._fits(push, out) and not self._is_late(push):
            self._queue.append(push)
            self._pull(out)

    def _hold(self, push: events.PushReceived) -> None:
        if len(self._queue) < MAX_QUEUE:
            self._queue.append(push)
        else:
            self._again = True

    def _fits(self, push: events.PushReceived, out: list[Output]) -> bool:
        """Applies a push that directly follows L (SF-048). A missing previous cursor means an unset L (A-16)."""
        at = self._position
        assert at is not None  # pushes are applied after a page only, and the first page sets the position
        if not push.last or (push.previous or "") != at.cursor or not all(entry.complete for entry in push.items):
            return False
        all_new = _all_new(at.total, push.total, len(push.items))
        self._deliver(push.items, FollowPosition(push.last, push.total), all_new, push.total, out, pulled=False)
        self._memory.pass_by(push.last)
        return True

    def _is_late(self, push: events.PushReceived) -> bool:
        """Returns whether the push shows only items at or before L (SF-050).

        That is so if its cursor was passed, or if a pull brought the same versions: a pull often overtakes the pushes
        of its items. The second test applies once per version, because a later edit may restore earlier content. If
        that edit hides a gap, the next push or the integrity pull shows it.
        """
        marks = {entry.item_id: fingerprint(entry) for entry in push.items}
        expected = bool(marks) and all(self._memory.expects(item_id, mark) for item_id, mark in marks.items())
        if not expected and (not push.last or push.last not in self._memory.cursors):
            return False
        for item_id, mark in marks.items():
            self._memory.push_came(item_id, mark)
        self._memory.pass_by(push.previous, push.last)
        self.counters.late_pushes += 1
        return True

    def _deliver(
        self,
        entries: Sequence[ReceivedItem],
        then: FollowPosition,
        all_new: bool | None,
        total: int | None,
        out: list[Output],
        *,
        pulled: bool,
    ) -> int:
        """Outputs the entries that were not delivered before, and moves to `then`. Returns the number of changes."""
        at = self._position
        assert at is not None  # both callers have looked at it
        fresh: list[tuple[ReceivedItem, str, ChangeKind]] = []
        for entry in entries:
            mark = fingerprint(entry)
            version = self._memory.get(entry.item_id)
            stored_mark = self._stored_marks.pop(mark[:ID_MARK], None)
            if mark == (version.mark if version is not None else stored_mark):
                self.counters.duplicates += 1
            else:
                fresh.append((entry, mark, _kind(entry, all_new, seen=version is not None or stored_mark is not None)))
            self._memory.keep(entry.item_id, mark, push_expected=pulled)
        # Marks that are left belong to items of later pages: a stored position may be in the middle of a longer page.
        then = replace(then, delivered=tuple(self._stored_marks.values()))
        # Within the page only the old cursor is known, so each change but the last adds its mark to the old position.
        marks = {mark[:ID_MARK]: mark for mark in at.delivered}
        for number, (entry, mark, kind) in enumerate(fresh, 1):
            marks[mark[:ID_MARK]] = mark
            place = then if number == len(fresh) else replace(at, delivered=tuple(marks.values()))
            out.append(
                Change(kind, entry.item_id, entry.payload, self.node, str(place), total, entry.publisher, entry.atom)
            )
        self._position = then
        self.counters.changes += len(fresh)
        return len(fresh)


def _kind(entry: ReceivedItem, all_new: bool | None, *, seen: bool) -> ChangeKind:
    """Returns the kind: by the entry itself, by the memory, by the totals, and last by the entry's own dates."""
    if entry.left:
        return ChangeKind.LEFT
    if entry.deleted:
        return ChangeKind.DELETED
    if seen:
        return ChangeKind.CHANGED
    if all_new is None:
        all_new = not entry.atom.published or entry.atom.published == entry.atom.updated
    return ChangeKind.NEW if all_new else ChangeKind.CHANGED


def _all_new(before: int | None, after: int | None, items: int) -> bool | None:
    """Returns whether all `items` changes are new (True) or none is (False), by the totals; else None."""
    if before is None or after is None or after - before not in (0, items):
        return None
    return after - before == items


def _reaches(page: events.PageReceived) -> bool | None:
    """Returns whether the page reaches the end of the feed by its index and count; None if it lacks them."""
    if page.index is None or page.count is None:
        return None
    return page.index + len(page.items) >= page.count


def _is_last(page: events.PageReceived, after: str) -> bool:
    """Returns whether the page ends the feed. A short page does not: services may shorten pages at will."""
    return not page.items or page.last is None or page.last == after or _reaches(page) is True


def _contradiction(page: events.PageReceived, after: str) -> str:
    """Returns why the page cannot prove anything although it seems to be the last one, or an empty text."""
    if not page.items and not after and page.count:
        return f"the response has no items, but its count is {page.count}"
    if page.items and page.last == after and _reaches(page) is False:
        return "the response ends at the cursor that it was to start from, but its count announces more items"
    return ""
