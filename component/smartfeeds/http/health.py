"""What operators' machines ask: whether the process answers, whether it can do its work, and its metrics (design 5)."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import Call, Network, is_within
from smartfeeds.http.http_errors import HttpError, error_reply
from smartfeeds.http.openapi_schemas import Schema
from smartfeeds.http.operations import Operation
from smartfeeds.http.replies import Reply

METRICS = "text/plain; version=0.0.4; charset=utf-8"
_READY: Schema = {"type": "object", "required": ["ready"], "properties": {"ready": {"const": True}}}

ALIVE = Operation("healthz", "Whether the process answers", {200: {"text/plain": {"const": "ok\n"}}})
READY = Operation("readyz", "Whether the service can do its work, and if not, why", {200: {"application/json": _READY}})
GET_METRICS = Operation(
    "metrics",
    "Metrics for Prometheus, for the addresses in http.metrics_from",
    {200: {"text/plain": {"type": "string"}}},
    errors=(403,),
)
_NOW = {"Cache-Control": "no-store"}
# What proxies write; where it is not believed, the address is the proxy's own and says nothing of who is asking.
_FORWARDED = (
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "X-Client-IP",
    "CF-Connecting-IP",
    "True-Client-IP",
)


@dataclass(frozen=True, slots=True)
class Watch:
    """What there is to be told. `reasons` maps each part that does not work to why, in few words; `metrics` is the
    text of all metrics, which only clients in `metrics_from` are given."""

    reasons: Callable[[], Awaitable[Mapping[str, str]]]
    metrics: Callable[[], bytes]
    metrics_from: Sequence[Network]


class Health:
    """Answers /healthz, /readyz and /metrics."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def alive(self, call: Call) -> Reply:  # noqa: ARG002 - one signature for all handlers
        """Who reads this was answered."""
        return Reply(b"ok\n", "text/plain; charset=utf-8", headers=_NOW)

    async def ready(self, call: Call) -> Reply:  # noqa: ARG002
        """Whether requests can be served, and if not, why."""
        reasons = await self._watch.reasons()
        if reasons:
            error = FeedError(Condition.UNAVAILABLE, "a part of the service does not work")
            return error_reply(error, reasons=dict(reasons))
        body = json.dumps({"ready": True}).encode() + b"\n"
        return Reply(body, "application/json; charset=utf-8", headers=_NOW)

    async def metrics(self, call: Call) -> Reply:
        """The metrics in the text format of Prometheus. Raises HttpError for who may not read them."""
        if not call.proxied and any(call.header(name) for name in _FORWARDED):
            raise HttpError(HTTPStatus.FORBIDDEN, "a proxy asks that is not in http.proxies, so nobody knows for whom")
        if call.address != "local" and not is_within(call.address, self._watch.metrics_from):
            raise HttpError(HTTPStatus.FORBIDDEN, "metrics are for the addresses in http.metrics_from")
        return Reply(self._watch.metrics(), METRICS, headers=_NOW)
