"""The options of the HTTP side, from the settings."""

import hmac
from ipaddress import ip_network

from smartfeeds.app.config import Settings
from smartfeeds.features.pages.look import ImageLinks, ImagePolicy, SiteLook
from smartfeeds.features.pages.site_look import accent_file, logo_file
from smartfeeds.http.server import ConnectionLimits
from smartfeeds.http.site import HttpOptions
from smartfeeds.xmpp.command_sessions import session_key


def http_options(settings: Settings, body_bytes: int) -> HttpOptions:
    """Returns the options of the HTTP side. `body_bytes` is the size of the largest body of a request."""
    http, site = settings.http, settings.site
    return HttpOptions(
        listen=http.listen,
        domain=settings.component.jid,
        base_url=http.base_url,
        look=SiteLook(
            site.name,
            accent_file(site.accent),
            None if site.logo is None else logo_file(site.logo.suffix.lower(), site.read_logo()),
            images=ImagePolicy(site.images),
            image_links=None if site.images == "off" else _image_links(settings),
        ),
        proxies=tuple(ip_network(text) for text in http.proxies),
        poll_default_s=http.poll_default_s,
        poll_max_s=http.poll_max_s,
        heartbeat_s=http.heartbeat_s,
        body_bytes=body_bytes,
        body_s=http.first_request_s,
        upload_bytes=http.upload_bytes,
        bounds=ConnectionLimits(
            connections=http.connections,
            per_address=http.connections_per_address,
            first_request_s=http.first_request_s,
            idle_s=http.idle_s,
            unread_s=http.unread_s,
        ),
    )


def _image_links(settings: Settings) -> ImageLinks:
    """The paths of images, the same in all processes of the service and after a restart."""
    key = session_key(settings.component.reveal_secret(), settings.component.jid)
    return ImageLinks(hmac.digest(key, b"images", "sha256"))
