"""Files of feeds: rows that follow the items, and a folder that holds whole files only."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from smartfeeds.core.feed_files import StoredFile, file_ids, media_type_of, safe_name
from smartfeeds.errors import StoreError
from smartfeeds.features.authoring import rows as file_rows
from smartfeeds.store import file_folder
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.file_folder import ABANDONED_S, BUFFER_BYTES, LOCK, NEW, FileFolder, PendingFile, copy_files
from store.values import DIGEST, FILE_ID, add_feed, feed_file, item, link
from support.waiting import waiting

# Rows.


async def test_file_is_used_while_an_item_refers_to_it(store: Store) -> None:
    node_no = (await store.write(add_feed())).node_no

    async def unused_us() -> int | None:
        file = await store.read(lambda tx: tx.file(node_no, FILE_ID))
        assert file is not None
        return file.unused_us

    await store.write(lambda tx: file_rows.put(tx, feed_file(node_no)))
    assert await unused_us() == 1
    first = await store.write(lambda tx: tx.put_item(node_no, item("a", 10, link())))
    second = await store.write(lambda tx: tx.put_item(node_no, item("b", 11, link())))
    assert await unused_us() is None
    first = await store.write(lambda tx: tx.put_item(node_no, first._replace(modified_us=12, payload=b"| text")))
    assert await unused_us() is None, "the other item refers to it"
    await store.write(lambda tx: tx.put_item(node_no, second._replace(modified_us=13, payload=b"", deleted=True)))
    assert await unused_us() == 13
    await store.write(lambda tx: tx.put_item(node_no, first._replace(modified_us=14, sync=link().encode())))
    assert await unused_us() is None, "a conflict refers to it"


async def test_unused_files_are_listed_oldest_first(store: Store) -> None:
    node_no = (await store.write(add_feed())).node_no
    others = [
        feed_file(node_no, "bob@example.org", digest * 64)._replace(unused_us=at) for digest, at in (("c", 7), ("b", 5))
    ]

    def put(tx: WriteTx) -> None:
        for file in (feed_file(node_no)._replace(unused_us=None), *others):
            file_rows.put(tx, file)

    await store.write(put)
    assert await store.read(lambda tx: file_rows.unused(tx, 8, 9)) == others[::-1]
    assert await store.read(lambda tx: file_rows.unused(tx, 7, 9)) == others[1:]
    assert await store.read(lambda tx: file_rows.unused(tx, 8, 1)) == others[1:]
    assert await store.read(lambda tx: file_rows.files_bytes(tx, "bob@example.org")) == 10
    assert await store.read(lambda tx: file_rows.known_digests(tx, ["b" * 64, "e" * 64])) == {"b" * 64}
    await store.write(lambda tx: file_rows.remove(tx, others[0]))
    assert await store.read(lambda tx: tx.file(node_no, others[0].file_id)) is None


async def test_deleted_feed_takes_its_files_along(store: Store) -> None:
    node_no = (await store.write(add_feed(item("a", 10, link())))).node_no
    await store.write(lambda tx: file_rows.put(tx, feed_file(node_no)))
    await store.write(lambda tx: tx.retire_node(node_no))
    while not await store.write(lambda tx: tx.reap(node_no, 2)):
        pass
    assert await store.read(lambda tx: file_rows.known_digests(tx, [DIGEST])) == set()


async def test_files_of_other_feeds_do_not_count(store: Store) -> None:
    """An address in a feed that has no such file is an address of somebody else."""
    node_no = (await store.write(add_feed())).node_no
    other_no = (await store.write(add_feed(name="other"))).node_no
    await store.write(lambda tx: file_rows.put(tx, feed_file(node_no)))
    await store.write(lambda tx: tx.put_item(other_no, item("a", 10, link())))
    file = await store.read(lambda tx: tx.file(node_no, FILE_ID))
    assert file is not None and file.unused_us == 1


# Names and references.


@pytest.mark.parametrize(
    ("payload", "ids"),
    [
        (link(), {FILE_ID}),
        (f"src=&quot;https://x/sub/files/a/b%20c/{FILE_ID}&quot;", {FILE_ID}),
        (f"https://x/files/{FILE_ID}", set()),
        (f"https://x/files/news/{FILE_ID}xyz", set()),
        (f"https://x/files/news/{FILE_ID[:-5]}", set()),
        ("https://x/files/news/other.jpg", set()),
        ("no file", set()),
        # A name of 1,000 characters is three times as long when it is escaped. An expression that searches from each
        # `/files/` up to the id has to stop somewhere, or reads the second payload thousands of times.
        (f"https://x/files/{'%C3%A4' * 1_000}/{FILE_ID}", {FILE_ID}),
        (f"{'/files/x' * 8_000}/{'y' * 4_000}/{FILE_ID}", {FILE_ID}),
    ],
)
def test_references(payload: str, ids: set[str]) -> None:
    assert file_ids(payload.encode()) == ids


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\x.png", "x.png"),
        ("..", ""),
        ("/", ""),
        ("a\x00b\r\nc.txt", "a_b_c.txt"),
        ("evil\u202egpj.exe", "evil_gpj.exe"),
        (f"{'x' * 300}.jpeg", f"{'x' * 115}.jpeg"),
        ("x" * 300, "x" * 120),
        (" Grüße 1.pdf ", "Grüße 1.pdf"),
    ],
)
def test_safe_names(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_media_types_of_names() -> None:
    assert [media_type_of(name) for name in ("a.JPG", "a.b.mp3", "a.exe", "jpg", "")] == [
        "image/jpeg",
        "audio/mpeg",
        "",
        "",
        "",
    ]


# The folder.


def names(folder: FileFolder) -> list[str]:
    """All files of a folder."""
    return sorted(path.name for path in folder.path.rglob("*") if path.is_file() and path.name != LOCK)


async def stored(folder: FileFolder, data: bytes) -> StoredFile:
    """A file with these bytes."""
    async with folder.receive() as file:
        await file.write(data)
        return await file.keep()


async def test_file_has_the_name_of_its_digest(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "files")
    data = b"ab" * BUFFER_BYTES
    assert await stored(folder, data) == await stored(folder, data) == (hashlib.sha256(data).hexdigest(), len(data))
    (name,) = names(folder)
    opened = await folder.open(name)
    assert opened is not None
    with opened:
        assert opened.read() == data
    assert await folder.open("0" * 64) is None
    assert (folder.path_of(name).stat().st_mode & 0o777, folder.path.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_interrupted_file_leaves_nothing(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "files")

    async def write_half() -> None:
        async with folder.receive() as file:
            await file.write(b"x" * (BUFFER_BYTES + 1))
            assert names(folder) != []
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await write_half()
    assert names(folder) == []


async def test_start_removes_what_a_crash_left(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "files")
    await folder.clear_new()
    kept = await stored(folder, b"x")
    half, other = folder.path / NEW / "tmp1", folder.path / NEW / "tmp2"
    half.write_bytes(b"half")
    other.write_bytes(b"another process writes it now")
    former_s = time.time() - ABANDONED_S - 1
    os.utime(half, (former_s, former_s))
    await folder.clear_new()
    assert names(folder) == sorted([kept.digest, other.name])


async def test_two_processes_that_clean_keep_a_file_that_a_third_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-013] A process that cleans waits until the row of a new file is stored."""
    adding, *cleaning = [FileFolder(tmp_path / "files") for _ in range(3)]
    rows: set[str] = set()
    loop, locking = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def flock(handle: int, operation: int) -> None:
        loop.call_soon_threadsafe(locking.release)
        fcntl.flock(handle, operation)

    async def known(digests: Collection[str]) -> set[str]:
        return rows & set(digests)

    async with adding.receive() as file:
        await file.write(b"x")
        async with adding.lock:
            monkeypatch.setattr(file_folder, "fcntl", LockModule(flock))
            digest = (await file.keep()).digest
            cleaners = [asyncio.create_task(folder.remove_unknown(known)) for folder in cleaning]
            async with waiting("both processes to wait for the lock"):
                for _ in cleaners:
                    await locking.acquire()
            rows.add(digest)
    assert await asyncio.gather(*cleaners) == [0, 0]
    assert names(adding) == [digest]
    rows.clear()
    assert sorted(await asyncio.gather(*(folder.remove_unknown(known) for folder in cleaning))) == [0, 1]
    assert names(adding) == []


