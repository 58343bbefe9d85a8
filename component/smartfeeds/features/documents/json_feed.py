"""JSON Feed 1.1, written and read (jsonfeed.org/version/1.1).

`id` is the atom:id, so that a reader of both the Atom and the JSON form of a feed shows no entry twice. An atom:id that
was made of the id of a JSON Feed is written as that id again. The object `_smartfeeds` holds what JSON Feed has no
member for: of an item its id, deletion (A-18), answers and source, of a feed its total and cursors. JSON Feed 1.1,
"Extensions", reserves names that begin with an underscore for this. Members that have no place in Atom are stored in
the entry in one extension element, as JSON.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from smartfeeds.core.model import Item
from smartfeeds.core.text import FORBIDDEN
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.core.web_address import uri_of
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import DocumentFormat, Reader, whole
from smartfeeds.formats.entry import NO_TEXT, Entry, EntryLink, EntryPerson, read_entry
from smartfeeds.formats.feed_document import FeedDraft, FormatLoss, ItemDraft, SkippedItem, WrittenDocument, each
from smartfeeds.formats.json_items import JsonItem, id_of, text_of
from smartfeeds.formats.json_text import MAX_JSON_DEPTH, Json, JsonObject, dump_json, filled, load_json
from smartfeeds.formats.links import is_absolute, is_uri, resolve
from smartfeeds.formats.losses import EntryPart, icon_losses, losses_of, lost_of
from smartfeeds.formats.modules import PREVIEW
from smartfeeds.formats.paging import Paging
from smartfeeds.formats.plain import squeeze
from smartfeeds.formats.representation import Representation
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.xml import new_element

_LOST = lost_of(
    {
        EntryPart.SUMMARY,
        EntryPart.AUTHORS_AFTER_FIRST,
        EntryPart.LABELS,
        EntryPart.ENCLOSURE_TITLES,
        EntryPart.RELATED,
        EntryPart.PICTURE,
        EntryPart.SOURCE,
        EntryPart.SOURCE_TITLE,
        EntryPart.REPLIES,
        EntryPart.LANGUAGE,
        EntryPart.EXTENSIONS,  # those that came from a JSON Feed; `_stored_members` reports the others
        EntryPart.CONTENT_MARKUP,
        EntryPart.AUTHORS,
        EntryPart.ENCLOSURES,
        EntryPart.ENCLOSURES_OFF_WEB,
    }
)
VERSION = "https://jsonfeed.org/version/1.1"
JSON_NS = "urn:x-smartfeeds:json"
MEMBERS = f"{{{JSON_NS}}}members"
# An item's own members stand two levels deep in a document.
_MAX_MEMBER_DEPTH = MAX_JSON_DEPTH - 4
_MAX_MEMBER_VALUES = 10_000

_VERSION = re.compile(r"https?://(?:www\.)?jsonfeed\.org/version/([0-9][0-9.]{0,9})/?")
_EXTENSION = "_smartfeeds"
_CLOUD_TYPE = "rssCloud"  # JSON Feed 1.1, "Subscribing to Real-time Notifications"
_PERSON_MEMBERS = frozenset({"name", "url"})
_ATTACHMENT_MEMBERS = frozenset({"url", "mime_type", "title", "size_in_bytes"})
# Members that are written from the entry, and never from stored members.
_ITEM_MEMBERS = frozenset(
    {"id", "url", "external_url", "title", "content_html", "summary", "date_published", "date_modified"}
    | {"author", "authors", "tags", "language", "attachments", _EXTENSION}
)
_FEED_MEMBERS = frozenset(
    {"version", "title", "home_page_url", "feed_url", "description", "next_url", "icon", "author", "authors"}
    | {"language", "hubs", "items", _EXTENSION}
)
# Members of a feed that are named where they were left out.
_MAX_NAMED = 20
_UNKNOWN_TYPE = "application/octet-stream"


def write_json_feed(head: FeedHead, entries: Iterable[Entry]) -> WrittenDocument:
    """The document, its newest item on top; `entries` come oldest first."""
    losses = icon_losses(head)
    items = [_item(head, entry, losses) for entry in entries]
    items.reverse()
    total = {} if head.total is None else {"total": head.total}
    whole = {
        "version": VERSION,
        "title": head.title,
        **filled(
            home_page_url=uri_of(head.link),
            feed_url=head.self_link,
            description=head.subtitle,
            next_url=head.next_link,
            icon=uri_of(harmless(head.channel.icon)),
            authors=[{"name": name} for name in head.channel.authors],
            language=head.language,
            hubs=[
                {"type": kind, "url": uri_of(url)}
                for kind, url in (("WebSub", head.channel.hub), (_CLOUD_TYPE, head.channel.cloud_url))
                if url
            ],
        ),
        _EXTENSION: {
            "id": head.id,
            "updated": format_datetime(head.updated_us),
            **total,
            **filled(via=head.via, prev_cursor=head.prev_cursor, last_cursor=head.last_cursor),
        },
        "items": items,
    }
    return WrittenDocument(dump_json(whole), tuple(losses))


def _item(head: FeedHead, entry: Entry, losses: list[FormatLoss]) -> JsonObject:
    own: JsonObject = {"id": entry.item_id}
    if entry.atom_id == entry.item_id and not is_uri(entry.atom_id):
        own["atom_id"] = entry.atom_id  # it was published so; an id that is no URI is none of Atom otherwise
    if entry.deleted:
        return {
            "id": _id(entry),
            "content_text": "",
            "date_modified": format_datetime(entry.changed_us),
            _EXTENSION: {**own, "deleted": True, **({"left": True} if entry.left else {})},
        }
    losses += losses_of(entry, _LOST)
    related = next((link.href for link in entry.links if link.rel == "related"), "")
    source, content = entry.source, (entry.shown_content if head.for_readers else entry.content) or NO_TEXT
    members: JsonObject = {
        "id": _id(entry),
        **filled(url=head.page_of(entry), external_url=related, title=entry.title.plain),
        # JSON Feed 1.1, "Items": an item has one of both, so an item without content has an empty text.
        **({"content_html": content.value} if content.is_markup and content.value else {"content_text": content.value}),
        **filled(summary="" if entry.summary is None else entry.summary.plain, image=harmless(entry.picture)),
        "date_published": format_datetime(entry.issued_us),
        "date_modified": format_datetime(entry.changed_us),
        **filled(
            authors=[_author(person) for person in entry.authors],
            tags=list(dict.fromkeys(category.term for category in entry.categories)),
            language=entry.language,
            attachments=[
                _attachment(link) for link in entry.enclosures if not head.for_readers or is_absolute(link.href)
            ],
        ),
    }
    _restore(members, _stored_members(entry, losses))
    members[_EXTENSION] = own | filled(
        replies_to=[filled(id=reply.ref, url=reply.href) for reply in entry.replies_to],
        source={} if source is None else filled(title=source.title, url=source.href),
    )
    return members


def _id(entry: Entry) -> str:
    return entry.item_id if entry.atom_id == atom.derived_id(entry.item_id) else entry.atom_id


def _author(person: EntryPerson) -> JsonObject:
    mail = f"mailto:{person.email}" if person.email else ""
    return filled(name=person.label, url=person.uri or mail)


def _attachment(link: EntryLink) -> JsonObject:
    """A media type is required."""
    return {"url": link.href, "mime_type": link.type or _UNKNOWN_TYPE} | filled(
        title=link.title, size_in_bytes=link.length
    )


# Members whose objects can have members that Atom has no place for: the key that identifies an object, and the members
# that are written from the entry.
_NESTED = (("authors", "name", _PERSON_MEMBERS), ("attachments", "url", _ATTACHMENT_MEMBERS))


def _load_members(data: bytes) -> Json:
    return load_json(data, max_depth=_MAX_MEMBER_DEPTH, max_values=_MAX_MEMBER_VALUES).value


def _stored_members(entry: Entry, losses: list[FormatLoss]) -> JsonObject:
    """The members of a JSON Feed that are stored in the entry.

    Anybody may publish such an element, so its limits are checked like those of a document.
    """
    members: JsonObject = {}
    has_losses = False
    for root in map(xml.parse_stored, entry.extensions):
        if root.tag != MEMBERS:
            has_losses = True
            continue
        try:
            value = _load_members(atom.string_of(root).encode())
        except FeedError:
            has_losses = True
        else:
            members = value if isinstance(value, dict) else {}
    if has_losses:
        losses.append(FormatLoss(entry.item_id, EntryPart.EXTENSIONS.value.text))
    return members


def _restore(members: JsonObject, stored: JsonObject) -> None:
    """Adds stored members to those that were written from the entry, which count if both have a name."""
    for name, key, own_names in _NESTED:
        extras = stored.get(name)
        if not isinstance(extras, list):
            continue
        by_key = {str(extra.get(key)): extra for extra in extras if isinstance(extra, dict)}
        for value in members.get(name, ()):
            extra = by_key.get(str(value.get(key)), {})
            value |= {member: text for member, text in extra.items() if member not in own_names}
    for member, value in stored.items():
        if member not in _ITEM_MEMBERS:
            members.setdefault(member, value)


def is_json_feed(value: Json) -> bool:
    """Whether a JSON document is a JSON Feed."""
    version = value.get("version") if isinstance(value, dict) else None
    return isinstance(version, str) and _VERSION.fullmatch(version.strip()) is not None


def read_json_feed(value: JsonObject, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head and the items of a document for which `is_json_feed` is true, of version 1 or 1.1."""
    version = _VERSION.fullmatch(value["version"].strip())
    number = version[1] if version is not None else ""
    address, page = (text_of(value.get(name)).strip() for name in ("feed_url", "home_page_url"))
    extension = value.get(_EXTENSION)
    head = FeedDraft(
        f"JSON Feed {number}",
        id=(id_of(extension.get("id")) if isinstance(extension, dict) else "") or address,
        title=squeeze(text_of(value.get("title"))),
        link=resolve(base, page) if page else "",
        description=squeeze(text_of(value.get("description"))),
    )
    head.channel = _channel(value, base)
    older = text_of(value.get("next_url")).strip()
    head.paging = Paging(resolve(base, older) if older else "")
    if number not in ("1", "1.0", "1.1"):
        head.warnings.append(f"version {number} of JSON Feed is not known; it was read as 1.1")
    if not head.title:
        head.warnings.append("the feed has no title")
    items = value.get("items")
    if isinstance(items, dict):
        # PHP writes an array with a gap in its keys as an object.
        items = list(items.values())
    if not isinstance(items, list):
        head.warnings.append("the feed has no items")
        items = []
    return head, each(partial(_read_item, feed=value, base=base), items)


