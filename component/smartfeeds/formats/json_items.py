"""Objects of a JSON document to Atom entries: what JSON Feed and ActivityStreams have in common.

Members of the wrong type are left out with a warning. A character that XML cannot carry becomes U+FFFD in texts;
an id with one is written as a URN that keeps it apart from others.
"""

from collections.abc import Iterator

from smartfeeds.core.text import FORBIDDEN, is_xml_text
from smartfeeds.formats import atom
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.feed_document import LEFT_REASON, ItemDraft, SkippedItem
from smartfeeds.formats.json_text import Json, JsonObject


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
    # JSON has one kind of numbers: 1.0 is 1.
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return str(number) if isinstance(number, int | float) and not isinstance(number, bool) else ""


class JsonItem(EntryBuilder):
    """One object of a document on its way to an atom:entry."""

    def __init__(self, members: JsonObject, index: int, base: str) -> None:
        super().__init__(index, base)
        self.members = members

    def text(self, name: str, members: JsonObject | None = None) -> str:
        """A member that is a string, or a number with a warning; "" where it is missing."""
        value = (self.members if members is None else members).get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.warn(f"{name} is no string and was read as one")
            value = id_of(value)
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
        """The objects of a member that is an array. One object is read as an array of one."""
        value = (self.members if members is None else members).get(name)
        if value is None:
            return
        value = [value] if isinstance(value, dict) else value
        if not isinstance(value, list):
            self.warn(f"{name} is no array and was left out")
            return
        for element in value:
            if isinstance(element, dict):
                yield element
            else:
                self.warn(f"{name} holds something that is no object")

    def time(self, name: str) -> int | None:
        """A member that is a date."""
        return self.date(self.text(name))

    def removal(self, members: JsonObject, atom_id: str, updated_us: int | None) -> ItemDraft | SkippedItem | None:
        """The result for an item with the members `left` or `deleted` (A-18), None for any other item."""
        if members.get("left") is True:
            return SkippedItem(self.draft.index, LEFT_REASON)
        if members.get("deleted") is not True:
            return None
        if not self.draft.item_id:
            return SkippedItem(self.draft.index, "a deleted item does not say which one it is")
        return self.delete(atom_id, updated_us)

    def add_enclosures(self, members: JsonObject, kind: str, title: str, length: str) -> None:
        """The attachments, whose members have these names."""
        for link in self.objects("attachments", members):
            address, media_type, text = (self.text(name, link) for name in ("url", kind, title))
            self.add_link("enclosure", address, media_type, text, link.get(length))

    def add_references(self, members: JsonObject, replies: str, title: str) -> None:
        """The entries that the item answers, and its source, whose title has this name."""
        for reply in self.objects(replies, members):
            self.add_reply(id_of(reply.get("id")), self.text("url", reply))
        source = members.get("source")
        if isinstance(source, dict):
            self.add_source(self.text(title, source), self.text("url", source))
