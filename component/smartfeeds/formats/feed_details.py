"""The metadata of a feed as one text that is stored with its node: an RSS 2.0 document without items.

RSS has a place for everything that `Channel` holds, so the writer and the reader of documents are all that it takes.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from smartfeeds.core.model import Node
from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.feed_reader import read_feed
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.rss import PAGES
from smartfeeds.formats.rss_channel import CHANNEL_PARTS, NO_CHANNEL, Channel, OwnCloud
from smartfeeds.formats.rss_writer import GENERATOR, RSS, write_rss

# A node's options are read with each request. The elements of other namespaces of a podcast take 2,000 bytes.
MAX_DETAILS_BYTES = 16_384


class FeedDetails(NamedTuple):
    """The address of the feed's page, and everything beside id, title and description."""

    link: str
    channel: Channel


NO_DETAILS = FeedDetails("", NO_CHANNEL)


def head_of(document: FeedDocument, updated_us: int) -> FeedHead:
    """Returns the head of the feed in a document; `updated_us` is the time of change if the document has none. A feed
    without an id gets one of its address or its title."""
    channel = document.channel or NO_CHANNEL
    feed_id = next((text for text in (document.id, document.link) if is_uri(text)), "")
    return FeedHead(
        id=feed_id or atom.digest_id(document.title),
        title=document.title,
        updated_us=updated_us if channel.changed_us is None else channel.changed_us,
        subtitle=document.description,
        link=document.link,
        language=channel.language,
        channel=channel,
    )


def title_of(node: Node) -> str:
    """The title of a feed, or its name if it has no title."""
    return node.options.title or node.name


def head_of_node(
    node: Node, base_url: str, entry_prefix: str, hub: str = "", cloud: OwnCloud | None = None
) -> FeedHead:
    """Returns the head of one of our feeds for documents. `base_url` is the address of the feed in the view of the
    document.

    The hub and the cloud of an imported feed notify of that feed, not of this one; `hub` and `cloud` are our own, ""
    and None for none.
    """
    details = load_details(node.options.details)
    return FeedHead(
        via=details.link,
        language=node.options.language,
        channel=replace(
            details.channel,
            hub=hub,
            cloud=None if cloud is None else cloud.element,
            cloud_url="" if cloud is None else cloud.url,
        ),
        id=base_url,
        title=title_of(node),
        updated_us=max(node.last_modified_us, node.created_us),
        self_link=base_url,
        subtitle=node.options.description,
        entry_prefix=entry_prefix,
    )


class StoredDetails(NamedTuple):
    """The text to store, "" if there is nothing to store, and the names of the parts that are not in it."""

    text: str
    left_out: tuple[str, ...] = ()


def dump_details(document: FeedDocument) -> StoredDetails:
    """The text for `load_details`, at most MAX_DETAILS_BYTES long: the parts in the order of CHANNEL_PARTS, as far as
    they fit. The dates of the last change are left out, because the node has its own."""
    channel = replace(document.channel or NO_CHANNEL, changed_us=None, left_out=())
    is_page = document.link.lower().startswith(PAGES)
    link = document.link if is_page and len(_dump(document.link, NO_CHANNEL)) <= MAX_DETAILS_BYTES else ""
    left_out = ["link"] if document.link and not link else []
    if len(_dump(link, channel)) > MAX_DETAILS_BYTES:
        channel, names = _shortened(link, channel)
        left_out += names
    left_out += document.channel.left_out if document.channel is not None else ()
    text = "" if channel == NO_CHANNEL and not link else _dump(link, channel).decode()
    return StoredDetails(text, tuple(left_out))


def _dump(link: str, channel: Channel) -> bytes:
    head = FeedHead("", "", 0, link=link, channel=channel)
    return write_rss(head, ()).data


def _shortened(link: str, channel: Channel) -> tuple[Channel, list[str]]:
    """The parts that fit, and the names of the others. Each part is an element of its own, so lengths add up."""
    empty_bytes = len(_dump(link, NO_CHANNEL))
    free_bytes = MAX_DETAILS_BYTES - empty_bytes
    short = NO_CHANNEL
    left_out = []
    for attribute, name in CHANNEL_PARTS.items():
        value = getattr(channel, attribute)
        is_list = isinstance(value, tuple)
        fitting = []
        # No element takes less than 16 bytes, so the elements behind this number cannot fit.
        for part in value[: MAX_DETAILS_BYTES // 16] if is_list else (value,):
            changes: dict[str, Any] = {attribute: (part,) if is_list else part}
            part_bytes = len(_dump(link, replace(NO_CHANNEL, **changes))) - empty_bytes
            if part_bytes <= free_bytes:
                free_bytes -= part_bytes
                fitting.append(part)
        if fitting:
            changes = {attribute: tuple(fitting) if is_list else value}
            short = replace(short, **changes)
        if getattr(short, attribute) != value:
            left_out.append(f"{len(value) - len(fitting)} of {len(value)} {name}" if fitting else name)
    return short, left_out


# The details of a node are read with each of its documents, and change with the node's options only. The text is the
# whole key, so nothing has to be invalidated. Its length is bounded by MAX_DETAILS_BYTES.
@lru_cache(256)
def load_details(text: str) -> FeedDetails:
    """Reads the text of `dump_details`."""
    if not text:
        return NO_DETAILS
    document = read_feed((RSS,), text.encode())
    channel = document.channel or NO_CHANNEL
    # The writer named itself where the feed names no generator; the time of the last change is the node's.
    generator = "" if channel.generator == GENERATOR else channel.generator
    return FeedDetails(document.link, replace(channel, generator=generator, changed_us=None))
