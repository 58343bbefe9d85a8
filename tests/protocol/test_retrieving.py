"""Retrieving items through the whole component (xep-map K; XEP-0060 6.5; rows 1 to 3 of section 3.1)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    INFO,
    NS,
    PS,
    RSM,
    Component,
    Refusal,
    Starter,
    body,
    ok,
    refusal,
    tree,
)
from support.pulls import infoset, parsed, payload_of, publish_all, pull, put, request

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
CLOSED = Refusal("cancel", "not-allowed", "closed-node")
NOT_SUBSCRIBED = Refusal("auth", "not-authorized", "not-subscribed")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:example.org,2026:{0}</id><title>{0}</title>"
    "<updated>2026-01-01T00:00:00Z</updated></entry>"
)
# access model -> affiliation -> what a pull gets; the affiliation "subscriber" is none with a subscription.
ACCESS: dict[str, dict[str, Refusal | None]] = {
    "open": {
        "owner": None,
        "publisher": None,
        "member": None,
        "none": None,
        "subscriber": None,
        "publish-only": FORBIDDEN,
        "outcast": FORBIDDEN,
    },
    "whitelist": {
        "owner": None,
        "publisher": None,
        "member": None,
        "none": CLOSED,
        "publish-only": FORBIDDEN,
        "outcast": FORBIDDEN,
    },
    "authorize": {
        "owner": None,
        "publisher": None,
        "member": None,
        "none": NOT_SUBSCRIBED,
        "subscriber": None,
        "pending": NOT_SUBSCRIBED,
        "publish-only": FORBIDDEN,
        "outcast": FORBIDDEN,
    },
}


async def become(component: Component, user: str, role: str) -> None:
    """Gives a user a role on the node of ALICE."""
    if role in ("subscriber", "pending"):
        await component.subscribe(user, "comments")
    if role == "subscriber":
        state = f"<subscription jid='{user.partition('/')[0]}' subscription='subscribed'/>"
        ok(await component.owner_set(ALICE, f"<subscriptions node='comments'>{state}</subscriptions>"))
    elif role not in ("pending", "none"):
        await component.affiliate(ALICE, "comments", user, role)


@pytest.mark.parametrize(
    ("model", "role", "expected"),
    [
        pytest.param(model, role, expected, id=f"{model}-{role}")
        for model, roles in ACCESS.items()
        for role, expected in roles.items()
    ],
)
async def test_access_model_and_affiliation_decide_who_may_retrieve(
    component: Component, model: str, role: str, expected: Refusal | None
) -> None:
    """[xep-map 184] [xep-map 185] [xep-map 108] [SF-016] [SF-017] [SF-110] [SF-111]: in every form of asking."""
    await component.create(ALICE, "comments", access_model=model)
    await component.publish(ALICE, "comments", "one")
    await become(component, EVE, role)

    for node in ("comments", MODIFIED, CREATED):
        for answer in (
            await request(component, node, user=EVE),
            await request(component, node, user=EVE, ids=["one"]),
            await request(component, node, user=EVE, max=0),
            await request(component, node, user=EVE, max_items=1),
        ):
            if expected is None:
                ok(answer)
            else:
                assert refusal(answer) == expected
    if expected is None:
        assert (await pull(component, "comments", user=EVE)).ids == ["one"]


@pytest.mark.both_engines
@pytest.mark.parametrize("node", ["missing", "missing?order=created", "comments?order=votes", "comments?order"])
async def test_missing_node_is_not_found(start: Starter, node: str) -> None:
    """[xep-map 186] [xep-map 53] [SF-024]"""
    component = await start()
    await component.create(ALICE, "comments")

    assert refusal(await request(component, node)) == NOT_FOUND


async def test_plain_request_gives_all_items_oldest_first(component: Component) -> None:
    """[A-28] [xep-map 187] [SF-008] [SF-009] [SF-017]: whole, without a set, with publisher."""
    await component.create(ALICE, "comments")
    for item_id in ("one", "two"):
        await component.publish(ALICE, "comments", item_id, ENTRY.format(item_id))

    answer = ok(await request(component, "comments"))

    items = "".join(
        f"<item id='{item_id}' publisher='alice@example.org'>{ENTRY.format(item_id)}</item>"
        for item_id in ("one", "two")
    )
    assert body(answer) == [tree(f"<pubsub xmlns='{PS}'><items node='comments'>{items}</items></pubsub>")]


@pytest.mark.both_engines
async def test_plain_request_leaves_tombstones_out(start: Starter) -> None:
    """[xep-map 187]; R5."""
    component = await start()
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c")
    await component.retract(ALICE, "comments", "b")

    page = await pull(component, "comments")

    assert (page.ids, page.has_result_set) == (["a", "c"], False)


@pytest.mark.parametrize("node", ["comments", MODIFIED, CREATED])
async def test_plain_request_on_a_large_node_gives_the_newest_page(start: Starter, node: str) -> None:
    """[xep-map 188] [SF-022]; row 1, R7: index is count minus page size, and there is a way to go on."""
    component = await start(pubsub={"page_default": 2, "page_max": 3})
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d e")

    page = await pull(component, node)

    assert (page.ids, page.index, page.count) == (["c", "d", "e"], 2, 5)
    assert (await pull(component, node, before=page.first)).ids == ["a", "b"]


@pytest.mark.both_engines
async def test_plain_request_at_the_page_size_has_no_set(start: Starter) -> None:
    """[xep-map 187] [xep-map 188]; row 1: exactly one page is not truncated."""
    component = await start(pubsub={"page_default": 2, "page_max": 3})
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c")

    page = await pull(component, "comments")

    assert (page.ids, page.has_result_set) == (["a", "b", "c"], False)


@pytest.mark.parametrize("node", ["comments", MODIFIED, CREATED])
@pytest.mark.parametrize(("asked", "ids"), [(1, ["e"]), (3, ["c", "d", "e"]), (5, list("abcde")), (99, list("abcde"))])
async def test_max_items_gives_the_newest(component: Component, node: str, asked: int, ids: list[str]) -> None:
    """[xep-map 189]; row 2."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d e")

    page = await pull(component, node, max_items=asked)

    assert (page.ids, page.index, page.count) == (ids, 5 - len(ids), 5)