class LockModule:
    """Stands for the module fcntl, with another function that locks."""

    LOCK_EX = fcntl.LOCK_EX

    def __init__(self, flock: Callable[[int, int], None]) -> None:
        self.flock = flock


async def test_lock_is_free_after_a_failure(tmp_path: Path) -> None:
    """A folder that cannot be created, and a cancelled wait, leave no lock."""
    (tmp_path / "files").write_text("a file")
    blocked = FileFolder(tmp_path / "files" / "more")
    with pytest.raises(StoreError, match="cannot be locked"):
        async with blocked.lock:
            pass
    (tmp_path / "files").unlink()
    async with blocked.lock:
        assert blocked.lock.locked()
    assert not blocked.lock.locked()


async def test_files_without_rows_are_removed(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "files")
    kept, lost = [await stored(folder, data) for data in (b"1", b"2")]

    async def known(digests: Collection[str]) -> set[str]:
        assert folder.lock.locked(), "no upload stores its row meanwhile"
        return set(digests) & {kept.digest}

    assert await folder.remove_unknown(known) == 1
    assert names(folder) == [kept.digest]
    assert await folder.remove_unknown(known) == 0
    assert lost.digest != kept.digest


async def test_folder_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names the path."""
    (tmp_path / "files").write_text("a file")
    with pytest.raises(StoreError, match=str(tmp_path)):
        await stored(FileFolder(tmp_path / "files"), b"x")


async def test_backup_of_a_folder(tmp_path: Path) -> None:
    """Whole files only; a copy that was interrupted before is no obstacle."""
    folder, copy = FileFolder(tmp_path / "files"), FileFolder(tmp_path / "copy")
    assert copy_files(folder.path, copy.path) == 0
    kept = [await stored(folder, data) for data in (b"1", b"2")]
    (folder.path / NEW / "tmp1").write_bytes(b"half")
    (tmp_path / "copy.part" / "xx").mkdir(parents=True)
    assert copy_files(folder.path, copy.path) == 2
    assert names(copy) == sorted(file.digest for file in kept)
    with pytest.raises(StoreError, match="cannot be copied"):
        copy_files(folder.path, copy.path)


async def test_backup_is_on_the_disk_before_its_folder_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[CAM-003] Files and folders: a power loss must not leave a part of a file under the name of its digest."""
    folder, copy = FileFolder(tmp_path / "files"), FileFolder(tmp_path / "copy")
    kept = [await stored(folder, data) for data in (b"1", b"2")]
    synced: set[int] = set()
    fsync = os.fsync

    def note(handle: int) -> None:
        if not copy.path.exists():
            synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    copy_files(folder.path, copy.path)

    paths = [copy.path_of(file.digest) for file in kept]
    assert {part.stat().st_ino for path in paths for part in (path, path.parent)} <= synced


