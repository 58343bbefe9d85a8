"""Positions and limits on the golden feed, whose items share keys."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from smartfeeds.core.times import parse_t
from smartfeeds.errors import Condition
from support.golden import GOLDEN
from support.world import CREATED, FEED, MODIFIED, World, refusal

WINDOWS = GOLDEN["windows"]
RSM = {"since": "after", "until": "before", "max": "max"}
FULL = "p q r s t"


async def put_rows(world: World, rows: list[list[str]]) -> None:
    await world.create()
    await world.put(*[(item_id, parse_t(t) or 0) for item_id, t in rows])


def in_order(query: str, prefix: str) -> dict[str, str]:
    """The result set of a golden query; cursors get the prefix of the order."""
    text = query.replace("(none)", "").replace(" (empty)", "").replace("cursor:", f"cursor:{prefix}")
    return {RSM[name]: value for name, value in parse_qsl(text, keep_blank_values=True)}


@pytest.mark.parametrize(("node", "prefix"), [(CREATED, "c"), (MODIFIED, ""), (FEED, "")])
@pytest.mark.parametrize("case", WINDOWS["cases"], ids=lambda case: case["query"])
async def test_pull_golden_window_gives_its_ids(world: World, case: dict[str, Any], node: str, prefix: str) -> None:
    """[SF-019] [SF-020] [SF-021] [SF-022] [SF-023] [SF-031] [SF-032] [SF-033] [SF-034] [SF-052] [SF-054] [SF-093]"""
    await put_rows(world, WINDOWS["feed"])
    rsm = in_order(case["query"], prefix)
    refused = None
    if str(case["ids"]).startswith("error"):
        refused = Condition.ITEM_NOT_FOUND if "item-not-found" in case["ids"] else Condition.BAD_REQUEST
    if node == MODIFIED and "id:" in case["query"]:
        refused = Condition.FEATURE_NOT_IMPLEMENTED
    if node == FEED and case["query"] in ("since=42", "since=bogus:1"):
        refused = Condition.ITEM_NOT_FOUND
    if refused:
        assert await refusal(world.pull(node, **rsm)) is refused
        return

    page = await world.pull(node, **rsm)

    expected = FULL if isinstance(case["ids"], str) else " ".join(case["ids"])
    assert page.ids == expected
    if rsm:
        assert page.count == 5
        assert (page.first is None) is (not expected)


@pytest.mark.parametrize(("node", "prefix"), [(CREATED, "c"), (MODIFIED, "")])
async def test_pull_one_by_one_gives_the_golden_cursor_of_every_item(world: World, node: str, prefix: str) -> None:
    """[SF-026] [SF-035] [SF-036] [SF-089] [SF-094] [xep-map 198] [xep-map 210] [xep-map 214]"""
    await put_rows(world, WINDOWS["feed"])
    for index, item_id in enumerate(FULL.split()):
        page = await world.pull(node, index=index, max=1)

        cursor = f"cursor:{prefix}{WINDOWS['cursors'][item_id]}"
        assert (page.ids, page.first, page.last, page.index) == (item_id, cursor, cursor, index)
        rest = FULL.split()[index + 1 :]
        assert (await world.pull(node, after=cursor)).ids == " ".join(rest)


async def test_pull_golden_xmpp_pages_have_their_result_sets(world: World) -> None:
    """[SF-093] [SF-094] [SF-095] [SF-096] [xep-map 192] [xep-map 193]"""
    await put_rows(world, WINDOWS["feed"])
    cursors = {item_id: f"cursor:c{text}" for item_id, text in WINDOWS["cursors"].items()}

    first = await world.pull(CREATED, max=2)
    assert (first.first, first.last, first.index, first.count) == (cursors["p"], cursors["q"], 0, 5)
    second = await world.pull(CREATED, max=2, after=cursors["q"])
    assert (second.first, second.last, second.index, second.count) == (cursors["r"], cursors["s"], 2, 5)
    empty = await world.pull(CREATED, max=2, after=cursors["t"])
    assert (empty.ids, empty.first, empty.last, empty.index, empty.count) == ("", None, None, None, 5)
    last = await world.pull(CREATED, max=1, before="")
    assert (last.first, last.last, last.index, last.count) == (cursors["t"], cursors["t"], 4, 5)


@pytest.mark.parametrize(("node", "prefix"), [(CREATED, "c"), (MODIFIED, ""), (FEED, "")])
@pytest.mark.parametrize("row", GOLDEN["toc_checks"], ids=lambda row: row["what"])
async def test_pull_golden_check_is_valid_or_falls_back_to_its_time(
    world: World, row: dict[str, Any], node: str, prefix: str
) -> None:
    """[SF-101] [SF-107] [SF-108] [SF-109] [xep-map 211] [xep-map 213] [xep-map 214] [xep-map 215]"""
    await put_rows(world, row["feed"])
    cursor = f"cursor:{prefix}{row['cursor']}"

    assert (await world.pull(node, after=cursor)).ids.split() == row["since_returns"]
    assert (await world.pull(node, before=cursor)).ids.split() == row["until_returns"]


@pytest.mark.parametrize("row", GOLDEN["toc_malformed"], ids=lambda row: row["cursor"] or "empty")
async def test_pull_golden_malformed_cursor_is_refused_or_its_time(world: World, row: dict[str, str]) -> None:
    """[SF-029] [xep-map 217]"""
    await world.create()
    await world.put(("a", 1_304_942_399_000_000), ("b", 1_304_942_400_000_000), ("c", 1_304_942_401_000_000))
    after = f"cursor:{row['cursor']}"
    if row["treat_as"].startswith("error"):
        assert await refusal(world.pull(MODIFIED, after=after)) is Condition.ITEM_NOT_FOUND
    else:
        expected = "c" if "400.5" in row["treat_as"] else "b c"
        assert (await world.pull(MODIFIED, after=after)).ids == expected


async def test_pull_a_thousand_items_of_one_key_by_sevens_is_the_same_twice(world: World) -> None:
    """[SF-107] [xep-map 214]"""
    await world.create()
    await world.put(*[(f"g_{number}", 1_304_942_400_000_000) for number in range(1_000)])
    walks = []
    for _ in range(2):
        ids: list[str] = []
        page = await world.pull(MODIFIED, max=7)
        while page.items:
            ids += page.ids.split()
            page = await world.pull(MODIFIED, max=7, after=page.last or "")
        walks.append(ids)

    assert walks[0] == walks[1] == [f"g_{number}" for number in range(1_000)]
    assert (await world.pull(MODIFIED, before="", max=1)).last == "cursor:1304942400_999_7f9a4c21"
