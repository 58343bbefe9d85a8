"""Results of an outline in a file, so that the next run of a command can recycle them (ESS-019)."""

import json
from collections.abc import Mapping
from typing import Any, Final

from smartfeeds.errors import FeedError
from smartfeeds.formats.ess import NnoEntry
from smartfeeds.formats.items import ImportedItem
from smartfeeds.formats.nno import Wanted
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sources.nno import Found

VERSION: Final = 1


def dump_results(known: Mapping[Wanted, Found]) -> bytes:
    """The results as JSON."""
    rows = [
        {
            "feed": wanted.entry.feed_url,
            "time_s": wanted.entry.time_s,
            "checksum": wanted.entry.checksum,
            "turn": wanted.turn,
            "feed_id": found.feed_id,
            "feed_title": found.feed_title,
            "updated": found.updated,
            "id": found.item.id,
            "published_us": found.item.published_us,
            "updated_us": found.item.updated_us,
            "payload": found.item.payload.decode(),
        }
        for wanted, found in known.items()
    ]
    return json.dumps({"version": VERSION, "results": rows}, indent=1).encode() + b"\n"


def load_results(data: bytes) -> dict[Wanted, Found]:
    """What `dump_results` wrote. Raises ValueError for anything else."""
    try:
        content = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError("it is of another version")
        return dict(map(_result, content["results"]))
    except (KeyError, TypeError, AttributeError, RecursionError, FeedError) as error:
        raise ValueError(f"it holds something else: {type(error).__name__}") from None


def _result(row: dict[str, Any]) -> tuple[Wanted, Found]:
    feed = _text(row["feed"])
    payload = _text(row["payload"]).encode()
    parse_stored(payload)
    item = ImportedItem(_text(row["id"]), _time(row["published_us"]), _time(row["updated_us"]), payload)
    entry = NnoEntry(feed, _number(row["time_s"]), _number(row["checksum"]))
    found = Found(feed, item, _text(row["feed_id"]), _text(row["feed_title"]), updated=row["updated"] is True)
    return Wanted(entry, _number(row["turn"])), found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _time(value: object) -> int | None:
    return None if value is None else _number(value)