@pytest.mark.parametrize("asked", ["0", "-1", "x", "", "1.5"])
async def test_max_items_that_is_no_number_is_refused(component: Component, asked: str) -> None:
    """xep-map 3.1 row 28."""
    await component.create(ALICE, "comments")

    answer = await component.get(BOB, f"<items node='comments' max_items='{asked}'/>")

    assert refusal(answer) == Refusal("modify", "bad-request")


async def test_max_items_decides_until_the_set_names_a_place(component: Component) -> None:
    """xep-map 3.1 row 21, except that `max` alone is no place: StanzaJS sends it beside every `max_items`."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d e")

    assert (await pull(component, "comments", max_items=1, max=2)).ids == ["e"]
    assert (await pull(component, "comments", max_items=2, after="")).ids == ["a", "b"]
    assert (await pull(component, "comments", max_items=2, before="")).ids == ["d", "e"]


@pytest.mark.both_engines
async def test_items_are_given_by_id(start: Starter) -> None:
    """[xep-map 190]; row 3: in the order asked for, a set or max_items sent along is ignored."""
    component = await start()
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d")

    some = await pull(component, "comments", ids=["c", "nobody", "a"])
    none = await pull(component, "comments", ids=["nobody"])
    limited = await pull(component, "comments", ids=["d", "a"], max_items=1, max=1)
    twice = await pull(component, "comments", ids=["a", "a"])

    assert (some.ids, some.has_result_set) == (["c", "a"], False)
    assert (none.ids, none.has_result_set) == ([], False)
    assert (limited.ids, limited.has_result_set) == (["d", "a"], False)
    assert twice.ids == ["a"]


async def test_item_asked_for_without_an_id_is_refused(component: Component) -> None:
    """XEP-0060 6.5.8."""
    await component.create(ALICE, "comments")

    answer = await component.get(BOB, "<items node='comments'><item/></items>")

    assert refusal(answer) == Refusal("modify", "bad-request", "item-required")


@pytest.mark.parametrize("node", ["comments", MODIFIED, CREATED])
async def test_empty_node_gives_an_empty_result(component: Component, node: str) -> None:
    """[xep-map 191]; row 23."""
    await component.create(ALICE, "comments")

    plain = ok(await request(component, node))
    counted = ok(await request(component, node, max=10))
    newest = ok(await request(component, node, before="", max=1))

    items = f"<items node='{node}'/>"
    count = f"<set xmlns='{RSM}'><count>0</count></set>"
    assert body(plain) == [tree(f"<pubsub xmlns='{PS}'>{items}</pubsub>")]
    assert body(counted) == body(newest) == [tree(f"<pubsub xmlns='{PS}'>{items}{count}</pubsub>")]


async def test_two_views_hold_the_same_items_in_their_own_order(component: Component) -> None:
    """[xep-map 54] [SF-001] [SF-010] [SF-014]: the oldest item is edited; its entry is the same in both."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c a")

    modified, created = await pull(component, MODIFIED), await pull(component, CREATED)

    assert (modified.ids, created.ids) == (["b", "c", "a"], ["a", "b", "c"])
    assert infoset(payload_of(modified.items[2])) == infoset(payload_of(created.items[0]))


