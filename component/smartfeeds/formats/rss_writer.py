"""Items as RSS 2.0 with the elements of 0.92 (RSS-001 to RSS-018, RSS-031; A-121 to A-128, A-137, A-153).

The newest item comes first. RSS's own elements say what they can; what they cannot say (a second link, an author's
address, what an entry answers) stands beside them in Atom's words, and elements of other namespaces are written as
they came, so that `read_document` makes the same items of it. A deleted item has no form in RSS.
"""

import re
from collections.abc import Iterable

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.entry import Category, Entry, Link, Person, Text, read_entry
from smartfeeds.formats.items import Loss, Written
from smartfeeds.formats.rss import CONTENT_NS, LOOKS_LIKE_HTML
from smartfeeds.formats.rss_beside import UNKNOWN_TYPE, WEB, extensions, has_body, in_words_of_atom, said_links
from smartfeeds.formats.rss_channel import Channel, channel_elements

GENERATOR = "smartfeeds"
RSS_SPECIFICATION = "https://www.rssboard.org/rss-specification"
DC_NS = "http://purl.org/dc/elements/1.1/"

_START = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="{ATOM_NS}" '
    f'xmlns:content="{CONTENT_NS}" xmlns:dc="{DC_NS}">\n<channel>\n'
)
_EMAIL = re.compile(r"[^\s()<>]+@[^\s()<>]+")


def write_rss(head: FeedHead, items: Iterable[Item]) -> Written:
    """The document in UTF-8; `items` are in the order of the feed, the newest last.

    The cloud, ttl and the like are those of `head.channel`. Raises ForbiddenCharacterError for texts XML cannot carry.
    """
    losses: list[Loss] = []
    pieces = [_item(item, losses) for item in items]
    pieces.reverse()
    return Written(b"".join((_START.encode(), _channel(head), *pieces, b"</channel>\n</rss>\n")), tuple(losses))


def _channel(head: FeedHead) -> bytes:
    channel = head.channel or Channel()
    link = head.link or head.self_link or head.id
    language = head.language or channel.language
    icon = head.icon or channel.icon
    lines = [
        f"<title>{escape(head.title)}</title>",  # RSS-003: these three always
        f"<link>{escape(link)}</link>",
        f"<description>{escape(head.subtitle or head.title)}</description>",
        f"<language>{escape(language)}</language>" if language else "",
        *(f"<dc:creator>{escape(name)}</dc:creator>" for name in head.authors),
        f"<lastBuildDate>{format_rfc822(head.updated_us)}</lastBuildDate>",
        f"<generator>{GENERATOR}</generator>",
        f"<docs>{RSS_SPECIFICATION}</docs>",
        *channel_elements(channel),
        f"<image><url>{escape(icon)}</url><title>{escape(head.title)}</title><link>{escape(link)}</link></image>"
        if icon
        else "",
    ]
    for rel, href in (("self", head.self_link), ("next", head.next_link), ("hub", head.hub)):
        if href:
            kind = "" if rel == "hub" else ' type="application/rss+xml"'
            lines.append(f'<atom:link rel="{rel}"{kind} href="{attribute(href)}"/>')
    text = "".join(f"{line}\n" for line in lines if line).encode()
    return text + b"".join(extension + b"\n" for extension in channel.extensions)


def _item(item: Item, losses: list[Loss]) -> bytes:
    """An item, or nothing and a loss for a deleted one."""
    entry = read_entry(item)
    if entry.deleted:
        losses.append(Loss(item.id, "a deleted item: RSS has no form for it"))
        return b""
    language = f' xml:lang="{attribute(entry.language)}"' if entry.language else ""
    lines = [f"<item{language}>", *_identity(entry, losses), *_dates(entry)]
    for person in entry.authors:
        lines += _author(person)
    for category in entry.categories:
        lines += _category(category)
    links = said_links(entry)
    lines += _links(links)
    if entry.source is not None and entry.source.href:
        lines.append(f'<source url="{attribute(entry.source.href)}">{escape(entry.source.title)}</source>')
    lines += _bodies(entry)
    kept = [*in_words_of_atom(item, entry, links), *extensions(entry, losses)]
    return "\n".join(lines).encode() + b"\n" + b"".join(one + b"\n" for one in kept) + b"</item>\n"


def _identity(entry: Entry, losses: list[Loss]) -> list[str]:
    """Title, link, guid; the atom:id where it is another, because replies refer to it."""
    lines = []
    title = _title(entry.title)
    if title or not has_body(entry):
        lines.append(f"<title>{escape(title)}</title>")
    page = entry.alternate
    if page:
        lines.append(f"<link>{escape(page)}</link>")
    item_id = entry.item_id
    permanent = "" if item_id == page and item_id.startswith(WEB) else ' isPermaLink="false"'
    lines.append(f"<guid{permanent}>{escape(item_id)}</guid>")
    if entry.has_own_id and entry.atom_id != item_id:
        lines.append(f"<atom:id>{escape(entry.atom_id)}</atom:id>")
    if item_id != item_id.strip():
        losses.append(Loss(item_id, "the white space around its id"))
    return lines


def _title(title: Text) -> str:
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


def _author(person: Person) -> list[str]:
    """RSS has mail addresses with a name behind; who has none, or more than that, is named otherwise."""
    name, email = person.name, person.email
    if _EMAIL.fullmatch(email) and not set(name) & set("()"):
        lines = [f"<author>{escape(f'{email} ({name})' if name and name != email else email)}</author>"]
        said = not person.uri
    else:
        lines = [f"<dc:creator>{escape(person.label)}</dc:creator>"]
        said = not (email and name) and not (person.uri and (name or email))
    if not said:
        parts = (("name", person.label), ("uri", person.uri), ("email", email))
        inside = "".join(f"<atom:{tag}>{escape(text)}</atom:{tag}>" for tag, text in parts if text)
        lines.append(f"<atom:author>{inside}</atom:author>")
    return lines


def _category(category: Category) -> list[str]:
    """RSS-013, RSS-014: the term as it is."""
    domain = f' domain="{attribute(category.scheme)}"' if category.scheme else ""
    lines = [f"<category{domain}>{escape(category.term)}</category>"]
    if category.label:
        scheme = f' scheme="{attribute(category.scheme)}"' if category.scheme else ""
        term, label = attribute(category.term), attribute(category.label)
        lines.append(f'<atom:category term="{term}"{scheme} label="{label}"/>')
    return lines


def _links(links: list[Link]) -> list[str]:
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
    return [f"<{name}{_base(body)}>{escape(body.html)}</{name}>" for name, body in zip(names, bodies, strict=False)]


def _base(body: Text) -> str:
    return f' xml:base="{attribute(body.base)}"' if body.base else ""