def read_json_feed_item(value: JsonObject) -> ItemDraft | SkippedItem:
    """One item of a JSON Feed, without its feed."""
    return next(each(lambda item, index: _read_item(item, index, {}, ""), [value]))


def _channel(feed: JsonObject, base: str) -> Channel:
    """Returns the metadata of a JSON Feed beside its addresses, title and description."""
    icon = text_of(feed.get("icon")).strip()
    stated = feed.get("hubs")
    hubs: list[str] = []
    clouds: list[str] = []
    for hub in stated if isinstance(stated, list) else ():
        if isinstance(hub, dict) and (url := text_of(hub.get("url")).strip()):
            is_cloud = text_of(hub.get("type")).strip().lower() == _CLOUD_TYPE.lower()
            (clouds if is_cloud else hubs).append(resolve(base, url))
    unknown = sorted(name for name in feed if name not in _FEED_MEMBERS)
    if any(not {"name"}.issuperset(author) for author in _authors(feed)):
        unknown.append("addresses and pictures of authors")
    if len(hubs) > 1 or len(clouds) > 1:
        unknown.append("hubs after the first")
    return Channel(
        language=text_of(feed.get("language")).strip(),
        icon=resolve(base, icon) if icon else "",
        hub=next(iter(hubs), ""),
        cloud_url=next(iter(clouds), ""),
        authors=tuple(name for author in _authors(feed) if (name := squeeze(text_of(author.get("name"))))),
        left_out=tuple(name[:40] for name in unknown[:_MAX_NAMED]),
    )


