"""What a feed says of itself, as one text that is stored with its node: an RSS 2.0 document without items.

RSS has a place for everything that `Channel` holds, so the writer and the reader of documents are all that it takes.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.items import Document
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.rss_writer import GENERATOR, write_rss

# A node's options are read with each request. The elements of other namespaces of a podcast take 2,000 bytes.
MAX_DETAILS_BYTES = 16_384


class FeedDetails(NamedTuple):
    """The address of the feed's page, and everything beside id, title and description."""

    link: str
    channel: Channel


NO_DETAILS = FeedDetails("", Channel())


def head_of(document: Document, updated_us: int) -> FeedHead:
    """What a document says of the feed; `updated_us` is the time where it does not say when it was changed. A feed
    without an id gets one of its address or its title."""
    channel = document.channel or Channel()
    feed_id = next((text for text in (document.id, document.link) if is_uri(text)), "")
    return FeedHead(
        id=feed_id or atom.digest_id(document.title),
        title=document.title,
        updated_us=updated_us if channel.changed_us is None else channel.changed_us,
        subtitle=document.description,
        link=document.link,
        icon=channel.icon,
        language=channel.language,
        hub=channel.hub,
        authors=channel.authors,
        channel=document.channel,
    )


def dump_details(document: Document) -> str:
    """The text to store, "" where there is nothing to store or too much."""
    if document.channel is None and not document.link:
        return ""
    data = write_rss(head_of(document, 0), ()).data
    return data.decode() if len(data) <= MAX_DETAILS_BYTES else ""


@lru_cache(256)
def load_details(text: str) -> FeedDetails:
    """What `dump_details` stored."""
    if not text:
        return NO_DETAILS
    document = read_document(text.encode())
    channel = document.channel or Channel()
    # The writer named itself where the feed names no generator; the time of the last change is the node's.
    generator = "" if channel.generator == GENERATOR else channel.generator
    return FeedDetails(document.link, replace(channel, generator=generator, changed_us=None))
