"""Result sets through the whole component (xep-map L; XEP-0059; section 3.1 of the map, row by row)."""

import asyncio
import itertools

import pytest
import pytest_asyncio

from smartfeeds.core.times import parse_t
from support.component import ALICE, BOB, CAROL, NS, PS, RSM, Component, Refusal, Starter, bare, ok, refusal, tree
from support.golden import GOLDEN
from support.pulls import Shown, publish_all, pull, put, request, result_set, shown

pytestmark = pytest.mark.shared

BAD_REQUEST = Refusal("modify", "bad-request")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
VIEWS = ("comments", MODIFIED, CREATED)
LETTERS = "a b c d e f g"
ALL = LETTERS.split()


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """A feed `comments` with the items a to g."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", LETTERS)
    return component


@pytest.mark.parametrize("node", VIEWS)
async def test_max_alone_gives_the_oldest(feed: Component, node: str) -> None:
    """[xep-map 192] [SF-021] [SF-023]"""
    page = await pull(feed, node, max=3)

    assert (page.ids, page.index, page.count) == (ALL[:3], 0, 7)


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_forward_walk_visits_every_item_once(feed: Component, node: str, size: int) -> None:
    """[xep-map 193] [xep-map 198] [SF-019] [SF-035] [SF-036] [SF-094] [SF-095] [SF-096]"""
    seen: list[str] = []
    page = await pull(feed, node, max=size)
    while page.ids:
        assert (page.index, page.count) == (len(seen), 7)
        assert (page.first == page.last) is (len(page.ids) == 1)
        seen += page.ids
        page = await pull(feed, node, max=size, after=page.last)

    assert seen == ALL
    assert page.set == (None, None, None, 7)


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_backward_walk_visits_every_item_once(feed: Component, node: str, size: int) -> None:
    """[xep-map 194] [xep-map 198] [SF-020]: items ascend inside each page, the last one adjacent to the bound."""
    left = ALL
    page = await pull(feed, node, max=size, before="")
    while page.ids:
        assert page.ids == left[-size:]
        left = left[:-size]
        assert (page.index, page.count) == (None if node == "comments" else len(left), 7)
        page = await pull(feed, node, max=size, before=page.first)

    assert left == []
    assert page.set == (None, None, None, 7)


@pytest.mark.parametrize("node", VIEWS)
async def test_empty_before_gives_the_newest(feed: Component, node: str) -> None:
    """[xep-map 195]: the bare view has an index where it is asked for, because slixmpp stops at it."""
    page, indexed = await pull(feed, node, max=3, before=""), await pull(feed, node, max=3, before="", index="")

    assert (page.ids, page.index, page.count) == (["e", "f", "g"], None if node == "comments" else 4, 7)
    assert (indexed.ids, indexed.index, indexed.count) == (["e", "f", "g"], 4, 7)


@pytest.mark.parametrize("node", VIEWS)
async def test_empty_set_beside_max_items_gives_the_newest(feed: Component, node: str) -> None:
    """xep-map 3.1 row 21: StanzaJS writes an empty set."""
    answer = shown(await request(feed, node, max_items=3, beside=result_set()), node)

    assert (answer.ids, answer.index, answer.count) == (["e", "f", "g"], 4, 7)


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize(("max_items", "size", "ids"), [(2, 2, "f g"), (5, 2, "f g"), (2, 5, "f g"), (1, 600, "g")])
async def test_max_beside_max_items_bounds_the_newest(
    feed: Component, node: str, max_items: int, size: int, ids: str
) -> None:
    """xep-map 3.1 row 21, XEP-0060 6.5.7: StanzaJS writes the same number twice. The page continues as any other."""
    page = shown(await request(feed, node, max_items=max_items, beside=result_set(max=size)), node)
    older = await pull(feed, node, max=2, before=page.first)

    assert page.ids == ids.split()
    assert (page.index, page.count) == (7 - len(page.ids), 7)
    assert older.ids == ALL[: -len(page.ids)][-2:]


@pytest.mark.parametrize(
    ("place", "ids"), [({"after": ""}, "a b"), ({"before": ""}, "f g"), ({"index": "3"}, "d e")], ids=str
)
async def test_place_in_a_set_comes_before_max_items(feed: Component, place: dict[str, str], ids: str) -> None:
    """xep-map 3.1 row 21: StanzaJS sends max_items with each page."""
    page = shown(await request(feed, MODIFIED, max_items=2, beside=result_set(max=2, **place)), MODIFIED)

    assert page.ids == ids.split()


async def test_empty_after_is_the_beginning(feed: Component) -> None:
    """[xep-map 192]; row 8."""
    empty, absent = await pull(feed, MODIFIED, max=3, after=""), await pull(feed, MODIFIED, max=3)

    assert (empty.ids, empty.set) == (absent.ids, absent.set)


@pytest.mark.parametrize("more", [{}, {"before": ""}, {"after": "time:0"}, {"index": "2"}])
@pytest.mark.parametrize("node", VIEWS)
async def test_max_zero_gives_the_count_alone(feed: Component, node: str, more: dict[str, str]) -> None:
    """[xep-map 196] [SF-095]; row 5."""
    answer = ok(await request(feed, node, beside=result_set(max=0, **more)))

    assert [tree(child) for child in answer] == [
        tree(f"<pubsub xmlns='{PS}'><items node='{node}'/><set xmlns='{RSM}'><count>7</count></set></pubsub>")
    ]


async def test_max_zero_still_reads_the_position(feed: Component) -> None:
    """[xep-map 196] [xep-map 217]; row 5."""
    answer = await request(feed, MODIFIED, max=0, after="cursor:nonsense")

    assert refusal(answer) == Refusal("cancel", "item-not-found")


async def test_empty_pages_have_only_a_count(feed: Component) -> None:
    """[xep-map 197]; rows 7, 11, 14, 17."""
    oldest = await pull(feed, MODIFIED, max=1)
    newest = await pull(feed, MODIFIED, max=1, before="")

    pages = [
        await pull(feed, MODIFIED, after=newest.last),
        await pull(feed, MODIFIED, before=oldest.first),
        await pull(feed, MODIFIED, after=newest.last, before=oldest.first),
        await pull(feed, MODIFIED, index=7),
    ]

    assert [(page.ids, page.set) for page in pages] == [([], (None, None, None, 7))] * 4


@pytest.mark.parametrize("node", VIEWS)
async def test_index_gives_the_page_there(feed: Component, node: str) -> None:
    """[xep-map 199]"""
    for index in range(7):
        page = await pull(feed, node, max=3, index=index)
        assert (page.ids, page.index, page.count) == (ALL[index : index + 3], index, 7)
    for index in (7, 8, 10**17):
        assert (await pull(feed, node, max=3, index=index)).set == (None, None, None, 7)


@pytest.mark.parametrize(
    "rsm",
    [
        {"index": "1", "after": "time:0"},
        {"index": "1", "before": "time:0"},
        {"max": "-1"},
        {"max": "x"},
        {"max": "1.5"},
        {"max": ""},
        {"max": "١"},
        {"max": "9" * 400},
        {"index": "-1"},
        {"index": "one"},
        {"index": ""},
    ],
)
async def test_result_set_without_meaning_is_refused(feed: Component, rsm: dict[str, str]) -> None:
    """[xep-map 200]; rows 18, 19."""
    for node in VIEWS:
        assert refusal(await request(feed, node, beside=result_set(**rsm))) == BAD_REQUEST


@pytest.mark.parametrize("name", ["max", "after", "before", "index"])
async def test_element_twice_in_a_result_set_is_refused(feed: Component, name: str) -> None:
    """xep-map 3.1 row 22."""
    twice = f"<set xmlns='{RSM}'><{name}>1</{name}><{name}>1</{name}></set>"

    assert refusal(await feed.get(BOB, f"<items node='comments'/>{twice}")) == BAD_REQUEST


async def test_two_result_sets_are_refused(feed: Component) -> None:
    """xep-map 3.1 row 22."""
    twice = result_set(max=1) * 2

    assert refusal(await feed.get(BOB, f"<items node='comments'/>{twice}")) == BAD_REQUEST


async def test_page_is_never_longer_than_the_cap(start: Starter) -> None:
    """[xep-map 201] [SF-022]; row 20."""
    component = await start(pubsub={"page_default": 2, "page_max": 4})
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", LETTERS)

    for node in VIEWS:
        capped = await pull(component, node, max=5)
        assert (capped.ids, capped.index, capped.count) == (ALL[:4], 0, 7)
        rest = await pull(component, node, max=5, after=capped.last)
        assert (rest.ids, rest.index) == (ALL[4:], 4)
        default = await pull(component, node, after="time:0")
        assert (default.ids, default.index, default.count) == (ALL[:2], 0, 7)


async def test_page_is_never_longer_than_its_bytes(start: Starter) -> None:
    """[A-32] [xep-map 10] [xep-map 201]; row 25: cut at the far end, at least one item, `last` goes on."""
    component = await start(pubsub={"page_bytes": 1024})
    await component.create(ALICE, "comments")
    for item_id in ALL:
        big = "x" * (2000 if item_id == "d" else 50)
        payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{big}</title></entry>"
        await component.publish(ALICE, "comments", item_id, payload)

    forwards = await walk(component, MODIFIED)
    backwards: list[list[str]] = []
    page = await pull(component, MODIFIED, before="")
    while page.ids:
        backwards.insert(0, page.ids)
        page = await pull(component, MODIFIED, before=page.first)

    assert list(itertools.chain(*forwards)) == list(itertools.chain(*backwards)) == ALL
    assert ["d"] in forwards and ["d"] in backwards
    assert len(forwards) > 2 and len(forwards[0]) > 1 and len(backwards[-1]) > 1


async def walk(component: Component, node: str, after: str = "", size: int | None = None) -> list[list[str]]:
    """The ids of all pages behind a position, forwards."""
    pages = []
    page = await pull(component, node, after=after, max=size)
    while page.ids:
        pages.append(page.ids)
        page = await pull(component, node, after=page.last, max=size)
    return pages


async def cursors(component: Component, node: str) -> dict[str, str]:
    """The cursor of every item."""
    found = {}
    for index, item_id in enumerate(ALL):
        page = await pull(component, node, index=index, max=1)
        assert page.ids == [item_id] and page.first is not None
        found[item_id] = page.first
    return found


@pytest.mark.parametrize("node", VIEWS)
async def test_range_is_taken_from_its_older_end(feed: Component, node: str) -> None:
    """[xep-map 202] [xep-map 204] [SF-034]; row 13."""
    at = await cursors(feed, node)

    page = await pull(feed, node, after=at["b"], before=at["f"], max=2)
    assert (page.ids, page.index, page.count) == (["c", "d"], 2, 7)
    page = await pull(feed, node, after=page.last, before=at["f"], max=2)
    assert (page.ids, page.index, page.count) == (["e"], 4, 7)
    page = await pull(feed, node, after=page.last, before=at["f"], max=2)
    assert (page.ids, page.set) == ([], (None, None, None, 7))


@pytest.mark.parametrize("node", VIEWS)
async def test_range_that_holds_nothing_is_an_empty_page(feed: Component, node: str) -> None:
    """[xep-map 203]; rows 14, 15."""
    at = await cursors(feed, node)

    for after, before in (("c", "c"), ("c", "d"), ("e", "b")):
        page = await pull(feed, node, after=at[after], before=at[before])
        assert (page.ids, page.set) == ([], (None, None, None, 7))
    newest = await pull(feed, node, after=at["b"], before="", index="", max=2)
    assert (newest.ids, newest.index, newest.count) == (["f", "g"], 5, 7)
    few = await pull(feed, node, after=at["f"], before="", index="", max=2)
    assert (few.ids, few.index, few.count) == (["g"], 6, 7)


async def test_count_and_index_are_those_of_the_view(feed: Component) -> None:
    """[xep-map 204] [SF-014] [SF-015]: tombstones count in Smart views and not in the bare one; filters count too."""
    await feed.retract(ALICE, "comments", "b")

    bare_page = await pull(feed, "comments", max=2, before="", index="")
    smart_page = await pull(feed, MODIFIED, max=2, before="")
    created_page = await pull(feed, CREATED, max=2, before="")
    deleted_page = await pull(feed, "comments?kind=deleted", max=2, before="")

    assert (bare_page.ids, bare_page.index, bare_page.count) == (["f", "g"], 4, 6)
    assert (smart_page.ids, smart_page.index, smart_page.count) == (["g", "b"], 5, 7)
    assert (created_page.ids, created_page.index, created_page.count) == (["f", "g"], 5, 7)
    assert (deleted_page.ids, deleted_page.index, deleted_page.count) == (["b"], 0, 1)


async def test_every_page_is_one_snapshot(feed: Component) -> None:
    """[xep-map 205]: while items are published, index, count and items of each page agree."""
    publishing = [asyncio.create_task(feed.publish(ALICE, "comments", f"late-{number}")) for number in range(40)]
    counts = set()
    while not all(task.done() for task in publishing):
        newest = await pull(feed, MODIFIED, max=5, before="")
        assert newest.index is not None and newest.count is not None
        assert newest.index + len(newest.ids) == newest.count
        counts.add(newest.count)
    await asyncio.gather(*publishing)

    assert (await pull(feed, MODIFIED, max=0)).count == 47
    assert counts <= set(range(7, 48))


@pytest.mark.parametrize("node", VIEWS)
async def test_item_published_between_two_pages_is_on_a_later_page(feed: Component, node: str) -> None:
    """[xep-map 206] [SF-045]: nothing that was due is skipped, an item edited meanwhile comes again, changed."""
    first = await pull(feed, node, max=3)
    await publish_all(feed, "comments", "h c b2")

    rest = await walk(feed, node, first.last or "", 3)

    seen = first.ids + list(itertools.chain(*rest))
    again = ["h", "b2"] if node == CREATED else ["h", "c", "b2"]
    assert seen == [*ALL, *again]


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize("victim", ["a", "c", "d", "g"])
async def test_retraction_between_two_pages_skips_nothing(feed: Component, node: str, victim: str) -> None:
    """[xep-map 207]: also where the item that the position names is the one that went."""
    first = await pull(feed, node, max=3)
    await feed.retract(ALICE, "comments", victim)

    rest = list(itertools.chain(*await walk(feed, node, first.last or "", 3)))

    live = [item_id for item_id in ALL[3:] if item_id != victim]
    if node == MODIFIED:
        assert rest == [*live, victim]
    elif node == CREATED:
        assert rest == ALL[3:]
    else:
        assert rest == live


async def test_result_set_inside_the_items_element_is_understood(feed: Component) -> None:
    """[xep-map 208]: the answer has it in the right place all the same."""
    inside = await feed.get(BOB, f"<items node='comments'>{result_set(max=2)}</items>")
    beside = await feed.get(BOB, f"<items node='comments'/>{result_set(max=2)}")

    assert [tree(child) for child in ok(inside)] == [tree(child) for child in ok(beside)]
    assert [child.tag for child in beside[0]] == [f"{{{PS}}}items", f"{{{RSM}}}set"]


# Span cursors


async def movim_older(component: Component, page: Shown) -> Shown:
    """What Movim sends for older posts: the `last` of the page as `before`."""
    return await pull(component, "comments", max=12, before=page.last)


async def hundred(component: Component) -> list[str]:
    """A feed of 100 items."""
    await component.create(ALICE, "comments")
    ids = [f"post-{number:02}" for number in range(100)]
    await put(component, "comments", [(item_id, 1_700_000_000_000_000 + n) for n, item_id in enumerate(ids)])
    return ids


async def test_movim_walk_visits_every_item_once(component: Component) -> None:
    """[xep-map 209]: max_items, then before=last again and again: 9 pages, 100 items."""
    ids = await hundred(component)

    page = await pull(component, "comments", max_items=12)
    pages = []
    while page.ids:
        pages.append(page.ids)
        page = await movim_older(component, page)

    assert len(pages) == 9
    assert list(itertools.chain(*reversed(pages))) == ids


async def test_movim_walk_goes_back_a_page(component: Component) -> None:
    """[xep-map 209]: after=first gives the newer page: older, older, newer, newer."""
    ids = await hundred(component)

    newest = await pull(component, "comments", max_items=12)
    second = await movim_older(component, newest)
    third = await movim_older(component, second)
    back = await pull(component, "comments", max=12, after=third.first)
    again = await pull(component, "comments", max=12, after=back.last)

    assert [page.ids for page in (newest, second, third)] == [ids[88:], ids[76:88], ids[64:76]]
    assert [page.ids for page in (back, again)] == [ids[76:88], ids[88:]]


async def test_strict_walks_see_the_same_items(component: Component) -> None:
    """[xep-map 209]: before=first and after=last, as XEP-0059 has them, over the same feed."""
    ids = await hundred(component)

    page = await pull(component, "comments", max_items=12)
    backwards = []
    while page.ids:
        backwards.append(page.ids)
        page = await pull(component, "comments", max=12, before=page.first)
    start = await pull(component, "comments", max=12, before="")
    forwards = await pull(component, "comments", max=12, before=start.first)
    forwards = await pull(component, "comments", max=12, after=forwards.last)

    assert len(backwards) == 9
    assert list(itertools.chain(*reversed(backwards))) == ids
    assert forwards.ids == ids[88:]


async def test_span_cursors_can_be_switched_off(start: Starter) -> None:
    """[xep-map 209]; 3.5: with compat.span_cursors off, a page names its own first and last item."""
    component = await start(compat={"span_cursors": False})
    await hundred(component)

    page = await pull(component, "comments", max_items=12)

    assert page.first is not None and page.last is not None
    assert "~" not in page.first + page.last
    assert (await pull(component, "comments", before=page.first, max=1)).ids == ["post-87"]


async def test_smart_views_have_one_cursor_for_each_item(component: Component) -> None:
    """[xep-map 209] [SF-026]; 3.5: no spans there, and none are taken."""
    await hundred(component)

    page = await pull(component, MODIFIED, max_items=12)
    span = (await pull(component, "comments", max_items=12)).last

    assert page.first is not None and page.last is not None and span is not None
    assert "~" not in page.first + page.last and "~" in span
    assert refusal(await request(component, MODIFIED, before=span)) == Refusal("cancel", "item-not-found")


# The golden pages


async def golden(component: Component) -> None:
    """The golden feed, whose items share keys."""
    await component.create(ALICE, "comments")
    rows = [(item_id, parse_t(text) or 0) for item_id, text in GOLDEN["windows"]["feed"]]
    await put(component, "comments", rows)


@pytest.mark.parametrize(("node", "letter"), [(MODIFIED, ""), (CREATED, "c"), ("comments", "")])
async def test_golden_pages_have_the_golden_result_sets(component: Component, node: str, letter: str) -> None:
    """[SF-093] [SF-094] [SF-095] [SF-096] [SF-103] [xep-map 213]: byte for byte; created cursors have their letter."""
    await golden(component)
    found = GOLDEN["xmpp"]
    requests = [
        (result_set(max=2), found["pull_result_set"]),
        (found["next_set"], found["next_result_set"]),
        (result_set(after=f"cursor:{GOLDEN['windows']['cursors']['t']}"), found["empty_result_set"]),
        (found["last_page_set"], found["last_page_result_set"]),
    ]
    for asked, expected in requests:
        asked = asked.replace("cursor:", f"cursor:{letter}")
        if node == "comments":
            asked = asked.replace("<before/>", "<before/><index/>")
        answer = ok(await component.get(BOB, f"<items node='{node}'/>{asked}", "article_1@feeds.example.org"))
        given = answer.find("ps:pubsub/rsm:set", NS)
        assert given is not None
        assert tree(given) == tree(expected.replace("cursor:", f"cursor:{letter}"))


async def test_count_is_that_of_the_requester(feed: Component) -> None:
    """[A-08] [xep-map 204] [SF-016] [SF-111]: those who may not read get no number, and no count reveals a publisher
    that the node hides."""
    of_alice = f"comments?author={bare(ALICE)}"
    await feed.affiliate(ALICE, "comments", CAROL, "outcast")
    await feed.affiliate(ALICE, "comments", BOB, "publisher")
    await feed.publish(BOB, "comments", "h")

    refused = await request(feed, MODIFIED, user=CAROL, max=0)
    assert refusal(refused) == Refusal("auth", "forbidden")
    assert refused.find(".//rsm:count", NS) is None
    assert [(await pull(feed, node, user=BOB, max=0)).count for node in (MODIFIED, of_alice)] == [8, 7]
    await feed.configure(ALICE, "comments", itemreply="none")
    assert [(await pull(feed, node, user=BOB, max=0)).count for node in (MODIFIED, of_alice)] == [8, 0]
