"""Subscription lists that people upload (OPML): their feeds with titles and folders, each once.

Runs in a process of `workers`: strangers write the documents.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from smartfeeds.core.text import cut
from smartfeeds.core.web_address import address_key, has_login, read_address
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.formats.encodings import in_utf8
from smartfeeds.formats.opml import Outline, feed_url, named, read_outline
from smartfeeds.formats.plain import squeeze

TITLE_CHARACTERS: Final = 200
FOLDER_CHARACTERS: Final = 100
_BETWEEN: Final = " / "  # the names of folders in folders


class UploadedFeed(NamedTuple):
    """A feed of a list. `text` is its address as the list has it, `url` the one to request, "" if it is none of another
    server. `folder` names the folders that the feed is in, "" for none."""

    text: str
    url: str
    title: str
    folder: str


def read_upload(document: bytes, most: int, own_url: str) -> list[UploadedFeed]:
    """Returns the feeds of a list in their order, the first of each address. `own_url` is the address of this service.

    Raises FeedError: INVALID_PAYLOAD for a document that is no list or lists no feed, PAYLOAD_TOO_BIG for more than
    `most` feeds.
    """
    feeds: dict[str, UploadedFeed] = {}
    for feed in _feeds(read_outline(in_utf8(document, "").data).outlines, ""):
        feeds.setdefault(address_key(feed.url) or feed.text, feed)
        if len(feeds) > most:
            raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the list has more than {most} feeds; divide it")
    if not feeds:
        raise FeedError(Condition.INVALID_PAYLOAD, "the list has no feeds; its outlines need the attribute xmlUrl")
    return [feed if _is_requested(feed.url, own_url) else feed._replace(url="") for feed in feeds.values()]


def _is_requested(url: str, own_url: str) -> bool:
    """Whether an address is that of another server, and has no name and password."""
    return not has_login(url) and not is_own(url, own_url)


def _feeds(outlines: Iterable[Outline], folder: str) -> Iterator[UploadedFeed]:
    for outline in outlines:
        attributes = named(outline)
        title = squeeze(outline.text or attributes.get("title", ""))
        text = feed_url(attributes)
        if text:
            yield UploadedFeed(text, read_address(text), cut(title, TITLE_CHARACTERS), cut(folder, FOLDER_CHARACTERS))
        # A feed may have outlines below it, which are no folder of that name.
        inner = folder if text else _BETWEEN.join(filter(None, (folder, title)))
        yield from _feeds(outline.children, inner)
