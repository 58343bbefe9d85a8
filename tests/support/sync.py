"""Versions for tests, short: the golden records, and histories as texts."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smartfeeds.core.times import parse_datetime
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.markup import SyncItem, read_item
from smartfeeds.sync.record import Flag, HistoryRecord, Version

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "sync" / "golden.json").read_text("utf-8"))
CORPUS = Path(__file__).parents[1] / "corpus" / "data"


@dataclass(slots=True)
class MemorySpool:
    """A `smartfeeds.sync.joining.Spool` in memory."""

    data: bytearray = field(default_factory=bytearray)

    def append(self, data: bytes) -> int:
        self.data += data
        return len(self.data) - len(data)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])


def parse_item(raw: bytes, *, lenient: bool = False) -> SyncItem | None:
    """The sync data of bytes that hold one item."""
    return read_item(parse_stored(raw), lenient=lenient)


def at(text: str | None) -> int | None:
    """A time in microseconds; "12:03" is one of the day of the examples."""
    if text is None:
        return None
    return parse_datetime(text if "T" in text else f"2005-05-21T{text}:33Z")


def stamp(text: str) -> HistoryRecord:
    """ "4 12:03 JEO" is sequence, time and endpoint; "-" is what is not there."""
    sequence, when, by = text.split()
    return HistoryRecord(int(sequence), None if when == "-" else at(when), "" if by == "-" else by)


def version(counter: int, *history: str, data: str = "", conflicts: tuple[Version, ...] = (), **rest: Any) -> Version:
    """A version of the item i1."""
    return Version("i1", counter, tuple(map(stamp, history)), data.encode(), conflicts=conflicts, **rest)


def feedsync_golden(record: dict[str, Any] | None) -> Version | None:
    """A record of the golden FeedSync merges."""
    if record is None:
        return None
    return Version(
        record["id"],
        record["updates"],
        tuple(HistoryRecord(row["sequence"], at(row.get("when")), row.get("by", "")) for row in record["history"]),
        record["data"].encode(),
        deleted=Flag.TRUE if record["deleted"] else Flag.ABSENT,
        noconflicts=Flag.TRUE if record["noconflicts"] else Flag.ABSENT,
        conflicts=tuple(one for each in record["conflicts"] if (one := feedsync_golden(each)) is not None),
    )


def sse_golden(record: dict[str, Any] | None) -> Version | None:
    """A record of the golden SSE merges."""
    if record is None:
        return None
    records = [(record["when"], record["by"]), *record["updates"]]
    return Version(
        record["id"],
        record["version"],
        tuple(HistoryRecord(record["version"] - k, _date(when), by or "") for k, (when, by) in enumerate(records)),
        record["data"].encode(),
        deleted=Flag.TRUE if record["deleted"] else Flag.ABSENT,
        conflict=Flag.TRUE if record["conflict"] else Flag.ABSENT,
        conflicts=tuple(
            Version(
                "s1",
                rival["version"],
                (HistoryRecord(rival["version"], _date(rival["when"]), rival["by"] or ""),),
                rival["data"].encode(),
            )
            for rival in record["conflicts"]
        ),
    )


def _date(text: str | None) -> int | None:
    return None if text is None else parse_date(text)
