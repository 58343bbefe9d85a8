"""Writes a version as sx:sync in an entry, item or outline (FeedSync 2.4 to 2.6, SSE 2.3 to 5.2). `markup` reads it."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from smartfeeds.core.text import attribute
from smartfeeds.formats.atom import FEEDSYNC_NS, with_child
from smartfeeds.formats.xml import XML_NS
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.lexis import FEEDSYNC_LEXIS, SSE_LEXIS, DialectSyntax, write_feedsync_time
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import NO_MARKUP, Flag, ForeignMarkup, HistoryRecord, Version


def write_item(version: Version, dialect: Dialect, namespace: str = "") -> bytes:
    """Returns the item with sync data as its last child. An empty `namespace` means that of the dialect."""
    return with_child(version.payload, write_sync(version, dialect, namespace))


def write_sync(version: Version, dialect: Dialect, namespace: str = "") -> bytes:
    """Returns sx:sync of a version, with all its conflicts. Raises ForbiddenCharacterError."""
    lexis = FEEDSYNC_LEXIS if dialect is FEEDSYNC else SSE_LEXIS
    names = {
        "id": version.sync_id,
        dialect.counter: str(version.counter),
        "deleted": _flag(version.deleted),
        "noconflicts": _flag(version.noconflicts),
        "conflict": _flag(version.conflict),
    }
    start = f'<sx:sync xmlns:sx="{attribute(namespace or lexis.namespace)}"{_attributes(names, version.extra)}>'
    inside = _whole(version, lexis, namespace) if dialect is FEEDSYNC else _listed(version, lexis)
    return b"".join((start.encode(), *inside, *version.extra.children, b"</sx:sync>"))


def write_first(sync_id: str, when_us: int, by: str) -> bytes:
    """Returns what `write_sync` returns for an item that FeedSync's `create` makes. Every published item gets it."""
    return (
        f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="{attribute(sync_id)}" updates="1">'
        f'<sx:history sequence="1" when="{write_feedsync_time(when_us)}" by="{_quoted(by)}"/></sx:sync>'
    ).encode()


def _whole(version: Version, lexis: DialectSyntax, namespace: str) -> Iterator[bytes]:
    """Yields FeedSync's children: every record, then every conflict as an item."""
    for stamp in version.history:
        if stamp.extra is NO_MARKUP and stamp.when_us is not None and stamp.by:
            when = lexis.write_time(stamp.when_us)
            yield f'<sx:history sequence="{stamp.sequence}" when="{when}" by="{_quoted(stamp.by)}"/>'.encode()
            continue
        names = {"sequence": str(stamp.sequence), **_when_and_by(stamp, lexis)}
        yield _element("history", names, stamp.extra, stamp.extra.children)
    if version.conflicts:
        inside = (write_item(one, lexis.dialect, namespace) for one in version.conflicts)
        yield b"".join((b"<sx:conflicts>", *inside, b"</sx:conflicts>"))


def _listed(version: Version, lexis: DialectSyntax) -> Iterator[bytes]:
    """Yields SSE's children: the newest record with the older ones inside, then the list of conflicts (SSE-046)."""
    top, *older = version.history
    updates = (_element("update", _when_and_by(one, lexis), one.extra, one.extra.children) for one in older)
    yield _element("history", _when_and_by(top, lexis), top.extra, (*updates, *top.extra.children))
    if version.conflicts:
        inside = (
            _element("conflict", {"version": str(one.counter), **_when_and_by(one.top, lexis)}, one.top.extra, [data])
            for one in version.conflicts
            for data in (one.payload,)
        )
        yield b"".join((b"<sx:conflicts>", *inside, b"</sx:conflicts>"))


@lru_cache(4096)
def _quoted(by: str) -> str:
    return attribute(by)


def _when_and_by(stamp: HistoryRecord, lexis: DialectSyntax) -> dict[str, str | None]:
    when = None if stamp.when_us is None else stamp.written or lexis.write_time(stamp.when_us)
    return {"when": when, "by": stamp.by or None}


def _flag(flag: Flag) -> str | None:
    return None if flag is Flag.ABSENT else flag.value


def _element(name: str, names: dict[str, str | None], extra: ForeignMarkup, children: Iterable[bytes]) -> bytes:
    inside = b"".join(children)
    start = f"<sx:{name}{_attributes(names, extra)}".encode()
    return start + (b">" + inside + f"</sx:{name}>".encode() if inside else b"/>")


def _attributes(names: dict[str, str | None], extra: ForeignMarkup) -> str:
    parts = [f' {name}="{attribute(value)}"' for name, value in names.items() if value is not None]
    for number, (name, value) in enumerate(extra.attributes):
        namespace, _, local = name.removeprefix("{").rpartition("}")
        prefix = ""
        if namespace == XML_NS:
            prefix = "xml:"
        elif namespace:
            prefix = f"n{number}:"
            parts.append(f' xmlns:n{number}="{attribute(namespace)}"')
        parts.append(f' {prefix}{local}="{attribute(value)}"')
    return "".join(parts)
