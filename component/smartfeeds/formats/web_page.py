"""Web pages as feeds: h-feed and h-entry of microformats2 (SRC-048).

A page is a feed if it has an h-feed or an h-entry. `microformats.PROPERTIES` has the meaning of the properties.
mf2py would need limits around it: it takes five times as long and 12 MB, and raises RecursionError for a page of
strangers with 3,000 nested elements.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from lxml import etree

from smartfeeds.errors import FormatError
from smartfeeds.formats import atom
from smartfeeds.formats.encodings import utf8_page
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.feed_document import FeedDocument, FeedDraft, ItemDraft, SkippedItem, each
from smartfeeds.formats.feed_reader import collected
from smartfeeds.formats.html_page import parse_page
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.json_text import Json
from smartfeeds.formats.links import is_uri, rebase, resolve
from smartfeeds.formats.microformats import PROPERTIES, fill
from smartfeeds.formats.paging import Paging
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.refusals import page_refusal, page_title
from smartfeeds.formats.xml import Element

PAGE_FORMAT: Final = "h-feed"
MAX_PAGE_BYTES: Final = 10_000_000  # as much as a fetch may have (SRC-016)
_ENTRY: Final = "h-entry"
_FEED: Final = "h-feed"
_ROOT: Final = re.compile(r"h-[a-z0-9]+(?:-[a-z0-9]+)*")
# Values of a property that are in an attribute instead of the text (microformats2 parsing, p-, u- and dt-).
_ATTRIBUTES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "u": (("a", "href"), ("area", "href"), ("link", "href"), ("img", "src"), ("audio", "src"), ("video", "src"),
          ("source", "src"), ("object", "data"), ("data", "value")),
    "dt": (("time", "datetime"), ("ins", "datetime"), ("del", "datetime"), ("abbr", "title"), ("data", "value")),
    "p": (("abbr", "title"), ("link", "title"), ("data", "value"), ("input", "value"), ("img", "alt")),
}  # fmt: skip
_FILES: Final = ("photo", "video", "audio")
_TEXT_NAMES: Final = ("name", "summary")
_ADDRESS_NAMES: Final = ("in-reply-to", "bookmark-of", *_FILES)


def read_page(html: bytes, charset: str, url: str) -> FeedDocument:
    """The feed in a page that came from `url`. Raises FormatError if it has none.

    `charset` is that of the header. Only the first MAX_PAGE_BYTES count.
    """
    root = parse_page(utf8_page(html[:MAX_PAGE_BYTES], charset), "utf-8")
    if root is None:
        raise FormatError("the document is a web page that cannot be read")
    addresses = (node.get("href", "").strip() for node in root.iter("base"))
    base = rebase("", resolve(url, next(filter(None, addresses), "")))
    feed = next((node for node in root.iter("*") if _FEED in _classes(node)), root)
    entries = list(_entries_in(feed))
    if not entries:
        raise page_refusal(page_title(html))
    head = FeedDraft(PAGE_FORMAT, title=_title(feed, root), link=url)
    older = next((node.get("href", "") for node in root.iter("a", "link") if "next" in _words(node, "rel")), "").strip()
    head.paging = Paging(resolve(base, older) if older else "")
    return collected(head, each(partial(_read, base=base), entries), len(html))


def _words(node: Element, name: str) -> list[str]:
    return node.get(name, "").split()


def _classes(node: Element) -> list[str]:
    return _words(node, "class")


def _is_root(node: Element) -> bool:
    return any(_ROOT.fullmatch(word) for word in _classes(node))


def _entries_in(feed: Element) -> Iterator[Element]:
    """The entries of a feed that are not part of another entry or citation."""
    for node in _walk(feed, lambda node: _is_root(node) and _FEED not in _classes(node)):
        if _ENTRY in _classes(node):
            yield node


def _walk(root: Element, is_end: Callable[[Element], bool]) -> Iterator[Element]:
    """The elements below a root in the order of the document; those below an end are left out."""
    stack = [*reversed(list(root.iterchildren("*")))]
    while stack:
        node = stack.pop()
        yield node
        if not is_end(node):
            stack += reversed(list(node.iterchildren("*")))


def _title(feed: Element, root: Element) -> str:
    name = next((node for node in _walk(feed, _is_root) if "p-name" in _classes(node) and not _is_root(node)), None)
    if name is None or feed is root:
        name = next(root.iter("title"), None)
    return "" if name is None else squeeze(clean(atom.string_of(name)))


def _values(entry: Element) -> dict[str, list[tuple[str, Element]]]:
    """The elements of the properties of an entry by name, with their prefix (p, u, dt, e)."""
    values: dict[str, list[tuple[str, Element]]] = {}
    for node in _walk(entry, _is_root):
        for word in _classes(node):
            prefix, _, name = word.partition("-")
            if name and prefix in ("p", "u", "dt", "e"):
                values.setdefault(name, []).append((prefix, node))
    return values


def _value(prefix: str, node: Element, base: str) -> str:
    """The value of a property: an attribute for some elements, else the text; addresses are absolute."""
    for tag, attribute in _ATTRIBUTES.get(prefix, ()):
        if node.tag == tag and node.get(attribute) is not None:
            text = clean(node.get(attribute, "")).strip()
            return resolve(base, text) if prefix == "u" and tag != "data" else text
    if prefix == "u" and _is_root(node):  # an h-cite: its own address
        inner = next((child for child in _walk(node, _is_root) if "u-url" in _classes(child)), None)
        if inner is not None:
            return _value("u", inner, base)
    text = squeeze(clean(atom.string_of(node)))
    return resolve(base, text) if prefix == "u" else text


def _html_of(node: Element) -> str:
    inner = "".join(etree.tostring(child, encoding="unicode", method="html") for child in node)
    return clean((node.text or "") + inner)


def _read(entry: Element, index: int, base: str) -> ItemDraft | SkippedItem:
    elements = _values(entry)

    def texts(name: str) -> list[str]:
        return [text for prefix, node in elements.get(name, ()) if (text := _value(prefix, node, base))]

    builder = EntryBuilder(index, base)
    page = next(iter(texts("url")), "")
    uid = next(iter(texts("uid")), "")
    builder.draft.item_id = uid or page
    builder.add_id(uid or page, given=False)
    published_us, updated_us = (_date(builder, texts(name)) for name in ("published", "updated"))
    properties: dict[str, list[Json]] = {name: list(texts(name)) for name in _TEXT_NAMES}
    properties |= {name: [text for text in texts(name) if is_uri(text)] for name in _ADDRESS_NAMES}
    properties["category"] = list(texts("category"))
    content = elements.get("content", ())[:1]
    properties["content"] = [
        {"html": _html_of(node)} if prefix == "e" else _value(prefix, node, base) for prefix, node in content
    ]
    if page:
        builder.add_link("alternate", page)
    fill(builder, {name: values for name, values in properties.items() if values and name in PROPERTIES})
    builder.add_times(published_us, updated_us)
    for _prefix, node in elements.get("author", ()):
        _add_author(builder, node, base)
    return builder.draft


def _date(builder: EntryBuilder, texts: list[str]) -> int | None:
    return next((time_us for text in texts if (time_us := builder.date(text)) is not None), None)


def _add_author(builder: EntryBuilder, node: Element, base: str) -> None:
    """The author: an h-card, or a name."""
    inner = {word: child for child in _walk(node, _is_root) for word in _classes(child)}
    name, address = inner.get("p-name", node), inner.get("u-url", node)
    url = address.get("href", "").strip()
    builder.add_person(squeeze(clean(atom.string_of(name))), resolve(base, clean(url)) if url else "")
