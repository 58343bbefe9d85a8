"""Autodiscovery: the feeds and the ESS and NNO files that a web page links to (ESS-024).

`<link rel="alternate" type="..." href="...">` in whatever HTML there is, as far as the parser gets. Addresses are
resolved against the page's, or its `base` element; only http and https ones count. Nothing is opened.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from smartfeeds.core.web_address import read_address
from smartfeeds.formats.html_page import parse_page
from smartfeeds.formats.links import is_absolute, resolve
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.xml import Element

MAX_PAGE_BYTES: Final = 1_000_000  # links stand at the top of a page
MAX_LINKS: Final = 100
_MAX_TITLE: Final = 200
_MAX_ADDRESS: Final = 2_048


class LinkType(Enum):
    """The kind of a link's target."""

    ESS = "application/ess"
    NNO = "application/nno"
    RSS = "application/rss+xml"
    ATOM = "application/atom+xml"
    JSON_FEED = "application/feed+json"


_OTHER_NAMES: Final = {"application/json": LinkType.JSON_FEED}  # JSON Feed 1.0 was announced like this
_TYPES: Final = {kind.value: kind for kind in LinkType} | _OTHER_NAMES


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link of a page: the type of its target, its address and its title."""

    type: LinkType
    href: str
    title: str = ""


def links_of(html: bytes, base: str) -> tuple[PageLink, ...]:
    """The links of an HTML page that came from the address `base`, in the order of the page, each once.

    A page that cannot be read has none. Only the first `MAX_PAGE_BYTES` and `MAX_LINKS` count.
    """
    root = parse_page(html[:MAX_PAGE_BYTES])
    if root is None:
        return ()
    # HTML, "The base element": only the first base element with an address counts.
    addresses = (node.get("href", "").strip() for node in root.iter("base"))
    base = resolve(base, next(filter(None, addresses), ""))
    links: dict[PageLink, None] = {}
    for node in root.iter("link"):
        link = _link(node, base)
        if link is not None:
            links.setdefault(link)
        if len(links) >= MAX_LINKS:
            break
    return tuple(links)


def _link(node: Element, base: str) -> PageLink | None:
    relations = node.get("rel", "").lower().split()
    media_type, _, parameters = node.get("type", "").strip().lower().partition(";")
    kind = _TYPES.get(media_type.strip())
    reference = node.get("href", "").strip()
    if kind is None or not reference or "alternate" not in relations or "stylesheet" in relations:
        return None
    # RFC 5023 12.1: a single entry, not a feed.
    if "type=entry" in parameters.replace(" ", "").replace('"', ""):
        return None
    href = resolve(base, reference)
    # Without a base the reference may be a relative one, which looks like a host.
    href = read_address(href) if is_absolute(href) else ""
    return PageLink(kind, href, squeeze(node.get("title", ""))[:_MAX_TITLE]) if 0 < len(href) <= _MAX_ADDRESS else None