@pytest.mark.parametrize("step", ["_create", "_append"])
async def test_cancellation_waits_for_the_thread_and_leaves_no_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that disconnects cancels its upload while a thread creates the file or writes to it."""
    begun, proceed = asyncio.Event(), threading.Event()
    loop, work = asyncio.get_running_loop(), getattr(PendingFile, step)

    def slow(*arguments: object) -> object:
        loop.call_soon_threadsafe(begun.set)
        proceed.wait()
        return work(*arguments)

    monkeypatch.setattr(PendingFile, step, slow)
    folder = FileFolder(tmp_path / "files")

    async def upload() -> None:
        async with folder.receive() as file:
            await file.write(b"x" * BUFFER_BYTES)

    uploading = asyncio.create_task(upload())
    await begun.wait()
    uploading.cancel()
    proceed.set()
    with contextlib.suppress(asyncio.CancelledError):
        await uploading
    assert uploading.cancelled()
    assert list((folder.path / NEW).iterdir()) == []


@pytest.mark.parametrize("digest", ["../outside", "/etc/passwd", "", ".", DIGEST.upper(), f"{DIGEST}/", f"{DIGEST}\n"])
async def test_text_of_a_crafted_database_is_no_path(tmp_path: Path, digest: str) -> None:
    """[OPS-092] A restored database may name any text as the digest of a file, and readers request the file."""
    (tmp_path / "data").mkdir()
    folder = FileFolder(tmp_path / "data" / "db-files")
    await stored(folder, b"photo")
    (tmp_path / "outside").write_bytes(b"secret")

    assert await folder.open(digest) is None


@pytest.mark.parametrize("name", [f"{DIGEST[:2]}/{DIGEST}", DIGEST[:2]])
async def test_link_in_a_backup_is_refused(tmp_path: Path, name: str) -> None:
    """[OPS-092] The service would show the file that it leads to."""
    backup, outside = tmp_path / "backup-files", tmp_path / "outside"
    outside.mkdir()
    (outside / DIGEST).write_bytes(b"secret")
    path = backup / name
    path.parent.mkdir(parents=True)
    path.symlink_to(outside / DIGEST if "/" in name else outside)

    with pytest.raises(StoreError, match="remove it"):
        copy_files(backup, tmp_path / "db-files")

    assert not (tmp_path / "db-files").exists()
