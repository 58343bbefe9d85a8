"""The follower's state machine, step by step."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.client.change import Atom, Change, ChangeKind, ReceivedItem
from smartfeeds.client.errors import NodeMissingError, PositionRefusedError
from smartfeeds.client.events import (
    CaughtUp,
    Connected,
    CursorRefused,
    DelayedPageRequest,
    Disconnected,
    GapSuspected,
    Input,
    IntegrityDue,
    NodeGone,
    Output,
    PageReceived,
    PageRequest,
    PullFailed,
    PushReceived,
    StartPoint,
    StopFollowing,
    SubscribeRequest,
    SubscriptionAccepted,
)
from smartfeeds.client.memory import PASSED
from smartfeeds.client.position import FollowPosition, parse_position
from smartfeeds.client.state import MAX_QUEUE, PAGES_BEFORE_MORE, FollowState
from support.golden import GOLDEN
from unit.client.model_feed import ModelFeed

PUSH_CLIENT: dict[str, Any] = json.loads(Path(__file__).with_name("golden_push_client.json").read_text("utf-8"))


def entry(item_id: str, text: str = "one", **more: Any) -> ReceivedItem:
    return ReceivedItem(item_id, f"<entry>{text}</entry>".encode(), **more)


def push(previous: str | None, last: str | None, *items: ReceivedItem, total: int | None = None) -> PushReceived:
    return PushReceived(items, previous, last, total)


def ids(outputs: list[Output]) -> list[str]:
    return [output.item_id for output in outputs if isinstance(output, Change)]


def pulls(outputs: list[Output]) -> list[PageRequest]:
    return [output for output in outputs if isinstance(output, PageRequest)]


def kinds(outputs: list[Output]) -> list[ChangeKind]:
    return [output.kind for output in outputs if isinstance(output, Change)]


def subscribing(
    start: FollowPosition | StartPoint = StartPoint.BEGINNING, **options: Any
) -> tuple[FollowState, SubscribeRequest]:
    """A follower that has asked to be subscribed."""
    state = FollowState("node", start, **options)
    (asked,) = state.receive(Connected())
    assert isinstance(asked, SubscribeRequest)
    return state, asked


def pulling(
    start: FollowPosition | StartPoint = StartPoint.BEGINNING, **options: Any
) -> tuple[FollowState, PageRequest]:
    """A follower that waits for its first page."""
    state, asked = subscribing(start, **options)
    (pull,) = state.receive(SubscriptionAccepted(asked.request_no))
    assert isinstance(pull, PageRequest)
    return state, pull


def in_step(cursor: str = "5", total: int | None = 5, **options: Any) -> FollowState:
    """A follower with this L that nothing is missing to."""
    state, pull = pulling(FollowPosition(cursor, total), **options)
    assert state.receive(PageReceived(pull.request_no, count=total)) == [CaughtUp()]
    return state


def catch_up(state: FollowState, outputs: list[Output], feed: ModelFeed) -> list[Output]:
    """Answers what the follower asks until it asks nothing more, and returns everything it put out."""
    everything = list(outputs)
    asked = [output for output in outputs if isinstance(output, SubscribeRequest | PageRequest)]
    while asked:
        request = asked.pop(0)
        answer: Input = (
            SubscriptionAccepted(request.request_no)
            if isinstance(request, SubscribeRequest)
            else feed.page(request, cap=500)
        )
        outputs = state.receive(answer)
        everything += outputs
        asked += [output for output in outputs if isinstance(output, SubscribeRequest | PageRequest)]
    return everything


# Bootstrap


def test_state_connected_subscribes_before_it_pulls() -> None:
    """[SF-047]"""
    state = FollowState("node", StartPoint.NOW)

    (asked,) = state.receive(Connected())

    assert isinstance(asked, SubscribeRequest)
    assert state.receive(SubscriptionAccepted(asked.request_no)) == [PageRequest(2, newest=True, max_items=1)]
    assert not state.in_step and state.position is None


def test_state_subscribed_to_an_earlier_request_is_ignored() -> None:
    """[SF-047]: the answer of a session that has ended says nothing about this one."""
    state, earlier = subscribing()
    (later,) = state.receive(Connected())
    assert isinstance(later, SubscribeRequest)

    assert state.receive(SubscriptionAccepted(earlier.request_no)) == []
    assert pulls(state.receive(SubscriptionAccepted(later.request_no)))


def test_state_from_now_hands_over_nothing_old() -> None:
    """[SF-047]"""
    state, pull = pulling(StartPoint.NOW)

    assert state.receive(PageReceived(pull.request_no, (entry("a"),), "7", "7", 6, 7)) == [CaughtUp()]
    assert state.position == FollowPosition("7", 7)
    assert state.in_step


def test_state_from_now_on_an_empty_feed_takes_the_first_push() -> None:
    """[SF-047] [SF-048] (A-16): a missing previous cursor matches an unset L."""
    state, pull = pulling(StartPoint.NOW)
    state.receive(PageReceived(pull.request_no, count=0))

    outputs = state.receive(push(None, "1", entry("a"), total=1))

    assert ids(outputs) == ["a"] and state.position == FollowPosition("1", 1)
    assert state.counters.pulls == 1


def test_state_missing_previous_cursor_with_a_set_l_pulls() -> None:
    """[SF-049] (A-16)"""
    state = in_step("5")

    assert pulls(state.receive(push(None, "6", entry("a")))) == [PageRequest(3, after="5")]


def test_state_mirror_pulls_page_after_page() -> None:
    """[SF-045]"""
    state, pull = pulling(page_items=2)
    assert pull == PageRequest(2, after="", max_items=2)

    outputs = state.receive(PageReceived(2, (entry("a"), entry("b")), "1", "2", 0, 3))
    assert ids(outputs) == ["a", "b"] and pulls(outputs) == [PageRequest(3, after="2", max_items=2)]

    outputs = state.receive(PageReceived(3, (entry("c"),), "3", "3", 2, 3))
    assert ids(outputs) == ["c"] and outputs[-1] == CaughtUp()
    assert state.position == FollowPosition("3", 3)
    assert state.counters.gaps_found == 0


def test_state_short_page_without_index_pulls_until_a_page_is_empty() -> None:
    """[SF-045]: services shorten pages, so only an empty page or the count shows the end."""
    state, _ = pulling(page_items=9)

    assert pulls(state.receive(PageReceived(2, (entry("a"),), "1", "1", None, None)))
    assert state.receive(PageReceived(3)) == [CaughtUp()]


def test_state_pages_without_a_count_are_proof_when_one_is_empty() -> None:
    """[SF-045] [SF-095]: a service leaves out the count of a view that is too long to be counted."""
    state, _ = pulling(page_items=2)

    assert pulls(state.receive(PageReceived(2, (entry("a"), entry("b")), "1", "2", 0, None)))
    outputs = state.receive(PageReceived(3, (entry("c"),), "3", "3", 2, None))
    assert ids(outputs) == ["c"] and pulls(outputs) and not state.in_step
    assert state.receive(PageReceived(4, count=None)) == [CaughtUp()]
    assert ids(state.receive(push("3", "4", entry("d")))) == ["d"] and state.in_step


def test_state_page_that_does_not_move_ends_the_series() -> None:
    """[SF-045]: a service that repeats the position, and numbers nothing, must not be asked for ever."""
    state, pull = pulling(FollowPosition("5"))

    outputs = state.receive(PageReceived(pull.request_no, (entry("a"),), "5", "5", None, 9))

    assert pulls(outputs) == [] and outputs[-1] == CaughtUp()


@pytest.mark.parametrize(
    ("start", "items", "cursor", "index", "text"),
    [
        (FollowPosition("5"), (entry("a"),), "5", 0, "ends at the cursor that it was to start from"),
        (StartPoint.BEGINNING, (), None, None, "has no items, but its count is 9"),
        (StartPoint.NOW, (), None, None, "has no items, but its count is 9"),
    ],
    ids=["does not move", "empty from the start", "nothing is the newest"],
)
def test_state_page_that_contradicts_itself_is_no_proof(
    start: FollowPosition | StartPoint,
    items: tuple[ReceivedItem, ...],
    cursor: str | None,
    index: int | None,
    text: str,
) -> None:
    """[SF-045] [SF-095]: it says that there is more than it shows. It is asked for again, after a pause."""
    state, pull = pulling(start, page_items=1)

    (later,) = state.receive(PageReceived(pull.request_no, items, cursor, cursor, index, 9))

    assert isinstance(later, DelayedPageRequest) and later.answered and text in later.reason
    assert not state.in_step and state.counters.changes == 0


# Pages that do not come


def failed(pull: PageRequest, *, answered: bool = True) -> PullFailed:
    return PullFailed(pull.request_no, "cut", answered)


def test_state_answer_that_is_no_page_asks_for_half_as_many_at_once() -> None:
    """[SF-045]: down to one item; from then on only after a pause, and it is never a proof."""
    state, pull = pulling(page_items=9)

    asked = [pull]
    while pulls(outputs := state.receive(failed(asked[-1]))):
        asked += pulls(outputs)
    (later,) = outputs

    assert [one.max_items for one in asked] == [9, 4, 2, 1]
    assert later == DelayedPageRequest(PageRequest(6, max_items=1), "cut", answered=True, alone=True)
    assert state.receive(failed(later.request)) == [replace(later, request=PageRequest(7, max_items=1))]
    assert not state.in_step and state.counters.pulls == 6


def test_state_pull_without_an_answer_waits_and_asks_for_half_as_many() -> None:
    """[SF-045]: a server between that gives up over long stanzas may be the reason."""
    state, pull = pulling(FollowPosition("5"), page_items=4)

    (first,) = state.receive(failed(pull, answered=False))
    assert first == DelayedPageRequest(PageRequest(3, after="5", max_items=2), "cut", answered=False, alone=False)
    (second,) = state.receive(failed(first.request, answered=False))
    assert isinstance(second, DelayedPageRequest) and (second.request.max_items, second.alone) == (1, False)
    (third,) = state.receive(failed(second.request, answered=False))

    assert isinstance(third, DelayedPageRequest) and (third.request.max_items, third.alone) == (1, True)


def test_state_more_items_are_asked_for_again_step_by_step() -> None:
    """[SF-045]: what was too much may be so again soon; up to what was asked for first."""
    state, pull = pulling(page_items=3)
    (pull,) = pulls(state.receive(failed(pull)))
    sizes = []
    for number in range(3 * PAGES_BEFORE_MORE):
        sizes.append(pull.max_items)
        page = PageReceived(pull.request_no, (entry(f"i{number}"),), str(number), str(number), number, 99)
        (pull,) = pulls(state.receive(page))

    assert sizes == [1] * PAGES_BEFORE_MORE + [2] * PAGES_BEFORE_MORE + [3] * PAGES_BEFORE_MORE


def test_state_page_that_fails_again_is_asked_for_less_at_once() -> None:
    """[SF-045]: pages that came before do not count on."""
    state, pull = pulling(page_items=4)
    (pull,) = pulls(state.receive(failed(pull)))
    for number in range(PAGES_BEFORE_MORE - 1):
        page = PageReceived(pull.request_no, (entry(f"i{number}"),), str(number), str(number), number, 99)
        (pull,) = pulls(state.receive(page))
    (pull,) = pulls(state.receive(failed(pull)))
    page = PageReceived(pull.request_no, (entry("x"),), "x", "x", 50, 99)

    assert pull.max_items == 1
    assert [one.max_items for one in pulls(state.receive(page))] == [1]


def test_state_newest_item_that_cannot_be_had_does_not_make_pages_small() -> None:
    """[SF-047]: there is nothing smaller to ask for."""
    state, pull = pulling(StartPoint.NOW)

    (later,) = state.receive(failed(pull))
    assert later == DelayedPageRequest(PageRequest(3, newest=True, max_items=1), "cut", answered=True, alone=True)
    assert state.receive(PageReceived(3, (entry("a"),), "7", "7", 6, 7)) == [CaughtUp()]

    assert pulls(state.receive(push("x", "9", entry("b")))) == [PageRequest(4, after="7")]


def test_state_failure_of_an_earlier_pull_is_ignored() -> None:
    """[SF-049]: so is one of a session that has ended."""
    state, pull = pulling()
    state.receive(PageReceived(pull.request_no, count=0))
    assert state.in_step

    assert state.receive(failed(pull)) == []
    assert state.in_step


def test_state_push_during_a_pause_is_taken_behind_the_page() -> None:
    """[SF-049]: what arrives while a page does not come is not lost."""
    state, pull = pulling(FollowPosition("5", 5), page_items=1)
    (later,) = state.receive(failed(pull))
    assert isinstance(later, DelayedPageRequest)
    assert state.receive(push("6", "7", entry("b"), total=7)) == []

    outputs = state.receive(PageReceived(later.request.request_no, (entry("a"),), "6", "6", 5, 6))

    assert ids(outputs) == ["a", "b"] and outputs[-1] == CaughtUp()
    assert state.position == FollowPosition("7", 7)


def test_state_service_without_result_sets_hands_over_its_items_once() -> None:
    """[SF-109]"""
    state, pull = pulling()
    assert ids(state.receive(PageReceived(pull.request_no, (entry("a"), entry("b"))))) == ["a", "b"]

    (again,) = pulls(state.receive(PushReceived((entry("c"),))))

    assert ids(state.receive(PageReceived(again.request_no, (entry("a"), entry("b"), entry("c"))))) == ["c"]


# Pushes


def test_state_golden_push_client_goes_as_computed() -> None:
    """[SF-047] [SF-048] [SF-049] [SF-050]: golden push_client."""
    chain = GOLDEN["push_chain_modified_order"]
    third, fourth, fifth = (
        push(step["PreviousCursor"], step["LastCursor"], *(entry(i, step["event"]) for i in step["items"]))
        for step in chain[2:5]
    )
    bootstrap, first, _, gap, late = PUSH_CLIENT["steps"]
    state, pull = pulling(StartPoint.NOW)
    state.receive(PageReceived(pull.request_no, (entry("b"),), bootstrap["L"], bootstrap["L"], 1, 2))

    assert ids(state.receive(third)) == ["a"]
    assert state.position is not None and state.position.cursor == first["L"]

    assert (fifth.previous, fifth.last) == (gap["PreviousCursor"], gap["LastCursor"])
    (pull,) = pulls(state.receive(fifth))
    assert f"pull after cursor:{pull.after}" == gap["action"]
    answer = PageReceived(pull.request_no, (*fourth.items, *fifth.items), chain[3]["LastCursor"], gap["L"], 1, 4)
    assert ids(state.receive(answer)) == gap["pull_returns"]
    assert state.position is not None and state.position.cursor == gap["L"]

    assert state.receive(fourth) == []
    assert state.position.cursor == late["L"]
    assert (state.counters.late_pushes, state.counters.gaps_found, state.counters.gaps_healed) == (1, 1, 1)


def test_state_push_that_follows_is_handed_over_with_its_cursor() -> None:
    """[SF-048]"""
    state = in_step("5", 5)

    (change,) = state.receive(push("5", "6", entry("a", publisher="alice@example.org"), total=6))

    assert change == Change(
        ChangeKind.NEW, "a", b"<entry>one</entry>", "node", '{"cursor":"6","total":6}', 6, "alice@example.org"
    )


@pytest.mark.parametrize("cursor", ["", " ", "5 ", "cursor:5", "05", "5.0", "ü_~", "{}", "7_0_deadbeef", "a" * 4000])
def test_state_cursors_are_compared_as_text_only(cursor: str) -> None:
    """[SF-027]: any text may be a cursor, and only the same text is the same cursor."""
    state, _ = pulling(FollowPosition("before"))
    state.receive(PageReceived(2))

    outputs = state.receive(push("before", cursor + "x", entry("a")))
    assert ids(outputs) == ["a"]
    assert ids(state.receive(push(cursor + "x", "after", entry("b")))) == ["b"]
    assert pulls(state.receive(push(cursor + "x ", "later", entry("c")))) == [PageRequest(3, after="after")]


def test_state_push_of_several_items_goes_on_inside_after_a_restart() -> None:
    """[SF-048]: the position between two items of one push names what was handed over already."""
    state = in_step("5", 5)
    both = push("5", "7", entry("a"), entry("b"), total=7)

    first, second = state.receive(both)

    assert isinstance(first, Change) and isinstance(second, Change)
    again, pull = pulling(parse_position(first.position))
    assert pull.after == "5"
    outputs = again.receive(PageReceived(pull.request_no, both.items, "6", "7", 5, 7))
    assert ids(outputs) == ["b"] and [c.position for c in outputs if isinstance(c, Change)] == [second.position]


def test_state_push_without_payload_is_pulled() -> None:
    """[SF-049]: what was not delivered has to be asked for."""
    state = in_step("5")

    (pull,) = pulls(state.receive(push("5", "6", ReceivedItem("a"))))

    assert ids(state.receive(PageReceived(pull.request_no, (entry("a"),), "6", "6", 5, 6))) == ["a"]


def test_state_push_without_cursors_is_pulled() -> None:
    """[SF-049]"""
    state = in_step("5")

    assert pulls(state.receive(push(None, None, entry("a")))) == [PageRequest(3, after="5")]


def test_state_repeated_push_is_dropped_without_a_pull() -> None:
    """[SF-050]"""
    state = in_step("5")
    one, two = push("5", "6", entry("a")), push("6", "7", entry("b"))
    state.receive(one)
    state.receive(two)

    assert state.receive(one) == state.receive(two) == []
    assert (state.counters.late_pushes, state.counters.pulls) == (2, 1)


def test_state_late_push_of_a_forgotten_cursor_pulls_and_changes_nothing() -> None:
    """[SF-050]: memory is bounded, and a pull is always safe."""
    state = in_step("0")
    for number in range(PASSED + 2):
        state.receive(push(str(number), str(number + 1), entry("a", str(number))))

    (pull,) = pulls(state.receive(push("0", "1", entry("a", "0"))))

    assert state.receive(PageReceived(pull.request_no)) == [CaughtUp()]
    assert state.counters.gaps_found == 0


def test_state_same_content_again_moves_on_and_is_not_handed_over() -> None:
    """[SF-109]"""
    state = in_step("5")
    state.receive(push("5", "6", entry("a")))

    assert state.receive(push("6", "7", entry("a"))) == []
    assert state.position is not None and state.position.cursor == "7"
    assert state.counters.duplicates == 1


def test_state_content_that_comes_back_is_handed_over() -> None:
    """[SF-048]: one, two, one are three changes."""
    state = in_step("5")

    handed = [state.receive(push(str(n), str(n + 1), entry("a", t))) for n, t in [(5, "one"), (6, "two"), (7, "one")]]

    assert [ids(outputs) for outputs in handed] == [["a"], ["a"], ["a"]]


# Pushes and pulls at once


def test_state_push_after_the_page_was_asked_for_follows_it() -> None:
    """[SF-049]: pushes that arrive meanwhile are neither lost nor doubled."""
    state, pull = pulling(FollowPosition("5", 5))

    assert state.receive(push("6", "7", entry("b"))) == []
    outputs = state.receive(PageReceived(pull.request_no, (entry("a"),), "6", "6", 5, 6))

    assert ids(outputs) == ["a", "b"] and outputs[-1] == CaughtUp()
    assert state.counters.pulls == 1


def test_state_pushes_that_the_page_holds_are_late() -> None:
    """[SF-050]: the answer overtook them, the chain leads back from L."""
    state, pull = pulling(FollowPosition("5", 5))
    for held in (push("5", "6", entry("a")), push("6", "7", entry("b")), push("7", "8", entry("c"))):
        state.receive(held)

    outputs = state.receive(PageReceived(pull.request_no, (entry("a"), entry("b")), "6", "7", 5, 7))

    assert ids(outputs) == ["a", "b", "c"] and outputs[-1] == CaughtUp()
    assert (state.counters.late_pushes, state.counters.pulls) == (2, 1)


def test_state_pushes_overtaken_by_the_page_are_late_when_they_come() -> None:
    """[SF-050]: their cursors are unknown, but just these versions were pulled."""
    state, pull = pulling(FollowPosition("5", 5))
    state.receive(PageReceived(pull.request_no, (entry("a"), entry("b"), entry("c")), "6", "8", 5, 8))

    assert [state.receive(late) for late in (push("5", "6", entry("a")), push("6", "7", entry("b")))] == [[], []]
    assert state.counters.pulls == 1


def test_state_version_that_was_pulled_excuses_one_push_only() -> None:
    """[SF-049] [SF-050]: the same content published again behind a gap has to be looked at."""
    state, pull = pulling(FollowPosition("5", 5))
    state.receive(PageReceived(pull.request_no, (entry("a"), entry("b")), "6", "7", 5, 7))
    state.receive(push("5", "6", entry("a")))

    assert pulls(state.receive(push("unseen", "9", entry("a")))) == [PageRequest(3, after="7")]


def test_state_push_that_showed_the_gap_excuses_no_other() -> None:
    """[SF-049]"""
    state = in_step("5")
    (pull,) = pulls(state.receive(push("6", "7", entry("a"))))
    state.receive(PageReceived(pull.request_no, (entry("b"), entry("a")), "6", "7", 5, 7))

    assert pulls(state.receive(push("8", "9", entry("a")))) == [PageRequest(4, after="7")]


def test_state_push_before_the_page_was_asked_for_is_covered_by_it() -> None:
    """[SF-049] [SF-050]: what comes late of it needs no other pull."""
    state, asked = subscribing(FollowPosition("5", 5))
    early = push("8", "9", entry("b", "old"))
    state.receive(early)
    (pull,) = pulls(state.receive(SubscriptionAccepted(asked.request_no)))

    outputs = state.receive(PageReceived(pull.request_no, (entry("b", "new"),), "11", "11", 5, 6))

    assert outputs[-1] == CaughtUp() and state.counters.pulls == 1
    assert state.receive(early) == [] and state.receive(push("7", "8", entry("c"))) == []


def test_state_gap_while_pulling_is_pulled_after_it() -> None:
    """[SF-049]: again and again until caught up."""
    state, pull = pulling(FollowPosition("5", 5))
    state.receive(push("8", "9", entry("c")))

    outputs = state.receive(PageReceived(pull.request_no, (entry("a"),), "6", "6", 5, 6))
    assert ids(outputs) == ["a"] and pulls(outputs) == [PageRequest(3, after="6")]

    outputs = state.receive(PageReceived(3, (entry("b"), entry("c")), "7", "9", 6, 8))
    assert ids(outputs) == ["b", "c"] and outputs[-1] == CaughtUp()
    assert (state.counters.gaps_found, state.counters.gaps_healed) == (1, 1)


def test_state_more_pushes_than_are_kept_are_pulled() -> None:
    """[SF-049]: what found no room is not lost."""
    state, pull = pulling(FollowPosition("5", 5))
    for number in range(MAX_QUEUE + 1):
        state.receive(push(f"p{number}", f"p{number + 1}", entry("a", str(number))))

    outputs = state.receive(PageReceived(pull.request_no, (entry("z"),), "p0", "p0", 5, 6))

    assert len(ids(outputs)) == MAX_QUEUE + 1 and pulls(outputs) == [PageRequest(3, after=f"p{MAX_QUEUE}")]


def test_state_page_of_an_earlier_request_is_ignored() -> None:
    """[SF-049]"""
    state, pull = pulling(FollowPosition("5", 5))
    outputs = state.receive(Connected())
    assert isinstance(outputs[0], SubscribeRequest)
    (again,) = pulls(state.receive(SubscriptionAccepted(outputs[0].request_no)))

    assert state.receive(PageReceived(pull.request_no, (entry("a"),), "6", "6", 5, 6)) == []
    assert state.receive(CursorRefused(pull.request_no)) == []
    assert ids(state.receive(PageReceived(again.request_no, (entry("a"),), "6", "6", 5, 6))) == ["a"]


# Silence, sessions, the end


def test_state_silence_subscribes_again_and_pulls_once() -> None:
    """[SF-051]: the subscription may be what was lost."""
    state = in_step("5")

    (asked,) = state.receive(IntegrityDue())
    assert isinstance(asked, SubscribeRequest)
    (pull,) = pulls(state.receive(SubscriptionAccepted(asked.request_no)))
    assert pull.after == "5"
    assert state.receive(PageReceived(pull.request_no)) == [CaughtUp()]
    assert state.counters.gaps_found == 0


def test_state_silence_that_hid_a_change_is_a_gap_found_and_healed() -> None:
    """[SF-051]"""
    feed = ModelFeed()
    feed.publish("a")
    state, pull = pulling()
    state.receive(feed.page(pull))
    feed.publish("b")

    outputs = catch_up(state, state.receive(IntegrityDue()), feed)

    assert ids(outputs) == ["b"]
    assert (state.counters.gaps_found, state.counters.gaps_healed) == (1, 1)


@pytest.mark.parametrize("event", [IntegrityDue(), GapSuspected()])
def test_state_silence_while_asking_asks_nothing_more(event: Input) -> None:
    """[SF-051]"""
    state, _ = pulling(FollowPosition("5", 5))

    assert state.receive(event) == []


def test_state_gap_suspected_while_pulling_pulls_again() -> None:
    """[SF-049]: it may have happened behind the page that is under way."""
    state, pull = pulling(FollowPosition("5", 5))
    state.receive(GapSuspected())

    (again,) = state.receive(PageReceived(pull.request_no))

    assert isinstance(again, PageRequest)
    assert state.receive(PageReceived(again.request_no)) == [CaughtUp()]


def test_state_disconnected_is_not_in_step_until_it_has_pulled() -> None:
    """[SF-049]"""
    feed = ModelFeed()
    state, pull = pulling()
    state.receive(feed.page(pull))
    feed.publish("a")

    assert (state.receive(Disconnected()), state.in_step) == ([], False)
    assert state.receive(IntegrityDue()) == []
    assert ids(catch_up(state, state.receive(Connected()), feed)) == ["a"]
    assert state.in_step and state.counters.gaps_healed == 1


def test_state_cursor_refused_reads_again_without_what_was_handed_over() -> None:
    """[SF-109]"""
    state, pull = pulling()
    state.receive(PageReceived(pull.request_no, (entry("a"), entry("b")), "1", "2", 0, 2))
    outputs = state.receive(GapSuspected())
    assert isinstance(outputs[0], SubscribeRequest)
    (pull,) = pulls(state.receive(SubscriptionAccepted(outputs[0].request_no)))

    assert state.receive(CursorRefused(pull.request_no)) == [PageRequest(5, after="")]
    page = PageReceived(5, (entry("a"), entry("b", "edited"), entry("c")), "x", "z", 0, 3)
    assert ids(state.receive(page)) == ["b", "c"]
    assert state.position == FollowPosition("z", 3) and state.counters.duplicates == 1


def test_state_cursor_refused_without_replay_is_the_end() -> None:
    """The stored position stays for whoever decides what to do; nothing moves it any more."""
    state, pull = pulling(FollowPosition("5", 5), replay=False)

    assert state.receive(CursorRefused(pull.request_no)) == [
        StopFollowing(PositionRefusedError, "the service no longer knows the stored position")
    ]
    for late in (push("5", "6", entry("a"), total=6), PageReceived(pull.request_no, (entry("a"),), "5", "6", 0, 6)):
        assert state.receive(late) == []
    assert not state.in_step and state.position == FollowPosition("5", 5)
    assert state.receive(Connected()) == []


def test_state_node_gone_is_the_end() -> None:
    """[SF-045]"""
    state = in_step()

    assert state.receive(NodeGone()) == [StopFollowing(NodeMissingError, "the node was deleted")]
    assert not state.in_step
    assert state.receive(push("5", "6", entry("a"))) == []


def test_state_fallback_that_repeats_items_drops_them() -> None:
    """[SF-109]: the group of L changed, so the service answers from its time on, inclusive."""
    feed = ModelFeed()
    feed.put(entry("a"), entry("b"), entry("c"))
    state, pull = pulling()
    assert ids(state.receive(feed.page(pull))) == ["a", "b", "c"]
    feed.publish("a", "moved away")

    outputs = catch_up(state, state.receive(GapSuspected()), feed)

    assert ids(outputs) == ["a"] and state.counters.duplicates == 2


# Positions inside a page


def test_position_inside_a_page_goes_on_with_the_rest() -> None:
    """[SF-045]: exactly once for a caller that stores the position with its work."""
    feed = ModelFeed()
    for item_id in "abcd":
        feed.publish(item_id)
    state, pull = pulling()
    changes = [output for output in state.receive(feed.page(pull)) if isinstance(output, Change)]

    for number, change in enumerate(changes):
        again, pull = pulling(parse_position(change.position))
        assert ids(again.receive(feed.page(pull))) == list("abcd")[number + 1 :]


def test_position_inside_a_page_hands_over_what_changed_since() -> None:
    """[SF-045]: an item that was handed over and edited comes again, also when the old content comes back later."""
    feed = ModelFeed()
    for item_id in "abc":
        feed.publish(item_id, "one")
    state, pull = pulling()
    after_a = state.receive(feed.page(pull))[0]
    assert isinstance(after_a, Change)
    feed.publish("a", "two")
    second, pull = pulling(parse_position(after_a.position))
    changes = [output for output in second.receive(feed.page(pull)) if isinstance(output, Change)]
    assert [change.item_id for change in changes] == ["b", "c", "a"] and changes[-1].kind is ChangeKind.CHANGED
    feed.publish("a", "one")

    third, pull = pulling(parse_position(changes[-1].position))

    assert ids(third.receive(feed.page(pull))) == ["a"]


def test_position_after_catching_up_holds_no_marks() -> None:
    """[SF-045]: marks of versions that are gone are not kept."""
    state, pull = pulling(FollowPosition("5", 5, ("00" * 24,)))
    assert state.position is not None and state.position.delivered
    state.receive(PageReceived(pull.request_no, (entry("a"),), "6", "6", 5, 6))

    assert state.position == FollowPosition("6", 6)


def test_memory_is_bounded() -> None:
    """[SF-109]: only versions that are remembered can be told to be repetitions."""
    state, pull = pulling(remember=2)
    items = tuple(entry(item_id) for item_id in "abc")
    state.receive(PageReceived(pull.request_no, items, "1", "3", 0, 3))
    outputs = state.receive(GapSuspected())
    assert isinstance(outputs[0], SubscribeRequest)
    (pull,) = pulls(state.receive(SubscriptionAccepted(outputs[0].request_no)))

    (again,) = pulls(state.receive(CursorRefused(pull.request_no)))

    assert ids(state.receive(PageReceived(again.request_no, items, "1", "3", 0, 3))) == ["a"]


# What kind of change


EDITED = Atom(published="2026-01-01T00:00:00Z", updated="2026-01-02T00:00:00Z")
FRESH = Atom(published="2026-01-01T00:00:00Z", updated="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("before", "after", "what", "kind"),
    [
        (5, 6, entry("a"), ChangeKind.NEW),
        (5, 6, entry("a", atom=EDITED), ChangeKind.NEW),
        (5, 5, entry("a"), ChangeKind.CHANGED),
        (5, 5, entry("a", atom=FRESH), ChangeKind.CHANGED),
        (None, 6, entry("a"), ChangeKind.NEW),
        (None, 6, entry("a", atom=EDITED), ChangeKind.CHANGED),
        (5, None, entry("a", atom=FRESH), ChangeKind.NEW),
        (5, 9, entry("a", atom=EDITED), ChangeKind.CHANGED),
        (5, 6, entry("a", deleted=True), ChangeKind.DELETED),
        (5, 5, entry("a", left=True), ChangeKind.LEFT),
        (5, 6, entry("a", left=True), ChangeKind.LEFT),
        (5, 5, ReceivedItem("a", deleted=True), ChangeKind.DELETED),
    ],
)
def test_kind_of_a_push_by_totals_then_by_dates(
    before: int | None, after: int | None, what: ReceivedItem, kind: ChangeKind
) -> None:
    """[SF-095] [SF-099]: the total tells a new item from a changed one."""
    state = in_step("5", before)

    assert kinds(state.receive(push("5", "6", what, total=after))) == [kind]


def test_kind_of_an_item_seen_before_is_changed() -> None:
    """[SF-048]"""
    state = in_step("5", None)
    state.receive(push("5", "6", entry("a")))

    assert kinds(state.receive(push("6", "7", entry("a", "two")))) == [ChangeKind.CHANGED]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (8, [ChangeKind.NEW] * 3),
        (5, [ChangeKind.CHANGED] * 3),
        (7, [ChangeKind.NEW, ChangeKind.CHANGED, ChangeKind.NEW]),
    ],
)
def test_kind_of_a_pulled_change_by_totals_then_by_dates(count: int, expected: list[ChangeKind]) -> None:
    """[SF-095]: three items behind L, over two pages."""
    state, pull = pulling(FollowPosition("5", 5), page_items=2)
    items = (entry("a", atom=FRESH), entry("b", atom=EDITED), entry("c", atom=FRESH))

    outputs = state.receive(PageReceived(pull.request_no, items[:2], "6", "7", count - 3, count))
    outputs += state.receive(PageReceived(pull.request_no + 1, items[2:], "8", "8", count - 1, count))

    assert kinds(outputs) == expected and outputs[-1] == CaughtUp()


def test_kind_after_pushes_in_a_series_counts_from_there() -> None:
    """[SF-095]: a push that was taken between two pages moves the total that growth is counted from."""
    state, pull = pulling(FollowPosition("5", 5))
    state.receive(push("5", "6", entry("a"), total=6))
    state.receive(push("7", "8", entry("c"), total=6))
    outputs = state.receive(PageReceived(pull.request_no, count=5))
    (again,) = pulls(outputs)

    outputs += state.receive(PageReceived(again.request_no, (entry("b"),), "8", "8", 5, 6))

    assert kinds(outputs) == [ChangeKind.NEW, ChangeKind.CHANGED]
