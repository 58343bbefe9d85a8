"""Sources, their entries and the pauses of their hosts in SQL (`source`, `source_entries`)."""

from collections.abc import Collection, Sequence

from smartfeeds.core.person import Person
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import StoreError
from smartfeeds.features.polling.source import (
    SOURCE_PROGRESS,
    SOURCE_SETTINGS,
    HostPause,
    Source,
    SourceState,
    held_reader,
    host_of,
)
from smartfeeds.features.polling.source_entries import EntryKey, EntryPresence, SourceEntry
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import CORRUPT, placeholders, undamaged
from smartfeeds.store.sql_tables import Table, first_due, order_few_by

SOURCE = Table(
    "source",
    "source_no",
    "node, first_url, url, host, configured, owner, created_us, state, reason, since_us, due_us, polled_us, good_us,"
    " settings, progress",
)
SOURCE_ENTRY = Table("source_entry", "entry_no", "identity, link, item_id, digest, presence", "source_no")
SOURCE_HOST = Table("source_host", "host", "until_us, count")

_BY_NO = f"{SOURCE.select} WHERE source_no = ?"
_DUE = first_due(SOURCE)
# Knuth, "The Art of Computer Programming" 6.4: the golden ratio spreads consecutive numbers evenly.
SPREAD_FACTOR, SPREAD_MODULUS = 2_654_435_761, 2**32


def to_source(row: Row) -> Source:
    """A source from the columns of SOURCE. Raises one of `rows.DAMAGES`."""
    source_no, node, first_url, url, _host, configured, owner, created_us, state, *rest = row
    reason, since_us, due_us, polled_us, good_us, settings, progress = rest
    if not is_xml_text(f"{node}{first_url}{url}{owner}"):
        raise StoreError(f"a text of source {source_no} in the database is {CORRUPT}")
    host_of(url)
    return Source(
        source_no,
        node,
        first_url,
        url,
        bool(configured),
        owner,
        created_us,
        SourceState(state),
        reason,
        since_us,
        due_us,
        polled_us,
        good_us,
        SOURCE_SETTINGS.read(settings),
        SOURCE_PROGRESS.read(progress),
    )


def _values(source: Source) -> tuple[object, ...]:
    one = source
    return (
        *(one.node, one.first_url, one.url, one.host, int(one.configured), one.owner, one.created_us, one.state.value),
        *(one.reason, one.since_us, one.due_us, one.polled_us, one.good_us),
        *(SOURCE_SETTINGS.write(one.settings), SOURCE_PROGRESS.write(one.progress)),
    )


def _to_entry(row: Row) -> SourceEntry:
    entry_no, identity, link, item_id, digest, presence, _source_no = row
    return SourceEntry(EntryKey(identity, link), item_id, digest, EntryPresence(presence), entry_no)


def source(tx: ReadTx, source_no: int) -> Source | None:
    """Returns the source with this number."""
    row = tx.db.row(_BY_NO, (source_no,))
    return to_source(row) if row else None


def sources(tx: ReadTx, after_no: int, limit: int) -> list[Source]:
    """Returns sources by number."""
    statement = f"{SOURCE.select} WHERE source_no > ? ORDER BY source_no LIMIT ?"
    return tx.values(SOURCE, to_source, statement, (after_no,), limit)


def sources_of(tx: ReadTx, node: str) -> list[Source]:
    """Returns the sources of a node by number. The cost grows with the result."""
    rows = tx.db.rows(f"{SOURCE.select} WHERE node = ? {order_few_by('source_no')}", (node,))
    return undamaged(SOURCE, to_source, rows)