def _read_item(value: Json, index: int, feed: JsonObject, base: str) -> ItemDraft | SkippedItem:
    if not isinstance(value, dict):
        return SkippedItem(index, "the item is no object")
    item = JsonItem(value, index, base)
    own = item.object(_EXTENSION)
    own_id = id_of(own.get("id"))
    atom_id = id_of(value.get("id"))
    item.draft.item_id = own_id or atom_id
    # If the atom:id was made of the item id, the writer has put the item id in its place.
    is_own = own_id not in ("", atom_id) or is_uri(atom_id) or own.get("atom_id") == atom_id
    published_us, updated_us = item.time("date_published"), item.time("date_modified")
    removal = item.removal(own, atom_id if is_own else "", updated_us)
    if removal is not None:
        return removal
    item.add_language(item.text("language") or text_of(feed.get("language")))
    item.add_id(atom_id, given=is_own)
    item.add(atom.TITLE, item.text("title"))
    item.add_times(published_us, updated_us)
    item.add_link("alternate", item.text("url"))
    item.add_link("related", item.text("external_url"))
    picture = item.text("image").strip() or item.text("banner_image").strip()
    if picture and item.resolve(picture).lower().startswith(("http://", "https://")):
        item.add_link(PREVIEW, picture)
    for author in _authors(value) or _authors(feed):
        item.add_person(item.text("name", author), item.text("url", author))
    tags = value.get("tags")
    for tag in tags if isinstance(tags, list) else [tags]:
        item.add_category(text_of(tag))
    item.add_enclosures(value, "mime_type", "title", "size_in_bytes")
    item.add_references(own, "replies_to", "title")
    # An item may have both forms of its content, which mean the same. `_store_members` keeps the text beside the HTML.
    html, text, summary = (item.text(name) for name in ("content_html", "content_text", "summary"))
    if summary:
        item.add(atom.SUMMARY, summary)
    if html or text:
        item.add(atom.CONTENT, html or text, type="html" if html else "")
    _store_members(item, feed)
    return item.draft


