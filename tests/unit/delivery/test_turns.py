"""Whose turn it is: feeds, consumers and hosts, without any delivery."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.limits import Quota
from smartfeeds.delivery.turns import DeliveryTurns

HOSTS = {"hook:a": "h", "hook:b": "h", "hook:c": "h", "hook:d": "i"}


def host_of(consumer: Consumer) -> str:
    return HOSTS.get(consumer.name, "")


class Turns(DeliveryTurns):
    """A queue that has the places of the hosts for itself."""

    def __init__(self, at_once: int) -> None:
        self.places = Quota(at_once)
        super().__init__(host_of, self.places)

    def release(self, host: str) -> None:
        self.places.release(host)
        self.free(host)


def taken(turns: DeliveryTurns) -> list[tuple[int, str]]:
    """Everybody who can go on now, in order."""
    found = []
    while (turn := turns.take()) is not None:
        found.append((turn[0].node_no, turn[0].name[-1]))
    return found


def test_feeds_take_turns_and_so_do_the_consumers_of_a_feed() -> None:
    turns = Turns(9)
    for node_no, names in ((1, "xyz"), (2, "x"), (3, "xy")):
        for name in names:
            turns.add(Consumer(node_no, f"hook:{name}"))

    assert taken(turns) == [(1, "x"), (2, "x"), (3, "x"), (1, "y"), (3, "y"), (1, "z")]


def test_consumers_of_a_host_without_a_place_wait_and_are_the_next_when_one_is_free() -> None:
    turns = Turns(1)
    for name in "abcx":
        turns.add(Consumer(1, f"hook:{name}"))
    assert taken(turns) == [(1, "a"), (1, "x")]
    assert turns.others_wait("h") and not turns.others_wait("i")
    turns.add(Consumer(2, "hook:x"))
    turns.release("h")
    turns.release("")

    assert taken(turns) == [(1, "b"), (2, "x")]
    turns.release("h")
    assert taken(turns) == [(1, "c")]
    turns.release("h")
    assert taken(turns) == [] and not turns.others_wait("h")


CONSUMERS = st.builds(Consumer, st.integers(1, 3), st.sampled_from([*HOSTS, "hook:x", "hook:y"]))
STEPS = st.one_of(
    st.tuples(st.just("add"), CONSUMERS), st.tuples(st.just("discard"), CONSUMERS), st.just(("take", None))
)


@given(st.lists(STEPS, max_size=60))
def test_each_consumer_waits_once_and_no_host_has_more_than_its_places(
    steps: list[tuple[str, Consumer | None]],
) -> None:
    turns = Turns(2)
    waiting: set[Consumer] = set()
    running: list[Consumer] = []
    for name, consumer in steps:
        if consumer is None:
            turn = turns.take()
            if turn is not None:
                running.append(turn[0])
                waiting.remove(turn[0])
                places = Counter(map(host_of, running))
                assert turn[1] == host_of(turn[0])
                assert all(count <= 2 for host, count in places.items() if host)
            elif running:
                turns.release(host_of(running.pop(0)))
        elif name == "add":
            waiting.add(consumer)
            turns.add(consumer)
        else:
            waiting.discard(consumer)
            turns.discard(consumer)
    while waiting:
        for consumer in running:
            turns.release(host_of(consumer))
        running = []
        while (turn := turns.take()) is not None:
            waiting.remove(turn[0])
            running.append(turn[0])
        assert running, "somebody waits and nobody can go on"


def test_consumer_that_was_discarded_leaves_no_empty_queue_that_counts_as_waiting() -> None:
    turns = Turns(1)
    turns.add(Consumer(1, "hook:x"))
    turns.add(Consumer(2, "hook:a"))
    turns.add(Consumer(2, "hook:b"))
    assert taken(turns) == [(1, "x"), (2, "a")]
    turns.add(Consumer(3, "hook:x"))
    turns.discard(Consumer(3, "hook:x"))
    turns.discard(Consumer(2, "hook:b"))

    assert not turns.others_wait("h")
    assert (turns._queue, turns._at_bound) == ({}, {})


def test_queues_share_the_places_of_a_host() -> None:
    places = Quota(1)
    first, second = DeliveryTurns(host_of, places), DeliveryTurns(host_of, places)
    first.add(Consumer(1, "hook:a"))
    second.add(Consumer(1, "hook:b"))
    assert (taken(first), taken(second)) == ([(1, "a")], [])
    places.release("h")
    first.free("h")
    second.free("h")
    assert taken(second) == [(1, "b")]
