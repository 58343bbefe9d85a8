"""Reads mod_pubsub of Prosody from the files of its internal storage (IMP-001 to IMP-008, IMP-011, IMP-012).

`FOLDER/HOST/pubsub_nodes/NODE.dat` has a node, `FOLDER/HOST/pubsub_NODE.list` its items, the oldest change first. Items
are read one by one from the mapped file.
"""

import contextlib
import errno
import mmap
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import DocumentError, FeedError
from smartfeeds.features.moving_in.lua_terms import LuaError, LuaTable, LuaValue, parse_table
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    UnreadableItem,
    UnreadableNode,
    check_host,
)
from smartfeeds.features.moving_in.prosody_options import (
    OTHER_DATA,
    PERSONAL_NODES,
    Plain,
    ProsodyNode,
    moved_node,
    prosody_node,
)
from smartfeeds.features.moving_in.prosody_stanzas import stanza_xml

_NODES: Final = "pubsub_nodes"
_RETURN: Final = re.compile(rb"(?:\s|--[^\n]*\n)*return\s*")
_ITEM: Final = re.compile(rb"(?:\s|--[^\n]*\n|;)*item\s*\(\s*")
_BLANK_REST: Final = re.compile(rb"\s*+\Z")
_ITEM_END: Final = re.compile(rb"\s*\)\s*;?\s*")
# Every line end in a string stands behind a backslash, so this is the start of an item and never a part of a payload.
_NEXT_ITEM: Final = re.compile(rb"(?<!\\)\nitem\(")
_MAX_NODE_BYTES: Final = 64 * 1024 * 1024  # a node is in memory as a whole, unlike its items
# Bytes behind the beginnings of later items that damaged items may read in all. In a crafted list every item could read
# all that follow it: 100 kB would take a minute.
_REREAD_BYTES: Final = 32 * 1024 * 1024


