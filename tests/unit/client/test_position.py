"""Positions as text and in files."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.client import FileStore
from smartfeeds.client.position import BEGINNING, FollowPosition, bare, parse_position
from smartfeeds.errors import StoreError


@given(st.builds(FollowPosition, st.text(), st.none() | st.integers(), st.lists(st.text()).map(tuple)))
def test_position_written_is_read_again(position: FollowPosition) -> None:
    """[SF-027]: whatever text the cursor is."""
    assert parse_position(str(position)) == position


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("1304942401_0_71beeff9", "1304942401_0_71beeff9"),
        ("cursor:1304942401_0_71beeff9", "1304942401_0_71beeff9"),
        ("c1304942400_0_e8b7be43", "c1304942400_0_e8b7be43"),
        ("427", "427"),
        ("null", "null"),
        ("[1]", "[1]"),
        ("{}", "{}"),
        ('{"cursor":1}', '{"cursor":1}'),
        ("{", "{"),
        ("", ""),
    ],
)
def test_position_of_any_other_text_is_a_cursor(text: str, cursor: str) -> None:
    """[SF-027] (A-15)"""
    assert parse_position(text) == FollowPosition(cursor)


def test_position_with_odd_fields_keeps_its_cursor() -> None:
    """[SF-027]"""
    assert parse_position('{"cursor":"5","total":"many","handed":7}') == FollowPosition("5")


def test_bare_takes_the_type_off() -> None:
    """[SF-027] (A-15)"""
    assert bare("cursor:cursor:x") == "cursor:x"
    assert bare("x") == "x"


def test_file_store_keeps_a_position_whole(tmp_path: Path) -> None:
    """[SF-045]"""
    store = FileStore(tmp_path / "position")
    assert store.load() is None
    store.save(str(BEGINNING))
    store.save("é")

    assert FileStore(store.path).load() == "é"
    assert list(tmp_path.iterdir()) == [store.path]


def test_file_store_that_cannot_replace_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-045]: a crash or a full disk leaves the old position."""
    store = FileStore(tmp_path / "position")
    store.save("old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        store.save("new")

    assert store.load() == "old"
    assert list(tmp_path.iterdir()) == [store.path]


def test_file_store_in_a_missing_folder_raises_an_error(tmp_path: Path) -> None:
    """[SF-045]"""
    with pytest.raises(StoreError, match="cannot write the position"):
        FileStore(tmp_path / "none" / "position").save("x")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_unreadable_file_store_raises_an_error(tmp_path: Path, content: bytes | None) -> None:
    """[SF-045]: reading it as no position would skip what came meanwhile."""
    path = tmp_path / "position"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)

    with pytest.raises(StoreError, match="cannot read the position"):
        FileStore(path).load()


def test_file_store_of_an_empty_file_has_none(tmp_path: Path) -> None:
    """[SF-045]"""
    (tmp_path / "position").write_text("\n")

    assert FileStore(tmp_path / "position").load() is None


def test_file_store_over_a_special_file_leaves_it(tmp_path: Path) -> None:
    """[SF-045]: for root, the file would take the place of a device."""
    os.mkfifo(tmp_path / "position")

    with pytest.raises(StoreError, match="not a regular file"):
        FileStore(tmp_path / "position").save("x")
    assert (tmp_path / "position").is_fifo()
