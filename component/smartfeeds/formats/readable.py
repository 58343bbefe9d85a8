"""Entries in Atom documents for feed readers (RFC 4287).

Many readers support a part of Atom only: no xml:base, no XHTML, no types of texts, no links without `rel`, no
attributes of other namespaces on dates. `readable` writes what they need and means the same. It also corrects what
RFC 4287 forbids: repeated elements, persons without a name, and empty media types.
"""

from collections.abc import Callable, Mapping

from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import IANA_RELATIONS, TEXT_TYPES, link_html, read_text
from smartfeeds.formats.links import is_absolute, rebase, resolve_uri
from smartfeeds.formats.xml import XML_BASE, Element

_A = f"{{{ATOM_NS}}}"
_NAME, _EMAIL = f"{_A}name", f"{_A}email"
_RIGHTS, _CONTRIBUTOR = f"{_A}rights", f"{_A}contributor"
_ONCE = frozenset({atom.ID, atom.TITLE, atom.UPDATED, atom.PUBLISHED, atom.SUMMARY, atom.CONTENT, atom.SOURCE, _RIGHTS})


def readable(payload: bytes, created_us: int) -> bytes:
    """Returns a stored entry with absolute references, a plain title, a date of publication and HTML texts.

    `created_us` is the date of an entry without `published`. Readers would take `updated`, which changes with each
    edit, and the other documents have the time of creation too.
    """
    root = xml.parse_stored(payload)
    base = _take_base(root, "")
    alternates: set[tuple[str, str]] = set()
    tags: set[str] = set()
    for child in list(root):
        tag = child.tag
        own_base = _take_base(child, base)
        repeated = tag in _ONCE and tag in tags
        tags.add(tag)
        if repeated or not _STEPS.get(tag, _keep_base)(child, own_base) or not _is_first(child, alternates):
            xml.replace_by_text(child, "")
    if atom.PUBLISHED not in tags:
        published = xml.new_element(atom.PUBLISHED, {None: ATOM_NS})
        published.text = format_datetime(created_us)
        root.append(published)
    mails = [author.find(_EMAIL) for author in root.iterchildren(atom.AUTHOR)]
    if None in mails:
        # feedparser gives the mail address of an author to the authors behind that have none.
        for mail in mails:
            if mail is not None:
                xml.replace_by_text(mail, "")
    return xml.canonical(root)


def _take_base(node: Element, outer: str) -> str:
    """Removes xml:base from an element and returns the base that is in force there."""
    base = rebase(outer, node.get(XML_BASE))
    node.attrib.pop(XML_BASE, "")
    return base


def _is_first(node: Element, alternates: set[tuple[str, str]]) -> bool:
    """Whether a node is not a second alternate link of the same type and language (RFC 4287 4.1.1)."""
    if node.tag != atom.LINK or node.get("rel") != "alternate":
        return True
    kind = (node.get("type", ""), node.get("hreflang", ""))
    if kind in alternates:
        return False
    alternates.add(kind)
    return True


def _keep_base(node: Element, base: str) -> bool:
    """An element of which no reader that ignores xml:base knows the references."""
    if base:
        node.set(XML_BASE, base)
    return True


def _trim(node: Element, _base: str) -> bool:
    """An id or a date. Readers compare ids as they are written."""
    text = atom.string_of(node).strip()
    _replace_content(node, text)
    return bool(text)


def _write_text(node: Element, base: str) -> bool:
    kind = node.get("type", "text").strip().lower()
    if address := node.get("src", "").strip():
        # Few readers know content that is elsewhere; all know a link.
        _set_text(node, link_html(resolve_uri(base, address)), is_markup=True)
    elif kind in TEXT_TYPES:
        text = read_text(node, TEXT_TYPES[kind], base)
        # Most readers show a title as it is, and a summary or content as HTML, whatever its type is.
        is_body = node.tag in (atom.SUMMARY, atom.CONTENT)
        _set_text(node, text.html if is_body else text.plain, is_markup=is_body)
    else:
        _keep_base(node, base)
    return True


def _set_text(node: Element, value: str, *, is_markup: bool) -> None:
    language = node.get(xml.XML_LANG, "")
    _replace_content(node, value)
    # Readers that make JSON of XML show an empty element with attributes as an object.
    if value.strip() and language:
        node.set(xml.XML_LANG, language)
    if value.strip() and is_markup:
        node.set("type", "html")


def _replace_content(node: Element, text: str) -> None:
    """Replaces the children and attributes of an element by a text."""
    tail = node.tail
    node.clear()
    node.tail, node.text = tail, text


def _write_person(node: Element, base: str) -> bool:
    """A person has exactly one name (RFC 4287 3.2.1); the mail address or the URI stands for a missing one."""
    values: dict[str, str] = {}
    for part in list(node):
        text = (part.text or "").strip()
        if part.tag == atom.URI:
            text = part.text = harmless(resolve_uri(base, text))
        if part.tag in (_NAME, _EMAIL, atom.URI):
            if not text or part.tag in values:
                xml.replace_by_text(part, "")
            else:
                values[part.tag] = text
    label = values.get(_EMAIL) or values.get(atom.URI)
    if _NAME not in values and label:
        name = xml.new_element(_NAME, {None: ATOM_NS})
        name.text = label
        node.insert(0, name)
    return bool(values)


def _write_link(node: Element, base: str) -> bool:
    href = node.get("href", "").strip()
    node.set("rel", node.get("rel", "").strip().removeprefix(IANA_RELATIONS) or "alternate")
    node.set("href", resolve_uri(base, href))
    _drop_empty(node, "type", "title", "length", "hreflang")
    # Without any base a reader would resolve the link by the address of the document.
    return is_absolute(node.get("href", "")) and bool(harmless(node.get("href", "")))


def _write_reply(node: Element, base: str) -> bool:
    for name in ("href", "source"):
        if reference := node.get(name):
            node.set(name, resolve_uri(base, reference))
    _drop_empty(node, "href", "source", "type")
    return True


def _drop_empty(node: Element, *names: str) -> None:
    for name in names:
        if not node.get(name, "-").strip():
            del node.attrib[name]


_STEPS: Mapping[str, Callable[[Element, str], bool]] = {
    **dict.fromkeys((atom.ID, atom.UPDATED, atom.PUBLISHED), _trim),
    **dict.fromkeys((atom.TITLE, atom.SUMMARY, atom.CONTENT, _RIGHTS), _write_text),
    **dict.fromkeys((atom.AUTHOR, _CONTRIBUTOR), _write_person),
    atom.LINK: _write_link,
    atom.IN_REPLY_TO: _write_reply,
}
