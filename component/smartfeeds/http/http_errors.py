"""Exceptions as HTTP responses: a status and a JSON problem (RFC 9457); the HTTP side of `xmpp/stanza_errors.py`."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.http.replies import Reply

_log = structlog.get_logger()

PROBLEM = "application/problem+json"
# Browsers look at the first scheme of a line alone: it is the one that they can ask a person for.
CHALLENGE = 'Basic realm="smartfeeds: a token as the password", charset="UTF-8", Bearer realm="smartfeeds"'
WHO = "the feed is closed: send a token"
RETRY_AFTER_S = 5
STORE_AWAY = "the store cannot be used at the moment"

STATUSES: Mapping[Condition, HTTPStatus] = {
    Condition.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    Condition.NODEID_REQUIRED: HTTPStatus.BAD_REQUEST,
    Condition.JID_REQUIRED: HTTPStatus.BAD_REQUEST,
    Condition.INVALID_JID: HTTPStatus.BAD_REQUEST,
    Condition.ITEM_REQUIRED: HTTPStatus.BAD_REQUEST,
    Condition.PAYLOAD_REQUIRED: HTTPStatus.BAD_REQUEST,
    Condition.INVALID_PAYLOAD: HTTPStatus.BAD_REQUEST,
    Condition.INVALID_OPTIONS: HTTPStatus.BAD_REQUEST,
    Condition.JID_MALFORMED: HTTPStatus.BAD_REQUEST,
    Condition.NOT_ACCEPTABLE: HTTPStatus.NOT_ACCEPTABLE,
    Condition.UNSUPPORTED_ACCESS_MODEL: HTTPStatus.BAD_REQUEST,
    Condition.PAYLOAD_TOO_BIG: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Condition.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Condition.NOT_AUTHORIZED: HTTPStatus.UNAUTHORIZED,
    Condition.NOT_SUBSCRIBED_READER: HTTPStatus.FORBIDDEN,
    Condition.PENDING_SUBSCRIPTION: HTTPStatus.FORBIDDEN,
    Condition.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
    Condition.CLOSED_NODE: HTTPStatus.FORBIDDEN,
    Condition.ITEM_NOT_FOUND: HTTPStatus.NOT_FOUND,
    Condition.NOT_SUBSCRIBED: HTTPStatus.CONFLICT,
    Condition.CONFLICT: HTTPStatus.CONFLICT,
    Condition.PRECONDITION_NOT_MET: HTTPStatus.PRECONDITION_FAILED,
    Condition.UNSUPPORTED: HTTPStatus.BAD_REQUEST,
    Condition.FEATURE_NOT_IMPLEMENTED: HTTPStatus.BAD_REQUEST,
    Condition.TOO_MANY_SUBSCRIPTIONS: HTTPStatus.TOO_MANY_REQUESTS,
    Condition.POLICY_VIOLATION: HTTPStatus.FORBIDDEN,
    Condition.BUSY: HTTPStatus.TOO_MANY_REQUESTS,
    Condition.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Condition.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
# Who says nothing of who it is may be somebody who is let in.
_WHO_ARE_YOU = frozenset({HTTPStatus.FORBIDDEN})


class HttpError(FeedError):
    """A refusal that only this wire knows, under a status of its own."""

    __slots__ = ("headers", "status")

    def __init__(self, status: HTTPStatus, text: str = "", **headers: str) -> None:
        super().__init__(Condition.BAD_REQUEST, text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True, slots=True)
class Problem(Reply):
    """An error as JSON, with the texts that a page for people shows."""

    title: str = ""
    detail: str = ""


def error_reply(error: FeedError, *, anonymous: bool = False, **members: object) -> Problem:
    """The answer to a request that failed. `anonymous`: the caller named nobody. `members` are added to the JSON."""
    own = isinstance(error, HttpError)
    status = error.status if isinstance(error, HttpError) else STATUSES[error.condition]
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if anonymous and not own and status in _WHO_ARE_YOU:
        status = HTTPStatus.UNAUTHORIZED
    if status is HTTPStatus.UNAUTHORIZED:
        headers.setdefault("WWW-Authenticate", CHALLENGE)
    if status in _LATER:
        headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    problem: dict[str, object] = {"title": status.phrase, "status": status.value}
    detail = error.text or (WHO if status is HTTPStatus.UNAUTHORIZED else "")
    if detail:
        problem["detail"] = detail
    if not own:
        problem["condition"] = error.condition.value
    problem.update(members)
    body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    return Problem(body, PROBLEM, status, {"Cache-Control": "no-store", **headers}, status.phrase, detail)


def failure_reply(error: BaseException | None, operation: str, *, anonymous: bool) -> tuple[Reply, str]:
    """The response to an exception and its outcome for the metrics.

    This is the one place that decides what an exception becomes: requests, held pulls and event streams call it. The
    text of an error that is no FeedError does not leave the process: it is logged, and the response names the log entry
    by an incident number. `operation` says in the log what failed.
    """
    if isinstance(error, FeedError):
        outcome = f"http-{error.status.value}" if isinstance(error, HttpError) else error.condition.value
        return error_reply(error, anonymous=anonymous), outcome
    if isinstance(error, StoreError):
        _log.error("store_failed", reason=str(error))
        return error_reply(FeedError(Condition.UNAVAILABLE, STORE_AWAY)), Condition.UNAVAILABLE.value
    incident = secrets.token_hex(4)
    _log.error("request_failed", incident=incident, operation=operation, exc_info=error)
    return error_reply(FeedError(Condition.INTERNAL, f"incident {incident}")), Condition.INTERNAL.value
