"""ActivityStreams 1.0 in JSON: the form of a Smart Feed over HTTP, written and read (A-35, SF-060 to SF-065, A-18).

An item is an activity: `id` is the item id, the author is its actor and the entry its object. In AS 1.0 content is
HTML. A Smart Feed has plain text as it is, and `"contentType":"text/html"` beside content that is HTML. The member
`count` marks a Smart Feed. The reader therefore reads content without `contentType` as text in a Smart Feed, and else
as HTML.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import DocumentFormat, Reader, whole
from smartfeeds.formats.entry import ACTIVITY_NS, NO_TEXT, Entry, EntryLink, EntryPerson, EntrySource, read_entry
from smartfeeds.formats.feed_document import FeedDraft, FormatLoss, ItemDraft, SkippedItem, WrittenDocument, each
from smartfeeds.formats.json_items import JsonItem, id_of, text_of
from smartfeeds.formats.json_text import Json, JsonObject, dump_json, filled
from smartfeeds.formats.links import resolve
from smartfeeds.formats.losses import EntryPart, losses_of, lost_of
from smartfeeds.formats.xml import new_element

_LOST = lost_of(
    {
        EntryPart.SUMMARY,
        EntryPart.EMAIL,
        EntryPart.SCHEMES_AND_LABELS,
        EntryPart.LABELS,
        EntryPart.ENCLOSURE_TITLES,
        EntryPart.SOURCE,
        EntryPart.SOURCE_TITLE,
        EntryPart.REPLIES,
        EntryPart.LANGUAGE,
        EntryPart.KINDS,
        EntryPart.CONTENT_MARKUP,
        EntryPart.AUTHORS,
        EntryPart.ENCLOSURES,
        EntryPart.ENCLOSURES_OFF_WEB,
    }
)
_WEB = ("http://", "https://")
_FILE_KINDS = frozenset({"audio", "image", "video"})
_GUESSED = frozenset({"note", "article"})  # by `entry.read_entry`, which does not know that a feed has comments


def write_activity(entry: Entry, *, comments: bool = False) -> bytes:
    """One item as an activity. With `comments`, an item without a type of its own is a comment."""
    return dump_json(_activity(entry, comments=comments))


def write_activities(head: FeedHead, entries: Iterable[Entry]) -> WrittenDocument:
    """A page or a whole feed, in the order of the entries (SF-060 to SF-065)."""
    losses: list[FormatLoss] = []
    items: list[JsonObject] = []
    for entry in entries:
        items.append(_activity(entry, comments=False))
        losses += activity_losses(entry)
    page = {
        "count": len(items),
        "totalItems": len(items) if head.total is None else head.total,
        **filled(url=head.self_link, last_cursor=head.last_cursor, next=head.next_link),
        "items": items,
    }
    return WrittenDocument(dump_json(page), tuple(losses))


def activity_losses(entry: Entry) -> list[FormatLoss]:
    """Returns the parts of the entry that its activity does not contain."""
    losses = losses_of(entry, _LOST)
    author = entry.authors[0] if entry.authors and not entry.deleted else EntryPerson()
    if author.email and author.uri and not author.uri.startswith(_WEB):
        losses.append(FormatLoss(entry.item_id, EntryPart.EMAIL.value.text))
    return losses


def _activity(entry: Entry, *, comments: bool) -> JsonObject:
    updated = format_datetime(entry.changed_us)
    if entry.deleted:
        return {"id": entry.item_id, "updated": updated, "deleted": True, **filled(left=entry.left)}
    title = entry.title.plain
    return {
        "id": entry.item_id,
        "published": format_datetime(entry.issued_us),
        "updated": updated,
        **filled(title=title),
        "verb": entry.verb,
        **filled(actor=_actor(entry.authors[0]) if entry.authors else None),
        "object": _object(entry, title, comments=comments),
    }


def _actor(person: EntryPerson) -> JsonObject:
    """AS 1.0 has one `url` and one `id`; a mail address is the id of a person who has no other."""
    url = person.uri if person.uri.startswith(_WEB) else ""
    own_id = person.uri if not url else ""
    mail = f"mailto:{person.email}" if person.email else ""
    return {"objectType": "person", "displayName": person.label} | filled(url=url, id=own_id or mail)


def _object(entry: Entry, title: str, *, comments: bool) -> JsonObject:
    kind = entry.object_type
    if comments and not entry.typed and kind in _GUESSED:
        kind = "comment"
    content, source = entry.content or NO_TEXT, entry.source or EntrySource()
    return filled(
        objectType=kind,
        id=entry.atom_id if entry.has_own_id else "",
        url=entry.alternate,
        displayName=title,
        summary=(entry.summary or NO_TEXT).plain,
        content=content.value,
        contentType="text/html" if content.is_markup and content.value else "",
        language=entry.language,
        attachments=[_attachment(link) for link in entry.enclosures],
        tags=[
            filled(objectType="category", displayName=tag.term, scheme=tag.scheme, label=tag.label)
            for tag in entry.categories
        ],
        inReplyTo=[filled(id=reply.ref, url=reply.href) for reply in entry.replies_to],
        source=filled(displayName=source.title, url=source.href),
    )


def _attachment(link: EntryLink) -> JsonObject:
    kind = link.type.partition("/")[0].lower()
    return filled(
        objectType=kind if kind in _FILE_KINDS else "file",
        displayName=link.title,
        url=link.href,
        mimeType=link.type,
        length=link.length,
    )


def is_collection(value: Json) -> bool:
    """Whether a JSON document is a collection of activities."""
    if not isinstance(value, dict) or not isinstance(value.get("items"), list):
        return False
    return "totalItems" in value or any(
        isinstance(item, dict) and not {"verb", "object"}.isdisjoint(item) for item in value["items"]
    )


def read_activities(value: JsonObject, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head and the items of a collection for which `is_collection` is true."""
    address = text_of(value.get("url")).strip()
    head = FeedDraft(
        "ActivityStreams 1.0",
        id=id_of(value.get("id")),
        title=text_of(value.get("displayName")) or text_of(value.get("title")),
        link=resolve(base, address) if address else "",
    )
    smart = "count" in value
    return head, each(partial(_item, base=base, smart=smart), value["items"])


