"""The follower as a state machine, without I/O: what comes in, what is to be done (SF-045 to SF-051; xep-map 3.3).

`FollowState.receive` takes one input and returns the outputs in order. Its position L is the cursor of the newest
item that it has; a push is worked on only when its previous cursor is L. Everything else is decided by a pull since
L, which is always safe. Cursors are compared as strings and never read (SF-027).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from smartfeeds.client.change import Change, ChangeKind, Entry
from smartfeeds.client.events import (
    PAGE_ITEMS,
    CaughtUp,
    Connected,
    Counters,
    CursorRefused,
    Disconnected,
    GapSuspected,
    Input,
    IntegrityDue,
    Later,
    NodeGone,
    Output,
    PageReceived,
    Pull,
    PullFailed,
    PushReceived,
    Start,
    Stop,
    StopReason,
    Subscribe,
    Subscribed,
)
from smartfeeds.client.memory import ID_MARK, Memory, fingerprint
from smartfeeds.client.position import BEGINNING, Position

REMEMBER = 20_000  # item versions, so that what comes again is known
HELD = 1_000  # pushes kept while a pull runs
PAGES_BEFORE_MORE = 4  # that came, after one that did not, before more items are asked for again


class _Phase(Enum):
    AWAY = "no session"
    SUBSCRIBING = "subscribing"
    PULLING = "pulling"
    IN_STEP = "every push fits"
    STOPPED = "stopped"


@dataclass(slots=True)
class _Series:
    """One run of pulls until caught up."""

    total_before: int | None
    bootstrap: bool
    taken: int = 0
    brought: bool = False


class FollowState:
    """Follows one view of one feed.

    `start` is a stored position, or where to begin without one. With `replay` a refused cursor makes the feed be read
    from its beginning, without what is remembered as handed over; else it is the end. `remember` bounds the memory.
    `page_items` is how many items are asked for at once; where such a page cannot be had, fewer are.
    """

    def __init__(
        self,
        node: str,
        start: Position | Start,
        *,
        page_items: int = PAGE_ITEMS,
        remember: int = REMEMBER,
        replay: bool = True,
    ) -> None:
        self.node = node
        self.counters = Counters()
        self._at = start if isinstance(start, Position) else BEGINNING if start is Start.BEGINNING else None
        self._resumed = {mark[:ID_MARK]: mark for mark in self._at.handed} if self._at is not None else {}
        self._page_items = page_items
        self._max_items = page_items
        self._good_pages = 0
        self._replay = replay
        self._memory = Memory(remember)
        self._phase = _Phase.AWAY
        self._request_no = 0
        self._held: list[PushReceived] = []
        self._asked: list[PushReceived] = []  # the running pull will cover them; without their payloads
        self._shown: dict[str, str] = {}  # the versions they showed, by item
        self._again = False
        self._bootstrap = isinstance(start, Start)
        self._series: _Series | None = None

    @property
    def position(self) -> Position | None:
        """What to store: everything before it was put out as a change. None until the first answer is there."""
        return self._at

    @property
    def in_step(self) -> bool:
        """Whether everything the service is known to have is there."""
        return self._phase is _Phase.IN_STEP

    def receive(self, event: Input) -> list[Output]:
        """Takes one input. The changes among the outputs are in the order of the feed."""
        if self._phase is _Phase.STOPPED:
            return []
        out: list[Output] = []
        _HANDLERS[type(event)](self, event, out)
        return out

    def _connected(self, _event: Connected, out: list[Output]) -> None:
        self._subscribe(out)

    def _disconnected(self, _event: Disconnected, _out: list[Output]) -> None:
        self._phase = _Phase.AWAY

    def _subscribe(self, out: list[Output]) -> None:
        """Subscribing comes first: what is published from then on is pushed, what was before is pulled (SF-047)."""
        self._phase = _Phase.SUBSCRIBING
        self._request_no += 1
        out.append(Subscribe(self._request_no))

    def _subscribed(self, event: Subscribed, out: list[Output]) -> None:
        if self._phase is _Phase.SUBSCRIBING and event.request_no == self._request_no:
            self._pull(out)

    def _integrity_due(self, _event: IntegrityDue, out: list[Output]) -> None:
        """Silence may mean that the subscription was lost, so it is asked for again (SF-051)."""
        if self._phase is _Phase.IN_STEP:
            self._subscribe(out)

    def _gap_suspected(self, _event: GapSuspected, out: list[Output]) -> None:
        if self._phase is _Phase.IN_STEP:
            self._subscribe(out)
        else:
            self._again = True

    def _node_gone(self, _event: NodeGone, out: list[Output]) -> None:
        self._stop(StopReason.NODE_GONE, out)

    def _stop(self, reason: StopReason, out: list[Output]) -> None:
        self._phase = _Phase.STOPPED
        out.append(Stop(reason))

    def _pull(self, out: list[Output]) -> None:
        out.append(self._next_pull())

    def _next_pull(self) -> Pull:
        """Every push received so far is covered by the answer to this request (SF-049)."""
        for push in self._held:
            self._asked.append(replace(push, items=()))
            self._shown.update((entry.item_id, fingerprint(entry)) for entry in push.items)
        del self._asked[:-HELD]
        while len(self._shown) > HELD:
            del self._shown[next(iter(self._shown))]
        self._held.clear()
        self._again = False
        if self._series is None:
            self._series = _Series(self._at.total if self._at else None, self._bootstrap)
        self._phase = _Phase.PULLING
        self._request_no += 1
        self.counters.pulls += 1
        if self._at is None:
            return Pull(self._request_no, newest=True, max_items=1)
        return Pull(self._request_no, after=self._at.cursor, max_items=self._max_items)

    def _pull_failed(self, event: PullFailed, out: list[Output]) -> None:
        """A page may have been too long for what is between: fewer items may come through.

        They are asked for at once where an answer shows that the service is there, so it is a pause or half as many.
        """
        if self._phase is not _Phase.PULLING or event.request_no != self._request_no:
            return
        alone = self._at is None or self._max_items == 1
        if not alone:
            self._max_items //= 2
        self._good_pages = 0
        request = self._next_pull()
        out.append(Later(request, event.reason, event.answered, alone) if alone or not event.answered else request)

    def _ask_for_more(self) -> None:
        """What was too much may be so again soon: the way back goes in steps."""
        if self._max_items < self._page_items:
            self._good_pages += 1
            if self._good_pages == PAGES_BEFORE_MORE:
                self._max_items = min(self._page_items, 2 * self._max_items)
                self._good_pages = 0

    def _cursor_refused(self, event: CursorRefused, out: list[Output]) -> None:
        if self._phase is not _Phase.PULLING or event.request_no != self._request_no:
            return
        if not self._replay:
            self._stop(StopReason.POSITION_REFUSED, out)
            return
        self._memory.read_again()
        self._at = Position()
        self._pull_again(self._at, out)

    def _pull_again(self, at: Position | None, out: list[Output]) -> None:
        """Goes on with the running series, from another place than the end of its last page."""
        if self._series is not None:
            self._series.total_before, self._series.taken = at.total if at else None, 0
        self._pull(out)

    def _page_received(self, page: PageReceived, out: list[Output]) -> None:
        if self._phase is not _Phase.PULLING or page.request_no != self._request_no:
            return
        asked_after = self._at.cursor if self._at is not None else ""
        wrong = _contradiction(page, asked_after)
        if wrong:
            self._pull_failed(PullFailed(page.request_no, wrong, answered=True), out)
            return
        if self._at is None:
            self._begin_after(page)
            self._settle(out)
            return
        self._ask_for_more()
        self._take_page(self._at, page, out)
        if _is_last(page, asked_after):
            self._settle(out)
        else:
            self._pull(out)

    def _begin_after(self, page: PageReceived) -> None:
        """From now on: the newest item is not handed over, but its push may still come (SF-047)."""
        self._at = Position(page.last or "", page.count)
        self._memory.pass_by(page.first, page.last)
        for entry in page.items:
            self._memory.keep(entry.item_id, fingerprint(entry), push_expected=True)

    def _take_page(self, at: Position, page: PageReceived, out: list[Output]) -> None:
        series = self._series
        assert series is not None
        left = None if page.index is None or page.count is None else page.count - page.index
        grown = None if left is None else _grown(series.total_before, page.count, series.taken + left)
        series.taken += len(page.items)
        if left is not None and left <= len(page.items):
            total = page.count
        elif grown is None or series.total_before is None:
            total = None
        else:
            total = series.total_before + (series.taken if grown else 0)
        if not page.items:
            self._at = replace(at, total=page.count if page.count is not None else at.total)
            return
        cursor = at.cursor if page.last is None else page.last
        fresh = self._hand_over(page.items, Position(cursor, total), grown, page.count, out, pulled=True)
        self._memory.pass_by(page.first, page.last)
        if fresh and not series.bootstrap and not series.brought:
            series.brought = True
            self.counters.gaps_found += 1

    def _settle(self, out: list[Output]) -> None:
        """Caught up with everything that was there when the last page was asked for; then what came since."""
        for push in self._asked:
            self._memory.pass_by(push.previous, push.last)
        for item_id, mark in self._shown.items():
            self._memory.push_came(item_id, mark)
        self._asked.clear()
        self._shown.clear()
        held, self._held = self._held, []
        unsure = [push for push in held if not self._fits(push, out)]
        unsure = [push for push in reversed(unsure) if not self._is_late(push)]
        if unsure or self._again:
            self._held = unsure
            self._pull_again(self._at, out)
            return
        if self._series is not None and self._series.brought:
            self.counters.gaps_healed += 1
        self._series = None
        self._bootstrap = False
        self._resumed.clear()
        self._memory.before.clear()
        if self._at is not None and self._at.handed:
            self._at = replace(self._at, handed=())
        self._phase = _Phase.IN_STEP
        out.append(CaughtUp())

    def _push_received(self, push: PushReceived, out: list[Output]) -> None:
        self.counters.pushes += 1
        if self._phase is not _Phase.IN_STEP:
            self._hold(push)
        elif not self._fits(push, out) and not self._is_late(push):
            self._held.append(push)
            self._pull(out)

    def _hold(self, push: PushReceived) -> None:
        if len(self._held) < HELD:
            self._held.append(push)
        else:
            self._again = True

    def _fits(self, push: PushReceived, out: list[Output]) -> bool:
        """Takes the push that follows L directly (SF-048); a missing previous cursor is an unset L (A-16)."""
        at = self._at
        assert at is not None
        if not push.last or (push.previous or "") != at.cursor or not all(entry.complete for entry in push.items):
            return False
        grown = _grown(at.total, push.total, len(push.items))
        self._hand_over(push.items, Position(push.last, push.total), grown, push.total, out, pulled=False)
        self._memory.pass_by(push.last)
        return True

    def _is_late(self, push: PushReceived) -> bool:
        """Whether the push shows only what is behind us (SF-050): its cursor was passed, or a pull brought it before.

        A pull often overtakes the pushes of what it brings, hence the second test. It counts once for each version,
        because a later edit may bring former content back; should just that hide a gap, the next push shows it, or the
        integrity pull does.
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

    def _hand_over(
        self,
        entries: Sequence[Entry],
        then: Position,
        grown: bool | None,
        total: int | None,
        out: list[Output],
        *,
        pulled: bool,
    ) -> int:
        """Puts out what was not handed over before, and moves to `then`. Returns how many changes that were."""
        at = self._at
        assert at is not None
        fresh: list[tuple[Entry, str, ChangeKind]] = []
        for entry in entries:
            mark = fingerprint(entry)
            known = self._memory.get(entry.item_id)
            resumed = self._resumed.pop(mark[:ID_MARK], None)
            if mark == (known.mark if known is not None else resumed):
                self.counters.duplicates += 1
            else:
                fresh.append((entry, mark, _kind(entry, grown, seen=known is not None or resumed is not None)))
            self._memory.keep(entry.item_id, mark, push_expected=pulled)
        then = replace(then, handed=tuple(self._resumed.values()))
        handed = {mark[:ID_MARK]: mark for mark in at.handed}
        for number, (entry, mark, kind) in enumerate(fresh, 1):
            handed[mark[:ID_MARK]] = mark
            place = then if number == len(fresh) else replace(at, handed=tuple(handed.values()))
            out.append(
                Change(kind, entry.item_id, entry.payload, self.node, str(place), total, entry.publisher, entry.atom)
            )
        self._at = then
        self.counters.changes += len(fresh)
        return len(fresh)


