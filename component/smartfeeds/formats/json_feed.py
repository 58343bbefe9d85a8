"""JSON Feed 1.1, written and read (jsonfeed.org/version/1.1).

`id` is the atom:id, so that a reader that knows the Atom form of a feed meets nothing twice; an atom:id that was made
of the id of a JSON Feed is written as that id again. The item id stands in the
object `_smartfeeds`, beside what JSON Feed has no member for: deletions (A-18), answers, the source; in that of the
feed are its total and cursors. Members of an item that are not of JSON Feed, or have no place in Atom, are kept in the
entry as they are: one extension element holds them as JSON.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from smartfeeds.core.text import FORBIDDEN
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import harmless
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import Entry, EntryLink, Person
from smartfeeds.formats.items import FeedDraft, FormatLoss, ItemDraft, SkippedItem, WrittenDocument, each
from smartfeeds.formats.json_items import JsonItem, id_of, text_of
from smartfeeds.formats.json_text import MAX_JSON_DEPTH, Json, JsonObject, dump_json, filled, load_json
from smartfeeds.formats.links import is_uri, resolve
from smartfeeds.formats.losses import EXTENSIONS, icon_losses, losses_of
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.xml import new_element

VERSION = "https://jsonfeed.org/version/1.1"
JSON_NS = "urn:x-smartfeeds:json"
MEMBERS = f"{{{JSON_NS}}}members"
# An item's own members stand two levels deep in a document.
_MAX_MEMBER_DEPTH = MAX_JSON_DEPTH - 4
_MAX_MEMBER_VALUES = 10_000

_VERSION = re.compile(r"https?://(?:www\.)?jsonfeed\.org/version/([0-9][0-9.]{0,9})/?")
_EXTENSION = "_smartfeeds"
_PERSON_MEMBERS = frozenset({"name", "url"})
_ATTACHMENT_MEMBERS = frozenset({"url", "mime_type", "title", "size_in_bytes"})
# Members that are written from the entry; none of them is taken from what an entry keeps.
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
    items = [_item(entry, losses) for entry in entries]
    items.reverse()
    total = {} if head.total is None else {"total": head.total}
    whole = {
        "version": VERSION,
        "title": head.title,
        **filled(
            home_page_url=head.link,
            feed_url=head.self_link,
            description=head.subtitle,
            next_url=head.next_link,
            icon=harmless(head.channel.icon),
            authors=[{"name": name} for name in head.channel.authors],
            language=head.language,
            hubs=[{"type": "WebSub", "url": head.channel.hub}] if head.channel.hub else [],
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


def _item(entry: Entry, losses: list[FormatLoss]) -> JsonObject:
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
    losses += losses_of(entry, "jsonfeed")
    related = next((link.href for link in entry.links if link.rel == "related"), "")
    source = entry.source
    members: JsonObject = {
        "id": _id(entry),
        **filled(url=entry.alternate, external_url=related, title=entry.title.plain),
        **_content(entry),
        **filled(summary="" if entry.summary is None else entry.summary.plain),
        "date_published": format_datetime(entry.issued_us),
        "date_modified": format_datetime(entry.changed_us),
        **filled(
            authors=[_author(person) for person in entry.authors],
            tags=list(dict.fromkeys(category.term for category in entry.categories)),
            language=entry.language,
            attachments=[_attachment(link) for link in entry.enclosures],
        ),
    }
    _restore(members, _kept_members(entry, losses))
    members[_EXTENSION] = own | filled(
        replies_to=[filled(id=reply.ref, url=reply.href) for reply in entry.replies_to],
        source={} if source is None else filled(title=source.title, url=source.href),
    )
    return members


def _id(entry: Entry) -> str:
    return entry.item_id if entry.atom_id == atom.derived_id(entry.item_id) else entry.atom_id


def _content(entry: Entry) -> JsonObject:
    """An item has one of both; one without content has an empty text."""
    content = entry.content
    if content is None or not content.value or not content.is_markup:
        return {"content_text": "" if content is None else content.value}
    return {"content_html": content.value}


def _author(person: Person) -> JsonObject:
    mail = f"mailto:{person.email}" if person.email else ""
    return filled(name=person.label, url=person.uri or mail)


def _attachment(link: EntryLink) -> JsonObject:
    """A media type is required."""
    return {"url": link.href, "mime_type": link.type or _UNKNOWN_TYPE} | filled(
        title=link.title, size_in_bytes=link.length
    )


def _kept_members(entry: Entry, losses: list[FormatLoss]) -> JsonObject:
    """What the entry keeps of a JSON Feed. Anybody may publish such an element, so it is read as any document is."""
    members: JsonObject = {}
    others = False
    for extension in entry.extensions:
        root = xml.parse_stored(extension)
        if root.tag != MEMBERS:
            others = True
            continue
        try:
            value = load_json(
                atom.string_of(root).encode(), max_depth=_MAX_MEMBER_DEPTH, max_values=_MAX_MEMBER_VALUES
            ).value
        except FeedError:
            others = True
            continue
        members = value if isinstance(value, dict) else {}
    if others:
        losses.append(FormatLoss(entry.item_id, EXTENSIONS))
    return members


def _restore(members: JsonObject, kept: JsonObject) -> None:
    for name, key, known in _NESTED:
        extras = kept.get(name)
        by_key = {str(one.get(key)): one for one in extras if isinstance(one, dict)} if isinstance(extras, list) else {}
        for one in members.get(name, ()):
            extra = by_key.get(str(one.get(key)), {})
            one |= {member: value for member, value in extra.items() if member not in known}
    for member, value in kept.items():
        if member not in _ITEM_MEMBERS and member not in members:
            members[member] = value


_NESTED = (("authors", "name", _PERSON_MEMBERS), ("attachments", "url", _ATTACHMENT_MEMBERS))


def is_json_feed(value: Json) -> bool:
    """Whether a JSON document is a JSON Feed."""
    version = value.get("version") if isinstance(value, dict) else None
    return isinstance(version, str) and _VERSION.fullmatch(version.strip()) is not None


def read_json_feed(value: JsonObject, base: str) -> tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]:
    """The head and the items of a document for which `is_json_feed` is true, of version 1 or 1.1."""
    version = _VERSION.fullmatch(value["version"].strip())
    number = version[1] if version is not None else ""
    address, page = (text_of(value.get(name)).strip() for name in ("feed_url", "home_page_url"))
    said = value.get(_EXTENSION)
    head = FeedDraft(
        f"JSON Feed {number}",
        id=(id_of(said.get("id")) if isinstance(said, dict) else "") or address,
        title=" ".join(text_of(value.get("title")).split()),
        link=resolve(base, page) if page else "",
        description=" ".join(text_of(value.get("description")).split()),
    )
    head.channel = _channel(value, base)
    if number not in ("1", "1.0", "1.1"):
        head.warnings.append(f"version {number} of JSON Feed is not known; it was read as 1.1")
    if not head.title:
        head.warnings.append("the feed has no title")
    items = value.get("items")
    if not isinstance(items, list):
        head.warnings.append("the feed has no items")
        items = []
    return head, each(partial(_read_item, feed=value, base=base), items)


def _channel(feed: JsonObject, base: str) -> Channel:
    """Returns the metadata of a JSON Feed beside its addresses, title and description."""
    icon = text_of(feed.get("icon")).strip()
    hubs = feed.get("hubs")
    urls = [text_of(hub.get("url")).strip() for hub in hubs if isinstance(hub, dict)] if isinstance(hubs, list) else []
    unknown = sorted(name for name in feed if name not in _FEED_MEMBERS)
    if any(not {"name"}.issuperset(author) for author in _authors(feed)):
        unknown.append("addresses and pictures of authors")
    if len(urls) > 1:
        unknown.append("hubs after the first")
    return Channel(
        language=text_of(feed.get("language")).strip(),
        icon=resolve(base, icon) if icon else "",
        hub=next((resolve(base, url) for url in urls if url), ""),
        authors=tuple(name for author in _authors(feed) if (name := " ".join(text_of(author.get("name")).split()))),
        left_out=tuple(name[:40] for name in unknown[:_MAX_NAMED]),
    )


def _read_item(value: Json, index: int, feed: JsonObject, base: str) -> ItemDraft | SkippedItem:
    if not isinstance(value, dict):
        return SkippedItem(index, "the item is no object")
    item = JsonItem(value, index, base)
    own = item.object(_EXTENSION)
    given = id_of(own.get("id"))
    atom_id = id_of(value.get("id"))
    item.draft.item_id = given or atom_id
    # The id of an item whose atom:id was made of it is no atom:id.
    is_own = given not in ("", atom_id) or is_uri(atom_id) or own.get("atom_id") == atom_id
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
    for author in _authors(value) or _authors(feed):
        item.add_person(item.text("name", author), item.text("url", author))
    tags = value.get("tags")
    for tag in tags if isinstance(tags, list) else []:
        item.add_category(text_of(tag))
    item.add_enclosures(value, "mime_type", "title", "size_in_bytes")
    item.add_references(own, "replies_to", "title")
    # An item may have both forms of its content, which mean the same. `_keep_members` keeps the text beside the HTML.
    html, text, summary = (item.text(name) for name in ("content_html", "content_text", "summary"))
    if summary:
        item.add(atom.SUMMARY, summary)
    if html or text:
        item.add(atom.CONTENT, html or text, type="html" if html else "")
    _keep_members(item, feed)
    return item.draft


def _authors(members: JsonObject) -> list[JsonObject]:
    """The authors in the form of JSON Feed 1.1, else the author in the form of 1.0."""
    several = members.get("authors")
    people = several if isinstance(several, list) and several else [members.get("author")]
    return [person for person in people if isinstance(person, dict)]


def _keep_members(item: JsonItem, feed: JsonObject) -> None:
    """The members that the entry has no other place for."""
    kept = {name: value for name, value in item.members.items() if name not in _ITEM_MEMBERS}
    if not (kept.get("content_text") and item.members.get("content_html")):
        kept.pop("content_text", None)
    if people := _unknown(_authors(item.members) or _authors(feed), _PERSON_MEMBERS):
        kept["authors"] = [one | {"name": _label(one)} for one in people]
    if links := _unknown(list(item.objects("attachments")), _ATTACHMENT_MEMBERS):
        kept["attachments"] = [one | {"url": item.resolve(text_of(one.get("url")))} for one in links]
    if not kept:
        return
    text = dump_json(kept)
    try:
        load_json(text, max_depth=_MAX_MEMBER_DEPTH, max_values=_MAX_MEMBER_VALUES)
    except FeedError:
        item.warn("members that JSON Feed does not know are too many or too deep and were left out")
        return
    node = new_element(MEMBERS, {None: JSON_NS})
    # Inside of a JSON string every character may be written as an escape.
    node.text = FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text.decode())
    item.entry.append(node)


def _unknown(objects: list[JsonObject], known: frozenset[str]) -> list[JsonObject]:
    return [
        {name: value for name, value in one.items() if name in ("name", "url") or name not in known}
        for one in objects
        if not known.issuperset(one)
    ]


def _label(person: JsonObject) -> str:
    """The name as it will be written again."""
    name, address = (" ".join(text_of(person.get(key)).split()) for key in ("name", "url"))
    return name or address.removeprefix("mailto:")
