"""The parts of an entry that some formats cannot represent: one table for all writers, so that every loss is reported.

Atom has no row here, because entries are stored as Atom.
"""

from collections.abc import Callable

from smartfeeds.core.text import escape
from smartfeeds.core.urls import harmless
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, EntryText
from smartfeeds.formats.html_links import has_relative
from smartfeeds.formats.items import FormatLoss

EXTENSIONS = "elements of other namespaces"
EMAIL = "the mail address of a person who has another address too"
UNSAFE_ADDRESSES = "addresses that a reader might run (javascript, vbscript, data)"


def losses_of(entry: Entry, form: str) -> list[FormatLoss]:
    """Returns the parts of the entry that a format of `WRITERS` cannot represent. A deleted item has no losses."""
    if entry.deleted:
        return []
    return [FormatLoss(entry.item_id, text) for text, has in _LOSSES[form] if has(entry)]


def icon_losses(head: FeedHead) -> list[FormatLoss]:
    """The icon of the feed, if its address is one that writers leave out."""
    icon = head.channel.icon
    return [FormatLoss("", f"of the feed itself: {UNSAFE_ADDRESSES}")] if icon and not harmless(icon) else []


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


# A text for people, the formats that represent the part, and whether an entry has the part.
_PARTS: tuple[tuple[str, str, Callable[[Entry], object]], ...] = (
    ("the markup of the title", "rss", lambda entry: _has_style(entry.title)),
    ("the markup of the summary", "rss rss092", lambda entry: _has_style(entry.summary)),
    ("the summary beside the content", "rss jsonfeed json", lambda entry: entry.summary and entry.content),
    ("the authors after the first", "rss rss092 jsonfeed", lambda entry: len(entry.authors) > 1),
    (EMAIL, "rss rss092 json", lambda entry: any(person.email and person.uri for person in entry.authors)),
    ("the contributors", "rss", lambda entry: entry.contributors),
    (
        "the schemes or labels of categories",
        "rss rss092 json",
        lambda entry: any(category.scheme or category.label for category in entry.categories),
    ),
    (
        "the labels of categories",
        "rss jsonfeed json opml",
        lambda entry: any(category.label for category in entry.categories),
    ),
    ("the titles of enclosures", "rss jsonfeed json", lambda entry: any(link.title for link in entry.enclosures)),
    ("the addresses of related pages", "rss rss092 jsonfeed", lambda entry: _links(entry, "related")),
    ("the addresses of related pages after the first", "rss", lambda entry: _links(entry, "related") > 1),
    (
        "links other than to the page and to enclosures",
        "rss",
        lambda entry: any(link.rel not in ("alternate", "enclosure", "related", "preview") for link in entry.links),
    ),
    ("the picture", "rss jsonfeed", lambda entry: entry.picture),
    ("the type, title or length of the link to the page, or what else is said of a link", "rss", _has_link_details),
    ("the addresses of the page after the first", "rss", lambda entry: _links(entry, "alternate") > 1),
    ("the rights", "rss", lambda entry: entry.rights),
    ("the source", "rss rss092 jsonfeed json", lambda entry: entry.source),
    (
        "the source, whose address is not known",
        "rss jsonfeed json opml",
        lambda entry: entry.source is not None and not entry.source.href,
    ),
    ("what it answers", "rss jsonfeed json", lambda entry: entry.replies_to),
    ("the language", "rss jsonfeed json", lambda entry: entry.language),
    ("the languages of single texts", "rss", _has_text_language),
    (
        "what is said of authors beside name and addresses",
        "rss",
        lambda entry: any(person.more for person in (*entry.authors, *entry.contributors)),
    ),
    (
        "what is said of categories beside term, scheme and label",
        "rss",
        lambda entry: any(category.more for category in entry.categories),
    ),
    (UNSAFE_ADDRESSES, "", lambda entry: entry.unsafe),
    (
        "attributes of other namespaces, and elements that an Atom entry does not have",
        "",
        lambda entry: entry.unread,
    ),
    ("the kind of activity or object", "rss json", lambda entry: entry.typed or entry.verb != "post"),
    ("the address of content that is elsewhere", "rss", lambda entry: entry.content_link),
    ("the media type of the content, or the content itself", "rss", lambda entry: entry.content_type),
    ("where relative addresses in its HTML lead: it says no base address", "", _has_relative_address),
    # JSON Feed represents those that came from a JSON Feed; its writer reports the others.
    (EXTENSIONS, "rss jsonfeed opml", lambda entry: entry.extensions),
    ("the markup of the text", "rss rss092 jsonfeed json", lambda entry: _has_style(entry.content)),
    ("the authors", "rss jsonfeed json", lambda entry: entry.authors),
    ("the enclosures", "rss rss092 jsonfeed json", lambda entry: entry.enclosures),
    (
        "the enclosures that are not on the web",
        "rss jsonfeed json opml",
        lambda entry: not all(link.href.startswith(("http://", "https://")) for link in entry.enclosures),
    ),
)
_LOSSES = {
    form: [(text, has) for text, forms, has in _PARTS if form not in forms.split()]
    for form in ("rss", "rss092", "jsonfeed", "json", "opml")
}
