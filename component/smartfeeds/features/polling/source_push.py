"""Subscriptions of sources at hubs and clouds: use cases over one transaction (WS-091 to WS-141, RC-054 to RC-078).

`push_states` decides. The rows are shared by the poller, the requests to hubs, the callback paths and commands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import polls as polling
from smartfeeds.features.polling import push_rows
from smartfeeds.features.polling import push_states as state
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.extensions import PushOwners
from smartfeeds.features.polling.push_links import MAX_TARGETS, PushOffer, same_address
from smartfeeds.features.polling.push_states import (
    FOLLOWING,
    FORGERIES,
    MISSES,
    OVER,
    PushState,
    RequestResult,
    SourcePush,
    Task,
    is_late,
)
from smartfeeds.features.polling.source import PushKind, Reach, Source
from smartfeeds.features.polling.sources import SPREAD_S
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx

MAX_CHALLENGE_CHARACTERS: Final = 1_024
_NO_CHANCE: Final = 0.5  # where no random number is drawn: the middle of the range
# Storing a push takes a minute at most, but pushes of a source wait for each other.
FORGOTTEN_S: Final = 300
_ORPHANS: Final = 500  # subscriptions that one transaction ends


@dataclass(frozen=True, slots=True)
class PolledOffer:
    """The offer of push in a poll: the time at which it began, and the offer of its document, None without one. `token`
    and `secret` are for a new subscription."""

    began_us: int
    offer: PushOffer | None
    token: str
    secret: str
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class HubCheck:
    """The query of a hub's check of intent or denial (WebSub sections 5.2 and 5.3)."""

    mode: str
    topic: str
    challenge: str = ""
    lease_s: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IncomingPush:
    """The body of a push as it came. `signatures` are the values of X-Hub-Signature, `coding` is the content coding."""

    body: bytes
    signatures: tuple[str, ...] = ()
    charset: str = ""
    coding: str = ""


class Delivery(Enum):
    """The outcome of a push."""

    STORED = "stored"
    """It is read and stored after the response."""
    HINT = "hint"
    """It leads to a poll."""
    FORGED = "forged"
    """Its signature is missing or wrong."""
    ENDED = "ended"
    """The subscription is over."""
    UNKNOWN = "unknown"
    """There is no such subscription, or it is for another feed."""
    BUSY = "busy"
    """Too many pushes wait."""


def follow_poll(
    tx: WriteTx,
    context: Context,
    source: Source,
    polled: PolledOffer,
    times_us: Iterable[int | None],
    *,
    has_news: bool,
    chance: float,
) -> Source:
    """Applies a poll to the subscriptions of its source, and returns the source after that.

    `times_us` are the times of the changes that the poll has found. The caller stores the source.
    """
    now_us = context.now_us
    rows = [push for push in push_rows.pushes_of(tx, source.source_no) if push.state in FOLLOWING]
    late_times = tuple(times_us)
    followed, is_again = False, False
    for row in rows:
        push, is_hinted = state.after_poll(row, polled.began_us, has_news=has_news)
        is_again = is_again or is_hinted
        if polled.offer is not None:
            push = state.offered(push, polled.offer)
        if not push.cursor and polled.cursor:
            push = replace(push, cursor=polled.cursor)
        if any(is_late(push, time_us, now_us) for time_us in late_times):
            push = replace(push, misses=push.misses + 1)
        # A hub that another one replaces is left when the other one is active (`_leave_others`).
        if push.absences > 1 and polled.offer is not None and not polled.offer.targets:
            push = state.left(push, "the feed does not name it any more", now_us)
            source = _no_longer(tx, source, push, now_us, chance)
        elif push.misses >= MISSES:
            push = state.left(push, f"{MISSES} changes were not announced", now_us)
            source = _no_longer(tx, source, push, now_us, chance)
        followed = followed or (push.state in FOLLOWING and push.absences == 0)
        if push != row:
            push_rows.put(tx, push)
    if not followed and polled.offer is not None and polled.offer.targets:
        begin_push(tx, source.source_no, polled.offer, polled, now_us)
    if is_again and source.due_us is not None:
        source = replace(source, due_us=min(source.due_us, now_us + state.AGAIN_US))
    return source


