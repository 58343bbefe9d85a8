"""Atom documents: Atom 1.0 feeds and entries (RFC 4287), deletions (RFC 6721), Atom 0.3 as far as it maps.

An entry that is cut out of its feed keeps what it had from the feed: the base address, the language, the authors
(`FeedScope`). Entries that `atom_feed.write_feed` wrote come back exactly as they were stored.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from lxml import etree

from smartfeeds.core.times import format_datetime, parse_datetime, parse_time, within_years
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.additions import FANOUT_NS, take_additions
from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.growth import MAX_INHERITED_BYTES, check_size
from smartfeeds.formats.items import LEFT_REASON, FeedDraft, ItemDraft, SkippedItem, each
from smartfeeds.formats.links import base_of, rebase, resolve
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.rss_channel import Channel, foreign_elements
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element, language_of

ATOM03_NS = "http://purl.org/atom/ns#"
TOMBSTONES_NS = "http://purl.org/atompub/tombstones/1.0"

DELETED_ENTRY = f"{{{TOMBSTONES_NS}}}deleted-entry"
# RFC 5023, and the draft that servers of Atom 0.3 implement.
_CONTROLS = {
    f"{{{uri}}}control": f"{{{uri}}}draft" for uri in ("http://www.w3.org/2007/app", "http://purl.org/atom/app#")
}

_ADDRESSES = {atom.LINK: "href", atom.CONTENT: "src"}


@dataclass(frozen=True, slots=True)
class FeedScope:
    """The data that entries inherit from their feed: the base address, the language of its texts, and its authors."""

    base: str = ""
    language: str = ""
    authors: tuple[Element, ...] = ()


def read_atom(root: Element, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head and the entries of an atom:feed, or of an atom:entry that stands alone."""
    if root.tag == atom.ENTRY:
        return FeedDraft("Atom 1.0 entry"), each(partial(_entry, scope=FeedScope(base)), [root])
    head = FeedDraft(
        "Atom 1.0",
        id=(root.findtext(atom.ID) or "").strip(),
        title=atom.text_of(root, atom.TITLE),
        link=_alternate(root, base),
        description=atom.text_of(root, atom.SUBTITLE),
    )
    head.channel = _channel(root, base, head.warnings)
    authors = list(root.iterchildren(atom.AUTHOR))
    if sum(map(xml.size_bytes, authors)) > MAX_INHERITED_BYTES:
        head.warnings.append("the authors of the feed are too long to be repeated in each entry and were left out")
        authors = []
    scope = FeedScope(rebase(base, root.get(XML_BASE)), language_of(root), tuple(authors))
    return head, each(partial(_read, scope=scope), root.iterchildren(atom.ENTRY, DELETED_ENTRY))


def _alternate(root: Element, base: str) -> str:
    for link in root.iterchildren(atom.LINK):
        if link.get("rel", "alternate") == "alternate" and link.get("href"):
            return resolve(base_of(link, base), link.get("href", ""))
    return ""


def _channel(root: Element, base: str, warnings: list[str]) -> Channel:
    """Returns the metadata of an atom:feed beside id, title, link and subtitle (RFC 4287 4.1.1)."""
    links = {link.get("rel", "alternate"): link for link in root.iterchildren(atom.LINK, reversed=True)}
    pictures = {
        name: resolve(base_of(node, base), node.text or "")
        for name in ("icon", "logo")
        for node in root.iterchildren(f"{{{ATOM_NS}}}{name}", reversed=True)
    }
    categories = [
        (node.get("term", "").strip(), node.get("scheme", "").strip()) for node in root.iterchildren(atom.CATEGORY)
    ]
    namespaces = (f"{{{ATOM_NS}}}*", f"{{{TOMBSTONES_NS}}}*", f"{{{FANOUT_NS}}}*", f"{{{FEEDSYNC_NS}}}*")
    ours = set(root.iterchildren(*namespaces))
    foreign = [node for node in root.iterchildren("*") if node not in ours]
    own = list(root.iterchildren(f"{{{ATOM_NS}}}*"))
    return Channel(
        language=language_of(root),
        copyright=atom.text_of(root, f"{{{ATOM_NS}}}rights"),
        generator=squeeze(root.findtext(f"{{{ATOM_NS}}}generator") or ""),
        categories=tuple(pair for pair in categories if pair[0]),
        icon=pictures.get("icon", ""),
        logo=pictures.get("logo", ""),
        hub=resolve(base_of(links["hub"], base), links["hub"].get("href", "")) if "hub" in links else "",
        authors=tuple(
            name
            for node in root.iterchildren(atom.AUTHOR)
            if (name := squeeze(node.findtext(f"{{{ATOM_NS}}}name") or ""))
        ),
        extensions=foreign_elements([*_other_links(root, base), *foreign], warnings),
        left_out=(
            *(name for name, has in _LEFT_OUT.items() if any(map(has, own))),
            *(["hubs after the first"] if sum(node.get("rel") == "hub" for node in own) > 1 else ()),
        ),
    )


