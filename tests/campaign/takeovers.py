"""Repeated notifications of a service with several processes: which of them a takeover explains [CAM-033] [CAM-052].

A process stores its marks a moment after it has sent, so the process that takes over may repeat the last notifications.
A process that was frozen may write late what it had begun. Every other repetition is a finding. Pure.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from campaign.history import Event, Kind

# Marks are stored after 0.25 s, on the session of the beats. If they are late by more than the lease of the campaign,
# the beats are late, too: the session ends, and that is a hit.
SPAN_S = 3.0

# A new owner reads the marks and sends at once, so the observer may see its locks after its first notifications.
OBSERVED_S = 0.5

Times = Mapping[str, Sequence[float]]  # process -> times, ascending


def hits_of(events: Iterable[Event]) -> Times:
    """Returns the times at which a fault hit each process, or ended."""
    hits: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.kind is Kind.HIT:
            hits[event.process].append(event.at_s)
    return hits


def sessions_of(events: Iterable[Event]) -> Times:
    """Returns the times at which each process got the locks of shards with a new session of the database."""
    began: dict[str, list[float]] = defaultdict(list)
    known: set[str] = set()
    for event in events:
        if event.kind is Kind.HOLD and event.process not in known:
            known.add(event.process)
            began[event.process.partition(" ")[0]].append(event.at_s)
    return began


def is_continued(before: Event, push: Event, sessions: Times) -> bool:
    """Whether a notification belongs to the same life of a process as the one before.

    A process that lost its lock session goes on at the stored marks with a new one, like another process.
    """
    return before.life == push.life and not _has(sessions, push.note, before.at_s, push.at_s + OBSERVED_S)


def repeated(pushes: Iterable[Event]) -> Iterator[tuple[Event, Event]]:
    """Yields each notification that a subscriber got again, with the first one."""
    first: dict[tuple[str, int], Event] = {}
    for push in pushes:
        former = first.setdefault((push.process, push.key_us), push)
        if former is not push:
            yield former, push


def unexplained(pushes: Iterable[Event], hits: Times) -> Iterator[tuple[Event, Event]]:
    """Yields the repetitions by another process that no takeover explains.

    A repetition within a life of a process is a finding of another rule.
    """
    for former, push in repeated(pushes):
        if former.note == push.note:
            continue
        # The first sender was hit before its mark was stored, or the second one goes on after a fault.
        is_taken_over = _has(hits, former.note, former.at_s - SPAN_S, min(push.at_s, former.at_s + SPAN_S))
        if not is_taken_over and not _has(hits, push.note, push.at_s - SPAN_S, push.at_s):
            yield former, push


def gaps(pushes: Iterable[Event]) -> int:
    """Returns how many notifications show that the subscriber has missed others."""
    last_us: dict[str, int] = {}
    count = 0
    for push in pushes:
        count += last_us.get(push.process, push.previous_us) < push.previous_us
        last_us[push.process] = max(push.key_us, last_us.get(push.process, 0))
    return count


def _has(hits: Times, process: str, first_s: float, last_s: float) -> bool:
    """Whether a process was hit within this time."""
    times = hits.get(process, ())
    position = bisect_left(times, first_s)
    return position < len(times) and times[position] <= last_s