def begin_push(
    tx: WriteTx, source_no: int, offer: PushOffer, polled: PolledOffer, now_us: int, mirror: str = ""
) -> None:
    """Begins a subscription. One that waits for another target ends here: a feed that names other hubs at each poll has
    one that waits, and few that are over."""
    good = frozenset(target.url for target in offer.targets if push_rows.has_active(tx, target.url))
    push = state.new_push(source_no, offer.ranked(good), polled.token, polled.secret, now_us, mirror)
    rows = push_rows.pushes_of(tx, source_no)
    surplus = [row for row in rows if row.state is PushState.ENDED][:-MAX_TARGETS]
    waiting = [row for row in rows if row.state in FOLLOWING and row.state is not PushState.ACTIVE]
    for row in [*surplus, *waiting]:
        push_rows.remove(tx, row.push_no)
    push_rows.put(tx, replace(push, cursor=polled.cursor))


def _no_longer(tx: WriteTx, source: Source, push: SourcePush, now_us: int, chance: float) -> Source:
    """The source after one of its subscriptions has ended: polled as before, unless another one is active."""
    others = (row for row in push_rows.pushes_of(tx, source.source_no) if row.push_no != push.push_no)
    if any(row.state is PushState.ACTIVE and row.pushed_us is not None for row in others):
        return source
    return polling.announced_by(source, PushKind.NONE, now_us, chance)


def _put(tx: WriteTx, push: SourcePush, before: SourcePush, now_us: int, chance: float) -> SourcePush:
    """Stores a subscription. When it stops being active, its source is polled as before."""
    push_rows.put(tx, push)
    if before.state is PushState.ACTIVE and push.state is not PushState.ACTIVE:
        source = source_rows.source(tx, push.source_no)
        if source is not None:
            source_rows.put(tx, _no_longer(tx, source, push, now_us, chance))
    return push


def begin_task(
    tx: WriteTx, context: Context, push_no: int, chance: float, *, sends_secret: bool
) -> tuple[SourcePush, Task] | None:
    """Notes that a subscription does what is due, before any request: a hub may check before it answers.

    `sends_secret`: the request will have the secret. Returns None if it was removed, or is not due any more.
    """
    before = push_rows.push(tx, push_no)
    if before is None or before.due_us is None or before.due_us > context.now_us:
        return None
    if before.mirror and before.state in FOLLOWING and _reach_of_owner(tx, context, before.mirror) is None:
        before = state.left(before, "the mirror was removed", context.now_us)
    push, task = state.at_due(before, context.now_us)
    if (
        push.kind is PushKind.CLOUD
        and task is Task.SUBSCRIBE
        and (source := source_rows.source(tx, push.source_no)) is not None
    ):
        # RC-064: the address of the feed after permanent redirects.
        push = replace(push, target=replace(push.target, topic=source.url))
    if task is Task.SUBSCRIBE:
        push = replace(push, asks_secret=sends_secret)
    if task is Task.REMOVE:
        push_rows.remove(tx, push_no)
        return push, task
    return _put(tx, push, before, context.now_us, chance), task


def end_request(
    tx: WriteTx, context: Context, push_no: int, asked_us: int | None, result: RequestResult, chance: float
) -> SourcePush | None:
    """Stores the answer to a request. Returns the subscription after it, None if it was removed meanwhile."""
    before = push_rows.push(tx, push_no)
    if before is None:
        return None
    push = state.after_request(before, asked_us, result, context.now_us, chance)
    if push.state is PushState.ACTIVE and before.state is not PushState.ACTIVE:
        _leave_others(tx, push, context.now_us, chance)
    return _put(tx, push, before, context.now_us, chance)


