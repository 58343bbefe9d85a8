"""Elements of an RSS item beside those of RSS: Atom elements for data that RSS cannot represent, and extensions.

`rss` reads both together: where Atom's words say the same and more, they count.
"""

import re

from smartfeeds.core.model import Item
from smartfeeds.core.urls import harmless
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import ACTIVITY_NS, Entry, EntryLink, has_more
from smartfeeds.formats.items import FormatLoss
from smartfeeds.formats.links import resolve
from smartfeeds.formats.payload import payload_of
from smartfeeds.formats.rss import CONTENT_ENCODED
from smartfeeds.formats.rss_channel import RSS_NAMESPACES
from smartfeeds.formats.xml import XML_BASE, Element

WEB = ("http://", "https://")
UNKNOWN_TYPE = "application/octet-stream"  # RSS wants a type (RSS-011)

_PAGE_TYPES = frozenset({"", "text/html"})
# What RSS itself means by an element of these names is written anew from the entry.
_RSS_ELEMENTS = frozenset(
    {"author", "category", "comments", "description", "enclosure", "guid", "link", "pubdate", "source", "title"}
)
_LOCAL_NAME = re.compile(rb"<(?:[^\s:>]+:)?([^\s>]+)")
_SUSPECT = frozenset({b"encoded", *(name.encode() for name in _RSS_ELEMENTS)})
_KEPT_AS_THEY_ARE = frozenset(
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


def has_body(entry: Entry) -> bool:
    """Whether RSS has a description of it."""
    return any(text is not None and text.value.strip() for text in (entry.content, entry.summary))


def said_links(entry: Entry) -> list[EntryLink]:
    """The links that RSS has elements for: the page, the page of comments, enclosures on the web (RSS-012, A-127)."""
    said = []
    page = comments = False
    for link in entry.links:
        if link.rel == "alternate" and not page:
            page = True
        elif link.rel == "replies" and link.type == "text/html" and not comments:
            comments = True
        elif link.rel != "enclosure" or not link.href.startswith(WEB):
            continue
        said.append(link)
    return said


def in_words_of_atom(item: Item, entry: Entry, links_said: list[EntryLink]) -> list[bytes]:
    """The elements of an entry that RSS has no like of, or only a poorer one, each on its own."""
    said = [id(link) for link in links_said if _says_all(link)]
    if len(said) == len(entry.links) and not _has_more(entry):
        return []
    root = payload_of(item.payload).root
    base = root.get(XML_BASE, "")
    links = iter(entry.links)
    kept = []
    for child in root:
        if child.tag == atom.LINK:
            # `read_entry` leaves out what has no address.
            href = child.get("href", "").strip()
            wanted = bool(href and harmless(href)) and id(next(links)) not in said
        else:
            wanted = _is_wanted(child, entry)
        if wanted:
            kept.append(_on_its_own(child, base))
    return kept


def _says_all(link: EntryLink) -> bool:
    """Whether RSS's own element says the type, title and length of a link."""
    if link.title or link.more:
        return False
    if link.rel == "enclosure":
        return bool(link.type)
    return link.length is None and (link.rel == "replies" or link.type in _PAGE_TYPES)


def _has_more(entry: Entry) -> bool:
    """Whether the payload is worth another look: most are not."""
    return bool(
        entry.replies_to
        or entry.typed
        or entry.verb != "post"
        or entry.contributors
        or entry.rights is not None
        or entry.source is not None
        or entry.content_link is not None
        or entry.content_type
        or any(person.more for person in entry.authors)
        or any(category.more for category in entry.categories)
    )


def _is_wanted(child: Element, entry: Entry) -> bool:
    if child.tag == atom.CONTENT:
        return entry.content_link is not None or bool(entry.content_type)
    if child.tag == atom.SOURCE:
        return not _is_simple(child)
    if child.tag in (atom.AUTHOR, atom.CATEGORY):
        return has_more(child)
    return child.tag in _KEPT_AS_THEY_ARE


def _is_simple(source: Element) -> bool:
    """Whether a source has only what an RSS source is read into."""
    address = next((link.get("href", "") for link in source.iterchildren(atom.LINK)), "")
    return (
        bool(address)
        and len(source) == len({child.tag for child in source})
        and all(child.tag in _SIMPLE_SOURCE for child in source)
        and (source.findtext(atom.ID) or address).strip() == address
    )


def _on_its_own(child: Element, base: str) -> bytes:
    """An element of the entry as it means the same outside of it."""
    base = resolve(base, child.get(XML_BASE, ""))
    for name in ("href", "src"):
        reference = child.get(name)
        if reference is not None and base:
            child.set(name, resolve(base, reference))
    if base and child.tag not in (atom.LINK, atom.IN_REPLY_TO):
        child.set(XML_BASE, base)
    return _prefixed(xml.canonical(child))


def _prefixed(data: bytes) -> bytes:
    """An element of Atom under the prefix of the document: parsers that ignore namespaces take a "link" or a "source"
    for the item's own. What is inside keeps its names, so the declaration of the default namespace stays for it."""
    start = _DEFAULT.match(data)
    if start is None or b" xmlns:atom=" in data:
        return data
    name = start[1]
    rest = data[start.end() : -len(name) - 3]  # without the end tag
    declaration = b' xmlns="%s"' % ATOM_NS.encode() if b"<" in rest else b""
    return b"<atom:%b%b%b</atom:%b>" % (name, declaration, rest, name)


def extensions(entry: Entry, losses: list[FormatLoss]) -> list[bytes]:
    """Elements of other namespaces, but those that would be taken for RSS's own."""
    kept = []
    for data in entry.extensions:
        name = _LOCAL_NAME.match(data)
        reason = _in_the_way(data, entry) if name is not None and name[1].lower() in _SUSPECT else ""
        if reason:
            losses.append(FormatLoss(entry.item_id, reason))
        else:
            kept.append(data)
    return kept


def _in_the_way(data: bytes, entry: Entry) -> str:
    """Why an element cannot stand in an RSS item, or ""."""
    tag = xml.parse_stored(data).tag
    namespace, _, local = tag.removeprefix("{").rpartition("}")
    if tag == CONTENT_ENCODED:
        return "the element content:encoded: the entry has a text of its own" if has_body(entry) else ""
    if namespace in RSS_NAMESPACES and local.lower() in _RSS_ELEMENTS:
        return f"the element {local}: in RSS it means something else"
    return ""
