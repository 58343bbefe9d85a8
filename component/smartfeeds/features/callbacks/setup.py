"""The client for callbacks, the hub and the cloud, from the settings."""

import secrets
from collections.abc import Callable
from ipaddress import ip_network

from smartfeeds.app.config import Settings
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.features.callbacks.registrations import CallbackLimits
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.cloud.cloud import CloudOptions, CloudServer
from smartfeeds.features.cloud.messages import own_cloud
from smartfeeds.features.cloud.protocol import CloudProtocol
from smartfeeds.features.hub.hub import Hub, HubOptions
from smartfeeds.net.callbacks import CallbackClient
from smartfeeds.service.feeds import FeedService

_CHALLENGE_BYTES = 16  # 128 bits (WS-033)


def callback_client(settings: Settings) -> CallbackClient:
    """Returns the client for requests to callbacks."""
    return CallbackClient(
        tuple(ip_network(text) for text in settings.section(WebhooksSettings).allowed_networks),
        contact=f"{settings.http.base_url}/" if settings.http.base_url else "",
        ca_file=settings.section(WebhooksSettings).ca_file,
    )


def make_hub(
    settings: Settings,
    service: FeedService,
    client: CallbackClient,
    dispatcher: Dispatcher,
    clock: Callable[[], int],
) -> Hub | None:
    """Returns the hub; None without a public address, because topics and the hub have addresses below it."""
    webhooks = settings.section(WebhooksSettings)
    if not _is_public(settings):
        return None
    options = HubOptions(
        settings.http.base_url,
        webhooks.lease_default_s,
        webhooks.lease_min_s,
        webhooks.lease_max_s,
        webhooks.signature,
        webhooks.requests_per_minute,
        _limits(settings),
        None if webhooks.cloud == "off" else own_cloud(settings.http.base_url, CloudProtocol(webhooks.cloud)),
    )
    return Hub(service, client, dispatcher, options, clock=clock, new_id=_new_challenge)


def make_cloud(
    settings: Settings,
    service: FeedService,
    client: CallbackClient,
    dispatcher: Dispatcher,
    clock: Callable[[], int],
) -> CloudServer | None:
    """Returns the cloud of rssCloud; None if it is off, and without a public address, which feeds name."""
    webhooks = settings.section(WebhooksSettings)
    if not _is_public(settings) or webhooks.cloud == "off":
        return None
    options = CloudOptions(
        settings.http.base_url,
        CloudProtocol(webhooks.cloud),
        requests_per_minute=webhooks.requests_per_minute,
        limits=_limits(settings),
    )
    return CloudServer(service, client, dispatcher, options, clock=clock, new_challenge=_new_challenge)


def _is_public(settings: Settings) -> bool:
    return bool(settings.http.listen and settings.http.base_url)


def _limits(settings: Settings) -> CallbackLimits:
    webhooks = settings.section(WebhooksSettings)
    return CallbackLimits(webhooks.subscriptions_per_feed, webhooks.subscriptions_per_host, webhooks.subscriptions)


def _new_challenge() -> str:
    return secrets.token_hex(_CHALLENGE_BYTES)
