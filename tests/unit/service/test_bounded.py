"""Requests whose work is bounded: counts that are left out, pages and lists that are read and written in steps."""

from collections.abc import Callable
from typing import Any

import pytest

from smartfeeds.core.model import Affiliation, Edge, IndexState, Item, Slice
from smartfeeds.core.view import View
from smartfeeds.service.context import Context
from smartfeeds.service.requests import (
    EmptyResult,
    GetNodeSubscriptions,
    Page,
    PartlyRefused,
    Pull,
    SetAffiliations,
    SetSubscriptions,
    SubscriptionList,
)
from smartfeeds.service.steps import IndexFirst
from smartfeeds.store.base import ReadTx
from support.commits import watch_commits
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, SERVICE, World, jid

NEWS = f"{FEED}?category=news"


@pytest.fixture
async def uncounted(feed: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A feed of which no filtered view can be counted within the bound."""

    def bounded_count(self: Any, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        return None if view.filtered else self.count(node_no, view, before=before)

    kind = await feed.service.read(lambda tx, _context: type(tx))
    monkeypatch.setattr(kind, "bounded_count", bounded_count)
    return feed


async def publish_news(world: World) -> None:
    for item_id in "abcd":
        await world.publish(item_id, category="news")
        world.clock.move(1)


async def test_page_without_a_count_has_its_items_and_positions(uncounted: World) -> None:
    """[SF-095] A count that would cost more than the page is left out; what needs no count is told (XEP-0059 2.7)."""
    await publish_news(uncounted)

    page = await uncounted.pull(NEWS, max=3)
    assert (page.ids, page.index, page.count) == ("a b c", 0, None)
    rest = await uncounted.pull(NEWS, after=page.last, max=3)
    assert (rest.ids, rest.index, rest.count) == ("d", None, None)
    newest = await uncounted.pull(NEWS, before="", max=2)
    assert (newest.ids, newest.index, newest.count) == ("c d", None, None)
    assert (await uncounted.pull(NEWS, max=0)).count is None
    assert (await uncounted.pull(MODIFIED, max=0)).count == 4


async def test_count_before_the_index_is_up_to_date_is_not_remembered(feed: World) -> None:
    """[SF-095] It counts what the index has; who needs the others brings the index up to date first."""
    view = View(True, filters=(("category", frozenset({"news"})),))
    node_no = (await feed.node()).node_no

    async def count() -> int | None:
        return await feed.store.read(lambda tx: tx.bounded_count(node_no, view))

    await publish_news(feed)
    assert [await count(), await count()] == [0, 0]
    await feed.store.write(lambda tx: tx.index_node(node_no))
    assert [await count(), await count()] == [4, 4]


async def test_page_whose_index_costs_too_much_has_none(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-096] Also in a small view: few items of a large feed may match, and the count of the view is remembered."""
    await publish_news(feed)
    first = await feed.pull(NEWS, max=2)
    assert (await feed.pull(NEWS, after=first.last, max=1)).index == 2

    def bounded_count(self: Any, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        return self.count(node_no, view) if before is None else None

    kind = await feed.service.read(lambda tx, _context: type(tx))
    monkeypatch.setattr(kind, "bounded_count", bounded_count)
    page = await feed.pull(NEWS, after=first.last, max=1)

    assert (page.ids, page.count, page.index) == ("c", 4, None)


async def test_page_that_is_the_whole_view_is_its_count(uncounted: World) -> None:
    await publish_news(uncounted)
    page = await uncounted.pull(NEWS, max=5)
    assert (page.ids, page.count) == ("a b c d", 4)
    assert (await uncounted.pull(f"{FEED}?category=none", max=5)).count == 0


async def test_push_without_a_count_has_its_cursors(uncounted: World) -> None:
    """The chain of cursors is what proves that nothing is missing; the total is left out."""
    await uncounted.subscribe(ALICE, NEWS)
    await publish_news(uncounted)
    events = await uncounted.events()

    assert [(event.short, event.total) for event in events] == [(f"+{item_id}", None) for item_id in "abcd"]
    assert [event.previous for event in events] == [None, *(event.last for event in events[:-1])]


SHAPES: list[dict[str, Any]] = [
    {"max": 30},
    {"max": 12, "before": ""},
    {"max": 7, "index": 4},
    {"max": 20, "order_by": "modification desc"},
    {"max": 11, "order_by": "modification desc", "before": ""},
    {"max": 3},
]


@pytest.mark.parametrize("page_bytes", [204_800, 3_000])
async def test_page_read_in_steps_is_the_page_read_at_once(
    feed: World, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    """Whatever its shape; and of what one stanza cannot carry no more than one step is read."""
    await feed.publish_all(" ".join(f"i{n}" for n in range(24)))
    feed.set_policy(page_bytes=page_bytes)
    after = (await feed.pull(MODIFIED, max=4)).last
    kind = await feed.service.read(lambda tx, _context: type(tx))
    real: Callable[[Any, int, Slice], list[Item]] = kind.slice
    rows = 0

    def counted(self: Any, node_no: int, wanted: Slice) -> list[Item]:
        nonlocal rows
        items = real(self, node_no, wanted)
        rows += len(items)
        return items

    monkeypatch.setattr(kind, "slice", counted)
    for shape in [*SHAPES, {"max": 15, "after": after}, {"max": 15, "before": after}]:
        pages = []
        for step in (100, 5):
            monkeypatch.setattr("smartfeeds.service.pulls.STEP_ITEMS", step)
            rows = 0
            pages.append(await feed.pull(MODIFIED, **shape))
        assert pages[0] == pages[1]
        assert rows <= len(pages[1].items) + 5


async def test_items_asked_for_by_id_come_in_the_order_asked_for(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 190] However they are read."""
    monkeypatch.setattr("smartfeeds.service.pulls.STEP_ITEMS", 2)
    await feed.publish_all("a b c d e")
    await feed.retract("b")

    answer = await feed.service.handle(Pull(jid(ALICE), SERVICE, FEED, ("e", "b", "a", "none", "d", "a")))

    assert isinstance(answer, Page)
    assert [item.id for item in answer.items] == ["e", "a", "d"]


# The filter index


async def test_filtered_read_waits_for_the_index_and_never_runs_where_others_write(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the index is behind again each time."""
    runs: list[bool] = []

    def work(tx: ReadTx, _context: Context) -> int | IndexFirst:
        node = tx.node(FEED)
        assert node is not None
        runs.append(hasattr(tx, "put_item"))
        if tx.index_state(node.node_no) is not IndexState.CURRENT:
            return IndexFirst(node.node_no)
        return node.total

    await feed.publish("a")
    assert await feed.service.read(work) == 1
    assert runs == [False, False]

    runs.clear()
    monkeypatch.setattr("smartfeeds.service.feeds.INDEX_TRIES", 1)
    await feed.publish("b")
    assert await feed.service.read(work) == 2
    assert runs == [False, True]


# Lists of an owner


async def test_long_list_of_affiliations_is_applied_in_steps(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 88] [xep-map 89] Others write in between; the answer is the one of a single step."""
    monkeypatch.setattr("smartfeeds.service.affiliations.STEP", 3)
    commits: list[None] = []
    watch_commits(monkeypatch, lambda: commits.append(None))
    entries = tuple((f"u{n}@example.org", "member") for n in range(7))
    handed_over = ((OWNER, "none"), *entries, (BOB, "owner"))
    answer = await feed.service.handle(SetAffiliations(jid(OWNER), SERVICE, FEED, handed_over))

    held = await feed.service.read(lambda tx, _context: tx.affiliations(1))
    assert answer == EmptyResult()
    assert held == [
        (BOB, Affiliation.OWNER),
        *((f"u{n}@example.org", Affiliation.MEMBER) for n in range(7)),
    ]
    assert len(commits) == 3

    refused = await feed.service.handle(
        SetAffiliations(jid(BOB), SERVICE, FEED, (*((name, "none") for name, _ in entries), (BOB, "none")))
    )
    assert isinstance(refused, PartlyRefused) and refused.affiliations is not None
    assert [one.jid for one in refused.affiliations.entries] == [BOB]
    assert await feed.service.read(lambda tx, _context: tx.affiliations(1)) == [(BOB, Affiliation.OWNER)]


async def test_long_list_of_subscriptions_is_applied_in_steps(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 94] [xep-map 96]"""
    monkeypatch.setattr("smartfeeds.service.subscriptions.STEP", 2)
    for name in "abcde":
        await feed.subscribe(f"{name}@example.org", FEED)
    gone = tuple((f"{name}@example.org", "none") for name in "axbyc")

    answer = await feed.service.handle(SetSubscriptions(jid(OWNER), SERVICE, FEED, gone))

    assert isinstance(answer, PartlyRefused) and answer.subscriptions is not None
    assert [one.jid for one in answer.subscriptions.entries] == ["x@example.org", "y@example.org"]
    left = await feed.service.handle(GetNodeSubscriptions(jid(OWNER), SERVICE, FEED))
    assert isinstance(left, SubscriptionList)
    assert [one.jid for one in left.entries] == ["d@example.org", "e@example.org"]
