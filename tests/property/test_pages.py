"""Pages joined are the view, for any size, either direction, either order, ties and filters (xep-map 3; SF-107)."""

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import Item
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.position import format_cursor
from smartfeeds.core.view import Order, View, parse_view, split_name
from smartfeeds.formats.atom import tombstone
from smartfeeds.service.requests import FeedPage, PullFeed
from smartfeeds.store.base import WriteTx
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import CREATED, FEED, MODIFIED, OWNER, SERVICE, Shown, World, draft, entry, jid

VIEWS = (
    FEED,
    MODIFIED,
    CREATED,
    f"{FEED}?category=x",
    f"{FEED}?category=x&order=created",
    f"{FEED}?kind=deleted&kind=edited",
    f"{FEED}?q=blue",
)
SEVERAL = st.integers(0, 6)


@dataclass(frozen=True)
class Row:
    """An item: small keys, so that ties are common."""

    created_us: int
    modified_us: int
    change: str
    category: str
    text: str


ROWS = st.lists(
    st.builds(
        Row,
        SEVERAL,
        SEVERAL,
        st.sampled_from(["new", "new", "edited", "deleted"]),
        st.sampled_from("xy"),
        st.sampled_from(["blue", "red"]),
    ),
    max_size=14,
)


async def build(rows: list[Row]) -> World:
    """A feed of these rows; the id of each is its number."""
    store = SqliteMemoryStore()
    await store.open()
    world = World(store)
    await world.create()

    def work(tx: WriteTx) -> None:
        for number, row in enumerate(rows):
            deleted = row.change == "deleted"
            payload = draft(entry(row.text, category=row.category)).payload
            tx.put_item(
                1,
                Item(
                    0,
                    f"i{number}",
                    row.created_us,
                    row.modified_us,
                    tombstone(f"i{number}", 0, payload) if deleted else payload,
                    OWNER,
                    deleted=deleted,
                    revision=1 if row.change == "new" else 2,
                ),
            )
        tx.set_keys(1, 10, 10)

    await store.write(work)
    return world


def model(rows: list[Row], name: str) -> list[str]:
    """The ids of a view, by sorting and looking."""
    split = split_name(name)
    view = parse_view(split[1]) if split else View()
    assert view is not None
    filters = dict(view.filters)

    def inside(row: Row) -> bool:
        deleted = row.change == "deleted"
        if deleted and (not view.smart or filters.keys() & {"category", "q"}):
            return False
        return (
            ("kind" not in filters or row.change in filters["kind"])
            and ("category" not in filters or row.category in filters["category"])
            and (not view.query or row.text in view.query)
        )

    numbered = [(number, row) for number, row in enumerate(rows) if inside(row)]
    key = "created_us" if "created" in name else "modified_us"
    return [f"i{number}" for number, _ in sorted(numbered, key=lambda pair: (getattr(pair[1], key), pair[0]))]


def ids(page: Shown) -> list[str]:
    return page.ids.split()


@settings(max_examples=runs(150))
@given(ROWS, st.sampled_from(VIEWS), st.integers(1, 7), st.booleans())
def test_pages_joined_are_the_view_in_both_directions(rows: list[Row], name: str, size: int, descending: bool) -> None:
    """[SF-107] [xep-map 193] [xep-map 194] [xep-map 204] [xep-map 214] [xep-map 224]"""

    async def run() -> None:
        world = await build(rows)
        by = "creation" if "created" in name else "modification"
        order = f"{by} desc" if descending else ""
        expected = model(rows, name)[:: -1 if descending else 1]
        found: list[str] = []
        page = await world.pull(name, order_by=order, max=size)
        while page.items:
            assert (page.index, page.count) == (len(found), len(expected))
            found += ids(page)
            page = await world.pull(name, order_by=order, max=size, after=page.last or "")
        assert found == expected and page.count == len(expected)
        found = []
        page = await world.pull(name, order_by=order, max=size, before="")
        while page.items:
            found = ids(page) + found
            # The bare view has no index on backward pages (docs/xmpp.md 3.1, rows 9 and 10).
            assert page.index == (len(expected) - len(found) if "?" in name else None)
            page = await world.pull(name, order_by=order, max=size, before=page.first or "")
        assert found == expected

    asyncio.run(run())


@settings(max_examples=runs(150))
@given(ROWS, st.sampled_from(VIEWS[:3]), st.integers(1, 7), st.booleans(), st.booleans())
def test_cursors_of_a_page_count_all_items_with_their_key(
    rows: list[Row], name: str, size: int, backwards: bool, tombstones: bool
) -> None:
    """[SF-103] Whatever of them the page shows. Without tombstones the bare view has all items, too."""
    rows = [row for row in rows if tombstones or row.change != "deleted"]
    key = "created_us" if "created" in name else "modified_us"
    order = Order.CREATED if "created" in name else Order.MODIFIED

    def cursor(item_id: str) -> str:
        number = int(item_id.removeprefix("i"))
        key_us = getattr(rows[number], key)
        return format_cursor(order, key_us, [f"i{n}" for n in range(number + 1) if getattr(rows[n], key) == key_us])

    async def run() -> None:
        world = await build(rows)
        place = {"before": ""} if backwards else {}
        page = await world.pull(name, max=size, **place)
        while page.items:
            first, last = cursor(page.items[0].id), cursor(page.items[-1].id)
            assert set(f"{page.first}~{page.last}".replace("cursor:", "").split("~")) == {first, last}
            place = {"before": page.first or ""} if backwards else {"after": page.last or ""}
            page = await world.pull(name, max=size, **place)

    asyncio.run(run())


