"""RSS 0.9x, 1.0 and 2.0 items as Atom entries (RSS-001 to RSS-014, RSS-031; A-122 to A-128).

The guid identifies an item, or else its link. pubDate is the date of publication and of the last change. description is
the content, or the summary if the item has content:encoded too. enclosure, category, source, comments and authors
become the Atom elements of the same meaning. All other elements stay in the entry unchanged.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lxml import etree

from smartfeeds.core.text import is_language_range
from smartfeeds.formats import atom
from smartfeeds.formats.additions import FANOUT_ID
from smartfeeds.formats.atom import ATOM_NS, string_of
from smartfeeds.formats.balancing import with_known_tags
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.feed_document import FeedDraft, ItemDraft, SkippedItem, each
from smartfeeds.formats.growth import check_scope
from smartfeeds.formats.links import is_uri, rebase, resolve
from smartfeeds.formats.modules import complete_from_modules, is_whole_text
from smartfeeds.formats.namespaces import RDF_NS
from smartfeeds.formats.paging import paging_of
from smartfeeds.formats.plain import LOOKS_LIKE_HTML, html_text, squeeze
from smartfeeds.formats.rss_channel import first_text, read_channel, rss_children, rss_name
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element, canonical, language_of, parse_stored

CONTENT_NS = "http://purl.org/rss/1.0/modules/content/"
CONTENT_ENCODED = f"{{{CONTENT_NS}}}encoded"
DC = "{http://purl.org/dc/elements/1.1/}"
DC_CREATOR = f"{DC}creator"
DC_DATE = f"{DC}date"
DC_SUBJECT = f"{DC}subject"
DCTERMS = "{http://purl.org/dc/terms/}"
DCTERMS_MODIFIED = f"{DCTERMS}modified"
# Where feeds have the date of an item without pubDate and dc:date.
_OTHER_DATES = (f"{DCTERMS}issued", f"{DCTERMS}created", f"{DCTERMS}date", "published", "date", "updated")
_ATOM_SINGLES = frozenset({atom.ID, atom.TITLE, atom.UPDATED, atom.PUBLISHED, atom.SUMMARY, atom.CONTENT, atom.SOURCE})

# Where the page of a channel may be; an export of a node without HTTP names the node.
PAGES = ("http://", "https://", "xmpp:")
_MAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+")
_TWO_PARTS = re.compile(r"([^()]*)\(([^()]*)\)|([^<>]*)<([^<>]*)>")


class RssScope(NamedTuple):
    """The base address and the language that items inherit."""

    base: str
    language: str


def is_rss(root: Element) -> bool:
    """Whether a document with this root is RSS; some feeds lack the root element."""
    return root.tag == f"{{{RDF_NS}}}RDF" or rss_name(root) in ("rss", "channel")


def read_rss(root: Element, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head and the items of a document for whose root `is_rss` is true."""
    channel = root if rss_name(root) == "channel" else next(iter(rss_children(root, "channel")), None)
    is_rdf = root.tag.startswith(f"{{{RDF_NS}}}")
    version = "1.0" if is_rdf else squeeze(root.get("version", ""))[:10]
    head = FeedDraft(f"RSS {version}".strip())
    outer = inner = RssScope(rebase(base, root.get(XML_BASE)), language_of(root))
    if channel is root:
        head.warnings.append("the root element rss is missing")
    if channel is None:
        head.warnings.append("there is no channel")
    else:
        check_scope(channel)
        inner = RssScope(rebase(outer.base, channel.get(XML_BASE)), language_of(channel) or outer.language)
        _read_channel(channel, head, inner.base)
        head.channel = read_channel(channel, head.warnings)
        head.paging = paging_of(channel, base)
        language = head.channel.language if is_language_range(head.channel.language) else ""
        outer, inner = (RssScope(scope.base, scope.language or language) for scope in (outer, inner))
    nodes = [] if channel is None else rss_children(channel, "item")
    outside = rss_children(root, "item") if channel is not root else []
    # RSS 1.0 has its items beside the channel (5.1), the other versions in it.
    if outside and not is_rdf:
        head.warnings.append("there are items outside the channel; they were read all the same")
    scoped = [*((node, inner) for node in nodes), *((node, outer) for node in outside)]
    return head, each(_item, scoped)


