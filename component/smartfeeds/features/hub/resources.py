"""The list of subscriptions of the hub, for the command line."""

from smartfeeds.core.times import US_PER_S, format_second
from smartfeeds.features.callbacks.resources import last_delivery
from smartfeeds.features.hub.requests import HubStatus
from smartfeeds.service.resources import Brief, Column, Resource

# The addresses of callbacks are secrets of their receivers, so the list has their hosts only.
HUB_SUBSCRIPTIONS: Resource[HubStatus] = Resource(
    "hub",
    "subscription",
    (
        Column("subscription", lambda status: status.callback.callback_no),
        Column("node", lambda status: status.node),
        Column("topic", lambda status: status.callback.topic),
        Column("host", lambda status: status.callback.host),
        Column("reader", lambda status: status.callback.reader),
        Column("state", lambda status: status.phase.value),
        Column("dialect", lambda status: status.dialect),
        Column("lease_end", lambda status: format_second(status.callback.expires_us)),
        Column("waiting", lambda status: status.waiting),
        Column("lag_s", lambda status: status.lag_us // US_PER_S),
        *last_delivery(lambda status: (status.callback, status.failure)),
    ),
    empty="There are no subscriptions.",
    brief=Brief(("subscription", "node", "host", "state", "lease_end")),
)
