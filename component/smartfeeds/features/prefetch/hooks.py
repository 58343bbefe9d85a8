"""What prefetch adds to the use cases of the kernel: loaded files, and data of persons (`service.hooks`)."""

from smartfeeds.features.prefetch.local_files import local_files_of
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
HOOKS = Hooks(local_files=(local_files_of,), personal=(Personal(TABLES),))
