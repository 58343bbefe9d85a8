"""A stored payload as values: what writers of other formats and pages make of an item (RFC 4287, RFC 4685, A-35).

Nothing here changes a payload. What an Atom entry may say twice is taken the first time; what a reader of an entry
could not use (a date that is none, a link without address) is left out. Relative references are resolved by xml:base,
those inside of HTML too.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum

from smartfeeds.core.model import Item
from smartfeeds.core.text import escape
from smartfeeds.core.times import parse_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom import ATOM_NS, string_of
from smartfeeds.formats.html_links import absolute_html
from smartfeeds.formats.links import rebase, resolve
from smartfeeds.formats.payload import payload_of
from smartfeeds.formats.plain import html_text, markup_text, squeeze
from smartfeeds.formats.xhtml import inner_html
from smartfeeds.formats.xml import XML_BASE, XML_LANG, XML_SPACE, Element

ACTIVITY_NS = "http://activitystrea.ms/spec/1.0/"

_A = f"{{{ATOM_NS}}}"
_NAME, _EMAIL, _URI = f"{_A}name", f"{_A}email", f"{_A}uri"
_CONTRIBUTOR, _RIGHTS = f"{_A}contributor", f"{_A}rights"
_OBJECT_TYPE, _VERB, _OBJECT = (f"{{{ACTIVITY_NS}}}{name}" for name in ("object-type", "verb", "object"))
_COMMON = frozenset({XML_BASE, XML_LANG, XML_SPACE})
_TEXT_ATTRIBUTES = _COMMON | {"type", "src"}
_PERSON = frozenset({_NAME, _EMAIL, _URI})
# Of elements other than persons: the attributes and children that their values have.
_KNOWN: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    atom.LINK: (_COMMON | {"rel", "href", "type", "title", "length"}, frozenset()),
    atom.CATEGORY: (_COMMON | {"term", "scheme", "label"}, frozenset()),
}
_LINE_END = re.compile(r"\r\n?|\n")
_IANA = "http://www.iana.org/assignments/relation/"
_LENGTH_DIGITS = 18


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
        """As HTML, the lines of plain text apart. It is as harmless as its author made it: who shows it cleans it."""
        return _LINE_END.sub("<br/>\n", escape(self.value.strip())) if self.kind is TextKind.TEXT else self.value

    @property
    def plain(self) -> str:
        """On one line, without markup."""
        return squeeze(self.value) if self.kind is TextKind.TEXT else html_text(self.value)

    @property
    def is_markup(self) -> bool:
        """Whether `value` is markup and not text."""
        return self.kind is not TextKind.TEXT


NO_TEXT = EntryText(TextKind.TEXT, "")


@dataclass(frozen=True, slots=True)
class Person:
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


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of an item.

    `published_us` and `updated_us` are what the entry itself says; `created_us` and `modified_us` the ordering keys
    of the item. `content_link` stands for content that is elsewhere. `content_type` is the media type of content that
    is neither text, HTML nor XHTML: XML of it is given as text, anything else is left out. `extensions` are the
    elements that are not Atom's and not read into other fields, as canonical bytes; of a payload that is no Atom at
    all, the payload. `left` says of a deleted item that it has only left the view (`core.model.Item`). `unread` are
    the names of attributes and of Atom's elements that no field has. `unsafe`: addresses of links or authors
    were left out, because a reader might run them.
    """

    item_id: str
    atom_id: str
    title: EntryText = NO_TEXT
    summary: EntryText | None = None
    content: EntryText | None = None
    authors: tuple[Person, ...] = ()
    categories: tuple[Category, ...] = ()
    links: tuple[EntryLink, ...] = ()
    published_us: int | None = None
    updated_us: int | None = None
    source: EntrySource | None = None
    replies_to: tuple[ReplyReference, ...] = ()
    deleted: bool = False
    language: str = ""
    object_type: str = "note"
    extensions: tuple[bytes, ...] = ()
    created_us: int = 0
    modified_us: int = 0
    contributors: tuple[Person, ...] = ()
    rights: EntryText | None = None
    content_link: EntryLink | None = None
    content_type: str = ""
    verb: str = "post"
    typed: bool = False
    left: bool = False
    unread: tuple[str, ...] = ()
    unsafe: bool = False

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
    def enclosures(self) -> tuple[EntryLink, ...]:
        """The links to files that belong to the entry."""
        return tuple(link for link in self.links if link.rel == "enclosure")

    @property
    def has_own_id(self) -> bool:
        """Whether the atom:id came with the entry and was not made of the item id (SF-092)."""
        return not self.atom_id.startswith("urn:x-smartfeeds:")


