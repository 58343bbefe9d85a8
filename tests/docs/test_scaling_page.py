"""The page about several processes: what it calculates from its measurements."""

import pytest

from bench.capacity import PAGE, PUBLISH, Capacity, Cost, Work, capacity, cost_of, table


def test_calculated_rates_follow_from_the_measurements_of_the_page() -> None:
    page = PAGE.read_text("utf-8")
    rows = list(table(page))

    assert len(rows) == 12
    assert "\n".join(rows) in page


def test_cost_adds_the_parts_of_each_operation() -> None:
    page = f"""
| {PUBLISH}: CPU of service | 600 us | 1,200 us |
| {PUBLISH}: CPU of PostgreSQL | 200 us | 300 us |
| {PUBLISH}: CPU of ejabberd | 50.5 us | 60 us |
| {PUBLISH}: CPU of load generator | 7 us | 8 us |
"""
    work = Work("two items", {PUBLISH: 2})

    assert cost_of(work, page, 1) == Cost(1_200, 501)
    assert cost_of(work, page, 2) == Cost(2_400, 720)


@pytest.mark.parametrize(
    ("cost", "cores", "by_owner", "expected"),
    [
        (Cost(600, 400), 4, False, Capacity(3_600, 3, "cores")),
        # 2 of 64 shards have 32 of 1,000 feeds.
        (Cost(500, 500), 64, True, Capacity(57_600, 64, "`max_connections`, then cores")),
        # With 16 of 1,000 feeds, no process can do more.
        (Cost(900, 100), 128, True, Capacity(62_500, 64, "shards")),
    ],
)
def test_capacity_is_that_of_the_first_limit(cost: Cost, cores: int, by_owner: bool, expected: Capacity) -> None:
    result = capacity(cost, cores, by_owner=by_owner)

    assert result == Capacity(pytest.approx(expected.per_s), expected.processes, expected.limit)
