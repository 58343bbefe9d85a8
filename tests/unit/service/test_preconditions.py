"""Changes that happen only to what the asker has seen, and what there is to see (RFC 9110 13.1)."""

from itertools import count

import pytest

from smartfeeds.errors import Condition
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.requests import GetItem, ItemPrecondition, ItemShown, Publish, Published, Retract
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, SERVICE, World, draft, entry, jid, refusal

_NUMBERS = count()
THERE = ItemPrecondition()
ABSENT = ItemPrecondition(absent=True)


def having(*tags: str) -> ItemPrecondition:
    return ItemPrecondition(frozenset(tags))


async def put(
    world: World,
    item_id: str | None = "a",
    expected: ItemPrecondition | None = None,
    *,
    actor: str = OWNER,
    payload: str = "",
    node: str = FEED,
) -> Published:
    # Each time another entry: the same one again is no change.
    made = draft(payload or entry(f"t{next(_NUMBERS)}"))
    request = Publish(jid(actor), SERVICE, node, item_id, made, expected=expected)
    answer = await world.service.handle(request)
    assert isinstance(answer, Published)
    return answer


async def take(world: World, expected: ItemPrecondition | None, *, actor: str = OWNER) -> None:
    await world.service.handle(Retract(jid(actor), SERVICE, FEED, "a", expected=expected))


async def shown(world: World, item_id: str = "a", *, actor: str = ALICE, node: str = FEED) -> ItemShown:
    answer = await world.service.handle(GetItem(jid(actor), SERVICE, node, item_id))
    assert isinstance(answer, ItemShown)
    return answer


async def tag(world: World) -> str:
    return item_tag((await shown(world)).item)


async def test_published_tells_the_tag_and_whether_it_is_new(feed: World) -> None:
    first = await put(feed)
    second = await put(feed)
    assert (first.created, second.created) == (True, False)
    assert second.tag == await tag(feed) != first.tag

    await feed.retract("a")
    again = await put(feed)
    assert again.created and again.tag == await tag(feed)
    gone = await put(feed, payload=entry(deleted=True))
    assert (gone.tag, gone.created) == ("", False)


async def test_tag_changes_with_every_change_and_with_nothing_else(feed: World) -> None:
    tags = [(await put(feed)).tag]
    for step in range(4):
        await put(feed, "other")
        await feed.configure(title=f"t{step}")
        assert await tag(feed) == tags[-1]
        if step == 2:
            await feed.retract("a")
        else:
            await put(feed)  # at the same second
        tags.append(await tag(feed))

    assert len(set(tags)) == 5


async def test_tag_of_a_node_made_anew_is_another(feed: World) -> None:
    first = await put(feed)
    await feed.delete()
    await feed.create()
    feed.clock.move(-100)

    assert (await put(feed)).tag != first.tag


async def test_publish_with_the_tag_of_the_item_happens_once(feed: World) -> None:
    """Of two editors who saw the same, the second is told."""
    seen = (await put(feed)).tag

    changed = await put(feed, expected=having("0.0", seen))
    assert changed.tag != seen
    assert await refusal(put(feed, expected=having(seen))) is Condition.PRECONDITION_NOT_MET
    assert await tag(feed) == changed.tag


@pytest.mark.parametrize(
    ("state", "expected", "met"),
    [
        ("never", THERE, False),
        ("never", ABSENT, True),
        ("never", having("1.1"), False),
        ("live", THERE, True),
        ("live", ABSENT, False),
        ("live", having(), False),
        ("deleted", THERE, False),
        ("deleted", ABSENT, True),
    ],
)
async def test_publish_where_the_item_is_or_is_not_there(
    feed: World, state: str, expected: ItemPrecondition, *, met: bool
) -> None:
    """A deleted item is not there."""
    if state != "never":
        await put(feed)
    if state == "deleted":
        await feed.retract("a")
    before = await feed.node()
    if met:
        await put(feed, expected=expected)
    else:
        assert await refusal(put(feed, expected=expected)) is Condition.PRECONDITION_NOT_MET
        assert await feed.node() == before


async def test_publish_with_the_tag_of_a_tombstone_brings_that_one_back(feed: World) -> None:
    live = (await put(feed)).tag
    await feed.retract("a")
    buried = await tag(feed)

    assert await refusal(put(feed, expected=having(live))) is Condition.PRECONDITION_NOT_MET
    assert (await put(feed, expected=having(buried))).created


async def test_deletion_by_its_mark_heeds_the_tag(feed: World) -> None:
    old = (await put(feed)).tag
    new = (await put(feed)).tag
    mark = entry(deleted=True)

    assert await refusal(put(feed, expected=having(old), payload=mark)) is Condition.PRECONDITION_NOT_MET
    await put(feed, expected=having(new), payload=mark)
    assert (await shown(feed)).item.deleted


async def test_retract_heeds_the_tag(feed: World) -> None:
    old = (await put(feed)).tag
    new = (await put(feed)).tag

    assert await refusal(take(feed, having(old))) is Condition.PRECONDITION_NOT_MET
    assert not (await shown(feed)).item.deleted
    await take(feed, having(new))
    assert (await shown(feed)).item.deleted


async def test_retract_of_what_is_not_there_says_so_whatever_was_expected(feed: World) -> None:
    """RFC 9110 13.2.1: preconditions do not matter where the request fails without them."""
    for expected in (THERE, having("1.1")):
        assert await refusal(take(feed, expected)) is Condition.ITEM_NOT_FOUND
    await put(feed)
    await take(feed, THERE)
    assert await refusal(take(feed, THERE)) is Condition.ITEM_NOT_FOUND


@pytest.mark.parametrize("expected", [THERE, ABSENT, having("1.1")])
async def test_who_may_not_change_an_item_learns_nothing_from_preconditions(
    feed: World, expected: ItemPrecondition
) -> None:
    """Rights come first."""
    for _ in range(2):
        assert await refusal(put(feed, expected=expected, actor=ALICE)) is Condition.FORBIDDEN
        assert await refusal(take(feed, expected, actor=ALICE)) is Condition.FORBIDDEN
        await put(feed)
    await feed.configure(publish_model="open")
    assert await refusal(put(feed, expected=expected, actor=BOB)) is Condition.FORBIDDEN


async def test_item_is_shown_deleted_ones_too(feed: World) -> None:
    """[SF-013] What is left of it."""
    assert await refusal(shown(feed)) is Condition.ITEM_NOT_FOUND
    await put(feed)
    live = await shown(feed, node=MODIFIED)
    assert (live.item.id, live.item.deleted, live.node, live.show_publisher) == ("a", False, await feed.node(), True)
    await feed.retract("a")
    await feed.configure(itemreply="none")
    gone = await shown(feed)

    assert gone.item.deleted and not gone.show_publisher


async def test_item_is_for_readers(feed: World) -> None:
    """[xep-map 184] [xep-map 185] There or not."""
    await put(feed)
    await feed.configure(access_model="whitelist")

    assert await refusal(shown(feed)) is Condition.CLOSED_NODE
    assert await refusal(shown(feed, "never")) is Condition.CLOSED_NODE
    assert await refusal(shown(feed, node="nope")) is Condition.ITEM_NOT_FOUND
    await feed.affiliate(ALICE, "member")
    assert (await shown(feed)).item.id == "a"
