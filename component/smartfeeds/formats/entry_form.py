"""Entries that people write in a form: the fields of an entry, and an entry with other fields (RFC 4287, RFC 4685).

An edit changes only the elements whose field changed. Everything else of the entry stays as it was published.
"""

from dataclasses import dataclass, replace

from lxml import etree

from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import IANA_RELATIONS, Entry, EntryLink, EntryText, ReplyReference, TextKind
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.links import resolve_uri
from smartfeeds.formats.post import add_author, add_file, add_markdown, add_reply, checked_address, complete, split_tags
from smartfeeds.formats.xml import Element, new_element


@dataclass(frozen=True, slots=True)
class WrittenFields:
    """The fields of a form. `kind` is the type of `text`; `link` is the address that the title leads to. `files` are
    the enclosures. `markdown` is the text of which HTML was made."""

    title: str = ""
    text: str = ""
    kind: TextKind = TextKind.TEXT
    link: str = ""
    tags: tuple[str, ...] = ()
    files: tuple[EntryLink, ...] = ()
    markdown: str = ""

    @property
    def content(self) -> EntryText:
        """The text as a text construct."""
        return EntryText(self.kind, self.text)


def fields_of(entry: Entry) -> WrittenFields:
    """The fields of an entry. XHTML becomes HTML."""
    text = entry.content or entry.summary
    return WrittenFields(
        entry.title.plain,
        "" if text is None else text.value,
        TextKind.HTML if text is not None and text.is_markup else TextKind.TEXT,
        entry.alternate,
        tuple(dict.fromkeys(category.term for category in entry.categories)),
        tuple(entry.enclosures),
    )


def new_entry(fields: WrittenFields, author: str, reply_to: ReplyReference | None) -> Element:
    """An entry of a form. `author` is the bare JID of its author, "" to name none; `reply_to` is the entry that it
    answers. Raises FeedError as `edit` does."""
    entry = new_element(atom.ENTRY, {None: ATOM_NS})
    edit(entry, WrittenFields(), fields)
    add_author(entry, author)
    if reply_to is not None:
        add_reply(entry, reply_to)
    return entry


def edit(entry: Element, former: WrittenFields, fields: WrittenFields) -> None:
    """Changes the elements of an entry whose field changed. The service sets the time of the change.

    An entry without a title gets one as a post does. Raises FeedError(BAD_REQUEST) for an empty entry and for an
    address that a browser would run. Reading the title out of hostile HTML takes up to 0.3 s.
    """
    fields = _checked(fields)
    _remove(entry, atom.UPDATED)
    if fields.title != former.title:
        _remove(entry, atom.TITLE)
        etree.SubElement(entry, atom.TITLE).text = fields.title
    if (fields.text, fields.kind) != (_normal(former.text), former.kind):
        _remove(entry, atom.SUMMARY, atom.CONTENT, atom.MARKDOWN)
        if fields.text:
            etree.SubElement(entry, atom.CONTENT, type=fields.kind.value).text = fields.text
            add_markdown(entry, fields.markdown)
    if fields.link != former.link:
        _set_link(entry, fields.link)
    if fields.tags != former.tags:
        _set_tags(entry, fields.tags)
    if fields.files != former.files:
        _set_files(entry, former.files, fields.files)
    complete(entry)


def _set_link(entry: Element, address: str) -> None:
    for link in entry.findall(atom.LINK):
        if link.get("rel", "alternate") == "alternate":
            entry.remove(link)
    if address:
        etree.SubElement(entry, atom.LINK, rel="alternate", href=address)


def _set_tags(entry: Element, tags: tuple[str, ...]) -> None:
    """Replaces the categories. A category that stays keeps its scheme and its label."""
    present = {category.get("term", "").strip(): category for category in entry.findall(atom.CATEGORY)}
    for term, category in present.items():
        if term not in tags:
            entry.remove(category)
    for tag in tags:
        if tag not in present:
            etree.SubElement(entry, atom.CATEGORY, term=tag)


def _set_files(entry: Element, former: tuple[EntryLink, ...], files: tuple[EntryLink, ...]) -> None:
    """Removes and adds enclosures. An enclosure that stays keeps its element."""
    present, addresses = ({file.href for file in each} for each in (former, files))
    for link in entry.findall(atom.LINK):
        rel = link.get("rel", "").strip().removeprefix(IANA_RELATIONS)
        if rel == "enclosure" and resolve_uri(link.base or "", link.get("href", "")) in present - addresses:
            entry.remove(link)
    builder = EntryBuilder(0, "")
    builder.entry = entry
    for file in files:
        if file.href not in present:
            add_file(builder, file, "file")


def _checked(fields: WrittenFields) -> WrittenFields:
    """The fields without characters that XML cannot carry."""
    title, link = " ".join(clean(fields.title).split()), fields.link.strip()
    link = checked_address(link, "link") if link else ""
    tags = split_tags(map(clean, fields.tags))
    return replace(fields, title=title, text=clean(_normal(fields.text)), link=link, tags=tags)


def _normal(text: str) -> str:
    """A text as stored: browsers send their own line ends."""
    return text.replace("\r\n", "\n").strip()


def _remove(entry: Element, *tags: str) -> None:
    for tag in tags:
        for child in entry.findall(tag):
            entry.remove(child)
