"""The formats of documents: those of the kernel and of all features, in one table for all that read or write them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from smartfeeds.features import FEATURES
from smartfeeds.formats.activity import ACTIVITIES
from smartfeeds.formats.atom_reader import ATOM
from smartfeeds.formats.document_format import DocumentFormat
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.feed_reader import read_feed
from smartfeeds.formats.opml_items import OPML
from smartfeeds.formats.rss_writer import RSS

KERNEL_FORMATS: tuple[DocumentFormat, ...] = (ATOM, RSS, OPML, ACTIVITIES)


def _joined() -> Mapping[str, DocumentFormat]:
    brought = (feature.documents() for feature in FEATURES)
    return MappingProxyType({each.key: each for formats in (KERNEL_FORMATS, *brought) for each in formats})


FORMATS: Final = _joined()


def read_document(
    data: bytes, base: str = "", charset: str = "", *, doubles: bool = False, most: int | None = None
) -> FeedDocument:
    """The feed in `data`, in any format (`formats.feed_reader.read_feed`)."""
    return read_feed(FORMATS.values(), data, base, charset, doubles=doubles, most=most)
