"""Items as RSS 2.0 with the elements of 0.92 (RSS-001 to RSS-018, RSS-031; A-121 to A-128, A-137, A-153).

The newest item comes first. RSS elements represent what they can. Atom elements beside them represent the rest: a
second link, an author's address, the entry that an item answers. RSS 2.0, "Extending RSS", allows this. Elements of
other namespaces are copied, so that `read_document` returns the same items. The guid is the atom:id, so that a reader
of both the Atom and the RSS form of a feed shows no entry twice. A deleted item has no form in RSS.
"""

import re
from collections.abc import Iterable

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.core.web_address import uri_of
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, representation, xml
from smartfeeds.formats.additions import id_mark
from smartfeeds.formats.atom import ATOM_NS, derived_id
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.document_format import DocumentFormat, Reader, whole
from smartfeeds.formats.entry import (
    ACTIVITY_NS,
    Category,
    Entry,
    EntryLink,
    EntryPerson,
    EntrySource,
    EntryText,
    has_more,
    read_entry,
)
from smartfeeds.formats.feed_document import FormatLoss, WrittenDocument
from smartfeeds.formats.links import is_absolute, resolve, resolve_uri
from smartfeeds.formats.losses import EntryPart, icon_losses, losses_of, lost_of
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.plain import LOOKS_LIKE_HTML
from smartfeeds.formats.rss import CONTENT_ENCODED, CONTENT_NS, is_mail, is_rss, read_rss
from smartfeeds.formats.rss_channel import CHANNEL_PARTS, RSS_NAMESPACES, channel_elements
from smartfeeds.formats.xml import XML_BASE, Element, parse_stored

_LOST = lost_of(set(EntryPart) - {EntryPart.UNSAFE_ADDRESSES, EntryPart.UNREAD, EntryPart.RELATIVE_ADDRESSES})
GENERATOR = "smartfeeds"
RSS_SPECIFICATION = "https://www.rssboard.org/rss-specification"
DC_NS = "http://purl.org/dc/elements/1.1/"

_NO_HEAD = FeedHead("", "", 0)
_NAMESPACES = f' xmlns:atom="{ATOM_NS}" xmlns:content="{CONTENT_NS}" xmlns:dc="{DC_NS}"'
_START = f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"{_NAMESPACES}>\n<channel>\n'
RSS_END = b"</channel>\n</rss>\n"

WEB = ("http://", "https://")
UNKNOWN_TYPE = "application/octet-stream"  # RSS requires a type (RSS-011)
_PAGE_TYPES = frozenset({"", "text/html"})
# Elements with these local names would be read as RSS's own, which are written from the entry.
_RSS_ELEMENTS = frozenset(
    {"author", "category", "comments", "description", "enclosure", "guid", "link", "pubdate", "source", "title"}
)
_LOCAL_NAME = re.compile(rb"<(?:[^\s:>]+:)?([^\s>]+)")
_SUSPECT = frozenset({b"encoded", *(name.encode() for name in _RSS_ELEMENTS)})
# RSS has all of these, and most entries have little else.
_NEVER_ATOM = frozenset({atom.ID, atom.TITLE, atom.UPDATED, atom.PUBLISHED, atom.SUMMARY})
_ALWAYS_ATOM = frozenset(
    {
        atom.IN_REPLY_TO,
        f"{{{ACTIVITY_NS}}}object-type",
        f"{{{ACTIVITY_NS}}}verb",
        f"{{{ATOM_NS}}}contributor",
        f"{{{ATOM_NS}}}rights",
    }
)
_SIMPLE_SOURCE = frozenset({atom.ID, atom.TITLE, atom.LINK})
_DEFAULT = re.compile(rb'<([^\s:>]+) xmlns="%s"' % re.escape(ATOM_NS.encode()))


def write_rss(head: FeedHead, items: Iterable[Item]) -> WrittenDocument:
    """The document in UTF-8; `items` are in the order of the feed, the newest last.

    The cloud, ttl and the like are those of `head.channel`. Raises ForbiddenCharacterError for texts XML cannot carry.
    """
    losses = icon_losses(head)
    pieces = [_item(head, item, losses) for item in items]
    pieces.reverse()
    return WrittenDocument(b"".join((rss_head(head), *pieces, RSS_END)), tuple(losses))