async def pull_document(world: World, name: str, page: ResultSetRequest, *, sides: bool = False) -> FeedPage:
    """A page of a view for a document."""
    split = split_name(name)
    request = PullFeed(jid(OWNER), SERVICE, FEED, split[1] if split else "", not split, page, both_sides=sides)
    answer = await world.service.handle(request)
    assert isinstance(answer, FeedPage)
    return answer


def shown_of(answer: FeedPage) -> list[str]:
    """The ids of the items of a page for a document."""
    assert answer.page is not None
    return [item.id for item in answer.page.items]


@settings(max_examples=runs(150))
@given(ROWS, st.sampled_from(VIEWS), st.integers(1, 7))
def test_page_for_a_document_says_what_lies_on_both_sides(rows: list[Row], name: str, size: int) -> None:
    """[A-10] With ties, whether the page begins at a cursor, at the beginning or at the end."""

    async def run() -> None:
        world = await build(rows)
        expected = model(rows, name)
        found: list[str] = []
        answer = await pull_document(world, name, ResultSetRequest(str(size)))
        while shown_of(answer):
            assert answer.page is not None and answer.page.result_set is not None
            found += shown_of(answer)
            assert answer.page.result_set.count == len(expected)
            assert answer.newer == (len(found) < len(expected))
            answer = await pull_document(world, name, ResultSetRequest(str(size), answer.page.result_set.last))
        assert found == expected
        found = []
        answer = await pull_document(world, name, ResultSetRequest(str(size), None, ""), sides=True)
        while shown_of(answer):
            assert answer.page is not None and answer.page.result_set is not None
            assert answer.newer == bool(found)
            found = shown_of(answer) + found
            assert answer.older == (len(found) < len(expected))
            before = ResultSetRequest(str(size), None, answer.page.result_set.first)
            answer = await pull_document(world, name, before, sides=True)
        assert found == expected

    asyncio.run(run())


@settings(max_examples=runs(150))
@given(ROWS, st.sampled_from(VIEWS), st.integers(1, 5), SEVERAL, SEVERAL, st.booleans())
def test_range_between_any_two_items_is_what_lies_between(
    rows: list[Row], name: str, size: int, one: int, other: int, newest: bool
) -> None:
    """[SF-034] [xep-map 202] [xep-map 203]"""

    async def run() -> None:
        world = await build(rows)
        expected = model(rows, name)
        if max(one, other) >= len(expected):
            return
        after = (await world.pull(name, index=one, max=1)).last or ""
        before = (await world.pull(name, index=other, max=1)).last or ""
        between = expected[one + 1 : other]
        assert ids(await world.pull(name, after=after, before=before, max=size)) == between[:size]
        assert ids(await world.pull(name, after=after, before="", max=size)) == expected[one + 1 :][-size:]
        page = await world.pull(name, index=one, max=size)
        assert (ids(page), page.index) == (expected[one : one + size], one)

    asyncio.run(run())


@settings(max_examples=runs(100))
@given(ROWS, st.sampled_from(VIEWS), SEVERAL)
def test_time_bounds_split_the_view_with_items_of_that_time_on_both_sides(
    rows: list[Row], name: str, time_us: int
) -> None:
    """[SF-032] [xep-map 219]"""

    async def run() -> None:
        world = await build(rows)
        position = f"time:0.{time_us:06d}"
        expected = model(rows, name)

        def key(item_id: str) -> int:
            row = rows[int(item_id[1:])]
            return row.created_us if "created" in name else row.modified_us

        later = ids(await world.pull(name, after=position, max=100))
        earlier = ids(await world.pull(name, before=position, max=100))
        assert later == [item_id for item_id in expected if key(item_id) >= time_us]
        assert earlier == [item_id for item_id in expected if key(item_id) <= time_us]

    asyncio.run(run())


@settings(max_examples=runs(100))
@given(ROWS, st.integers(1, 6))
def test_movim_and_strict_walks_of_the_bare_view_see_every_item_once(rows: list[Row], size: int) -> None:
    """[xep-map 209]"""

    async def run() -> None:
        world = await build(rows)
        for edge in ("first", "last"):
            found: list[str] = []
            page = await world.pull(FEED, max_items=size)
            while page.items:
                found = ids(page) + found
                page = await world.pull(FEED, max=size, before=getattr(page, edge))
            assert found == model(rows, FEED)

    asyncio.run(run())


@settings(max_examples=runs(60))
@given(ROWS, st.integers(1, 5))
def test_pages_cut_by_bytes_joined_are_the_view(rows: list[Row], items: int) -> None:
    """[SF-034] Row 25."""

    async def run() -> None:
        world = await build(rows)
        world.set_policy(page_bytes=items * 300)
        found: list[str] = []
        page = await world.pull(MODIFIED, max=100)
        while page.items:
            found += ids(page)
            page = await world.pull(MODIFIED, max=100, after=page.last or "")
        assert found == model(rows, MODIFIED)

    asyncio.run(run())
