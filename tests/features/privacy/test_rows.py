"""The block lists in SQL, on each engine."""

import pytest

from smartfeeds.core.blocklist import ListKind
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.privacy import rows
from smartfeeds.store.base import Store, WriteTx


async def test_blocks_version_grows_with_each_change_of_the_lists(store: Store) -> None:
    """It is 0 while nobody was ever refused, and an aborted change leaves it as it is."""
    name = "eve@example.org"

    def fail(tx: WriteTx) -> None:
        rows.add_blocks(tx, ListKind.DENY, [name])
        raise FeedError(Condition.CONFLICT)

    versions = [await store.read(lambda tx: tx.blocks_version())]
    await store.write(lambda tx: rows.add_blocks(tx, ListKind.DENY, [name]))
    versions.append(await store.read(lambda tx: tx.blocks_version()))
    await store.write(lambda tx: rows.remove_blocks(tx, ListKind.DENY, [name]))
    versions.append(await store.read(lambda tx: tx.blocks_version()))
    with pytest.raises(FeedError):
        await store.write(fail)

    assert versions[0] == 0 < versions[1] < versions[2]
    assert await store.read(lambda tx: (tx.blocks_version(), rows.blocks(tx, ListKind.DENY))) == (
        versions[2],
        [],
    )
    assert await store.read(lambda tx: tx.refusal(name, "example.org")) is None
