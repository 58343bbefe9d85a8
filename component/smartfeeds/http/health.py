"""Health checks and metrics for the machines of the operator."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from smartfeeds.core.ip_addresses import Network, is_within
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import HttpCall
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
# Headers that proxies add. Behind a proxy that is not in http.proxies, the peer address is that of the proxy.
_FORWARDED = (
    *("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"),
    *("X-Real-IP", "X-Client-IP", "CF-Connecting-IP", "True-Client-IP"),
)


@dataclass(frozen=True, slots=True)
class Health:
    """Handles /healthz, /readyz and /metrics. `reasons` maps each part that does not work to a short reason;
    `metrics_text` returns all metrics, for clients in `metrics_from` only."""

    reasons: Callable[[], Awaitable[Mapping[str, str]]]
    metrics_text: Callable[[], bytes]
    metrics_from: Sequence[Network]

    async def alive(self, call: HttpCall) -> Reply:  # noqa: ARG002 - one signature for all handlers
        """Always success: the process answers."""
        return Reply(b"ok\n", "text/plain; charset=utf-8", headers=_NOW)

    async def ready(self, call: HttpCall) -> Reply:  # noqa: ARG002 - as above
        """Whether requests can be served, and if not, the reasons."""
        reasons = await self.reasons()
        if reasons:
            error = FeedError(Condition.UNAVAILABLE, "a part of the service does not work")
            return error_reply(error, reasons=dict(reasons))
        body = json.dumps({"ready": True}).encode() + b"\n"
        return Reply(body, "application/json; charset=utf-8", headers=_NOW)

    async def metrics(self, call: HttpCall) -> Reply:
        """The metrics in the text format of Prometheus. Raises HttpError for a client that may not read them."""
        if not call.proxied and any(call.header(name) for name in _FORWARDED):
            raise HttpError(HTTPStatus.FORBIDDEN, "the request came through a proxy that is not in http.proxies")
        if call.address != "local" and not is_within(call.address, self.metrics_from):
            raise HttpError(HTTPStatus.FORBIDDEN, "metrics are for the addresses in http.metrics_from")
        return Reply(self.metrics_text(), METRICS, headers=_NOW)
