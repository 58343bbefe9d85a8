"""Polling: when a source is requested, and what an answer makes of it (SRC-008, SRC-021 to SRC-047, SRC-065).

`after_answer` is the whole state machine: a source and an answer at a time make the next source. All functions are
pure. Times are microseconds since the Unix epoch; `chance` is a random number in 0..1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S, Backoff
from smartfeeds.core.times import EPOCH, US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.features.polling.source import (
    MAX_URL_BYTES,
    NO_HINTS,
    DocumentHints,
    HostPause,
    Moved,
    PushKind,
    Source,
    SourceProgress,
    SourceState,
)

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400
DAY_US: Final = DAY_S * US_PER_S

# An hour until a feed has shown its rhythm, and never more often by its rhythm alone (SRC-021).
DEFAULT_EVERY_S: Final = HOUR_S
# The shortest interval that a hint allows (SRC-024).
LEAST_HINTED_S: Final = 10 * MINUTE_S
LONGEST_EVERY_S: Final = DAY_S
RHYTHM_S: Final = 14 * DAY_S
RHYTHM_ITEMS: Final = 20  # times that the row of a source has; each poll writes them
UNCONDITIONAL_EVERY_S: Final = 7 * DAY_S  # SRC-008, see `validators_at`
# An operator's wish is served at most this often (SRC-030).
POLL_NOW_S: Final = MINUTE_S
REASON_CHARACTERS: Final = 300
# Both bound the row of a source, which each poll writes. An archive that is forgotten is read once more.
_FORMER_URLS: Final = 5
_ARCHIVES: Final = 100
# The interval is halved at the second gap in a row, from a day to less than ten minutes at most.
_GAPS: Final = 2
_MOST_HALVINGS: Final = 8
# The random part of a pause (SRC-027).
_SPREAD: Final = 0.1
_LONGEST_SPREAD_S: Final = 30 * MINUTE_S
_WEEK_S: Final = 7 * DAY_S  # between the last tries of a stopped source (SRC-039)
_TOO_SLOW: Final = (
    "items may be missing: the feed changes faster than it is polled; set a shorter interval with --every"
)
UNLISTED: Final = "its subscription list does not name it any more"
# The shortest and the longest interval of a source that is pushed (SRC-031).
_BACKUP_S: Final = {PushKind.CLOUD: (6 * HOUR_S, DAY_S), PushKind.HUB: (DAY_S, DAY_S)}


class AnswerKind(Enum):
    """The result of a poll, as a label of metrics and the key of the rules below."""

    READ = "read"
    UNCHANGED = "unchanged"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    FAILED = "failed"
    GONE = "gone"
    BUSY = "busy"


GOOD: Final = frozenset({AnswerKind.READ, AnswerKind.UNCHANGED})
# How the reason of a source begins whose document has faults that were repaired.
REPAIRED: Final = "read with repairs: "


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """The result of a request. `reason` explains to people why a response is not good, or the shortcomings of a good
    one.

    `validators` and `fresh_s` are those of a good response. `moved_to` is the target of permanent redirects that may
    be stored, "" if there was none. `hints`, `times_us`, `title` and `site` are those of a document that was
    read. `paused_until_us` is the end of the pause of a busy host. `is_gap`: the document has no item of the one
    before. `archives` are documents that were read beside it. `is_page`: it was a web page.
    """

    kind: AnswerKind
    reason: str = ""
    validators: Validators = NO_VALIDATORS
    fresh_s: int | None = None
    moved_to: str = ""
    hints: DocumentHints = NO_HINTS
    times_us: tuple[int, ...] = ()
    title: str = ""
    described: Mapping[str, str] = field(default_factory=dict)
    paused_until_us: int = 0
    is_gap: bool = False
    archives: tuple[str, ...] = ()
    is_page: bool = False
    site: str = ""


@dataclass(frozen=True, slots=True)
class _Slowing:
    """The effect of a kind of failures: the first pause, and the times after which the operator is informed or the
    source stops."""

    first_s: int
    said_after_s: int = 0
    said_at: int = 1
    stopped_after_s: int | None = None


_SLOWINGS: Final = {
    AnswerKind.REFUSED: _Slowing(HOUR_S, said_after_s=3 * DAY_S, stopped_after_s=30 * DAY_S),
    AnswerKind.FAILED: _Slowing(30 * MINUTE_S, said_after_s=DAY_S),
    AnswerKind.UNREADABLE: _Slowing(30 * MINUTE_S, said_at=3),
}


def may_store_redirect(url: str, target: str, *, is_allowed: bool) -> bool:
    """Whether the target of a permanent redirect may replace an address (SRC-035). `is_allowed`: the target is on the
    open Internet, or in a network that the operator has allowed for this source."""
    is_weaker = url.startswith("https:") and not target.startswith("https:")
    has_login = "@" in urlsplit(target).netloc
    return is_allowed and not is_weaker and not has_login and len(target.encode()) <= MAX_URL_BYTES


def validators_at(source: Source, now_us: int) -> Validators:
    """The validators of the next request: none once a week, because some servers answer 304 for ever (SRC-008)."""
    full_us = source.progress.full_us
    if full_us is None or now_us - full_us >= UNCONDITIONAL_EVERY_S * US_PER_S:
        return NO_VALIDATORS
    return source.progress.validators


def after_answer(source: Source, answer: PollAnswer, now_us: int, chance: float) -> Source:
    """The source after an answer."""
    source = replace(source, polled_us=now_us)
    if answer.kind in GOOD:
        return _after_good(source, answer, now_us, chance)
    if answer.kind is AnswerKind.BUSY:
        return deferred(source, answer.paused_until_us, answer.reason, now_us, chance)
    if answer.kind is AnswerKind.GONE:
        return _after_gone(source, answer, now_us, chance)
    return _after_failure(source, answer, now_us, chance)


def _after_good(source: Source, answer: PollAnswer, now_us: int, chance: float) -> Source:
    """Returns the source after a good answer, which ends every slowing (SRC-046)."""
    progress = replace(source.progress, validators=answer.validators, failures=0, failing_us=None, said=False)
    progress = replace(progress, gone_us=None)
    if answer.kind is AnswerKind.READ:
        progress = replace(
            progress,
            hints=answer.hints,
            fresh_s=answer.fresh_s,
            times_us=tuple(sorted(answer.times_us, reverse=True)[:RHYTHM_ITEMS]),
            full_us=now_us,
            title=answer.title,
            site=answer.site,
            described=answer.described,
            is_page=answer.is_page,
            archives=tuple(dict.fromkeys((*answer.archives, *progress.archives)))[:_ARCHIVES],
        )
    elif answer.fresh_s is not None:
        progress = replace(progress, fresh_s=answer.fresh_s)
    progress, is_too_slow = _after_gap(source, progress, answer, now_us)
    source = _redirected(replace(source, progress=progress, good_us=now_us), answer.moved_to, now_us)
    reason = _TOO_SLOW if is_too_slow else answer.reason
    if answer.kind is AnswerKind.UNCHANGED and source.reason.startswith(REPAIRED):
        reason = source.reason
    source = _in_state(source, SourceState.POLLED, reason, now_us)
    return replace(source, due_us=next_poll_us(source, now_us, chance))


def _after_gap(
    source: Source, progress: SourceProgress, answer: PollAnswer, now_us: int
) -> tuple[SourceProgress, bool]:
    """Halves the interval at gaps in a row, because items were missed between two polls (SRC-065). The second result:
    the interval is the shortest one already.

    A poll without anything new takes one halving back.
    """
    if answer.kind is AnswerKind.UNCHANGED:
        return replace(progress, gaps=0, halvings=max(0, progress.halvings - 1)), False
    gaps = progress.gaps + 1 if answer.is_gap else 0
    halvings = min(progress.halvings + (gaps >= _GAPS), _MOST_HALVINGS)
    shorter = replace(progress, gaps=gaps, halvings=halvings)
    intervals = [interval_s(replace(source, progress=variant), now_us) for variant in (progress, shorter)]
    return shorter, gaps >= _GAPS and intervals[0] == intervals[1]


def _redirected(source: Source, target: str, now_us: int) -> Source:
    """Replaces the address by the target of permanent redirects if two answers a day apart name it: one may be a
    mistake (SRC-034)."""
    progress = source.progress
    if not target or target == source.url:
        return replace(source, progress=replace(progress, moved=None))
    if progress.moved is None or progress.moved.url != target:
        return replace(source, progress=replace(progress, moved=Moved(target, now_us)))
    if now_us - progress.moved.since_us < DAY_US:
        return source
    former = (source.url, *progress.former_urls)[:_FORMER_URLS]
    return replace(source, url=target, progress=replace(progress, moved=None, former_urls=former))


def _after_gone(source: Source, answer: PollAnswer, now_us: int, chance: float) -> Source:
    """Stops the source at the second 410, a day after the first: one may be a mistake (SRC-038)."""
    gone_us = source.progress.gone_us
    if gone_us is None:
        source = replace(source, progress=replace(source.progress, gone_us=now_us))
        due_us = now_us + int(DAY_US * (1 + chance * _SPREAD))
        return replace(_in_state(source, SourceState.SLOWED, answer.reason, now_us), due_us=due_us)
    if now_us - gone_us < DAY_US:
        return replace(source, due_us=gone_us + int(DAY_US * (1 + chance * _SPREAD)))
    source = replace(source, progress=replace(source.progress, said=True))
    return replace(_in_state(source, SourceState.STOPPED, answer.reason, now_us), due_us=None)


def _after_failure(source: Source, answer: PollAnswer, now_us: int, chance: float) -> Source:
    """Slows the source after a failure: pauses double up to a day, then the operator is informed, and at last the
    source stops (SRC-039, SRC-040, SRC-044)."""
    rule, progress = _SLOWINGS[answer.kind], source.progress
    since_us = now_us if progress.failing_us is None else progress.failing_us
    failures, failing_s = progress.failures + 1, (now_us - since_us) // US_PER_S
    said = progress.said or (failures >= rule.said_at and failing_s >= rule.said_after_s)
    source = replace(source, progress=replace(progress, failures=failures, failing_us=since_us, said=said))
    # A chance of 1 is the doubled pause itself; the spread of all polls comes on top of it.
    pause_s = Backoff(rule.first_s, LONGEST_EVERY_S).pause_s(failures, 1.0)
    state = SourceState.SLOWED
    if rule.stopped_after_s is not None and failing_s >= rule.stopped_after_s:
        state, pause_s = SourceState.STOPPED, _WEEK_S
    due_us = now_us + int(_spread_s(pause_s, chance) * US_PER_S)
    return replace(_in_state(source, state, answer.reason, now_us), due_us=due_us)


def deferred(source: Source, until_us: int, reason: str, now_us: int, chance: float) -> Source:
    """The source behind the pause of its host. No failure is counted (SRC-041)."""
    late_us = int(min(_SPREAD * (until_us - now_us), _LONGEST_SPREAD_S * US_PER_S) * chance)
    return replace(_in_state(source, SourceState.WAITING, reason, now_us), due_us=max(until_us, now_us) + late_us)


def _in_state(source: Source, state: SourceState, reason: str, now_us: int) -> Source:
    reason = reason[:REASON_CHARACTERS]
    since_us = source.since_us if (state, reason) == (source.state, source.reason) else now_us
    return replace(source, state=state, reason=reason, since_us=since_us)


def interval_s(source: Source, now_us: int) -> float:
    """The seconds between two polls before chance and skipped hours.

    A hint is the least interval: it makes the interval longer, and lets a busy feed have a shorter one (SRC-024,
    SRC-025). Above it, half the mean distance of the newest items decides (SRC-021).
    """
    hint_s, progress = hinted_s(source.progress), source.progress
    backup = _BACKUP_S.get(progress.push)
    least_s: float
    if source.settings.every_s is not None:
        interval = float(max(source.settings.every_s, hint_s or 0))
    else:
        least_s = DEFAULT_EVERY_S if hint_s is None else hint_s
        rhythm_s = _rhythm_s(progress.times_us, now_us)
        interval = min(max(least_s, rhythm_s / 2 / 2**progress.halvings), LONGEST_EVERY_S)
    return interval if backup is None else min(max(interval, backup[0]), backup[1])


def hinted_s(progress: SourceProgress) -> int | None:
    """The longest hint of the last document and response, in seconds between ten minutes and a day; None without."""
    hints = progress.hints
    named = [seconds for seconds in (progress.fresh_s, hints.ttl_s, hints.period_s) if seconds is not None]
    return min(max(LEAST_HINTED_S, *named), LONGEST_EVERY_S) if named else None


def _rhythm_s(times_us: tuple[int, ...] | None, now_us: int) -> float:
    """The mean distance of the items of the last 14 days, in seconds; 0 if the feed has no dates.

    If the oldest known item is younger than 14 days, the distance is measured over the known items only.
    """
    if not times_us:
        return 0.0
    since_us = now_us - RHYTHM_S * US_PER_S
    recent = sum(since_us <= time_us <= now_us for time_us in times_us)
    span_s = min(RHYTHM_S, (now_us - times_us[-1]) / US_PER_S)
    return span_s / max(1, recent)


def next_poll_us(source: Source, now_us: int, chance: float) -> int:
    """The time of the next poll after a good answer, with chance (SRC-027) and without skipped hours (SRC-026)."""
    hint_s = hinted_s(source.progress) or 0
    # Never before the time that the server named.
    pause_s = max(_spread_s(interval_s(source, now_us), chance), hint_s * (1 + chance * _SPREAD))
    due_us = now_us + int(pause_s * US_PER_S)
    return due_us if source.settings.ignore_skips else allowed_us(due_us, source.progress.hints)


def _spread_s(pause_s: float, chance: float) -> float:
    return pause_s + (2 * chance - 1) * min(_SPREAD * pause_s, _LONGEST_SPREAD_S)


def allowed_us(due_us: int, hints: DocumentHints) -> int:
    """The first time from `due_us` on, in steps of an hour and at most a day later, that the feed does not skip."""
    hours = frozenset(hints.skip_hours) if len(set(hints.skip_hours)) < 24 else frozenset()
    days = frozenset(hints.skip_days) if len(set(hints.skip_days)) < 7 else frozenset()
    for step in range(24):
        moment = EPOCH + timedelta(microseconds=due_us, hours=step)
        if moment.hour not in hours and moment.weekday() not in days:
            return due_us + step * HOUR_S * US_PER_S
    return due_us + DAY_US if hours or days else due_us


def paused(source: Source, by: str, now_us: int) -> Source:
    """The source, paused by a person."""
    return replace(_in_state(source, SourceState.PAUSED, f"paused by {by}", now_us), due_us=None)


def unlisted(source: Source, now_us: int) -> Source:
    """The source, paused because its list does not name it any more."""
    return replace(_in_state(source, SourceState.PAUSED, UNLISTED, now_us), due_us=None)


def resumed(source: Source, now_us: int) -> Source:
    """The source, due now, whatever ended its polls."""
    return replace(_in_state(source, SourceState.POLLED, "", now_us), due_us=now_us)


def announced_by(source: Source, push: PushKind, now_us: int, chance: float) -> Source:
    """The source whose changes are announced in this way from now on. Without any, it is polled again as before."""
    if source.progress.push is push:
        return source
    source = replace(source, progress=replace(source.progress, push=push))
    if push is not PushKind.NONE or source.due_us is None:
        return source
    return replace(source, due_us=min(source.due_us, next_poll_us(source, now_us, chance)))


def hinted_source(source: Source, now_us: int) -> Source:
    """The source after a notification that it has changed: due now, but once a minute (WS-139, RC-073, RC-074)."""
    if source.due_us is None or source.state is SourceState.PAUSED:
        return source
    last_us = source.polled_us if source.polled_us is not None and source.polled_us <= now_us else None
    soon_us = now_us if last_us is None else max(now_us, last_us + POLL_NOW_S * US_PER_S)
    return replace(source, due_us=min(source.due_us, soon_us))


def poll_refusal(source: Source, pause: HostPause | None, now_us: int) -> str:
    """Returns the reason why a source cannot be polled at once by request (SRC-030), "" if it can."""
    if source.state is SourceState.PAUSED:
        return "it is paused; resume it first"
    if pause is not None and pause.until_us > now_us:
        return f"its server asked for a pause of {(pause.until_us - now_us) // US_PER_S} more seconds"
    if source.polled_us is not None and 0 <= now_us - source.polled_us < POLL_NOW_S * US_PER_S:
        return f"it was polled less than {POLL_NOW_S} seconds ago; try again later"
    return ""


def next_host_pause(former: HostPause | None, host: str, pause_s: float | None, now_us: int) -> HostPause:
    """The pause of a host that answered 429, or 503 with Retry-After (SRC-041). `pause_s` is what it asked for."""
    if pause_s is not None:
        return HostPause(host, now_us + int(min(pause_s, MAX_REQUESTED_PAUSE_S) * US_PER_S))
    count = 1 if former is None else former.count + 1
    return HostPause(host, now_us + int(Backoff(HOUR_S, DAY_S).pause_s(count, 1.0) * US_PER_S), count)
