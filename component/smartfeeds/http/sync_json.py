"""Sync data in JSON: the member `sync` of an activity (FeedSync 2.4 to 2.6, SSE 2.3 to 5.2; A-35).

It has the data of sx:sync for readers, without foreign markup in sx:sync; nothing can be published with it. An item
stored as SSE has `version` instead of the `updates` of FeedSync, and its history has no sequences. Flags that are not
set are omitted.
"""

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.formats.plain_activity import write_item
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import Flag, HistoryRecord, Version

MEMBER = "sync"


def write_shared(item: Item, *, comments: bool = False) -> bytes:
    """An item with its sync data as an activity. The payload of the item has sx:sync."""
    sync_item = read_item(parse_stored(item.payload))
    if sync_item is None:
        return write_item(item, comments=comments)
    return write_version(item, sync_item.dialect, sync_item.version, comments=comments)


def write_version(item: Item, dialect: Dialect, version: Version, *, comments: bool = False) -> bytes:
    """A version of an item as an activity: the winner with its conflicts, or a conflict."""
    payload, deleted = version.payload, version.deleted.on
    activity = write_item(item._replace(payload=payload, deleted=deleted), comments=comments)
    sync = dump_json(_sync(version, dialect))
    if version.conflicts:
        inside = b",".join([write_version(item, dialect, loser, comments=comments) for loser in version.conflicts])
        sync = sync[:-1] + b',"conflicts":[' + inside + b"]}"
    return activity[:-1] + b',"' + MEMBER.encode() + b'":' + sync + b"}"


def _sync(version: Version, dialect: Dialect) -> JsonObject:
    members: JsonObject = {"id": version.sync_id, dialect.counter: version.counter}
    flags = {"deleted": version.deleted, "noconflicts": version.noconflicts, "conflict": version.conflict}
    members.update({name: flag.on for name, flag in flags.items() if flag in (Flag.TRUE, Flag.FALSE)})
    members["history"] = [_stamp(stamp, numbered=dialect is FEEDSYNC) for stamp in version.history]
    return members


def _stamp(stamp: HistoryRecord, *, numbered: bool) -> JsonObject:
    members: JsonObject = {"sequence": stamp.sequence} if numbered else {}
    if stamp.when_us is not None:
        members["when"] = format_datetime(stamp.when_us)
    if stamp.by:
        members["by"] = stamp.by
    return members