def rss_head(head: FeedHead) -> bytes:
    """The document up to its first item; RSS_END follows the last one."""
    return _START.encode() + _channel(head)


def write_rss_item(item: Item) -> Payload:
    """A live item as an RSS item that stands alone. What RSS cannot carry is left out."""
    return Payload.of(parse_stored(_item(_NO_HEAD, item, []).replace(b"<item", f"<item{_NAMESPACES}".encode(), 1)))


def _channel(head: FeedHead) -> bytes:
    channel = head.channel
    link = uri_of(head.link or head.self_link or head.id)
    language = head.language or channel.language
    icon = uri_of(harmless(channel.icon))
    lines = [
        f"<title>{escape(head.title)}</title>",  # RSS-003: these three always
        f"<link>{escape(link)}</link>",
        f"<description>{escape(head.subtitle or head.title)}</description>",
        f"<language>{escape(language)}</language>" if language else "",
        *(f"<dc:creator>{escape(name)}</dc:creator>" for name in channel.authors),
        f"<lastBuildDate>{format_rfc822(head.updated_us)}</lastBuildDate>",
        f"<generator>{escape(channel.generator or GENERATOR)}</generator>",
        f"<docs>{RSS_SPECIFICATION}</docs>",
        *channel_elements(channel),
        f"<image><url>{escape(icon)}</url><title>{escape(head.title)}</title><link>{escape(link)}</link></image>"
        if icon
        else "",
    ]
    for rel, href in {"self": head.self_link, "next": head.next_link, "via": head.via, "hub": channel.hub}.items():
        if href:
            kind = ' type="application/rss+xml"' if rel in ("self", "next") else ""
            lines.append(f'<atom:link rel="{rel}"{kind} href="{attribute(uri_of(href))}"/>')
    text = "".join(f"{line}\n" for line in lines if line).encode()
    return text + b"".join(extension + b"\n" for extension in channel.extensions)


def _item(head: FeedHead, item: Item, losses: list[FormatLoss]) -> bytes:
    """An item, or nothing and a loss for a deleted one."""
    item = item._replace(payload=payload_of(item.payload))  # parsed once, for the entry and for its Atom elements
    entry = read_entry(item)
    if entry.deleted:
        losses.append(FormatLoss(item.id, "a deleted item: RSS has no form for it"))
        return b""
    losses += losses_of(entry, _LOST)
    if head.for_readers:
        _simplify(entry)
    links, complete = _links(entry)
    if head.for_readers:
        complete = [whole or not is_absolute(link.href) for whole, link in zip(complete, entry.links, strict=True)]
    lines = [
        f"<item{_language(entry.language)}>",
        *_identity(head, entry),
        *_dates(entry),
        *_authors(entry.authors),
        *_categories(entry),
        *links,
    ]
    lines += [source_element(entry.source), *_bodies(entry)]
    elements = [*_atom_elements(item, entry, complete), *_extensions(entry, losses), b"</item>"]
    text = "\n".join(line for line in lines if line)
    return text.encode() + b"\n" + b"".join(element + b"\n" for element in elements)


def source_element(source: EntrySource | None) -> str:
    """The channel that an item came from (RSS-007 to RSS-009), "" if its address is not known."""
    if source is None or not source.href:
        return ""
    return f'<source url="{attribute(source.href)}">{escape(source.title)}</source>'


def enclosure_element(link: EntryLink) -> str:
    """Returns the element of an enclosure, always with all three attributes (RSS-011). A length of 0 is unknown
    (A-128)."""
    kind = link.type or UNKNOWN_TYPE
    return f'<enclosure url="{attribute(link.href)}" length="{link.length or 0}" type="{attribute(kind)}"/>'


def web_enclosures(entry: Entry) -> list[EntryLink]:
    """The enclosures that RSS can have: their addresses are on the web (RSS-012, A-126)."""
    return [link for link in entry.links if link.rel == "enclosure" and link.href.startswith(WEB)]


def category_element(category: Category) -> str:
    """Returns the element of a category: the term as it is, the scheme as domain (RSS-013, RSS-014). RSS has no place
    for a label."""
    domain = f' domain="{attribute(category.scheme)}"' if category.scheme else ""
    return f"<category{domain}>{escape(category.term)}</category>"


