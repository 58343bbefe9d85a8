"""Full entries of an outline as JSON, so that a later run recycles them (ESS-019)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from smartfeeds.errors import FeedError
from smartfeeds.features.documents.ess import NnoEntry
from smartfeeds.features.nno.entries import EntryRequest
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.payload import Payload, shape_of
from smartfeeds.formats.xml import parse_stored

T = TypeVar("T")

VERSION: Final = 1  # of this form; results of another version are not read


@dataclass(frozen=True, slots=True)
class FullEntry:
    """An entry of an outline with its content: the feed it is from, and the item.

    `updated` marks an entry that has another time than before (ESS-021).
    """

    feed_url: str
    item: ImportedItem
    feed_id: str = ""
    feed_title: str = ""
    updated: bool = False


def dump_results(known: Mapping[EntryRequest, FullEntry], missing: Iterable[EntryRequest] = ()) -> bytes:
    """The full entries as JSON, and the entries that are not in their feeds."""
    rows = [
        _key(request)
        | {
            "feed_id": full.feed_id,
            "feed_title": full.feed_title,
            "updated": full.updated,
            "id": full.item.id,
            "published_us": full.item.published_us,
            "updated_us": full.item.updated_us,
            "payload": full.item.payload.decode(),
        }
        for request, full in known.items()
    ]
    content = {"version": VERSION, "results": rows, "missing": [_key(request) for request in missing]}
    return json.dumps(content, indent=1).encode() + b"\n"


def load_results(data: bytes) -> tuple[dict[EntryRequest, FullEntry], frozenset[EntryRequest]]:
    """The arguments of `dump_results`. Raises ValueError for anything that it did not write."""
    try:
        content = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError("it is of another version")
        return dict(map(_result, content["results"])), frozenset(map(_request, content.get("missing", ())))
    except (KeyError, TypeError, AttributeError, RecursionError, FeedError) as error:
        raise ValueError(f"it holds something else: {type(error).__name__}") from None


def _key(request: EntryRequest) -> dict[str, object]:
    entry = request.entry
    return {"feed": entry.feed_url, "time_s": entry.time_s, "checksum": entry.checksum, "turn": request.turn}


def _request(row: dict[str, Any]) -> EntryRequest:
    entry = NnoEntry(_typed(row["feed"], str), _typed(row["time_s"], int), _typed(row["checksum"], int))
    return EntryRequest(entry, _typed(row["turn"], int))


def _result(row: dict[str, Any]) -> tuple[EntryRequest, FullEntry]:
    request = _request(row)
    payload = Payload(_typed(row["payload"], str).encode())
    payload.shape = shape_of(parse_stored(payload))
    item = ImportedItem(_typed(row["id"], str), _time(row["published_us"]), _time(row["updated_us"]), payload)
    feed_id, feed_title = _typed(row["feed_id"], str), _typed(row["feed_title"], str)
    return request, FullEntry(request.entry.feed_url, item, feed_id, feed_title, updated=row["updated"] is True)


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _time(value: object) -> int | None:
    return None if value is None else _typed(value, int)