@pytest.mark.both_engines
async def test_same_pull_twice_gives_the_same_sequence(start: Starter) -> None:
    """[SF-002] [SF-008] [SF-016]: for every reader who sees it, and whoever asked before."""
    component = await start()
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c")

    pages = [await pull(component, MODIFIED, user=user, max=2) for user in (BOB, CAROL, EVE, BOB)]

    assert {(tuple(page.ids), page.set) for page in pages} == {(("a", "b"), pages[0].set)}


async def test_edit_brings_the_whole_item(component: Component) -> None:
    """[SF-009] [SF-010] [SF-011]: overwritten, moved to the newest end, no second one."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "a", ENTRY.format("before"))
    await component.publish(ALICE, "comments", "b", ENTRY.format("b"))
    await component.publish(ALICE, "comments", "a", ENTRY.format("after"))

    page = await pull(component, MODIFIED)

    assert page.ids == ["b", "a"]
    assert infoset(payload_of(page.items[1])) == infoset(parsed(ENTRY.format("after")))
    assert (await pull(component, MODIFIED, max=0)).count == 2


@pytest.mark.both_engines
async def test_mirror_pulls_the_edits_alone(start: Starter) -> None:
    """[SF-005] [SF-007] [SF-045]: 1,000 items, 3 edits, since the last cursor: 3 items."""
    component = await start()
    await component.create(ALICE, "comments")
    await put(component, "comments", [(f"item-{number}", 1_700_000_000_000_000 + number) for number in range(1_000)])
    last = (await pull(component, MODIFIED, max=1, before="")).last
    await publish_all(component, "comments", "item-7 item-500 item-7")

    page = await pull(component, MODIFIED, after=last)

    assert page.ids == ["item-500", "item-7"]
    assert page.count == 1_000


async def test_feed_expires_nothing(component: Component) -> None:
    """[SF-012] [SF-013]: whatever max_items was, the oldest of 10,001 items can be pulled, a deleted one too."""
    await component.create(ALICE, "comments", max_items="10000")
    await put(component, "comments", [(f"item-{number}", 1_700_000_000_000_000 + number) for number in range(10_001)])
    await component.publish(ALICE, "comments", "newest")
    await component.retract(ALICE, "comments", "item-0")

    assert (await pull(component, CREATED, max=2)).ids == ["item-0", "item-1"]
    assert (await pull(component, MODIFIED, max=0)).count == 10_002
    assert (await pull(component, "comments", ids=["item-1"])).ids == ["item-1"]


@pytest.mark.parametrize("address", [DOMAIN, f"article_1@{DOMAIN}", f"Article_1@{DOMAIN}/desk"])
async def test_feed_lives_at_every_address_of_the_component(component: Component, address: str) -> None:
    """[SF-085] [xep-map 8]: and answers from the address it was asked at."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")

    answer = ok(await request(component, "comments", to=address))

    assert answer.get("from") == address
    assert [item.get("id") for item in answer.iterfind(".//ps:item", NS)] == ["one"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("order=created&category=news", ["a", "c"]),
        ("category=news&order=created", ["a", "c"]),
        ("category=NEWS", ["c", "a"]),
        ("category=news&category=sport", ["b", "c", "a"]),
        ("category=news&kind=edited", ["a"]),
        ("author=bob%40example.org", ["b"]),
        ("author=xmpp:bob@example.org", ["b"]),
        ("q=seven+words", ["c"]),
        ("q=words%20seven", ["c"]),
        ("in-reply-to=tag:example.org,2026:1", ["b"]),
        ("kind=new", ["b", "c", "a"]),  # a has left: it is edited now
        ("kind=deleted", []),
        ("lang=en", ["b", "a"]),
        ("lang=en-gb&category=sport", ["b"]),
    ],
)
async def test_parameters_of_the_node_name_choose_items(component: Component, query: str, ids: list[str]) -> None:
    """[SF-015] [SF-024] [SF-086] [xep-map 49]: filters leave items out, count what is left, and never reorder."""
    await component.create(ALICE, "comments", publish_model="open")
    start = "<entry xmlns='http://www.w3.org/2005/Atom'>"
    english = start.replace(">", " xml:lang='en'>")
    british = start.replace(">", " xml:lang='en-GB'>")
    reply = "<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='tag:example.org,2026:1'/>"
    await component.publish(ALICE, "comments", "a", f"{start}<title>one</title><category term='news'/></entry>")
    await component.publish(BOB, "comments", "b", f"{british}<title>two</title><category term='Sport'/>{reply}</entry>")
    await component.publish(
        ALICE, "comments", "c", f"{start}<title>Seven of these Words</title><category term='News'/></entry>"
    )
    await component.publish(ALICE, "comments", "a", f"{english}<title>One</title><category term='news'/></entry>")

    name = f"comments?{query}".replace("&", "&amp;")
    answer = ok(await component.get(CAROL, f"<items node='{name}'/><set xmlns='{RSM}'/>"))

    assert [item.get("id") for item in answer.iterfind(".//ps:item", NS)] == ids
    assert answer.findtext("ps:pubsub/rsm:set/rsm:count", None, NS) == str(len(ids))
    assert answer.xpath("string(ps:pubsub/ps:items/@node)", namespaces=NS) == f"comments?{query}"


