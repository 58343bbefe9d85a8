"""The list of registrations of the cloud, for the command line."""

from smartfeeds.core.times import format_second
from smartfeeds.features.callbacks.resources import last_delivery
from smartfeeds.features.cloud.requests import CloudStatus
from smartfeeds.service.resources import Brief, Column, Resource

# The addresses of callbacks are secrets of their receivers, so the list has their hosts only.
REGISTRATIONS: Resource[CloudStatus] = Resource(
    "cloud",
    "registration",
    (
        Column("registration", lambda status: status.callback.callback_no),
        Column("node", lambda status: status.node),
        Column("url", lambda status: status.url),
        Column("host", lambda status: status.callback.host),
        Column("protocol", lambda status: status.protocol.value),
        Column("state", lambda status: status.phase.value),
        Column("expires", lambda status: format_second(status.callback.expires_us)),
        *last_delivery(lambda status: (status.callback, status.failure)),
    ),
    empty="There are no registrations.",
    brief=Brief(("registration", "node", "host", "state", "expires")),
)
