"""Atom documents: Atom 1.0 feeds and entries (RFC 4287), deletions (RFC 6721), Atom 0.3 as far as it maps.

An entry inherits its base address, language and authors from its feed (`FeedScope`); the reader writes them into the
entry. Entries that `atom_feed.write_feed` wrote are read exactly as they were stored.
"""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lxml import etree

from smartfeeds.core.times import format_datetime, parse_datetime, parse_time, within_years
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, representation, xml
from smartfeeds.formats.additions import FANOUT_NS, take_additions
from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS
from smartfeeds.formats.atom_feed import write_feed
from smartfeeds.formats.dates import parse_date, read_date
from smartfeeds.formats.document_format import DocumentFormat, Drafts, FeedExport, Reader
from smartfeeds.formats.feed_document import LEFT_REASON, FeedDraft, ItemDraft, SkippedItem, each
from smartfeeds.formats.growth import MAX_INHERITED_BYTES, check_size
from smartfeeds.formats.links import base_of, rebase, resolve
from smartfeeds.formats.modules import complete_from_modules
from smartfeeds.formats.namespaces import ATOM03_NS
from smartfeeds.formats.paging import paging_of
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.rss_channel import Channel, foreign_elements
from smartfeeds.formats.xhtml import XHTML_NS
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element, language_of
from smartfeeds.xml_names import parse_xml

# RFC 5023, and the draft that servers of Atom 0.3 implement.
_CONTROLS = {
    f"{{{uri}}}control": f"{{{uri}}}draft" for uri in ("http://www.w3.org/2007/app", "http://purl.org/atom/app#")
}

_A = f"{{{ATOM_NS}}}"
_ADDRESSES = {atom.LINK: "href", atom.CONTENT: "src"}
_ROOTS = frozenset({atom.FEED, atom.ENTRY})
_ATOM03_ROOTS = frozenset({f"{{{ATOM03_NS}}}feed", f"{{{ATOM03_NS}}}entry"})


@dataclass(frozen=True, slots=True)
class FeedScope:
    """The data that entries inherit from their feed: the base address, the language of its texts, and its authors."""

    base: str = ""
    language: str = ""
    authors: tuple[Element, ...] = ()


def _read_feed(root: Element, base: str) -> Drafts:
    """The head and the entries of an atom:feed, or of an atom:entry that stands alone."""
    if root.tag == atom.ENTRY:
        return FeedDraft("Atom 1.0 entry"), each(partial(_entry, scope=FeedScope(base)), [root])
    head = FeedDraft(
        "Atom 1.0",
        id=(root.findtext(atom.ID) or "").strip(),
        title=atom.text_of(root, atom.TITLE),
        link=next((_address(link, base) for link in _links(root, "alternate") if link.get("href")), ""),
        description=atom.text_of(root, atom.SUBTITLE),
    )
    head.channel = _channel(root, base, head.warnings)
    head.paging = paging_of(root, base)
    authors = list(root.iterchildren(atom.AUTHOR))
    if sum(map(xml.size_bytes, authors)) > MAX_INHERITED_BYTES:
        head.warnings.append("the authors of the feed are too long to be repeated in each entry and were left out")
        authors = []
    scope = FeedScope(rebase(base, root.get(XML_BASE)), language_of(root), tuple(authors))
    return head, each(partial(_read, scope=scope), root.iterchildren(atom.ENTRY, atom.DELETED_ENTRY))


def _links(root: Element, rel: str) -> list[Element]:
    return [link for link in root.iterchildren(atom.LINK) if link.get("rel", "alternate") == rel]


def _address(link: Element, base: str) -> str:
    return resolve(base_of(link, base), link.get("href", ""))


