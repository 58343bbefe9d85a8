"""Moves in the outline of a feed: who may move what where, and what a move changes."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.placing import GetOutline, MoveItem, OutlineShown
from smartfeeds.service.requests import CreateNode, ItemPrecondition, Published
from smartfeeds.service.syncing import read_shared
from smartfeeds.sync.moves import MoveStep
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid

IDS = "a b c d"
UP, DOWN, INDENT, OUTDENT = MoveStep


@pytest.fixture
async def outline(world: World) -> World:
    await world.create(publish_model="open")
    await world.publish_all(IDS)
    return world


async def move(
    world: World, item_id: str, step: MoveStep | None = None, actor: str = OWNER, **place: object
) -> Published:
    answer = await world.service.handle(MoveItem(jid(actor), SERVICE, FEED, item_id, step, **place))  # type: ignore[arg-type]
    assert isinstance(answer, Published)
    return answer


async def shape(world: World, actor: str = OWNER) -> str:
    """The ids in their order, indented by dashes."""
    answer = await world.service.handle(GetOutline(jid(actor), SERVICE, FEED))
    assert isinstance(answer, OutlineShown)
    return " ".join("-" * level + item_id for level, item_id in answer.lines)


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([], "a b c d"),
        ([("a", DOWN)], "b a c d"),
        ([("d", UP)], "a b d c"),
        ([("b", INDENT)], "a -b c d"),
        ([("b", INDENT), ("c", INDENT)], "a -b -c d"),
        ([("b", INDENT), ("c", INDENT), ("c", INDENT)], "a -b --c d"),
        ([("b", INDENT), ("c", INDENT), ("c", UP)], "a -c -b d"),
        ([("b", INDENT), ("b", OUTDENT)], "a b c d"),
        ([("b", INDENT), ("c", INDENT), ("b", OUTDENT)], "a -c b d"),
        ([("b", INDENT), ("a", DOWN)], "c a -b d"),
        ([("a", DOWN), ("a", DOWN), ("a", DOWN), ("b", DOWN)], "c b d a"),
    ],
)
async def test_steps(outline: World, moves: list[tuple[str, MoveStep]], expected: str) -> None:
    """[SSE-028] As in an outliner."""
    for item_id, step in moves:
        await move(outline, item_id, step)
    assert await shape(outline) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"parent": "a"}, "a -d b c"),
        ({"parent": "a", "after": ""}, "a -d b c"),
        ({"after": "a"}, "a d b c"),
        ({"after": ""}, "d a b c"),
        ({"parent": "", "after": "b"}, "a b d c"),
        ({"parent": ""}, "a b c d"),
    ],
)
async def test_places(outline: World, place: dict[str, str], expected: str) -> None:
    """[SSE-028] By the parent and the item before."""
    await move(outline, "d", **place)
    assert await shape(outline) == expected


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
async def test_move_is_an_update_of_the_moved_item_alone(world: World, dialect: str) -> None:
    """[SSE-028] [SSE-033] The version counts one more change by the mover; content and publisher stay."""
    await world.create(sync_dialect=dialect)
    await world.publish_all(IDS)
    before = {one.id: one for one in (await world.pull(f"{FEED}?order=modified", actor=OWNER, max=10)).items}
    world.clock.move(60)
    node = await world.node()

    async def versions() -> dict[str, tuple[int, str]]:
        items = await world.store.read(lambda tx: tx.items(node.node_no, IDS.split()))
        context = world.service.new_context()
        shared = {item.id: read_shared(context, node, item).version for item in items}
        return {item_id: (version.counter, version.top.by) for item_id, version in shared.items()}

    former = await versions()
    await move(world, "b", INDENT)
    now = await versions()
    assert {item_id: now[item_id] == former[item_id] for item_id in now} == {
        "a": True,
        "b": False,
        "c": True,
        "d": True,
    }
    assert now["b"] == (2, "feeds.example.org%2Fowner@example.org")
    page = await world.pull(f"{FEED}?order=modified", actor=OWNER, max=10)
    assert page.ids == "a c d b"
    assert {one.id: one.payload for one in page.items} == {item_id: one.payload for item_id, one in before.items()}


async def test_move_to_the_same_place_changes_nothing(outline: World) -> None:
    """A client may repeat a move whose response it missed."""
    first = await move(outline, "d", parent="a")
    again = await move(outline, "d", parent="a")
    assert (again.tag, first.tag) == (first.tag, again.tag) and first.tag.startswith("2.")


async def test_edit_and_restored_item_stay_in_their_place(outline: World) -> None:
    """[A-49] A tombstone has its place, and hides what is in it."""
    await move(outline, "b", INDENT)
    await move(outline, "c", INDENT)
    await outline.publish("b", title="another title")
    assert await shape(outline) == "a -b -c d"
    await outline.retract("a")
    assert await shape(outline) == "d"
    await outline.publish("a")
    assert await shape(outline) == "a -b -c d"


@pytest.mark.parametrize(
    ("item_id", "place", "condition", "text"),
    [
        ("a", {"step": UP}, Condition.CONFLICT, "it is the first one here"),
        ("d", {"step": DOWN}, Condition.CONFLICT, "it is the last one here"),
        ("a", {"step": INDENT}, Condition.CONFLICT, "no item is before it"),
        ("a", {"step": OUTDENT}, Condition.CONFLICT, "it is not in another item"),
        ("a", {"parent": "a"}, Condition.CONFLICT, "into itself"),
        ("c", {"parent": "d"}, Condition.CONFLICT, "into itself"),
        ("a", {"parent": "b", "after": "c"}, Condition.CONFLICT, "has another parent"),
        ("a", {"after": "a"}, Condition.CONFLICT, "has another parent"),
        ("a", {"parent": "missing"}, Condition.ITEM_NOT_FOUND, "no such parent"),
        ("a", {"after": "gone"}, Condition.ITEM_NOT_FOUND, "no such item to move behind"),
        ("gone", {"step": UP}, Condition.ITEM_NOT_FOUND, "no such item"),
        ("missing", {"step": UP}, Condition.ITEM_NOT_FOUND, "no such item"),
        (
            "a",
            {"step": DOWN, "expected": ItemPrecondition(frozenset({"0.0"}))},
            Condition.PRECONDITION_NOT_MET,
            "changed",
        ),
    ],
)
async def test_move_that_is_impossible_says_why(
    outline: World, item_id: str, place: dict[str, object], condition: Condition, text: str
) -> None:
    """[SSE-043] An item never gets into itself."""
    await outline.publish("gone")
    await outline.retract("gone")
    await move(outline, "d", parent="c")
    await move(outline, "c", after="")
    await move(outline, "c", after="b")
    with pytest.raises(FeedError) as error:
        await move(outline, item_id, **({"step": None} | place))  # type: ignore[arg-type]
    assert (error.value.condition, text in error.value.text) == (condition, True)


async def test_rights_are_those_of_an_edit(outline: World) -> None:
    """Publishers move their own items; who may not read the feed moves nothing."""
    await outline.publish("mine", actor=ALICE)
    await move(outline, "mine", UP, ALICE)
    with pytest.raises(FeedError, match="somebody else"):
        await move(outline, "a", DOWN, ALICE)
    await outline.configure(access_model="whitelist")
    with pytest.raises(FeedError):
        await move(outline, "mine", UP, ALICE)
    with pytest.raises(FeedError):
        await shape(outline, BOB)
    await outline.affiliate(BOB, "publisher")
    await move(outline, "a", DOWN, BOB)
    assert await shape(outline, BOB) == "b a c mine d"


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
async def test_deleted_neighbours_stay_deleted(world: World, dialect: str) -> None:
    """[SSE-035] Whatever is moved around them; their content does not come back."""
    await world.create(sync_dialect=dialect)
    await world.publish_all(IDS)
    await move(world, "d", UP)
    await world.retract("d")
    for item_id, step in (("c", UP), ("a", DOWN), ("c", DOWN), ("b", UP), ("a", DOWN)):
        await move(world, item_id, step)
    assert set((await shape(world)).split()) == {"a", "b", "c"}
    node = await world.node()
    [item] = await world.store.read(lambda tx: tx.items(node.node_no, ["d"]))
    assert item.deleted and b"<title>d</title>" not in item.payload and node.live == 3


async def test_generic_node_and_view_have_no_outline(world: World) -> None:
    await world.service.handle(CreateNode(jid(OWNER), SERVICE, FEED, {KIND: (NodeKind.GENERIC.value,)}))
    for name, condition in ((FEED, Condition.NOT_ALLOWED), ("other", Condition.ITEM_NOT_FOUND)):
        with pytest.raises(FeedError) as error:
            await world.service.handle(GetOutline(jid(OWNER), SERVICE, name))
        assert error.value.condition is condition
    await world.create("feed")
    with pytest.raises(FeedError, match="a view has no outline"):
        await world.service.handle(GetOutline(jid(OWNER), SERVICE, "feed?order=modified"))