@pytest.mark.parametrize("query", ["since=1", "until=time:0", "max=2", "timeout=5", "callback=x"])
async def test_position_in_the_node_name_is_refused(component: Component, query: str) -> None:
    """[SF-086] [SF-093]: positions and limits travel in the result set (A-25)."""
    await component.create(ALICE, "comments")

    assert refusal(await request(component, f"comments?{query}")) == Refusal("modify", "bad-request")


@pytest.mark.parametrize("text", ["!!!", "🎉"])
async def test_search_without_words_is_refused(component: Component, text: str) -> None:
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "a")

    assert refusal(await request(component, f"comments?q={text}")) == Refusal("modify", "bad-request")
    subscribing = f"<subscribe node='comments?q={text}' jid='{CAROL}'/>"
    assert refusal(await component.set(CAROL, subscribing)) == Refusal("modify", "bad-request")


@pytest.mark.both_engines
async def test_node_whose_own_name_has_a_query_shares_it(start: Starter) -> None:
    """[SF-087] [xep-map 47]: parameters are appended with an ampersand, as to any query string."""
    component = await start()
    await component.create(ALICE, "list?id=7")
    await component.create(ALICE, "list?id=7&tongue=en")
    await component.create(ALICE, "list")
    await publish_all(component, "list?id=7", "a b a")

    assert (await pull(component, "list?id=7")).ids == ["b", "a"]
    assert (await pull(component, "list?id=7&order=created")).ids == ["a", "b"]
    assert (await pull(component, "list?id=7&kind=edited&order=created")).ids == ["a"]
    assert (await pull(component, "list?order=created")).ids == []
    assert (await pull(component, "list?id=7&tongue=en&order=created")).ids == []
    for unknown in ("list?id=8&order=created", "list?id=7&order=votes", "list?order=created&id=7"):
        assert refusal(await request(component, unknown)) == NOT_FOUND
    assert refusal(await request(component, "list?id=7&max=5")) == Refusal("modify", "bad-request")
    taken = await component.set(ALICE, "<create node='list?id=7&amp;order=modified'/>")
    assert refusal(taken) == Refusal("cancel", "not-allowed")
    told = ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='list?id=7'/>"))
    assert "list?id=7&order=modified" in told.itertext()
