"""Locks of databases and folders: exclusive, named, and gone with the process that held them."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smartfeeds.errors import StoreError
from smartfeeds.store import lock
from smartfeeds.store.lock import LockHeldError, database_holder, lock_database, lock_file

HOLDER = """\
import sys
from pathlib import Path
from smartfeeds.store.lock import lock_file
lock_file(Path(sys.argv[1]), "a test")
print("locked", flush=True)
sys.stdin.read()
"""


def test_second_lock_names_the_holder(tmp_path: Path) -> None:
    release = lock_file(tmp_path / "lock", "a test")

    with pytest.raises(LockHeldError, match=rf"^process {os.getpid()} \(a test\)$"):
        lock_file(tmp_path / "lock", "another test")
    release()

    assert not (tmp_path / "lock").exists()
    lock_file(tmp_path / "lock", "another test")()


def test_holder_of_a_database_is_named_without_taking_its_lock(tmp_path: Path) -> None:
    database = tmp_path / "feeds.db"
    assert database_holder(database) == ""
    assert list(tmp_path.iterdir()) == []

    release = lock_database(database, "a test")
    assert database_holder(database) == f"process {os.getpid()} (a test)"
    release()
    (tmp_path / "feeds.db.lock").write_text("process 1 (left behind)")
    assert database_holder(database) == ""
    lock_database(database, "a test")()


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """The file of the killed process is still there, and its text is longer than that of the next holder."""
    path = tmp_path / "lock"
    arguments = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(LockHeldError, match=f"process {process.pid} "):
            lock_file(path, "x")
        process.kill()

    assert path.exists()
    release = lock_file(path, "x")
    assert path.read_text() == f"process {os.getpid()} (x)"
    release()


def test_lock_on_a_file_that_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between open and lock the former holder has removed its file: a third process would make a new one."""
    path, removals, original = tmp_path / "lock", [True], fcntl.flock

    def flock(handle: int, operation: int) -> None:
        if removals and removals.pop():
            path.unlink()
        original(handle, operation)

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    release = lock_file(path, "a test")

    assert path.exists()
    monkeypatch.undo()
    with pytest.raises(LockHeldError):
        lock_file(path, "another test")
    release()


def test_two_names_of_a_database_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "feeds.db").touch()
    (tmp_path / "link.db").symlink_to("feeds.db")
    release = lock_database(tmp_path / "feeds.db", "feeds.example.org")

    with pytest.raises(StoreError) as failure:
        lock_database(tmp_path / "link.db", "feeds.example.org")

    release()
    assert str(failure.value) == (
        f"the database {tmp_path}/feeds.db: process {os.getpid()} (feeds.example.org) is using it; "
        "stop that process or choose another store.url"
    )


def test_lock_that_cannot_be_written_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file or directory; check that the directory exists"):
        lock_database(tmp_path / "none" / "feeds.db", "x")


def test_lock_on_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_handle: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lock.os, "write", write)
    with pytest.raises(StoreError, match=r"no space left on device; .* its disk has room"):
        lock_database(tmp_path / "feeds.db", "x")
    assert list(tmp_path.iterdir()) == []
