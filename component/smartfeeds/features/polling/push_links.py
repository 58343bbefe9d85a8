"""Finds the links of a document that announce its changes: hubs, itself as a topic, clouds, cursors (WebSub section 4;
RSS-016; JSON Feed 1.1; SF-079 to SF-081).

Links count on the first level of a feed and in the head of a page only. Nothing is opened. A document and its response
make an offer: a source subscribes at one target of the offer.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from lxml import etree

from smartfeeds.core.text import counted
from smartfeeds.core.web_address import DEFAULT_PORTS, address_key
from smartfeeds.errors import FeedError
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.source import MAX_URL_BYTES, PushKind
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.autodiscovery import MAX_PAGE_BYTES
from smartfeeds.formats.html_page import parse_page
from smartfeeds.formats.json_text import Json, load_json, looks_like_json
from smartfeeds.formats.links import base_of, rebase, resolve
from smartfeeds.formats.loader import load
from smartfeeds.formats.rss_channel import MAX_PORT, PROTOCOLS, rss_children, rss_name
from smartfeeds.formats.xml import Element

MAX_TARGETS: Final = 8  # of an offer: the row of a subscription has all of them, to try them in turn
HTTP_POST: Final = "http-post"
_LINK: Final = f"{{{ATOM_NS}}}link"
# With either scheme, and with or without the slash at the end (RC-005).
_SOURCE_CLOUDS: Final = frozenset(
    f"{{{scheme}://source.scripting.com{slash}}}cloud" for scheme in ("http", "https") for slash in ("/", "")
)
_HEADER_LINK: Final = re.compile(r"""<([^<>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)""")
_HEADER_REL: Final = re.compile(r""";\s*rel\*?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]+))""", re.IGNORECASE)
_MAX_HEADER_CHARACTERS: Final = 65_536  # as many as one field of a response may have
_MAX_HUBS: Final = 8
_HTTPS_PORT: Final = 443
_HTTPS_POST: Final = "https-post"


@dataclass(frozen=True, slots=True)
class PushTarget:
    """A hub or cloud. `url` is the address that takes requests, `topic` the address of the feed as it is subscribed to.

    `protocol` is "http-post", "xml-rpc" or "soap" for a cloud, `procedure` the name that it registers by.
    """

    kind: PushKind
    url: str
    topic: str
    protocol: str = ""
    procedure: str = ""


NO_TARGET: Final = PushTarget(PushKind.NONE, "", "")


@dataclass(frozen=True, slots=True)
class PushOffer:
    """The hubs and clouds that one response of a feed names, the best first."""

    targets: tuple[PushTarget, ...] = ()

    def names(self, target: PushTarget) -> bool:
        """Whether the hub or cloud is still that of the feed."""
        return any(
            (candidate.kind, candidate.url, candidate.topic) == (target.kind, target.url, target.topic)
            for candidate in self.targets
        )

    def ranked(self, good: frozenset[str]) -> "PushOffer":
        """The offer: hubs before clouds, https before http, and hubs that are known to work first (WS-099, RC-055).

        `good` are the addresses of hubs at which subscriptions are active.
        """
        places = {PushKind.HUB: 0, PushKind.CLOUD: 1}

        def rank(target: PushTarget) -> tuple[int, bool, bool]:
            return places[target.kind], not target.url.startswith("https:"), target.url not in good

        return PushOffer(tuple(sorted(self.targets, key=rank)))


def offer_of(hubs: list[str], topic: str, clouds: list[PushTarget], own_url: str) -> PushOffer:
    """The usable targets: web addresses that are not those of this service (WS-140)."""
    named = [PushTarget(PushKind.HUB, url, topic) for url in hubs] + clouds
    usable = [
        target for target in named if is_web(target.url) and is_web(target.topic) and not is_own(target.url, own_url)
    ]
    return PushOffer(tuple(dict.fromkeys(usable))[:MAX_TARGETS])


def is_web(url: str) -> bool:
    """Whether a text is an http or https address with a host, and without a user."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in DEFAULT_PORTS
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and port != 0
        and url.isprintable()
        and " " not in url
        and len(url.encode()) <= MAX_URL_BYTES
    )