def _channel(root: Element, base: str, warnings: list[str]) -> Channel:
    """Returns the metadata of an atom:feed beside id, title, link and subtitle (RFC 4287 4.1.1)."""

    def picture(name: str) -> str:
        node = root.find(f"{_A}{name}")
        return "" if node is None else resolve(base_of(node, base), node.text or "")

    hubs = _links(root, "hub")
    authors = list(root.iterchildren(atom.AUTHOR))
    categories = list(root.iterchildren(atom.CATEGORY))
    terms = [(node.get("term", "").strip(), node.get("scheme", "").strip()) for node in categories]
    ours = set(root.iterchildren(f"{_A}*", f"{{{atom.TOMBSTONES_NS}}}*", f"{{{FANOUT_NS}}}*", f"{{{FEEDSYNC_NS}}}*"))
    foreign = [node for node in root.iterchildren("*") if node not in ours]
    # Entries without an author have the whole element of the feed's author all the same.
    left_out = {
        "addresses of authors": any(part.tag in (f"{_A}email", f"{_A}uri") for node in authors for part in node),
        "contributors": root.find(f"{_A}contributor") is not None,
        "labels of categories": any(node.get("label") not in (None, node.get("term")) for node in categories),
        "address and version of the generator": any(len(node.attrib) for node in root.iterchildren(f"{_A}generator")),
        "hubs after the first": sum(node.get("rel") == "hub" for node in root.iterchildren(f"{_A}*")) > 1,
    }
    return Channel(
        language=language_of(root),
        copyright=atom.text_of(root, f"{_A}rights"),
        generator=squeeze(root.findtext(f"{_A}generator") or ""),
        categories=tuple(pair for pair in terms if pair[0]),
        icon=picture("icon"),
        logo=picture("logo"),
        hub=_address(hubs[0], base) if hubs else "",
        authors=tuple(name for node in authors if (name := squeeze(node.findtext(f"{_A}name") or ""))),
        extensions=foreign_elements([*_other_links(root, base), *foreign], warnings),
        left_out=tuple(name for name, is_left_out in left_out.items() if is_left_out),
    )


# Links that each document writes anew. Those to archives (RFC 5005 4) lead to the pages of the original.
_OWN_RELS = frozenset({"self", "alternate", "hub", "next", "previous", "prev", "first", "last", "current"})


def _other_links(root: Element, base: str) -> list[Element]:
    """Links that only Atom has elements for, such as the license, with a prefix, so that RSS can have them too."""
    links = []
    alternates = 0
    for link in root.iterchildren(atom.LINK):
        rel = link.get("rel", "alternate").strip()
        alternates += rel == "alternate"
        if (rel in _OWN_RELS or rel.endswith("-archive")) and (rel != "alternate" or alternates == 1):
            continue
        copied = xml.new_element(atom.LINK, {"atom": ATOM_NS})
        copied.attrib.update({str(name): str(value) for name, value in link.attrib.items() if name != XML_BASE})
        copied.set("href", _address(link, base))
        links.append(copied)
    return links


def _read(node: Element, index: int, scope: FeedScope) -> ItemDraft | SkippedItem:
    if node.tag == atom.DELETED_ENTRY:
        return _deletion(node, index)
    return SkippedItem(index, LEFT_REASON) if atom.is_left(node) else _entry(node, index, scope)


def _entry(node: Element, index: int, scope: FeedScope) -> ItemDraft | SkippedItem:
    if not len(node) and not (node.text or "").strip():
        return SkippedItem(index, "the entry is empty")  # as an item of RSS
    draft = ItemDraft(index, node, deleted=atom.is_deletion(node))
    item_id, keys = take_additions(node)
    draft.item_id = (node.findtext(atom.ID) or "").strip() if item_id is None else item_id
    if keys is not None:
        # Only an export of this service has ordering keys, and its entries are complete as they are stored.
        draft.published_us = within_years(parse_time(keys.get("created", "")))
        draft.updated_us = within_years(parse_time(keys.get("modified", "")))
        return draft
    if _is_draft(node):
        return SkippedItem(index, "the entry is a draft (app:draft), which its author has not published")
    draft.published_us = _date(draft, atom.PUBLISHED)
    draft.updated_us = _date(draft, atom.UPDATED)
    if draft.updated_us is None and draft.published_us is not None:
        etree.SubElement(node, atom.UPDATED).text = format_datetime(draft.published_us)
    adopt(node, scope)
    complete_from_modules(node)
    return draft


def _is_draft(node: Element) -> bool:
    """Whether the entry is a draft, which a server should not publish (RFC 5023 13.1.1). Our own exports keep what was
    published as one."""
    controls = node.iterchildren(*_CONTROLS)
    return any((control.findtext(_CONTROLS[control.tag]) or "").strip() == "yes" for control in controls)


def _date(draft: ItemDraft, tag: str) -> int | None:
    """The first readable date. Unreadable dates are removed, and dates in other spellings are written as RFC 3339
    (RFC 4287 3.3), so that readers of the entry can read all dates that it has."""
    first_us: int | None = None
    name = tag.rpartition("}")[2]
    for child in list(draft.entry.iterchildren(tag)):
        text = (child.text or "").strip()
        time_us, note = read_date(text)
        if time_us is None:
            xml.replace_by_text(child, "")
            draft.warnings.append(f"atom:{name} is no date-time and was left out")
            continue
        del child[:]
        if parse_datetime(text) is None:
            child.text = format_datetime(time_us)
            customary = f"atom:{name} is not in RFC 3339 format and was read as {child.text}"
            draft.warnings.append(f"atom:{name}: {note}" if note else customary)
        first_us = time_us if first_us is None else first_us
    return first_us