# Links that each document writes anew. Those to archives (RFC 5005 4) lead to the pages of the original.
_OWN_RELS = frozenset({"self", "alternate", "hub", "next", "previous", "prev", "first", "last", "current"})
_DETAILS = frozenset({f"{{{ATOM_NS}}}email", f"{{{ATOM_NS}}}uri"})
# What `Channel` has no place for. The entries without an author of their own have it all the same.
_LEFT_OUT: Mapping[str, Callable[[Element], bool]] = {
    "addresses of authors": lambda node: node.tag == atom.AUTHOR and any(part.tag in _DETAILS for part in node),
    "contributors": lambda node: node.tag == f"{{{ATOM_NS}}}contributor",
    "labels of categories": lambda node: (
        node.tag == atom.CATEGORY and node.get("label") not in (None, node.get("term"))
    ),
    "address and version of the generator": lambda node: node.tag == f"{{{ATOM_NS}}}generator" and len(node.attrib) > 0,
}


def _other_links(root: Element, base: str) -> list[Element]:
    """Links that only Atom has words for, such as the license, as RSS can have them too: with a prefix."""
    links = []
    alternates = 0
    for link in root.iterchildren(atom.LINK):
        rel = link.get("rel", "alternate").strip()
        alternates += rel == "alternate"
        if (rel in _OWN_RELS or rel.endswith("-archive")) and (rel != "alternate" or alternates == 1):
            continue
        kept = xml.new_element(atom.LINK, {"atom": ATOM_NS})
        kept.attrib.update({str(name): str(value) for name, value in link.attrib.items() if name != XML_BASE})
        kept.set("href", resolve(base_of(link, base), link.get("href", "")))
        links.append(kept)
    return links


def _read(node: Element, index: int, scope: FeedScope) -> ItemDraft | SkippedItem:
    if node.tag == DELETED_ENTRY:
        return _deletion(node, index)
    return SkippedItem(index, LEFT_REASON) if atom.is_left(node) else _entry(node, index, scope)


def _entry(node: Element, index: int, scope: FeedScope) -> ItemDraft | SkippedItem:
    if not len(node) and not (node.text or "").strip():
        return SkippedItem(index, "the entry is empty")  # as an item of RSS
    found = ItemDraft(index, node, deleted=atom.is_deletion(node))
    given_id, keys = take_additions(node)
    found.item_id = (node.findtext(atom.ID) or "").strip() if given_id is None else given_id
    if keys is not None:
        found.published_us = within_years(parse_time(keys.get("created", "")))
        found.updated_us = within_years(parse_time(keys.get("modified", "")))
        return found
    if _is_draft(node):
        return SkippedItem(index, "the entry is a draft (app:draft), which its author has not published")
    found.published_us = _date(found, atom.PUBLISHED)
    found.updated_us = _date(found, atom.UPDATED)
    if found.updated_us is None and found.published_us is not None:
        updated = etree.SubElement(node, atom.UPDATED)
        updated.text = format_datetime(found.published_us)
    adopt(node, scope)
    return found


