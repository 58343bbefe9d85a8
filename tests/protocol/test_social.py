"""Social feeds, and the small services beside pubsub, through the whole component (xep-map O, P; XEP-0472, 0277)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    NS,
    Component,
    Refusal,
    Starter,
    bare,
    fields,
    ok,
    refusal,
    tree,
)
from support.pulls import infoset, parsed, payload_of, pull

pytestmark = pytest.mark.shared

ATOM = "http://www.w3.org/2005/Atom"
POST = (
    f"<entry xmlns='{ATOM}' xmlns:thr='http://purl.org/syndication/thread/1.0'>"
    "<id>tag:example.org,2026:1</id><title>Post</title><updated>2026-01-01T00:00:00Z</updated>"
    "<author><name>Alice</name><uri>xmpp:alice@example.org</uri></author>"
    "<link rel='replies' title='comments' href='xmpp:feeds.example.org?;node=urn:xmpp:microblog:0:comments/1'/>"
    "<link rel='via' href='xmpp:bob@example.org?;node=urn:xmpp:microblog:0;item=x' ref='xmpp:bob@example.org'/>"
    "<link rel='enclosure' href='http://example.org/a.png' type='image/png' length='1'/>"
    "<link rel='alternate' href='http://example.org/1'/><link rel='related' href='http://example.org/2'/>"
    "<thr:in-reply-to ref='tag:example.org,2026:0' href='xmpp:a?;node=b;item=c' type='application/atom+xml'/>"
    "<link rel='self' href='xmpp:feeds.example.org?;node=comments;item=1'/><x xmlns='urn:example:other'/></entry>"
)


async def test_feed_has_the_configuration_of_a_social_feed(component: Component) -> None:
    """[xep-map 233]"""
    await component.create(ALICE, "comments")

    config = fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>")))

    wanted = {
        "notify_retract": "true",
        "max_items": "max",
        "item_expire": "max",
        "persist_items": "true",
        "send_last_published_item": "never",
        "access_model": "open",
        "itemreply": "publisher",
        "type": "urn:xmpp:pubsub-social-feed:1",
    }
    assert {name: config[name] for name in wanted} == {name: [value] for name, value in wanted.items()}


async def test_comment_node_takes_posts_from_everybody_but_outcasts(component: Component) -> None:
    """[xep-map 234]: made as Movim and Libervia make it, with a field that nobody knows."""
    node = "urn:xmpp:microblog:0:comments/1"
    await component.create(
        BOB,
        node,
        publish_model="open",
        access_model="open",
        itemreply="publisher",
        notify_retract="true",
        persist_items="true",
        max_items="max",
        send_item_subscribe="true",
    )
    await component.affiliate(BOB, node, CAROL, "outcast")

    for user in (ALICE, BOB, EVE):
        await component.publish(user, node, f"by {user}", POST)
    refused = await component.set(CAROL, f"<publish node='{node}'><item id='hers'>{POST}</item></publish>")

    assert refusal(refused) == Refusal("auth", "forbidden")
    page = await pull(component, node)
    assert [(item.get("id"), item.get("publisher")) for item in page.items] == [
        (f"by {user}", bare(user)) for user in (ALICE, BOB, EVE)
    ]


@pytest.mark.parametrize("node", ["comments", "comments?order=modified", "comments?order=created"])
async def test_links_and_references_come_back_unchanged(component: Component, node: str) -> None:
    """[xep-map 235] [xep-map 236]: and the service adds none, for it serves no HTTP here."""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, node)

    await component.publish(ALICE, "comments", "1", POST)

    (event,) = await component.events(bare(BOB))
    (pushed,) = event.iterfind("ev:event/ev:items/ev:item", NS)
    (pulled,) = (await pull(component, node)).items
    for item in (pushed, pulled):
        assert infoset(payload_of(item)) == infoset(parsed(POST))


async def test_entry_without_links_gets_none(component: Component) -> None:
    """[xep-map 236]"""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "1")

    (item,) = (await pull(component, "comments")).items

    assert item.findall(".//a:link", NS) == []


async def test_author_filter_shows_claims_and_the_publisher_attribute_the_truth(component: Component) -> None:
    """[SF-015] [SF-110] [xep-map 142]: anybody may write anybody's name into an entry; who published it is proved."""
    await component.create(ALICE, "comments", publish_model="open")
    await component.publish(ALICE, "comments", "hers", POST)
    await component.publish(EVE, "comments", "forged", POST)

    page = await pull(component, "comments?author=alice@example.org")

    assert [(item.get("id"), item.get("publisher")) for item in page.items] == [
        ("hers", bare(ALICE)),
        ("forged", bare(EVE)),
    ]


# Other services


