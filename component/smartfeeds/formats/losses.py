"""The parts of an entry that a format cannot represent: one table for all writers, so that every loss is reported."""

from collections.abc import Callable
from enum import Enum

from smartfeeds.core.text import escape
from smartfeeds.core.urls import harmless
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, EntryText
from smartfeeds.formats.html_links import has_relative
from smartfeeds.formats.items import FormatLoss


class EntryPart(Enum):
    """A part of an entry that some formats do not have. The value is a text for people."""

    TITLE_MARKUP = "the markup of the title"
    SUMMARY_MARKUP = "the markup of the summary"
    SUMMARY = "the summary beside the content"
    MORE_AUTHORS = "the authors after the first"
    EMAIL = "the mail address of a person who has another address too"
    CONTRIBUTORS = "the contributors"
    SCHEME = "the schemes or labels of categories"
    ENCLOSURE_TITLE = "the titles of enclosures"
    RELATED = "the addresses of related pages"
    MORE_RELATED = "the addresses of related pages after the first"
    LINKS = "links other than to the page and to enclosures"
    LINK_DETAILS = "the type, title or length of the link to the page, or what else is said of a link"
    MORE_ALTERNATES = "the addresses of the page after the first"
    RIGHTS = "the rights"
    SOURCE = "the source"
    REPLIES = "what it answers"
    LANGUAGE = "the language"
    TEXT_LANGUAGE = "the languages of single texts"
    PEOPLE = "what is said of authors beside name and addresses"
    CATEGORY_DETAILS = "what is said of categories beside term, scheme and label"
    ADDRESSES = "addresses that a reader might run (javascript, vbscript, data)"
    UNREAD = "attributes of other namespaces, and elements that an Atom entry does not have"
    ACTIVITY = "the kind of activity or object"
    CONTENT_LINK = "the address of content that is elsewhere"
    CONTENT_TYPE = "the media type of the content, or the content itself"
    BASE = "where relative addresses in its HTML lead: it says no base address"
    EXTENSIONS = "elements of other namespaces"

    __hash__ = object.__hash__


def losses_of(entry: Entry, kept: frozenset[EntryPart]) -> list[FormatLoss]:
    """Returns the parts of the entry that are not in `kept`, the parts of a format. A deleted item has no losses."""
    if entry.deleted:
        return []
    return [FormatLoss(entry.item_id, part.value) for part, has in _PARTS if part not in kept and has(entry)]


def icon_losses(head: FeedHead) -> list[FormatLoss]:
    """The icon of the feed, where its address is one that no document names."""
    icon = head.icon or (head.channel.icon if head.channel else "")
    return [FormatLoss("", f"of the feed itself: {EntryPart.ADDRESSES.value}")] if icon and not harmless(icon) else []


def has_styled(text: EntryText | None) -> bool:
    """Whether a text says more as HTML than as plain text."""
    return text is not None and text.is_markup and text.value.strip() != escape(text.plain)


def _relative(entry: Entry) -> bool:
    texts = (text for text in (entry.content, entry.summary, entry.title) if text is not None)
    return any(text.is_markup and has_relative(text.value) for text in texts)


def _has_text_language(entry: Entry) -> bool:
    texts = (entry.title, entry.summary, entry.content, entry.rights)
    return any(text is not None and text.language not in ("", entry.language) for text in texts)


def _rels(entry: Entry, rel: str) -> int:
    return sum(link.rel == rel for link in entry.links)


_PARTS: tuple[tuple[EntryPart, Callable[[Entry], object]], ...] = (
    (EntryPart.TITLE_MARKUP, lambda entry: has_styled(entry.title)),
    (EntryPart.SUMMARY_MARKUP, lambda entry: has_styled(entry.summary)),
    (EntryPart.SUMMARY, lambda entry: entry.summary is not None and entry.content is not None),
    (EntryPart.MORE_AUTHORS, lambda entry: len(entry.authors) > 1),
    (EntryPart.EMAIL, lambda entry: any(person.email and person.uri for person in entry.authors)),
    (EntryPart.CONTRIBUTORS, lambda entry: entry.contributors),
    (EntryPart.SCHEME, lambda entry: any(category.scheme or category.label for category in entry.categories)),
    (EntryPart.ENCLOSURE_TITLE, lambda entry: any(link.title for link in entry.enclosures)),
    (EntryPart.RELATED, lambda entry: _rels(entry, "related")),
    (EntryPart.MORE_RELATED, lambda entry: _rels(entry, "related") > 1),
    (EntryPart.LINKS, lambda entry: any(link.rel not in ("alternate", "enclosure", "related") for link in entry.links)),
    (
        EntryPart.LINK_DETAILS,
        lambda entry: any(
            (link.more and link.rel in ("alternate", "related", "enclosure"))
            or (link.rel in ("alternate", "related") and (link.type or link.title or link.length))
            for link in entry.links
        ),
    ),
    (EntryPart.MORE_ALTERNATES, lambda entry: _rels(entry, "alternate") > 1),
    (EntryPart.RIGHTS, lambda entry: entry.rights is not None),
    (EntryPart.SOURCE, lambda entry: entry.source is not None),
    (EntryPart.REPLIES, lambda entry: entry.replies_to),
    (EntryPart.LANGUAGE, lambda entry: entry.language),
    (EntryPart.TEXT_LANGUAGE, _has_text_language),
    (EntryPart.PEOPLE, lambda entry: any(person.more for person in (*entry.authors, *entry.contributors))),
    (EntryPart.CATEGORY_DETAILS, lambda entry: any(category.more for category in entry.categories)),
    (EntryPart.ADDRESSES, lambda entry: entry.unsafe),
    (EntryPart.UNREAD, lambda entry: entry.unread),
    (EntryPart.ACTIVITY, lambda entry: entry.typed or entry.verb != "post"),
    (EntryPart.CONTENT_LINK, lambda entry: entry.content_link is not None),
    (EntryPart.CONTENT_TYPE, lambda entry: entry.content_type),
    (EntryPart.BASE, _relative),
    (EntryPart.EXTENSIONS, lambda entry: entry.extensions),
)
