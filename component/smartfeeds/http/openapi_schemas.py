"""JSON Schemas of the bodies of the HTTP side (JSON Schema 2020-12; SF-060 to SF-065; RFC 9457; A-18, A-35).

pydantic could derive them from typed dictionaries. That is half as much code again (193 lines for 132), takes 77 ms
instead of 7 and 4.5 MB of memory, and no body is made of such types: pages are joins of stored bytes.
"""

from collections.abc import Mapping
from typing import Any

from smartfeeds.core.jid import JID_PATTERN, PART_LIMIT_BYTES
from smartfeeds.core.model import Affiliation, NodeKind
from smartfeeds.core.options import EVERY_CHOICE, LISTS, OPTIONS, FieldType
from smartfeeds.core.times import DURATION, PLAIN_SECOND, PLAIN_ZONE
from smartfeeds.core.token import ALL_FEEDS
from smartfeeds.errors import Condition
from smartfeeds.http.options_json import KIND_NAME
from smartfeeds.sync.moves import MoveStep
from smartfeeds.sync.record import MAX_NUMBER

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
# An XMPP address. Other addresses that stringprep (RFC 6122) rejects match, too: a pattern has no tables of Unicode.
JID: Schema = TEXT | {"maxLength": 3 * PART_LIMIT_BYTES + 2, "pattern": f"^{JID_PATTERN}$"}
DATE: Schema = {"type": "string", "format": "date-time"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER}
_DATE_TIME = f"{PLAIN_SECOND}(\\.[0-9]{{1,6}})?{PLAIN_ZONE}"
AFFILIATIONS = tuple(affiliation.value for affiliation in Affiliation)
_RATE: Schema = {"type": "number", "minimum": 0}
LIFETIME: Schema = {"type": "string", "pattern": f"^({DURATION})?$"}
TAGS: Schema = {"type": "array", "items": {"type": "string"}}
_OF_TYPE: Mapping[FieldType, Schema] = {
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.TEXT_SINGLE: {"type": ["string", "integer"]},
    **{kind: {"type": "array", "items": {"type": "string"}} for kind in LISTS},
}