def _authors(members: JsonObject) -> list[JsonObject]:
    """The authors in the form of JSON Feed 1.1, else the author in the form of 1.0. Some feeds have bare names."""
    several = members.get("authors") or members.get("author")
    people = several if isinstance(several, list) else [several]
    named = [{"name": person} if isinstance(person, str) else person for person in people]
    return [person for person in named if isinstance(person, dict)]


def _store_members(item: JsonItem, feed: JsonObject) -> None:
    """Stores the members that have no other place in the entry."""
    stored = {name: value for name, value in item.members.items() if name not in _ITEM_MEMBERS}
    if not (stored.get("content_text") and item.members.get("content_html")):
        stored.pop("content_text", None)
    if people := _with_more(_authors(item.members) or _authors(feed), _PERSON_MEMBERS):
        stored["authors"] = [person | {"name": _label(person)} for person in people]
    if links := _with_more(item.objects("attachments"), _ATTACHMENT_MEMBERS):
        stored["attachments"] = [link | {"url": item.resolve(text_of(link.get("url")))} for link in links]
    if not stored:
        return
    text = dump_json(stored)
    try:
        _load_members(text)
    except FeedError:
        item.warn("members that JSON Feed does not know are too many or too deep and were left out")
        return
    node = new_element(MEMBERS, {None: JSON_NS})
    # Inside of a JSON string every character may be written as an escape.
    node.text = FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text.decode())
    item.entry.append(node)


def _with_more(objects: Iterable[JsonObject], own_names: frozenset[str]) -> list[JsonObject]:
    """The objects that have other members than `own_names`, with these members and those that identify the object."""
    return [
        {name: member for name, member in value.items() if name in ("name", "url") or name not in own_names}
        for value in objects
        if not own_names.issuperset(value)
    ]


def _label(person: JsonObject) -> str:
    """The name as it will be written again."""
    name, address = (squeeze(text_of(person.get(key))) for key in ("name", "url"))
    return name or address.removeprefix("mailto:")


def _write(head: FeedHead, items: Iterable[Item]) -> WrittenDocument:
    return write_json_feed(head, map(read_entry, items))


JSON_FEED = DocumentFormat(
    "jsonfeed",
    "JSON Feed 1.1",
    whole(_write),
    frozenset({"language", "icon", "hub", "authors", "cloud_url"}),
    json=Reader(is_json_feed, read_json_feed),
    item=read_json_feed_item,
    representation=Representation(
        "jsonfeed",
        "application/feed+json; charset=utf-8",
        ("application/feed+json",),
        "JSON Feed",
        has_hub=True,
        link=3,
        schema="JsonFeed",
    ),
)
