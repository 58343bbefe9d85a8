"""Writes the images of entries into pages: files of this service as images, those of other hosts by the policy of the
operator (`look.ImagePolicy`)."""

import re
from collections.abc import Callable
from html import escape, unescape
from urllib.parse import unquote

from smartfeeds.core.urls import ENCLOSURES, FILES
from smartfeeds.features.pages.look import ImagePolicy, SiteLook
from smartfeeds.net.addresses import is_private
from smartfeeds.texts import ENGLISH, N_, Texts

LINK_REL = "noopener noreferrer nofollow ugc"
_FILE = re.compile(rf"(?:{FILES}|{ENCLOSURES})[^\s?#\\]+")
_DOTS = frozenset({".", ".."})
_IN_ENGLISH = Texts(ENGLISH)

# Returns the HTML for an image: its address and its label as they stand in HTML, and whether it is inside a link.
ImageWriter = Callable[[str, str, bool], str]


def image_link(source: str, label: str, in_link: bool, texts: Texts = _IN_ENGLISH) -> str:
    """Returns a link to the image at its host; inside another link only the label."""
    if in_link or not source:
        return _label_text(texts, label)
    return f'<a class="picture" href="{source}" rel="{LINK_REL}">{_link_text(texts, source, label)}</a>'


def file_path(address: str, site_url: str) -> str:
    """Returns the path of a file that this service stores, without the base path; "" for any other address. Readers get
    such a file if they may read its feed.

    A browser requests an image at once, so no other path of this site may be one: with a dot segment the path would be
    another one for the browser.
    """
    path = address.removeprefix(site_url) if site_url and address.startswith(f"{site_url}/") else ""
    is_file = _FILE.fullmatch(path) is not None and _DOTS.isdisjoint(unquote(path).split("/"))
    return path if is_file else ""


def image_writer(look: SiteLook, base: str, texts: Texts = _IN_ENGLISH, site_url: str = "") -> ImageWriter:
    """Returns the writer for the images on the pages of a site under a base path, in one language."""
    links = look.image_links if look.images is not ImagePolicy.OFF else None

    def write(source: str, label: str, in_link: bool) -> str:
        address = unescape(source)
        if path := file_path(address, site_url):
            return f'<img src="{escape(f"{base}{path}")}" alt="{label}" loading="lazy" decoding="async">'
        if links is None:
            return image_link(source, label, in_link, texts)
        if not address.startswith(("https://", "http://")):
            return _label_text(texts, label)
        # The service requests it for nobody. A reader inside that network opens it.
        if _is_in_private_network(address):
            return image_link(source, label, in_link, texts)
        path = escape(f"{base}{links.path(address)}")
        if look.images is ImagePolicy.ON:
            return f'<img src="{path}" alt="{label}" loading="lazy" decoding="async">'
        if in_link:
            return _label_text(texts, label)
        # Without a script the link opens the image; the script replaces the link with it.
        return f'<a class="picture load" href="{path}" data-label="{label}">{_link_text(texts, source, label)}</a>'

    return write


def _is_in_private_network(address: str) -> bool:
    """Whether an address says itself that it is not public. A name may lead to a private network nevertheless."""
    try:
        return is_private(address)
    except ValueError:  # no address that can be requested, so the image is missing
        return False


def _label_text(texts: Texts, label: str) -> str:
    return texts.say(N_("[picture: {label}]"), label=label) if label else texts.say(N_("[picture]"))


def _link_text(texts: Texts, source: str, label: str) -> str:
    return _label_text(texts, label or source.partition("?")[0].rstrip("/").rpartition("/")[2] or source)
