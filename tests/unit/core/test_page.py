"""Result sets: from a request to a plan, row by row of the behaviour table in both directions."""

import pytest

from smartfeeds.core.page import PagePlan, ResultSetRequest, parse_number, plan
from smartfeeds.errors import Condition, FeedError

D, CAP = 50, 500
Set = ResultSetRequest


def planned(request: Set | None, max_items: str | None = None, *, descending: bool = False) -> PagePlan:
    return plan(request, max_items, page_default=D, page_max=CAP, descending=descending)


@pytest.mark.parametrize(
    ("request_", "max_items", "ascending", "descending"),
    [
        pytest.param(
            None,
            None,
            PagePlan(CAP, newest=True, always_result_set=False, spans=True),
            PagePlan(CAP, newest=True, always_result_set=False, spans=True, descending=True),
            id="row 1",
        ),
        pytest.param(
            None,
            "7",
            PagePlan(7, newest=True, spans=True),
            PagePlan(7, newest=True, spans=True, descending=True),
            id="row 2",
        ),
        pytest.param(
            None,
            "501",
            PagePlan(CAP, newest=True, spans=True),
            PagePlan(CAP, newest=True, spans=True, descending=True),
            id="row 2, above the cap",
        ),
        pytest.param(Set(max="5"), None, PagePlan(5), PagePlan(5, newest=True, descending=True), id="row 4"),
        pytest.param(Set(), None, PagePlan(D), PagePlan(D, newest=True, descending=True), id="row 4, empty set"),
        pytest.param(
            Set(max="0", after="U"),
            None,
            PagePlan(0, "U"),
            PagePlan(0, None, "U", newest=True, descending=True),
            id="row 5",
        ),
        pytest.param(
            Set(max="5", after="U"),
            None,
            PagePlan(5, "U"),
            PagePlan(5, None, "U", newest=True, descending=True),
            id="row 6",
        ),
        pytest.param(Set(after=""), None, PagePlan(D), PagePlan(D, newest=True, descending=True), id="row 8"),
        pytest.param(
            Set(before=""),
            None,
            PagePlan(D, newest=True, spans=True, index=False),
            PagePlan(D, descending=True, index=False),
            id="row 9",
        ),
        pytest.param(
            Set(before="", index=""),
            None,
            PagePlan(D, newest=True, spans=True),
            PagePlan(D, descending=True),
            id="row 9, with an index",
        ),
        pytest.param(
            Set(before="U"),
            None,
            PagePlan(D, None, "U", newest=True, spans=True, index=False),
            PagePlan(D, "U", descending=True, index=False),
            id="row 10",
        ),
        pytest.param(
            Set(after="A", before="B"),
            None,
            PagePlan(D, "A", "B"),
            PagePlan(D, "B", "A", newest=True, descending=True),
            id="row 13",
        ),
        pytest.param(
            Set(after="A", before=""),
            None,
            PagePlan(D, "A", newest=True, index=False),
            PagePlan(D, None, "A", descending=True, index=False),
            id="row 15",
        ),
        pytest.param(
            Set(max="5", index="3"),
            None,
            PagePlan(5, offset=3),
            PagePlan(5, newest=True, offset=3, descending=True),
            id="row 16",
        ),
        pytest.param(
            Set(index="3", after="", before=""),
            None,
            PagePlan(D, offset=3),
            PagePlan(D, newest=True, offset=3, descending=True),
            id="row 18, but empty",
        ),
        pytest.param(Set(max="501"), None, PagePlan(CAP), PagePlan(CAP, newest=True, descending=True), id="row 20"),
        pytest.param(
            Set(max="3"),
            "7",
            PagePlan(3, newest=True, spans=True),
            PagePlan(3, newest=True, spans=True, descending=True),
            id="row 21",
        ),
        pytest.param(
            Set(max="7"),
            "3",
            PagePlan(3, newest=True, spans=True),
            PagePlan(3, newest=True, spans=True, descending=True),
            id="row 21, greater max",
        ),
        pytest.param(
            Set(max="600"),
            "700",
            PagePlan(CAP, newest=True, spans=True),
            PagePlan(CAP, newest=True, spans=True, descending=True),
            id="row 21, above the cap",
        ),
        pytest.param(
            Set(max="3", after=""), "7", PagePlan(3), PagePlan(3, newest=True, descending=True), id="row 29, after"
        ),
        pytest.param(
            Set(max="3", index="2"),
            "7",
            PagePlan(3, offset=2),
            PagePlan(3, newest=True, offset=2, descending=True),
            id="row 29, index",
        ),
        pytest.param(
            Set(before=""),
            "7",
            PagePlan(7, newest=True, spans=True, index=False),
            PagePlan(7, descending=True, index=False),
            id="row 29, no max",
        ),
        pytest.param(
            Set(),
            "7",
            PagePlan(7, newest=True, spans=True),
            PagePlan(7, newest=True, spans=True, descending=True),
            id="row 21, empty set",
        ),
        pytest.param(Set(max=" 5 "), None, PagePlan(5), PagePlan(5, newest=True, descending=True), id="blanks"),
    ],
)
def test_plan_of_a_request_is_its_row(
    request_: Set | None, max_items: str | None, ascending: PagePlan, descending: PagePlan
) -> None:
    """[SF-019] [SF-020] [SF-021] [SF-022] [SF-093] [xep-map 192] [xep-map 195] [xep-map 201] [xep-map 226]"""
    assert planned(request_, max_items) == ascending
    assert planned(request_, max_items, descending=True) == descending


@pytest.mark.parametrize(
    ("request_", "max_items"),
    [
        pytest.param(Set(index="1", after="U"), None, id="row 18, after"),
        pytest.param(Set(index="1", before="U"), None, id="row 18, before"),
        *[
            pytest.param(Set(max=text), None, id=f"row 19, max {text!r}")
            for text in ("-1", "abc", "1.5", "", "+1", "1 0", "1" * 19, "１")
        ],
        *[pytest.param(Set(index=text), None, id=f"row 19, index {text!r}") for text in ("-1", "x", "")],
        *[pytest.param(None, text, id=f"row 28, {text!r}") for text in ("0", "-1", "many", "")],
        pytest.param(Set(max="5"), "0", id="row 28, with a set"),
        pytest.param(Set(max="x"), "5", id="row 19, with max_items"),
    ],
)
def test_plan_of_a_malformed_request_is_a_bad_request(request_: Set | None, max_items: str | None) -> None:
    """[xep-map 200]"""
    for descending in (False, True):
        with pytest.raises(FeedError) as caught:
            planned(request_, max_items, descending=descending)
        assert caught.value.condition is Condition.BAD_REQUEST


def test_parse_number_takes_whole_numbers_from_nought() -> None:
    assert (parse_number("0", "x"), parse_number("007", "x"), parse_number("9" * 18, "x")) == (0, 7, 10**18 - 1)


@pytest.mark.parametrize("separator", ["\x1c", "\x1f", "\x85", " "])
def test_parse_number_ignores_all_white_space_around_it(separator: str) -> None:
    assert parse_number(f"{separator}5{separator}", "x") == 5
