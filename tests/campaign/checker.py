"""The checker: decides from a history alone whether the service kept its promise. Pure.

A feed is one totally ordered log, so no search is needed: the keys give the order, and the checker compares the history
with it [CAM-031] [CAM-038]. Each rule is one function from the operations of one feed to findings.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from campaign.history import DELETED, Event, Kind, Status
from campaign.takeovers import Times, gaps, hits_of, is_continued, repeated, sessions_of, unexplained

RECOVERY_S = 30.0  # after a fault every part works again within this time [CAM-037]
MAX_FINDINGS = 200  # of one rule; more add nothing to a report

_WRITES = (Kind.PUBLISH, Kind.RETRACT)
_READS = (Kind.WALK, Kind.PAGE)


class Rule(StrEnum):
    """What must hold."""

    LOST = "acknowledged write lost"
    REFUSED = "refused write visible"
    UNWRITTEN = "version that nobody wrote"
    TWICE = "write under two ids, or an item twice in a walk"
    KEYS = "keys not unique or not growing in the order of acknowledgement"
    READERS = "readers see different sequences"
    COUNTS = "count differs from the items"
    FOLLOWER = "follower claims to be in step and lacks a write"
    CHAIN = "notifications out of order, repeated or not chained"
    OWNERS = "two owners of one shard"
    TAKEOVER = "notification repeated by another process without a takeover"
    LIVENESS = "not recovered in time"


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule. `op` is the operation that shows it."""

    rule: Rule
    text: str
    node: str = ""
    op: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a history: findings, numbers of events, and seconds to recover by fault."""

    findings: tuple[Finding, ...]
    counts: Counter[str]
    recoveries: dict[str, list[float]]

    @property
    def sound(self) -> bool:
        """Whether no rule is broken."""
        return not self.findings

    @property
    def rules(self) -> set[Rule]:
        """The broken rules."""
        return {finding.rule for finding in self.findings}


@dataclass(slots=True)
class Write:
    """A write with the interval in which it took effect. `completed_s` is infinite without an acknowledgement."""

    op: int
    item: str
    digest: str
    invoked_s: float
    completed_s: float = math.inf
    status: Status = Status.UNKNOWN
    key_us: int = 0

    @property
    def acknowledged(self) -> bool:
        return self.status is Status.OK


@dataclass(slots=True)
class Read:
    """A read with its interval; `event` is its outcome."""

    event: Event
    invoked_s: float


@dataclass(slots=True)
class Feed:
    """The operations on one node."""

    node: str
    writes: dict[int, Write] = field(default_factory=dict)
    by_item: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    reads: list[Read] = field(default_factory=list)
    pushes: list[Event] = field(default_factory=list)

    def versions(self, item: str, digest: str, until_s: float) -> list[Write]:
        """The writes that may have made this version by this moment."""
        return [
            write
            for write in self.by_item.get(item, ())
            if write.digest == digest and write.status is not Status.FAIL and write.invoked_s <= until_s
        ]

    def acknowledged(self) -> list[Write]:
        """The acknowledged writes in the order of their acknowledgements."""
        return sorted((write for write in self.writes.values() if write.acknowledged), key=lambda w: w.completed_s)


def judge(events: Iterable[Event], recovery_s: float = RECOVERY_S) -> Verdict:
    """Judges a history in the order of its events."""
    events = list(events)
    feeds, counts = feeds_of(events), _counts(events)
    findings: list[Finding] = []
    for feed in feeds.values():
        for rule in _RULES:
            findings += _some(rule(feed))
    findings += _some(_owners(events))
    recoveries, late = _recoveries(events, recovery_s)
    findings += late
    hits, sessions = hits_of(events), sessions_of(events)
    for feed in feeds.values():
        findings += _some(_chains(feed, sessions))
        counts["repeated_pushes"] += sum(1 for _ in repeated(feed.pushes))
        counts["gaps"] += gaps(feed.pushes)
        findings += _some(
            Finding(Rule.TAKEOVER, f"{push.process}: {push.key_us} by {former.note}, then by {push.note}", feed.node)
            for former, push in unexplained(feed.pushes, hits)
        )
    return Verdict(tuple(findings), counts, recoveries)


def _some(findings: Iterator[Finding]) -> list[Finding]:
    return [finding for finding, _ in zip(findings, range(MAX_FINDINGS), strict=False)]


def feeds_of(events: Sequence[Event]) -> dict[str, Feed]:
    """Returns the operations of a history by node."""
    feeds: dict[str, Feed] = {}
    invoked_s: dict[int, float] = {}
    for event in events:
        if not event.node or event.kind in (Kind.HOLD, Kind.HIT):
            continue
        feed = feeds.setdefault(event.node, Feed(event.node))
        if event.kind is Kind.PUSH:
            feed.pushes.append(event)
        elif event.status is Status.INVOKE:
            invoked_s[event.op] = event.at_s
            if event.kind in _WRITES:
                write = feed.writes[event.op] = Write(event.op, event.item, event.digest, event.at_s)
                feed.by_item[event.item].append(write)
        elif event.kind in _WRITES:
            write = feed.writes[event.op]
            write.status, write.key_us = event.status, event.key_us
            if event.status is Status.OK:
                write.completed_s = event.at_s
        elif event.kind in _READS and event.status is Status.OK:
            feed.reads.append(Read(event, invoked_s[event.op]))
    return feeds


def _counts(events: Sequence[Event]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for event in events:
        if event.kind in _WRITES and event.status is not Status.INVOKE:
            counts[{Status.OK: "acknowledged", Status.FAIL: "refused"}.get(event.status, "unknown")] += 1
        elif event.kind is Kind.FAULT:
            counts["faults"] += 1
        elif event.kind is Kind.PUSH:
            counts["pushes"] += 1
        elif event.kind is Kind.PAGE and event.status is Status.OK:
            counts["pages"] += 1
    return counts


def _shown_versions(feed: Feed) -> Iterator[Finding]:
    """Each version that a reader got was written, not refused, and not older than one acknowledged before the read."""
    refused = {(w.item, w.digest) for w in feed.writes.values() if w.status is Status.FAIL}
    for read in feed.reads:
        until_s = read.event.at_s
        for shown in read.event.shown:
            op = read.event.op
            versions = feed.versions(shown.item, shown.digest, until_s)
            if not versions:
                known = (shown.item, shown.digest) in refused
                text = f"{shown.item} with digest {shown.digest or 'deleted'}"
                yield Finding(Rule.REFUSED if known else Rule.UNWRITTEN, text, feed.node, op)
            elif (newest := _newest_before(feed, shown.item, read.invoked_s)) is not None and all(
                version.completed_s < newest.invoked_s for version in versions
            ):
                yield Finding(
                    Rule.LOST, f"{shown.item}: the write {newest.op} is replaced by an older one", feed.node, op
                )


def _newest_before(feed: Feed, item: str, at_s: float) -> Write | None:
    """The acknowledged write of an item that began last, of those that were complete at this moment."""
    complete = (write for write in feed.by_item.get(item, ()) if write.acknowledged and write.completed_s < at_s)
    return max(complete, key=lambda write: write.invoked_s, default=None)


def _walks_have_everything(feed: Feed) -> Iterator[Finding]:
    """A walk has each item with an acknowledged write, and has it once; its count is the number of items."""
    for read in feed.reads:
        if read.event.kind is not Kind.WALK:
            continue
        op, items = read.event.op, Counter(shown.item for shown in read.event.shown)
        for item, writes in feed.by_item.items():
            if item not in items:
                for write in writes:
                    if write.acknowledged and write.completed_s < read.invoked_s:
                        yield Finding(Rule.LOST, f"{item} of the write {write.op} is not in the feed", feed.node, op)
                        break
        for item, number in items.items():
            if number > 1:
                yield Finding(Rule.TWICE, f"{item} is in the walk {number} times", feed.node, op)
        if read.event.total >= 0 and read.event.total != len(read.event.shown):
            text = f"total is {read.event.total}, the walk has {len(read.event.shown)} items"
            yield Finding(Rule.COUNTS, text, feed.node, op)


def _one_id_each(feed: Feed) -> Iterator[Finding]:
    """A payload, which is unique to its write, is under one id."""
    ids: dict[str, str] = {}
    for read in feed.reads:
        for shown in read.event.shown:
            if shown.digest != DELETED and ids.setdefault(shown.digest, shown.item) != shown.item:
                text = f"digest {shown.digest} is under {ids[shown.digest]} and {shown.item}"
                yield Finding(Rule.TWICE, text, feed.node, read.event.op)


def _same_sequence(feed: Feed) -> Iterator[Finding]:
    """A key means the same version for every reader, every notification and the writer; keys grow in every page."""
    at_key: dict[int, tuple[str, str]] = {}

    def differs(key_us: int, item: str, digest: str, op: int) -> Iterator[Finding]:
        if key_us and at_key.setdefault(key_us, (item, digest)) != (item, digest):
            yield Finding(Rule.READERS, f"key {key_us} is {at_key[key_us]} and {(item, digest)}", feed.node, op)

    for write in feed.writes.values():
        yield from differs(write.key_us, write.item, write.digest, write.op)
    for read in feed.reads:
        last_us = read.event.previous_us
        for shown in read.event.shown:
            yield from differs(shown.key_us, shown.item, shown.digest, read.event.op)
            if not read.event.created and shown.key_us <= last_us:
                yield Finding(Rule.KEYS, f"{shown.item}: {shown.key_us} after {last_us}", feed.node, read.event.op)
            last_us = shown.key_us
    for push in feed.pushes:
        yield from differs(push.key_us, push.item, push.digest, push.op)


def _keys_in_real_time(feed: Feed) -> Iterator[Finding]:
    """If a write was acknowledged before another one began, its key is smaller."""
    keyed = [write for write in feed.acknowledged() if write.key_us]
    ends_s, highest, top = [], [], 0
    for write in keyed:
        ends_s.append(write.completed_s)
        top = max(top, write.key_us)
        highest.append(top)
    for write in keyed:
        position = bisect_left(ends_s, write.invoked_s)
        if position and highest[position - 1] >= write.key_us:
            text = f"key {write.key_us}, and an earlier write has {highest[position - 1]}"
            yield Finding(Rule.KEYS, text, feed.node, write.op)


def _created_in_real_time(feed: Feed) -> Iterator[Finding]:
    """In created order no item is before one whose first write was acknowledged before its own began."""
    for read in feed.reads:
        if read.event.kind is not Kind.WALK or not read.event.created:
            continue
        latest_s = -math.inf
        for shown in read.event.shown:
            writes = [write for write in feed.by_item.get(shown.item, ()) if write.status is not Status.FAIL]
            if not writes:
                continue
            if min(write.completed_s for write in writes) < latest_s:
                text = f"{shown.item} was created before an item in front of it"
                yield Finding(Rule.KEYS, text, feed.node, read.event.op)
            latest_s = max(latest_s, min(write.invoked_s for write in writes))


def _followers(feed: Feed) -> Iterator[Finding]:
    """When a follower got the last page, its copy has everything that was acknowledged before the request [CAM-032]."""
    order = feed.acknowledged()
    copies: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    checked: dict[str, int] = defaultdict(int)
    for read in feed.reads:
        if read.event.kind is not Kind.PAGE:
            continue
        name, copy = read.event.process, copies[read.event.process]
        for shown in read.event.shown:
            copy[shown.item] = (shown.digest, read.event.at_s)
        if not read.event.complete:
            continue
        while checked[name] < len(order) and order[checked[name]].completed_s < read.invoked_s:
            write = order[checked[name]]
            checked[name] += 1
            digest, at_s = copy.get(write.item, (None, 0.0))
            versions = [] if digest is None else feed.versions(write.item, digest, at_s)
            if all(version.completed_s < write.invoked_s for version in versions):
                text = f"{name} lacks the write {write.op} of {write.item}"
                yield Finding(Rule.FOLLOWER, text, feed.node, read.event.op)


def _chains(feed: Feed, sessions: Times) -> Iterator[Finding]:
    """Notifications of a subscriber name the one before and grow; a new life continues at a known key or later.

    The marks of several processes may lie at a notification that was lost with its link, so all keys are known.
    """
    last: dict[str, Event] = {}
    known = {write.key_us for write in feed.writes.values() if write.key_us}
    known |= {shown.key_us for read in feed.reads for shown in read.event.shown}
    known |= {push.key_us for push in feed.pushes}
    for push in feed.pushes:
        before = last.get(push.process)
        problem = ""
        if before is not None and is_continued(before, push, sessions):
            if push.key_us <= before.key_us:
                problem = f"{push.key_us} after {before.key_us}"
            elif push.previous_us != before.key_us:
                problem = f"PreviousCursor is {push.previous_us} after {before.key_us}"
        elif before is not None and push.previous_us <= before.key_us and push.previous_us not in known:
            problem = f"life {push.life} continues after {push.previous_us}, where nothing was"
        if push.previous_us >= push.key_us:
            problem = f"PreviousCursor {push.previous_us} is not before {push.key_us}"
        if problem:
            yield Finding(Rule.CHAIN, f"{push.process}: {problem}", feed.node, push.op)
        known.add(push.previous_us)
        last[push.process] = push


def _in_step_at_the_end(feed: Feed) -> Iterator[Finding]:
    """At the end every follower has read the last page, and every subscriber got the newest change [CAM-037]."""
    walks = [read for read in feed.reads if read.event.kind is Kind.WALK and not read.event.created]
    if not walks or not walks[-1].event.shown:
        return
    end_us = walks[-1].event.shown[-1].key_us
    ends: dict[str, int] = {}
    for read in feed.reads:
        if read.event.kind is Kind.PAGE:
            ends[read.event.process] = read.event.key_us if read.event.complete else 0
    for push in feed.pushes:
        ends[push.process] = push.key_us
    for name, key_us in ends.items():
        if key_us < end_us:
            yield Finding(Rule.LIVENESS, f"{name} ended at {key_us}, the feed at {end_us}", feed.node)


def _owners(events: Sequence[Event]) -> Iterator[Finding]:
    """At no time two processes own a shard [CAM-034]."""
    owners: dict[str, str] = {}
    for event in events:
        if event.kind is not Kind.HOLD:
            continue
        owner = owners.get(event.node)
        if event.status is not Status.INVOKE:
            if owner == event.process:
                del owners[event.node]
        elif owner not in (None, event.process):
            yield Finding(Rule.OWNERS, f"{event.process} owns it beside {owner}", event.node, event.op)
        else:
            owners[event.node] = event.process


def _recoveries(events: Sequence[Event], recovery_s: float) -> tuple[dict[str, list[float]], list[Finding]]:
    """Seconds from each fault to the next acknowledgement of a write that began after it.

    A fault that hits before the service has recovered from the one before starts the time again.
    """
    recoveries: dict[str, list[float]] = defaultdict(list)
    findings: list[Finding] = []
    open_faults: list[Event] = []
    invoked_s: dict[int, float] = {}
    for event in events:
        if event.kind is Kind.FAULT:
            open_faults = [event]
        elif event.kind in _WRITES and event.status is Status.INVOKE:
            invoked_s[event.op] = event.at_s
        elif event.kind in _WRITES and event.status is Status.OK:
            for fault in [fault for fault in open_faults if invoked_s[event.op] >= fault.at_s]:
                open_faults.remove(fault)
                seconds = event.at_s - fault.at_s
                recoveries[fault.note].append(seconds)
                if seconds > recovery_s:
                    findings.append(Finding(Rule.LIVENESS, f"{seconds:.1f} s after {fault.note}"))
    if invoked_s:
        findings += [Finding(Rule.LIVENESS, f"no acknowledgement after {fault.note}") for fault in open_faults]
    return dict(recoveries), findings


_RULES: tuple[Callable[[Feed], Iterator[Finding]], ...] = (
    _shown_versions,
    _walks_have_everything,
    _one_id_each,
    _same_sequence,
    _keys_in_real_time,
    _created_in_real_time,
    _followers,
    _in_step_at_the_end,
)
