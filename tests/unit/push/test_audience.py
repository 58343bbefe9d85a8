"""Who gets events: pages of subscriptions, the access model, the cache."""

import pytest

from smartfeeds.core.model import AUDIENCE_CHANGE, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.push import sender
from smartfeeds.push.audience import AudienceCache, AudiencePage, GroupRecipients
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, World


async def test_events_reach_every_subscriber_over_all_pages_once(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-003] [xep-map 182]"""
    monkeypatch.setattr("smartfeeds.push.audience.PAGE", 3)
    people = [f"u{number}@example.org" for number in range(10)]
    for number, who in enumerate(people):
        await feed.subscribe(who, (FEED, MODIFIED, CREATED)[number % 3])
    for item_id in ("a", "b"):
        await feed.publish(item_id)
        events = await feed.events()
        assert sorted(event.to for event in events) == sorted(people)
        assert {event.short for event in events} == {f"+{item_id}"}
    await feed.delete()
    assert len(await feed.events()) == 10


async def test_events_follow_subscribing_and_unsubscribing(feed: World) -> None:
    """[xep-map 119] [xep-map 151]"""
    await feed.subscribe(ALICE, FEED)
    await feed.publish("a")
    assert [event.to for event in await feed.events()] == [ALICE]
    await feed.subscribe(BOB, FEED)
    await feed.publish("b")
    assert [event.to for event in await feed.events()] == [ALICE, BOB]
    await feed.unsubscribe(ALICE, FEED)
    await feed.publish("c")
    assert [event.to for event in await feed.events()] == [BOB]


async def test_events_never_go_to_whom_the_access_model_no_longer_lets_in(feed: World) -> None:
    """[SF-111] [xep-map 181]"""
    await feed.affiliate(BOB, "member")
    for who in (ALICE, BOB, OWNER):
        await feed.subscribe(who, MODIFIED)
    await feed.publish("a")
    assert len(await feed.events()) == 3
    await feed.configure(access_model="whitelist")
    await feed.publish("b")
    assert [event.to for event in await feed.events()] == [BOB, OWNER]
    await feed.affiliate(BOB, "none")
    await feed.publish("c")
    assert [event.to for event in await feed.events() if event.kind == "item"] == [OWNER]
    await feed.configure(access_model="authorize")
    await feed.publish("d")
    assert [event.to for event in await feed.events()] == [ALICE, OWNER]


async def test_pending_subscriber_gets_nothing_before_approval(feed: World) -> None:
    """[xep-map 108] [xep-map 95]"""
    from smartfeeds.service.requests import SetSubscriptions
    from support.world import SERVICE, jid

    await feed.configure(access_model="authorize")
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    assert [(event.to, event.short) for event in await feed.events()] == [(OWNER, "request")]
    await feed.service.handle(SetSubscriptions(jid(OWNER), SERVICE, FEED, ((ALICE, "subscribed"),)))
    await feed.publish("b")

    assert await feed.told() == "subscription +b"


async def test_new_subscription_makes_the_last_page_alone_be_read_again(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-003] With a hundred pages, one newcomer costs one of them; whoever leaves is left out at once."""
    monkeypatch.setattr("smartfeeds.push.audience.PAGE", 3)
    read: list[int] = []
    read_page = sender.read_audience

    def noted(tx: ReadTx, context: Context, node: Node, after_no: int, **keywords: bool) -> AudiencePage:
        read.append(after_no)
        return read_page(tx, context, node, after_no, **keywords)

    monkeypatch.setattr(sender, "read_audience", noted)

    async def told(item_id: str) -> tuple[str, list[int]]:
        read.clear()
        await feed.publish(item_id)
        return "".join(sorted(event.to[0] for event in await feed.events())), list(read)

    for letter in "abcdefg":
        await feed.subscribe(f"{letter}@example.org", FEED)
    assert await told("1") == ("abcdefg", [0, 3, 6])
    assert await told("2") == ("abcdefg", [])
    for letters, pages in (("h", [6]), ("i", [6, 9]), ("j", [9])):
        await feed.subscribe(f"{letters}@example.org", FEED)
        assert await told(letters) == ("abcdefghij"[: "abcdefghij".index(letters) + 1], pages)
    await feed.unsubscribe("b@example.org", FEED)
    assert (await told("3"))[0] == "acdefghij"
    await feed.affiliate("e@example.org", "outcast")
    assert (await told("4"))[0].replace("e", "") == "acdfghij"


def test_crowd_after_gives_those_who_listened_before() -> None:
    crowd = GroupRecipients((b"a", b"b", b"c"), (1, 5, 3), 5)

    assert crowd.after(6) == (b"a", b"b", b"c")
    assert crowd.after(5) == (b"a", b"c")
    assert crowd.after(1) == ()


def test_cache_gives_a_page_of_the_same_audience_and_forgets_the_least_used() -> None:
    cache = AudienceCache(pages=2)
    nodes = [Node(number, "n", NodeKind.FEED, "a@x", 1, NodeOptions(NodeKind.FEED), audience=7) for number in range(3)]
    pages = [AudiencePage({}, number) for number in range(3)]
    cache.put(nodes[0], 0, pages[0])
    cache.put(nodes[1], 0, pages[1])
    assert cache.get(nodes[0], 0) is pages[0]
    cache.put(nodes[2], 0, pages[2])

    assert cache.get(nodes[1], 0) is None
    assert cache.get(nodes[0], 0) is pages[0] and cache.get(nodes[0], 1) is None
    newer, changed = (
        Node(0, "n", NodeKind.FEED, "a@x", 1, NodeOptions(NodeKind.FEED), audience=7 + by)
        for by in (1, AUDIENCE_CHANGE)
    )
    assert cache.get(newer, 0) is pages[0] and cache.get(changed, 0) is None
    cache.put(nodes[0], 5, AudiencePage({}, None))
    assert cache.get(nodes[0], 5) is not None and cache.get(newer, 5) is None
