"""A stored payload as values: what writers of other formats and pages make of an item (RFC 4287, RFC 4685, A-35).

Nothing here changes a payload. If an element occurs more often than Atom allows, the first counts. Values without a use
(an invalid date, a link without address) are left out. Relative references are resolved by xml:base, in HTML too.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute, cut, escape
from smartfeeds.core.times import parse_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom import ATOM_NS, string_of
from smartfeeds.formats.html_links import absolute_html
from smartfeeds.formats.links import rebase, resolve_uri
from smartfeeds.formats.modules import PREVIEW
from smartfeeds.formats.payload import payload_of
from smartfeeds.formats.plain import html_text, markup_text, squeeze
from smartfeeds.formats.xhtml import inner_html
from smartfeeds.formats.xml import XML_BASE, XML_LANG, XML_SPACE, Element

ACTIVITY_NS = "http://activitystrea.ms/spec/1.0/"

_A = f"{{{ATOM_NS}}}"
_NAME, _EMAIL = f"{_A}name", f"{_A}email"
_CONTRIBUTOR, _RIGHTS = f"{_A}contributor", f"{_A}rights"
_OBJECT_TYPE, _VERB, _OBJECT = (f"{{{ACTIVITY_NS}}}{name}" for name in ("object-type", "verb", "object"))
_COMMON = frozenset({XML_BASE, XML_LANG, XML_SPACE})
_TEXT_ATTRIBUTES = _COMMON | {"type", "src"}
_PERSON = frozenset({_NAME, _EMAIL, atom.URI})
# Of elements other than persons: the attributes and children that their values have.
_KNOWN: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    atom.LINK: (_COMMON | {"rel", "href", "type", "title", "length"}, frozenset()),
    atom.CATEGORY: (_COMMON | {"term", "scheme", "label"}, frozenset()),
}
_LINE_END = re.compile(r"\r\n?|\n")
IANA_RELATIONS = "http://www.iana.org/assignments/relation/"
_LENGTH_DIGITS = 18  # of a number that 64 bits can have


class TextKind(Enum):
    """The kinds of an Atom text construct."""

    TEXT = "text"
    HTML = "html"
    XHTML = "xhtml"


@dataclass(frozen=True, slots=True)
class EntryText:
    """A text construct. `value` is plain text, HTML, or what is in the div of XHTML, written as HTML.

    References in HTML are absolute where the entry says what they are relative to. `language` is that of the construct
    itself, "" if it says none.
    """

    kind: TextKind
    value: str
    language: str = ""

    @property
    def html(self) -> str:
        """The text as HTML, with the line ends of plain text as `br`. The HTML is not sanitised."""
        return _LINE_END.sub("<br/>\n", escape(self.value.strip())) if self.kind is TextKind.TEXT else self.value

    @property
    def plain(self) -> str:
        """The text on one line, without markup."""
        return squeeze(self.value) if self.kind is TextKind.TEXT else html_text(self.value)

    @property
    def is_markup(self) -> bool:
        """Whether `value` is markup and not text."""
        return self.kind is not TextKind.TEXT


NO_TEXT = EntryText(TextKind.TEXT, "")


@dataclass(frozen=True, slots=True)
class EntryPerson:
    """An author or contributor; any part may be empty, not all of them. `more`: the element holds other data too."""

    name: str = ""
    email: str = ""
    uri: str = ""
    more: bool = False

    @property
    def label(self) -> str:
        """The name to show for the person."""
        return self.name or self.email or self.uri


@dataclass(frozen=True, slots=True)
class EntryLink:
    """An atom:link; `rel` without the address of the IANA registry, `length` in bytes. `more`: the element holds other
    data too (a language, a count of replies, elements)."""

    rel: str
    href: str
    type: str = ""
    title: str = ""
    length: int | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Category:
    """An atom:category; `term` is never empty. `more`: the element holds other data too."""

    term: str
    scheme: str = ""
    label: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class EntrySource:
    """The feed that an entry was copied from: its title and its own or its page's address."""

    title: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class ReplyReference:
    """The entry that an entry answers (RFC 4685): the atom:id of the other entry, and an address of it."""

    ref: str = ""
    href: str = ""