def ref(name: str) -> Schema:
    """A reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def exactly(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with the required members, perhaps the optional ones, and no others."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def place_schema(pattern: str) -> Schema:
    """The position of a page in a list, whose text has this pattern; the empty text is the beginning."""
    return {"type": "string", "pattern": f"^({pattern})?$"}


def many(schema: Schema) -> Schema:
    """An array that is omitted if it is empty."""
    return {"type": "array", "minItems": 1, "items": schema}


def page_of(item: str, description: str) -> Schema:
    """A page of a list of these items."""
    required = {"count": COUNT, "totalItems": COUNT, "url": TEXT, "items": {"type": "array", "items": ref(item)}}
    return {**exactly(required, {"next": TEXT}), "description": description}


# Texts by name.
_ADDRESSES: Schema = {"type": "object", "additionalProperties": TEXT}


def _options() -> dict[str, Schema]:
    """The options of a node by name, from the table `core.options.OPTIONS`."""
    return {
        name: {
            **(_OF_TYPE.get(option.type) or {"enum": list(option.choices(EVERY_CHOICE))}),
            "description": option.label,
        }
        for name, option in OPTIONS.items()
    }


_OPTION_MEMBERS = {KIND_NAME: {"enum": [kind.value for kind in NodeKind]}, **_options()}

SCHEMAS: Mapping[str, Schema] = {
    "Collection": {
        **exactly(
            {
                "count": {**COUNT, "description": "number of items in this page"},
                "url": {**TEXT, "description": "address of the feed with its view, without the parameters of the pull"},
                "items": {"type": "array", "items": ref("Item"), "description": "oldest first"},
            },
            {
                "totalItems": {
                    **COUNT,
                    "description": "items in the view; omitted if a filtered view has too many items to count",
                },
                "last_cursor": {**TEXT, "description": "position to continue from: ?since=cursor:LAST_CURSOR"},
                "next": {**TEXT, "description": "address of the next page; omitted if there are no more items now"},
            },
        ),
        "description": "A page of a feed: a collection of ActivityStreams 1.0.",
    },
    "List": page_of("Listed", "A page of the list of feeds."),
    "Listed": exactly(
        {
            "id": {**TEXT, "description": "the name of the feed"},
            "objectType": {"const": "collection"},
            "title": TEXT,
            "url": TEXT,
            "published": DATE,
            "updated": DATE,
            "links": many(exactly({"rel": {"const": "alternate"}, "href": TEXT}, {"type": TEXT})),
        },
        {"summary": TEXT},
    ),
    "Item": {"oneOf": [ref("Activity"), ref("Tombstone")]},
    "Activity": exactly(
        {"id": {"type": "string"}, "published": DATE, "updated": DATE, "verb": TEXT, "object": ref("Object")},
        {"title": TEXT, "actor": ref("Actor"), "sync": ref("Sync")},
    ),
    "Tombstone": exactly(
        {"id": {"type": "string"}, "updated": DATE, "deleted": {"const": True}},
        {
            "left": {"const": True, "description": "the item is not deleted: it no longer matches the view"},
            "sync": ref("Sync"),
        },
    ),
    "Sync": {
        **exactly(
            {"id": TEXT, "history": many(exactly({}, {"sequence": NUMBER, "when": DATE, "by": TEXT}))},
            {
                "updates": {**NUMBER, "description": "number of changes, for FeedSync"},
                "version": {**NUMBER, "description": "number of changes, for SSE"},
                "deleted": {"type": "boolean"},
                "noconflicts": {"type": "boolean"},
                "conflict": {"type": "boolean"},
                "conflicts": many(ref("Item")),
            },
        ),
        "oneOf": [{"required": ["updates"]}, {"required": ["version"]}],
        "description": "With sync=true: who changed the item and when, newest first, and the versions in conflict.",
    },
    "Actor": exactly({"objectType": {"const": "person"}, "displayName": {"type": "string"}}, {"id": TEXT, "url": TEXT}),
    "Object": exactly(
        {"objectType": TEXT},
        {
            "id": TEXT,
            "url": TEXT,
            "displayName": TEXT,
            "summary": TEXT,
            "content": TEXT,
            "contentType": {"const": "text/html", "description": "content is HTML; without it, plain text"},
            "language": TEXT,
            "attachments": many(ref("Attachment")),
            "tags": many(
                exactly({"objectType": {"const": "category"}}, {"displayName": TEXT, "scheme": TEXT, "label": TEXT})
            ),
            "inReplyTo": many(exactly({}, {"id": TEXT, "url": TEXT})),
            "source": exactly({}, {"displayName": TEXT, "url": TEXT}),
        },
    ),
    "Attachment": exactly(
        {"objectType": {"enum": ["audio", "image", "video", "file"]}},
        {"displayName": TEXT, "url": TEXT, "mimeType": TEXT, "length": {"type": ["integer", "string"]}},
    ),
    "Move": {
        "oneOf": [
            exactly({"step": {"enum": [step.value for step in MoveStep], "description": "a move by one step"}}),
            {
                "type": "object",
                "properties": {
                    "parent": {
                        "type": "string",
                        "description": "id of the item to move into, empty for none; default: the present one",
                    },
                    "after": {
                        "type": "string",
                        "description": "id of the item to move behind, empty to be the first; default: the last one",
                    },
                },
                "minProperties": 1,
                "additionalProperties": False,
            },
        ]
    },
    "Requirements": exactly(
        {
            "name": TEXT,
            "title": TEXT,
            "url": {**TEXT, "description": "the base URL of the view"},
            "pull": {**_ADDRESSES, "description": "addresses of pages by media type, which the Accept header selects"},
            "stream": {**_ADDRESSES, "description": "the address of the event stream by media type"},
            "documents": {**_ADDRESSES, "description": "documents with the newest items, by suffix"},
            "sync": {**_ADDRESSES, "description": "the same with sync data (FeedSync, SSE), by suffix"},
            "complete": {**_ADDRESSES, "description": "all items with sync data in one document, by suffix"},
            "item": {**TEXT, "description": "the address of an item (RFC 6570)"},
            "xmpp": exactly({"jid": JID, "node": TEXT, "uri": TEXT}),
            "positions": {**many(TEXT), "description": "the kinds of positions in since and until"},
            "orders": many(TEXT),
            "parameters": {**_ADDRESSES, "description": "parameters of a view, with their meaning"},
            "itemFormat": {**TEXT, "description": "the namespace of the items"},
        },
        {
            "push": {
                **exactly({"hub": TEXT, "topic": TEXT}),
                "description": "where to subscribe to the view, and under which address (WebSub)",
            }
        },
    ),
    "Problem": {
        **exactly(
            {"title": TEXT, "status": {"type": "integer", "minimum": 400, "maximum": 599}},
            {
                "detail": {**TEXT, "description": "the reason, and what to do"},
                "error": {**TEXT, "description": "for Micropub: the name of the error"},
                "error_description": {**TEXT, "description": "for Micropub: the same as detail"},
                "condition": {
                    "enum": [condition.value for condition in Condition],
                    "description": "the error condition over XMPP",
                },
                "reasons": {
                    "type": "object",
                    "additionalProperties": TEXT,
                    "description": "for /readyz: the reason for each part that does not work",
                },
            },
        ),
        "description": "RFC 9457.",
    },
    "Position": {
        "type": "string",
        "pattern": f"^(|cursor:[!-~]{{1,200}}|time:((0|[1-9][0-9]{{0,9}})(\\.[0-9]{{1,6}})?|{_DATE_TIME}))$",
        "description": (
            "cursor:..., time:... (a date-time with a zone, or Unix seconds); empty for the end of the feed from which "
            "the page begins. Where items do not move (order=created), id:... with the id of an item is a position too"
        ),
        "examples": ["cursor:1304942400_0_82079eb1", "time:2026-01-02T10:00:00Z"],
    },
    "Options": {
        "type": "object",
        "description": "options of the node without the prefix pubsub#, and its kind",
        "properties": _OPTION_MEMBERS,
        "additionalProperties": False,
        "examples": [{"title": "News", "access_model": "open"}],
    },
    "OptionChanges": {
        "type": "object",
        "properties": {name: {"anyOf": [schema, {"type": "null"}]} for name, schema in _OPTION_MEMBERS.items()},
        "additionalProperties": False,
        "description": "options of the node without the prefix pubsub#; null restores the default",
        "examples": [{"title": "News", "description": None}],
    },
    "Rows": exactly(
        {"count": COUNT, "items": {"type": "array", "items": {"type": "object"}}},
        {"totalItems": COUNT, "next": {**TEXT, "description": "address of the next page"}},
    ),
    "Member": exactly({"affiliation": {"enum": list(AFFILIATIONS)}}),
    "Retry": exactly({"consumer": {**TEXT, "description": f"the name of a consumer, or {ALL_FEEDS} for all"}}),
    "Statistics": exactly(
        {
            **dict.fromkeys(("nodes", "items", "deleted", "subscriptions", "requests", "notifications"), COUNT),
            "uptime_s": _RATE,
            "rates": exactly(
                dict.fromkeys(("published", "notified", "pulled", "refused"), _RATE),
            ),
        }
    ),
}