async def test_pull_and_push_are_announced_and_there(component: Component) -> None:
    """[SF-017] [SF-018] [SF-084] [xep-map 24]: for every feed, without a subscription and with one."""
    told = ok(await component.ask(EVE, "get", "<query xmlns='http://jabber.org/protocol/disco#info'/>"))
    found = {str(feature.get("var")) for feature in told.iterfind(".//info:feature", NS)}
    wanted = ("publish", "subscribe", "retrieve-items", "persistent-items", "rsm", "item-ids")
    assert {f"{NS['ps']}#{name}" for name in wanted} | {NS["ps"], NS["rsm"]} <= found

    for node, title in (("plain", ""), ("made", "With a title"), ("urn:xmpp:microblog:0:comments/1", "x")):
        await component.create(ALICE, node, title=title)
        assert await component.subscribe(EVE, f"{node}?order=modified") == "subscribed"
        await component.publish(ALICE, node, "one")
        assert (await pull(component, f"{node}?order=modified", user=BOB)).ids == ["one"]
        (event,) = await component.events(bare(EVE))
        assert event.find(".//ev:item[@id='one']", NS) is not None


@pytest.mark.parametrize("to", [DOMAIN, f"article_1@{DOMAIN}"])
async def test_ping_is_answered(component: Component, to: str) -> None:
    """[xep-map 238]"""
    answer = ok(await component.ask(BOB, "get", "<ping xmlns='urn:xmpp:ping'/>", to))

    assert len(answer) == 0


async def test_version_tells_name_and_version_and_no_system(component: Component) -> None:
    """[xep-map 238]"""
    answer = ok(await component.ask(BOB, "get", "<query xmlns='jabber:iq:version'/>"))

    (query,) = answer
    told = {child.tag.rpartition("}")[2]: child.text for child in query}
    assert told.keys() == {"name", "version"}
    assert told["name"] == "smartfeeds" and told["version"]


@pytest.mark.parametrize("to", [DOMAIN, f"article_1@{DOMAIN}"])
async def test_uptime_time_and_card_of_the_service(start: Starter, to: str) -> None:
    """XEP-0012 section 4, XEP-0202, XEP-0054; the link of the card is `http.base_url`."""
    web = {"listen": "127.0.0.1:0", "base_url": "https://feeds.example.org"}
    component = await start(http=web, bot={"enabled": False})  # the card of the bot has more
    component.clock.advance(90)

    answers = [
        ok(await component.ask(BOB, "get", query, to))
        for query in ("<query xmlns='jabber:iq:last'/>", "<time xmlns='urn:xmpp:time'/>", "<vCard xmlns='vcard-temp'/>")
    ]

    assert [tree(answer[0]) for answer in answers] == [
        tree("<query xmlns='jabber:iq:last' seconds='90'/>"),
        tree("<time xmlns='urn:xmpp:time'><tzo>+00:00</tzo><utc>2026-01-01T00:01:30Z</utc></time>"),
        tree(
            "<vCard xmlns='vcard-temp'><FN>Smart Feeds</FN><URL>https://feeds.example.org</URL>"
            "<DESC>Publish-subscribe service</DESC></vCard>"
        ),
    ]


@pytest.mark.parametrize(
    "query", ["<query xmlns='jabber:iq:last'/>", "<time xmlns='urn:xmpp:time'/>", "<vCard xmlns='vcard-temp'/>"]
)
async def test_card_and_times_of_the_service_cannot_be_set(component: Component, query: str) -> None:
    assert refusal(await component.ask(BOB, "set", query)) == Refusal("cancel", "service-unavailable")


async def test_burst_of_two_questions_for_each_node_is_answered(start: Starter) -> None:
    """[xep-map 250]; 6.1: what Movim asks at once for every node of a list."""
    component = await start()
    names = [f"node-{number:03}" for number in range(500)]
    await component.many_nodes(names)
    listed = ok(await component.ask(ALICE, "get", "<query xmlns='http://jabber.org/protocol/disco#items'/>"))
    assert [item.get("node") for item in listed.iterfind(".//items:item", NS)] == names

    answers = await component.ask_all(
        BOB,
        [
            question
            for name in names
            for question in (
                f"<query xmlns='http://jabber.org/protocol/disco#info' node='{name}'/>",
                f"<pubsub xmlns='{NS['ps']}'><items node='{name}'>"
                "<item id='urn:xmpp:avatar:metadata'/></items></pubsub>",
            )
        ],
    )

    for name, info, item in zip(names, answers[::2], answers[1::2], strict=True):
        assert fields(ok(info))["access_model"] == ["open"]
        assert tree(ok(item)[0]) == tree(f"<pubsub xmlns='{NS['ps']}'><items node='{name}'/></pubsub>")
