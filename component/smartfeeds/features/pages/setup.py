"""The look of the site, and what loads the images of entries, from the settings."""

import hmac

from smartfeeds.app.config import Settings
from smartfeeds.app.feature import Host, Running
from smartfeeds.features.pages.frame import ChatDoor
from smartfeeds.features.pages.image_requests import ImageFetcher
from smartfeeds.features.pages.look import ImageLinks, ImagePolicy, SiteLook
from smartfeeds.features.pages.settings import SiteSettings
from smartfeeds.features.pages.site_look import accent_file, logo_file
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.xmpp.command_sessions import session_key

# A reader waits for the image. Everybody who publishes chooses addresses of images, and everybody who opens the path of
# an image makes the service request it. So no setting allows networks here: those of `sources.allowed_networks` are for
# feeds that admins choose, and this part does not know from which feed an entry came.
IMAGE_LIMITS = FetchLimits(idle_s=10.0, total_s=20.0)


def run_pages(host: Host) -> Running:
    """Returns what runs: the client that loads images. The look of the site is a part, too."""
    fetcher = Fetcher(IMAGE_LIMITS, limiter=host.limiter)

    async def fetch(address: str, accept: str, max_bytes: int) -> bytes:
        return (await fetcher.get(address, accept=accept, max_bytes=max_bytes)).body

    parts = (_look(host.settings), ImageFetcher(fetch), ChatDoor(host.answers_chat))
    return Running(parts=parts, clients=(fetcher,))


def _look(settings: Settings) -> SiteLook:
    site = settings.section(SiteSettings)
    return SiteLook(
        site.name,
        accent_file(site.accent),
        None if site.logo is None else logo_file(site.logo.suffix.lower(), site.read_logo()),
        images=ImagePolicy(site.images),
        image_links=None if site.images == "off" else _image_links(settings),
    )


def _image_links(settings: Settings) -> ImageLinks:
    """The paths of images, the same in all processes of the service and after a restart."""
    key = session_key(settings.component.reveal_secret(), settings.component.jid)
    return ImageLinks(hmac.digest(key, b"images", "sha256"))
