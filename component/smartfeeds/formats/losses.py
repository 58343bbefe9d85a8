"""The parts of an entry that some formats cannot represent: one table for all writers, so that every loss is reported.

A format states the parts that it represents. Atom states none, because entries are stored as Atom.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum

from smartfeeds.core.text import escape
from smartfeeds.core.urls import harmless
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, EntryText
from smartfeeds.formats.html_links import has_relative
from smartfeeds.formats.items import FormatLoss


class EntryPart(Enum):
    """A part of an entry. The value is its name for people."""

    TITLE_MARKUP = "the markup of the title"
    SUMMARY_MARKUP = "the markup of the summary"
    SUMMARY = "the summary beside the content"
    AUTHORS_AFTER_FIRST = "the authors after the first"
    EMAIL = "the mail address of a person who has another address too"
    CONTRIBUTORS = "the contributors"
    SCHEMES_AND_LABELS = "the schemes or labels of categories"
    LABELS = "the labels of categories"
    ENCLOSURE_TITLES = "the titles of enclosures"
    RELATED = "the addresses of related pages"
    RELATED_AFTER_FIRST = "the addresses of related pages after the first"
    OTHER_LINKS = "links other than to the page and to enclosures"
    PICTURE = "the picture"
    LINK_DETAILS = "the type, title or length of the link to the page, or what else is said of a link"
    PAGES_AFTER_FIRST = "the addresses of the page after the first"
    RIGHTS = "the rights"
    SOURCE = "the source"
    SOURCE_TITLE = "the source, whose address is not known"
    REPLIES = "what it answers"
    LANGUAGE = "the language"
    TEXT_LANGUAGES = "the languages of single texts"
    PERSON_DETAILS = "what is said of authors beside name and addresses"
    CATEGORY_DETAILS = "what is said of categories beside term, scheme and label"
    UNSAFE_ADDRESSES = "addresses that a reader might run (javascript, vbscript, data)"
    UNREAD = "attributes of other namespaces, and elements that an Atom entry does not have"
    KINDS = "the kind of activity or object"
    CONTENT_ADDRESS = "the address of content that is elsewhere"
    CONTENT_TYPE = "the media type of the content, or the content itself"
    RELATIVE_ADDRESSES = "where relative addresses in its HTML lead: it says no base address"
    EXTENSIONS = "elements of other namespaces"
    CONTENT_MARKUP = "the markup of the text"
    AUTHORS = "the authors"
    ENCLOSURES = "the enclosures"
    ENCLOSURES_OFF_WEB = "the enclosures that are not on the web"


Lost = tuple[tuple[str, Callable[[Entry], object]], ...]


def lost_of(represented: AbstractSet[EntryPart]) -> Lost:
    """Returns the parts that a format loses, in the order in which they are reported. `represented` are the others."""
    return tuple((part.value, has) for part, has in _HAS.items() if part not in represented)


def losses_of(entry: Entry, lost: Lost) -> list[FormatLoss]:
    """Returns the parts of the entry that a format loses. A deleted item has no losses."""
    if entry.deleted:
        return []
    return [FormatLoss(entry.item_id, text) for text, has in lost if has(entry)]


def icon_losses(head: FeedHead) -> list[FormatLoss]:
    """The icon of the feed, if its address is one that writers leave out."""
    icon = head.channel.icon
    return (
        [FormatLoss("", f"of the feed itself: {EntryPart.UNSAFE_ADDRESSES.value}")]
        if icon and not harmless(icon)
        else []
    )


def _has_style(text: EntryText | None) -> bool:
    """Whether a text has more in it as HTML than as plain text."""
    return text is not None and text.is_markup and text.value.strip() != escape(text.plain)


def _has_relative_address(entry: Entry) -> bool:
    texts = (text for text in (entry.content, entry.summary, entry.title) if text is not None)
    return any(text.is_markup and has_relative(text.value) for text in texts)


def _has_text_language(entry: Entry) -> bool:
    texts = (entry.title, entry.summary, entry.content, entry.rights)
    return any(text is not None and text.language not in ("", entry.language) for text in texts)


def _has_link_details(entry: Entry) -> bool:
    """Formats other than Atom have the address of a page, and the type, title and length of an enclosure."""
    return any(
        (link.more and link.rel in ("alternate", "related", "enclosure"))
        or (link.rel in ("alternate", "related") and (link.type or link.title or link.length))
        for link in entry.links
    )


def _links(entry: Entry, rel: str) -> int:
    return sum(link.rel == rel for link in entry.links)


# Whether an entry has a part.
_HAS: Mapping[EntryPart, Callable[[Entry], object]] = {
    EntryPart.TITLE_MARKUP: lambda entry: _has_style(entry.title),
    EntryPart.SUMMARY_MARKUP: lambda entry: _has_style(entry.summary),
    EntryPart.SUMMARY: lambda entry: entry.summary and entry.content,
    EntryPart.AUTHORS_AFTER_FIRST: lambda entry: len(entry.authors) > 1,
    EntryPart.EMAIL: lambda entry: any(person.email and person.uri for person in entry.authors),
    EntryPart.CONTRIBUTORS: lambda entry: entry.contributors,
    EntryPart.SCHEMES_AND_LABELS: lambda entry: any(category.scheme or category.label for category in entry.categories),
    EntryPart.LABELS: lambda entry: any(category.label for category in entry.categories),
    EntryPart.ENCLOSURE_TITLES: lambda entry: any(link.title for link in entry.enclosures),
    EntryPart.RELATED: lambda entry: _links(entry, "related"),
    EntryPart.RELATED_AFTER_FIRST: lambda entry: _links(entry, "related") > 1,
    EntryPart.OTHER_LINKS: lambda entry: any(
        link.rel not in ("alternate", "enclosure", "related", "preview") for link in entry.links
    ),
    EntryPart.PICTURE: lambda entry: entry.picture,
    EntryPart.LINK_DETAILS: _has_link_details,
    EntryPart.PAGES_AFTER_FIRST: lambda entry: _links(entry, "alternate") > 1,
    EntryPart.RIGHTS: lambda entry: entry.rights,
    EntryPart.SOURCE: lambda entry: entry.source,
    EntryPart.SOURCE_TITLE: lambda entry: entry.source is not None and not entry.source.href,
    EntryPart.REPLIES: lambda entry: entry.replies_to,
    EntryPart.LANGUAGE: lambda entry: entry.language,
    EntryPart.TEXT_LANGUAGES: _has_text_language,
    EntryPart.PERSON_DETAILS: lambda entry: any(person.more for person in (*entry.authors, *entry.contributors)),
    EntryPart.CATEGORY_DETAILS: lambda entry: any(category.more for category in entry.categories),
    EntryPart.UNSAFE_ADDRESSES: lambda entry: entry.unsafe,
    EntryPart.UNREAD: lambda entry: entry.unread,
    EntryPart.KINDS: lambda entry: entry.typed or entry.verb != "post",
    EntryPart.CONTENT_ADDRESS: lambda entry: entry.content_link,
    EntryPart.CONTENT_TYPE: lambda entry: entry.content_type,
    EntryPart.RELATIVE_ADDRESSES: _has_relative_address,
    # JSON Feed represents those that came from a JSON Feed; its writer reports the others.
    EntryPart.EXTENSIONS: lambda entry: entry.extensions,
    EntryPart.CONTENT_MARKUP: lambda entry: _has_style(entry.content),
    EntryPart.AUTHORS: lambda entry: entry.authors,
    EntryPart.ENCLOSURES: lambda entry: entry.enclosures,
    EntryPart.ENCLOSURES_OFF_WEB: lambda entry: (
        not all(link.href.startswith(("http://", "https://")) for link in entry.enclosures)
    ),
}