@dataclass(slots=True)
class Entry:
    """The content of an item.

    `published_us` and `updated_us` are the dates of the entry, `published_text` the publisher's text of a date that was
    rewritten. `created_us` and `modified_us` are the ordering keys of the item. `content_link` is the address of
    content that is elsewhere. `content_type` is the media type of content that is neither text, HTML nor XHTML: XML of
    such a type is in `content` as text, anything else is left out.
    `extensions` are the canonical bytes of elements that are not Atom's and in no other field; of a payload that is
    not Atom at all, the payload. `left` marks a deleted item that has only left the view (`core.model.Item`).
    `unread` are the names of attributes and of Atom elements that no field represents. `typed`: the entry states its
    `object_type`. `unsafe`: addresses of links or authors were left out, because a reader might run them.
    """

    item_id: str
    atom_id: str
    title: EntryText = NO_TEXT
    summary: EntryText | None = None
    content: EntryText | None = None
    authors: list[EntryPerson] = field(default_factory=list)
    categories: list[Category] = field(default_factory=list)
    links: list[EntryLink] = field(default_factory=list)
    published_us: int | None = None
    published_text: str = ""
    updated_us: int | None = None
    source: EntrySource | None = None
    replies_to: list[ReplyReference] = field(default_factory=list)
    deleted: bool = False
    language: str = ""
    object_type: str = "note"
    extensions: list[bytes] = field(default_factory=list)
    created_us: int = 0
    modified_us: int = 0
    contributors: list[EntryPerson] = field(default_factory=list)
    rights: EntryText | None = None
    content_link: EntryLink | None = None
    content_type: str = ""
    verb: str = "post"
    typed: bool = False
    left: bool = False
    unread: list[str] = field(default_factory=list)
    unsafe: bool = False

    def label(self, characters: int) -> str:
        """Returns the title, cut to a number of characters; without one the beginning of the text, else the id."""
        texts = (text.plain for text in (self.title, self.summary, self.content) if text is not None)
        return cut(next(filter(None, texts), "") or self.item_id, characters)

    @property
    def issued_us(self) -> int:
        """The date of publication, or the time when the item came into the feed if the entry has no date."""
        return self.created_us if self.published_us is None else self.published_us

    @property
    def changed_us(self) -> int:
        """The date of the last change, or the time when it came into the feed if the entry has no date."""
        return self.modified_us if self.updated_us is None else self.updated_us

    @property
    def alternate(self) -> str:
        """The address of the page of this entry, or ""."""
        return next((link.href for link in self.links if link.rel == "alternate"), "")

    @property
    def shown_content(self) -> EntryText | None:
        """The content, or a link to content that is elsewhere, for readers that do not follow `content_link`."""
        return (
            self.content if self.content_link is None else EntryText(TextKind.HTML, link_html(self.content_link.href))
        )

    @property
    def enclosures(self) -> list[EntryLink]:
        """The links to files that belong to the entry."""
        return [link for link in self.links if link.rel == "enclosure"]

    @property
    def picture(self) -> str:
        """The address of a picture that stands for the entry, or ""."""
        return next((link.href for link in self.links if link.rel == PREVIEW), "")

    @property
    def has_own_id(self) -> bool:
        """Whether the atom:id came with the entry and was not made of the item id (SF-092)."""
        return not self.atom_id.startswith(atom.DERIVED)


def link_html(address: str) -> str:
    """Returns a link in HTML that shows its address, or "" if a browser may run the address."""
    text = attribute(harmless(address))
    return f'<a href="{text}">{text}</a>' if text else ""


def read_entry(item: Item) -> Entry:
    """Returns the content of an item. Without an Atom entry as payload it contains the data of the item only."""
    entry = Entry(
        item.id,
        atom.derived_id(item.id),
        deleted=item.deleted,
        left=item.left,
        created_us=item.created_us,
        modified_us=item.modified_us,
    )
    if item.payload:
        try:
            root = payload_of(item.payload).root
        except FeedError:
            return entry
        if root.tag in (atom.ENTRY, atom.FEED):
            _EntryReader(root, entry).read()
        else:
            entry.extensions.append(item.payload)
    return entry


def enclosures_of(payload: bytes) -> list[EntryLink]:
    """Returns the enclosures of a stored payload. Nothing else of it is read."""
    if b"enclosure" not in payload:
        return []
    reader = _EntryReader(payload_of(payload).root, Entry("", ""))
    for node in reader.root.iterchildren(atom.LINK):
        reader.link(node)
    return reader.entry.enclosures


def replies_of(payload: bytes) -> list[ReplyReference]:
    """Returns the entries that a stored payload answers. Nothing else of it is read."""
    if atom.REPLY_MARK not in payload:
        return []
    reader = _EntryReader(payload_of(payload).root, Entry("", ""))
    for node in reader.root.iterchildren(atom.IN_REPLY_TO):
        reader.reply(node)
    return reader.entry.replies_to


