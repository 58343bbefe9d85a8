"""`smartfeeds import --sync` and `smartfeeds export --sync`: feeds with histories and conflicts, as documents."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from smartfeeds.cli.fetching import fetch
from smartfeeds.cli.offline import actor_of, open_offline
from smartfeeds.cli.reading import FileSpool, OpenSource, file_spool, named, open_bytes, open_source
from smartfeeds.console import err, out, progress_bar
from smartfeeds.core.model import Item
from smartfeeds.core.text import one_line
from smartfeeds.errors import DocumentError, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.additions import id_mark
from smartfeeds.formats.atom_feed import write_feed
from smartfeeds.formats.documents import document_bytes, read_document
from smartfeeds.formats.items import NO_DOCUMENT, Document, Loss
from smartfeeds.formats.writers import IN_ATOM, Job, tell_channel
from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES, parse_payload, parse_stored
from smartfeeds.net.fetch import shown
from smartfeeds.service.sync_import import Arrived, Merge, Target, lacks, merge_document
from smartfeeds.store.base import OpenMode
from smartfeeds.sync.arriving import is_deletion_alone, read_plain
from smartfeeds.sync.documents import FeedReader, Form, Kind, Piece
from smartfeeds.sync.merging import Outcome, Refused
from smartfeeds.sync.sharing import NOT_SAID, Sharing
from smartfeeds.sync.sharing_markup import write_sharing

_SHOWN = 20
_ENTRY = f'<entry xmlns="{atom.ATOM_NS}"'.encode()
_EARLIEST_US = -(2**62)
_NO_OUTLINES = "an outline has a tree, and a node has none: smartfeeds merge merges outlines with sync data"


@dataclass(slots=True)
class Shared:
    """A document that was read: where its items are, in the order of their first change, and what its head says.

    `fault` says why it could not be read to its end; what came before counts all the same.
    """

    name: str
    form: Form = Form.ATOM
    feed: Document = NO_DOCUMENT
    next_page: str = ""
    sharing: Sharing = NOT_SAID
    fault: str = ""
    count: int = 0
    merge: Merge = field(default_factory=Merge)
    _indices: "array[int]" = field(default_factory=lambda: array("l"))
    _offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _sizes: "array[int]" = field(default_factory=lambda: array("l"))
    _synced: "array[int]" = field(default_factory=lambda: array("b"))
    _times_us: "array[int]" = field(default_factory=lambda: array("q"))

    def keep(self, spool: FileSpool, piece: Piece, *, synced: bool, time_us: int | None) -> None:
        """Puts an item into the spool. One without a date is as old as the one before it."""
        if time_us is None:
            time_us = self._times_us[-1] if self._times_us else _EARLIEST_US
        self._indices.append(piece.index)
        self._offsets.append(spool.append(piece.raw))
        self._sizes.append(len(piece.raw))
        self._synced.append(synced)
        self._times_us.append(time_us)

    def items(self, spool: FileSpool) -> Iterator[Arrived]:
        """The oldest first, so that a feed gets them in the order in which they were made, however it was written."""
        for at in sorted(range(len(self._indices)), key=self._times_us.__getitem__):
            raw = spool.read(self._offsets[at], self._sizes[at])
            yield Arrived(self._indices[at], raw, bool(self._synced[at]))


@dataclass(frozen=True, slots=True)
class SyncImport:
    """What was asked for: see `smartfeeds import --help`."""

    source: Path | str
    node: str
    owner: str | None
    base: str
    config: Path | None
    own: bool
    lenient: bool
    web: bool  # private addresses too


async def import_synced(asked: SyncImport) -> Shared:
    """Merges a document into a node. Raises DocumentError where nothing of it can be read, FeedError, FetchError."""
    with file_spool() as spool:
        if isinstance(asked.source, str):
            address = asked.source
            fetched = await fetch(address, allow_private=asked.web)
            asked = replace(asked, base=asked.base or fetched.url)
            with open_bytes(document_bytes(fetched.body, fetched.charset), shown(address)) as source:
                found = _scan(source, spool, asked)
        else:
            with open_source(asked.source) as source:
                found = _scan(source, spool, asked)
        async with open_offline(asked.config, OpenMode.CREATE) as service:
            actor = actor_of(service, asked.owner)
            if found.sharing.since is not None:
                behind = await service.read(partial(lacks, name=asked.node, sharing=found.sharing))
                found.merge.note([_partial(found.sharing, behind=behind)])
            target = Target(asked.node, actor, found.feed, asked.own, asked.lenient, asked.base)
            with progress_bar() as progress:
                task = progress.add_task(f"{found.form.value} into {asked.node}", total=found.count)
                await merge_document(
                    service, target, found.items(spool), found.merge, lambda count: progress.advance(task, count)
                )
    return found


def _scan(source: OpenSource, spool: FileSpool, asked: SyncImport) -> Shared:
    """Reads a document into the spool, to its end or to its first fault. Raises DocumentError where that is all."""
    if source.form is Form.OPML:
        raise DocumentError(f"{source.name}: {_NO_OUTLINES}")
    found = Shared(source.name, source.form)
    reader = FeedReader(lenient=asked.lenient)
    with named(source.name):
        try:
            for piece in reader.read(source.chunks):
                found.count += 1
                _keep(found, spool, piece, asked)
        except FeedError as error:
            if not found.count:
                raise
            found.fault = error.text or error.condition.value
            return found
        _read_head(found, reader, asked.base)
    return found


def _keep(found: Shared, spool: FileSpool, piece: Piece, asked: SyncImport) -> None:
    if piece.found is not None:
        times_us = [stamp.when_us for stamp in piece.found.version.history if stamp.when_us is not None]
        found.keep(spool, piece, synced=True, time_us=min(times_us, default=None))
        return
    # What an export without sync data leaves of a deleted item is a mark, which is no history.
    marked = piece.kind is Kind.REFUSED and len(piece.raw) <= MAX_PAYLOAD_BYTES and is_deletion_alone(piece.raw)
    if piece.kind is Kind.REFUSED and not marked:
        found.merge.refuse(piece.index, piece.reason)
        return
    try:
        found.keep(spool, piece, synced=False, time_us=read_plain(piece.raw, asked.base).made_us)
    except FeedError as error:
        found.merge.refuse(piece.index, error.text or error.condition.value)


def _read_head(found: Shared, reader: FeedReader, base: str) -> None:
    """What the head says, which is known at the end."""
    head = reader.head() + reader.tail()
    found.feed = read_document(head, base)
    found.merge.note(found.feed.warnings)
    found.form, found.sharing = reader.form, reader.sharing
    links = parse_payload(head).iter(atom.LINK)
    found.next_page = next((one.get("href", "") for one in links if one.get("rel") == "next"), "")
    found.merge.note(reader.notes)
    found.merge.note(f"it takes items from {one.link} {one.title}".rstrip() for one in found.sharing.aggregated)
    if found.next_page:
        found.merge.note([f"it is a page of a feed, and only this page was read; the next one is {found.next_page}"])


def _partial(sharing: Sharing, *, behind: bool) -> str:
    """A hint for people, and nothing is opened by itself (FS-021, FS-079)."""
    link = sharing.complete_link
    where = f"the complete one is {link}" if link else "who publishes it knows where the complete one is"
    text = f"it is a partial feed, of changes since {sharing.since}; {where}"
    if not behind:
        return text
    return f"{text}. Nothing here is as new as that, so changes from before are missing: import the complete feed too"


def as_json(found: Shared) -> dict[str, object]:
    """What an import did, for programs."""
    merge, plain = found.merge, found.merge.plain
    return {
        "format": found.form.value,
        "title": found.feed.title,
        **{outcome.value: merge.outcomes[outcome] for outcome in Outcome},
        "without_sync": {
            "added": plain.added,
            "changed": plain.changed,
            "deleted": plain.deleted,
            "unchanged": plain.unchanged,
        },
        "refused": merge.refused,
        "reasons": [{"item": one.index + 1, "reason": one.reason} for one in _in_order(merge)],
        "notes": merge.notes,
        "fault": found.fault,
    }


def _in_order(merge: Merge) -> list[Refused]:
    return sorted(merge.reasons, key=lambda one: one.index)


def tell(found: Shared, node: str) -> None:
    """The same for people."""
    merge, plain = found.merge, found.merge.plain
    parts = [", ".join(f"{merge.outcomes[outcome]} {outcome.value}" for outcome in Outcome)]
    changes = {"added": plain.added, "changed": plain.changed, "deleted": plain.deleted, "unchanged": plain.unchanged}
    if any(changes.values()):
        told = ", ".join(f"{count} {what}" for what, count in changes.items() if count)
        parts.append(f"without sync data {told}")
    if merge.refused:
        parts.append(f"{merge.refused} refused")
    out.print(one_line(f"{found.name} ({found.form.value}, merged) into {node}: {'; '.join(parts)}."), markup=False)
    reasons = [f"refused item {one.index + 1}: {one.reason}" for one in _in_order(merge)]
    for lines in (reasons, [f"note: {text}" for text in merge.notes]):
        for line in lines[:_SHOWN]:
            err.print(one_line(line), markup=False)
        if len(lines) > _SHOWN:
            err.print(f"and {len(lines) - _SHOWN} more such lines; --json lists them", markup=False)
    if found.fault:
        err.print(one_line(f"{found.fault}: nothing behind item {found.count} was read"), markup=False)


def failed(found: Shared) -> bool:
    """Whether the document was not read to its end, or nothing in it could be used."""
    return bool(found.fault) or bool(found.merge.refused and not found.merge.taken)


def write_shared(job: Job, sharing: Sharing) -> Iterator[bytes]:
    """A feed in Atom, each entry with its sync data, in pieces; `job.items` show theirs (FeedSync 1.4, 2.2).

    sx:sharing is written where there is something to say: a complete feed says nothing (A-47).
    """
    tell_channel(job, IN_ATOM - {"authors"})
    start, end = write_feed(job.head, (), whole=False)
    yield start
    if sharing != NOT_SAID:
        yield write_sharing(sharing) + b"\n"
    for item in job.items:
        if item.payload.startswith(_ENTRY) or parse_stored(item.payload).tag == atom.ENTRY:
            yield _entry(item) + b"\n"
        else:
            job.losses.append(Loss(item.id, "what is no Atom entry: it is not shared"))
    yield end


def _entry(item: Item) -> bytes:
    """An entry says its item id where that is not its sync id (A-154)."""
    if not item.sync_id:
        return item.payload
    return atom.with_child(item.payload, id_mark(item.id))
