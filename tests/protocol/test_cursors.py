"""Cursors and position specs through the whole component (xep-map M; Smart Feeds, Position Specs and Cursors)."""

import re
from typing import Any
from zlib import crc32

import pytest
import pytest_asyncio

from smartfeeds.core.times import US_PER_S, parse_t
from support.component import ALICE, BOB, EVE, NS, Component, Refusal, Starter, refusal
from support.golden import GOLDEN, group_of
from support.pulls import publish_all, pull, put, request, result_set

pytestmark = pytest.mark.shared

BAD_REQUEST = Refusal("modify", "bad-request")
NOT_FOUND = Refusal("cancel", "item-not-found")
NOT_IMPLEMENTED = Refusal("cancel", "feature-not-implemented")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
VIEWS = ("comments", MODIFIED, CREATED)
LETTER = {"comments": "", MODIFIED: "", CREATED: "c"}
T_US = 1_304_942_400 * US_PER_S
YEAR_S = 366 * 86_400


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """A feed `comments` with the items a, b, c, published a second apart from 2026-01-01T00:00:00Z."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c")
    return component


async def cursor_of(component: Component, node: str, index: int) -> str:
    """The UID of the item at this place."""
    page = await pull(component, node, index=index, max=1)
    assert page.first is not None
    return page.first


@pytest.mark.parametrize("node", VIEWS)
async def test_first_and_last_are_cursors_whatever_was_asked_with(feed: Component, node: str) -> None:
    """[xep-map 210] [SF-088] [SF-089] [SF-094]"""
    asked = ["time:0", "time:2026-01-01T00:00:00Z", await cursor_of(feed, node, 0)]
    asked += ["id:a"] if node != MODIFIED else []
    for after in asked:
        page = await pull(feed, node, after=after)
        assert page.first is not None and page.last is not None
        assert page.first.startswith("cursor:") and page.last.startswith("cursor:")


async def test_cursor_outlives_changes_a_restart_and_a_year(start: Starter) -> None:
    """[xep-map 211] [SF-002] [SF-028] [SF-101]: of every item, in every view, forwards and backwards."""
    component = await start()
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d e")
    taken = {(node, n): await cursor_of(component, node, n) for node in VIEWS for n in range(5)}

    component.clock.advance(YEAR_S)
    await publish_all(component, "comments", "f b g")
    await component.retract(ALICE, "comments", "d")
    component = await start.again(component)
    await publish_all(component, "comments", "h")

    # What changed since is behind the cursor; the items between it and the changes that did not move come first.
    order = {
        "comments": ["a", "c", "e", "f", "b", "g", "h"],
        MODIFIED: ["a", "c", "e", "f", "b", "g", "d", "h"],
        CREATED: ["a", "b", "c", "d", "e", "f", "g", "h"],
    }
    originally = "abcde"
    for (node, n), uid in taken.items():
        gone_before = {"b", "d"} if node != CREATED else set()
        older = [item_id for item_id in originally[: n + 1] if item_id not in gone_before]
        assert (await pull(component, node, after=uid)).ids == [x for x in order[node] if x not in older]
        strictly = [item_id for item_id in originally[:n] if item_id not in gone_before]
        assert (await pull(component, node, before=uid)).ids == strictly


async def test_cursors_hold_no_special_characters(component: Component) -> None:
    """[xep-map 212]: not even where the ids do; Movim puts them into URLs and writes them unescaped."""
    await component.create(ALICE, "comments")
    for item_id in ("a/b?c=d&e", "ü <x>", "'\"", "cursor:1_2_3", "100%"):
        await component.publish(ALICE, "comments", item_id)

    for node in VIEWS:
        for page in (await pull(component, node, max_items=3), await pull(component, node, max=2)):
            for uid in (page.first, page.last):
                assert uid is not None and re.fullmatch(r"[A-Za-z0-9:_~.\-]+", uid)


@pytest.mark.parametrize("example", GOLDEN["toc_cursors"]["examples"], ids=lambda example: example["what"])
async def test_golden_cursor_is_that_of_its_item(component: Component, example: dict[str, Any]) -> None:
    """[xep-map 213] [SF-102] [SF-103] [SF-105] [SF-106]"""
    await component.create(ALICE, "comments")
    ids = group_of(example)
    await put(component, "comments", [(item_id, example["t_us"]) for item_id in ids])

    for node in VIEWS:
        uid = await cursor_of(component, node, example["offset"])

        assert uid == f"cursor:{LETTER[node]}{example['cursor']}"
        assert (await pull(component, node, after=uid, max=1)).ids == ids[example["offset"] + 1 :][:1], node


async def test_t_is_the_key_of_the_views_own_order(feed: Component) -> None:
    """[A-04] [xep-map 213] [SF-104]: an edit moves the cursor of the modified order alone."""
    modified, created = await cursor_of(feed, MODIFIED, 0), await cursor_of(feed, CREATED, 0)

    await feed.publish(ALICE, "comments", "a")

    checksum = f"{crc32(b'a'):08x}"
    assert modified == f"cursor:1767225600_0_{checksum}"
    assert created == await cursor_of(feed, CREATED, 0) == f"cursor:c1767225600_0_{checksum}"
    assert await cursor_of(feed, MODIFIED, 2) == f"cursor:1767225603_0_{checksum}"


@pytest.mark.parametrize("node", VIEWS)
async def test_cursors_of_one_time_resolve_exactly(component: Component, node: str) -> None:
    """[A-07] [xep-map 214] [SF-026] [SF-033] [SF-107]"""
    await component.create(ALICE, "comments")
    await put(component, "comments", [(item_id, T_US) for item_id in "xyz"] + [("after", T_US + 1)])

    uids = [await cursor_of(component, node, n) for n in range(3)]

    assert len(set(uids)) == 3
    assert [(await pull(component, node, after=uid)).ids for uid in uids] == [
        ["y", "z", "after"],
        ["z", "after"],
        ["after"],
    ]
    assert [(await pull(component, node, before=uid)).ids for uid in uids] == [[], ["x"], ["x", "y"]]


@pytest.mark.parametrize("row", GOLDEN["toc_checks"], ids=lambda row: row["what"])
async def test_golden_check_is_valid_or_degrades_to_its_time(component: Component, row: dict[str, Any]) -> None:
    """[A-27] [xep-map 215] [SF-101] [SF-108] [SF-109]"""
    await component.create(ALICE, "comments")
    await put(component, "comments", [(item_id, parse_t(text) or 0) for item_id, text in row["feed"]])

    for node in VIEWS:
        uid = f"cursor:{LETTER[node]}{row['cursor']}"
        assert (await pull(component, node, after=uid)).ids == row["since_returns"], node
        assert (await pull(component, node, before=uid)).ids == row["until_returns"], node


@pytest.mark.parametrize("node", ["comments", MODIFIED])
async def test_tie_that_lost_an_item_repeats_and_loses_nothing(component: Component, node: str) -> None:
    """[xep-map 215]: an item of the group is edited through the wire after its cursor was taken."""
    await component.create(ALICE, "comments")
    await put(component, "comments", [(item_id, T_US) for item_id in "xyz"] + [("after", T_US + 1)])
    uid = await cursor_of(component, node, 1)

    await component.publish(ALICE, "comments", "x")

    assert (await pull(component, node, after=uid)).ids == ["y", "z", "after", "x"]


@pytest.mark.parametrize("node", VIEWS)
async def test_cursor_works_without_its_prefix(feed: Component, node: str) -> None:
    """[xep-map 216] [SF-090]"""
    uid = (await cursor_of(feed, node, 0)).removeprefix("cursor:")

    assert (await pull(feed, node, after=uid)).ids == ["b", "c"]
    assert (await pull(feed, node, before=uid)).ids == []


@pytest.mark.parametrize("row", GOLDEN["toc_malformed"], ids=lambda row: row["cursor"] or "empty")
async def test_golden_malformed_cursor_is_not_found_or_its_time(component: Component, row: dict[str, str]) -> None:
    """[xep-map 217] [SF-029]"""
    await component.create(ALICE, "comments")
    await put(component, "comments", [("a", T_US - US_PER_S), ("b", T_US), ("c", T_US + US_PER_S)])
    uid = f"cursor:{row['cursor']}"

    if row["treat_as"].startswith("error"):
        for rsm in ({"after": uid}, {"before": uid}):
            assert refusal(await request(component, MODIFIED, beside=result_set(**rsm))) == NOT_FOUND
    else:
        expected = ["c"] if "400.5" in row["treat_as"] else ["b", "c"]
        assert (await pull(component, MODIFIED, after=uid)).ids == expected


@pytest.mark.parametrize(("made", "used"), [(CREATED, MODIFIED), (MODIFIED, CREATED), (CREATED, "comments")])
async def test_cursor_of_another_order_is_not_found(feed: Component, made: str, used: str) -> None:
    """[xep-map 218]: never read as a time, that could skip items."""
    uid = await cursor_of(feed, made, 0)

    for text in (uid, uid.removeprefix("cursor:")):
        for rsm in ({"after": text}, {"before": text}):
            assert refusal(await request(feed, used, beside=result_set(**rsm))) == NOT_FOUND


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize(
    "time",
    ["2026-01-01T00:00:01Z", "2026-01-01T01:00:01+01:00", "2026-01-01T00:00:01.000000Z", "1767225601", "1767225601.0"],
)
async def test_time_is_inclusive_on_both_sides(feed: Component, node: str, time: str) -> None:
    """[xep-map 219] [SF-031] [SF-032] [SF-088]"""
    assert (await pull(feed, node, after=f"time:{time}")).ids == ["b", "c"]
    assert (await pull(feed, node, before=f"time:{time}")).ids == ["a", "b"]
    assert (await pull(feed, node, after=f"time:{time}", before=f"time:{time}")).ids == ["b"]


@pytest.mark.parametrize("node", VIEWS)
@pytest.mark.parametrize(
    "time", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:01", "1e9", "9999999999999", "2026-13-01T00:00:00Z", "٤٢"]
)
async def test_time_that_cannot_be_read_is_refused(feed: Component, node: str, time: str) -> None:
    """[xep-map 219]"""
    for rsm in ({"after": f"time:{time}"}, {"before": f"time:{time}"}):
        assert refusal(await request(feed, node, beside=result_set(**rsm))) == BAD_REQUEST


@pytest.mark.parametrize("node", [CREATED, "comments"])
async def test_id_is_exclusive_and_knows_tombstones(feed: Component, node: str) -> None:
    """[xep-map 220] [SF-030] [SF-033] [SF-090]"""
    assert (await pull(feed, node, after="id:a")).ids == ["b", "c"]
    assert (await pull(feed, node, before="id:b")).ids == ["a"]
    await feed.retract(ALICE, "comments", "b")
    if node == CREATED:
        assert (await pull(feed, node, after="id:b")).ids == ["c"]
        assert (await pull(feed, node, before="id:b")).ids == ["a"]
    else:
        assert (await pull(feed, node, before="id:b")).ids == ["a", "c"]


@pytest.mark.parametrize("node", [CREATED, "comments"])
async def test_id_never_seen_is_not_found(feed: Component, node: str) -> None:
    """[xep-map 220]"""
    for rsm in ({"after": "id:nobody"}, {"before": "id:nobody"}):
        assert refusal(await request(feed, node, beside=result_set(**rsm))) == NOT_FOUND


@pytest.mark.parametrize("node", [MODIFIED, "comments?kind=new"])
async def test_id_is_not_implemented_where_items_move(feed: Component, node: str) -> None:
    """[xep-map 221] [SF-030] [SF-113]"""
    for rsm in ({"after": "id:a"}, {"before": "id:a"}):
        assert refusal(await request(feed, node, beside=result_set(**rsm))) == NOT_IMPLEMENTED


@pytest.mark.parametrize(
    "item_id", ["plain", "tag:example.org,2026:1", "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a", "1"]
)
async def test_raw_item_id_is_a_position_in_the_bare_view(component: Component, item_id: str) -> None:
    """[xep-map 222]"""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", f"first {item_id} last")

    assert (await pull(component, "comments", after=item_id)).ids == ["last"]
    assert (await pull(component, "comments", before=item_id)).ids == ["first"]
    assert refusal(await request(component, "comments", after=f"{item_id}-")) == NOT_FOUND


@pytest.mark.parametrize("uid", ["plain", "42", "tag:example.org,2026:1", "bogus:1", ":"])
async def test_uid_without_a_known_type_is_refused_in_a_smart_view(component: Component, uid: str) -> None:
    """[SF-025] [SF-052] [SF-113]: a position is written type:value."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "plain 42 tag:example.org,2026:1")

    for node in (MODIFIED, CREATED):
        assert refusal(await request(component, node, after=uid)) == BAD_REQUEST


