"""The parts of an entry that some formats cannot represent: one table for all writers, so that every loss is reported.

Each format states in its own module the parts that it represents. Atom states none, because entries are stored as Atom.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import NamedTuple

from smartfeeds.core.text import escape
from smartfeeds.core.urls import harmless
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, EntryText
from smartfeeds.formats.feed_document import FormatLoss
from smartfeeds.formats.html_links import has_relative


class _Part(NamedTuple):
    """The name of a part for people, and whether an entry has it."""

    text: str
    has: Callable[[Entry], object]


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


class EntryPart(Enum):
    """The parts, in the order in which losses are reported."""

    TITLE_MARKUP = _Part("the markup of the title", lambda entry: _has_style(entry.title))
    SUMMARY_MARKUP = _Part("the markup of the summary", lambda entry: _has_style(entry.summary))
    SUMMARY = _Part("the summary beside the content", lambda entry: entry.summary and entry.content)
    AUTHORS_AFTER_FIRST = _Part("the authors after the first", lambda entry: len(entry.authors) > 1)
    EMAIL = _Part(
        "the mail address of a person who has another address too",
        lambda entry: any(person.email and person.uri for person in entry.authors),
    )
    CONTRIBUTORS = _Part("the contributors", lambda entry: entry.contributors)
    SCHEMES_AND_LABELS = _Part(
        "the schemes or labels of categories",
        lambda entry: any(category.scheme or category.label for category in entry.categories),
    )
    LABELS = _Part("the labels of categories", lambda entry: any(category.label for category in entry.categories))
    ENCLOSURE_TITLES = _Part("the titles of enclosures", lambda entry: any(link.title for link in entry.enclosures))
    RELATED = _Part("the addresses of related pages", lambda entry: _links(entry, "related"))
    RELATED_AFTER_FIRST = _Part(
        "the addresses of related pages after the first", lambda entry: _links(entry, "related") > 1
    )
    OTHER_LINKS = _Part(
        "links other than to the page and to enclosures",
        lambda entry: any(link.rel not in ("alternate", "enclosure", "related", "preview") for link in entry.links),
    )
    PICTURE = _Part("the picture", lambda entry: entry.picture)
    LINK_DETAILS = _Part(
        "the type, title or length of the link to the page, or what else is said of a link", _has_link_details
    )
    PAGES_AFTER_FIRST = _Part("the addresses of the page after the first", lambda entry: _links(entry, "alternate") > 1)
    RIGHTS = _Part("the rights", lambda entry: entry.rights)
    SOURCE = _Part("the source", lambda entry: entry.source)
    SOURCE_TITLE = _Part(
        "the source, whose address is not known", lambda entry: entry.source is not None and not entry.source.href
    )
    REPLIES = _Part("what it answers", lambda entry: entry.replies_to)
    LANGUAGE = _Part("the language", lambda entry: entry.language)
    TEXT_LANGUAGES = _Part("the languages of single texts", _has_text_language)
    PERSON_DETAILS = _Part(
        "what is said of authors beside name and addresses",
        lambda entry: any(person.more for person in (*entry.authors, *entry.contributors)),
    )
    CATEGORY_DETAILS = _Part(
        "what is said of categories beside term, scheme and label",
        lambda entry: any(category.more for category in entry.categories),
    )
    UNSAFE_ADDRESSES = _Part(
        "addresses that a reader might run (javascript, vbscript, data)", lambda entry: entry.unsafe
    )
    UNREAD = _Part(
        "attributes of other namespaces, and elements that an Atom entry does not have", lambda entry: entry.unread
    )
    KINDS = _Part("the kind of activity or object", lambda entry: entry.typed or entry.verb != "post")
    CONTENT_ADDRESS = _Part("the address of content that is elsewhere", lambda entry: entry.content_link)
    CONTENT_TYPE = _Part("the media type of the content, or the content itself", lambda entry: entry.content_type)
    RELATIVE_ADDRESSES = _Part(
        "where relative addresses in its HTML lead: it says no base address", _has_relative_address
    )
    EXTENSIONS = _Part("elements of other namespaces", lambda entry: entry.extensions)
    CONTENT_MARKUP = _Part("the markup of the text", lambda entry: _has_style(entry.content))
    AUTHORS = _Part("the authors", lambda entry: entry.authors)
    ENCLOSURES = _Part("the enclosures", lambda entry: entry.enclosures)
    ENCLOSURES_OFF_WEB = _Part(
        "the enclosures that are not on the web",
        lambda entry: not all(link.href.startswith(("http://", "https://")) for link in entry.enclosures),
    )


Lost = tuple[_Part, ...]


def lost_of(represented: AbstractSet[EntryPart]) -> Lost:
    """Returns the parts that a format loses. `represented` are the others."""
    return tuple(part.value for part in EntryPart if part not in represented)


def losses_of(entry: Entry, lost: Lost) -> list[FormatLoss]:
    """Returns the parts of the entry that a format loses. A deleted item has no losses."""
    if entry.deleted:
        return []
    return [FormatLoss(entry.item_id, text) for text, has in lost if has(entry)]


def icon_losses(head: FeedHead) -> list[FormatLoss]:
    """The icon of the feed, if its address is one that writers leave out."""
    icon = head.channel.icon
    return (
        [FormatLoss("", f"of the feed itself: {EntryPart.UNSAFE_ADDRESSES.value.text}")]
        if icon and not harmless(icon)
        else []
    )
