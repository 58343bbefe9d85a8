"""Result sets row by row, in both directions; spans; orders; ids (xep-map 3; XEP-0059, XEP-0060 6.5, XEP-0413)."""

from collections.abc import Callable

import pytest

from smartfeeds.core.text import attribute
from smartfeeds.core.touches import Touch
from smartfeeds.errors import Condition
from smartfeeds.service.pulls import fitting
from smartfeeds.service.requests import Page, Pull
from smartfeeds.store.base import ReadTx
from smartfeeds.telemetry import REGISTRY
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, World, bare, entry, is_span, jid, refusal

TEN = "a b c d e f g h i j"


@pytest.fixture
async def ten(feed: World) -> World:
    """A feed of ten items, a second apart."""
    await feed.publish_all(TEN)
    return feed


async def cursors(world: World, node: str = MODIFIED) -> dict[str, str]:
    """The UID of every item of a view."""
    found = {}
    page = await world.pull(node, max=1)
    while page.items:
        found[page.ids] = page.last or ""
        page = await world.pull(node, max=1, after=page.last or "")
    return found


# Rows 1 to 3: no result set.


async def test_pull_row_1_small_node_is_whole_without_a_set(ten: World) -> None:
    """[xep-map 187]"""
    page = await ten.pull(FEED)

    assert (page.ids, page.told) == (TEN, False)


async def test_pull_row_1_large_node_is_the_newest_page_with_a_set(ten: World) -> None:
    """[xep-map 188]"""
    ten.set_policy(page_max=4)
    page = await ten.pull(FEED)

    assert (page.ids, page.index, page.count) == ("g h i j", 6, 10)
    smart = await ten.pull(MODIFIED)
    assert (smart.ids, smart.index, is_span(smart.last)) == ("g h i j", 6, False)


@pytest.mark.parametrize(("wanted", "ids", "index"), [(3, "h i j", 7), (10, TEN, 0), (99, TEN, 0)])
async def test_pull_row_2_max_items_is_the_newest_with_a_set(ten: World, wanted: int, ids: str, index: int) -> None:
    """[xep-map 189]"""
    page = await ten.pull(FEED, max_items=wanted)

    assert (page.ids, page.index, page.count) == (ids, index, 10)


async def test_pull_row_2_max_items_above_the_cap_is_the_cap(ten: World) -> None:
    """[xep-map 189] [xep-map 201]"""
    ten.set_policy(page_max=4)

    assert (await ten.pull(FEED, max_items=9)).ids == "g h i j"


async def test_pull_row_3_item_ids_come_in_the_order_asked_without_the_unknown(ten: World) -> None:
    """[xep-map 190]"""
    page = await ten.pull(FEED, ids="j nope a j", max=1)

    assert (page.ids, page.told) == ("j a", False)
    assert (await ten.pull(FEED, ids="nope")).ids == ""


@pytest.mark.parametrize("limit", [{"page_max": 2}, {"page_bytes": 500}])
async def test_pull_row_3_more_items_than_one_answer_carries_are_refused_not_cut(
    ten: World, limit: dict[str, int]
) -> None:
    """[xep-map 190]"""
    ten.set_policy(**limit)

    assert await refusal(ten.pull(FEED, ids="a b c")) is Condition.NOT_ACCEPTABLE
    assert (await ten.pull(FEED, ids="a nope")).ids == "a"


async def test_pull_row_3_tombstone_by_id_is_hidden_in_the_bare_view_alone(ten: World) -> None:
    """[xep-map 159] [xep-map 190]"""
    await ten.retract("c")

    assert (await ten.pull(FEED, ids="c b")).ids == "b"
    page = await ten.pull(MODIFIED, ids="c")
    assert page.ids == "c" and page.items[0].deleted


# Rows 4 to 17 and 20: one table for both directions.


