"""Items as RSS 0.92, with the elements of that specification only (RSS-001 to RSS-016, A-120 to A-127).

RSS 0.92 has no ids, dates and authors of items, and no elements of other namespaces. `FeedExport.losses` reports them.
"""

from collections.abc import Iterable, Iterator

from smartfeeds.core.model import Item
from smartfeeds.core.text import escape
from smartfeeds.core.web_address import uri_of
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.document_format import DocumentFormat, whole
from smartfeeds.formats.entry import NO_TEXT, Entry, read_entry
from smartfeeds.formats.feed_document import FormatLoss, WrittenDocument
from smartfeeds.formats.losses import EntryPart, losses_of, lost_of
from smartfeeds.formats.representation import RSS_TYPE, Representation
from smartfeeds.formats.rss_channel import cloud_element
from smartfeeds.formats.rss_writer import (
    category_element,
    enclosure_element,
    source_element,
    texts_of,
    web_enclosures,
)

_LOST = lost_of(
    {
        EntryPart.SUMMARY_MARKUP,
        EntryPart.AUTHORS_AFTER_FIRST,
        EntryPart.EMAIL,
        EntryPart.SCHEMES_AND_LABELS,
        EntryPart.RELATED,
        EntryPart.SOURCE,
        EntryPart.CONTENT_MARKUP,
        EntryPart.ENCLOSURES,
    }
)
RSS092_SPECIFICATION = "http://backend.userland.com/rss092"

_START = '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="0.92">\n<channel>\n'


def write_rss092(head: FeedHead, items: Iterable[Item]) -> WrittenDocument:
    """Returns the document in UTF-8; `items` are in the order of the feed, the newest last.

    Raises ForbiddenCharacterError for texts that XML cannot represent.
    """
    losses: list[FormatLoss] = []
    pieces = [_item(head, read_entry(item), losses) for item in items]
    lines = [_START, *_channel(head), *reversed(pieces), "</channel>\n</rss>\n"]
    return WrittenDocument("".join(lines).encode(), tuple(losses))


def _channel(head: FeedHead) -> Iterator[str]:
    channel = head.channel
    texts = {
        "title": head.title,
        "link": uri_of(head.link or head.self_link or head.id),
        "description": head.subtitle or head.title,
    }
    optional = {
        "language": head.language or channel.language,
        "lastBuildDate": format_rfc822(head.updated_us),
        "docs": RSS092_SPECIFICATION,
        "managingEditor": channel.managing_editor,
        "webMaster": channel.web_master,
    }
    for name, text in (texts | {name: text for name, text in optional.items() if text}).items():
        yield f"<{name}>{escape(text)}</{name}>\n"
    if channel.cloud is not None:
        yield f"{cloud_element(channel.cloud)}\n"


def _item(head: FeedHead, entry: Entry, losses: list[FormatLoss]) -> str:
    """Returns an item, or an empty text and a loss for a deleted item."""
    if entry.deleted:
        losses.append(FormatLoss(entry.item_id, "a deleted item: RSS 0.92 has no form for it"))
        return ""
    losses += losses_of(entry, _LOST)
    # The content is the whole text, so the summary beside it is left out.
    body = next(reversed(texts_of(entry)), NO_TEXT)
    page = head.page_of(entry)
    title = entry.title.plain
    # An item without any child would be empty, and readers skip it.
    lines = [
        f"<title>{escape(title)}</title>" if title or not (page or body.value) else "",
        f"<link>{escape(page)}</link>" if page else "",
        f"<description>{escape(body.html)}</description>" if body.value else "",
        source_element(entry.source),
        *(enclosure_element(link) for link in web_enclosures(entry)),
        *(category_element(category) for category in entry.categories),
    ]
    return "<item>\n" + "".join(f"{line}\n" for line in lines if line) + "</item>\n"


def _losses(_head: FeedHead) -> str:
    return "the ids and the dates of the items"


RSS_092 = DocumentFormat(
    "rss092",
    "RSS 0.92",
    whole(write_rss092),
    frozenset({"language", "cloud", "managing_editor", "web_master"}),
    losses=_losses,
    # It has the media type of RSS 2.0, so only its suffix selects it.
    representation=Representation("rss092", RSS_TYPE, ()),
)
