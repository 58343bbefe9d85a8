"""The checker explains repeated notifications by takeovers, and the soak campaign sees what grows."""

from dataclasses import replace

from campaign.checker import Rule, judge
from campaign.history import Event, Kind, Status
from campaign.soak import LEAST_SAMPLES, Sample, WriteCost, cost_growth, growth, write_costs
from campaign.takeovers import SPAN_S, gaps, unexplained

NEVER_S = 1e9


def push(at_s: float, key_us: int, previous_us: int, sender: str, life: int) -> Event:
    """A notification to one subscriber."""
    values = {"node": "news", "item": f"i{key_us}", "key_us": key_us, "previous_us": previous_us}
    return Event(at_s, "push:bob", Kind.PUSH, Status.OK, note=sender, life=life, **values)  # type: ignore[arg-type]


def hit(at_s: float, process: str) -> Event:
    """A fault on a process."""
    return Event(at_s, process, Kind.HIT, Status.OK)


PUSHES = [push(1.0, 1, 0, "a", 1), push(2.0, 2, 1, "a", 1), push(4.0, 2, 1, "b", 2), push(5.0, 3, 2, "b", 2)]


def test_repetition_after_a_takeover_is_counted_and_allowed() -> None:
    """[CAM-033] [CAM-052] The first sender was hit before its mark was stored."""
    verdict = judge([*PUSHES[:2], hit(2.1, "a"), *PUSHES[2:]], NEVER_S)
    assert verdict.findings == ()
    assert verdict.counts["repeated_pushes"] == 1


def test_late_notification_of_a_process_that_was_frozen_is_allowed() -> None:
    """[CAM-033] It writes what it had begun, after another process has sent the same."""
    late = push(6.0, 2, 1, "a", 3)
    assert list(unexplained([*PUSHES[2:], late], {"a": [5.9]})) == []
    assert list(unexplained([*PUSHES[2:], late], {})) == [(PUSHES[2], late)]


def test_process_that_lost_its_locks_repeats_what_its_new_session_does_not_know() -> None:
    """[CAM-033] Its last mark was not stored, and an item has moved since (seeds 33117 and 33118 of `shared`)."""
    old = Event(0.5, "a session 7", Kind.HOLD, Status.INVOKE, node="shard 1")
    released = replace(old, at_s=2.1, status=Status.OK)
    again = [push(4.0, 2, 1, "a", 1), push(4.0, 3, 2, "a", 1)]
    moved = push(4.0, 3, 1, "a", 1)
    for sent in (again, [moved]):
        for taken_s in (3.9, 4.1):
            taken = Event(taken_s, "a session 8", Kind.HOLD, Status.INVOKE, node="shard 1")
            assert judge([old, *PUSHES[:2], hit(1.9, "a"), released, taken, *sent], NEVER_S).findings == ()
        returned = replace(old, at_s=3.9)
        assert judge([old, *PUSHES[:2], hit(1.9, "a"), released, returned, *sent], NEVER_S).rules == {Rule.CHAIN}


def test_repetition_without_a_takeover_is_a_finding() -> None:
    """[CAM-033] [CAM-036] Nobody was hit, or so long before that the mark was stored."""
    assert judge(PUSHES, NEVER_S).rules == {Rule.TAKEOVER}
    assert judge([hit(2.0 - 2 * SPAN_S, "a"), *PUSHES], NEVER_S).rules == {Rule.TAKEOVER}
    late = replace(PUSHES[2], at_s=4.0 + 2 * SPAN_S)
    hits = {"a": [3.0 + 2 * SPAN_S]}
    assert list(unexplained([*PUSHES[:2], late], hits)) == [(PUSHES[1], late)]


def test_notifications_that_were_lost_with_a_link_are_gaps() -> None:
    """[CAM-033] PreviousCursor shows the subscriber that it has missed some."""
    assert gaps(PUSHES) == 0
    lost = push(6.0, 9, 7, "a", 3)
    assert gaps([*PUSHES, lost]) == 1
    assert judge([*PUSHES[:2], lost], NEVER_S).findings == ()


def test_new_life_continues_at_a_key_of_the_feed() -> None:
    """[CAM-033] A mark where nothing was written is a finding."""
    wrong = push(6.0, 9, 1_000, "a", 3)
    assert judge([*PUSHES[:2], push(3.0, 2_000, 2, "a", 1), wrong], NEVER_S).rules == {Rule.CHAIN}


def samples(**last: int) -> list[Sample]:
    """Samples that are constant but for the last quarter."""
    usual = Sample(0.0, 100_000, 10, 50, 4_000)
    return [usual] * LEAST_SAMPLES + [replace(usual, **last)] * (LEAST_SAMPLES // 2)  # type: ignore[arg-type]


def test_growth_of_memory_threads_files_and_log_is_found() -> None:
    """[CAM-012]"""
    assert growth(samples()) == []
    assert growth(samples(rss_kib=130_000)) == ["rss_kib has grown from 100,000 to 130,000"]
    assert growth(samples(threads=14)) == ["threads has grown from 10 to 14"]
    assert growth(samples(files=90)) == ["files has grown from 50 to 90"]
    assert growth(samples(wal_kib=70_000)) == ["the log of the database has 70,000 KiB"]
    assert growth(samples(rss_kib=130_000)[: LEAST_SAMPLES - 1]) == []


def test_processor_time_of_a_write_that_grows_with_the_feed_is_found() -> None:
    """[CAM-012] A write each second. The service waits as long for a processor as it runs."""
    writes = [Event(float(at_s), "w0", Kind.PUBLISH, Status.OK, op=at_s) for at_s in range(1, LEAST_SAMPLES + 1)]
    usual = samples()[0]

    def life(power: int) -> list[Sample]:
        times = [(at_s, 0.001 * at_s**power) for at_s in range(LEAST_SAMPLES + 1)]
        return [replace(usual, at_s=float(at_s), cpu_s=cpu_s, delay_s=cpu_s) for at_s, cpu_s in times]

    steady, growing = (write_costs(life(power), writes) for power in (1, 2))

    assert [round(cost.cpu_s, 6) for cost in steady] == [0.001, 0.001]
    assert [round(cost.delay_s, 6) for cost in steady] == [0.001, 0.001]
    assert cost_growth(*steady) == []
    assert cost_growth(*growing) == ["the processor time of a write has grown from 18.0 to 40.0 ms"]
    assert write_costs(life(1)[: LEAST_SAMPLES - 1], writes) == (WriteCost(), WriteCost())
