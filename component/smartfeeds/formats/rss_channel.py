"""The metadata of an RSS channel beside title, link and description (RSS-015 to RSS-017, RSS-031; A-126 to A-139).

It is read from RSS 0.9x and 2.0 and written as RSS 2.0. Values that break the format are left out with a warning.
Elements of other namespaces are stored unchanged.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lxml import etree

from smartfeeds.core.text import attribute, escape
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import ATOM_NS, SOURCE_NS, SYNC_NAMESPACES, string_of
from smartfeeds.formats.dates import format_rfc822, read_date, unread_date
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.xml import Element, canonical

# Drafts and vendors put RSS itself into these namespaces. RSS 0.9x and 2.0 define none, and most feeds use none.
RSS_NAMESPACES = frozenset(
    {
        "",
        "http://purl.org/rss/1.0/",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
        "http://backend.userland.com/RSS2",
        "http://blogs.law.harvard.edu/tech/rss",
    }
)
PROTOCOLS = frozenset({"xml-rpc", "soap", "http-post"})
MAX_PORT = 65_535
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ATOM_LINK, _ATOM_LOGO = f"{{{ATOM_NS}}}link", f"{{{ATOM_NS}}}logo"
_CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
# The namespace is written in four ways in feeds.
_SOURCE_CLOUDS = frozenset(
    f"{{{scheme}://source.scripting.com{slash}}}cloud" for scheme in ("http", "https") for slash in ("", "/")
)
_OUR_LINKS = frozenset({"self", "next", "hub"})
_SHARINGS = frozenset(f"{{{namespace}}}sharing" for namespace in SYNC_NAMESPACES)
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_EXTENSIONS = 100


def rss_name(element: Element) -> str:
    """The lower-case name of an element of RSS itself, or "" for any other."""
    namespace, _, name = element.tag.removeprefix("{").rpartition("}")
    return name.lower() if namespace in RSS_NAMESPACES else ""


def rss_children(parent: Element, name: str) -> list[Element]:
    """The children of this name that are elements of RSS itself."""
    return [child for child in parent.iterchildren(etree.Element) if rss_name(child) == name]


def first_text(nodes: Iterable[Element]) -> str:
    """The text of the first element that has any, without white space at its ends."""
    return next((text for node in nodes if (text := string_of(node).strip())), "")


@dataclass(frozen=True, slots=True)
class Cloud:
    """The address to register at for notifications (RSS-016). `procedure` may be empty with http-post (A-137)."""

    domain: str
    port: int
    path: str
    procedure: str
    protocol: str


class OwnCloud(NamedTuple):
    """The cloud of this service as its feeds name it: the element, and the address of the door for forms."""

    element: Cloud
    url: str


@dataclass(frozen=True, slots=True)
class Channel:
    """The metadata of a feed of any format beside id, title, link and description. Empty values are absent.

    `copyright` are the rights, `hub` is the address of a WebSub hub, `icon` that of a square picture and `logo` that of
    a wide one, `cloud_url` that of a cloud for forms (`source:cloud`), `authors` are names. `ttl_min` is in minutes,
    `skip_hours` are hours of GMT from 0 to 23 in ascending order, `categories` are pairs of text and domain,
    `extensions` canonical bytes of elements of other namespaces. `left_out` names for people what no writer has a place
    for.
    """

    language: str = ""
    copyright: str = ""
    managing_editor: str = ""
    web_master: str = ""
    generator: str = ""
    rating: str = ""
    published_us: int | None = None
    changed_us: int | None = None
    ttl_min: int | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[str, ...] = ()
    categories: tuple[tuple[str, str], ...] = ()
    cloud: Cloud | None = None
    cloud_url: str = ""
    icon: str = ""
    logo: str = ""
    hub: str = ""
    authors: tuple[str, ...] = ()
    extensions: tuple[bytes, ...] = ()
    left_out: tuple[str, ...] = ()


NO_CHANNEL = Channel()

# The name of each part for people. Where space is short the first parts are kept first.
CHANNEL_PARTS = {
    "language": "language",
    "icon": "icon",
    "logo": "logo",
    "hub": "hub",
    "cloud": "cloud",
    "cloud_url": "source:cloud",
    "categories": "categories",
    "authors": "authors",
    "copyright": "rights",
    "generator": "generator",
    "managing_editor": "managingEditor",
    "web_master": "webMaster",
    "rating": "rating",
    "published_us": "pubDate",
    "ttl_min": "ttl",
    "skip_hours": "skipHours",
    "skip_days": "skipDays",
    "extensions": "elements of other namespaces",
}


# The fields of `Channel` that are the text of one element.
_TEXT_ELEMENTS = {
    "language": "language",
    "copyright": "copyright",
    "managing_editor": "managingEditor",
    "web_master": "webMaster",
    "generator": "generator",
    "rating": "rating",
}


def read_channel(channel: Element, warnings: list[str]) -> Channel:
    """The metadata of a channel beside title, link and description; `warnings` gets what was left out."""
    parts: defaultdict[str, list[Element]] = defaultdict(list)
    for child in channel.iterchildren(etree.Element):
        parts[rss_name(child)].append(child)
    foreign = parts[""]
    links = [node for node in foreign if node.tag == _ATOM_LINK]
    hubs = [node.get("href", "") for node in links if _rel(node) == "hub"]
    images = [child for node in parts["image"] for child in node.iterchildren(etree.Element)]
    texts: dict[str, Any] = {name: squeeze(first_text(parts[tag.lower()])) for name, tag in _TEXT_ELEMENTS.items()}
    left_out = {
        "textInput": bool(parts["textinput"]),
        "size and description of the image": not {"width", "height", "description"}.isdisjoint(map(rss_name, images)),
        "hubs after the first": len(hubs) > 1,
    }
    days = _texts_inside(parts["skipdays"])
    return Channel(
        **texts,
        published_us=_date(parts["pubdate"], warnings),
        changed_us=_date(parts["lastbuilddate"], warnings),
        ttl_min=_ttl(squeeze(first_text(parts["ttl"])), warnings),
        skip_hours=_hours(parts["skiphours"], warnings),
        skip_days=tuple(day for day in DAYS if day.lower() in days),
        categories=tuple(
            (term, node.get("domain", "").strip()) for node in parts["category"] if (term := squeeze(string_of(node)))
        ),
        cloud=_cloud(parts["cloud"], warnings),
        cloud_url=source_cloud(foreign),
        icon=first_text(node for node in images if rss_name(node) == "url"),
        logo=next((squeeze(node.text or "") for node in foreign if node.tag == _ATOM_LOGO), ""),
        hub=next(iter(hubs), ""),
        authors=tuple(name for node in foreign if node.tag == _CREATOR and (name := squeeze(string_of(node)))),
        # Links that say where the feed was are written anew.
        extensions=foreign_elements(
            [
                node
                for node in foreign
                if node.tag not in (_ATOM_LOGO, _CREATOR, *_SOURCE_CLOUDS)
                and (node.tag != _ATOM_LINK or _rel(node) not in _OUR_LINKS)
            ],
            warnings,
        ),
        left_out=tuple(name for name, is_left_out in left_out.items() if is_left_out),
    )


def _rel(link: Element) -> str:
    return link.get("rel", "").lower()


def foreign_elements(nodes: list[Element], warnings: list[str]) -> tuple[bytes, ...]:
    """The canonical bytes of elements that a feed has in other namespaces; `warnings` gets what was left out.

    sx:sharing is for those who read the feed, and is never published again (FS-014).
    """
    elements = []
    nodes = [node for node in nodes if node.tag not in _SHARINGS]
    for node in nodes[:_MAX_EXTENSIONS]:
        try:
            elements.append(canonical(node))
        except FeedError as error:
            warnings.append(f"an element of the channel was left out: {error.text}")
    if len(nodes) > _MAX_EXTENSIONS:
        warnings.append(f"only the first {_MAX_EXTENSIONS} elements of other namespaces of the channel were kept")
    return tuple(elements)


def _date(nodes: list[Element], warnings: list[str]) -> int | None:
    text = squeeze(first_text(nodes))
    time_us, note = read_date(text)
    if text and (note or time_us is None):
        warnings.append(f"channel: {note or unread_date(text)}")
    return time_us


def _ttl(text: str, warnings: list[str]) -> int | None:
    if text and _NUMBER.fullmatch(text) is None:
        warnings.append("the ttl of the channel is no number of minutes and was left out")
        return None
    return int(text) if text else None


def _hours(nodes: list[Element], warnings: list[str]) -> tuple[int, ...]:
    """Reads the hours of skipHours: GMT, in any order (A-138). 24 is midnight: RSS 0.91 has the hours 1 to 24, RSS 2.0
    has 0 to 23."""
    hours: set[int] = set()
    for text in _texts_inside(nodes):
        if _NUMBER.fullmatch(text) is None or int(text) > 24:
            warnings.append("an hour of skipHours is none and was left out")
        else:
            hours.add(int(text) % 24)
    return tuple(sorted(hours))


def _texts_inside(nodes: list[Element]) -> list[str]:
    return [squeeze(string_of(child)).lower() for node in nodes for child in node.iterchildren(etree.Element)]


def _cloud(nodes: list[Element], warnings: list[str]) -> Cloud | None:
    """Returns the first cloud with all attributes that a registration needs (RSS-016)."""
    for node in nodes:
        domain, port, path, protocol = (node.get(name, "").strip() for name in ("domain", "port", "path", "protocol"))
        procedure = node.get("registerProcedure", "").strip()
        has_port = _NUMBER.fullmatch(port) is not None and 0 < int(port) <= MAX_PORT
        # http-post calls no procedure.
        has_procedure = protocol in PROTOCOLS and (procedure or protocol == "http-post")
        if domain and path and has_port and has_procedure:
            return Cloud(domain, int(port), path, procedure, protocol)
        warnings.append("the cloud of the channel lacks something or is wrong and was left out")
    return None


def cloud_element(cloud: Cloud) -> str:
    """Returns the element of a cloud, always with all five attributes (RSS-016)."""
    return (
        f'<cloud domain="{attribute(cloud.domain)}" port="{cloud.port}" path="{attribute(cloud.path)}" '
        f'registerProcedure="{attribute(cloud.procedure)}" protocol="{attribute(cloud.protocol)}"/>'
    )


def source_cloud(nodes: Iterable[Element]) -> str:
    """The text of the first `source:cloud` among elements, "" if there is none."""
    return first_text(node for node in nodes if node.tag in _SOURCE_CLOUDS)


def source_cloud_element(url: str) -> str:
    """The whole address of a cloud for forms; the element `cloud` has no scheme."""
    return f'<source:cloud xmlns:source="{SOURCE_NS}">{escape(url)}</source:cloud>'


def channel_elements(channel: Channel) -> list[str]:
    """The RSS elements of a channel, without language, generator and what differs from page to page."""
    texts = {
        "copyright": channel.copyright,
        "managingEditor": channel.managing_editor,
        "webMaster": channel.web_master,
        "rating": channel.rating,
        "atom:logo": channel.logo,
        "pubDate": "" if channel.published_us is None else format_rfc822(channel.published_us),
        "ttl": "" if channel.ttl_min is None else str(channel.ttl_min),
    }
    lines = [f"<{name}>{escape(text)}</{name}>" for name, text in texts.items() if text]
    for term, domain in channel.categories:
        where = f' domain="{attribute(domain)}"' if domain else ""
        lines.append(f"<category{where}>{escape(term)}</category>")
    if channel.cloud is not None:
        lines.append(cloud_element(channel.cloud))
    if channel.cloud_url:
        lines.append(source_cloud_element(channel.cloud_url))
    for name, inner, values in (
        ("skipHours", "hour", channel.skip_hours),
        ("skipDays", "day", channel.skip_days),
    ):
        if values:
            lines.append(f"<{name}>{''.join(f'<{inner}>{value}</{inner}>' for value in values)}</{name}>")
    return lines
