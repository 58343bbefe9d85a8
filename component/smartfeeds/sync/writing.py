"""Writes a version as sx:sync in an entry, item or outline (FeedSync 2.4 to 2.6, SSE 2.3 to 5.2). `markup` reads it."""

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
    if dialect is FEEDSYNC:
        records = [_record("history", record, lexis, {"sequence": record.sequence}) for record in version.history]
        conflicts = [write_item(conflict, dialect, namespace) for conflict in version.conflicts]
    else:
        # SSE writes the newest record with the older ones inside, and of a conflict its newest record (SSE-046).
        top, *older = version.history
        records = [_record("history", top, lexis, {}, *(_record("update", record, lexis, {}) for record in older))]
        conflicts = [
            _record("conflict", conflict.top, lexis, {"version": conflict.counter}, conflict.payload)
            for conflict in version.conflicts
        ]
    if conflicts:
        conflicts = [b"<sx:conflicts>", *conflicts, b"</sx:conflicts>"]
    return b"".join((start.encode(), *records, *conflicts, *version.extra.children, b"</sx:sync>"))


def write_first(sync_id: str, when_us: int, by: str) -> bytes:
    """Returns what `write_sync` returns for an item that FeedSync's `create` makes. Every published item gets it, so it
    is written without a version (tests/unit/sync/test_markup.py compares both)."""
    return (
        f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="{attribute(sync_id)}" updates="1">'
        f'<sx:history sequence="1" when="{write_feedsync_time(when_us)}" by="{_quoted(by)}"/></sx:sync>'
    ).encode()


@lru_cache(4096)  # an endpoint has at most MAX_ID_BYTES
def _quoted(by: str) -> str:
    return attribute(by)


def _record(name: str, record: HistoryRecord, lexis: DialectSyntax, numbers: dict[str, int], *children: bytes) -> bytes:
    """Returns an element with the attributes of a record, the `children` and the record's foreign markup inside."""
    when = None if record.when_us is None else record.written or lexis.write_time(record.when_us)
    if record.extra is NO_MARKUP and when is not None and record.by and lexis.dialect is FEEDSYNC:
        # The usual case, in a quarter of the time.
        return f'<sx:{name} sequence="{record.sequence}" when="{when}" by="{_quoted(record.by)}"/>'.encode()
    names = {**{number: str(value) for number, value in numbers.items()}, "when": when, "by": record.by or None}
    start = f"<sx:{name}{_attributes(names, record.extra)}"
    inside = b"".join((*children, *record.extra.children))
    return f"{start}>".encode() + inside + f"</sx:{name}>".encode() if inside else f"{start}/>".encode()


def _flag(flag: Flag) -> str | None:
    return None if flag is Flag.ABSENT else flag.value


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