def take_check(tx: WriteTx, context: Context, token: str, check: HubCheck, chance: float) -> bool:
    """Takes the check or the denial of a hub. Returns whether it is about a request or subscription of ours (WS-108 to
    WS-118)."""
    before = push_rows.push_of_token(tx, token)
    if before is None or before.kind is not PushKind.HUB or not same_address(check.topic, before.target.topic):
        return False
    now_us = context.now_us
    if check.mode == "denied":
        if before.state is not PushState.ENDED:
            _put(tx, state.denied(before, check.reason, now_us), before, now_us, chance)
        return True
    if not state.awaits_check(before, check.mode) or not 0 < len(check.challenge) <= MAX_CHALLENGE_CHARACTERS:
        return False
    if check.mode == "unsubscribe":
        _put(tx, state.ended(before, now_us), before, now_us, chance)
        return True
    push = state.confirmed(before, check.lease_s, now_us, chance)
    if before.state is not PushState.ACTIVE:
        _leave_others(tx, push, now_us, chance)
    push_rows.put(tx, push)
    return True


def _leave_others(tx: WriteTx, push: SourcePush, now_us: int, chance: float) -> None:
    """Ends the subscriptions that this one replaces, now that it is active (WS-135). Until it has pushed, the source is
    polled as without a hub (WS-133)."""
    for other in push_rows.pushes_of(tx, push.source_no):
        if other.push_no != push.push_no and other.state in FOLLOWING:
            _put(tx, state.left(other, "another subscription has replaced it", now_us), other, now_us, chance)


def _reach_of_owner(tx: ReadTx, context: Context, name: str) -> Reach | None:
    reaches = (owners.reach(tx, name) for owners in context.hooks.of(PushOwners))
    return next((reach for reach in reaches if reach is not None), None)


def reach_of(tx: ReadTx, context: Context, push: SourcePush) -> Reach:
    """The networks in which the hub may be: those of the feed."""
    if push.mirror:
        return _reach_of_owner(tx, context, push.mirror) or Reach.PUBLIC
    source = source_rows.source(tx, push.source_no)
    return Reach.PUBLIC if source is None else source.reach


def find_push(tx: ReadTx, _context: Context, token: str) -> SourcePush | None:
    """The subscription of a callback path."""
    return push_rows.push_of_token(tx, token)


def take_push(tx: WriteTx, context: Context, push_no: int, chance: float, *, has_content: bool) -> SourcePush | None:
    """Notes that a push or a notification came whose signature is right or not wanted, before the response.

    Content is marked as pending until it is stored: what a crash loses is polled later. Otherwise the
    source becomes due. Returns None if the subscription is over.
    """
    push = push_rows.push(tx, push_no)
    if push is None or push.state in OVER:
        return None
    now_us = context.now_us
    push = state.pushed(push, now_us)
    push = replace(push, pending_us=now_us) if has_content else state.hinted(push, now_us)
    push_rows.put(tx, push)
    source = source_rows.source(tx, push.source_no)
    if source is not None:
        after = polling.announced_by(source, push.kind, now_us, chance)
        after = after if has_content else polling.hinted_source(after, now_us)
        if after != source:
            source_rows.put(tx, after)
    return push


def take_hint(tx: WriteTx, context: Context, push_no: int) -> None:
    """Makes the source due after content that cannot be used: nobody has signed it, or it cannot be read (WS-139)."""
    push = push_rows.push(tx, push_no)
    source = None if push is None else source_rows.source(tx, push.source_no)
    if push is None or source is None or push.state in OVER:
        return
    push_rows.put(tx, replace(state.hinted(push, context.now_us), pending_us=None))
    source_rows.put(tx, polling.hinted_source(source, context.now_us))


def take_forgery(tx: WriteTx, context: Context, push_no: int, *, token: str, secret: str, chance: float) -> int:
    """Counts a push without a right signature. Ten in a row end the subscription, and begin a new one (WS-124).

    Returns their number.
    """
    push = push_rows.push(tx, push_no)
    if push is None or push.state in OVER:
        return 0
    push = state.forged(push)
    if push.forgeries < FORGERIES:
        push_rows.put(tx, push)
    else:
        now_us = context.now_us
        left = state.left(push, f"{FORGERIES} pushes in a row had no right signature", now_us)
        _put(tx, left, push, now_us, chance)
        offer = PushOffer((push.target, *push.others))
        push_rows.put(tx, state.new_push(push.source_no, offer, token, secret, now_us, push.mirror))
        if (source := source_rows.source(tx, push.source_no)) is not None:
            source_rows.put(tx, polling.hinted_source(source, now_us))
    return push.forgeries


