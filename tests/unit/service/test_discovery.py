"""What nodes there are, and what they hold (xep-map C)."""

import pytest

from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import CREATED as CREATED_VIEW
from smartfeeds.errors import Condition
from smartfeeds.service.requests import GetItemIds, GetNodeInfo, GetNodes, ItemIds, NodeInfo, NodeList
from smartfeeds.store.base import WriteTx
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, SERVICE, T0_US, World, jid, refusal


async def listed(world: World, actor: str = ALICE, **rsm: int | str) -> tuple[str, NodeList]:
    page = ResultSetRequest(**{name: str(value) for name, value in rsm.items()}) if rsm else None
    answer = await world.service.handle(GetNodes(jid(actor), SERVICE, page))
    assert isinstance(answer, NodeList)
    return " ".join(node.name for node in answer.nodes), answer


async def item_ids(world: World, node: str = FEED, **rsm: int | str) -> ItemIds:
    page = ResultSetRequest(**{name: str(value) for name, value in rsm.items()}) if rsm else None
    answer = await world.service.handle(GetItemIds(jid(ALICE), SERVICE, node, page))
    assert isinstance(answer, ItemIds) and answer.node == node
    return answer


async def info(world: World, node: str = FEED, actor: str = ALICE) -> NodeInfo:
    answer = await world.service.handle(GetNodeInfo(jid(actor), SERVICE, node))
    assert isinstance(answer, NodeInfo) and answer.name == node
    return answer


@pytest.fixture
async def letters(world: World) -> World:
    """Seven nodes."""
    for name in "gfedcba":
        await world.create(name)
    return world


async def test_list_is_by_name_and_whole_without_a_set(letters: World) -> None:
    """[xep-map 36]"""
    names, answer = await listed(letters)

    assert names == "a b c d e f g" and answer.result_set is None


async def test_list_of_many_is_cut_and_says_so(letters: World) -> None:
    """[xep-map 42] Row 27."""
    letters.set_policy(page_max=3)
    names, answer = await listed(letters)

    assert names == "a b c" and answer.result_set is not None
    assert (answer.result_set.first, answer.result_set.last, answer.result_set.count) == ("a", "c", 7)


@pytest.mark.parametrize(
    ("rsm", "names", "index"),
    [
        ({"max": 2}, "a b", 0),
        ({"max": 2, "after": "b"}, "c d", None),
        ({"max": 2, "after": "bb"}, "c d", None),
        ({"max": 2, "before": ""}, "f g", None),
        ({"max": 2, "before": "d"}, "b c", None),
        ({"max": 2, "after": "b", "before": "d"}, "c", None),
        ({"max": 2, "index": 3}, "d e", 3),
        ({"max": 2, "after": "g"}, "", None),
        ({"max": 0}, "", None),
        ({"index": 7}, "", None),
    ],
)
async def test_list_pages_like_any_result_set(
    letters: World, rsm: dict[str, int | str], names: str, index: int | None
) -> None:
    """[xep-map 42] Row 26: UIDs of nodes are their names."""
    found, answer = await listed(letters, **rsm)
    assert found == names and answer.result_set is not None
    result_set = answer.result_set
    assert (result_set.count, result_set.index) == (7, index)
    assert (result_set.first, result_set.last) == ((found[0], found[-1]) if found else (None, None))


async def test_list_walks_see_every_node_once_both_ways(letters: World) -> None:
    """[xep-map 42] [xep-map 193] [xep-map 194]"""
    forwards, answer = await listed(letters, max=3)
    while answer.nodes:
        names, answer = await listed(letters, max=3, after=answer.nodes[-1].name)
        forwards += " " + names
    backwards, answer = await listed(letters, max=3, before="")
    while answer.nodes:
        names, answer = await listed(letters, max=3, before=answer.nodes[0].name)
        backwards = names + " " + backwards

    assert forwards.split() == backwards.split() == list("abcdefg")


