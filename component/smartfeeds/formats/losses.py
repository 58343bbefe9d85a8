"""What a format cannot carry of an entry: one table for all writers, so that nothing is dropped without a word."""

from collections.abc import Callable
from enum import Enum

from smartfeeds.core.text import escape
from smartfeeds.core.urls import harmless
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, Text
from smartfeeds.formats.html_links import has_relative
from smartfeeds.formats.items import Loss


class Part(Enum):
    """A part of an entry that some formats do not have; the value says it to people."""

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


def losses_of(entry: Entry, kept: frozenset[Part]) -> list[Loss]:
    """What is in the entry and not among the parts that a format keeps. Of a deleted item nothing is expected."""
    if entry.deleted:
        return []
    return [Loss(entry.item_id, part.value) for part, has in _PARTS if part not in kept and has(entry)]


def icon_losses(head: FeedHead) -> list[Loss]:
    """The icon of the feed, where its address is one that no document names."""
    icon = head.icon or (head.channel.icon if head.channel else "")
    return [Loss("", f"of the feed itself: {Part.ADDRESSES.value}")] if icon and not harmless(icon) else []


def has_styled(text: Text | None) -> bool:
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


_PARTS: tuple[tuple[Part, Callable[[Entry], object]], ...] = (
    (Part.TITLE_MARKUP, lambda entry: has_styled(entry.title)),
    (Part.SUMMARY_MARKUP, lambda entry: has_styled(entry.summary)),
    (Part.SUMMARY, lambda entry: entry.summary is not None and entry.content is not None),
    (Part.MORE_AUTHORS, lambda entry: len(entry.authors) > 1),
    (Part.EMAIL, lambda entry: any(person.email and person.uri for person in entry.authors)),
    (Part.CONTRIBUTORS, lambda entry: entry.contributors),
    (Part.SCHEME, lambda entry: any(category.scheme or category.label for category in entry.categories)),
    (Part.ENCLOSURE_TITLE, lambda entry: any(link.title for link in entry.enclosures)),
    (Part.RELATED, lambda entry: _rels(entry, "related")),
    (Part.MORE_RELATED, lambda entry: _rels(entry, "related") > 1),
    (Part.LINKS, lambda entry: any(link.rel not in ("alternate", "enclosure", "related") for link in entry.links)),
    (
        Part.LINK_DETAILS,
        lambda entry: any(
            (link.more and link.rel in ("alternate", "related", "enclosure"))
            or (link.rel in ("alternate", "related") and (link.type or link.title or link.length))
            for link in entry.links
        ),
    ),
    (Part.MORE_ALTERNATES, lambda entry: _rels(entry, "alternate") > 1),
    (Part.RIGHTS, lambda entry: entry.rights is not None),
    (Part.SOURCE, lambda entry: entry.source is not None),
    (Part.REPLIES, lambda entry: entry.replies_to),
    (Part.LANGUAGE, lambda entry: entry.language),
    (Part.TEXT_LANGUAGE, _has_text_language),
    (Part.PEOPLE, lambda entry: any(person.more for person in (*entry.authors, *entry.contributors))),
    (Part.CATEGORY_DETAILS, lambda entry: any(category.more for category in entry.categories)),
    (Part.ADDRESSES, lambda entry: entry.unsafe),
    (Part.UNREAD, lambda entry: entry.unread),
    (Part.ACTIVITY, lambda entry: entry.typed or entry.verb != "post"),
    (Part.CONTENT_LINK, lambda entry: entry.content_link is not None),
    (Part.CONTENT_TYPE, lambda entry: entry.content_type),
    (Part.BASE, _relative),
    (Part.EXTENSIONS, lambda entry: entry.extensions),
)