def settle_push(tx: WriteTx, _context: Context, push_no: int, received_us: int | None, cursor: str) -> None:
    """Notes that a push was stored; `cursor` is the last one of its document, "" if it has none."""
    push = push_rows.push(tx, push_no)
    if push is None:
        return
    is_last = push.pending_us is not None and received_us is not None and push.pending_us <= received_us
    push_rows.put(tx, replace(push, pending_us=None if is_last else push.pending_us, cursor=cursor or push.cursor))


def begin_pushes(tx: WriteTx, context: Context, after_no: int, limit: int) -> int | None:
    """Polls after a start what was received and not stored, and registers at clouds again, because the address of this
    service may have changed (RC-066). Reads some subscriptions, and returns the number of the last one, None at the
    end."""
    rows = push_rows.pushes(tx, after_no, limit)
    for push in rows:
        if push.kind is PushKind.CLOUD and push.state is PushState.ACTIVE:
            push_rows.put(tx, replace(push, due_us=context.now_us - 1))  # overdue, and so spread
        if push.pending_us is not None:
            take_hint(tx, context, push.push_no)
    return rows[-1].push_no if len(rows) == limit else None


def spread_pushes(tx: WriteTx, context: Context) -> None:
    """Spreads what became due while the service did not run (WS-137)."""
    push_rows.spread_overdue(tx, context.now_us, SPREAD_S)


def find_forgotten(tx: ReadTx, context: Context, after_no: int, limit: int) -> tuple[list[int], int | None]:
    """Looks at some subscriptions. Returns the numbers of those with a push that was received long ago and not stored:
    the process that had it in memory has ended. Also returns the number of the last subscription, None at the end."""
    rows = push_rows.pushes(tx, after_no, limit)
    before_us = context.now_us - FORGOTTEN_S * US_PER_S
    forgotten = [push.push_no for push in rows if push.pending_us is not None and push.pending_us < before_us]
    return forgotten, rows[-1].push_no if len(rows) == limit else None


def poll_forgotten(tx: WriteTx, context: Context, numbers: Sequence[int]) -> None:
    """Makes the sources of these subscriptions due."""
    for push_no in numbers:
        take_hint(tx, context, push_no)


def has_orphans(tx: ReadTx, _context: Context) -> bool:
    """Whether there are subscriptions of sources that were removed, paused or stopped."""
    return bool(push_rows.without_source(tx, 1))


def leave_orphans(tx: WriteTx, context: Context) -> int:
    """Ends the subscriptions of sources that were removed, paused or stopped (WS-136). Returns their number."""
    rows = push_rows.without_source(tx, _ORPHANS)
    for push in rows:
        left = state.left(push, "the source was removed or paused", context.now_us)
        _put(tx, left, push, context.now_us, _NO_CHANCE)
    return len(rows)


def renew_push(tx: WriteTx, context: Context, source: Source) -> SourcePush:
    """Makes the subscription of a source due. Raises ConfigError if it has none."""
    push = newest_push(tx, context, source)
    if push is None:
        raise ConfigError(
            f"the source {source.first_url} has no hub or cloud; smartfeeds source check shows what the feed names"
        )
    return push_rows.put(tx, state.renewed(push, context.now_us))


def drop_pushes(tx: WriteTx, context: Context, source: Source) -> None:
    """Ends the subscriptions of a source."""
    for push in push_rows.pushes_of(tx, source.source_no):
        if push.state in OVER:
            continue
        _put(
            tx,
            state.left(push, "push is switched off for the source", context.now_us),
            push,
            context.now_us,
            _NO_CHANCE,
        )


def newest_push(tx: ReadTx, _context: Context, source: Source) -> SourcePush | None:
    """The subscription that a source has now: the active one, else the newest that it wants."""
    rows = [push for push in push_rows.pushes_of(tx, source.source_no) if push.state in FOLLOWING]
    active = [push for push in rows if push.state is PushState.ACTIVE]
    return next(reversed(active or rows), None)
