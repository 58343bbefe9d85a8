"""The queue of enclosures: which is loaded next, and what the store remembers of each load (PRE-004 to PRE-008,
PRE-014, PRE-025, PRE-030, PRE-031).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import next_host_pause
from smartfeeds.features.polling.source import Reach, Source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.downloads import FileVersion
from smartfeeds.features.prefetch.enclosure import (
    MAX_FAILURES,
    Enclosure,
    EnclosureState,
    EnclosureUse,
    FileArrival,
)
from smartfeeds.features.prefetch.enclosures import is_alive, settings_of, verdict_on
from smartfeeds.features.prefetch.held_items import held_items
from smartfeeds.features.prefetch.held_release import release_held
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.features.prefetch.windows import Span
from smartfeeds.formats.entry import EntryLink
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx

_STEP: Final = 100  # enclosures that one transaction considers


@dataclass(frozen=True, slots=True)
class DueEnclosure:
    """An enclosure to load now. `sources` are those whose rules allow it. A file of more than `max_bytes` is never
    wanted, one of more than `room_bytes` is not wanted now, because of `limit`."""

    enclosure: Enclosure
    sources: tuple[Source, ...]
    max_bytes: int
    room_bytes: int
    limit: str

    @property
    def is_asked(self) -> bool:
        """Whether an operator has asked for it, so that no window applies."""
        return self.enclosure.asked_us is not None

    @property
    def reach(self) -> Reach:
        """The networks in which it may be: at the host and port of a source those of the source, else public ones,
        because the author of the feed chooses the address."""
        reaches = [source.reach for source in self.sources if source.host == self.enclosure.host]
        return max(reaches, key=lambda reach: reach.value, default=Reach.PUBLIC)


class LoadEnd(Enum):
    """The outcome of a load."""

    ARRIVED = "arrived"
    """The file is complete."""
    FAILED = "failed"
    """It failed, and is tried again in the next window."""
    GIVEN_UP = "given-up"
    """It is not tried again."""
    BUSY = "busy"
    """The server asked for a pause."""
    CUT = "cut"
    """The window or the space on the disk ended; the next window continues it."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. `media_type` is that of the file, `size_bytes` its size if it arrived, else that of the
    partial file. `loaded_bytes` came over the network in `seconds`. `pause_s` is the pause that a server asked for."""

    end: LoadEnd
    reason: str = ""
    media_type: str = ""
    size_bytes: int = 0
    loaded_bytes: int = 0
    seconds: float = 0.0
    pause_s: float | None = None


def has_due(tx: ReadTx, context: Context, span: Span | None, busy_hosts: Collection[str]) -> bool:
    """Whether `choose_next` has an enclosure to consider."""
    hosts = {*busy_hosts, *(pause.host for pause in source_rows.host_pauses(tx, context.now_us))}
    return bool(
        enclosure_rows.asked(tx, hosts, 1) or (span is not None and enclosure_rows.due(tx, span.open_us, hosts, 1))
    )


def choose_next(
    tx: WriteTx, context: Context, span: Span | None, busy_hosts: Collection[str], served_hosts: Collection[str]
) -> DueEnclosure | None:
    """The enclosure to load next: one that an operator has asked for, else one of the open window. Hosts that were not
    served since all of them were come first, so that hosts take turns (PRE-004).

    An enclosure that cannot be loaded in this window gets the reason, and is not considered again in it.
    """
    paused = {pause.host for pause in source_rows.host_pauses(tx, context.now_us)}
    excluded = {*busy_hosts, *paused}
    for enclosure in enclosure_rows.asked(tx, excluded, _STEP):
        if (due := _admitted(tx, context, span, enclosure)) is not None:
            return due
    if span is None:
        return None
    # First hosts that had no turn yet. `_admitted` notes what it refuses as tried, so each read brings others.
    for hosts in ({*excluded, *served_hosts}, excluded):
        while rows := enclosure_rows.due(tx, span.open_us, hosts, _STEP):
            for enclosure in rows:
                if (due := _admitted(tx, context, span, enclosure)) is not None:
                    return due
    return None


def _admitted(tx: WriteTx, context: Context, span: Span | None, enclosure: Enclosure) -> DueEnclosure | None:
    """The enclosure with its limit, or None after the reason was stored."""
    settings = settings_of(context)
    link = EntryLink("enclosure", enclosure.url, enclosure.media_type, length=enclosure.length_bytes)
    sources: list[Source] = []
    max_bytes, reason = 0, "prefetch of its source is off"
    for source in _sources_of(tx, enclosure):
        if source.settings.prefetch or enclosure.asked_us is not None:
            verdict = verdict_on(settings, source, link)
            reason = verdict.refusal
            if not reason:
                sources.append(source)
            max_bytes = max(max_bytes, verdict.max_bytes)
    if sources:
        room_bytes, limit = _room(tx, settings, span, enclosure, sources)
        if room_bytes >= max(enclosure.length_bytes or 0, enclosure.partial_bytes + 1):
            return DueEnclosure(enclosure, tuple(sources), max_bytes, room_bytes, limit)
        reason = f"{limit} is reached"
    # Not before the window has opened, even if the clock has stepped back: it would be considered for ever.
    tried_us = max(context.now_us, 0 if span is None else span.open_us)
    enclosure_rows.put(tx, enclosure._replace(reason=reason, asked_us=None, tried_us=tried_us))
    return None


def _sources_of(tx: ReadTx, enclosure: Enclosure) -> Iterator[Source]:
    numbers = dict.fromkeys(use.source_no for use in enclosure_rows.uses(tx, enclosure.enclosure_no))
    return (source for number in numbers if (source := source_rows.source(tx, number)) is not None)


def _room(
    tx: ReadTx, settings: PrefetchSettings, span: Span | None, enclosure: Enclosure, sources: list[Source]
) -> tuple[int, str]:
    """Returns the size that the file may have now, and the name of the limit that applies (PRE-014). Files of older
    items are removed for it, those of newer items are not."""
    used_bytes = enclosure_rows.enclosure_bytes(tx, enclosure.dated_us, but=enclosure.enclosure_no)
    rooms = [(settings.total_bytes - used_bytes, "the limit for all files")]
    if span is not None:
        # What is there of the file was counted when it was loaded.
        night_bytes = settings.source_bytes_per_night + enclosure.partial_bytes
        rooms += [
            (
                night_bytes - enclosure_rows.night_bytes(tx, source.source_no, span.open_us),
                "the limit of its source a night",
            )
            for source in sources
        ]
    return min(rooms)


def begin_load(tx: WriteTx, context: Context, enclosure_no: int, version: FileVersion) -> None:
    """Stores the version of the file whose bytes follow, so that the next process can continue it (PRE-027)."""
    enclosure = enclosure_rows.enclosure(tx, enclosure_no)
    if enclosure is not None:
        enclosure_rows.put(
            tx,
            enclosure._replace(
                tried_us=context.now_us,
                total_bytes=version.total_bytes,
                etag=version.etag,
                modified=version.modified,
                condition=version.condition,
            ),
        )


def note_progress(tx: WriteTx, _context: Context, enclosure_no: int, size_bytes: int) -> None:
    """Stores how much of a file is there, for lists."""
    enclosure = enclosure_rows.enclosure(tx, enclosure_no)
    if enclosure is not None:
        enclosure_rows.put(tx, enclosure._replace(partial_bytes=size_bytes))


def end_load(tx: WriteTx, context: Context, due: DueEnclosure, span: Span | None, result: LoadResult) -> bool:
    """Stores the result of a load and logs it (PRE-025, PRE-031). Returns False if no item names the enclosure any
    more: its file is then unknown."""
    named = enclosure_rows.enclosure(tx, due.enclosure.enclosure_no)
    sources = [] if named is None else list(_sources_of(tx, named))
    # Before the enclosure, as in a poll. A poll of another process that still sees it waiting ends first, so its items
    # are released here. Otherwise they would wait for the next poll.
    for name in sorted({source.node for source in sources}):
        tx.lock(name)
    enclosure = enclosure_rows.enclosure(tx, due.enclosure.enclosure_no)
    if enclosure is None:
        return False
    is_busy = result.end is LoadEnd.BUSY
    failures = enclosure.failures + (result.end is LoadEnd.FAILED)
    state = EnclosureState.WAITING
    if result.end is LoadEnd.GIVEN_UP or failures >= MAX_FAILURES:
        state = EnclosureState.GIVEN_UP
    night_us = 0 if span is None else span.open_us
    former_bytes = enclosure.night_bytes if enclosure.night_us == night_us else 0
    enclosure = enclosure._replace(
        state=state,
        reason=result.reason,
        failures=failures,
        asked_us=enclosure.asked_us if is_busy else None,
        # After a pause the same window goes on.
        tried_us=0 if is_busy else context.now_us,
        partial_bytes=result.size_bytes,
        night_us=night_us,
        night_bytes=former_bytes + result.loaded_bytes,
    )
    if result.end is LoadEnd.ARRIVED:
        enclosure = enclosure._replace(
            state=EnclosureState.ARRIVED,
            media_type=result.media_type,
            length_bytes=result.size_bytes,
            since_us=context.now_us,
            partial_bytes=0,
        )
    elif state is EnclosureState.GIVEN_UP:
        enclosure = enclosure._replace(since_us=context.now_us)
    enclosure_rows.put(tx, enclosure)
    if state is not EnclosureState.WAITING or result.end is LoadEnd.ARRIVED:
        for source in sources:
            release_held(tx, context, source)
    if is_busy:
        former = source_rows.host_pause(tx, enclosure.host)
        source_rows.put_host_pause(tx, next_host_pause(former, enclosure.host, result.pause_s, context.now_us))
    _log_uses(tx, context, enclosure, result)
    return True


def _log_uses(tx: WriteTx, context: Context, enclosure: Enclosure, result: LoadResult) -> None:
    uses = enclosure_rows.uses(tx, enclosure.enclosure_no)
    before_us = context.now_us - settings_of(context).keep_us
    for use in {use.node: use for use in reversed(uses)}.values():
        size_bytes = result.size_bytes if result.end is LoadEnd.ARRIVED else 0
        entry = (context.now_us, use.node, use.item_id, enclosure.url, size_bytes, result.seconds, result.reason)
        enclosure_rows.add_arrival(tx, FileArrival(0, *entry), before_us)
    if result.end is LoadEnd.ARRIVED:
        _show(tx, uses)


def _show(tx: WriteTx, uses: Collection[EnclosureUse]) -> None:
    """Marks the pages of the nodes as changed: they name the local addresses (PRE-034)."""
    for name in {use.node for use in uses}:
        node = tx.node(name)
        if node is not None:
            tx.mark_pages_changed(node.node_no)


def stale_uses(tx: ReadTx, context: Context, source_no: int) -> list[EnclosureUse]:
    """The uses of a source that the keeping rules do not keep: those of items that are gone, and all beyond the newest
    files (PRE-030)."""
    uses = enclosure_rows.uses_of(tx, source_no)
    held = held_items(tx, source_no)
    alive = [use for use in uses if use.item_id in held or is_alive(tx, use)]
    newest = list(dict.fromkeys(use.enclosure_no for use in alive))[: settings_of(context).files_per_source]
    return [use for use in uses if use not in alive or use.enclosure_no not in newest]


def tidy_source(tx: WriteTx, context: Context, source_no: int) -> None:
    """Removes the stale uses of a source, and enclosures that no item names any more."""
    uses = stale_uses(tx, context, source_no)
    enclosure_rows.remove_uses(tx, uses)
    for enclosure_no in {use.enclosure_no for use in uses}:
        enclosure = enclosure_rows.enclosure(tx, enclosure_no)
        if enclosure is not None and not enclosure_rows.uses(tx, enclosure_no):
            _remove(tx, [enclosure])
    _show(tx, uses)


def tidy_old(tx: WriteTx, context: Context) -> bool:
    """Removes some enclosures that are too old or without a source. Returns whether there may be more. The bytes go
    with `EnclosureFolder.remove_unknown` (PRE-030)."""
    rows = enclosure_rows.unused(tx, _STEP) or enclosure_rows.enclosures_before(
        tx, context.now_us - settings_of(context).keep_us, _STEP
    )
    _remove(tx, rows)
    return bool(rows)


def tidy_space(tx: WriteTx, context: Context) -> bool:
    """Removes the enclosure of the oldest item if all of them are too large. Returns whether it did (PRE-030)."""
    rows = enclosure_rows.oldest(tx, 1) if enclosure_rows.enclosure_bytes(tx) > settings_of(context).total_bytes else []
    _remove(tx, rows)
    return bool(rows)


def _remove(tx: WriteTx, enclosures: list[Enclosure]) -> None:
    for enclosure in enclosures:
        if enclosure.state is EnclosureState.ARRIVED:
            _show(tx, enclosure_rows.uses(tx, enclosure.enclosure_no))
        enclosure_rows.remove(tx, enclosure.enclosure_no)