async def test_value_of_a_position_starts_after_the_first_colon(component: Component) -> None:
    """[SF-025] [SF-052]"""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a:b c")

    assert (await pull(component, CREATED, after="id:a:b")).ids == ["c"]


@pytest.mark.parametrize(
    "item_id", ["cursor:x", "cursor:1767225600_0_e8b7be43", "id:a", "time:0", "1767225600_0_e8b7be43"]
)
async def test_item_id_that_looks_like_a_position_is_reached_by_id(component: Component, item_id: str) -> None:
    """[xep-map 223]: and nobody can make an id that stands for a place of his choice."""
    await component.create(ALICE, "comments", publish_model="open")
    await publish_all(component, "comments", "a b")
    await component.publish(EVE, "comments", item_id)
    await component.publish(ALICE, "comments", "c")

    for node in (CREATED, "comments"):
        assert (await pull(component, node, after=f"id:{item_id}")).ids == ["c"]
        assert (await pull(component, node, before=f"id:{item_id}")).ids == ["a", "b"]
    # 1767225600_0_e8b7be43 is the cursor of a.
    assert (await pull(component, "comments", after="cursor:1767225600_0_e8b7be43")).ids == ["b", item_id, "c"]
    assert (await pull(component, "comments", after="1767225600_0_e8b7be43")).ids == ["b", item_id, "c"]