def link_of(root: Element, node: Element) -> EntryLink | None:
    """Returns a link of an entry with its absolute address, or None for a link without an address or an unsafe one."""
    reader = _EntryReader(root, Entry("", ""))
    reader.link(node)
    return next(iter(reader.entry.links), None)


class _EntryReader:
    """Fills an entry in one pass over the children of its element."""

    def __init__(self, root: Element, entry: Entry) -> None:
        self.root = root
        self.entry = entry
        self.base = rebase("", root.get(XML_BASE))
        self.texts: dict[str, EntryText] = {}
        self.times: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.source_authors: list[EntryPerson] = []

    def read(self) -> None:
        entry = self.entry
        entry.language = self.root.get(XML_LANG, "")
        entry.unread += _others(self.root, _COMMON)
        for child in self.root:
            step = _STEPS.get(child.tag)
            if step is not None:
                step(self, child)
            elif child.tag.startswith(_A):
                entry.unread.append(child.tag.removeprefix(_A))
            else:
                self.extension(child)
        entry.atom_id = self.names.get(atom.ID, entry.atom_id)
        entry.title = self.texts.get(atom.TITLE, NO_TEXT)
        entry.summary = self.texts.get(atom.SUMMARY) or self.texts.get(atom.SUBTITLE)
        entry.content = self.texts.get(atom.CONTENT)
        entry.rights = self.texts.get(_RIGHTS)
        entry.published_us = self.times.get(atom.PUBLISHED)
        entry.updated_us = self.times.get(atom.UPDATED)
        # RFC 4287 4.2.1: an entry without authors has those of its source.
        entry.authors = entry.authors or self.source_authors
        entry.verb = self.names.get(_VERB, entry.verb)
        entry.typed = _OBJECT_TYPE in self.names
        guess = "comment" if entry.replies_to else "article" if entry.title.value.strip() else "note"
        entry.object_type = self.names.get(_OBJECT_TYPE, guess)

    def base_of(self, node: Element) -> str:
        return rebase(self.base, node.get(XML_BASE))

    def name(self, node: Element) -> None:
        """The first atom:id, verb and object type count. The latter may be URIs, which stand for their last segment."""
        text = (node.text or "").strip()
        if node.tag != atom.ID:
            text = text.rstrip("/").rpartition("/")[2]
        if text:
            self.names.setdefault(node.tag, text)

    def text(self, node: Element) -> None:
        if node.tag not in self.texts:
            self.entry.unread += _others(node, _TEXT_ATTRIBUTES)
            kind = node.get("type", "text").strip().lower()
            self.texts[node.tag] = read_text(node, kind, self.base_of(node))

    def content(self, node: Element) -> None:
        entry = self.entry
        if atom.CONTENT in self.texts or entry.content_link is not None or entry.content_type:
            return
        entry.unread += _others(node, _TEXT_ATTRIBUTES)
        kind = node.get("type", "text").strip().lower()
        address = node.get("src", "").strip()
        if address:
            # RFC 4287 4.1.3.2: with "src", the type is a media type and none of text, html and xhtml.
            kind = kind if "/" in kind else ""
            entry.content_link = EntryLink("content", resolve_uri(self.base_of(node), address), kind)
        elif kind in TEXT_TYPES:
            self.texts[atom.CONTENT] = read_text(node, TEXT_TYPES[kind], self.base_of(node))
        else:
            entry.content_type = kind
            if kind.endswith(("+xml", "/xml")) and (plain := markup_text(node)):
                self.texts[atom.CONTENT] = EntryText(TextKind.TEXT, plain)
            elif kind.startswith("text/"):
                self.texts[atom.CONTENT] = EntryText(TextKind.TEXT, string_of(node))

    def time(self, node: Element) -> None:
        time_us = parse_datetime((node.text or "").strip())
        if time_us is not None:
            self.times.setdefault(node.tag, time_us)
            if node.tag == atom.PUBLISHED:
                self.entry.published_text = node.get(atom.ORIGINAL_DATE, "")

    def author(self, node: Element) -> None:
        for person in _people(node, self.base_of(node)):
            if person.uri and not harmless(person.uri):
                self.entry.unsafe = True
                person = replace(person, uri="")
            self.entry.authors.append(person)

    def contributor(self, node: Element) -> None:
        self.entry.contributors += _people(node, self.base_of(node))

    def category(self, node: Element) -> None:
        term = node.get("term", "").strip()
        if term:
            scheme, label = node.get("scheme", "").strip(), node.get("label", "").strip()
            self.entry.categories.append(Category(term, scheme, label, has_more(node)))

    def link(self, node: Element) -> None:
        link = _link(node, self.base_of(node))
        if link is None:
            return
        if harmless(link.href):
            self.entry.links.append(link)
        else:
            self.entry.unsafe = True

    def source(self, node: Element) -> None:
        if self.entry.source is not None:
            return
        base = self.base_of(node)
        links = [link for child in node.iterchildren(atom.LINK) if (link := _link(child, base)) is not None]
        links.sort(key=lambda link: link.rel != "self")
        href = next((link.href for link in links if link.rel in ("self", "alternate")), "")
        self.entry.source = EntrySource(atom.text_of(node, atom.TITLE), href)
        for author in node.iterchildren(atom.AUTHOR):
            self.source_authors += _people(author, base)

    def reply(self, node: Element) -> None:
        ref, href = node.get("ref", "").strip(), node.get("href", "").strip()
        if ref or href:
            self.entry.replies_to.append(ReplyReference(ref, resolve_uri(self.base_of(node), href) if href else ""))

    def extension(self, node: Element) -> None:
        # The marks of a tombstone are in `deleted` and `left` of the item.
        if self.entry.deleted and node.tag in (atom.SYNC, atom.LEFT):
            return
        if node.tag == _OBJECT:
            for kind in node.iterchildren(_OBJECT_TYPE):
                self.name(kind)
                break
        self.entry.extensions.append(xml.canonical(node))


