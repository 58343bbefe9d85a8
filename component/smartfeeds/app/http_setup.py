"""The options of the HTTP side, from the settings."""

from ipaddress import ip_network

from smartfeeds.app.config import Settings
from smartfeeds.http.server import ConnectionLimits
from smartfeeds.http.site import HttpOptions
from smartfeeds.parts import Parts


def http_options(settings: Settings, body_bytes: int) -> HttpOptions:
    """Returns the options of the HTTP side. `body_bytes` is the size of the largest body of a request."""
    http = settings.http
    return HttpOptions(
        listen=http.listen,
        domain=settings.component.jid,
        base_url=http.base_url,
        proxies=tuple(ip_network(text) for text in http.proxies),
        poll_default_s=http.poll_default_s,
        poll_max_s=http.poll_max_s,
        heartbeat_s=http.heartbeat_s,
        body_bytes=body_bytes,
        body_s=http.first_request_s,
        bounds=ConnectionLimits(
            connections=http.connections,
            per_address=http.connections_per_address,
            first_request_s=http.first_request_s,
            idle_s=http.idle_s,
            unread_s=http.unread_s,
        ),
    )


def add_parts(parts: Parts, *running: object | None) -> None:
    """Adds what runs of features that are not yet run from their `Feature.run`. None is a part that is switched off."""
    for part in running:
        if part is not None:
            parts.add(part)