def _simplify(entry: Entry) -> None:
    """Leaves only RSS elements of authors and categories. Readers that know the Atom elements beside them, too, show
    the same author twice, and few of them read a name in `author`."""
    entry.authors = [EntryPerson(person.label) for person in entry.authors]
    entry.categories = [Category(category.term, category.scheme) for category in entry.categories]
    entry.content, entry.content_link = entry.shown_content, None


def _language(language: str) -> str:
    return f' xml:lang="{attribute(language)}"' if language else ""


def _identity(head: FeedHead, entry: Entry) -> list[str]:
    """Title, link, guid; the item id if the guid does not say it."""
    lines = []
    # RSS does not define whether a title is HTML. Most readers show it as it is, so their documents have plain titles.
    title = entry.title.plain if head.for_readers else _title(entry.title)
    if title or not texts_of(entry):  # RSS 2.0: an item has a title or a description
        lines.append(f"<title{_language(entry.title.language)}>{escape(title)}</title>")
    page = head.page_of(entry)
    if page:
        lines.append(f"<link>{escape(page)}</link>")
    # An atom:id that was made of a guid is written as that guid again, because readers know the item by its guid.
    guid = entry.item_id if entry.atom_id == derived_id(entry.item_id) else entry.atom_id
    permanent = "" if guid == page and guid.startswith(WEB) else ' isPermaLink="false"'
    lines.append(f"<guid{permanent}>{escape(guid)}</guid>")
    if entry.item_id != guid.strip():
        lines.append(id_mark(entry.item_id).decode())
    return lines


def _title(title: EntryText) -> str:
    """A title from which an import makes the same title. A text that looks like HTML is escaped once more, because the
    import reads it as HTML."""
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


def _authors(people: Iterable[EntryPerson]) -> list[str]:
    """RSS 2.0 has one `author` at most: a mail address with a name behind it. Other people are in `dc:creator`."""
    lines: list[str] = []
    has_author = False
    for person in people:
        name, email = person.name, person.email
        # Parentheses in a name would end the comment that the name is in (RFC 822 3.4.3).
        if not has_author and is_mail(email) and not set(name) & set("()"):
            has_author = True
            lines.append(f"<author>{escape(f'{email} ({name})' if name and name != email else email)}</author>")
            complete = not person.uri
        else:
            lines.append(f"<dc:creator>{escape(person.label)}</dc:creator>")
            complete = not (email and name) and not (person.uri and (name or email))
        # `_atom_elements` copies the whole element of a person who has more than these parts.
        if not complete and not person.more:
            parts = (("name", person.label), ("uri", person.uri), ("email", email))
            inside = "".join(f"<atom:{tag}>{escape(text)}</atom:{tag}>" for tag, text in parts if text)
            lines.append(f"<atom:author>{inside}</atom:author>")
    return lines


def _categories(entry: Entry) -> list[str]:
    lines = []
    for category in entry.categories:
        lines.append(category_element(category))
        if category.label and not category.more:
            where = f' scheme="{attribute(category.scheme)}"' if category.scheme else ""
            label = attribute(category.label)
            lines.append(f'<atom:category term="{attribute(category.term)}"{where} label="{label}"/>')
    return lines


def _links(entry: Entry) -> tuple[list[str], list[bool]]:
    """The comments and enclosures of an item (RSS-010 to RSS-012, A-127), and for each link whether RSS has all of it.

    `_identity` writes the page of the entry. RSS enclosures are on the web only.
    """
    lines: list[str] = []
    complete: list[bool] = []
    has_page = has_comments = False
    for link in entry.links:
        whole = False
        if link.rel == "alternate" and not has_page:
            has_page = True
            whole = link.length is None and link.type in _PAGE_TYPES
        elif link.rel == "replies" and link.type == "text/html" and not has_comments:
            has_comments = True
            lines.append(f"<comments>{escape(link.href)}</comments>")
            whole = link.length is None
        elif link.rel == "enclosure" and link.href.startswith(WEB):
            lines.append(enclosure_element(link))
            whole = bool(link.type)
        complete.append(whole and not link.title and not link.more)
    return lines, complete


def _bodies(entry: Entry) -> list[str]:
    """Writes summary and content as HTML, escaped once (A-125). If the entry has only one of them, it is the
    description."""
    bodies = texts_of(entry)
    names = ("description", "content:encoded") if not entry.content_type else ("description",)
    return [
        f"<{name}{_language(body.language)}>{escape(body.html)}</{name}>"
        for name, body in zip(names, bodies, strict=False)
    ]