def _item(value: Json, index: int, base: str, *, smart: bool) -> ItemDraft | SkippedItem:
    if not isinstance(value, dict):
        return SkippedItem(index, "the item is no object")
    item = JsonItem(value, index, base)
    item.draft.item_id = id_of(value.get("id"))
    body = item.object("object")
    published_us, updated_us = item.time("published"), item.time("updated")
    removal = item.removal(value, id_of(body.get("id")), updated_us)
    if removal is not None:
        return removal
    item.add_language(item.text("language", body))
    # An activity of a Smart Feed without an id in its object has an atom:id that was made of the item id.
    own_id = atom.derived_id(item.draft.item_id) if smart and item.draft.item_id else item.draft.item_id
    item.add_id(id_of(body.get("id")) or own_id, given=smart)
    title = item.text("displayName", body) or item.text("title")
    item.add(atom.TITLE, title)
    item.add_times(published_us, updated_us)
    actor = item.object("actor")
    item.add_person(item.text("displayName", actor), item.text("url", actor), item.text("id", actor))
    item.add_enclosures(body, "mimeType", "displayName", "length")
    item.add_link("alternate", item.text("url", body) or item.text("url"))
    for tag in item.objects("tags", body):
        item.add_category(*(item.text(key, tag) for key in ("displayName", "scheme", "label")))
    item.add_references(body, "inReplyTo", "displayName")
    _read_bodies(item, body, smart=smart)
    is_reply = item.entry.find(atom.IN_REPLY_TO) is not None
    _read_kinds(item, body, "comment" if is_reply else "article" if title.strip() else "note")
    return item.draft


def _read_bodies(item: JsonItem, body: JsonObject, *, smart: bool) -> None:
    summary, content = item.text("summary", body), item.text("content", body)
    kind = item.text("contentType", body).strip().lower() or ("text/plain" if smart else "text/html")
    if summary:
        item.add(atom.SUMMARY, summary, type="" if smart else "html")
    if content:
        item.add(atom.CONTENT, content, type="html" if kind == "text/html" else "")


def _read_kinds(item: JsonItem, body: JsonObject, guess: str) -> None:
    """Verb and object type, unless they are what a reader of the entry assumes anyway (`entry.read_entry`)."""
    for name, value, usual in (
        ("verb", item.text("verb"), "post"),
        ("object-type", item.text("objectType", body), guess),
    ):
        text = value.strip()
        if text and text != usual:
            node = new_element(f"{{{ACTIVITY_NS}}}{name}", {"activity": ACTIVITY_NS})
            node.text = text
            item.entry.append(node)


def _write(head: FeedHead, items: Iterable[Item]) -> WrittenDocument:
    return write_activities(head, map(read_entry, items))


def _losses(head: FeedHead) -> str:
    return "the title and the description of the feed" if head.title or head.subtitle else ""


# Over HTTP activities are a pull.
ACTIVITIES = DocumentFormat(
    "json", "ActivityStreams 1.0", whole(_write), losses=_losses, json=Reader(is_collection, read_activities)
)
