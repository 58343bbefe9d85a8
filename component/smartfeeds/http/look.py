"""The look of the site, as the operator configures it."""

from dataclasses import dataclass
from enum import Enum


class ImagePolicy(Enum):
    """How pages show the images of entries. They are loaded through this service, so that their hosts do not learn the
    addresses of readers."""

    OFF = "off"  # a link
    CLICK = "click"  # a link that loads the image into the page
    ON = "on"


@dataclass(frozen=True, slots=True)
class SiteLook:
    """The name of the site, its accent colour (`#rrggbb`, "" for the default), the path of its logo ("" for the
    default) and how pages show images."""

    name: str = "Smart Feeds"
    accent: str = ""
    logo: str = ""
    images: ImagePolicy = ImagePolicy.OFF


DEFAULT_LOOK = SiteLook()
