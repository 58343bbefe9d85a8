"""OPML 2.0: outlines read and written, and the list of all feeds as one (SF-008, A-153).

An outline is a tree of texts with attributes. OPML 1.0, 1.1 and 2.0 are read, within limits of size and depth. Links
and inclusions are never opened. Attributes and elements of other namespaces are stored, so that the data of other
programs (such as sx:sync) is still there when the outline is written (OPML 2.0, "Extending OPML").
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lxml import etree

from smartfeeds.core.text import attribute, escape
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.dates import format_rfc822
from smartfeeds.formats.loader import load
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.xml import Element, canonical

OPML_NS = "urn:x-smartfeeds:opml"  # OPML 2.0, "Extending OPML": added attributes must be in a namespace
ADDRESS = f"{{{OPML_NS}}}xmpp"
ITEM_ID = f"{{{OPML_NS}}}id"
CHANGED = f"{{{OPML_NS}}}updated"
NOTE = f"{{{OPML_NS}}}note"
PLACEHOLDER = f"{{{OPML_NS}}}placeholder"

MAX_OUTLINES = 100_000
MAX_LEVELS = 128  # outlines are read and written by recursion
MAX_ATTRIBUTES = 128  # as `formats.xml` has it for a payload
# A document can have a fault in each of its outlines.
MAX_WARNINGS = 20

# Some programs put OPML itself into these namespaces. OPML defines none, and most documents use none.
_NAMESPACES = frozenset({"", "http://opml.org/spec2", "http://www.opml.org/spec2"})
_ROOTS = frozenset({"opml", "outlinedocument"})
# Types of the outlines of feeds. OPML 2.0 has "rss" for a feed of any format; "link" and "include" are no feeds.
_FEED_TYPES = frozenset({"rss", "rss1", "rss2", "atom", "rdf", "feed"})
_PREFIXES = {OPML_NS: "sf", "http://www.w3.org/XML/1998/namespace": "xml"}


@dataclass(frozen=True, slots=True)
class Outline:
    """One line of an outline.

    `attributes` are all but `text`, those of a namespace under Clark names; `extensions` are the canonical bytes of
    children that are no outlines.
    """

    text: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: tuple["Outline", ...] = ()
    extensions: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class OutlineDocument:
    """A whole document: `head` holds the texts of the head's plain elements under their names, title included.

    `head_extensions` are the canonical bytes of the head's children of other namespaces, `warnings` what was
    tolerated.
    """

    head: dict[str, str]
    outlines: tuple[Outline, ...]
    version: str = "2.0"
    head_extensions: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title on one line; empty where there is none."""
        return squeeze(self.head.get("title", ""))


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed in a list of feeds: addresses and plain texts. `created_us` is None where it is not known."""

    title: str
    xml_url: str
    html_url: str = ""
    xmpp: str = ""
    description: str = ""
    language: str = ""
    created_us: int | None = None


def read_outline(data: bytes, *, repair: bool = True) -> OutlineDocument:
    """The outline in `data`; `repair` as for `load`.

    Raises FeedError(INVALID_PAYLOAD) or FeedError(PAYLOAD_TOO_BIG) for what is none or goes beyond the limits, and for
    an outline of which lines may be missing: a feed that a list lacks is no longer followed.
    """
    root, warnings, partial = load(data, repair=repair)
    if partial:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the outline is not whole: {warnings[-1]}")
    if not is_outline(root):
        name = root.tag.rpartition("}")[2]
        raise FeedError(Condition.INVALID_PAYLOAD, f"the document is no OPML: its root element is {name[:40]}")
    return outline_of(root, warnings)


def is_outline(root: Element) -> bool:
    """Whether a document with this root is OPML."""
    return _name(root) in _ROOTS


def outline_of(root: Element, warnings: Iterable[str] = ()) -> OutlineDocument:
    """The outline of a document for whose root `is_outline` is true. Raises FeedError as `read_outline` does."""
    head, body = (next(_children(root, name), None) for name in ("head", "body"))
    if body is None:
        raise FeedError(Condition.INVALID_PAYLOAD, "the outline has no body")
    warnings = [*warnings, *(["the outline has no head"] if head is None else [])]
    reader = _OutlineReader()
    outlines = tuple(reader.outline(node, 1) for node in _children(body, "outline"))
    warnings += reader.faults[:MAX_WARNINGS]
    if len(reader.faults) > MAX_WARNINGS:
        warnings.append("there is more of that kind")
    return OutlineDocument(
        head={} if head is None else {_local(node): squeeze(string_of(node)) for node in _plain(head)},
        outlines=outlines,
        version=squeeze(root.get("version", ""))[:10] or "1.0",
        head_extensions=() if head is None else _foreign(head),
        warnings=tuple(warnings),
    )


def single_outline(node: Element) -> Outline:
    """An outline without a document around it. Raises FeedError as `read_outline` does."""
    return _OutlineReader().outline(node, 1)


class _OutlineReader:
    """Reads the outlines of one document, counts them and collects their faults."""

    def __init__(self) -> None:
        self.count = 0
        self.faults: list[str] = []

    def outline(self, node: Element, level: int) -> Outline:
        self.count += 1
        if self.count > MAX_OUTLINES:
            raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document has more than {MAX_OUTLINES} outlines")
        if level > MAX_LEVELS:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the outline is nested deeper than {MAX_LEVELS} levels")
        if any(name != "outline" for name in map(_name, _plain(node))):
            self.faults.append(f"an element in outline {self.count} that OPML does not have was left out")
        if len(node.attrib) > MAX_ATTRIBUTES:
            raise FeedError(Condition.INVALID_PAYLOAD, f"an outline has more than {MAX_ATTRIBUTES} attributes")
        attributes = {str(name): str(value) for name, value in node.attrib.items()}
        text = attributes.pop("text", None)
        if text is None:
            # OPML 2.0 requires a text; lists of feeds often have a title only.
            text = attributes.get("title", "")
            self.faults.append(f"outline {self.count} has no text")
        children = tuple(self.outline(child, level + 1) for child in _children(node, "outline"))
        return Outline(text, attributes, children, _foreign(node))


def _name(node: Element) -> str:
    """The lower-case name of an element of OPML itself, or "" for any other."""
    namespace, _, name = node.tag.removeprefix("{").rpartition("}")
    return name.lower() if namespace in _NAMESPACES else ""


def _local(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _plain(parent: Element) -> Iterator[Element]:
    return (child for child in parent.iterchildren(etree.Element) if _name(child))


def _children(parent: Element, name: str) -> Iterator[Element]:
    return (child for child in _plain(parent) if _name(child) == name)


def _foreign(parent: Element) -> tuple[bytes, ...]:
    return tuple(canonical(child) for child in parent.iterchildren(etree.Element) if not _name(child))


def named(outline: Outline) -> dict[str, str]:
    """The attributes under lower-case names, because real lists spell them in every case. Those of a namespace stay."""
    return {name if name.startswith("{") else name.lower(): value for name, value in outline.attributes.items()}


def feed_url(attributes: Mapping[str, str]) -> str:
    """The address of the feed of an outline, "" if it is no feed. The attributes are those of `named`.

    Some programs write the address of a feed into `url`, and only the type tells that it is one.
    """
    is_feed = attributes.get("type", "").strip().lower() in _FEED_TYPES
    return attributes.get("xmlurl", "").strip() or (attributes.get("url", "").strip() if is_feed else "")


def flattened(outlines: Iterable[Outline]) -> Iterator[tuple[int, Outline]]:
    """Every outline with its level, counted from 0, in document order: a tree as a flat list (SF-008)."""
    stack = [(0, outline) for outline in outlines][::-1]
    while stack:
        level, outline = stack.pop()
        yield level, outline
        stack += [(level + 1, child) for child in reversed(outline.children)]


def write_list(title: str, feeds: Iterable[ListedFeed], now_us: int | None = None) -> Iterator[bytes]:
    """The list of feeds as OPML 2.0, in pieces, one a feed. Raises ForbiddenCharacterError.

    `now_us` is the date of creation in the head; None leaves it out.
    """
    head = {"title": title} | ({} if now_us is None else {"dateCreated": format_rfc822(now_us)})
    return write_outline(OutlineDocument(head, ()), never_empty(map(_listed, feeds), "no feeds"))


def never_empty(outlines: Iterable[Outline], text: str) -> Iterator[Outline]:
    """The outlines, or a comment with this text if there are none: a body of OPML 2.0 contains at least one outline."""
    empty = True
    for outline in outlines:
        empty = False
        yield outline
    if empty:
        yield Outline(text, {"isComment": "true", PLACEHOLDER: "true"})


def _listed(feed: ListedFeed) -> Outline:
    attributes = {
        "title": feed.title,
        "type": "rss",  # OPML 2.0, "Subscription lists": the type of a feed of any format
        "xmlUrl": feed.xml_url,
        "htmlUrl": feed.html_url,
        "description": feed.description,
        "language": feed.language,
        "created": "" if feed.created_us is None else format_rfc822(feed.created_us),
        ADDRESS: feed.xmpp,
    }
    return Outline(feed.title, {name: value for name, value in attributes.items() if value})


def write_outline(document: OutlineDocument, more: Iterable[Outline] = ()) -> Iterator[bytes]:
    """A document as OPML 2.0 in UTF-8, in pieces, one an outline of the first level, with `more` at its end.

    Raises ForbiddenCharacterError for texts XML cannot carry.
    """
    head = "".join(f"<{name}>{escape(text)}</{name}>\n" for name, text in document.head.items())
    yield (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0" xmlns:sf="{OPML_NS}">\n<head>\n{head}'
    ).encode() + b"\n".join((*document.head_extensions, b"</head>\n<body>\n"))
    for outlines in (document.outlines, more):
        for outline in outlines:
            yield outline_bytes(outline)
    yield b"</body>\n</opml>\n"


def outline_bytes(outline: Outline) -> bytes:
    """An outline with all that is in it, as a line of its own. Raises ForbiddenCharacterError."""
    start = f'<outline text="{attribute(outline.text)}"{_attributes(outline.attributes)}'.encode()
    if not outline.children and not outline.extensions:
        return start + b"/>\n"
    inside = b"".join((*outline.extensions, b"\n", *map(outline_bytes, outline.children)))
    return start + b">" + inside + b"</outline>\n"


def alone(outline: Outline) -> bytes:
    """An outline outside a document, which declares the prefix of our own attributes itself."""
    return outline_bytes(outline).replace(b"<outline ", f'<outline xmlns:sf="{OPML_NS}" '.encode(), 1)


def _attributes(attributes: dict[str, str]) -> str:
    parts = []
    for number, (name, value) in enumerate(attributes.items()):
        namespace, _, local = name.removeprefix("{").rpartition("}")
        prefix = _PREFIXES.get(namespace, f"n{number}") + ":" if namespace else ""
        if namespace and namespace not in _PREFIXES:
            parts.append(f' xmlns:{prefix[:-1]}="{attribute(namespace)}"')
        parts.append(f' {prefix}{local}="{attribute(value)}"')
    return "".join(parts)
