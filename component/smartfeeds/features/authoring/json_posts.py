"""Items that are published as JSON: an activity, an item of a JSON Feed, or the few members of a post."""

from collections.abc import Iterable

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.post_fields import LINK, answer_advice
from smartfeeds.formats import atom
from smartfeeds.formats.activity import read_activities
from smartfeeds.formats.feed_document import ItemDraft, SkippedItem
from smartfeeds.formats.json_text import Json, JsonObject, load_json
from smartfeeds.formats.post import checked_address, checked_file_address, complete, split_tags
from smartfeeds.formats.xml import Element
from smartfeeds.http.forms import ReadJsonItem
from smartfeeds.http.sync_json import MEMBER

_OF_ACTIVITY = frozenset({"object", "verb", "deleted", "actor", MEMBER})
# The short names of a post, and the members of an item of a JSON Feed for which they stand.
_SHORT = {"content": "content_text", "link": "url"}
_MEMBERS = frozenset(
    {"id", "url", "external_url", "title", "content_html", "content_text", "summary", "date_published"}
    | {"date_modified", "image", "banner_image", "author", "authors", "tags", "language", "attachments"}
)


def read_json_post(data: bytes, item_id: str, read_item: ReadJsonItem | None) -> Element:
    """The entry for JSON: an activity, or a post, whose members `read_item` reads if the service has such a format.

    An id in the body is ignored; `item_id` is the one in the path, "" without one. JSON with members that an entry
    cannot hold is rejected. Raises FeedError.
    """
    value, warnings = _load(data)
    if read_item is None or not _OF_ACTIVITY.isdisjoint(value):
        return _checked(_activity(value, item_id), warnings, "activity")
    return _checked(_item(value, read_item, is_post=True), warnings, "item", is_post=True)


def read_json_item(data: bytes, read_item: ReadJsonItem) -> Element:
    """The entry for an item that stands alone, whose members the entry stores. Raises FeedError."""
    value, warnings = _load(data)
    return _checked(_item(value, read_item, is_post=False), warnings, "item")


def _load(data: bytes) -> tuple[JsonObject, list[str]]:
    value, warnings, _ = load_json(data)
    if not isinstance(value, dict):
        raise FeedError(Condition.INVALID_PAYLOAD, "the body is one item, a JSON object")
    return value, warnings


def _checked(draft: ItemDraft | SkippedItem, warnings: Iterable[str], what: str, *, is_post: bool = False) -> Element:
    if isinstance(draft, SkippedItem):
        raise FeedError(Condition.INVALID_PAYLOAD, draft.reason)
    if warnings or draft.warnings:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the {what} is faulty: {(*warnings, *draft.warnings)[0]}")
    for link in draft.entry.iterchildren(atom.LINK):
        if link.get("rel") == "enclosure":
            checked_file_address(link.get("href", ""), "attachments")
    if what == "item" and not draft.deleted:
        # An item of a JSON Feed may have no title, and readers get its whole text back.
        complete(draft.entry, split=is_post)
    return draft.entry


def _activity(value: JsonObject, item_id: str) -> ItemDraft | SkippedItem:
    if not (value.get("deleted") is True or isinstance(value.get("object"), dict)):
        raise FeedError(Condition.INVALID_PAYLOAD, "the body is one activity, a JSON object that has an object")
    if MEMBER in value:
        raise FeedError(
            Condition.INVALID_PAYLOAD, "an activity is published without the member sync; what is to be merged is Atom"
        )
    members: JsonObject = {name: member for name, member in value.items() if name != "id"}
    # A deletion needs the id of the item. Any other entry without atom:id gets one from its node, not from this reader.
    if item_id and value.get("deleted") is True:
        members["id"] = item_id
    return next(read_activities({"count": 1, "items": [members]}, "")[1])


def _item(value: JsonObject, read_item: ReadJsonItem, *, is_post: bool) -> ItemDraft | SkippedItem:
    if "items" in value:
        raise FeedError(Condition.INVALID_PAYLOAD, "the body is a whole feed; publish one item, or import the feed")
    members: JsonObject = {}
    for name, member in value.items():
        full_name = _SHORT.get(name, name) if is_post else name
        if full_name in members:
            raise FeedError(Condition.INVALID_PAYLOAD, f"{name} and {full_name} are the same; send one of them")
        if is_post and full_name not in _MEMBERS and not name.startswith("_"):
            known = ", ".join(sorted({*_MEMBERS, *_SHORT}))
            text = f"{name[:40]!r} is no member of a post: there are {known}{answer_advice(name)}"
            raise FeedError(Condition.INVALID_PAYLOAD, text)
        members[full_name] = _tags(member) if full_name == "tags" else member
    address = members.get("url")
    if isinstance(address, str) and address:
        checked_address(address, LINK)
    return read_item(members)


def _tags(value: Json) -> Json:
    """Tags as an array; the reader of JSON Feed leaves out others without a warning."""
    if isinstance(value, str):
        return list(split_tags([value]))
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise FeedError(Condition.INVALID_PAYLOAD, "tags is an array of texts")
    return value
