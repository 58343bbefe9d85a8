"""How pages show the images of entries, by the choice of the operator (`http.look.ImagePolicy`)."""

from collections.abc import Callable
from html import escape, unescape

from smartfeeds.http.look import ImagePolicy, SiteLook

LINK_REL = "noopener noreferrer nofollow ugc"

# Returns the HTML for an image: its address and its label as they stand in HTML, and whether it is inside a link.
ImageWriter = Callable[[str, str, bool], str]


def image_link(source: str, label: str, in_link: bool) -> str:
    """Returns a link to the image at its host; inside another link only the label."""
    if in_link or not source:
        return _label_text(label)
    return f'<a class="picture" href="{source}" rel="{LINK_REL}">{_link_text(source, label)}</a>'


def image_writer(look: SiteLook, base: str) -> ImageWriter:
    """Returns the writer for the images on the pages of a site under a base path."""
    links = look.image_links
    if links is None or look.images is ImagePolicy.OFF:
        return image_link

    def write(source: str, label: str, in_link: bool) -> str:
        address = unescape(source)
        if not address.startswith(("https://", "http://")):
            return _label_text(label)
        path = escape(f"{base}{links.path(address)}")
        if look.images is ImagePolicy.ON:
            return f'<img src="{path}" alt="{label}" loading="lazy" decoding="async">'
        if in_link:
            return _label_text(label)
        # Without a script the link opens the image; the script replaces the link with it.
        return f'<a class="picture load" href="{path}" data-label="{label}">{_link_text(source, label)}</a>'

    return write


def _label_text(label: str) -> str:
    return f"[picture: {label}]" if label else "[picture]"


def _link_text(source: str, label: str) -> str:
    return label or source.partition("?")[0].rstrip("/").rpartition("/")[2] or source