def adopt(node: Element, scope: FeedScope) -> None:
    """Writes into an entry what it inherits from its feed: base address, language, and authors if it has none.

    Raises FeedError(PAYLOAD_TOO_BIG) where its addresses grow too long by that.
    """
    base = ""
    if scope.base:
        base = rebase(scope.base, node.get(XML_BASE))
        node.set(XML_BASE, base)
    if scope.language and node.get(XML_LANG) is None:
        node.set(XML_LANG, scope.language)
    size = 0
    for child in node.iterchildren(*_ADDRESSES):
        name = _ADDRESSES[child.tag]
        reference = child.get(name)
        if base and reference is not None:
            address = resolve(rebase(base, child.get(XML_BASE)), reference)
            size += len(address)
            check_size(size)
            child.set(name, address)
    source = next(node.iterchildren(atom.SOURCE), None)
    author = next(node.iterchildren(atom.AUTHOR), None)
    if author is None and (source is None or next(source.iterchildren(atom.AUTHOR), None) is None):
        for author in scope.authors:
            node.append(copy.deepcopy(author))
            node[-1].tail = None


def _deletion(node: Element, index: int) -> ItemDraft | SkippedItem:
    """Reads a deleted entry (RFC 6721 3): `ref` is the atom:id of what was deleted, `when` the time."""
    reference = node.get("ref", "").strip()
    if not reference:
        return SkippedItem(index, "an at:deleted-entry does not say which entry it means")
    when_us = parse_date(node.get("when", ""))
    text = "" if when_us is None else format_datetime(when_us)
    entry = xml.parse_stored(atom.marked(reference, text, ""))
    return ItemDraft(index, entry, reference, updated_us=when_us, deleted=True)


_DATES_03 = {"modified": "updated", "issued": "published", "created": "published"}
_NAMES_03 = _DATES_03 | {"tagline": "subtitle", "url": "uri", "copyright": "rights"}
_TEXTS_03 = frozenset({"title", "summary", "content", "tagline", "subtitle", "info", "copyright"})
_NS_03 = re.compile(rb'( xmlns(?::[^=\s]+)?=)"http://purl\.org/atom/ns#"')


def _from_atom03(root: Element) -> Element:
    """The same document in Atom 1.0: other names, types instead of modes."""
    renamed = _NS_03.sub(rb'\1"%s"' % ATOM_NS.encode(), xml.canonical(root))
    try:
        root = parse_xml(renamed, xml.strict_parser())
    except etree.XMLSyntaxError:
        raise FeedError(Condition.INVALID_PAYLOAD, "the Atom 0.3 document cannot be read as Atom 1.0") from None
    for node in list(root.iter(f"{_A}*")):
        name = node.tag.rpartition("}")[2]
        if name in _TEXTS_03:
            _retype(node)
        if name in _DATES_03:
            time_us = parse_date(node.text or "")
            node.text = node.text if time_us is None else format_datetime(time_us)
        node.tag = f"{_A}{_NAMES_03.get(name, name)}"
    return root


def _retype(node: Element) -> None:
    """Atom 0.3 has a media type and a mode (xml, escaped); Atom 1.0 has text, html and xhtml."""
    mode = node.attrib.pop("mode", "xml")
    kind = node.get("type", "text/plain").strip().lower()
    if kind not in ("text/plain", "text/html", "application/xhtml+xml"):
        return
    if not len(node):
        node.set("type", "html" if kind != "text/plain" and mode == "escaped" else "text")
        return
    node.set("type", "xhtml")
    # RFC 4287 3.1.1.3: a single xhtml:div is around the markup.
    if len(node) > 1 or node[0].tag != f"{{{XHTML_NS}}}div":
        wrapper = xml.new_element(f"{{{XHTML_NS}}}div", {None: XHTML_NS})
        wrapper.text, node.text = node.text, None
        wrapper.extend(list(node))
        node.append(wrapper)


def _is_atom(root: Element) -> bool:
    return root.tag in _ROOTS or root.tag in _ATOM03_ROOTS


def _read_document(root: Element, base: str) -> Drafts:
    if root.tag in _ROOTS:
        return _read_feed(root, base)
    head, entries = _read_feed(_from_atom03(root), base)
    head.format = head.format.replace("1.0", "0.3")
    return head, entries


def _pieces(job: FeedExport) -> Iterator[bytes]:
    return write_feed(job.head, job.items, keys=job.keys)


ATOM = DocumentFormat(
    "atom",
    "Atom 1.0",
    _pieces,
    frozenset({"language", "icon", "hub", "authors", "copyright", "generator", "categories", "logo", "extensions"}),
    xml=Reader(_is_atom, _read_document),
    representation=representation.ATOM,
)