def _kind(entry: Entry, grown: bool | None, *, seen: bool) -> ChangeKind:
    """Left, deleted, seen before, else by the totals, else by what the entry says of its own dates."""
    if entry.left:
        return ChangeKind.LEFT
    if entry.deleted:
        return ChangeKind.DELETED
    if seen:
        return ChangeKind.CHANGED
    if grown is None:
        grown = not entry.atom.published or entry.atom.published == entry.atom.updated
    return ChangeKind.NEW if grown else ChangeKind.CHANGED


def _grown(before: int | None, after: int | None, items: int) -> bool | None:
    """Whether `items` changes are all new (True) or none is (False), by the totals around them; else None."""
    if before is None or after is None or after - before not in (0, items):
        return None
    return after - before == items


def _reaches(page: PageReceived) -> bool | None:
    """Whether the page reaches the end of the feed by its own numbers; None where it has none."""
    if page.index is None or page.count is None:
        return None
    return page.index + len(page.items) >= page.count


def _is_last(page: PageReceived, asked_after: str) -> bool:
    """Whether the page ends the feed: a short page does not show it, because a service may shorten pages."""
    return not page.items or page.last is None or page.last == asked_after or _reaches(page) is True


def _contradiction(page: PageReceived, asked_after: str) -> str:
    """Why the page proves nothing, though it seems to be the last one; empty where nothing is wrong with it."""
    if not page.items and not asked_after and page.count:
        return f"the answer has no items, and says that there are {page.count}"
    if page.items and page.last == asked_after and _reaches(page) is False:
        return "the answer ends where it should begin, and says that there are more items"
    return ""


_HANDLERS: dict[type, Callable[[FollowState, Any, list[Output]], None]] = {
    Connected: FollowState._connected,
    Disconnected: FollowState._disconnected,
    Subscribed: FollowState._subscribed,
    PushReceived: FollowState._push_received,
    PageReceived: FollowState._page_received,
    CursorRefused: FollowState._cursor_refused,
    PullFailed: FollowState._pull_failed,
    GapSuspected: FollowState._gap_suspected,
    IntegrityDue: FollowState._integrity_due,
    NodeGone: FollowState._node_gone,
}
