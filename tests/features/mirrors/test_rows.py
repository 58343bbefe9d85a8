"""Mirrors in every store: settings and state as they were put."""

from dataclasses import replace

import pytest

from smartfeeds.core.consumers import Failure
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, Mirror, MirrorRow, MirrorState, refusal
from smartfeeds.store.base import Store, WriteTx

ONE = MirrorRow(
    Mirror("plans-b", "plans", "xmpp:feeds.b.example?;node=plans", Direction.BOTH, "o@a.example", 60.0, own_edits=True),
    configured=True,
    states={
        Direction.IN: MirrorState(
            '{"cursor":"x"}', 5, Failure(2, 7, 8, "away"), 9, 2, 1, (refusal('i\n"', "bäd", 3),), "told"
        ),
        Direction.OUT: MirrorState(),
    },
)


async def test_mirror_is_found_as_it_was_put(store: Store) -> None:
    plain = MirrorRow(Mirror("a", "n", "https://b.example/feeds/plans/", allow_private=True))

    def put(tx: WriteTx) -> None:
        stored_mirrors.put(tx, ONE)
        stored_mirrors.put(tx, plain)

    await store.write(put)
    assert await store.read(lambda tx: stored_mirrors.mirrors(tx)) == [plain, ONE]
    assert await store.read(lambda tx: stored_mirrors.mirror(tx, "plans-b")) == ONE
    assert await store.read(lambda tx: stored_mirrors.mirror(tx, "b")) is None


async def test_mirror_is_replaced_and_removed(store: Store) -> None:
    await store.write(lambda tx: stored_mirrors.put(tx, ONE))
    other = replace(ONE.with_state(Direction.OUT, MirrorState("5:6", items=3)), configured=False)
    await store.write(lambda tx: stored_mirrors.put(tx, other))
    assert await store.read(lambda tx: stored_mirrors.mirrors(tx)) == [other]

    await store.write(lambda tx: stored_mirrors.remove(tx, "plans-b"))
    await store.write(lambda tx: stored_mirrors.remove(tx, "plans-b"))
    assert await store.read(lambda tx: stored_mirrors.mirrors(tx)) == []


async def test_work_that_raises_leaves_mirrors_as_they_were(store: Store) -> None:
    await store.write(lambda tx: stored_mirrors.put(tx, ONE))

    def fail(tx: WriteTx) -> None:
        stored_mirrors.remove(tx, "plans-b")
        stored_mirrors.put(tx, MirrorRow(Mirror("new", "n", "https://b.example/")))
        raise ValueError

    with pytest.raises(ValueError):
        await store.write(fail)
    assert await store.read(lambda tx: stored_mirrors.mirrors(tx)) == [ONE]


def test_mirror_believes_own_edits_only_if_it_is_told_to() -> None:
    """Histories with edits of ours that this database does not have are refused otherwise."""
    assert not Mirror("plans-b", "plans", "xmpp:feeds.b.example?;node=plans").own_edits
