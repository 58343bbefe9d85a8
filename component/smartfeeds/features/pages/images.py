"""Writes the images of entries into pages, by the policy of the operator (`look.ImagePolicy`)."""

from collections.abc import Callable
from functools import partial
from html import escape, unescape

from smartfeeds.features.pages.look import ImagePolicy, SiteLook
from smartfeeds.texts import ENGLISH, N_, Texts

LINK_REL = "noopener noreferrer nofollow ugc"
_IN_ENGLISH = Texts(ENGLISH)

# Returns the HTML for an image: its address and its label as they stand in HTML, and whether it is inside a link.
ImageWriter = Callable[[str, str, bool], str]


def image_link(source: str, label: str, in_link: bool, texts: Texts = _IN_ENGLISH) -> str:
    """Returns a link to the image at its host; inside another link only the label."""
    if in_link or not source:
        return _label_text(texts, label)
    return f'<a class="picture" href="{source}" rel="{LINK_REL}">{_link_text(texts, source, label)}</a>'


def image_writer(look: SiteLook, base: str, texts: Texts = _IN_ENGLISH) -> ImageWriter:
    """Returns the writer for the images on the pages of a site under a base path, in one language."""
    links = look.image_links
    if links is None or look.images is ImagePolicy.OFF:
        return partial(image_link, texts=texts)

    def write(source: str, label: str, in_link: bool) -> str:
        address = unescape(source)
        if not address.startswith(("https://", "http://")):
            return _label_text(texts, label)
        path = escape(f"{base}{links.path(address)}")
        if look.images is ImagePolicy.ON:
            return f'<img src="{path}" alt="{label}" loading="lazy" decoding="async">'
        if in_link:
            return _label_text(texts, label)
        # Without a script the link opens the image; the script replaces the link with it.
        return f'<a class="picture load" href="{path}" data-label="{label}">{_link_text(texts, source, label)}</a>'

    return write


def _label_text(texts: Texts, label: str) -> str:
    return texts.say(N_("[picture: {label}]"), label=label) if label else texts.say(N_("[picture]"))


def _link_text(texts: Texts, source: str, label: str) -> str:
    return _label_text(texts, label or source.partition("?")[0].rstrip("/").rpartition("/")[2] or source)
