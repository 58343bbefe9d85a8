"""Lists of sources as OPML 2.0 (SRC-083): those of other readers, and our own with the names of the nodes."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.sources import Source
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.formats.opml import ADDRESS, ListedFeed, OutlineDocument, flattened, read_outline, write_list


class ListedSource(NamedTuple):
    """A feed of a list: its address, and its node if the list is of this service, else ""."""

    url: str
    node: str = ""


def read_source_list(data: bytes, domain: str) -> list[ListedSource]:
    """The feeds in an OPML document, each once, in their order, folders included. Raises FeedError."""
    return feeds_of(read_outline(data), domain)


def feeds_of(document: OutlineDocument, domain: str) -> list[ListedSource]:
    """The feeds in an outline, each once. Nodes are those of the service at `domain`."""
    listed: dict[ListedSource, None] = {}
    for _level, outline in flattened(document.outlines):
        attributes = {name.lower(): value.strip() for name, value in outline.attributes.items()}
        url = attributes.get("xmlurl", "")
        if url:
            listed[ListedSource(url, _node(outline.attributes.get(ADDRESS, ""), domain))] = None
    return list(listed)


def _node(address: str, domain: str) -> str:
    try:
        feed = parse_address(address, smart=False)
    except AddressError:
        return ""
    return feed.node if feed.service == domain else ""


def write_source_list(sources: Iterable[Source], domain: str, now_us: int) -> Iterator[bytes]:
    """The sources as OPML, in pieces. Names and passwords of sources are left out."""
    feeds = (
        ListedFeed(
            source.progress.title or source.url,
            source.url,
            xmpp=xmpp_uri(domain, source.node),
            created_us=source.created_us,
        )
        for source in sources
    )
    return write_list(f"Sources of {domain}", feeds, now_us)
