"""Exceptions as responses: one function for requests, held pulls, event streams and rejected connections."""

import json
from http import HTTPStatus

import pytest
from structlog.testing import capture_logs

from smartfeeds.errors import Condition, FeedError, StoreClosedError, StoreError
from smartfeeds.http.http_errors import HttpError, failure_reply


@pytest.mark.parametrize(
    ("error", "anonymous", "status", "outcome"),
    [
        (FeedError(Condition.ITEM_NOT_FOUND, "no such item"), True, 404, "item-not-found"),
        (FeedError(Condition.FORBIDDEN), True, 401, "forbidden"),
        (FeedError(Condition.FORBIDDEN), False, 403, "forbidden"),
        (HttpError(HTTPStatus.NOT_ACCEPTABLE, "no"), True, 406, "http-406"),
        (StoreError("disk full at /var/x"), True, 503, "service-unavailable"),
        (RuntimeError("secret"), True, 500, "internal-server-error"),
        (None, True, 500, "internal-server-error"),
    ],
)
def test_exception_becomes_a_problem_and_an_outcome(
    error: Exception | None, anonymous: bool, status: int, outcome: str
) -> None:
    """[design 5] The text of an error that is no FeedError stays in the log."""
    with capture_logs() as logs:
        reply, told = failure_reply(error, "http_feed", anonymous=anonymous)
    problem = json.loads(reply.body)
    assert (reply.status, problem["status"], told) == (status, status, outcome)
    assert b"secret" not in reply.body and b"/var/x" not in reply.body
    assert [entry["event"] for entry in logs] == {500: ["request_failed"], 503: ["store_failed"]}.get(status, [])
    if status == 500:
        assert logs[0]["incident"] in problem["detail"]
        assert (logs[0]["operation"], logs[0]["exc_info"]) == ("http_feed", error)


def test_request_that_the_stop_overtakes_is_no_incident() -> None:
    with capture_logs() as logs:
        reply, told = failure_reply(StoreClosedError("the store is closed"), "http_feed", anonymous=False)
    assert (reply.status, told, logs) == (503, "service-unavailable", [])
    assert json.loads(reply.body)["detail"] == "the service is stopping; try again later"
