"""Data of persons in enclosures and in the log of arrivals (`service.personal`)."""

from smartfeeds.service.hooks import Hooks
from smartfeeds.service.personal import MENTION, TEXT, Personal, PersonalTable

TABLES = (
    PersonalTable(
        "enclosure",
        "enclosure_no",
        {"url": MENTION, "reason": TEXT},
        frozenset({"host", "digest", "media_type", "state", "etag", "modified", "condition"}),
    ),
    PersonalTable("enclosure_use", "enclosure_no, source_no, item_id", {"item_id": MENTION, "node": MENTION}),
    PersonalTable("arrival", "arrival_no", {"node": MENTION, "item_id": MENTION, "url": MENTION, "reason": TEXT}),
)
HOOKS = Hooks(personal=(Personal(TABLES),))