def same_address(one: str, other: str) -> bool:
    """Whether two addresses name one feed: scheme, case of the host, default port, spelling of escapes and a slash at
    the end of the path do not count (WS-110, RC-070)."""
    return one == other or _normal(one) == _normal(other)


def _normal(url: str) -> tuple[str, str]:
    path, _, query = address_key(url).partition("?")
    return path.rstrip("/"), query


@dataclass(frozen=True, slots=True)
class PushLinks:
    """The links of one place, such as a document or the headers. `topic` is the address that the document gives as its
    own, "" if it gives none. The topic of each cloud is still empty: it is the address of the source."""

    hubs: tuple[str, ...] = ()
    topic: str = ""
    clouds: tuple[PushTarget, ...] = ()
    prev_cursor: str = ""
    last_cursor: str = ""


NO_LINKS: Final = PushLinks()


def push_links(headers: Sequence[str], body: bytes, url: str) -> PushLinks:
    """The links of a response that came from `url`; `headers` are the values of Link.

    The first place that names both hub and topic counts: the header, then the document (WS-091). Otherwise the hubs are
    those of the first place that names any. Clouds and cursors are in documents only.
    """
    header, document = header_links(headers, url), document_links(body, url)
    for place in (header, document):
        if place.hubs and place.topic:
            return replace(document, hubs=place.hubs, topic=place.topic)
    return replace(document, hubs=header.hubs or document.hubs, topic=header.topic or document.topic)


def header_links(values: Iterable[str], url: str) -> PushLinks:
    """The hubs and the topic in values of the header Link (RFC 8288 section 3)."""
    pairs: list[tuple[str, str]] = []
    for match in _HEADER_LINK.finditer(", ".join(values)[:_MAX_HEADER_CHARACTERS]):
        rel = _HEADER_REL.search(match[2])
        if rel is not None:
            pairs.append(((rel[1] or rel[2] or "").lower(), resolve(url, match[1])))
    return _links_of(pairs)


def document_links(body: bytes, url: str) -> PushLinks:
    """The links of a document; none of one that cannot be read."""
    if looks_like_json(body):
        return _json_links(body, url)
    if not any(word in body for word in (b"hub", b"HUB", b"Hub", b"cloud", b"_cursor")):
        return NO_LINKS  # most feeds name neither, and need not be parsed again
    try:
        root = load(body).root
    except FeedError:
        return _page_links(body, url)
    if root.tag.rpartition("}")[2].lower() == "html":
        return _page_links(body, url)
    return _feed_links(root, url)


def _links_of(pairs: Iterable[tuple[str, str]]) -> PushLinks:
    """The links of some relations and addresses; a relation may be several words."""
    split = [(rel.lower().split(), href) for rel, href in pairs if href]
    hubs = dict.fromkeys(href for rels, href in split if "hub" in rels)
    return PushLinks(tuple(hubs)[:_MAX_HUBS], next((href for rels, href in split if "self" in rels), ""))


def _feed_links(root: Element, url: str) -> PushLinks:
    channel = root
    if rss_name(root) == "rss" or root.tag.endswith("}RDF"):
        channel = next(iter(rss_children(root, "channel")), root)
    base = base_of(channel, rebase("", url))
    links = _links_of(
        (node.get("rel", ""), resolve(base, node.get("href", "").strip())) for node in channel.iterchildren(_LINK)
    )
    prev_cursor, last_cursor = (
        (channel.findtext(f"{{{FANOUT_NS}}}{name}") or "").strip() for name in ("prev_cursor", "last_cursor")
    )
    return replace(links, clouds=_clouds(channel, base), prev_cursor=prev_cursor, last_cursor=last_cursor)


