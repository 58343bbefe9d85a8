"""Atom entries: their names, tombstones, and what views filter by (RFC 4287).

Implements the deleted mark (SF-013, A-18, xep-map 2.3) and reads what filters, searches and bodies use (xep-map 180).
`payload` completes entries.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import quote, unquote

from smartfeeds.core.feed_address import parse_item_address
from smartfeeds.core.filters import EntryMeta, entry_facets
from smartfeeds.core.text import is_nss, is_xml_text
from smartfeeds.core.text import words as words_of
from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.core.urls import ENTRIES
from smartfeeds.core.view import Traits
from smartfeeds.errors import FeedError
from smartfeeds.formats import xml
from smartfeeds.formats.plain import html_text, markup_text, squeeze
from smartfeeds.formats.plain_entry import find_attributes, find_parts, plain_children, unescape
from smartfeeds.formats.xml import Element, canonical_text

ATOM_NS = "http://www.w3.org/2005/Atom"
FEEDSYNC_NS = "http://feedsync.org/2007/feedsync"
THREAD_NS = "http://purl.org/syndication/thread/1.0"
OWN_NS = "urn:smartfeeds:0"
SOURCE_NS = "http://source.scripting.com/"  # additions to RSS
# The text of a date that the service has rewritten (RFC 4287 6.4 allows attributes of other namespaces).
ORIGINAL_DATE = f"{{{OWN_NS}}}original"

ENTRY = f"{{{ATOM_NS}}}entry"
FEED = f"{{{ATOM_NS}}}feed"
ID = f"{{{ATOM_NS}}}id"
TITLE = f"{{{ATOM_NS}}}title"
UPDATED = f"{{{ATOM_NS}}}updated"
PUBLISHED = f"{{{ATOM_NS}}}published"
SUMMARY = f"{{{ATOM_NS}}}summary"
CONTENT = f"{{{ATOM_NS}}}content"
SUBTITLE = f"{{{ATOM_NS}}}subtitle"
SOURCE = f"{{{ATOM_NS}}}source"
AUTHOR = f"{{{ATOM_NS}}}author"
CATEGORY = f"{{{ATOM_NS}}}category"
LINK = f"{{{ATOM_NS}}}link"
NAME = f"{{{ATOM_NS}}}name"  # of a person
URI = f"{{{ATOM_NS}}}uri"
MARKDOWN = f"{{{SOURCE_NS}}}markdown"
SYNC = f"{{{FEEDSYNC_NS}}}sync"
# documents of SSE's time have http; drafts after it left "rss" out.
SSE_NAMESPACES = frozenset(
    f"{scheme}://www.microsoft.com/schemas/{path}" for scheme in ("http", "https") for path in ("rss/sse", "sse")
)
SYNC_NAMESPACES = frozenset({FEEDSYNC_NS, *SSE_NAMESPACES})
SYNCS = frozenset(f"{{{namespace}}}sync" for namespace in SYNC_NAMESPACES)
LEFT = f"{{{OWN_NS}}}left"
TOMBSTONES_NS = "http://purl.org/atompub/tombstones/1.0"  # RFC 6721
DELETED_ENTRY = f"{{{TOMBSTONES_NS}}}deleted-entry"
IN_REPLY_TO = f"{{{THREAD_NS}}}in-reply-to"
REPLY_MARK = b"in-reply-to"  # in every stored payload that answers something; texts may have it too

_PERSON = frozenset({f"{{{ATOM_NS}}}name", f"{{{ATOM_NS}}}uri", f"{{{ATOM_NS}}}email"})
_HTML = frozenset({"html", "text/html"})
_BODY_CHARACTERS = 1_000  # a body is for reading in a chat, and goes out beside the whole payload
_TEXTS = {"title": TITLE, "summary": SUMMARY, "content": CONTENT}
_MARK = "<sx:sync xmlns:sx="
# The start tag of a canonical root: its name, then attributes whose values may hold ">".
START_TAG = re.compile(rb'<([^\s>]+)(?: [^\s=>]+="[^"]*")*>')


_ITEM_PAGE = re.compile(rf"https?://[^?#]+{ENTRIES}[^/?#]+/([^/?#]+)(?:[?#].*)?", re.IGNORECASE)
DERIVED = "urn:x-smartfeeds:"  # the start of an atom:id that this service has made
DIGEST_PREFIX = f"{DERIVED}sha256:"


def digest_id(*parts: str) -> str:
    """An id made of texts: the same for the same texts."""
    return DIGEST_PREFIX + hashlib.sha256("\0".join(parts).encode()).hexdigest()


def derived_id(item_id: str) -> str:
    """The atom:id of an entry that came without one and belongs to no node: a URN made of the item id (SF-092).

    A node gives its entries `core.urls.xmpp_uri` instead, which differs from node to node.
    """
    return DERIVED + quote(item_id, safe="", errors="surrogatepass")


def named_by(atom_id: str) -> str:
    """The item id of which `derived_id` made an atom:id, "" for any other one."""
    prefix, mark, name = atom_id.partition(DERIVED)
    return unquote(name) if mark and not prefix else ""


def item_named_by(reference: str) -> str:
    """The item id that a reference to an entry states, "" if it states none: an atom:id of `derived_id`, or the address
    of an item over XMPP or HTTP. The service in the address may be another one."""
    address = parse_item_address(reference)
    if address is not None:
        return address.item_id
    page = _ITEM_PAGE.fullmatch(reference)
    if page is None:
        return named_by(reference)
    try:
        return unquote(page[1], errors="strict")
    except UnicodeDecodeError:
        return ""


def has_author(entry: Element) -> bool:
    """Whether an entry names an author, or the feed that it comes from does (RFC 4287 4.1.2)."""
    source = next(entry.iterchildren(SOURCE), None)
    parents = [entry] if source is None else [entry, source]
    return any(next(parent.iterchildren(AUTHOR), None) is not None for parent in parents)


def id_and_updated(payload: bytes) -> tuple[str, int | None]:
    """The atom:id and atom:updated of stored bytes; empty and None where they are missing or unreadable."""
    root = _stored(payload)
    if root is None:
        return "", None
    return (root.findtext(ID) or "").strip(), parse_datetime((root.findtext(UPDATED) or "").strip())


def is_deletion(entry: Element, syncs: Collection[str] = (SYNC,)) -> bool:
    """Whether an entry carries the deleted mark (A-18; FeedSync 2.4: exactly "true") in one of these elements."""
    return any(sync.get("deleted") == "true" for sync in entry.iterchildren(*syncs))


def is_removal(payload: Element) -> bool:
    """Whether followers of a view read a payload as the removal of an item: `is_deletion` with any spelling of true,
    `is_left`, or RFC 6721."""
    marks = payload.iterchildren(LEFT, SYNC)
    return payload.tag == DELETED_ENTRY or any(m.tag == LEFT or m.get("deleted") in ("true", "1") for m in marks)


def tombstone(item_id: str, deleted_us: int, old_payload: bytes, *, atom_id: str = "") -> bytes:
    """Returns the payload of a tombstone: its atom:id, an empty title, the time, and the deleted mark (xep-map 2.3).

    An empty `atom_id` means that of `old_payload`, which may be empty too; then the id is derived from `item_id`.
    """
    # The FeedSync id is the old entry's, else the item id if that is a Namespace Specific String.
    old = _stored(old_payload)
    sync = None if old is None else old.find(SYNC)
    sync_ids = ("" if sync is None else sync.get("id", ""), item_id)
    sync_id = next((text for text in sync_ids if is_nss(text)), "")
    return with_mark(_remains(old, item_id, deleted_us, atom_id), sync_id)


def remains(item_id: str, deleted_us: int, old_payload: bytes) -> bytes:
    """The payload of `tombstone` without the deleted mark."""
    return _remains(_stored(old_payload), item_id, deleted_us)


def _remains(old: Element | None, item_id: str, deleted_us: int, atom_id: str = "") -> bytes:
    atom_id = atom_id or ("" if old is None else (old.findtext(ID) or "").strip())
    if not atom_id or not is_xml_text(atom_id):
        atom_id = derived_id(item_id)
    return stripped(atom_id, format_datetime(deleted_us))


def departed(item_id: str, left_us: int, payload: bytes, *, sync: bool) -> bytes:
    """The payload that a filtered view shows for an item that has left it: the remains, marked as `left`.

    Readers that do not know this mark read the deleted mark beside it. A view with `sync` has no deleted mark, and no
    view gives it an id: otherwise a merge would take the entry for a deletion.
    """
    marked = with_child(remains(item_id, left_us, payload), f'<left xmlns="{OWN_NS}"></left>'.encode())
    return marked if sync else with_mark(marked, "")


def is_left(entry: Element) -> bool:
    """Whether an entry stands for an item that has left a view, and is neither an entry nor a deletion."""
    return next(entry.iterchildren(LEFT), None) is not None


def marked(atom_id: str, updated: str, sync_id: str) -> bytes:
    """A tombstone in canonical form; `updated` (RFC 3339) and `sync_id` (an NSS) are left out where they are empty."""
    return with_mark(stripped(atom_id, updated), sync_id)


def stripped(atom_id: str, updated: str) -> bytes:
    """Returns the content of a deleted entry beside its mark."""
    time = f"<updated>{updated}</updated>" if updated else ""
    return f'<entry xmlns="{ATOM_NS}"><id>{canonical_text(atom_id)}</id><title></title>{time}</entry>'.encode()


def with_mark(payload: bytes, sync_id: str) -> bytes:
    """A canonical entry, marked as deleted at its end; `sync_id`, an NSS, is left out where it is empty."""
    mark = f' id="{sync_id}"' if sync_id else ""
    return with_child(payload, f'{_MARK}"{FEEDSYNC_NS}" deleted="true"{mark}></sx:sync>'.encode())


def without_mark(payload: bytes) -> bytes:
    """A tombstone as `with_mark` got it."""
    # The mark is the last child. The content in front of it may have one of another service.
    start = payload.rfind(_MARK.encode())
    return payload if start < 0 else payload[:start] + payload[payload.rindex(b"</") :]


def with_child(payload: bytes, child: bytes) -> bytes:
    """Canonical bytes of an element with more at the end of it."""
    end = payload.rindex(b"</")
    return payload[:end] + child + payload[end:]


def _stored(payload: bytes) -> Element | None:
    """The entry in stored bytes, or None where a generic node keeps none or something else."""
    if not payload:
        return None
    try:
        return xml.parse_stored(payload)
    except FeedError:
        return None


def read_meta(payload: bytes, *, texts: bool = True) -> EntryMeta:
    """Returns the data that view filters and message bodies use. It is empty if the bytes contain no Atom entry.

    Without `texts` the text and the body of a plain entry are not read and stay empty.
    """
    children = plain_children(payload)
    values: Iterable[tuple[str, str]] | None = None if children is None else _plain_values(children, texts=texts)
    language = ""
    if values is None:
        root = _stored(payload)
        if root is None or root.tag not in (ENTRY, FEED):
            return EntryMeta()
        values = _values(root)
        language = xml.language_of(root) if xml.XML_LANG in root.attrib else ""
    lines: dict[str, str] = {}
    groups: dict[str, set[str]] = {AUTHOR: set(), CATEGORY: set(), IN_REPLY_TO: set()}
    for tag, value in values:
        if tag not in groups:
            lines[tag] = value
        elif value:
            groups[tag].add(value)
    title, summary, references = lines.get(TITLE, ""), lines.get(SUMMARY, ""), groups[IN_REPLY_TO]
    return EntryMeta(
        authors=frozenset(groups[AUTHOR]),
        categories=frozenset(groups[CATEGORY]),
        replies_to=frozenset(references),
        replied_ids=frozenset(filter(None, map(item_named_by, references))) if references else frozenset(),
        text="\n".join(filter(None, (title, summary, lines.get(CONTENT)))),
        body=(title or summary)[:_BODY_CHARACTERS],
        language=language,
    )


def _plain_values(children: Iterable[tuple[str, str, str]], *, texts: bool) -> list[tuple[str, str]] | None:
    """Returns the values of `_values` from the children of a plain entry, None if the type of a text needs a tree."""
    # Most values have no reference, and the calls of two short functions for each would take a tenth of the time.
    values: list[tuple[str, str]] = []
    unread = dict(_TEXTS) if texts else {}
    for name, attributes, text in children:
        if name == "category":
            term: str = dict(find_attributes(attributes)).get("term", "")
            values.append((CATEGORY, (unescape(term) if "&" in term else term).strip()))
        elif name == "author":
            for _, part in find_parts(text):
                values.append((AUTHOR, " ".join((unescape(part) if "&" in part else part).split())))
        elif name in unread:
            kind = dict(find_attributes(attributes)).get("type", "text").strip().lower() if attributes else "text"
            text = unescape(text) if "&" in text else text
            if kind != "text" and kind not in _HTML:
                return None
            values.append((unread.pop(name), " ".join(text.split()) if kind == "text" else html_text(text)))
    return values


def _values(root: Element) -> Iterator[tuple[str, str]]:
    """The authors, categories, references and first texts of an entry by their tags."""
    # One walk over the children: a walk for each property would take three times as long.
    unread = set(_TEXTS.values())
    for child in root:
        tag = child.tag
        if tag in unread:
            unread.discard(tag)
            yield tag, _text(child)
        elif tag == AUTHOR:
            for part in child.iterchildren(*_PERSON):
                yield tag, " ".join((part.text or "").split())
        elif tag == CATEGORY:
            yield tag, child.get("term", "").strip()
        elif tag == IN_REPLY_TO:
            yield tag, child.get("ref", "").strip()
            yield tag, child.get("href", "").strip()


def read_traits(payload: bytes, *, words: bool = True) -> Traits:
    """The store's reader of payloads: the facets that filters compare and the words that a search finds."""
    meta = read_meta(payload, texts=words)
    return Traits(entry_facets(meta), words_of(meta.text) if words else frozenset())


def text_of(root: Element, tag: str) -> str:
    """The plain text of an Atom text construct or content, one line, markup stripped."""
    node = next(root.iterchildren(tag), None)
    return "" if node is None else _text(node)


def _text(node: Element) -> str:
    kind = node.get("type", "text").strip().lower()
    if kind == "text":
        return " ".join((string_of(node) if len(node) else node.text or "").split())
    if kind in _HTML:
        return html_text(string_of(node) if len(node) else node.text or "")
    if kind == "xhtml" or kind.endswith(("+xml", "/xml")):
        return markup_text(node)
    return squeeze(string_of(node)) if kind.startswith("text/") else ""


def address_of_source(payload: bytes) -> str:
    """The address of the feed that an entry names as its source, "" if it names none."""
    source = xml.parse_stored(payload).find(SOURCE) if b"source" in payload else None
    links = () if source is None else source.iterchildren(LINK)
    return next((link.get("href", "") for link in links if link.get("rel") == "self"), "")


def string_of(node: Element) -> str:
    """All character data of an element, without that of its tail."""
    return "".join(map(str, node.itertext()))
