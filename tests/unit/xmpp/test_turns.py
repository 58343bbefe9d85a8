"""Fair turns between senders and domains (xep-map 249, 250)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.xmpp.turns import (
    COSTLY_S,
    REMEMBERED,
    REST_FACTOR,
    REST_MOST_S,
    SENDER_STANZAS,
    WORK_BYTES,
    QueueBounds,
    StanzaTurns,
    Turn,
)
from support.faketime import FakeTime

ALICE, BOB, EVE = b"alice@home.example", b"bob@home.example", b"eve@flood.example"
SHORT = b"x" * 1_000


def turns_of(**bounds: int) -> StanzaTurns:
    return StanzaTurns(QueueBounds(**bounds), clock=FakeTime().clock)


def take(turns: StanzaTurns) -> Turn | None:
    """The next stanza alone."""
    return next(iter(turns.take()), None)


def served(turns: StanzaTurns, count: int = 1_000_000, cpu_s: float = 0.0) -> list[Turn]:
    """The next stanzas, each done before the next one is taken."""
    result: list[Turn] = []
    while len(result) < count and (turn := take(turns)) is not None:
        turns.spend(turn, cpu_s)
        turns.done(turn)
        result.append(turn)
    return result


@given(st.lists(st.tuples(st.sampled_from([ALICE, BOB, EVE, b"feeds.example"]), st.integers(1, 60_000)), max_size=60))
def test_turns_each_sender_keeps_its_order_and_nothing_is_lost(stanzas: list[tuple[bytes, int]]) -> None:
    """XEP-0060 promises the order of one sender's publishes."""
    turns = turns_of()
    sent: dict[bytes, list[bytes]] = {}
    for number, (jid, size_bytes) in enumerate(stanzas):
        frame = b"%b %d " % (jid, number) + b"x" * size_bytes
        assert turns.add(jid, frame, len(frame))
        sent.setdefault(jid, []).append(frame)

    frames = [turn.frame for turn in served(turns)]

    assert {jid: [frame for frame in frames if frame.startswith(jid + b" ")] for jid in sent} == sent
    assert len(frames) == len(stanzas)
    assert turns.stanzas == 0


_STANZA = st.tuples(
    st.sampled_from([ALICE, BOB, EVE, b"al@home.example"]),
    st.integers(1, 60_000),
    st.sampled_from([0.0, 0.000_1, 0.01]),
    st.booleans(),
)


@given(st.lists(st.lists(_STANZA, max_size=20), max_size=6), st.integers(1, 40_000))
def test_turns_batch_has_the_order_of_single_turns(
    bursts: list[list[tuple[bytes, int, float, bool]]], most_bytes: int
) -> None:
    """A sender that is served several times in a row is served as often as it would be one by one."""
    time = FakeTime()
    orders: list[list[bytes]] = []
    for batched in (True, False):
        turns = StanzaTurns(QueueBounds(), clock=time.clock)
        order: list[bytes] = []
        for burst in bursts:
            for number, (jid, size_bytes, _, _) in enumerate(burst):
                turns.add(jid, b"%b %d " % (jid, number), size_bytes)
            batch = turns.take(most_bytes) if batched else []
            while not batched and sum(turn.size_bytes for turn in batch) < most_bytes and (turn := take(turns)):
                batch.append(turn)
            for turn, (_, _, cpu_s, cut) in zip(batch, burst, strict=False):
                turns.spend(turn, cpu_s, cut=cut)
            for turn in batch:
                turns.done(turn)
            order += [turn.frame for turn in batch]
        orders.append(order)

    assert orders[0] == orders[1]


@given(st.integers(1, 500), st.integers(1, 200_000), st.integers(0, 500))
def test_turns_quiet_sender_waits_for_one_stanza_of_a_flood(flood: int, size_bytes: int, before: int) -> None:
    """However much waits, and however much of it was served before."""
    turns = turns_of(sender_bytes=1 << 40, bytes=1 << 42)
    for _ in range(flood):
        turns.add(EVE, b"x", size_bytes)
    served(turns, min(before, flood - 1))

    turns.add(ALICE, SHORT, len(SHORT))

    assert SHORT in [turn.frame for turn in served(turns, 2)]