@pytest.mark.parametrize("uid", [" ", "\t", "a\u007f", "x" * 1027, "id:" + "ü" * 512, "cursor:" + "1" * 1020])
async def test_uid_of_nothing_or_too_much_is_refused(feed: Component, uid: str) -> None:
    """xep-map 3.2, last row: 1 to 1026 bytes of printable text, so that `id:` may have the longest id."""
    for node in ("comments", CREATED):
        for rsm in ({"after": uid}, {"before": uid}):
            assert refusal(await request(feed, node, beside=result_set(**rsm))) == BAD_REQUEST


@pytest.mark.parametrize("node", VIEWS)
async def test_golden_windows_give_their_items(component: Component, node: str) -> None:
    """[SF-019] [SF-020] [SF-021] [SF-022] [SF-023] [SF-031] [SF-032] [SF-033] [SF-034] [SF-035] [SF-052] [SF-093]"""
    await component.create(ALICE, "comments")
    rows = [(item_id, parse_t(text) or 0) for item_id, text in GOLDEN["windows"]["feed"]]
    await put(component, "comments", rows)
    for case in GOLDEN["windows"]["cases"]:
        answer = await request(component, node, beside=window(case["query"], LETTER[node]), user=BOB)
        expected = outcome(case, node)
        if isinstance(expected, Refusal):
            assert refusal(answer) == expected, case
        else:
            assert [item.get("id") for item in answer.iterfind(".//ps:item", NS)] == expected, case


def outcome(case: dict[str, Any], node: str) -> list[str] | Refusal:
    """The items or the error of a golden window in a view."""
    ids = case["ids"]
    if node == MODIFIED and ("id:" in case["query"] or "item-not-found" in ids):
        return NOT_IMPLEMENTED
    if isinstance(ids, list):
        return ids
    if ids.startswith("clamped"):
        return [item_id for item_id, _ in GOLDEN["windows"]["feed"]]
    if "item-not-found" in ids or (node == "comments" and case["query"] in ("since=42", "since=bogus:1")):
        return NOT_FOUND
    return BAD_REQUEST


def window(query: str, letter: str) -> str:
    """A golden query as a result set."""
    names = {"since": "after", "until": "before", "max": "max"}
    values: dict[str, str | int | None] = {}
    for pair in query.replace("(none)", "").replace(" (empty)", "").replace("%2B", "+").split("&"):
        name, _, value = pair.partition("=")
        if name:
            values[names[name]] = value.replace("cursor:", f"cursor:{letter}")
    return result_set(**values) if values else ""