async def test_list_leaves_out_what_the_reader_may_not_know(letters: World) -> None:
    """[SF-111] [xep-map 38]"""
    await letters.configure(node="b", access_model="whitelist")
    await letters.configure(node="c", access_model="authorize")
    await letters.affiliate(ALICE, "outcast", node="d")

    assert (await listed(letters))[0] == "a c e f g"
    assert (await listed(letters, max=2))[0] == "a c"
    assert (await listed(letters, max=2, before="e"))[0] == "a c"
    assert (await listed(letters, OWNER))[0] == "a b c d e f g"
    assert (await listed(letters, BOB))[0] == "a c d e f g"


async def test_list_is_not_kept_from_anybody_by_nodes_that_are_hidden(world: World) -> None:
    """[SF-111] [xep-map 38] [xep-map 42] Eleven thousand of them stand in front by name, and are not counted either."""
    options = {"access_model": ("whitelist",)}

    def hide(tx: WriteTx) -> None:
        for number in range(11_000):
            tx.add_node(Node(0, f"a{number:05}", NodeKind.FEED, BOB, T0_US, NodeOptions(NodeKind.FEED, options)))

    await world.store.write(hide)
    await world.create("b")
    await world.create("c")
    await world.create("a05000x", access_model="whitelist")
    await world.affiliate(ALICE, "member", node="a05000x")

    names, answer = await listed(world, BOB, max=1)
    assert names == "b" and answer.result_set is not None
    assert (answer.result_set.index, answer.result_set.count) == (0, 2)
    assert (await listed(world, BOB))[0] == "b c"
    assert (await listed(world, BOB))[1].result_set is None
    names, answer = await listed(world, ALICE, max=2)
    assert names == "a05000x b" and answer.result_set is not None and answer.result_set.count == 3
    names, answer = await listed(world, BOB, max=0)
    assert answer.result_set is not None and answer.result_set.count == 2
    names, answer = await listed(world, BOB, max=1, before="c")
    assert names == "b" and answer.result_set is not None and answer.result_set.count == 2


async def test_list_for_an_admin_has_every_node(letters: World) -> None:
    """[xep-map 38]"""
    letters.set_policy(admins=frozenset({BOB}))
    await letters.configure(node="b", access_model="whitelist")
    await letters.affiliate(BOB, "outcast", node="c")
    names, answer = await listed(letters, BOB, max=9)

    assert names == "a b c d e f g" and answer.result_set is not None and answer.result_set.count == 7


