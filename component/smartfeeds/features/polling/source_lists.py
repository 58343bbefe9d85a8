"""Lists of sources as OPML 2.0 (SRC-083): those of other readers, and our own with the names of the nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.features.polling.source import Source
from smartfeeds.formats.atom import SYNCS
from smartfeeds.formats.opml import (
    ADDRESS,
    ListedFeed,
    Outline,
    OutlineDocument,
    feed_url,
    flattened,
    named,
    read_outline,
    write_list,
)
from smartfeeds.formats.xml import parse_stored


class ListedSource(NamedTuple):
    """A feed of a list: its address, and its node if the list is of this service, else ""."""

    url: str
    node: str = ""


def read_source_list(data: bytes, domain: str) -> list[ListedSource]:
    """The feeds in an OPML document, each once, in their order, folders included. Raises FeedError."""
    return feeds_of(read_outline(data), domain)


def feeds_of(document: OutlineDocument, domain: str) -> list[ListedSource]:
    """The feeds in an outline, each once. Nodes are those of the service at `domain`.

    An outline that was deleted stays in a list with sync data, with what is in it; neither is in the list any more.
    """
    listed: dict[ListedSource, None] = {}
    for _level, outline in flattened(_live(document.outlines)):
        if url := feed_url(named(outline)):
            listed[ListedSource(url, _node(outline.attributes.get(ADDRESS, ""), domain))] = None
    return list(listed)


def _live(outlines: Iterable[Outline]) -> Iterator[Outline]:
    for outline in outlines:
        if not any(map(_is_deletion, outline.extensions)):
            yield replace(outline, children=tuple(_live(outline.children))) if outline.children else outline


def _is_deletion(extension: bytes) -> bool:
    """Whether an element of an outline is the sync data of a deleted item (SSE 2.3)."""
    sync = parse_stored(extension) if b"deleted" in extension else None
    return sync is not None and sync.tag in SYNCS and sync.get("deleted") == "true"


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
