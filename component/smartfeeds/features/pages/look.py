"""The look of the site, as the operator configures it."""

import hashlib
import hmac
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import quote

from smartfeeds.core.urls import IMAGES
from smartfeeds.features.pages.hashed_files import HashedFile
from smartfeeds.http.calls import HttpCall


class ImagePolicy(Enum):
    """The display of images in entries. Images are loaded through this service, so that their hosts do not learn the
    addresses of readers."""

    OFF = "off"  # a link
    CLICK = "click"  # a link that loads the image into the page
    ON = "on"


@dataclass(frozen=True, slots=True)
class ImageLinks:
    """Makes and checks the paths of images. Processes with equal keys accept each other's paths."""

    key: bytes = field(repr=False)

    def path(self, address: str) -> str:
        """Returns the path of the image at an address."""
        return f"{IMAGES}{self.digest(address)}?url={quote(address, safe='')}"

    def digest(self, address: str) -> str:
        """Returns the digest that belongs to an address."""
        # 128 bits: nobody can guess the digest of an address that no page has.
        return hmac.digest(self.key, address.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:32]


@dataclass(frozen=True, slots=True)
class SiteLook:
    """The name of the site, the style sheet with its accent colour and its logo (None for the defaults), how pages show
    images, and the paths of images (None: they are always links to their hosts)."""

    name: str = "Smart Feeds"
    style: HashedFile | None = None
    logo: HashedFile | None = None
    images: ImagePolicy = ImagePolicy.OFF
    image_links: ImageLinks | None = None


DEFAULT_LOOK = SiteLook()


def look_of(call: HttpCall) -> SiteLook:
    """Returns the look of the site that a request is for."""
    return call.parts.find(SiteLook) or DEFAULT_LOOK