@pytest.mark.parametrize(
    ("rsm", "ids", "index"),
    [
        pytest.param({"max": 3}, "a b c", 0, id="row 4"),
        pytest.param({"max": 0}, "", None, id="row 5"),
        pytest.param({"max": 0, "after": "@c"}, "", None, id="row 5, with a UID"),
        pytest.param({"max": 3, "after": "@c"}, "d e f", 3, id="row 6"),
        pytest.param({"after": "@h"}, "i j", 8, id="row 6, rest"),
        pytest.param({"max": 3, "after": "@j"}, "", None, id="row 7"),
        pytest.param({"max": 3, "after": ""}, "a b c", 0, id="row 8"),
        pytest.param({"max": 3, "before": ""}, "h i j", 7, id="row 9"),
        pytest.param({"max": 3, "before": "@f"}, "c d e", 2, id="row 10"),
        pytest.param({"max": 3, "before": "@c"}, "a b", 0, id="row 10, rest"),
        pytest.param({"max": 3, "before": "@a"}, "", None, id="row 11"),
        pytest.param({"max": 2, "after": "@c", "before": "@g"}, "d e", 3, id="row 13"),
        pytest.param({"after": "@c", "before": "@g"}, "d e f", 3, id="row 13, whole"),
        pytest.param({"after": "@g", "before": "@c"}, "", None, id="row 14"),
        pytest.param({"after": "@c", "before": "@c"}, "", None, id="row 14, equal"),
        pytest.param({"after": "@c", "before": "@d"}, "", None, id="row 14, adjacent"),
        pytest.param({"max": 2, "after": "@c", "before": ""}, "i j", 8, id="row 15"),
        pytest.param({"max": 9, "after": "@h", "before": ""}, "i j", 8, id="row 15, rest"),
        pytest.param({"max": 3, "index": 4}, "e f g", 4, id="row 16"),
        pytest.param({"max": 3, "index": 9}, "j", 9, id="row 16, rest"),
        pytest.param({"max": 3, "index": 10}, "", None, id="row 17"),
        pytest.param({"max": 99_999}, TEN, 0, id="row 20"),
    ],
)
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
async def test_pull_result_set_is_its_row(
    ten: World, rsm: dict[str, str | int], ids: str, index: int | None, descending: bool
) -> None:
    """[xep-map 192] [xep-map 195] [xep-map 196] [xep-map 197] [xep-map 199] [xep-map 201] [xep-map 202]

    [xep-map 203] [xep-map 204] [xep-map 224] [xep-map 226]. Descending, the mirror image of the letters holds.
    """
    mirror = dict(zip(TEN.split(), reversed(TEN.split()), strict=True))
    expected = " ".join(mirror[one] for one in ids.split()) if descending else ids
    for node in (FEED, MODIFIED, CREATED):
        known = await cursors(ten, node)
        by = "creation" if node == CREATED else "modification"
        wanted = dict(rsm)
        for name, value in rsm.items():
            if str(value).startswith("@"):
                letter = str(value)[1:]
                wanted[name] = known[mirror[letter] if descending else letter]

        page = await ten.pull(node, order_by=f"{by} desc" if descending else "", **wanted)

        backwards = rsm.get("before") == "" or ("before" in rsm and "after" not in rsm)
        shown_index = None if backwards and node == FEED else index
        assert (page.ids, page.index, page.count) == (expected, shown_index, 10)


async def test_pull_no_max_uses_the_default_page_size(ten: World) -> None:
    """[SF-022] [xep-map 201]"""
    ten.set_policy(page_default=4)
    page = await ten.pull(MODIFIED, after="")

    assert (page.ids, page.count) == ("a b c d", 10)


@pytest.mark.parametrize(
    "rsm",
    [
        {"index": 1, "after": "a"},
        {"index": 1, "before": "a"},
        {"index": -1},
        {"index": "x"},
        {"max": -1},
        {"max": "1.5"},
        {"max": ""},
    ],
)
async def test_pull_rows_18_and_19_malformed_set_is_a_bad_request(ten: World, rsm: dict[str, str | int]) -> None:
    """[xep-map 200]"""
    assert await refusal(ten.pull(FEED, **rsm)) is Condition.BAD_REQUEST


async def test_pull_row_21_set_with_a_place_wins_over_max_items(ten: World) -> None:
    """[xep-map 201]"""
    assert (await ten.pull(FEED, max_items=5, max=2)).ids == "i j"
    assert (await ten.pull(FEED, max_items=5, max=2, after="")).ids == "a b"
    assert (await ten.pull(FEED, max_items=5, before="")).ids == "f g h i j"


