"""The client for callbacks and the hub, from the settings."""

import secrets
from collections.abc import Callable
from functools import partial
from ipaddress import ip_network

from smartfeeds.config import Settings
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.net.callbacks import CallbackClient
from smartfeeds.service.callbacks import CallbackLimits
from smartfeeds.service.feeds import FeedService
from smartfeeds.webhooks.hub import Hub, HubOptions

_CHALLENGE_BYTES = 16  # 128 bits (WS-033)


def callback_client(settings: Settings) -> CallbackClient:
    """Returns the client for requests to callbacks."""
    return CallbackClient(
        tuple(ip_network(text) for text in settings.webhooks.allowed_networks),
        contact=f"{settings.http.base_url}/" if settings.http.base_url else "",
        ca_file=settings.webhooks.ca_file,
    )


def make_hub(
    settings: Settings,
    service: FeedService,
    client: CallbackClient,
    dispatcher: Dispatcher,
    clock: Callable[[], int],
) -> Hub | None:
    """Returns the hub; None without a public address, because topics and the hub have addresses below it."""
    webhooks = settings.webhooks
    if not settings.http.listen or not settings.http.base_url:
        return None
    options = HubOptions(
        settings.http.base_url,
        webhooks.lease_default_s,
        webhooks.lease_min_s,
        webhooks.lease_max_s,
        webhooks.signature,
        webhooks.requests_per_minute,
        CallbackLimits(webhooks.subscriptions_per_feed, webhooks.subscriptions_per_host, webhooks.subscriptions),
    )
    return Hub(service, client, dispatcher, options, clock=clock, new_id=partial(secrets.token_hex, _CHALLENGE_BYTES))
