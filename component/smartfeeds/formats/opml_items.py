"""A feed as an outline: one outline an item, in the order of the feed (SF-008, A-153).

An outline is a line of text, so an item keeps its title, page, dates, categories and plain text, and elements of other
namespaces as children; the rest is reported as lost. Its id, its text and the time of its last change are attributes in
a namespace of ours, because OPML 2.0 allows no others that it does not have (`_note`, which some outliners use, is
read).
"""

from collections.abc import Iterable, Iterator

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.entry import NO_TEXT, Entry, read_entry
from smartfeeds.formats.items import FormatLoss
from smartfeeds.formats.losses import losses_of
from smartfeeds.formats.opml import CHANGED, ITEM_ID, NOTE, Outline, OutlineDocument, never_empty, write_outline
from smartfeeds.formats.xml import parse_stored

_LINE_CHARACTERS = 80


def write_items(head: FeedHead, items: Iterable[Item], losses: list[FormatLoss]) -> Iterator[bytes]:
    """The outline in pieces, one an item; what it lacks is added to `losses`. Raises ForbiddenCharacterError."""
    texts = {
        "title": head.title,
        "dateModified": format_rfc822(head.updated_us),
        "ownerName": ", ".join(head.authors),
    }
    document = OutlineDocument({name: text for name, text in texts.items() if text}, ())
    return write_outline(document, never_empty(_outlines(items, losses), "no entries"))


def _outlines(items: Iterable[Item], losses: list[FormatLoss]) -> Iterator[Outline]:
    for item in items:
        entry = read_entry(item)
        if entry.deleted:
            losses.append(FormatLoss(item.id, "a deleted item: OPML has no form for it"))
        else:
            yield _outline(entry, losses)


def _outline(entry: Entry, losses: list[FormatLoss]) -> Outline:
    body = next((text for text in (entry.content, entry.summary) if text is not None and text.value.strip()), NO_TEXT)
    note = body.plain if body.is_markup else body.value.strip()
    title = entry.title.plain
    if not title:
        title = body.plain
        title = title if len(title) <= _LINE_CHARACTERS else title[: _LINE_CHARACTERS - 1].rstrip() + "\u2026"
        note = "" if title == body.plain else note
    terms = [category.term for category in entry.categories if "," not in category.term]
    attributes = {
        "type": "link" if entry.alternate else "",
        "url": entry.alternate,
        "created": format_rfc822(entry.issued_us),
        "category": ",".join(terms),
        NOTE: note,
        ITEM_ID: entry.item_id,
        CHANGED: format_datetime(entry.changed_us) if entry.changed_us != entry.issued_us else "",
    }
    named = tuple(extension for extension in entry.extensions if _has_namespace(extension))
    losses += losses_of(entry, "opml")
    if len(terms) < len(entry.categories):
        losses.append(FormatLoss(entry.item_id, "categories with a comma in them"))
    if len(named) < len(entry.extensions):
        losses.append(FormatLoss(entry.item_id, "elements without a namespace"))
    return Outline(title, {name: value for name, value in attributes.items() if value}, extensions=named)


def _has_namespace(extension: bytes) -> bool:
    """OPML may hold elements of others in their own namespaces only."""
    return bool(parse_stored(extension).tag.startswith("{"))