def _clouds(channel: Element, base: str) -> tuple[PushTarget, ...]:
    """The clouds of a channel: a whole address first, then the element of RSS (RC-054, RC-056)."""
    texts = [(node.text or "").strip() for node in channel.iterchildren(etree.Element) if node.tag in _SOURCE_CLOUDS]
    whole = [PushTarget(PushKind.CLOUD, resolve(base, text), "", HTTP_POST) for text in texts if text]
    # Names of elements are as RSS writes them: <CLOUD> is none.
    elements = [node for node in rss_children(channel, "cloud") if node.tag.endswith("cloud")]
    return (*whole, *(target for node in elements if (target := _cloud(node)) is not None))


def _cloud(node: Element) -> PushTarget | None:
    """The target of an element with all five attributes; None for any other (RSS-016, RSS-017)."""
    names = ("domain", "port", "path", "registerProcedure", "protocol")
    values = [node.get(name) for name in names]
    if any(value is None for value in values):
        return None
    domain, port, path, procedure, protocol = ((value or "").strip() for value in values)
    is_https = protocol == _HTTPS_POST or port == str(_HTTPS_PORT)
    protocol = HTTP_POST if protocol == _HTTPS_POST else protocol
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) <= MAX_PORT
    if protocol not in PROTOCOLS or not (domain and path and is_port and (procedure or protocol == HTTP_POST)):
        return None
    path = path if path.startswith("/") else f"/{path}"
    url = f"{'https' if is_https else 'http'}://{domain}:{port}{path}"
    return PushTarget(PushKind.CLOUD, url, "", protocol, procedure)


def _page_links(body: bytes, url: str) -> PushLinks:
    """The links in the head of a web page (WS-092)."""
    root = parse_page(body[:MAX_PAGE_BYTES])
    head = None if root is None else next(root.iter("head"), None)
    if head is None:
        return NO_LINKS
    base = resolve(url, next(filter(None, (node.get("href", "").strip() for node in head.iter("base"))), ""))
    return _links_of(
        (node.get("rel", ""), resolve(base, node.get("href", "").strip())) for node in head.iterchildren("link")
    )


def _json_links(body: bytes, url: str) -> PushLinks:
    """The members `hubs` and `feed_url` of a JSON Feed (WS-094, RC-054)."""
    try:
        feed = load_json(body, repair=True).value
    except FeedError:
        return NO_LINKS
    if not isinstance(feed, dict):
        return NO_LINKS
    hubs, own = feed.get("hubs"), feed.get("feed_url")
    named = [_hub(hub, url) for hub in hubs] if isinstance(hubs, list) else []
    return PushLinks(
        tuple(address for kind, address in named if kind == "websub" and address)[:_MAX_HUBS],
        resolve(url, own) if isinstance(own, str) and own else "",
        tuple(
            PushTarget(PushKind.CLOUD, address, "", HTTP_POST)
            for kind, address in named
            if kind == "rsscloud" and address
        ),
    )


def _hub(value: Json, url: str) -> tuple[str, str]:
    """The type in lower case and the address of a hub; both empty for what is none."""
    if not isinstance(value, dict):
        return "", ""
    kind, address = value.get("type"), value.get("url")
    return (
        (kind.lower(), resolve(url, address.strip()))
        if isinstance(kind, str) and isinstance(address, str)
        else ("", "")
    )


def described(links: PushLinks) -> str:
    """The links in a sentence for people, "" if there are none (WS-141)."""
    parts = [f"hub {hub}" for hub in links.hubs] + [f"cloud {cloud.url} ({cloud.protocol})" for cloud in links.clouds]
    return "; ".join(parts[:_MAX_HUBS]) + (
        f" and {counted(len(parts) - _MAX_HUBS, 'more')}" if parts[_MAX_HUBS:] else ""
    )
