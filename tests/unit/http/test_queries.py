"""The query string of a pull."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.queries import MAX_CALLBACK, MAX_QUERY_BYTES, FeedQuery, read_query

READ: dict[str, FeedQuery] = {
    "": FeedQuery(),
    "&&": FeedQuery(),
    "order=created": FeedQuery("order=created"),
    "order=created&max=5": FeedQuery("order=created", max="5"),
    "max=5&order=created": FeedQuery("order=created", max="5"),
    "since=cursor%3A1_0_a&until=time:5": FeedQuery(since="cursor:1_0_a", until="time:5"),
    "since=": FeedQuery(since=""),
    "until": FeedQuery(until=""),
    "%73ince=time:1": FeedQuery(since="time:1"),
    "timeout=0": FeedQuery(timeout_s=0),
    "timeout=007": FeedQuery(timeout_s=7),
    "timeout=999999999999999999": FeedQuery(timeout_s=999_999_999_999_999_999),
    "callback=app.cb": FeedQuery(callback="app.cb"),
    "callback=$._1": FeedQuery(callback="$._1"),
    f"callback={'a' * MAX_CALLBACK}": FeedQuery(callback="a" * MAX_CALLBACK),
    "author=a%26b&author=c&q=x+y": FeedQuery("author=a%26b&author=c&q=x+y"),
    "since=time:1+02": FeedQuery(since="time:1 02"),
    "q=%D1%82": FeedQuery("q=%D1%82"),
}


@pytest.mark.parametrize("raw", READ, ids=lambda raw: raw[:50] or "empty")
def test_the_five_names_are_taken_out_and_the_rest_stays(raw: str) -> None:
    """[SF-054] [SF-055] [SF-056] [SF-057] What is not of the pull is the base URL, as it was written."""
    assert read_query(raw) == READ[raw]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("since=a&since=b", "since must not be repeated"),
        ("max=1&m%61x=1", "max must not be repeated"),
        ("timeout=", "timeout must be a whole number"),
        ("timeout=-1", "timeout must be a whole number"),
        ("timeout=1.5", "timeout must be a whole number"),
        ("timeout=1e3", "timeout must be a whole number"),
        ("timeout=٣", "timeout must be a whole number"),
        (f"timeout={'9' * 19}", "timeout must be a whole number"),
        ("max=x", "max must be a whole number"),
        ("max=-0", "max must be a whole number"),
        ("callback=", "callback must be the name"),
        ("callback=a%0A", "callback must be the name"),
        (f"callback={'a' * (MAX_CALLBACK + 1)}", "callback must be the name"),
        ("callback=alert(1)", "callback must be the name"),
        ("callback=ф", "callback must be the name"),
        ("catgory=blue", "'catgory' is unknown: there are"),
        ("order=random", "order: the value is not valid"),
        ("kind=new&lang=en_GB", "lang: the value is not valid"),
        ("q=%ff", "not UTF-8"),
        ("q=%F0%9F%8E%89", "q has no letters or digits"),
        ("since=%ed%a0%80", "not UTF-8"),
        ("a" * (MAX_QUERY_BYTES + 1), "at most"),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_wrong_is_said(raw: str, told: str) -> None:
    """[SF-056] [A-11] [A-12] [A-24] 400, with the name of what is wrong and never its value."""
    with pytest.raises(FeedError) as caught:
        read_query(raw)
    assert caught.value.condition is Condition.BAD_REQUEST
    assert told in caught.value.text
    assert "alert" not in caught.value.text


def test_a_query_as_a_result_set() -> None:
    """[SF-089] since is after, until is before."""
    page = read_query("since=time:1&until=time:2&max=3").page
    assert (page.after, page.before, page.max) == ("time:1", "time:2", "3")
    assert not read_query("order=created&max=all").is_pull
    for query in ("since=id:a", "until=id:a", "max=1", "order=created&timeout=1"):
        assert read_query(query).is_pull
