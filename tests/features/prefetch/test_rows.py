"""Enclosures, their uses and the log of arrivals in every store."""

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState, EnclosureUse, FileArrival, digest_of
from smartfeeds.store.base import Store, WriteTx
from store.values import add_feed

T0 = 1_700_000_000_000_000


def enclosure(name: str, host: str = "h.example:443", **changes: object) -> Enclosure:
    url = f"https://h.example/{name}"
    made = Enclosure(0, url, host, digest_of(url), "audio/mpeg", None, EnclosureState.WAITING, "", T0, T0)
    return made._replace(**changes)


async def add(store: Store, *rows: Enclosure) -> list[Enclosure]:
    return await store.write(lambda tx: [enclosure_rows.add(tx, row) for row in rows])


async def names(store: Store, read) -> list[str]:
    return [row.url.rpartition("/")[2] for row in await store.read(read)]


async def test_enclosure_is_read_as_it_was_put(store: Store) -> None:
    """[PRE-027] Validators and counts survive a restart byte for byte."""
    (row,) = await add(store, enclosure("a"))
    whole = row._replace(
        media_type="audio/ogg", length_bytes=7, state=EnclosureState.GIVEN_UP, reason="broke", dated_us=1, since_us=2,
        failures=3, tried_us=4, asked_us=5, total_bytes=6, etag='W/"no', modified="yesterday", condition='"x"',
        partial_bytes=8, night_us=9, night_bytes=10,
    )  # fmt: skip
    await store.write(lambda tx: enclosure_rows.put(tx, whole))
    for read in (
        lambda tx: enclosure_rows.enclosure(tx, row.enclosure_no),
        lambda tx: enclosure_rows.enclosure_at(tx, row.url),
        lambda tx: enclosure_rows.enclosure_of_digest(tx, row.digest),
        lambda tx: enclosure_rows.enclosures(tx, 0, NO_LIMIT)[0],
    ):
        assert await store.read(read) == whole
    assert await store.read(lambda tx: enclosure_rows.enclosures(tx, row.enclosure_no, NO_LIMIT)) == []
    await store.write(lambda tx: enclosure_rows.remove(tx, row.enclosure_no))
    assert await store.read(lambda tx: enclosure_rows.enclosure(tx, row.enclosure_no)) is None


async def test_queue_has_partial_files_first_and_then_the_newest(store: Store) -> None:
    """[PRE-007] [PRE-025] [PRE-004] One that was tried in the window, and hosts that are busy, are left out."""
    await add(
        store,
        enclosure("old", dated_us=T0),
        enclosure("new", dated_us=T0 + 2),
        enclosure("part", condition='"1"', dated_us=T0 - 5),
        enclosure("tried", tried_us=T0, dated_us=T0 + 9),
        enclosure("busy", host="other:80"),
        enclosure("there", state=EnclosureState.ARRIVED),
        enclosure("gone", state=EnclosureState.GIVEN_UP),
    )
    assert await names(store, lambda tx: enclosure_rows.due(tx, T0, {"other:80"}, NO_LIMIT)) == ["part", "new", "old"]
    assert await names(store, lambda tx: enclosure_rows.due(tx, T0, set(), 1)) == ["part"]
    assert await names(store, lambda tx: enclosure_rows.due(tx, T0 + 1, {"other:80"}, NO_LIMIT)) == [
        "part", "tried", "new", "old",
    ]  # fmt: skip


async def test_asked_ones_come_in_their_order(store: Store) -> None:
    """[PRE-008]"""
    await add(
        store,
        enclosure("b", asked_us=2),
        enclosure("a", asked_us=1),
        enclosure("c"),
        enclosure("d", asked_us=0, state=EnclosureState.ARRIVED),
        enclosure("e", asked_us=0, host="other:80"),
    )
    assert await names(store, lambda tx: enclosure_rows.asked(tx, {"other:80"}, NO_LIMIT)) == ["a", "b"]
    assert await names(store, lambda tx: enclosure_rows.asked(tx, {"other:80"}, 1)) == ["a"]


