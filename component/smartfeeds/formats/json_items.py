"""Objects of a JSON document to Atom entries: what JSON Feed and ActivityStreams have in common.

Members of the wrong type are left out with a warning. A character that XML cannot carry becomes U+FFFD in texts;
an id with one is written as a URN that keeps it apart from others.
"""

import re
from collections.abc import Iterator

from lxml import etree

from smartfeeds.core.text import is_xml_text
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.entry import TIME_RANGE_US
from smartfeeds.formats.items import Found
from smartfeeds.formats.json_text import Json, JsonObject
from smartfeeds.formats.links import is_uri, resolve
from smartfeeds.formats.xml import XML_LANG, Element, new_element, parse_stored

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_MAILTO = "mailto:"


def clean(text: str) -> str:
    """The text with U+FFFD for every character that XML cannot carry."""
    return FORBIDDEN.sub("\ufffd", text)


def text_of(value: Json) -> str:
    """A string that XML can carry; "" for what is no string."""
    return clean(value) if isinstance(value, str) else ""


def id_of(value: Json) -> str:
    """An id: a string, or the digits of a number, as JSON Feed 1.1 wants it; "" for anything else."""
    if isinstance(value, str):
        return value if is_xml_text(value) else atom.derived_id(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


class JsonItem:
    """One object on its way to an atom:entry. `used` has the names of the members that were read."""

    def __init__(self, members: JsonObject, index: int, base: str) -> None:
        self.members = members
        self.base = base
        self.found = Found(index, new_element(atom.ENTRY, {None: ATOM_NS}))
        self.entry = self.found.entry

    def warn(self, text: str) -> None:
        self.found.warnings.append(text)

    def text(self, name: str, members: JsonObject | None = None) -> str:
        """A member that is a string; "" where it is missing."""
        value = (self.members if members is None else members).get(name)
        if value is not None and not isinstance(value, str):
            self.warn(f"{name} is no string and was left out")
        text = text_of(value)
        if isinstance(value, str) and text != value:
            self.warn(f"{name} holds characters that XML cannot carry")
        return text

    def object(self, name: str) -> JsonObject:
        """A member that is an object; empty where it is missing."""
        value = self.members.get(name)
        if value is not None and not isinstance(value, dict):
            self.warn(f"{name} is no object and was left out")
        return value if isinstance(value, dict) else {}

    def objects(self, name: str, members: JsonObject | None = None) -> Iterator[JsonObject]:
        """The objects of a member that is an array."""
        value = (self.members if members is None else members).get(name)
        if value is None:
            return
        if not isinstance(value, list):
            self.warn(f"{name} is no array and was left out")
            return
        for one in value:
            if isinstance(one, dict):
                yield one
            else:
                self.warn(f"{name} holds something that is no object")

    def time(self, name: str) -> int | None:
        """A member that is a date."""
        text = self.text(name).strip()
        time_us = parse_date(text) if text else None
        if time_us is not None and TIME_RANGE_US[0] <= time_us <= TIME_RANGE_US[1]:
            return time_us
        if text:
            self.warn(f"the date {text[:40]!r} cannot be read and was left out")
        return None

    def add(self, tag: str, text: str = "", **attributes: str) -> Element:
        child = etree.SubElement(self.entry, tag, {key: value for key, value in attributes.items() if value})
        child.text = text or None
        return child

    def add_times(self, published_us: int | None, updated_us: int | None) -> None:
        """The dates; what has only one of them was last changed then."""
        updated_us = published_us if updated_us is None else updated_us
        self.found.published_us, self.found.updated_us = published_us, updated_us
        for tag, time_us in ((atom.PUBLISHED, published_us), (atom.UPDATED, updated_us)):
            if time_us is not None:
                self.add(tag, format_datetime(time_us))

    def add_language(self, language: str) -> None:
        if _LANGUAGE.fullmatch(language):
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
        for tag, text in (("name", name or mail or uri), ("uri", uri and resolve(self.base, uri)), ("email", mail)):
            if text:
                etree.SubElement(author, f"{{{ATOM_NS}}}{tag}").text = text

    def add_link(self, rel: str, address: str, kind: str = "", title: str = "", length: Json = None) -> None:
        known = isinstance(length, int | float) and not isinstance(length, bool) and 1 <= length < 10**18
        size = str(int(length)) if known else ""
        if address.strip():
            self.add(atom.LINK, rel=rel, href=resolve(self.base, address), type=kind.strip(), title=title, length=size)

    def add_category(self, term: str, scheme: str = "", label: str = "") -> None:
        term = term.strip()
        if term:
            self.add(atom.CATEGORY, term=term, scheme=scheme.strip(), label=label.strip())

    def add_reply(self, reference: str, address: str) -> None:
        if reference or address:
            node = etree.SubElement(self.entry, atom.IN_REPLY_TO, nsmap={"thr": atom.THREAD_NS})
            for name, value in (("ref", reference), ("href", resolve(self.base, address) if address else "")):
                if value:
                    node.set(name, value)

    def add_source(self, title: str, address: str) -> None:
        if title or address:
            source = self.add(atom.SOURCE)
            address = resolve(self.base, address) if address else ""
            if is_uri(address):
                etree.SubElement(source, atom.ID).text = address
            etree.SubElement(source, atom.TITLE).text = title or None
            if address:
                etree.SubElement(source, atom.LINK, {"rel": "self", "href": address})

    def delete(self, atom_id: str, updated_us: int | None) -> Found:
        """The item as a deletion: of all that it says only its id and time are left."""
        text = "" if updated_us is None else format_datetime(updated_us)
        payload = atom.marked(atom_id or atom.derived_id(self.found.item_id), text, "")
        self.found.entry = parse_stored(payload)
        self.found.updated_us, self.found.deleted = updated_us, True
        return self.found
