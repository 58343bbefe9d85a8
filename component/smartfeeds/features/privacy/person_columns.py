"""The columns of the schema that are texts or BLOBs, and what an erasure does with a JID in them.

A test compares this table with the schema, so a new column must be named here. The table `letter` is not in the schema
(features/cluster/lock_session.py). It has stanzas for a minute, and `features/privacy/postgres_scrub.py` removes them.
"""

from collections.abc import Mapping
from enum import Enum


class JidUse(Enum):
    """How a column may hold the JID of a person, and what an erasure does with it."""

    NONE = "cannot hold a JID that a person chose"
    OWN = "the use cases of the erasure change it (features/privacy/erasing.py)"
    ROW = "the row is the person's, and is removed at once"
    MENTION = "the row is removed after the followers have received the deletions, if it names the person"
    TEXT = "the JID is replaced by the address of the service"
    NODE = "the name of a node, which cannot change; the report counts live nodes that are named after the person"


_OWN, _ROW, _MENTION, _TEXT, _NODE = JidUse.OWN, JidUse.ROW, JidUse.MENTION, JidUse.TEXT, JidUse.NODE

# table -> column -> use; the columns of NOT_PERSONAL are left out.
PERSON_COLUMNS: Mapping[str, Mapping[str, JidUse]] = {
    "node": {"name": _NODE, "creator": _OWN, "options": _TEXT},
    "item": {"id": _OWN, "publisher": _OWN, "payload": _OWN, "sync_id": _OWN, "sync": _OWN},
    "affiliation": {"jid": _OWN, "hidden": _NODE},
    "subscription": {
        "jid": _OWN, "bare": _OWN, "view": _MENTION, "node_text": _MENTION, "service": _MENTION, "options": _TEXT,
    },
    "event": {"data": _MENTION, "recipient": _ROW},
    "purge": {"actor": _TEXT},
    "mark": {"consumer": _MENTION},
    "failure": {"consumer": _MENTION, "error": _TEXT},
    "batch": {"consumer": _MENTION},
    "token": {"jid": _ROW, "feed": _MENTION, "label": _TEXT},
    "session": {"jid": _ROW, "feed": _MENTION, "label": _TEXT},
    "contact": {"address": _OWN, "jid": _OWN},
    "request_form": {"whom": _MENTION},
    "mirror": {"settings": _OWN, "state": _TEXT},
    "redirect": {"name": _MENTION, "uri": _MENTION, "creator": _TEXT},
    "document": {"reader": _MENTION, "url": _MENTION, "source_url": _MENTION, "content": _MENTION},
    "chat": {"jid": _ROW, "settings": _TEXT},
    "callback": {
        "url": _MENTION, "topic": _MENTION, "reader": _ROW, "settings": _TEXT, "question": _TEXT, "result": _TEXT,
    },
    "source": {
        "node": _NODE, "first_url": _OWN, "url": _OWN, "owner": _TEXT, "reason": _TEXT, "settings": _TEXT,
        "progress": _TEXT,
    },
    "source_entry": {"link": _TEXT, "item_id": _TEXT},
    "source_push": {"reason": _TEXT, "url": _TEXT, "details": _TEXT},
    "enclosure": {"url": _MENTION, "reason": _TEXT},
    "enclosure_use": {"item_id": _MENTION, "node": _MENTION},
    "arrival": {"node": _MENTION, "item_id": _MENTION, "url": _MENTION, "reason": _TEXT},
    "file": {"name": _TEXT, "owner": _OWN},
    "facet": {"facet": _OWN},
    "word": {"tokens": _OWN},
    "erasure": {"digest": _OWN, "jid": _OWN, "report": _OWN},
    "block": {"name": _OWN},
}  # fmt: skip

# Versions, names of states, digests of secrets, times and headers of other servers, host names.
NOT_PERSONAL: Mapping[str, frozenset[str]] = {
    "alembic_version": frozenset({"version_num"}),
    "compatibility": frozenset({"oldest"}),
    "tally": frozenset({"name"}),
    "node": frozenset({"kind", "state"}),
    "affiliation": frozenset({"affiliation"}),
    "subscription": frozenset({"state"}),
    "event": frozenset({"kind"}),
    "mark": frozenset({"ord", "cursor"}),
    "token": frozenset({"token_id", "digest", "scope"}),
    "session": frozenset({"session_id", "digest", "scope", "token_id"}),
    "contact": frozenset({"state"}),
    "mirror": frozenset({"name"}),
    "document": frozenset({"etag", "last_modified"}),
    "callback": frozenset({"kind", "host", "token_id"}),
    "source": frozenset({"host", "state"}),
    "source_entry": frozenset({"identity", "digest"}),
    "source_host": frozenset({"host"}),
    "source_push": frozenset({"token", "state", "host"}),
    "enclosure": frozenset({"host", "digest", "media_type", "state", "etag", "modified", "condition"}),
    "file": frozenset({"file_id", "digest", "media_type"}),
    "file_use": frozenset({"file_id"}),
    "erasure": frozenset({"phase"}),
    "block": frozenset({"kind"}),
    "salt": frozenset({"salt"}),
}


def columns_for(use: JidUse) -> list[tuple[str, str]]:
    """Returns the tables and columns with this use."""
    return [
        (table, column) for table, columns in PERSON_COLUMNS.items() for column in columns if columns[column] is use
    ]