@pytest.mark.parametrize("node", [FEED, MODIFIED, CREATED])
async def test_pull_row_23_empty_node_counts_nought(feed: World, node: str) -> None:
    """[xep-map 191] [xep-map 197]"""
    assert not (await feed.pull(node)).told
    for rsm in ({"max": 5}, {"before": ""}, {"index": 0}):
        page = await feed.pull(node, **rsm)  # type: ignore[arg-type]
        assert (page.ids, page.count, page.first) == ("", 0, None)
    page = await feed.pull(node, max_items=5)
    assert (page.ids, page.count) == ("", 0)


async def test_pull_row_24_single_item_has_one_uid(ten: World) -> None:
    """[xep-map 198]"""
    for page in (await ten.pull(FEED, max_items=1), await ten.pull(FEED, before="", max=1)):
        assert page.ids == "j" and page.first == page.last and not is_span(page.last)


@pytest.mark.parametrize(
    ("rsm", "ids", "index"),
    [
        ({"max": 5}, "a b c", 0),
        ({"max": 5, "before": ""}, "h i j", 7),
        ({"max": 5, "after": "id:d"}, "e f g", 4),
        ({"max": 5, "before": "id:g"}, "d e f", 3),
    ],
)
async def test_pull_row_25_page_is_cut_at_the_far_end_by_bytes(
    ten: World, rsm: dict[str, str | int], ids: str, index: int
) -> None:
    """[SF-034] Row 25: the set describes what was sent."""
    size = len((await ten.pull(FEED)).items[0].payload) + 101
    ten.set_policy(page_bytes=3 * size)
    page = await ten.pull(FEED, **rsm, **({"index": ""} if "before" in rsm else {}))

    assert (page.ids, page.index, page.count) == (ids, index, 10)


@pytest.mark.parametrize("character", ['"', "'", "&", "\u20ac"])
async def test_page_has_room_for_the_escapes_of_short_ids(feed: World, character: str) -> None:
    """[xep-map 10] A text of any length, because a page has hundreds of them."""
    for number in range(20):
        await feed.publish(f"{number:02}{character * 50}")
    feed.set_policy(page_bytes=4_000)
    page = await feed.pull(FEED, max=20)

    written = [b"<item id='%b'>%b</item>" % (attribute(item.id).encode(), item.payload) for item in page.items]
    assert 1 < len(page.items) < 20
    assert len(b"".join(written)) <= 4_000


async def test_pull_row_25_one_item_is_sent_whatever_its_size(ten: World) -> None:
    ten.set_policy(page_bytes=1)

    assert (await ten.pull(FEED, max=5)).ids == "a"
    assert (await ten.pull(FEED, before="", max=5)).ids == "j"


@pytest.mark.parametrize("text", ["0", "-1", "x"])
async def test_pull_row_28_max_items_malformed_is_a_bad_request(ten: World, text: str) -> None:
    assert await refusal(ten.pull(FEED, max_items=text)) is Condition.BAD_REQUEST


# What a UID may be (3.2).


async def test_pull_uids_of_every_type_name_the_same_place(ten: World) -> None:
    """[SF-088] [SF-090] [xep-map 210] [xep-map 216] [xep-map 220] [xep-map 222]"""
    known = await cursors(ten, CREATED)
    for uid in (known["c"], bare(known["c"]), "id:c", "time:1304942403", "time:2011-05-09T12:00:03Z"):
        page = await ten.pull(CREATED, after=uid, max=2)
        assert page.ids == "d e"
        assert page.first is not None and page.first.startswith("cursor:c")
    assert (await ten.pull(FEED, after="c", max=2)).ids == "d e"


async def test_pull_item_ids_with_colons_and_prefixes_can_be_uids(feed: World) -> None:
    """[SF-025] [xep-map 222] [xep-map 223]"""
    odd = ["urn:uuid:1", "cursor:x", "time:y", "a:b"]
    for item_id in [*odd, "end"]:
        await feed.publish(item_id)
    for item_id in odd:
        rest = " ".join([*odd, "end"][odd.index(item_id) + 1 :])
        assert (await feed.pull(FEED, after=f"id:{item_id}")).ids == rest
        assert (await feed.pull(CREATED, after=f"id:{item_id}")).ids == rest
    assert (await feed.pull(FEED, after="urn:uuid:1", max=1)).ids == "cursor:x"
    assert (await feed.pull(FEED, after="a:b")).ids == "end"
    assert await refusal(feed.pull(FEED, after="cursor:x")) is Condition.ITEM_NOT_FOUND