def read_entry(item: Item) -> Entry:
    """Returns the content of an item. Without an Atom entry as payload it contains the data of the item only."""
    payload = item.payload
    if payload:
        try:
            root = payload_of(payload).root
        except FeedError:
            return _bare(item, ())
        if root.tag in (atom.ENTRY, atom.FEED):
            return _Reader(root).entry(item)
    return _bare(item, (payload,) if payload else ())


def _bare(item: Item, extensions: tuple[bytes, ...]) -> Entry:
    return Entry(
        item_id=item.id,
        atom_id=atom.derived_id(item.id),
        deleted=item.deleted,
        left=item.left,
        extensions=extensions,
        created_us=item.created_us,
        modified_us=item.modified_us,
    )


class _Reader:
    """One pass over the children of an entry."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.base = rebase("", root.get(XML_BASE))
        self.atom_id = ""
        self.texts: dict[str, EntryText] = {}
        self.times: dict[str, int] = {}
        self.authors: list[Person] = []
        self.contributors: list[Person] = []
        self.categories: list[Category] = []
        self.links: list[EntryLink] = []
        self.replies_to: list[ReplyReference] = []
        self.source: EntrySource | None = None
        self.source_authors: list[Person] = []
        self.content_link: EntryLink | None = None
        self.content_type = ""
        self.object_type = ""
        self.verb = ""
        self.extensions: list[bytes] = []
        self.unread = _others(root, _COMMON)
        self.unsafe = False

    def entry(self, item: Item) -> Entry:
        for child in self.root:
            tag = child.tag
            step = _STEPS.get(tag)
            if step is not None:
                step(self, child)
            elif tag.startswith(_A):
                self.unread.append(tag.removeprefix(_A))
            else:
                self.extension(child, item.deleted)
        title = self.texts.get(atom.TITLE, NO_TEXT)
        guess = "comment" if self.replies_to else "article" if title.value.strip() else "note"
        return Entry(
            item_id=item.id,
            atom_id=self.atom_id or atom.derived_id(item.id),
            title=title,
            summary=self.texts.get(atom.SUMMARY) or self.texts.get(atom.SUBTITLE),
            content=self.texts.get(atom.CONTENT),
            authors=tuple(self.authors or self.source_authors),
            categories=tuple(self.categories),
            links=tuple(self.links),
            published_us=self.times.get(atom.PUBLISHED),
            updated_us=self.times.get(atom.UPDATED),
            source=self.source,
            replies_to=tuple(self.replies_to),
            deleted=item.deleted,
            language=self.root.get(XML_LANG, ""),
            object_type=self.object_type or guess,
            extensions=tuple(self.extensions),
            created_us=item.created_us,
            modified_us=item.modified_us,
            contributors=tuple(self.contributors),
            rights=self.texts.get(_RIGHTS),
            content_link=self.content_link,
            content_type=self.content_type,
            verb=self.verb or "post",
            typed=bool(self.object_type),
            left=item.left,
            unread=tuple(self.unread),
            unsafe=self.unsafe,
        )

    def base_of(self, node: Element) -> str:
        return rebase(self.base, node.get(XML_BASE))

    def id(self, node: Element) -> None:
        self.atom_id = self.atom_id or (node.text or "").strip()

    def text(self, node: Element) -> None:
        if node.tag not in self.texts:
            self.unread += _others(node, _TEXT_ATTRIBUTES)
            kind = node.get("type", "text").strip().lower()
            self.texts[node.tag] = _text(node, kind, self.base_of(node))

    def content(self, node: Element) -> None:
        if atom.CONTENT in self.texts or self.content_link is not None or self.content_type:
            return
        self.unread += _others(node, _TEXT_ATTRIBUTES)
        kind = node.get("type", "text").strip().lower()
        address = node.get("src", "").strip()
        if address:
            kind = kind if "/" in kind else ""
            self.content_link = EntryLink("content", resolve(self.base_of(node), address), kind)
        elif kind in _TEXT_TYPES:
            self.texts[atom.CONTENT] = _text(node, _TEXT_TYPES[kind], self.base_of(node))
        else:
            self.content_type = kind
            if kind.endswith(("+xml", "/xml")) and (plain := markup_text(node)):
                self.texts[atom.CONTENT] = EntryText(TextKind.TEXT, plain)
            elif kind.startswith("text/"):
                self.texts[atom.CONTENT] = EntryText(TextKind.TEXT, string_of(node))

    def time(self, node: Element) -> None:
        if node.tag not in self.times:
            time_us = parse_datetime((node.text or "").strip())
            if time_us is not None:
                self.times[node.tag] = time_us

    def author(self, node: Element) -> None:
        _add_person(node, self.base_of(node), self.authors)
        person = self.authors[-1] if self.authors else None
        if person is not None and person.uri and not harmless(person.uri):
            self.unsafe = True
            self.authors[-1] = replace(person, uri="")

    def contributor(self, node: Element) -> None:
        _add_person(node, self.base_of(node), self.contributors)

    def category(self, node: Element) -> None:
        term = node.get("term", "").strip()
        if term:
            scheme, label = node.get("scheme", "").strip(), node.get("label", "").strip()
            self.categories.append(Category(term, scheme, label, has_more(node)))

    def link(self, node: Element) -> None:
        link = _link(node, self.base_of(node))
        if link is not None and harmless(link.href):
            self.links.append(link)
        else:
            self.unsafe = self.unsafe or link is not None

    def of_source(self, node: Element) -> None:
        if self.source is not None:
            return
        base = self.base_of(node)
        links = [link for child in node.iterchildren(atom.LINK) if (link := _link(child, base)) is not None]
        links.sort(key=lambda link: link.rel != "self")
        href = next((link.href for link in links if link.rel in ("self", "alternate")), "")
        self.source = EntrySource(atom.text_of(node, atom.TITLE), href)
        for author in node.iterchildren(atom.AUTHOR):
            _add_person(author, base, self.source_authors)

    def reply(self, node: Element) -> None:
        ref, href = node.get("ref", "").strip(), node.get("href", "").strip()
        if ref or href:
            self.replies_to.append(ReplyReference(ref, resolve(self.base_of(node), href) if href else ""))

    def activity_type(self, node: Element) -> None:
        self.object_type = self.object_type or _last_segment(node)

    def activity_verb(self, node: Element) -> None:
        self.verb = self.verb or _last_segment(node)

    def extension(self, node: Element, deleted: bool) -> None:
        if deleted and node.tag in (atom.SYNC, atom.LEFT):
            return
        if node.tag == _OBJECT and not self.object_type:
            kind = next(node.iterchildren(_OBJECT_TYPE), None)
            self.object_type = "" if kind is None else _last_segment(kind)
        self.extensions.append(xml.canonical(node))


_STEPS = {
    atom.ID: _Reader.id,
    atom.TITLE: _Reader.text,
    atom.SUMMARY: _Reader.text,
    atom.SUBTITLE: _Reader.text,
    _RIGHTS: _Reader.text,
    atom.CONTENT: _Reader.content,
    atom.PUBLISHED: _Reader.time,
    atom.UPDATED: _Reader.time,
    atom.AUTHOR: _Reader.author,
    _CONTRIBUTOR: _Reader.contributor,
    atom.CATEGORY: _Reader.category,
    atom.LINK: _Reader.link,
    atom.SOURCE: _Reader.of_source,
    atom.IN_REPLY_TO: _Reader.reply,
    _OBJECT_TYPE: _Reader.activity_type,
    _VERB: _Reader.activity_verb,
}
_TEXT_TYPES = {
    "": "text",
    "text": "text",
    "text/plain": "text",
    "html": "html",
    "text/html": "html",
    "xhtml": "xhtml",
    "application/xhtml+xml": "xhtml",
}


def _last_segment(node: Element) -> str:
    return (node.text or "").strip().rstrip("/").rpartition("/")[2]


def _others(node: Element, known: frozenset[str]) -> list[str]:
    """The attributes of an element that are not among the known ones."""
    return [str(name) for name in node.attrib if name not in known]


def has_more(node: Element) -> bool:
    """Whether an author, contributor, link or category holds more than its value says."""
    attributes, children = _KNOWN.get(node.tag, (_COMMON, _PERSON))
    return bool(_others(node, attributes)) or any(child.tag not in children for child in node)


def _text(node: Element, kind: str, base: str) -> EntryText:
    language = node.get(XML_LANG, "")
    if kind == "xhtml":
        return EntryText(TextKind.XHTML, inner_html(node, base), language)
    text = string_of(node) if len(node) else node.text or ""
    if kind in ("html", "text/html"):
        return EntryText(TextKind.HTML, absolute_html(text, base), language)
    return EntryText(TextKind.TEXT, text, language)


def _add_person(node: Element, base: str, people: list[Person]) -> None:
    parts = {_NAME: "", _EMAIL: "", _URI: ""}
    for child in node:
        if parts.get(child.tag) == "":
            parts[child.tag] = squeeze(child.text or "")
    name, email, uri = parts.values()
    if name or email or uri:
        people.append(Person(name, email, resolve(base, uri) if uri else "", has_more(node)))


def _link(node: Element, base: str) -> EntryLink | None:
    href = node.get("href", "").strip()
    if not href:
        return None
    length = node.get("length", "").strip()
    known = length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS
    return EntryLink(
        rel=node.get("rel", "").strip().removeprefix(_IANA) or "alternate",
        href=resolve(base, href),
        type=node.get("type", "").strip(),
        title=node.get("title", ""),
        length=int(length) if known else None,
        more=has_more(node),
    )