def texts_of(entry: Entry) -> list[EntryText]:
    """The texts of an entry that are not empty, the summary first."""
    return [text for text in (entry.summary, entry.content) if text is not None and text.value.strip()]


def _atom_elements(item: Item, entry: Entry, complete: list[bool]) -> list[bytes]:
    """The elements of an entry that RSS has no element for, or only a poorer one; `complete` are the links that it has.

    `rss` reads these elements together with RSS's own, so that no data of the entry is lost.
    """
    try:
        root = payload_of(item.payload).root
    except FeedError:  # `read_entry` has nothing of such a payload either
        return []
    base = root.get(XML_BASE, "")
    links = iter(complete)
    elements = []
    for child in root:
        tag = child.tag  # lxml makes it anew each time
        if tag in _NEVER_ATOM:
            continue
        if tag == atom.LINK:
            # `read_entry` leaves out links without an address, and unsafe ones.
            href = child.get("href", "").strip()
            if not href or not harmless(href) or next(links):
                continue
        elif not _needs_atom(child, tag, entry):
            continue
        elements.append(_alone(child, base))
    return elements


def _needs_atom(child: Element, tag: str, entry: Entry) -> bool:
    if tag == atom.CONTENT:
        return entry.content_link is not None or bool(entry.content_type)
    if tag == atom.SOURCE:
        return not _is_simple(child)
    if tag in (atom.AUTHOR, atom.CATEGORY):
        return has_more(child)
    return tag in _ALWAYS_ATOM


def _is_simple(source: Element) -> bool:
    """Whether a source has only the elements that the reader makes of an RSS source."""
    address = next((link.get("href", "") for link in source.iterchildren(atom.LINK)), "")
    return (
        bool(address)
        and len(source) == len({child.tag for child in source})
        and all(child.tag in _SIMPLE_SOURCE for child in source)
        and (source.findtext(atom.ID) or address).strip() == address
    )


def _alone(child: Element, base: str) -> bytes:
    """An element of the entry with the base address that it has inherited written into it."""
    base = resolve(base, child.get(XML_BASE, ""))
    for name in ("href", "src"):
        reference = child.get(name)
        if reference is not None:
            child.set(name, resolve_uri(base, reference))
    if base and child.tag not in (atom.LINK, atom.IN_REPLY_TO):
        child.set(XML_BASE, base)
    return _prefixed(xml.canonical(child))


def _prefixed(data: bytes) -> bytes:
    """An Atom element with the prefix of the document, because parsers that ignore namespaces would read a "link" or a
    "source" as the item's own. Elements inside have no prefix, so the default namespace stays declared for them."""
    start = _DEFAULT.match(data)
    if start is None or b" xmlns:atom=" in data:
        return data
    name = start[1]
    rest = data[start.end() : -len(name) - 3]  # without the end tag
    declaration = b' xmlns="%s"' % ATOM_NS.encode() if b"<" in rest else b""
    return b"<atom:%b%b%b</atom:%b>" % (name, declaration, rest, name)


def _extensions(entry: Entry, losses: list[FormatLoss]) -> list[bytes]:
    """Elements of other namespaces, without those that a reader would take for RSS's own."""
    extensions = []
    for data in entry.extensions:
        name = _LOCAL_NAME.match(data)
        # Parsing takes much longer than this look at the name.
        reason = _conflict(data, entry) if name is not None and name[1].lower() in _SUSPECT else ""
        if reason:
            losses.append(FormatLoss(entry.item_id, reason))
        else:
            extensions.append(data)
    return extensions


def _conflict(data: bytes, entry: Entry) -> str:
    """Returns the reason why an element cannot stand in an RSS item, "" if it can."""
    tag = xml.parse_stored(data).tag
    namespace, _, local = tag.removeprefix("{").rpartition("}")
    if tag == CONTENT_ENCODED:
        return "the element content:encoded: the entry has a text of its own" if texts_of(entry) else ""
    if namespace in RSS_NAMESPACES and local.lower() in _RSS_ELEMENTS:
        return f"the element {local}: in RSS it means something else"
    return ""


RSS = DocumentFormat(
    "rss",
    "RSS 2.0",
    whole(write_rss),
    frozenset(CHANNEL_PARTS),
    xml=Reader(is_rss, read_rss),
    representation=representation.RSS,
)
