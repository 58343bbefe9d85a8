"""Data that Atom documents of this service add to an entry, and its removal when such a document is read.

An entry in a document says its item id (fo:id, SF-070) and, in an export, its ordering keys. If the stored entry lacks
an author, a summary of content that is not text, or both content and an alternate link, the document completes it,
because RFC 4287 4.1.2 requires them. All additions stand behind the stored children, under prefixes of their own:
parsers that ignore namespaces take the first `id` for the entry's.
"""

import re
from typing import NamedTuple

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, escape
from smartfeeds.core.times import format_t
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.plain_entry import ENTRY_START
from smartfeeds.formats.xml import Element

FANOUT_NS = "http://fanout.org/protocol/atom"
EXPORT_NS = "urn:x-smartfeeds:export"
FANOUT_ID = f"{{{FANOUT_NS}}}id"
KEYS = f"{{{EXPORT_NS}}}keys"
ADDED = f"{{{EXPORT_NS}}}added"

_ADDED = f'xmlns:sf="{EXPORT_NS}" sf:added="true"'
_TEXT_TYPES = frozenset({"", "text", "html", "xhtml"})
_TEXT_CONTENT = re.compile(rb'<content(?: type="(?:text|html|xhtml)")?>')


class Additions(NamedTuple):
    """The data that was added to an entry; `item_id` is None if the entry has no fo:id."""

    item_id: str | None
    keys: Element | None


def id_mark(item_id: str) -> bytes:
    """fo:id with its own namespace declaration: a declaration on the feed would reach into the entries."""
    return f'<fo:id xmlns:fo="{FANOUT_NS}">{escape(item_id)}</fo:id>'.encode()


def keys_mark(item: Item) -> bytes:
    """The ordering keys of an item."""
    created, modified = format_t(item.created_us), format_t(item.modified_us)
    return f'<sf:keys xmlns:sf="{EXPORT_NS}" created="{created}" modified="{modified}"></sf:keys>'.encode()


def completion(payload: bytes, byline: str, address: str, *, linked: bool = False) -> bytes:
    """The elements that a canonical entry lacks: an author named `byline`, and a link to its page at `address`.

    With an empty `byline` no author is added; with an empty `address` an empty content stands for the link. RFC 4287
    requires the link only without content; with `linked` it is added to every entry that has no page.
    """
    if not linked and _has_text(payload):
        if b"<author>" in payload:
            return b""
        if b"<author" not in payload:
            return _author(byline, "").encode()
    entry = xml.parse_stored(payload)
    namespace = "" if payload.startswith(ENTRY_START) else f' xmlns="{ATOM_NS}"'
    parts = []
    if not atom.has_author(entry):
        parts.append(_author(byline, namespace))
    content = next(entry.iterchildren(atom.CONTENT), None)
    has_link = any(link.get("rel", "alternate") == "alternate" for link in entry.iterchildren(atom.LINK))
    if content is not None and _needs_summary(content) and next(entry.iterchildren(atom.SUMMARY), None) is None:
        parts.append(f"<summary{namespace} {_ADDED}></summary>")
    if (content is None or linked) and not has_link and address:
        parts.append(f'<link{namespace} {_ADDED} href="{attribute(address)}" rel="alternate"></link>')
    elif content is None and not has_link:
        parts.append(f"<content{namespace} {_ADDED}></content>")
    return "".join(parts).encode()


def is_complete(payload: bytes) -> bool:
    """Whether a look at the bytes shows that `completion` adds nothing, if every entry need not be linked."""
    return b"<author>" in payload and _has_text(payload)


def _has_text(payload: bytes) -> bool:
    """Whether a look at the bytes shows that an entry has content that is text."""
    # It is enough for most entries, and parsing takes ten times as long. If there is one namespace declaration and it
    # is the root's default, all elements are Atom's.
    return (
        payload.startswith(ENTRY_START) and payload.count(b"xmlns") == 1 and _TEXT_CONTENT.search(payload) is not None
    )


def _author(byline: str, namespace: str) -> str:
    return f"<author{namespace} {_ADDED}><name>{escape(byline)}</name></author>" if byline else ""


def _needs_summary(content: Element) -> bool:
    """Whether content is elsewhere, or is in Base64."""
    kind = content.get("type", "text").strip().lower()
    return content.get("src") is not None or not (
        kind in _TEXT_TYPES or kind.startswith("text/") or kind.endswith(("+xml", "/xml"))
    )


def _is_completion(node: Element) -> bool:
    """Whether `completion` could have made this element. Any other element belongs to the entry and stays."""
    is_empty = not len(node) and not (node.text or "").strip()
    return node.tag in (atom.AUTHOR, atom.LINK) or (node.tag in (atom.SUMMARY, atom.CONTENT) and is_empty)


def take_additions(entry: Element) -> Additions:
    """Removes from an entry what a document added to it. Of several fo:id the last one is the document's."""
    item_id = next(entry.iterchildren(FANOUT_ID, reversed=True), None)
    keys = next(entry.iterchildren(KEYS, reversed=True), None)
    for node in (item_id, keys, *[child for child in entry if child.get(ADDED) is not None]):
        if node is None:
            continue
        if node.get(ADDED) is None or _is_completion(node):
            xml.replace_by_text(node, "")
        else:
            del node.attrib[ADDED]
    return Additions(None if item_id is None else item_id.text or "", keys)
