"""The client for callbacks, and the end of registrations, in the running service."""

import secrets
from functools import partial
from typing import Final

from smartfeeds.app.feature import Host, Running
from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.delivery.sweeps import Sweep
from smartfeeds.features.callbacks.registrations import due_callbacks
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.net.clients import CallbackClient

_CHALLENGE_BYTES: Final = 16  # 128 bits (WS-033)
# Deliveries check the end of a lease themselves (WS-046), so this sweep only removes rows.
_ENDS: Final = Sweep("callbacks", due_callbacks, 60.0)


def run_callbacks(host: Host) -> Running:
    """Returns the tools of the hub and the cloud, and the duty that removes registrations whose time is over."""
    settings, http = host.settings.section(WebhooksSettings), host.settings.http
    client = CallbackClient(
        parse_networks(settings.allowed_networks),
        contact=f"{http.base_url}/" if http.base_url else "",
        ca_file=settings.ca_file,
    )
    tools = CallbackTools(
        host.service,
        client,
        host.dispatcher,
        settings,
        http.base_url if http.listen else "",
        host.now_us,
        partial(secrets.token_hex, _CHALLENGE_BYTES),
    )
    return Running(duties=((_ENDS.name, partial(_ENDS.run, host.service)),), parts=(tools,), clients=(client,))
