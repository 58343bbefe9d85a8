"""Items as RSS 2.0 with the elements of 0.92 (RSS-001 to RSS-018, RSS-031; A-121 to A-128, A-137, A-153).

The newest item comes first. RSS's own elements say what they can; what they cannot say (a second link, an author's
address, what an entry answers) stands beside them in Atom's words, and elements of other namespaces are written as
they came, so that `read_document` makes the same items of it. The guid is the atom:id, so that a reader of both
documents of a feed meets no entry twice. A deleted item has no form in RSS.
"""

import re
from collections.abc import Iterable

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.formats.additions import id_mark
from smartfeeds.formats.atom import ATOM_NS, derived_id
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.entry import Category, Entry, EntryLink, EntryText, Person, read_entry
from smartfeeds.formats.items import FormatLoss, WrittenDocument
from smartfeeds.formats.losses import icon_losses, losses_of
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.rss import CONTENT_NS, LOOKS_LIKE_HTML
from smartfeeds.formats.rss_beside import UNKNOWN_TYPE, WEB, extensions, has_body, in_words_of_atom, said_links
from smartfeeds.formats.rss_channel import Channel, channel_elements
from smartfeeds.formats.xml import parse_stored

GENERATOR = "smartfeeds"
RSS_SPECIFICATION = "https://www.rssboard.org/rss-specification"
DC_NS = "http://purl.org/dc/elements/1.1/"

_NAMESPACES = f' xmlns:atom="{ATOM_NS}" xmlns:content="{CONTENT_NS}" xmlns:dc="{DC_NS}"'
_START = f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"{_NAMESPACES}>\n<channel>\n'
_EMAIL = re.compile(r"[^\s()<>]+@[^\s()<>]+")


def write_rss(head: FeedHead, items: Iterable[Item]) -> WrittenDocument:
    """The document in UTF-8; `items` are in the order of the feed, the newest last.

    The cloud, ttl and the like are those of `head.channel`. Raises ForbiddenCharacterError for texts XML cannot carry.
    """
    losses = icon_losses(head)
    pieces = [_item(item, losses) for item in items]
    pieces.reverse()
    return WrittenDocument(b"".join((_START.encode(), _channel(head), *pieces, b"</channel>\n</rss>\n")), tuple(losses))


def write_rss_item(item: Item) -> Payload:
    """A live item as an RSS item that stands alone. What RSS cannot carry is left out."""
    return Payload.of(parse_stored(_item(item, []).replace(b"<item", f"<item{_NAMESPACES}".encode(), 1)))


def _channel(head: FeedHead) -> bytes:
    channel = head.channel or Channel()
    link = head.link or head.self_link or head.id
    language = head.language or channel.language
    icon = harmless(head.icon or channel.icon)
    lines = [
        f"<title>{escape(head.title)}</title>",  # RSS-003: these three always
        f"<link>{escape(link)}</link>",
        f"<description>{escape(head.subtitle or head.title)}</description>",
        f"<language>{escape(language)}</language>" if language else "",
        *(f"<dc:creator>{escape(name)}</dc:creator>" for name in head.authors),
        f"<lastBuildDate>{format_rfc822(head.updated_us)}</lastBuildDate>",
        f"<generator>{escape(channel.generator or GENERATOR)}</generator>",
        f"<docs>{RSS_SPECIFICATION}</docs>",
        *channel_elements(channel),
        f"<image><url>{escape(icon)}</url><title>{escape(head.title)}</title><link>{escape(link)}</link></image>"
        if icon
        else "",
    ]
    for rel, href in {"self": head.self_link, "next": head.next_link, "via": head.via, "hub": head.hub}.items():
        if href:
            kind = ' type="application/rss+xml"' if rel in ("self", "next") else ""
            lines.append(f'<atom:link rel="{rel}"{kind} href="{attribute(href)}"/>')
    text = "".join(f"{line}\n" for line in lines if line).encode()
    return text + b"".join(extension + b"\n" for extension in channel.extensions)


def _item(item: Item, losses: list[FormatLoss]) -> bytes:
    """An item, or nothing and a loss for a deleted one."""
    item = item._replace(payload=payload_of(item.payload))
    entry = read_entry(item)
    if entry.deleted:
        losses.append(FormatLoss(item.id, "a deleted item: RSS has no form for it"))
        return b""
    losses += losses_of(entry, "rss")
    lines = [f"<item{_language(entry.language)}>", *_identity(entry), *_dates(entry)]
    lines += _authors(entry.authors)
    for category in entry.categories:
        lines += _category(category)
    links = said_links(entry)
    lines += _links(links)
    if entry.source is not None and entry.source.href:
        lines.append(f'<source url="{attribute(entry.source.href)}">{escape(entry.source.title)}</source>')
    lines += _bodies(entry)
    kept = [*in_words_of_atom(item, entry, links), *extensions(entry, losses)]
    return "\n".join(lines).encode() + b"\n" + b"".join(one + b"\n" for one in kept) + b"</item>\n"


