"""Exceptions as HTTP responses: a status and a JSON problem (RFC 9457); the HTTP side of `xmpp/stanza_errors.py`."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from smartfeeds.errors import (
    Condition,
    FeedError,
    StoreClosedError,
    StoreError,
    store_failure,
)
from smartfeeds.http.replies import Reply
from smartfeeds.texts import N_

_log = structlog.get_logger()

PROBLEM = "application/problem+json"
PLAIN_TEXT = "text/plain; charset=utf-8"
# Basic comes first: browsers read only the first scheme of a line, and they can ask a person for a password only.
BASIC_CHALLENGE = 'Basic realm="smartfeeds: a token as the password", charset="UTF-8"'
BEARER_CHALLENGE = 'Bearer realm="smartfeeds"'
CHALLENGE = f"{BASIC_CHALLENGE}, {BEARER_CHALLENGE}"
CLOSED = N_("the feed is closed: send a token")
RETRY_AFTER_S = 5
STORE_AWAY = N_("the store cannot be used at the moment")

_CONDITIONS: Mapping[HTTPStatus, tuple[Condition, ...]] = {
    HTTPStatus.BAD_REQUEST: (
        *(Condition.BAD_REQUEST, Condition.NODEID_REQUIRED, Condition.JID_REQUIRED, Condition.INVALID_JID),
        *(Condition.ITEM_REQUIRED, Condition.PAYLOAD_REQUIRED, Condition.INVALID_PAYLOAD, Condition.INVALID_OPTIONS),
        *(Condition.ITEM_FORBIDDEN, Condition.JID_MALFORMED, Condition.UNSUPPORTED_ACCESS_MODEL),
        *(Condition.UNSUPPORTED, Condition.FEATURE_NOT_IMPLEMENTED),
    ),
    HTTPStatus.UNAUTHORIZED: (Condition.NOT_AUTHORIZED,),
    HTTPStatus.FORBIDDEN: (
        *(Condition.FORBIDDEN, Condition.NOT_SUBSCRIBED_READER, Condition.PENDING_SUBSCRIPTION),
        *(Condition.NOT_ALLOWED, Condition.CLOSED_NODE, Condition.PRESENCE_REQUIRED, Condition.POLICY_VIOLATION),
    ),
    HTTPStatus.NOT_FOUND: (Condition.ITEM_NOT_FOUND,),
    HTTPStatus.NOT_ACCEPTABLE: (Condition.NOT_ACCEPTABLE,),
    HTTPStatus.CONFLICT: (Condition.NOT_SUBSCRIBED, Condition.CONFLICT, Condition.NODE_FULL),
    HTTPStatus.GONE: (Condition.GONE,),
    HTTPStatus.PRECONDITION_FAILED: (Condition.PRECONDITION_NOT_MET,),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (Condition.PAYLOAD_TOO_BIG,),
    HTTPStatus.TOO_MANY_REQUESTS: (Condition.TOO_MANY_SUBSCRIPTIONS, Condition.BUSY),
    HTTPStatus.INTERNAL_SERVER_ERROR: (Condition.INTERNAL,),
    HTTPStatus.SERVICE_UNAVAILABLE: (Condition.UNAVAILABLE,),
}
STATUSES = {condition: status for status, conditions in _CONDITIONS.items() for condition in conditions}
# Pages of other hosts may read every error (CORS). The wildcard excludes requests to which the browser added a password
# or a cookie, and errors are not cached. So such a page learns only what it may ask without credentials, or with a
# token that it knows.
_OF_EVERY_ERROR = {
    "Cache-Control": "no-store",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Allow, Retry-After, WWW-Authenticate",
}
_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class HttpError(FeedError):
    """An error that exists only over HTTP, with its own status."""

    __slots__ = ("headers", "status")

    def __init__(self, status: HTTPStatus, text: str = "", **headers: str) -> None:
        super().__init__(Condition.BAD_REQUEST, text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class InsufficientScopeError(FeedError):
    """The token of a request does not suffice. Its text says which scope on which feeds would."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Problem(Reply):
    """An error as JSON, with the texts that a page for people shows. `lacks_scope`: the token was insufficient, so the
    caller may have the right nevertheless."""

    title: str = ""
    detail: str = ""
    lacks_scope: bool = False


def error_reply(error: FeedError, /, *, anonymous: bool = False, **members: object) -> Problem:
    """The response to a request that failed. `anonymous`: it had no credentials. `members` are added to the JSON."""
    problem: dict[str, object] = {}
    detail = error.text
    if isinstance(error, HttpError):
        status, headers = error.status, dict(error.headers)
    else:
        status, headers = STATUSES[error.condition], {}
        problem["condition"] = error.condition.value
        # An anonymous caller may have the right after a login, so it is asked for credentials.
        if anonymous and status is HTTPStatus.FORBIDDEN:
            status = HTTPStatus.UNAUTHORIZED
            if error.condition is Condition.CLOSED_NODE:  # its text is about membership, which needs a name
                detail = ""
    if status is HTTPStatus.UNAUTHORIZED:
        headers.setdefault("WWW-Authenticate", CHALLENGE)
    if status in _LATER:
        headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    problem |= {"title": status.phrase, "status": status.value}
    if not detail and status is HTTPStatus.UNAUTHORIZED:
        detail = CLOSED
    if detail:
        problem["detail"] = detail
    problem.update(members)
    body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    lacks_scope = isinstance(error, InsufficientScopeError)
    return Problem(body, PROBLEM, status, {**_OF_EVERY_ERROR, **headers}, status.phrase, detail, lacks_scope)


def as_text(reply: Reply) -> Reply:
    """A problem as plain text, and every other reply unchanged."""
    if not isinstance(reply, Problem):
        return reply
    return Reply(f"{reply.detail or reply.title}\n".encode(), PLAIN_TEXT, reply.status, reply.headers)


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
        if not isinstance(error, StoreClosedError):
            _log.error("store_failed", reason=str(error))
        failure = store_failure(error, Condition.UNAVAILABLE, STORE_AWAY)
        return error_reply(failure), failure.condition.value
    incident = secrets.token_hex(4)
    _log.error("request_failed", incident=incident, operation=operation, exc_info=error)
    return error_reply(FeedError(Condition.INTERNAL, f"incident {incident}")), Condition.INTERNAL.value
