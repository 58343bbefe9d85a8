"""The checker of the campaigns passes correct histories and sees each defect of a simulated service."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaign.checker import Rule, judge
from campaign.history import Event, History, Kind, Shown, Status, digest_of, read_history, read_line
from campaign.simulated import EXPECTED, Defect, SimulatedFeed
from support.effort import runs

SEEDS = 40
NEVER_S = 1e9

# Whether one of these took effect depends on nothing that happens later, so that the checker must always see it.
CERTAIN = {
    Defect.STORES_TWICE,
    Defect.COUNTS_WRONG,
    Defect.PUSHES_TWICE,
    Defect.PUSHES_UNCHAINED,
    Defect.TWO_OWNERS,
    Defect.SUBSCRIBER_LEFT_BEHIND,
}


@settings(max_examples=runs(150))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 150))
def test_correct_history_breaks_no_rule(seed: int, steps: int) -> None:
    """[CAM-031] [CAM-032] [CAM-033] Writes overlap, get no answer and are refused; lives end and marks are repeated."""
    verdict = judge(SimulatedFeed(random.Random(seed)).run(steps), NEVER_S)
    assert verdict.findings == ()


@pytest.mark.parametrize("defect", list(Defect))
def test_each_defect_is_seen(defect: Defect) -> None:
    """[CAM-031] [CAM-032] [CAM-033] [CAM-034] [CAM-036] A checker that passes a broken service judges nothing."""
    seen = 0
    for seed in range(SEEDS):
        feed = SimulatedFeed(random.Random(seed), defect)
        verdict = judge(feed.run(80), NEVER_S)
        visible = EXPECTED[defect] <= verdict.rules
        assert visible or not (feed.broken and defect in CERTAIN), f"seed {seed}"
        seen += visible
    assert seen > SEEDS / 4  # a later write may hide the others before somebody reads


def test_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    """[CAM-030] [CAM-081] An invocation is in the file before its outcome is known."""
    ticks = iter(range(100))
    path = tmp_path / "run" / "history.jsonl"
    with History(path, lambda: float(next(ticks))) as history:
        call = history.invoke("w1", Kind.PUBLISH, "news", "a", digest_of("a"))
        assert read_history(path) == [call]
        history.complete(call, Status.OK, key_us=7)
        history.fault("kill")
        read = history.invoke("f1", Kind.PAGE, "news")
        history.complete(read, Status.OK, shown=(Shown("a", digest_of("a"), 7),), key_us=7, complete=True)
    assert read_history(path) == history.events
    assert [event.op for event in history.events] == [1, 1, 0, 2, 2]


@given(
    st.builds(
        Event,
        st.floats(0, 1e6).map(lambda s: round(s, 6)),
        st.text(),
        st.sampled_from(Kind),
        st.sampled_from(Status),
        op=st.integers(0),
        node=st.text(),
        item=st.text(),
        key_us=st.integers(),
        shown=st.lists(st.builds(Shown, st.text(), st.text(), st.integers())).map(tuple),
        total=st.integers(-1),
        complete=st.booleans(),
    )
)
def test_event_survives_its_line(event: Event) -> None:
    """[CAM-081]"""
    assert "\n" not in event.to_line()
    assert read_line(event.to_line()) == event


def writes(count: int) -> list[Event]:
    """The history of a writer that publishes distinct items, and of one walk."""
    events, shown = [], []
    for number in range(count):
        item, digest = f"i{number}", digest_of(str(number))
        for status, at_s, key_us in ((Status.INVOKE, number, 0), (Status.OK, number + 0.5, number + 1)):
            values = {"op": number + 1, "node": "news", "item": item, "digest": digest, "key_us": key_us}
            events.append(Event(at_s, "w", Kind.PUBLISH, status, **values))  # type: ignore[arg-type]
        shown.append(Shown(item, digest, number + 1))
    walk = {"op": count + 1, "node": "news"}
    events.append(Event(count, "walk", Kind.WALK, Status.INVOKE, **walk))  # type: ignore[arg-type]
    outcome = {**walk, "shown": tuple(shown), "total": count, "key_us": count}
    events.append(Event(count + 1.0, "walk", Kind.WALK, Status.OK, **outcome))  # type: ignore[arg-type]
    return events


def test_checker_reads_a_hundred_thousand_writes() -> None:
    """[CAM-038] One lost write among 100,000 is seen."""
    events = writes(100_000)
    walk = events[-1]
    events[-1] = Event(
        walk.at_s, "walk", Kind.WALK, Status.OK, op=walk.op, node="news", shown=walk.shown[:-1], total=99_999
    )
    start_s = time.process_time()
    verdict = judge(events)
    print(f"{time.process_time() - start_s:.1f} s")
    assert [finding.rule for finding in verdict.findings] == [Rule.LOST]
    assert verdict.counts["acknowledged"] == 100_000


def test_time_to_recover_is_measured_from_each_fault() -> None:
    """[CAM-037] A write that began before the fault is no recovery."""
    events = writes(4)
    kill = Event(1.2, "fault", Kind.FAULT, Status.OK, note="kill")
    events.insert(3, kill)
    assert judge(events).recoveries == {"kill": [pytest.approx(1.3)]}
    assert judge(events, recovery_s=1.0).rules == {Rule.LIVENESS}
    assert judge([*events, Event(9.0, "fault", Kind.FAULT, Status.OK, note="cut")]).rules == {Rule.LIVENESS}