async def test_pull_id_of_a_tombstone_still_has_a_place(ten: World) -> None:
    """[xep-map 220]"""
    await ten.retract("c")

    assert (await ten.pull(CREATED, after="id:c", max=2)).ids == "d e"
    assert (await ten.pull(FEED, before="id:c", max=2)).ids == "i j"


@pytest.mark.parametrize(
    ("node", "uid", "condition"),
    [
        (MODIFIED, "id:a", Condition.FEATURE_NOT_IMPLEMENTED),
        (CREATED, "id:nope", Condition.ITEM_NOT_FOUND),
        (FEED, "nope", Condition.ITEM_NOT_FOUND),
        (MODIFIED, "nope", Condition.BAD_REQUEST),
        (MODIFIED, "time:late", Condition.BAD_REQUEST),
        (MODIFIED, "cursor:nope", Condition.ITEM_NOT_FOUND),
        (MODIFIED, "cursor:c1304942400_0_e8b7be43", Condition.ITEM_NOT_FOUND),
        (CREATED, "cursor:1304942400_0_e8b7be43", Condition.ITEM_NOT_FOUND),
    ],
)
@pytest.mark.parametrize("where", ["after", "before"])
@pytest.mark.parametrize("limit", [5, 0])
async def test_pull_uid_that_names_no_place_is_refused_also_with_max_nought(
    ten: World, node: str, uid: str, condition: Condition, where: str, limit: int
) -> None:
    """[xep-map 217] [xep-map 218] [xep-map 219] [xep-map 220] [xep-map 221]"""
    assert await refusal(ten.pull(node, max=limit, **{where: uid})) is condition


async def test_pull_time_bounds_are_inclusive(ten: World) -> None:
    """[SF-031] [SF-032] [xep-map 219]"""
    assert (await ten.pull(MODIFIED, after="time:1304942402", before="time:1304942404")).ids == "c d e"
    assert (await ten.pull(MODIFIED, after="time:1304942402", before="time:1304942402")).ids == "c"
    assert (await ten.pull(MODIFIED, after="time:1304942404", before="time:1304942402")).ids == ""


async def test_pull_cursor_of_a_moved_item_repeats_nothing_and_loses_nothing(ten: World) -> None:
    """[SF-101] [SF-108] [xep-map 211] [xep-map 215]"""
    known = await cursors(ten)
    await ten.publish("c", title="again")

    assert (await ten.pull(MODIFIED, after=known["c"])).ids == "d e f g h i j c"
    assert (await ten.pull(MODIFIED, before=known["c"])).ids == "a b"