def addresses_of(tx: ReadTx, nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the first addresses of the sources of these nodes, each with its node. The cost grows with the result."""
    if not nodes:
        return []
    statement = f"SELECT node, first_url FROM source WHERE node IN ({placeholders(nodes)})"
    return [(node, url) for node, url in tx.db.rows(statement, tuple(nodes))]


def sources_of_list(tx: ReadTx, list_no: int) -> list[Source]:
    """Returns the sources that a list has added, by number. The cost grows with the number of sources."""
    sources = undamaged(SOURCE, to_source, tx.db.rows(f"{SOURCE.select} ORDER BY source_no"))
    return [source for source in sources if source.settings.list_no == list_no]


def own_lists(tx: ReadTx) -> list[Source]:
    """Returns the lists that are nodes of this service, by address. The cost grows with the result."""
    # A range uses the index of addresses in both engines. ";" is the character after ":".
    rows = tx.db.rows(f"{SOURCE.select} WHERE url >= 'xmpp:' AND url < 'xmpp;' ORDER BY url, source_no")
    return undamaged(SOURCE, to_source, rows)


def sources_at(tx: ReadTx, url: str) -> list[Source]:
    """Returns the sources that request an address, by number. The cost grows with the result."""
    rows = tx.db.rows(f"{SOURCE.select} WHERE url = ? ORDER BY source_no", (url,))
    return undamaged(SOURCE, to_source, rows)


def sources_on_hosts(tx: ReadTx, hosts: Collection[str]) -> list[Source]:
    """Returns the sources whose addresses, present or first, begin with one of these hosts in lower case, by number.

    A host that only begins with one of them, such as `a.example.org` with `a.example`, is found, too: the callers
    compare addresses. The cost grows with the result.
    """
    by_no: dict[int, Row] = {}
    for start in sorted({f"http://{host}" for host in hosts}):
        for column in ("url", "first_url"):
            # The expression of an index. No name of a host has the last character of Unicode.
            place = f"replace(lower({column}), 'https://', 'http://')"
            statement = f"{SOURCE.select} WHERE {place} >= ? AND {place} < ?"
            by_no |= {row[0]: row for row in tx.db.rows(statement, (start, f"{start}\U0010ffff"))}
    return undamaged(SOURCE, to_source, [row for _, row in sorted(by_no.items())])


def named_after(tx: ReadTx, person: Person) -> list[int]:
    """Returns the numbers of the sources whose addresses, present or first, name a person. All sources are read."""
    rows = tx.db.rows("SELECT source_no, first_url, url FROM source ORDER BY source_no")
    return [source_no for source_no, *urls in rows if any(map(person.is_in, urls))]


def due(tx: ReadTx, until_us: int, limit: int) -> list[Source]:
    """Returns the source of each host that was due first, up to this time, in the order of their times.

    The cost grows with the number of sources that are due.
    """
    numbers = [row[0] for row in tx.db.rows(_DUE, (until_us, limit))]
    rows = [row for number in numbers for row in tx.db.rows(_BY_NO, (number,))]
    return undamaged(SOURCE, to_source, rows)


def next_due_us(tx: ReadTx) -> int | None:
    """Returns the time at which a source is due next, None if none is."""
    row = tx.db.row("SELECT due_us FROM source WHERE due_us IS NOT NULL ORDER BY due_us LIMIT 1")
    return row[0] if row else None


def sources_by(tx: ReadTx, owner: str) -> int:
    """Returns the number of sources that a bare JID has added."""
    return tx.number("SELECT count(*) FROM source WHERE owner = ? AND owner <> ''", (owner,))


def states(tx: ReadTx) -> dict[SourceState, int]:
    """Returns the number of sources in each state. The cost grows with the number of sources."""
    rows = tx.db.rows("SELECT state, count(*) FROM source GROUP BY state")
    counts: dict[str, int] = dict(rows)
    return {state: counts[state.value] for state in SourceState if state.value in counts}


def entries(tx: ReadTx, source_no: int) -> list[SourceEntry]:
    """Returns the entries of a source, those that were stored first first. The cost grows with the result."""
    rows = tx.db.rows(f"{SOURCE_ENTRY.select} WHERE source_no = ? {order_few_by('entry_no')}", (source_no,))
    return [_to_entry(row) for row in rows]


def entries_of(tx: ReadTx, source_no: int, keys: Sequence[EntryKey]) -> list[SourceEntry]:
    """Returns the entries of a source that share the identity or a link with one of these keys."""
    identities, links = {key.identity for key in keys}, {key.link for key in keys} - {""}
    lists = (("identity", sorted(identities)), ("link <> '' AND link", sorted(links)))
    rows = {
        row[0]: row
        for column, values in lists
        if values
        for row in tx.db.rows(
            f"{SOURCE_ENTRY.select} WHERE source_no = ? AND {column} IN ({', '.join('?' * len(values))})",
            (source_no, *values),
        )
    }
    return [_to_entry(row) for _, row in sorted(rows.items())]


def has_entries(tx: ReadTx, source_no: int) -> bool:
    """Returns whether a source has an entry."""
    return tx.db.row("SELECT 1 FROM source_entry WHERE source_no = ? LIMIT 1", (source_no,)) is not None


def host_pauses(tx: ReadTx, now_us: int) -> list[HostPause]:
    """Returns the pauses of hosts that have not ended, by host."""
    rows = tx.db.rows(f"{SOURCE_HOST.select} WHERE until_us > ? ORDER BY host", (now_us,))
    return [HostPause(*row) for row in rows]


def host_pause(tx: ReadTx, host: str) -> HostPause | None:
    """Returns the last pause of a host, even if it has ended."""
    row = tx.db.row(f"{SOURCE_HOST.select} WHERE host = ?", (host,))
    return HostPause(*row) if row else None


def add(tx: WriteTx, source: Source) -> int:
    """Stores a new source. Returns its number. Raises StoreError if the node has one of this address."""
    tx.changes += 1
    return tx.db.add(SOURCE, _values(source))


def put(tx: WriteTx, source: Source) -> None:
    """Replaces a source."""
    tx.change(SOURCE.update, (*_values(source), source.source_no))


def remove(tx: WriteTx, source_no: int) -> None:
    """Removes a source, and the items that it holds back. The items that it brought remain."""
    tx.change(SOURCE.delete, (source_no,))
    tx.change("DELETE FROM document WHERE reader = ?", (held_reader(source_no),))


def pull_back(tx: WriteTx, now_us: int) -> None:
    """Corrects sources that were polled in the future, because the clock was ahead: their pauses begin now. The
    cost grows with the number of sources."""
    tx.change("UPDATE source SET due_us = due_us - polled_us + ?, polled_us = ? WHERE polled_us > ?", (now_us,) * 3)


def spread_overdue(tx: WriteTx, now_us: int, within_s: int) -> None:
    """Spreads the sources that were polled before and are overdue over so many seconds (multiplicative hashing of
    their numbers). The cost grows with their number."""
    tx.change(
        f"UPDATE source SET due_us = ? + source_no * {SPREAD_FACTOR} % {SPREAD_MODULUS} * ? / {SPREAD_MODULUS}"
        " WHERE due_us < ? AND polled_us IS NOT NULL",
        (now_us, within_s * US_PER_S, now_us),
    )


def put_entry(tx: WriteTx, source_no: int, entry: SourceEntry) -> None:
    """Stores an entry, or replaces it if it has a number."""
    values = (*entry.key, entry.item_id, entry.digest, entry.presence.value)
    if entry.entry_no:
        tx.change(SOURCE_ENTRY.update, (*values, entry.entry_no))
    else:
        tx.change(SOURCE_ENTRY.add, (*values, source_no))


def trim_entries(tx: WriteTx, source_no: int, keep: int) -> None:
    """Removes the entries of a source that were stored first, all but `keep`."""
    order = order_few_by("entry_no")
    last = f"SELECT entry_no FROM source_entry WHERE source_no = ? {order} DESC LIMIT 1 OFFSET ?"
    tx.change(f"DELETE FROM source_entry WHERE source_no = ? AND entry_no <= ({last})", (source_no, source_no, keep))


def put_host_pause(tx: WriteTx, pause: HostPause) -> None:
    """Stores the pause of a host, or replaces it."""
    tx.change(SOURCE_HOST.replace, (pause.host, pause.until_us, pause.count))


def remove_host_pause(tx: WriteTx, host: str) -> None:
    """Removes the pause of a host."""
    tx.change(SOURCE_HOST.delete, (host,))
