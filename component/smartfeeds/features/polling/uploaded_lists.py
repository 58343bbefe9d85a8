"""Subscription lists that people upload (OPML): their feeds with titles and folders, each once.

Runs in a process of `workers`: strangers write the documents.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from smartfeeds.core.text import cut
from smartfeeds.core.web_address import address_key, read_address
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.encodings import in_utf8
from smartfeeds.formats.opml import Outline, feed_url, named, read_outline
from smartfeeds.formats.plain import squeeze

TITLE_CHARACTERS: Final = 200
FOLDER_CHARACTERS: Final = 100
_BETWEEN: Final = " / "  # the names of folders in folders


class UploadedFeed(NamedTuple):
    """A feed of a list: its address, its title, and the folders that it is in, "" for none."""

    url: str
    title: str
    folder: str


def read_upload(document: bytes, most: int) -> list[UploadedFeed]:
    """Returns the feeds of a list in their order, the first of each address.

    Raises FeedError: INVALID_PAYLOAD for a document that is no list or lists no feed, PAYLOAD_TOO_BIG for more than
    `most` feeds.
    """
    feeds: dict[str, UploadedFeed] = {}
    for feed in _feeds(read_outline(in_utf8(document, "").data).outlines, ""):
        feeds.setdefault(address_key(read_address(feed.url)) or feed.url, feed)
        if len(feeds) > most:
            raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the list has more than {most} feeds; divide it")
    if not feeds:
        raise FeedError(Condition.INVALID_PAYLOAD, "the list has no feeds; its outlines need the attribute xmlUrl")
    return list(feeds.values())


def _feeds(outlines: Iterable[Outline], folder: str) -> Iterator[UploadedFeed]:
    for outline in outlines:
        attributes = named(outline)
        title = squeeze(outline.text or attributes.get("title", ""))
        url = feed_url(attributes)
        if url:
            yield UploadedFeed(url, cut(title, TITLE_CHARACTERS), cut(folder, FOLDER_CHARACTERS))
        # A feed may have outlines below it, which are no folder of that name.
        inner = folder if url else _BETWEEN.join(filter(None, (folder, title)))
        yield from _feeds(outline.children, inner)
