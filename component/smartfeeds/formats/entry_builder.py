"""Builds an Atom entry from an item of another format: the common part of the readers of RSS, JSON and OPML."""

from lxml import etree

from smartfeeds.core.text import is_language_range
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.dates import read_date, unread_date
from smartfeeds.formats.feed_document import ItemDraft
from smartfeeds.formats.growth import check_size
from smartfeeds.formats.links import is_uri, resolve
from smartfeeds.formats.xml import XML_BASE, XML_LANG, Element, new_element, parse_stored

_MAILTO = "mailto:"


class EntryBuilder:
    """Builds the atom:entry of one item; relative addresses in the item are relative to `base`."""

    def __init__(self, index: int, base: str) -> None:
        self.base = base
        self.draft = ItemDraft(index, new_element(atom.ENTRY, {None: ATOM_NS}))
        self.entry = self.draft.entry
        self._addresses_bytes = 0
        if base:
            self.entry.set(XML_BASE, base)

    def warn(self, text: str) -> None:
        self.draft.warnings.append(text)

    def resolve(self, reference: str) -> str:
        """An absolute address. Raises FeedError(PAYLOAD_TOO_BIG) where those of the item grow too long by its base."""
        address = resolve(self.base, reference)
        self._addresses_bytes += len(address)
        check_size(self._addresses_bytes)
        return address

    def date(self, text: str) -> int | None:
        """The time that a text means; None where it is empty or cannot be read."""
        text = text.strip()
        time_us, note = read_date(text)
        if text and (note or time_us is None):
            self.warn(note or unread_date(text))
        return time_us

    def add(self, tag: str, text: str = "", **attributes: str) -> Element:
        child = etree.SubElement(self.entry, tag, {key: value for key, value in attributes.items() if value})
        child.text = text or None
        return child

    def add_times(self, published_us: int | None, updated_us: int | None) -> None:
        """The dates; what has only one of them was last changed then."""
        updated_us = published_us if updated_us is None else updated_us
        self.draft.published_us, self.draft.updated_us = published_us, updated_us
        for tag, time_us in ((atom.PUBLISHED, published_us), (atom.UPDATED, updated_us)):
            if time_us is not None:
                self.add(tag, format_datetime(time_us))

    def add_language(self, language: str) -> None:
        if is_language_range(language):
            self.entry.set(XML_LANG, language)

    def add_id(self, atom_id: str, *, given: bool) -> None:
        """The atom:id where it is a URI, or anything else that was one before; the rest is derived later."""
        if atom_id and (given or is_uri(atom_id)):
            self.add(atom.ID, atom_id)

    def add_person(self, name: str, *addresses: str) -> None:
        """An author: the first mailto: address is that of the person's mail, the first other one the uri."""
        name = " ".join(name.split())
        stripped = [address.strip() for address in addresses if address.strip()]
        mail = next((address for address in stripped if address.startswith(_MAILTO)), "").removeprefix(_MAILTO)
        uri = next((address for address in stripped if not address.startswith(_MAILTO)), "")
        if not name and not mail and not uri:
            return
        author = self.add(atom.AUTHOR)
        for tag, text in (("name", name or mail or uri), ("uri", uri and self.resolve(uri)), ("email", mail)):
            if text:
                etree.SubElement(author, f"{{{ATOM_NS}}}{tag}").text = text

    def add_link(self, rel: str, address: str, kind: str = "", title: str = "", length: object = None) -> None:
        size = ""
        # 64 bits can have the number. JSON has lengths as floats, too, and Python takes True for 1.
        if isinstance(length, int | float) and not isinstance(length, bool) and 1 <= length < 10**18:
            size = str(int(length))
        if address.strip():
            self.add(atom.LINK, rel=rel, href=self.resolve(address), type=kind.strip(), title=title, length=size)

    def add_category(self, term: str, scheme: str = "", label: str = "") -> None:
        term = term.strip()
        if term:
            self.add(atom.CATEGORY, term=term, scheme=scheme.strip(), label=label.strip())

    def add_reply(self, reference: str, address: str) -> None:
        if reference or address:
            node = etree.SubElement(self.entry, atom.IN_REPLY_TO, nsmap={"thr": atom.THREAD_NS})
            for name, value in (("ref", reference), ("href", self.resolve(address) if address else "")):
                if value:
                    node.set(name, value)

    def add_source(self, title: str, address: str) -> None:
        if title or address:
            source = self.add(atom.SOURCE)
            address = self.resolve(address) if address else ""
            if is_uri(address):
                etree.SubElement(source, atom.ID).text = address
            etree.SubElement(source, atom.TITLE).text = title or None
            if address:
                etree.SubElement(source, atom.LINK, {"rel": "self", "href": address})

    def delete(self, atom_id: str, updated_us: int | None) -> ItemDraft:
        """The item as a deletion: of all that it says only its id and time are left."""
        text = "" if updated_us is None else format_datetime(updated_us)
        payload = atom.marked(atom_id or atom.derived_id(self.draft.item_id), text, "")
        self.draft.entry = parse_stored(payload)
        self.draft.updated_us, self.draft.deleted = updated_us, True
        return self.draft
