"""Sources and pauses of hosts in every store: as they were put, and who is due."""

from dataclasses import replace

import pytest

from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument, Validators
from smartfeeds.errors import StoreError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import (
    DocumentHints,
    HostPause,
    Moved,
    PushKind,
    SourceProgress,
    SourceSettings,
    SourceState,
    held_reader,
    new_source,
)
from smartfeeds.features.polling.source_entries import EntryKey, EntryPresence, SourceEntry
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from support.query_plans import plan

T0 = 1_700_000_000_000_000


async def add(store: Store, node: str, url: str, due_us: int | None = T0, **changes: object) -> int:
    made = replace(new_source(node, url, T0), due_us=due_us, **changes)
    return await store.write(lambda tx: source_rows.add(tx, made))


async def test_source_is_read_as_it_was_put(store: Store) -> None:
    """[SRC-006] Validators, hints and failures survive a restart byte for byte."""
    progress = SourceProgress(
        Validators("https://a.example/f", 'W/"no quotes', "yesterday"),
        *(3, T0, True, T0 + 1, Moved("https://b.example/", T0), ("https://c.example/",)),
        DocumentHints(60, 3_600, T0, (1, 2), (5, 6)),
        *(600, (T0, T0 - 5), T0, PushKind.HUB, "A title", {"title": "digest"}, True, 3, 2, ("https://a.example/old",)),
    )
    settings = SourceSettings(300, "alice@example.org", "u", "p", "agent", True, 0, True, "category=news", ("?utm",), 2)
    number = await add(store, "news", "https://a.example/f")
    whole = replace(
        new_source("news", "https://a.example/f", T0, settings, owner="bob@example.org", configured=True),
        source_no=number,
        url="https://b.example/",
        state=SourceState.SLOWED,
        reason="answered 500",
        due_us=None,
        polled_us=T0 + 2,
        good_us=T0 + 1,
        progress=progress,
    )
    await store.write(lambda tx: source_rows.put(tx, whole))

    assert await store.read(lambda tx: source_rows.source(tx, number)) == whole
    assert await store.read(lambda tx: source_rows.sources_by(tx, "bob@example.org")) == 1
    assert await store.read(lambda tx: source_rows.sources_by(tx, "")) == 0


async def test_sources_are_listed_by_node_and_by_address(store: Store) -> None:
    """[SRC-078] A node may have several sources."""
    one = await add(store, "news", "https://a.example/1")
    two = await add(store, "news", "https://a.example/2")
    three = await add(store, "planet", "https://a.example/1")

    async def numbers(read: str, *arguments: object) -> list[int]:
        return [row.source_no for row in await store.read(lambda tx: getattr(source_rows, read)(tx, *arguments))]

    assert await numbers("sources", 0, 10) == [one, two, three]
    assert await numbers("sources", one, 1) == [two]
    assert await numbers("sources_of", "news") == [one, two]
    assert await numbers("sources_at", "https://a.example/1") == [one, three]
    assert await numbers("sources_on_hosts", ["a.example"]) == [one, two, three]
    assert await numbers("sources_on_hosts", ["example", "b.example"]) == []
    listed = await add(store, "planet", "https://b.example/", settings=SourceSettings(list_no=two))
    assert await numbers("sources_of_list", two) == [listed]
    own_list = replace(
        new_source("", "xmpp:feeds.example.org?;node=blogs", T0, SourceSettings(is_list=True)), due_us=None
    )
    own = await store.write(lambda tx: source_rows.add(tx, own_list))
    assert await numbers("own_lists") == [own]
    with pytest.raises(StoreError):
        await add(store, "news", "https://a.example/1")
    await store.write(lambda tx: tx.put_document(held_reader(one), "i", KnownDocument(NO_VALIDATORS, b"held")))
    await store.write(lambda tx: source_rows.remove(tx, one))
    assert await store.read(lambda tx: tx.documents(held_reader(one))) == {}
    assert await numbers("sources", 0, 10) == [two, three, listed, own]
    assert await store.read(lambda tx: source_rows.states(tx)) == {SourceState.POLLED: 4}


