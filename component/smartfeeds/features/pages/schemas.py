"""JSON Schemas of the river and of the search (JSON Schema 2020-12)."""

from collections.abc import Mapping

from smartfeeds.http.openapi_schemas import COUNT, TEXT, Schema, exactly, ref

SCHEMAS: Mapping[str, Schema] = {
    "River": {
        **exactly(
            {"count": COUNT, "url": TEXT, "items": {"type": "array", "items": ref("FeedEntry")}},
            {"next": {**TEXT, "description": "address of the page with older entries; omitted on the last page"}},
        ),
        "description": "A page of the entries of all feeds, the newest first.",
    },
    "FeedEntry": exactly({"feed": ref("FeedName"), "item": ref("Item")}),
    "FeedName": exactly({"id": {**TEXT, "description": "the name of the feed"}, "title": TEXT, "url": TEXT}),
    "SearchResult": {
        **exactly(
            {
                "count": {**COUNT, "description": "number of feeds in this page"},
                "searched": {**COUNT, "description": "number of feeds that were searched for this page"},
                "url": TEXT,
                "items": {"type": "array", "items": ref("FeedHits"), "description": "the feed that changed last first"},
            },
            {"next": {**TEXT, "description": "address that searches the other feeds; omitted if there are none"}},
        ),
        "description": "A page of the search over all feeds.",
    },
    "FeedHits": exactly(
        {
            "feed": ref("FeedName"),
            "items": {"type": "array", "minItems": 1, "items": ref("Item"), "description": "the newest first"},
            "more": {"type": "boolean", "description": "the feed has other entries that match"},
            "url": {**TEXT, "description": "all entries of the feed that match"},
        }
    ),
}
