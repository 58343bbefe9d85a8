"""The list of webhooks, for the command line."""

from smartfeeds.core.consumers import Failure
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.webhook.requests import WebhookStatus
from smartfeeds.service.consumer_requests import next_attempt
from smartfeeds.service.resources import Brief, Column, Resource


def _failure(status: WebhookStatus) -> Failure | None:
    return None if status.consumer is None else status.consumer.failure


# The path of an address is often the secret of its receiver, so the list has the hosts only.
WEBHOOKS: Resource[WebhookStatus] = Resource(
    "webhooks",
    "webhook",
    (
        Column("name", lambda status: status.webhook.name),
        Column("node", lambda status: status.webhook.node),
        Column("filter", lambda status: status.webhook.filter),
        Column("host", lambda status: status.webhook.host),
        Column("signed", lambda status: bool(status.webhook.secret)),
        Column("state", lambda status: "new" if status.consumer is None else status.consumer.state.value),
        Column("waiting", lambda status: 0 if status.consumer is None else status.consumer.waiting),
        Column("lag_s", lambda status: 0 if status.consumer is None else status.consumer.lag_us // US_PER_S),
        Column("failures", lambda status: failure.count if (failure := _failure(status)) else 0),
        Column("error", lambda status: failure.error if (failure := _failure(status)) else ""),
        Column("next_attempt", lambda status: next_attempt(failure.next_us) if (failure := _failure(status)) else ""),
    ),
    empty="There are no webhooks. A section [[webhook]] of the configuration adds one.",
    brief=Brief(("name", "node", "host", "state", "waiting", "error"), cut=("error",)),
)