def _language(language: str) -> str:
    return f' xml:lang="{attribute(language)}"' if language else ""


def _identity(entry: Entry) -> list[str]:
    """Title, link, guid; the item id if the guid does not say it."""
    lines = []
    title = _title(entry.title)
    if title or not has_body(entry):
        lines.append(f"<title{_language(entry.title.language)}>{escape(title)}</title>")
    page = entry.alternate
    if page:
        lines.append(f"<link>{escape(page)}</link>")
    # An atom:id that was made of a guid is that guid again: whoever knew the item by it must not meet it anew.
    guid = entry.item_id if entry.atom_id == derived_id(entry.item_id) else entry.atom_id
    permanent = "" if guid == page and guid.startswith(WEB) else ' isPermaLink="false"'
    lines.append(f"<guid{permanent}>{escape(guid)}</guid>")
    if entry.item_id != guid.strip():
        lines.append(id_mark(entry.item_id).decode())
    return lines


def _title(title: EntryText) -> str:
    """RSS does not say whether a title is HTML, so readers guess: what looks like HTML has to be HTML."""
    if title.is_markup and LOOKS_LIKE_HTML.search(title.value):
        return title.value.strip()
    text = title.plain if title.is_markup else title.value.strip()
    return escape(text) if LOOKS_LIKE_HTML.search(text) else text


def _dates(entry: Entry) -> list[str]:
    issued_us, changed_us = entry.issued_us, entry.changed_us
    lines = [f"<pubDate>{format_rfc822(issued_us)}</pubDate>"]
    if issued_us // US_PER_S != changed_us // US_PER_S:
        lines.append(f"<atom:updated>{format_datetime(changed_us)}</atom:updated>")
    return lines


def _authors(people: Iterable[Person]) -> list[str]:
    """An item has one author at most, a mail address with a name behind it; the others are named otherwise."""
    lines: list[str] = []
    for person in people:
        lines += _author(person, first=not any(line.startswith("<author>") for line in lines))
    return lines


def _author(person: Person, *, first: bool) -> list[str]:
    name, email = person.name, person.email
    if first and _EMAIL.fullmatch(email) and not set(name) & set("()"):
        lines = [f"<author>{escape(f'{email} ({name})' if name and name != email else email)}</author>"]
        said = not person.uri
    else:
        lines = [f"<dc:creator>{escape(person.label)}</dc:creator>"]
        said = not (email and name) and not (person.uri and (name or email))
    # The whole element of a person who has more is copied from the entry.
    if not said and not person.more:
        parts = (("name", person.label), ("uri", person.uri), ("email", email))
        inside = "".join(f"<atom:{tag}>{escape(text)}</atom:{tag}>" for tag, text in parts if text)
        lines.append(f"<atom:author>{inside}</atom:author>")
    return lines


def _category(category: Category) -> list[str]:
    """RSS-013, RSS-014: the term as it is."""
    domain = f' domain="{attribute(category.scheme)}"' if category.scheme else ""
    lines = [f"<category{domain}>{escape(category.term)}</category>"]
    if category.label and not category.more:
        scheme = f' scheme="{attribute(category.scheme)}"' if category.scheme else ""
        term, label = attribute(category.term), attribute(category.label)
        lines.append(f'<atom:category term="{term}"{scheme} label="{label}"/>')
    return lines


def _links(links: list[EntryLink]) -> list[str]:
    """Enclosures and the page of comments; the page of the entry stands at its front, other links are Atom's."""
    lines = []
    for link in links:
        if link.rel == "enclosure":
            length, kind = link.length or 0, link.type or UNKNOWN_TYPE
            lines.append(f'<enclosure url="{attribute(link.href)}" length="{length}" type="{attribute(kind)}"/>')
        elif link.rel == "replies":
            lines.append(f"<comments>{escape(link.href)}</comments>")
    return lines


def _bodies(entry: Entry) -> list[str]:
    """A-125: both are HTML, encoded once; with one of both it is the description."""
    bodies = [text for text in (entry.summary, entry.content) if text is not None and text.value.strip()]
    names = ("description", "content:encoded") if not entry.content_type else ("description",)
    return [
        f"<{name}{_language(body.language)}>{escape(body.html)}</{name}>"
        for name, body in zip(names, bodies, strict=False)
    ]