async def test_list_whose_search_was_given_up_says_where_to_go_on(
    letters: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 42] [xep-map 43] From the last node that was looked at, also where nothing was found on the way."""
    monkeypatch.setattr("smartfeeds.service.discovery.SCANNED", 4)
    monkeypatch.setattr("smartfeeds.service.discovery.SCAN_CHUNK", 2)
    for name in "afg":
        await letters.configure(node=name, type="urn:x")

    async def typed(wanted: str, **rsm: str) -> tuple[str, str | None, str | None]:
        page = ResultSetRequest(max="1", **rsm) if rsm else None
        answer = await letters.service.handle(GetNodes(jid(ALICE), SERVICE, page, (wanted,)))
        assert isinstance(answer, NodeList)
        found = answer.result_set
        names = "".join(node.name for node in answer.nodes)
        return names, found.first if found else None, found.last if found else None

    assert await typed("urn:x", after="") == ("a", "a", "d")
    assert await typed("urn:x", after="d") == ("f", "f", "f")
    assert await typed("urn:y", after="") == ("", "d", "d")
    assert await typed("urn:y", after="d") == ("", None, None)
    assert await typed("urn:x", before="f") == ("", "b", "b")
    assert await typed("urn:x", before="b") == ("a", "a", "a")
    assert await refusal(listed(letters, max=3, index=5)) is Condition.FEATURE_NOT_IMPLEMENTED
    letters.set_policy(page_max=1, page_default=1)
    assert await typed("urn:y") == ("", "d", "d")


async def test_list_by_type_included_or_excluded(letters: World) -> None:
    """[xep-map 43] [xep-map 44]"""
    await letters.configure(node="b", type="urn:x")
    await letters.configure(node="c", type="urn:y")

    async def typed(included: tuple[str, ...] | None, excluded: tuple[str, ...] | None) -> str:
        answer = await letters.service.handle(GetNodes(jid(ALICE), SERVICE, None, included, excluded))
        assert isinstance(answer, NodeList)
        return " ".join(node.name for node in answer.nodes)

    assert await typed(("urn:x", "urn:y"), None) == "b c"
    assert await typed(None, ("urn:x",)) == "a c d e f g"
    assert await typed((), None) == ""
    await letters.create("things", kind="generic")
    assert await typed(("",), None) == "things"
    assert await refusal(typed(("urn:x",), ("urn:y",))) is Condition.BAD_REQUEST


async def test_list_of_no_nodes_counts_nought_where_asked(world: World) -> None:
    """[xep-map 39]"""
    _, answer = await listed(world, max=5)
    assert answer.result_set is not None and answer.result_set.count == 0
    assert (await listed(world))[1].result_set is None


async def test_item_ids_are_the_live_ones_newest_page_first(feed: World) -> None:
    """[xep-map 41] [xep-map 42]"""
    await feed.publish_all("a b c d e")
    await feed.retract("b")
    assert await item_ids(feed) == ItemIds(FEED, ("a", "c", "d", "e"), None)
    feed.set_policy(page_max=2)
    answer = await item_ids(feed, MODIFIED)
    assert answer.ids == ("d", "e") and answer.result_set is not None
    assert (answer.result_set.index, answer.result_set.count) == (2, 4)
    answer = await item_ids(feed, max=2)
    assert answer.ids == ("a", "c") and answer.result_set is not None
    assert (await item_ids(feed, max=2, after=answer.result_set.last or "")).ids == ("d", "e")


async def test_item_ids_are_for_readers(feed: World) -> None:
    """[xep-map 184] [xep-map 185]"""
    await feed.configure(access_model="whitelist")

    assert await refusal(item_ids(feed)) is Condition.CLOSED_NODE
    assert await refusal(item_ids(feed, "nope")) is Condition.ITEM_NOT_FOUND


async def test_info_tells_people_and_audience_to_readers_alone(feed: World) -> None:
    """[SF-112] [xep-map 33] [xep-map 34]"""
    await feed.affiliate(BOB, "publisher")
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(BOB, MODIFIED)
    found = await info(feed)
    assert found.readable and (found.owners, found.publishers, found.subscribers) == ((OWNER,), (BOB,), 2)
    await feed.configure(access_model="authorize", title="Mine")
    found = await info(feed, actor="carol@example.org")
    assert not found.readable and (found.owners, found.publishers, found.subscribers) == ((), (), 0)


@pytest.mark.parametrize("model", ["whitelist", "authorize", "open"])
@pytest.mark.parametrize("affiliation", ["outcast", "publish-only"])
async def test_info_of_a_node_that_is_not_listed_to_one_is_its_type_and_access_model(
    feed: World, model: str, affiliation: str
) -> None:
    """[xep-map 34] Neither title nor description nor creator. Nor does a stranger learn them of a closed node."""
    await feed.configure(access_model=model, title="Mine", description="D", type="urn:x", language="en")
    await feed.affiliate(BOB, affiliation)
    told = {"type": ("urn:x",)} | ({} if model == "open" else {"access_model": (model,)})

    for who, described in ((ALICE, model != "whitelist"), (BOB, False), (OWNER, True)):
        found = await info(feed, actor=who)
        assert found.described is described
        assert found.node.name == FEED
        assert (found.node.creator == OWNER) is described
        assert (found.node.options.stored == told) is not described
        assert described or found.node.created_us == found.node.total == 0


async def test_info_of_a_view_names_the_view(feed: World) -> None:
    """[SF-112] [SF-113] [xep-map 29] [xep-map 35]"""
    assert (await info(feed, CREATED)).view == CREATED_VIEW
    assert await refusal(info(feed, "comments?x=1")) is Condition.ITEM_NOT_FOUND
    assert await refusal(info(feed, "nope")) is Condition.ITEM_NOT_FOUND