def read_rss_item(item: Element, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """Returns the result of `read_rss` for an item without a channel around it."""
    return FeedDraft("RSS"), each(_item, [(item, RssScope(base, ""))])


def _read_channel(channel: Element, head: FeedDraft, base: str) -> None:
    """Reads the required elements title, link and description; a missing one is tolerated with a warning (RSS-003)."""
    for name in ("title", "link", "description"):
        text = "".join(map(string_of, rss_children(channel, name)[:1]))
        if not text.strip():
            head.warnings.append(f"the channel has no {name}")
        elif name == "title":
            head.title = html_text(text) if LOOKS_LIKE_HTML.search(text) else squeeze(text)
        elif name == "link":
            head.link = resolve(base, text)
            if not head.link.lower().startswith(PAGES):
                head.link = ""
                head.warnings.append(
                    f"the link of the channel is no web address and was left out: {squeeze(text)[:40]}"
                )
        else:
            head.description = html_text(text)


class _Item(EntryBuilder):
    """One RSS item on its way to an atom:entry."""

    def __init__(self, node: Element, index: int, scope: RssScope) -> None:
        super().__init__(index, rebase(scope.base, node.get(XML_BASE)))
        self.node = node
        self.add_language(node.get(XML_LANG, scope.language))
        self.parts: dict[str, list[Element]] = {}
        for child in node.iterchildren(etree.Element):
            self.parts.setdefault(rss_name(child) or child.tag, []).append(child)
        self._links = {
            (link.get("rel", "alternate"), self.resolve(link.get("href", ""))) for link in self.parts.get(atom.LINK, ())
        }

    def has_link(self, rel: str, address: str) -> bool:
        """Whether the item has this link as an atom:link too, which has more attributes."""
        return (rel, self.resolve(address)) in self._links

    def take(self, name: str) -> list[Element]:
        """Removes and returns the children of a name; the children that stay are copied to the entry."""
        return self.parts.pop(name, [])

    def text(self, name: str) -> str:
        """The text of the first child of a name that has any."""
        return first_text(self.take(name))


def _item(scoped: tuple[Element, RssScope], index: int) -> ItemDraft | SkippedItem:
    node, scope = scoped
    if not len(node) and not string_of(node).strip():
        return SkippedItem(index, "the item is empty")
    item = _Item(node, index, scope)
    for step in _STEPS:
        step(item)
    draft = item.draft
    # An entry has at most one of each of these elements, and the steps may have made it already.
    present = _ATOM_SINGLES & {child.tag for child in item.entry}
    rest = [child for children in item.parts.values() for child in children if child.tag not in present]
    if rest:
        draft.entry = _with(item, rest)
        complete_from_modules(draft.entry)
    draft.deleted = atom.is_deletion(draft.entry, atom.SYNCS)
    return draft


def _identity(item: _Item) -> None:
    """The item id is fo:id, guid, Atom id, sync id, rdf:about or link. The atom:id of the payload must be a URI; if no
    candidate is a URI, the entry has no atom:id, and a node derives one that includes service and node.

    Beside a guid, an atom:id is the payload's, because other entries refer to it. A sync id is the same in all
    documents that share an item (FS-025), a link need not be.
    """
    guids = item.take("guid")
    guid = first_text(guids)
    atom_id = item.text(atom.ID)
    link = item.text("link")
    # RSS 2.0, "guid": isPermaLink is true by default, and a permalink is the address of the item's page.
    permanent = any(node.get("isPermaLink", "true").strip().lower() != "false" for node in guids)
    if not link and permanent and guid.lower().startswith(("http://", "https://")):
        link = guid
    sync_id = next((text for node in item.node.iterchildren(*atom.SYNCS) if (text := node.get("id", "").strip())), "")
    about = item.node.get(f"{{{RDF_NS}}}about", "").strip()
    # Of several fo:id the last is the document's: the writer puts it behind those of the stored entry.
    fanout_id = next((node.text for node in reversed(item.take(FANOUT_ID))), "")
    given_id = fanout_id or guid or atom_id or sync_id or about
    item.draft.item_id, item.draft.by_link = given_id or link, not given_id and bool(link)
    uri = next((text for text in (atom_id, guid, item.draft.item_id) if is_uri(text)), "")
    if uri:
        item.add(atom.ID, uri)
    if link and not item.has_link("alternate", link):
        item.add_link("alternate", link)


def _title(item: _Item) -> None:
    language = next((node.get(XML_LANG, "") for node in item.parts.get("title", ())), "")
    text = item.text("title")
    if text or atom.TITLE not in item.parts:
        is_html = LOOKS_LIKE_HTML.search(text) is not None
        title = item.add(atom.TITLE, with_known_tags(text) if is_html else text, type="html" if is_html else "")
        if language:
            title.set(XML_LANG, language)


def _dates(item: _Item) -> None:
    published_us = _date(item, "pubdate", DC_DATE, atom.PUBLISHED)
    if published_us is None:
        # These stay in the entry, where they may mean something else beside another date.
        texts = [string_of(node).strip() for name in _OTHER_DATES for node in item.parts.get(name, ())]
        published_us = next((time_us for text in texts if (time_us := item.date(text)) is not None), None)
    item.add_times(published_us, _date(item, DCTERMS_MODIFIED, atom.UPDATED))


def _date(item: _Item, *names: str) -> int | None:
    """The first readable date of the children with these names."""
    texts = [text for name in names for node in item.take(name) if (text := string_of(node).strip())]
    return item.date(next((text for text in texts if parse_date(text) is not None), "".join(texts[:1])))


def _authors(item: _Item) -> None:
    # An atom:author says more of the same person.
    names = {squeeze(part.text or "").casefold() for node in item.parts.get(atom.AUTHOR, ()) for part in node}
    for node in (*item.take("author"), *item.take(DC_CREATOR)):
        name, email = name_and_mail(squeeze(string_of(node)))
        if (name or email).casefold() not in names:
            names.add((name or email).casefold())
            item.add_person(name, email and f"mailto:{email}")


def name_and_mail(text: str) -> tuple[str, str]:
    """The name and the mail address of an author: RSS has `mail (name)`, mail programs have `name <mail>`, and feeds
    have `name (mail)` too."""
    match = _TWO_PARTS.fullmatch(text)
    parts = [part.strip() for part in match.groups() if part is not None] if match is not None else [text]
    email = next(filter(is_mail, parts), "")
    rest = [part for part in parts if part != email]
    return (rest[0] if rest else "", email) if email else (text, "")


def is_mail(text: str) -> bool:
    """Whether the text is a bare mail address."""
    return _MAIL.fullmatch(text) is not None


def _categories(item: _Item) -> None:
    """Adds the categories: the value as it is, the domain as scheme (RSS-013, RSS-014)."""
    atom_categories = {(node.get("term", ""), node.get("scheme", "")) for node in item.parts.get(atom.CATEGORY, ())}
    for node in (*item.take("category"), *item.take(DC_SUBJECT)):
        term, scheme = squeeze(string_of(node)), node.get("domain", "").strip()
        if not term:
            item.warn("an empty category was left out")
        elif (term, scheme) not in atom_categories:
            item.add_category(term, scheme)


def _enclosures(item: _Item) -> None:
    """Adds the enclosures: any number of them, of any scheme; an invalid length is unknown (RSS-010 to RSS-012, A-126
    to A-128)."""
    for node in item.take("enclosure"):
        address = node.get("url", "").strip() or node.get(f"{{{RDF_NS}}}resource", "").strip()
        if not address:
            item.warn("an enclosure without url was left out")
            continue
        if item.has_link("enclosure", address):
            continue
        length = node.get("length", "").strip()
        if not re.fullmatch(r"[0-9]{1,18}", length) or int(length) == 0:
            item.warn("the length of an enclosure is unknown")
            length = ""
        kind = node.get("type", "").strip()
        if not kind:
            item.warn("the type of an enclosure is unknown")
        item.add(atom.LINK, rel="enclosure", href=item.resolve(address), type=kind, length=length)


def _source(item: _Item) -> None:
    """Adds the channel that an item came from; nothing without its url (RSS-007, RSS-009). An atom:source has more of
    it."""
    for node in item.take("source")[: 0 if atom.SOURCE in item.parts else None]:
        address = node.get("url", "").strip()
        if address:
            item.add_source(string_of(node).strip(), address)
            return
        item.warn("a source without url was left out")


def _comments(item: _Item) -> None:
    text = item.text("comments")
    if text and not item.has_link("replies", text):
        item.add_link("replies", text, "text/html")


def _bodies(item: _Item) -> None:
    """Adds description and content: both are HTML, decoded once (A-125). If the item has an atom:content too, its
    description is the summary."""
    descriptions, contents = (
        [node for node in item.take(name) if len(node) or string_of(node).strip()]
        for name in ("description", CONTENT_ENCODED)
    )
    if descriptions and contents and _BLANK.fullmatch(_html_of(contents[0])) is not None:
        contents = []
    bodies = [(atom.CONTENT, node) for node in contents[:1]]
    is_summary = contents or atom.CONTENT in item.parts or any(is_whole_text(nodes[0]) for nodes in item.parts.values())
    tag = atom.SUMMARY if is_summary else atom.CONTENT
    for tag, node in (*bodies, *((tag, node) for node in descriptions[:1])):
        body = item.add(tag, _html_of(node), type="html")
        if node.get(XML_BASE):
            body.set(XML_BASE, rebase(item.base, node.get(XML_BASE)))
        if node.get(XML_LANG):
            body.set(XML_LANG, node.get(XML_LANG, ""))
    if len(descriptions) > 1 or len(contents) > 1:
        item.warn("only the first of several descriptions was kept")


# HTML in which a reader sees nothing: some programs fill an empty field with it.
_BLANK = re.compile(r"(?:\s++|&nbsp;|&#160;|</?(?:div|p|span|br|section|article)\b[^<>]*>|<!--[^<>]*-->)*")


def _html_of(node: Element) -> str:
    """The text of an element. Child elements become markup: some feeds do not escape their HTML (RSS 2.0 requires
    it)."""
    return (node.text or "") + "".join(etree.tostring(child, encoding="unicode") for child in node)


def _with(item: _Item, children: list[Element]) -> Element:
    """The entry with children that have no counterpart in Atom, or are Atom's own.

    They are joined as bytes, because elements that move to another tree get other namespace prefixes.
    """
    for child in children:
        if child.tag == atom.LINK and child.get("href"):
            child.set("href", item.resolve(child.get("href", "")))
    return parse_stored(atom.with_child(canonical(item.entry), b"".join(map(_unprefixed, children))))


def _unprefixed(child: Element) -> bytes:
    """The canonical bytes of a child. An Atom element loses its prefix and gets the default namespace of the entry,
    because parsers that ignore namespaces find Atom elements by their bare names."""
    data = canonical(child)
    prefix = (child.prefix or "").encode()
    start = b'<%b:%b xmlns:%b="%b"' % (prefix, child.tag.rpartition("}")[2].encode(), prefix, ATOM_NS.encode())
    if not prefix or not data.startswith(start):
        return data
    name, declaration = start[1:].split(b" ")
    use = prefix + b":"
    rest = data[len(start) : -len(name) - 3]  # without the end tag
    if b' xmlns="' not in rest and b" " + use not in rest and b" xmlns:" + prefix not in rest:
        rest = rest.replace(b"<" + use, b"<").replace(b"</" + use, b"</")
    inner_declaration = b" " + declaration if use in rest else b""
    local = name.removeprefix(use)
    return b'<%b xmlns="%b"%b%b</%b>' % (local, ATOM_NS.encode(), inner_declaration, rest, local)


# In the order of the elements in the entry. Another order would change the bytes of every item that is read again.
_STEPS: tuple[Callable[[_Item], None], ...] = (
    _identity,
    _title,
    _dates,
    _authors,
    _enclosures,
    _comments,
    _categories,
    _source,
    _bodies,
)
