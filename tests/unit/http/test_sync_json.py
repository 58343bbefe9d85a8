"""Versions of items as JSON: what the member sync says, and what it leaves out."""

import json
from typing import Any

import pytest

from smartfeeds.core.model import Item
from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS, with_child
from smartfeeds.http.sync_json import write_shared, write_version
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import Flag, ForeignMarkup, HistoryRecord, Version
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_item

KEY_US = 1_767_225_600_000_000
WHEN = "2026-01-01T00:00:00Z"


def payload(title: str) -> bytes:
    return f'<entry xmlns="{ATOM_NS}"><id>urn:x:1</id><title>{title}</title></entry>'.encode()


def item(data: bytes, *, deleted: bool = False) -> Item:
    return Item(1, "i1", KEY_US, KEY_US, data, "a@b.example")._replace(deleted=deleted)


def version(title: str = "t", **more: Any) -> Version:
    return Version("i1", 2, (HistoryRecord(2, KEY_US, "b"), HistoryRecord(1, None, "a")), payload(title), **more)


def told(of: Version, dialect: Dialect = FEEDSYNC) -> dict[str, Any]:
    """The member sync of an item that is stored and shown like this."""
    shown = json.loads(write_shared(item(write_item(of, dialect), deleted=of.deleted.on)))
    sync: dict[str, Any] = shown["sync"]
    return sync


def test_record_says_what_it_has() -> None:
    """[FS-033] [FS-037] A record without a time or without an endpoint lacks that member."""
    found = told(
        Version(
            "i1",
            3,
            (HistoryRecord(3, KEY_US, "b"), HistoryRecord(2, None, "a"), HistoryRecord(1, KEY_US)),
            payload("t"),
        )
    )
    assert found["history"] == [
        {"sequence": 3, "when": WHEN, "by": "b"},
        {"sequence": 2, "by": "a"},
        {"sequence": 1, "when": WHEN},
    ]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, {}),
        ({"deleted": Flag.TRUE}, {"deleted": True}),
        ({"deleted": Flag.FALSE, "noconflicts": Flag.TRUE}, {"deleted": False, "noconflicts": True}),
    ],
)
def test_flags_are_told_where_they_are_set(flags: dict[str, Flag], expected: dict[str, bool]) -> None:
    """[FS-030] [FS-031] true, false, or nothing."""
    found = told(version(**flags))
    assert {name: value for name, value in found.items() if isinstance(value, bool)} == expected


def test_sse_has_a_version_and_its_conflicts_are_versions_too() -> None:
    """[SSE-016] [SSE-046] [SSE-048] What sx:conflict has of a loser: its version, when and by, and its content."""
    loser = Version("i1", 1, (HistoryRecord(1, KEY_US, "c"),), payload("loser"))
    found = told(version(conflict=Flag.TRUE, conflicts=(loser,)), SSE)
    (other,) = found.pop("conflicts")
    assert found == {
        "id": "i1",
        "version": 2,
        "conflict": True,
        "history": [{"when": WHEN, "by": "b"}, {"by": "a"}],
    }
    assert other["title"] == "loser"
    assert other["sync"] == {"id": "i1", "version": 1, "history": [{"when": WHEN, "by": "c"}]}


def test_deleted_conflict_is_a_tombstone() -> None:
    """[FS-039] [A-18] The winner is live and the loser is not."""
    shown = json.loads(write_shared(item(write_item(version(conflicts=(version("x", deleted=Flag.TRUE),)), FEEDSYNC))))
    (other,) = shown["sync"]["conflicts"]
    assert "deleted" not in shown and (other["deleted"], "object" in other) == (True, False)


def test_conflict_of_an_item_is_an_activity_of_its_own() -> None:
    """[FS-039] A version without the others is the same activity, wherever it stands."""
    one, other = version("one"), version("other")
    whole = json.loads(write_version(item(b""), FEEDSYNC, version("one", conflicts=(other,))))
    assert whole["sync"].pop("conflicts") == [json.loads(write_version(item(b""), FEEDSYNC, other))]
    assert whole == json.loads(write_version(item(b""), FEEDSYNC, one))


def test_markup_of_others_stays_in_atom() -> None:
    """[FS-012] JSON is for reading."""
    extra = ForeignMarkup((("{urn:x}y", "z"),), (b'<x:y xmlns:x="urn:x"></x:y>',))
    assert told(version(extra=extra)).keys() == {"id", "updates", "history"}


def test_item_without_sync_data_is_what_it_always_was() -> None:
    """[FS-024] There is nothing to tell."""
    assert "sync" not in json.loads(write_shared(item(payload("t"))))
    mark = f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="i1" updates="1"><sx:history sequence="1" by="a"/></sx:sync>'
    assert "sync" in json.loads(write_shared(item(with_child(payload("t"), mark.encode()))))