@pytest.mark.parametrize(("sizes", "cpu_s"), [((1_000, 50_000), (0.0, 0.0)), ((1_000, 1_000), (0.000_05, 0.000_9))])
def test_turns_two_floods_have_equal_parts_of_bytes_and_of_time(
    sizes: tuple[int, int], cpu_s: tuple[float, float]
) -> None:
    """A sender of long or of costly stanzas has fewer of them."""
    turns = turns_of()
    cost_s = dict(zip((ALICE, EVE), cpu_s, strict=True))
    for jid, size_bytes in zip((ALICE, EVE), sizes, strict=True):
        for _ in range(1_000):
            turns.add(jid, jid, size_bytes)
    had_s: Counter[bytes] = Counter()
    counts: Counter[bytes] = Counter()
    while counts[ALICE] < 900:
        turn = take(turns)
        assert turn is not None
        turns.spend(turn, cost_s[turn.frame])
        turns.done(turn)
        had_s[turn.frame] += int(turn.cost_s * 1_000_000_000)
        counts[turn.frame] += 1

    assert counts[EVE] < 900 / 5
    assert abs(had_s[ALICE] - had_s[EVE]) < 2 * max(turn.cost_s, 0.001) * 1_000_000_000


def test_turns_domain_of_many_senders_has_the_part_of_one_domain() -> None:
    turns = turns_of()
    for number in range(1_000):
        turns.add(b"u%d@flood.example" % number, b"flood", 1_000)
    for _ in range(100):
        turns.add(ALICE, b"alice", 1_000)

    counts = Counter(turn.frame for turn in served(turns, 150))

    assert abs(counts[b"alice"] - counts[b"flood"]) <= 1


def test_turns_sender_gains_nothing_by_silence() -> None:
    turns = turns_of()
    for _ in range(100):
        turns.add(EVE, b"eve", 1_000)
    served(turns, 90)
    for _ in range(10):
        turns.add(ALICE, b"alice", 1_000)

    assert Counter(turn.frame for turn in served(turns, 10)) == {b"alice": 5, b"eve": 5}


def test_turns_sender_of_a_costly_stanza_rests_and_others_do_not() -> None:
    time = FakeTime()
    turns = StanzaTurns(QueueBounds(), clock=time.clock)
    for _ in range(2):
        turns.add(EVE, b"eve", 100_000)
    turns.add(ALICE, b"alice", 1_000)
    turn = served(turns, 1, cpu_s=0.01)[0]
    assert turn.frame == b"eve"

    assert [turn.frame for turn in served(turns)] == [b"alice"]
    rest_s = turns.rest_s()
    assert rest_s is not None and rest_s == pytest.approx(turn.cost_s * REST_FACTOR)
    time.now_s += rest_s * 0.99
    assert take(turns) is None
    time.now_s += rest_s * 0.02
    assert [turn.frame for turn in served(turns)] == [b"eve"]
    assert turns.rest_s() is None


@pytest.mark.parametrize(("cut", "frames"), [(False, [b"page", b"next"]), (True, [b"page"])])
def test_turns_sender_of_an_answer_that_was_requested_does_not_rest(cut: bool, frames: list[bytes]) -> None:
    """A full page of a mirror is costly and wanted. An answer that cannot be read is charged as others are."""
    turns = turns_of()
    turns.add(EVE, b"page", 1_000_000, requested=True)
    turns.add(EVE, b"next", 1_000)

    result = []
    while (turn := take(turns)) is not None:
        turns.spend(turn, 0.0, cut=cut and turn.frame == b"page")
        turns.done(turn)
        result.append(turn.frame)

    assert result == frames


@pytest.mark.parametrize(
    ("cost_s", "rest_s"), [(0.002, None), (0.0021, 0.006), (0.0025, 0.03), (0.003, 0.06), (0.0031, 0.062), (0.05, 1.0)]
)
def test_turns_rest_grows_with_the_cost_without_a_step(cost_s: float, rest_s: float | None) -> None:
    turns = turns_of()
    for _ in range(2):
        turns.add(EVE, b"eve", 100_000)
    turn = take(turns)
    assert turn is not None
    turns.spend(turn, cost_s - turn.price_s)
    turns.done(turn)

    assert (take(turns) is None) == (rest_s is not None)
    assert turns.rest_s() == (None if rest_s is None else pytest.approx(rest_s))


def test_turns_rest_is_bounded() -> None:
    turns = turns_of()
    for _ in range(2):
        turns.add(EVE, b"eve", 100_000_000)
    served(turns)

    assert turns.rest_s() == REST_MOST_S


def test_turns_time_beyond_what_the_size_can_cost_is_not_the_senders() -> None:
    """A pass of the garbage collector meets anybody."""
    turns = turns_of()
    for _ in range(5):
        turns.add(ALICE, SHORT, len(SHORT))

    assert len(served(turns, cpu_s=1.0)) == 5