async def test_each_host_shows_the_source_that_was_due_first(store: Store) -> None:
    """[SRC-017] A host with many feeds takes one place among those that are due."""
    late = await add(store, "a", "https://a.example/late", T0 + 2)
    early = await add(store, "a", "https://a.example/early", T0 + 1)
    other = await add(store, "b", "https://b.example/", T0)
    await add(store, "c", "https://c.example/", T0 + 100)
    await add(store, "d", "https://d.example/", None)

    def due(until_us: int, limit: int = 10) -> object:
        return store.read(lambda tx: [source.source_no for source in source_rows.due(tx, until_us, limit)])

    assert await due(T0 + 50) == [other, early]
    assert await due(T0 + 50, 1) == [other]
    assert await due(T0 - 1) == []
    assert await store.read(lambda tx: source_rows.next_due_us(tx)) == T0
    for number in (early, other):
        await store.write(lambda tx, number=number: source_rows.remove(tx, number))
    assert await due(T0 + 50) == [late]


async def test_pause_of_a_host_is_kept_until_it_ends(store: Store) -> None:
    def put(tx: WriteTx) -> None:
        source_rows.put_host_pause(tx, HostPause("b:443", T0 + 10, 1))
        source_rows.put_host_pause(tx, HostPause("a:443", T0 + 5))
        source_rows.put_host_pause(tx, HostPause("b:443", T0 + 20, 2))

    await store.write(put)

    assert await store.read(lambda tx: source_rows.host_pauses(tx, T0)) == [
        HostPause("a:443", T0 + 5),
        HostPause("b:443", T0 + 20, 2),
    ]
    assert await store.read(lambda tx: source_rows.host_pauses(tx, T0 + 5)) == [HostPause("b:443", T0 + 20, 2)]
    assert await store.read(lambda tx: source_rows.host_pause(tx, "a:443")) == HostPause("a:443", T0 + 5)
    await store.write(lambda tx: source_rows.remove_host_pause(tx, "a:443"))
    assert await store.read(lambda tx: source_rows.host_pause(tx, "a:443")) is None


async def test_entries_of_a_source_are_found_by_identity_and_by_link(store: Store) -> None:
    """[SRC-069] [SRC-073] Those of other sources are not."""
    numbers = [await add(store, "news", f"https://a.example/{place}") for place in range(2)]
    entries = [
        SourceEntry(EntryKey("one", "a.example/1"), "item 1", "digest", EntryPresence.MISSED),
        SourceEntry(EntryKey("two", "a.example/2"), "item 2"),
        SourceEntry(EntryKey("three"), "item 3"),
    ]
    for number in numbers:
        for entry in entries:
            await store.write(lambda tx, number=number, entry=entry: source_rows.put_entry(tx, number, entry))
    stored = await store.read(lambda tx: source_rows.entries(tx, numbers[1]))
    keys = [EntryKey("one", "b.example/"), EntryKey("new", "a.example/2"), EntryKey("newer")]

    assert [replace(entry, entry_no=0) for entry in stored] == entries
    assert await store.read(lambda tx: source_rows.entries_of(tx, numbers[1], keys)) == stored[:2]

    changed = replace(stored[0], key=EntryKey("other", "c.example/"), presence=EntryPresence.RETRACTED)
    await store.write(lambda tx: source_rows.put_entry(tx, numbers[1], changed))
    assert await store.read(lambda tx: source_rows.entries(tx, numbers[1])) == [changed, *stored[1:]]


async def test_entries_end_with_their_source_and_the_first_ones_are_trimmed(store: Store) -> None:
    """[SRC-083]"""
    numbers = [await add(store, "news", f"https://a.example/{place}") for place in range(2)]
    for number in numbers:
        for name in "abc":
            entry = SourceEntry(EntryKey(name), name)
            await store.write(lambda tx, number=number, entry=entry: source_rows.put_entry(tx, number, entry))
    await store.write(lambda tx: source_rows.trim_entries(tx, numbers[0], 2))
    await store.write(lambda tx: source_rows.trim_entries(tx, numbers[1], 3))
    await store.write(lambda tx: source_rows.remove(tx, numbers[1]))

    assert [entry.item_id for entry in await store.read(lambda tx: source_rows.entries(tx, numbers[0]))] == ["b", "c"]
    assert await store.read(lambda tx: source_rows.has_entries(tx, numbers[0]))
    assert not await store.read(lambda tx: source_rows.has_entries(tx, numbers[1]))


async def test_sources_of_a_host_are_found_by_an_index(sqlite: SqliteStore) -> None:
    """People upload lists of hundreds of addresses. One scan of 20,000 sources takes 92 ms."""
    steps = await plan(sqlite, lambda tx: source_rows.sources_on_hosts(tx, ["a.example"]))
    assert "source_place" in steps and "source_first_place" in steps and "SCAN" not in steps
