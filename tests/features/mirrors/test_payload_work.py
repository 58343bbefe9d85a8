"""How often a mirrored item is parsed and written."""

import pytest

from smartfeeds.client.change import Change, ChangeKind
from smartfeeds.features.mirrors.mirror_in import read_changes
from smartfeeds.service.merging import merge_items
from smartfeeds.sync.merging import Outcome
from support.world import ATOM_NS, FEED, World
from support.xml_work import XmlWork, xml_work

COMPLETE = "<id>urn:x:1</id><title>T</title><updated>2011-05-09T12:00:00Z</updated>"
PREFIXED = "<one:more xmlns:one='urn:x-test:more' one:kind='odd'>words</one:more>"


def entry(inside: str) -> str:
    return f"<entry xmlns='{ATOM_NS}'>{inside}</entry>"


def synced(inside: str, updates: int = 1, deleted: str = "") -> str:
    """An entry with sync data of another service."""
    history = "".join(
        f"<sx:history sequence='{number}' when='2011-05-09T12:00:00Z' by='feeds.b.example%2Fbob'/>"
        for number in range(updates, 0, -1)
    )
    flag = f" deleted='{deleted}'" if deleted else ""
    sync = f"<sx:sync xmlns:sx='http://feedsync.org/2007/feedsync' id='i' updates='{updates}'{flag}>{history}</sx:sync>"
    return entry(f"{inside}{sync}")


async def mirror(world: World, monkeypatch: pytest.MonkeyPatch, payload: str) -> tuple[XmlWork, Outcome | None]:
    """Takes an item over from another service, from the bytes of the item on."""
    change = Change(ChangeKind.NEW, "i", payload.encode(), FEED, "")
    with xml_work(monkeypatch) as work:
        items = read_changes([change], 0).items
        (result,) = await world.service.write(
            lambda tx, context: merge_items(tx, context, FEED, "feeds.b.example", items)
        )
    return work, result.outcome


async def index(world: World) -> None:
    """Brings the filter index up to date. It reads each stored version once, at the latest when that is replaced."""
    node = await world.node()
    await world.store.write(lambda tx: tx.index_node(node.node_no))


@pytest.mark.parametrize(
    ("before", "incoming", "outcome", "counts"),
    [
        ("", synced(COMPLETE), Outcome.ADDED, (1, 1, 0)),
        ("", synced("<title>T</title>"), Outcome.ADDED, (1, 1, 0)),
        ("", synced(COMPLETE + PREFIXED), Outcome.ADDED, (1, 1, 0)),
        ("", synced(COMPLETE, deleted="true"), Outcome.ADDED, (1, 1, 0)),
        # The sync data that is stored has to be read before they are merged.
        (synced(COMPLETE), synced(COMPLETE, 2), Outcome.UPDATED, (2, 1, 0)),
        (synced(COMPLETE), synced(COMPLETE, 2, "true"), Outcome.UPDATED, (2, 1, 0)),
        (synced(COMPLETE), synced(COMPLETE), Outcome.UNCHANGED, (2, 1, 0)),
        # Servers may change prefixes. The stored payload is read to see that nothing else is different.
        (
            synced(COMPLETE + PREFIXED),
            synced(COMPLETE + PREFIXED.replace("one", "other")),
            Outcome.UNCHANGED,
            (3, 1, 0),
        ),
    ],
    ids=["new", "incomplete", "prefixed", "tombstone", "changed", "deleted", "again", "again with other prefixes"],
)
async def test_mirrored_item_is_parsed_and_written_once(
    feed: World,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    incoming: str,
    outcome: Outcome,
    counts: tuple[int, int, int],
) -> None:
    if before:
        await mirror(feed, monkeypatch, before)
        await index(feed)
    work, result = await mirror(feed, monkeypatch, incoming)
    assert (result, work.counts) == (outcome, counts)
