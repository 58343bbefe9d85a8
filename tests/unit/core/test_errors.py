"""The error tree."""

from smartfeeds.errors import Condition, FeedError, SmartfeedsError, unsupported


def test_feed_error_tells_its_condition_where_it_has_no_text() -> None:
    assert str(FeedError(Condition.FORBIDDEN)) == "forbidden"
    assert str(FeedError(Condition.FORBIDDEN, "not you")) == "not you"
    assert FeedError(Condition.FORBIDDEN).text == ""
    assert isinstance(FeedError(Condition.FORBIDDEN), SmartfeedsError)


def test_unsupported_names_the_feature() -> None:
    error = unsupported("publish", "a view is read only")

    assert (error.condition, error.feature, error.text) == (Condition.UNSUPPORTED, "publish", "a view is read only")