async def test_pull_counts_a_cursor_that_does_not_check_once(ten: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-108] A store may run a work twice: what it would do itself would be done twice."""
    known = await cursors(ten)
    await ten.publish("c", title="again")
    read = ten.store.read

    async def read_twice(work: Callable[[ReadTx], object], *, turn: str = "", touch: Touch | None = None) -> object:
        return await read(lambda tx: (work(tx), work(tx))[1], turn=turn, touch=touch)

    monkeypatch.setattr(ten.store, "read", read_twice)

    def counted() -> float:
        return REGISTRY.get_sample_value("smartfeeds_cursor_degradations_total") or 0.0

    before = counted()
    await ten.pull(MODIFIED, after=known["c"])
    assert counted() == before + 1
    await ten.pull(MODIFIED, after=known["d"])
    assert counted() == before + 1


async def test_pull_cursors_outlive_deletion_of_everything_and_a_year(ten: World) -> None:
    """[SF-028] [xep-map 211]"""
    known = await cursors(ten)
    ten.clock.move(365 * 86_400)
    await ten.purge()
    await ten.publish("k")

    assert (await ten.pull(MODIFIED, after=known["e"])).ids == TEN + " k"


async def test_pull_after_the_node_was_made_anew_old_cursors_become_times(ten: World) -> None:
    """[xep-map 80]"""
    known = await cursors(ten)
    await ten.delete()
    await ten.settle()
    await ten.create()
    await ten.publish_all("k l")

    assert (await ten.pull(MODIFIED, after=known["e"])).ids == "k l"


# Paging.


@pytest.mark.parametrize("node", [FEED, MODIFIED, CREATED])
@pytest.mark.parametrize("size", [1, 3, 5, 10, 11])
async def test_pull_strict_pagers_see_every_item_once_both_ways(ten: World, node: str, size: int) -> None:
    """[xep-map 193] [xep-map 194]"""
    forwards: list[str] = []
    page = await ten.pull(node, max=size)
    while page.items:
        assert page.index == len(forwards)
        forwards += page.ids.split()
        page = await ten.pull(node, max=size, after=page.last or "")
    backwards: list[str] = []
    page = await ten.pull(node, max=size, before="")
    while page.items:
        backwards = page.ids.split() + backwards
        assert page.index == (None if node == FEED else 10 - len(backwards))
        page = await ten.pull(node, max=size, before=page.first or "")

    assert forwards == backwards == TEN.split()


async def test_pull_range_is_walked_to_its_end_and_stops_there(ten: World) -> None:
    """[xep-map 202]"""
    known = await cursors(ten)
    found = []
    page = await ten.pull(MODIFIED, max=2, after=known["b"], before=known["h"])
    while page.items:
        found.append(page.ids)
        page = await ten.pull(MODIFIED, max=2, after=page.last or "", before=known["h"])

    assert found == ["c d", "e f", "g"]


async def test_pull_item_published_or_changed_between_pages_comes_on_a_later_one(ten: World) -> None:
    """[SF-005] [SF-010] [xep-map 206] [xep-map 207]"""
    page = await ten.pull(MODIFIED, max=4)
    await ten.publish("k")
    await ten.publish("b", title="edited")
    await ten.retract("e")

    rest = await ten.pull(MODIFIED, after=page.last or "")

    assert rest.ids == "f g h i j k b e"
    assert (await ten.pull(FEED, after=page.last or "")).ids == "f g h i j k b"


async def test_pull_mirror_of_a_large_feed_reads_only_what_changed(feed: World) -> None:
    """[SF-005] [SF-014]"""
    await feed.put(*[(f"i{number}", 1_304_000_000_000_000 + number) for number in range(1_000)])
    last = (await feed.pull(MODIFIED, before="", max=1)).last or ""
    for item_id in ("i7", "i8", "i9"):
        await feed.publish(item_id, title="edited")

    assert (await feed.pull(MODIFIED, after=last)).ids == "i7 i8 i9"


async def test_pull_large_view_leaves_out_an_index_that_it_would_have_to_count(feed: World) -> None:
    """[SF-096] [xep-map 204] Exact where it costs no more than the page, else left out (design section 1)."""
    await feed.put(*[(f"i{number}", 1_304_000_000_000_000 + number) for number in range(1_001)])
    page = await feed.pull(MODIFIED, max=2)

    assert (page.index, page.count) == (0, 1_001)
    assert (await feed.pull(MODIFIED, max=2, after=page.last or "")).index is None
    assert (await feed.pull(MODIFIED, max=2, before="")).index == 999
    assert (await feed.pull(MODIFIED, max=2, index=500)).index == 500


# Span cursors (3.5).


@pytest.fixture
async def hundred(feed: World) -> World:
    """A feed of a hundred items."""
    await feed.put(*[(f"n{number:02}", 1_304_000_000_000_000 + number) for number in range(100)])
    return feed


async def test_pull_movim_walk_sees_every_item_once_and_comes_back(hundred: World) -> None:
    """[xep-map 209] Movim: max_items first, then before=last to go older and after=first to come back."""
    page = await hundred.pull(FEED, max_items=12)
    pages = []
    while page.items:
        pages.append(page)
        page = await hundred.pull(FEED, max=12, before=page.last or "")
    ids = " ".join(one.ids for one in reversed(pages)).split()

    assert ids == [f"n{number:02}" for number in range(100)]
    assert len(pages) == 9
    back = await hundred.pull(FEED, max=12, after=pages[2].first or "")
    assert back.ids == pages[1].ids


async def test_pull_strict_walk_over_spans_gives_the_same_items(hundred: World) -> None:
    """[xep-map 209] Strict: before=first to go older, after=last to come back."""
    page = await hundred.pull(FEED, max_items=12)
    pages = []
    while page.items:
        pages.append(page)
        page = await hundred.pull(FEED, max=12, before=page.first or "")

    assert " ".join(one.ids for one in reversed(pages)).split() == [f"n{number:02}" for number in range(100)]
    assert (await hundred.pull(FEED, max=12, after=pages[2].last or "")).ids == pages[1].ids


@pytest.mark.parametrize(
    ("rsm", "spans"),
    [({"before": ""}, True), ({"before": "id:n50"}, True), ({"max": 3}, False), ({"after": "id:n50"}, False)],
)
async def test_pull_spans_stand_only_in_backward_pages_of_the_bare_view(
    hundred: World, rsm: dict[str, str | int], spans: bool
) -> None:
    """[xep-map 209] [xep-map 212] R6."""
    page = await hundred.pull(FEED, **rsm)
    assert is_span(page.first) is is_span(page.last) is spans
    if spans:
        first, last = bare(page.first).split("~"), bare(page.last).split("~")
        assert first == last[::-1]
        assert set(bare(page.first)) <= set("0123456789abcdefgh._~")
    smart = {"before": ""} if "before" in rsm else {"max": 3}
    assert not is_span((await hundred.pull(MODIFIED, **smart)).last)  # type: ignore[arg-type]


async def test_pull_span_edges_degrade_each_on_its_own(hundred: World) -> None:
    """[xep-map 215]"""
    page = await hundred.pull(FEED, max_items=3)
    await hundred.publish("n97", title="edited")

    assert (await hundred.pull(FEED, max=2, before=page.last or "")).ids == "n95 n96"
    assert (await hundred.pull(FEED, max=2, after=page.first or "")).ids == "n97"


async def test_pull_spans_switched_off_are_plain_cursors(hundred: World) -> None:
    hundred.set_policy(span_cursors=False)
    page = await hundred.pull(FEED, max_items=12)

    assert not is_span(page.first) and not is_span(page.last)


# XEP-0413.


async def test_pull_order_by_creation_newest_first_inside_and_across_pages(ten: World) -> None:
    """[xep-map 224] [xep-map 226]"""
    await ten.publish("a", title="edited")
    page = await ten.pull(FEED, order_by="creation desc", max=4)
    assert (page.ids, page.index) == ("j i h g", 0)
    page = await ten.pull(FEED, order_by="creation desc", max=4, after=page.last or "")
    assert (page.ids, page.index) == ("f e d c", 4)
    page = await ten.pull(FEED, order_by="creation desc", max=4, after=page.last or "")
    assert (page.ids, page.index) == ("b a", 8)


async def test_pull_order_by_modification_equals_the_bare_view(ten: World) -> None:
    """[xep-map 225]"""
    await ten.publish("a", title="edited")

    assert (await ten.pull(FEED, order_by="modification")).ids == (await ten.pull(FEED)).ids == "b c d e f g h i j a"


@pytest.mark.parametrize(
    ("node", "order", "outcome"),
    [
        (FEED, "size", Condition.BAD_REQUEST),
        (FEED, "creation,size", Condition.BAD_REQUEST),
        (CREATED, "modification", Condition.BAD_REQUEST),
        (MODIFIED, "creation desc", Condition.BAD_REQUEST),
        (CREATED, "creation", "a b c"),
        (FEED, "creation desc,modification", "c b a"),
    ],
)
async def test_pull_order_by_is_a_known_key_that_agrees_with_the_view(
    feed: World, node: str, order: str, outcome: Condition | str
) -> None:
    """[xep-map 228] [xep-map 229]"""
    await feed.publish_all("a b c")
    if isinstance(outcome, Condition):
        assert await refusal(feed.pull(node, order_by=order)) is outcome
    else:
        assert (await feed.pull(node, order_by=order)).ids == outcome


# Orders of one feed.


async def test_pull_both_orders_hold_the_same_items_each_in_its_own_order(ten: World) -> None:
    """[SF-008] [SF-010] [SF-014] [SF-104] [xep-map 54] [xep-map 141]"""
    before = await cursors(ten, CREATED)
    await ten.publish("a", title="edited")
    await ten.retract("b")

    assert await ten.ids_of(CREATED) == TEN
    assert await ten.ids_of(MODIFIED) == "c d e f g h i j a b"
    assert await ten.ids_of(FEED) == "c d e f g h i j a"
    assert await cursors(ten, CREATED) == before
    assert (await ten.pull(MODIFIED)).ids == (await ten.pull(MODIFIED)).ids


async def test_pull_of_a_missing_node_or_view_is_not_found(ten: World) -> None:
    """[xep-map 53] [xep-map 186]"""
    for node in ("nope", "nope?order=created", "comments?colour=red", "comments?order=score"):
        assert await refusal(ten.pull(node)) is Condition.ITEM_NOT_FOUND
    assert await refusal(ten.pull("")) is Condition.NODEID_REQUIRED
    assert await refusal(ten.pull("comments?max=5")) is Condition.BAD_REQUEST


@pytest.mark.parametrize(
    ("model", "affiliation", "subscribed", "condition"),
    [
        ("open", "none", False, None),
        ("open", "outcast", False, Condition.FORBIDDEN),
        ("open", "publish-only", False, Condition.FORBIDDEN),
        ("whitelist", "none", False, Condition.CLOSED_NODE),
        ("whitelist", "outcast", False, Condition.FORBIDDEN),
        ("whitelist", "member", False, None),
        ("whitelist", "publisher", False, None),
        ("authorize", "none", False, Condition.NOT_SUBSCRIBED_READER),
        ("authorize", "none", True, Condition.NOT_SUBSCRIBED_READER),  # pending
        ("authorize", "member", False, None),
        ("authorize", "outcast", False, Condition.FORBIDDEN),
    ],
)
async def test_pull_is_open_to_whom_the_access_model_names(
    ten: World, model: str, affiliation: str, subscribed: bool, condition: Condition | None
) -> None:
    """[SF-111] [xep-map 108] [xep-map 184] [xep-map 185]"""
    await ten.configure(access_model=model)
    await ten.affiliate(ALICE, affiliation)
    if subscribed:
        await ten.subscribe(ALICE, FEED)
    for node in (FEED, MODIFIED):
        if condition is None:
            assert (await ten.pull(node, max=2)).ids == "a b"
        else:
            assert await refusal(ten.pull(node, max=2)) is condition
            assert await refusal(ten.pull(node, ids="a")) is condition
    assert (await ten.pull(FEED, actor=OWNER, max=1)).ids == "a"


async def test_pull_by_an_admin_of_the_service_is_never_refused(ten: World) -> None:
    await ten.configure(access_model="whitelist")
    ten.set_policy(admins=frozenset({BOB}))

    assert (await ten.pull(FEED, actor=BOB + "/desk", max=1)).ids == "a"


async def test_pull_tells_the_publisher_unless_the_node_hides_it(ten: World) -> None:
    """[xep-map 142] [xep-map 143]"""
    request = Pull(jid(ALICE), "feeds.example.org", FEED)
    page = await ten.service.handle(request)
    assert isinstance(page, Page) and page.show_publisher and page.items[0].publisher == OWNER
    await ten.configure(itemreply="none")
    page = await ten.service.handle(request)
    assert isinstance(page, Page) and not page.show_publisher


async def test_pull_page_is_whole_objects(feed: World) -> None:
    """[SF-009] [SF-091]"""
    await feed.publish("a", entry("one", author="Ann", content="text"))
    await feed.publish("a", entry("two", author="Ann", content="text"))
    item = (await feed.pull(MODIFIED)).items[0]

    for part in (b"<title>two</title>", b"<name>Ann</name>", b"<content>text</content>"):
        assert part in item.payload


@pytest.mark.parametrize(("sizes", "count"), [((), 0), ((50, 50, 1), 2), ((50, 51), 1), ((101, 1), 1)])
def test_items_that_fit_into_a_page(sizes: tuple[int, ...], count: int) -> None:
    """The limit itself fits, and so does a first item above it: otherwise a follower would never pass it."""
    assert fitting(sizes, 100) == count
