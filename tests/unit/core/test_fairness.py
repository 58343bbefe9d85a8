"""Fair turns with costs that the tests make up: no clock, no jobs."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.fairness import FairOrder, Share, Shares


class Named(Share):
    def __init__(self, name: str, cost: float = 1.0) -> None:
        super().__init__()
        self.name = name
        self.each = cost


def serve(order: FairOrder[Named], times: int) -> list[str]:
    """Serves senders that always have something waiting, and charges each what one job of it costs."""
    names = []
    for _ in range(times):
        share = order.pop()
        share.cost += share.each
        order.enter(share)
        names.append(share.name)
    return names


def order_of(*shares: Named) -> FairOrder[Named]:
    order: FairOrder[Named] = FairOrder()
    for share in shares:
        order.enter(share)
    return order


@given(st.lists(st.integers(1, 1_000), min_size=2, max_size=8))
def test_busy_senders_get_equal_cost_and_not_equal_turns(costs: list[int]) -> None:
    """Whatever one job of each costs, they never differ by more than the most costly job."""
    shares = [Named(str(number), cost) for number, cost in enumerate(costs)]
    order = order_of(*shares)

    for _ in range(200):
        serve(order, 1)
        charged = [share.cost for share in shares]
        assert max(charged) - min(charged) <= max(costs)


def test_senders_of_equal_cost_alternate_in_the_order_in_which_they_came() -> None:
    order = order_of(Named("a"), Named("b"), Named("c"))

    assert serve(order, 7) == list("abcabca")


def test_idle_sender_is_next_and_has_saved_nothing_up() -> None:
    busy, late = Named("busy"), Named("late")
    order = order_of(busy)
    serve(order, 1_000)

    order.enter(late)

    assert serve(order, 1) == ["late"]
    assert Counter(serve(order, 100)) == {"busy": 50, "late": 50}


def test_sender_enters_once_until_it_is_served() -> None:
    share = Named("a")
    order = order_of(share, share)

    assert order.pop() is share
    assert not order.waiting
    with pytest.raises(IndexError):
        order.pop()


def test_cost_that_is_charged_while_a_sender_waits_moves_it_back() -> None:
    """The cost of a job is often known only when the next one of its sender waits."""
    first, second = Named("first"), Named("second")
    order = order_of(first, second)

    first.cost += 5.0

    assert serve(order, 6) == ["second"] * 5 + ["first"]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.data())
def test_what_is_put_back_comes_next_in_its_order(names: list[str], data: st.DataObject) -> None:
    """Also where senders have several jobs, and where some of them wait with further jobs."""
    shares = {name: Named(name) for name in "abc"}
    waiting = Counter(names)
    order: FairOrder[Named] = FairOrder()
    for name in names:
        order.enter(shares[name])

    def take() -> Named:
        share = order.pop()
        share.cost += 1.0
        waiting[share.name] -= 1
        if waiting[share.name]:
            order.enter(share)
        return share

    taken = [take() for _ in range(data.draw(st.integers(1, len(names))))]
    for share in reversed(taken):
        waiting[share.name] += 1
        order.put_back(share, 1.0)

    assert [take() for _ in taken] == taken
    assert sum(waiting.values()) == len(names) - len(taken)


def test_cleared_order_is_empty_and_costs_stay() -> None:
    served, other = Named("served"), Named("other")
    order = order_of(served, other)
    serve(order, 2)
    served.cost += 3.0

    order.clear()

    assert not order.waiting
    for share in (served, other):
        order.enter(share)
    assert serve(order, 5) == ["other"] * 3 + ["served", "other"]


def test_shares_of_idle_senders_are_forgotten_and_those_of_busy_ones_are_not() -> None:
    busy: set[str] = {"busy"}
    shares: Shares[str, Named] = Shares(Named, lambda share: share.name not in busy, 8)
    first = shares["busy"]

    for number in range(100):
        assert shares[f"s{number}"].name == f"s{number}"
        assert len(shares) <= 8

    assert shares["busy"] is first


def test_shares_of_many_busy_senders_are_searched_seldom() -> None:
    """Else every new sender of a crowd would look at all the others."""
    looks: Counter[str] = Counter()

    def is_idle(share: Named) -> bool:
        looks[share.name] += 1
        return False

    shares: Shares[str, Named] = Shares(Named, is_idle, 8)
    for number in range(1_000):
        shares[str(number)]

    assert len(shares) == 1_000
    assert sum(looks.values()) < 2 * 1_000