def _is_draft(node: Element) -> bool:
    """RFC 5023 13.1.1: a server should not publish such an entry. Our own exports keep what was published as one."""
    controls = node.iterchildren(*_CONTROLS)
    return any((control.findtext(_CONTROLS[control.tag]) or "").strip() == "yes" for control in controls)


def _date(found: ItemDraft, tag: str) -> int | None:
    """The first readable date. Unreadable dates are removed, and dates in other spellings are written as RFC 3339
    (RFC 4287 3.3), so that readers of the entry can read all dates that it has."""
    first_us: int | None = None
    name = tag.rpartition("}")[2]
    for child in list(found.entry.iterchildren(tag)):
        text = (child.text or "").strip()
        time_us = parse_date(text)
        if time_us is None:
            xml.replace_by_text(child, "")
            found.warnings.append(f"atom:{name} is no date-time and was left out")
            continue
        if parse_datetime(text) is None:
            child.text = format_datetime(time_us)
            found.warnings.append(f"atom:{name} is not in RFC 3339 format and was read as {child.text}")
        first_us = time_us if first_us is None else first_us
    return first_us


def adopt(node: Element, scope: FeedScope) -> None:
    """Gives an entry what it would lose without its feed: base address, language, and authors where it has none.

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
    """RFC 6721 3: `ref` is the atom:id of what was deleted, `when` the time."""
    reference = node.get("ref", "").strip()
    if not reference:
        return SkippedItem(index, "an at:deleted-entry does not say which entry it means")
    when_us = parse_date(node.get("when", ""))
    text = "" if when_us is None else format_datetime(when_us)
    entry = xml.parse_stored(atom.marked(reference, text, ""))
    return ItemDraft(index, entry, reference, updated_us=when_us, deleted=True)


_NAMES_03 = {
    "modified": "updated",
    "issued": "published",
    "created": "published",
    "tagline": "subtitle",
    "url": "uri",
    "copyright": "rights",
}
_TEXTS_03 = frozenset({"title", "summary", "content", "tagline", "subtitle", "info", "copyright"})
_NS_03 = re.compile(rb'( xmlns(?::[^=\s]+)?=)"http://purl\.org/atom/ns#"')


def from_atom03(root: Element) -> Element:
    """The same document in Atom 1.0: other names, types instead of modes."""
    renamed = _NS_03.sub(rb'\1"%s"' % ATOM_NS.encode(), xml.canonical(root))
    try:
        root = etree.fromstring(renamed, xml.strict_parser())
    except etree.XMLSyntaxError:
        raise FeedError(Condition.INVALID_PAYLOAD, "the Atom 0.3 document cannot be read as Atom 1.0") from None
    for node in list(root.iter(f"{{{ATOM_NS}}}*")):
        name = node.tag.rpartition("}")[2]
        if name in _TEXTS_03:
            _retype(node)
        if name in ("modified", "issued", "created"):
            time_us = parse_date(node.text or "")
            node.text = node.text if time_us is None else format_datetime(time_us)
        node.tag = f"{{{ATOM_NS}}}{_NAMES_03.get(name, name)}"
    return root


def _retype(node: Element) -> None:
    """Atom 0.3 has a media type and a mode (xml, escaped); Atom 1.0 has text, html and xhtml."""
    mode = node.attrib.pop("mode", "xml")
    kind = node.get("type", "text/plain").strip().lower()
    if len(node) and kind in ("text/plain", "text/html", "application/xhtml+xml"):
        _wrap(node)
        node.set("type", "xhtml")
    elif kind in ("text/html", "application/xhtml+xml"):
        node.set("type", "html" if mode == "escaped" else "text")
    elif kind == "text/plain":
        node.set("type", "text")


def _wrap(node: Element) -> None:
    """Atom 1.0 wants one xhtml:div around the markup."""
    div = "{http://www.w3.org/1999/xhtml}div"
    if len(node) == 1 and node[0].tag == div:
        return
    wrapper = xml.new_element(div, {None: "http://www.w3.org/1999/xhtml"})
    wrapper.text, node.text = node.text, None
    wrapper.extend(list(node))
    node.append(wrapper)