_STEPS = {
    **dict.fromkeys((atom.ID, _OBJECT_TYPE, _VERB), _EntryReader.name),
    **dict.fromkeys((atom.TITLE, atom.SUMMARY, atom.SUBTITLE, _RIGHTS), _EntryReader.text),
    **dict.fromkeys((atom.PUBLISHED, atom.UPDATED), _EntryReader.time),
    atom.CONTENT: _EntryReader.content,
    atom.AUTHOR: _EntryReader.author,
    _CONTRIBUTOR: _EntryReader.contributor,
    atom.CATEGORY: _EntryReader.category,
    atom.LINK: _EntryReader.link,
    atom.SOURCE: _EntryReader.source,
    atom.IN_REPLY_TO: _EntryReader.reply,
}
TEXT_TYPES = {
    "": "text",
    "text": "text",
    "text/plain": "text",
    "html": "html",
    "text/html": "html",
    "xhtml": "xhtml",
    "application/xhtml+xml": "xhtml",
}


def _others(node: Element, known: frozenset[str]) -> list[str]:
    """The attributes of an element that are not among the known ones."""
    return [str(name) for name in node.attrib if name not in known]


def has_more(node: Element) -> bool:
    """Whether an author, contributor, link or category holds more than its value says."""
    attributes, children = _KNOWN.get(node.tag, (_COMMON, _PERSON))
    return bool(_others(node, attributes)) or any(child.tag not in children for child in node)


def read_text(node: Element, kind: str, base: str) -> EntryText:
    """Returns a text construct of one of the kinds in TEXT_TYPES. Its references are relative to `base`."""
    language = node.get(XML_LANG, "")
    if kind == "xhtml":
        return EntryText(TextKind.XHTML, inner_html(node, base), language)
    text = string_of(node) if len(node) else node.text or ""
    if kind in ("html", "text/html"):
        return EntryText(TextKind.HTML, absolute_html(text, base), language)
    return EntryText(TextKind.TEXT, text, language)


def _people(node: Element, base: str) -> list[EntryPerson]:
    """The person of a person construct (RFC 4287 3.2); none if the construct has no name, address or URI."""
    parts = {_NAME: "", _EMAIL: "", atom.URI: ""}
    for child in node:
        if parts.get(child.tag) == "":
            parts[child.tag] = squeeze(child.text or "")
    name, email, uri = parts.values()
    if not (name or email or uri):
        return []
    return [EntryPerson(name, email, resolve_uri(base, uri) if uri else "", has_more(node))]


def _link(node: Element, base: str) -> EntryLink | None:
    href = node.get("href", "").strip()
    if not href:
        return None
    length = node.get("length", "").strip()
    is_length = length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS
    return EntryLink(
        rel=node.get("rel", "").strip().removeprefix(IANA_RELATIONS) or "alternate",
        href=resolve_uri(base, href),
        type=node.get("type", "").strip(),
        title=node.get("title", ""),
        length=int(length) if is_length else None,
        more=has_more(node),
    )