async def test_uses_are_newest_first_and_go_with_source_and_enclosure(store: Store) -> None:
    """[PRE-016] [PRE-030]"""
    one, two = await add(store, enclosure("1", state=EnclosureState.ARRIVED), enclosure("2"))

    def work(tx: WriteTx) -> list[int]:
        sources = [source_rows.add(tx, new_source(node, f"https://{node}.example/", T0)) for node in ("a", "b")]
        for row, source_no, item_id, dated_us in (
            (one, sources[0], "x", 1), (one, sources[0], "y", 3), (one, sources[1], "x", 2), (two, sources[1], "z", 9),
        ):  # fmt: skip
            enclosure_rows.put_use(
                tx, EnclosureUse(row.enclosure_no, source_no, item_id, "ab"[source_no != sources[0]], dated_us)
            )
        return sources

    first, second = await store.write(work)
    uses = await store.read(lambda tx: enclosure_rows.uses(tx, one.enclosure_no))
    assert [(use.node, use.item_id) for use in uses] == [("a", "y"), ("b", "x"), ("a", "x")]
    uses = await store.read(lambda tx: enclosure_rows.uses_of(tx, second))
    assert [use.item_id for use in uses] == ["z", "x"]
    assert await store.read(lambda tx: enclosure_rows.sources(tx, 0, NO_LIMIT)) == [first, second]
    assert await store.read(lambda tx: enclosure_rows.sources(tx, first, NO_LIMIT)) == [second]
    arrived = await store.read(lambda tx: enclosure_rows.arrived_in(tx, "a"))
    assert sorted((row.url, item_id) for row, item_id in arrived) == [(one.url, "x"), (one.url, "y")]
    assert await store.read(lambda tx: enclosure_rows.arrived_in(tx, "c")) == []

    await store.write(lambda tx: source_rows.remove(tx, second))
    assert await names(store, lambda tx: enclosure_rows.unused(tx, NO_LIMIT)) == ["2"]
    await store.write(lambda tx: enclosure_rows.remove(tx, one.enclosure_no))
    assert await store.read(lambda tx: enclosure_rows.uses_of(tx, first)) == []


async def test_bytes_are_summed(store: Store) -> None:
    """[PRE-014] [PRE-036]"""
    rows = await add(
        store,
        enclosure("a", state=EnclosureState.ARRIVED, length_bytes=100, dated_us=5, night_us=7, night_bytes=60),
        enclosure("b", state=EnclosureState.ARRIVED, length_bytes=10, dated_us=4, night_us=6, night_bytes=10),
        enclosure("c", partial_bytes=3, night_us=7, night_bytes=3),
        enclosure("d", partial_bytes=2, state=EnclosureState.GIVEN_UP),
    )
    assert await store.read(lambda tx: enclosure_rows.enclosure_bytes(tx)) == 113
    assert await store.read(lambda tx: enclosure_rows.enclosure_bytes(tx, 5)) == 103
    assert await store.read(lambda tx: enclosure_rows.enclosure_bytes(tx, 5, but=rows[2].enclosure_no)) == 100
    source_no = await store.write(lambda tx: source_rows.add(tx, new_source("a", "https://a.example/", T0)))
    for row in rows:
        use = EnclosureUse(row.enclosure_no, source_no, "x", "a", T0)
        await store.write(lambda tx, use=use: enclosure_rows.put_use(tx, use))
    assert await store.read(lambda tx: enclosure_rows.night_bytes(tx, source_no, 7)) == 63
    assert await store.read(lambda tx: enclosure_rows.night_bytes(tx, source_no + 1, 7)) == 0
    assert sorted(await store.read(lambda tx: enclosure_rows.totals(tx))) == [
        ("arrived", 2, 110), ("given-up", 1, 2), ("waiting", 1, 3),
    ]  # fmt: skip
    assert await names(store, lambda tx: enclosure_rows.oldest(tx, 1)) == ["b"]
    assert sorted(await names(store, lambda tx: enclosure_rows.enclosures_before(tx, T0 + 1, NO_LIMIT))) == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert await names(store, lambda tx: enclosure_rows.enclosures_before(tx, T0, NO_LIMIT)) == []


async def test_known_digests(store: Store) -> None:
    """[PRE-027] Of complete files, and of those that wait for their rest."""
    there, part, gone = await add(
        store,
        enclosure("a", state=EnclosureState.ARRIVED),
        enclosure("b"),
        enclosure("c", state=EnclosureState.GIVEN_UP),
    )
    digests = {there.digest, part.digest, gone.digest, "0"}
    assert await store.read(lambda tx: enclosure_rows.known(tx, digests, complete=True)) == {there.digest}
    assert await store.read(lambda tx: enclosure_rows.known(tx, digests, complete=False)) == {part.digest}


async def test_log_forgets_old_entries(store: Store) -> None:
    """[PRE-031]"""
    for at_us in (1, 5, 9):
        entry = FileArrival(0, at_us, "n", "i", "https://h.example/a", at_us, 0.5, "")
        await store.write(lambda tx, entry=entry: enclosure_rows.add_arrival(tx, entry, 4))
    entries = await store.read(lambda tx: enclosure_rows.arrivals(tx, 0, NO_LIMIT))
    assert [(one.at_us, one.size_bytes, one.seconds) for one in entries] == [(5, 5, 0.5), (9, 9, 0.5)]
    assert await store.read(lambda tx: enclosure_rows.arrivals(tx, entries[0].arrival_no, NO_LIMIT)) == entries[1:]


async def test_pages_of_a_node_are_marked_as_changed(store: Store) -> None:
    """[PRE-034]"""
    node = await store.write(add_feed())
    await store.write(lambda tx: tx.mark_pages_changed(node.node_no))
    changed = await store.read(lambda tx: tx.node_by_no(node.node_no))
    assert changed is not None and changed.audience != node.audience