def test_turns_stanza_that_is_refused_unread_makes_its_sender_rest() -> None:
    """Or the refusals, which cost us little, would leave no room on the link for others."""
    turns = turns_of()
    turns.add(EVE, b"eve", 100, cut=True)
    turns.add(EVE, b"eve", 100)
    turns.add(ALICE, b"alice", 100)
    turns.add(ALICE, b"alice", 100)

    assert sorted(turn.frame for turn in served(turns)) == [b"alice", b"alice", b"eve"]

    other = turns_of()
    for _ in range(2):
        other.add(EVE, b"eve", 100)
    turn = take(other)
    assert turn is not None
    other.spend(turn, COSTLY_S / 100, cut=True)
    assert take(other) is None


def test_turns_sender_with_much_in_work_waits_until_some_is_done() -> None:
    turns = turns_of()
    for _ in range(4):
        turns.add(EVE, b"e" * (WORK_BYTES // 2), 100)
    turns.add(ALICE, b"alice", 100)
    work = [take(turns) for _ in range(3)]

    assert take(turns) is None
    assert {len(turn.frame) for turn in work if turn is not None} == {5, WORK_BYTES // 2}

    for turn in work:
        assert turn is not None
        turns.done(turn)
    assert len(served(turns)) == 2


def test_turns_sender_of_large_stanzas_has_one_in_work() -> None:
    """Its next one waits where both together are too much; one that is too much alone is taken all the same."""
    turns = turns_of()
    for size_bytes in (WORK_BYTES // 2 + 1, WORK_BYTES // 2, WORK_BYTES * 2):
        turns.add(EVE, b"e" * size_bytes, 100)

    for size_bytes in (WORK_BYTES // 2 + 1, WORK_BYTES // 2, WORK_BYTES * 2):
        turn = take(turns)
        assert turn is not None and len(turn.frame) == size_bytes
        assert take(turns) is None
        turns.done(turn)


def test_turns_sender_at_its_bound_is_refused() -> None:
    """[xep-map 249]"""
    turns = turns_of(sender_stanzas=2, sender_bytes=3_000)

    assert turns.add(EVE, SHORT, 1_000) and turns.add(EVE, SHORT, 1_000)
    assert not turns.add(EVE, b"x", 1)
    assert turns.add(BOB, SHORT * 3, 3_000) and not turns.add(ALICE, SHORT * 4, 4_000)
    assert turns.refused == 2


def test_turns_stanza_in_work_counts_until_it_is_done() -> None:
    turns = turns_of(sender_stanzas=1)
    turns.add(EVE, SHORT, 1_000)
    turn = take(turns)
    assert turn is not None and turns.stanzas == 1

    assert not turns.add(EVE, SHORT, 1_000)
    turns.done(turn)

    assert turns.stanzas == 0
    assert turns.add(EVE, SHORT, 1_000)


@pytest.mark.parametrize("bounds", [{"stanzas": 100}, {"bytes": 100_000, "stanzas": 10_000}])
def test_turns_greedy_senders_and_domains_leave_room_for_others(bounds: dict[str, int]) -> None:
    """[xep-map 249]"""
    turns = turns_of(**bounds)
    for round_ in range(100):
        for number in range(9):
            turns.add(b"g%d@flood.example" % number, SHORT, 1_000)
            turns.add(b"g%d@d%d.example" % (round_, number), SHORT, 1_000)

    assert 80 < turns.stanzas < 100
    assert turns.add(ALICE, SHORT, 1_000)


def test_turns_burst_of_two_requests_for_each_of_200_nodes_is_admitted() -> None:
    """[xep-map 250]"""
    turns = turns_of()

    assert SENDER_STANZAS > 400
    assert all(turns.add(ALICE, SHORT, 1_000) for _ in range(400))


def test_turns_remember_a_bounded_number_of_senders() -> None:
    """A flood of new addresses costs no memory [xep-map 249]."""
    turns = turns_of()
    for number in range(10 * REMEMBERED):
        turns.add(b"u%d@d%d.example" % (number, number), SHORT, 1_000)
        served(turns)

    assert turns.senders <= REMEMBERED


def test_turns_cleared_admit_and_serve_again() -> None:
    """The link is gone: what waits is forgotten, what is in work still counts until it is done."""
    turns = turns_of(sender_stanzas=3)
    for jid in (EVE, EVE, EVE, ALICE):
        turns.add(jid, SHORT, 100_000_000)
    first = take(turns)
    assert first is not None

    turns.clear()

    assert turns.stanzas == 1 and take(turns) is None and turns.rest_s() is None
    turns.done(first)
    assert turns.stanzas == 0
    assert turns.add(BOB, b"bob", 3) and [turn.frame for turn in served(turns)] == [b"bob"]