def read_prosody_files(source: str, host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of a component from Prosody's data folder, or from the folder of the component.

    Raises DocumentError if the folder cannot be read, ConfigError if it has no nodes of this component.
    """
    with _errors_named(source):
        folder = _folder_of(Path(source), host)
        paths = sorted(path for path in (folder / _NODES).iterdir() if path.suffix == ".dat")
        hosts = [folder] if folder == Path(source) else sorted(filter(Path.is_dir, folder.parent.iterdir()))
        personal = [host.name for host in hosts if any(path.name.startswith("pep") for path in host.iterdir())]
    for path in paths:
        try:
            node = _read_node(path)
        except (LuaError, DocumentError) as error:
            yield UnreadableNode(f"file {path.name}", f"the node cannot be read: {error}")
        else:
            yield moved_node(node, read_items(folder / f"pubsub_{encoded(node.name, keep='_')}.list"))
    for name in personal:
        yield MovedProblem(f"folder {name}", PERSONAL_NODES)


@contextmanager
def _errors_named(path: Path | str) -> Iterator[None]:
    """Raises DocumentError for an error of the operating system."""
    try:
        yield
    except OSError as error:
        raise DocumentError(f"cannot read {error.filename or path}: {error.strerror}") from None


def encoded(text: str, keep: str = "") -> str:
    """Returns a name as in names of Prosody's files: bytes other than ASCII letters and digits are percent-encoded."""
    allowed = keep.encode()
    return "".join(
        chr(byte) if (byte < 128 and chr(byte).isalnum()) or byte in allowed else f"%{byte:02x}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _folder_of(source: Path, host: str) -> Path:
    """Returns the folder of a component."""
    if not source.is_dir():
        raise DocumentError(
            f"{source} is neither a folder nor a SQLite database; name the data folder of Prosody, such as"
            " /var/lib/prosody"
        )
    if (source / _NODES).is_dir() and unquote_to_bytes(source.name).decode("utf-8", "replace") == host:
        return source
    hosts = {
        unquote_to_bytes(path.name).decode("utf-8", "replace"): path
        for path in sorted(source.iterdir())
        if (path / _NODES).is_dir()
    }
    check_host(str(source), host, hosts, OTHER_DATA)
    return hosts[host]


def _read_node(path: Path) -> ProsodyNode:
    with _errors_named(path):
        _check_regular(path)
        if path.stat().st_size > _MAX_NODE_BYTES:
            raise DocumentError(f"{path} is larger than {_MAX_NODE_BYTES} bytes")
        data = path.read_bytes()
    start = _RETURN.match(data)
    if start is None:
        raise LuaError(0, "there is no `return`")
    table, _ = parse_table(data, start.end())
    name = table.fields.get("name")
    if not isinstance(name, str):
        # Prosody reads a node by the name of its file.
        name = unquote_to_bytes(path.stem).decode("utf-8", "surrogateescape")
    return prosody_node(name, {str(key): _plain(part) for key, part in table.fields.items()})


def _check_regular(path: Path) -> None:
    """Raises DocumentError for a pipe or a device: opening or reading it may never end. Raises OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise DocumentError(f"cannot read {path}: it is no regular file; remove it")


def _plain(value: LuaValue) -> Plain:
    """Returns a table as a dictionary. Tables in these records are two deep."""
    if isinstance(value, LuaTable):
        return {str(key): _shallow(part) for key, part in value.fields.items()}
    return value


def _shallow(value: LuaValue) -> Plain:
    if isinstance(value, LuaTable):
        parts = {str(key): part for key, part in value.fields.items() if not isinstance(part, LuaTable)}
        numbered = {str(place): part for place, part in enumerate(value.entries) if not isinstance(part, LuaTable)}
        return {**parts, **numbered}
    return value


def read_items(path: Path) -> Iterator[MovedItem | MovedProblem]:
    """Yields the items of a list, none if the node has no list. A damaged item becomes a problem, and the next whole
    item follows.

    Raises DocumentError if the file cannot be read.
    """
    with contextlib.ExitStack() as files:
        try:
            _check_regular(path)
            file = files.enter_context(path.open("rb"))
            if not path.stat().st_size:  # an empty file cannot be mapped
                return
            mapped = files.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            # A node without items has no list. Neither has a node whose list would have too long a name for Prosody.
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                return
            raise DocumentError(f"cannot read {path}: {error.strerror}") from None
        yield from _items(files.enter_context(memoryview(mapped)), path.name)


def _items(data: memoryview, name: str) -> Iterator[MovedItem | MovedProblem]:
    position, size, reread_bytes = 0, len(data), 0
    while position < size:
        start = _ITEM.match(data, position)
        try:
            if start is None:
                if _BLANK_REST.match(data, position):
                    return
                raise LuaError(position, "this is no item")
            table, end = parse_table(data, start.end())
            closing = _ITEM_END.match(data, end)
            if closing is None:
                raise LuaError(end, "the item does not end")
        except LuaError as error:
            following = _NEXT_ITEM.search(data, position)
            last = "" if following else ", which is the last"
            yield UnreadableItem(f"file {name}", f"the item at byte {position}{last}, is damaged: {error}")
            if following is None:
                return
            position = following.start() + 1
            reread_bytes += max(0, error.position - position)
            if reread_bytes > _REREAD_BYTES:
                yield UnreadableItem(f"file {name}", f"too many damaged items; all behind byte {position} are left out")
                return
        else:
            position = closing.end()
            yield _item(table, name)


def _item(table: LuaTable, name: str) -> MovedItem | MovedProblem:
    key, when, publisher = (table.fields.get(part) for part in ("key", "when", "with"))
    if not isinstance(key, str):
        return UnreadableItem(f"file {name}", "an item has no id")
    try:
        payload = stanza_xml(table) if "name" in table.fields else b""
    except FeedError as error:
        return UnreadableItem(f"item {key!r}", error.text)
    return MovedItem(key, publisher if isinstance(publisher, str) else "", time_us(when), None, payload)


def time_us(when: object) -> int | None:
    """Returns Unix seconds as microseconds, or None for what is no time."""
    if isinstance(when, bool) or not isinstance(when, int | float) or not abs(when) < 2**40:
        return None
    return int(when * US_PER_S)
