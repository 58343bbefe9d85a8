"""Title, text and picture of an entry from the elements of modules, where publishers put them in place of Atom's.

Video channels have their text in media:group, podcasts in itunes:summary, blogs in content:encoded or xhtml:body. What
an entry has itself counts first, and the elements of the modules stay in it. A picture becomes a link of the relation
"preview" (RFC 6903), unless the text has pictures.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lxml import etree

from smartfeeds.formats import atom
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.growth import check_size
from smartfeeds.formats.links import base_of, resolve
from smartfeeds.formats.plain import LOOKS_LIKE_HTML, squeeze
from smartfeeds.formats.xhtml import XHTML_NS, inner_html
from smartfeeds.formats.xml import Element

PREVIEW: Final = "preview"
# The namespaces of modules without their scheme, case and last slash: feeds write them in many ways.
_MODULES: Final = {
    "search.yahoo.com/mrss": "media",
    "tools.search.yahoo.com/mrss": "media",
    "video.search.yahoo.com/mrss": "media",
    "itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "google.com/schemas/play-podcasts/1.0": "googleplay",
    "purl.org/dc/elements/1.1": "dc",
    "purl.org/dc/terms": "dcterms",
    "purl.org/rss/1.0/modules/content": "content",
    "w3.org/1999/xhtml": "xhtml",
    "news.yandex.ru": "yandex",
    "news.yandex.com": "yandex",
    "turbo.yandex.ru": "turbo",
    "source.scripting.com": "source",
    # Elements that feeds add to RSS without a namespace.
    "": "rss",
    "purl.org/rss/1.0": "rss",
    "backend.userland.com/rss2": "rss",
}
_GROUPS: Final = frozenset({"media:group", "media:content"})
_TITLES: Final = ("media:title", "itunes:title", "dc:title", "dcterms:title")
# Those of the whole text, then those of a text that may be a summary; the best ones first.
_CONTENTS: Final = (
    "content:encoded",
    "xhtml:body",
    "xhtml:div",
    "yandex:full-text",
    "turbo:content",
    "rss:fulltext",
    "rss:full-text",
)
_SHORTER: Final = (
    *("media:description", "googleplay:description", "itunes:summary", "dcterms:abstract", "dc:description"),
    *("dcterms:description", "itunes:subtitle", "media:text", "rss:content", "rss:summary", "source:markdown"),
)
_AVATARS: Final = "gravatar.com/avatar"  # WordPress has the picture of the author in each entry
_IMAGE_ENDINGS: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif")
# Of fields of one entry that are looked at.
_MAX_FIELDS: Final = 200


class _Text(NamedTuple):
    """A text, and its type in Atom."""

    value: str
    kind: str


def complete_from_modules(entry: Element) -> None:
    """Adds to an atom:entry the title, the text and the picture that only elements of modules have.

    Raises FeedError(PAYLOAD_TOO_BIG) where its texts grow too long by that.
    """
    fields: dict[str, list[Element]] = {}
    for count, (name, node) in enumerate(_fields(entry)):
        if count >= _MAX_FIELDS:
            break
        fields.setdefault(name, []).append(node)
    if not fields:
        return
    if not _has_text(entry, atom.TITLE) and (title := _first(fields, _TITLES)) is not None:
        _put(entry, atom.TITLE, _Text(squeeze(title.value), title.kind))
    content = next(entry.iterchildren(atom.CONTENT), None)
    is_elsewhere = content is not None and content.get("src") is not None
    # A text beside content that is elsewhere is its summary.
    tag = atom.SUMMARY if is_elsewhere else atom.CONTENT
    names = (*(() if is_elsewhere else _CONTENTS), *(() if _has_text(entry, atom.SUMMARY) else _SHORTER))
    if not _has_text(entry, tag) and (text := _first(fields, names)) is not None:
        _put(entry, tag, text)
    _add_picture(entry, fields)


def is_whole_text(node: Element) -> bool:
    """Whether an element of a module is the whole text of its entry, beside which a description is a summary."""
    return _name(node) in _CONTENTS and (len(node) > 0 or bool(string_of(node).strip()))


def _name(node: Element) -> str:
    """The name of an element of a module with its customary prefix, "" for any other."""
    namespace, _, name = node.tag.removeprefix("{").rpartition("}")
    address = namespace.lower().removeprefix("http://").removeprefix("https://").removeprefix("www.").rstrip("/")
    prefix = _MODULES.get(address, "")
    return f"{prefix}:{name.lower()}" if prefix else ""


def _fields(parent: Element) -> Iterator[tuple[str, Element]]:
    """The elements of modules in an entry, and in its groups of media."""
    is_picture = parent.tag != atom.ENTRY and _is_image(parent)
    for child in parent.iterchildren(etree.Element):
        name = _name(child)
        # The title of a picture is its caption.
        if name and (not is_picture or name == "media:thumbnail"):
            yield name, child
        if name in _GROUPS:
            yield from _fields(child)


def _has_text(entry: Element, tag: str) -> bool:
    return any(len(node) > 0 or (node.text or "").strip() for node in entry.iterchildren(tag))


def _first(fields: dict[str, list[Element]], names: tuple[str, ...]) -> _Text | None:
    """The first text that is not empty, in the order of the names. Of several elements of a name the longest counts,
    because a group repeats its description for each file."""
    for name in names:
        texts = [_text_of(name, node) for node in fields.get(name, ())]
        texts = [text for text in texts if text.value]
        if texts:
            return max(texts, key=lambda text: len(text.value))
    return None


def _text_of(name: str, node: Element) -> _Text:
    if name.startswith("xhtml:"):
        return _Text(inner_html(node, "").strip(), "html")
    text = string_of(node).strip()
    stated = node.get("type", "").strip().lower()
    is_html = name in _CONTENTS or "html" in stated or (stated != "plain" and LOOKS_LIKE_HTML.search(text) is not None)
    return _Text(text, "html" if is_html else "")


def _put(entry: Element, tag: str, text: _Text) -> None:
    """Writes a text into the element of an entry, which is empty or missing."""
    check_size(len(text.value))
    node = next(entry.iterchildren(tag), None)
    node = etree.SubElement(entry, tag) if node is None else node
    node.text = text.value
    node.attrib.pop("type", "")
    if text.kind:
        node.set("type", text.kind)


def _add_picture(entry: Element, fields: dict[str, list[Element]]) -> None:
    texts = [string_of(node) for tag in (atom.CONTENT, atom.SUMMARY) for node in entry.iterchildren(tag)]
    links = list(entry.iterchildren(atom.LINK))
    if (
        any("<img" in text.lower() for text in texts)
        or next(entry.iter(f"{{{XHTML_NS}}}img"), None) is not None
        or any(link.get("rel") == PREVIEW or link.get("type", "").startswith("image/") for link in links)
    ):
        return
    for node, address in _pictures(fields):
        url = resolve(base_of(node, ""), address) if address else ""
        if url.startswith(("http://", "https://")) and _AVATARS not in url:
            kind = node.get("type", "").strip()
            values = {"rel": PREVIEW, "href": url, "type": kind if kind.startswith("image/") else ""}
            etree.SubElement(entry, atom.LINK, {name: value for name, value in values.items() if value})
            return


def _pictures(fields: dict[str, list[Element]]) -> Iterator[tuple[Element, str]]:
    """The pictures of an entry with their addresses, the best ones first: the widest of each kind."""
    images = [node for node in fields.get("media:content", ()) if _is_image(node)]
    for nodes in (images, fields.get("media:thumbnail", [])):
        for node in sorted(nodes, key=_width, reverse=True):
            yield node, _address_in(node)
    for name in ("itunes:image", "googleplay:image", "rss:image", "rss:thumbnail"):
        for node in fields.get(name, ()):
            yield node, _address_in(node)


def _address_in(node: Element) -> str:
    """The address in an element of a picture: in an attribute, in a child `url` as in the channel, or as its text."""
    url = next((child for child in node.iterchildren(etree.Element) if child.tag.rpartition("}")[2] == "url"), node)
    return node.get("href", "").strip() or node.get("url", "").strip() or string_of(url).strip()


def _is_image(node: Element) -> bool:
    stated = node.get("medium", "").strip().lower() or node.get("type", "").strip().lower().partition("/")[0]
    return stated == "image" or (not stated and node.get("url", "").partition("?")[0].lower().endswith(_IMAGE_ENDINGS))


def _width(node: Element) -> int:
    text = node.get("width", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
