"""What the frames hold: options of nodes and subscriptions, events that are no items."""

from itertools import pairwise

import pytest

from smartfeeds.push.frames import PushFrame, PushHeaders, RecipientGroup, recipient
from support.world import ALICE, BOB, CREATED, FEED, MODIFIED, OWNER, SERVICE, World, entry

EVENT = "{http://jabber.org/protocol/pubsub#event}"


async def test_item_carries_its_publisher_and_payload(feed: World) -> None:
    """[xep-map 142] [xep-map 143]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    (event,) = await feed.events()
    item = event.xml[0][0][0]

    assert (item.get("publisher"), len(item)) == (OWNER, 1)
    await feed.configure(itemreply="none")
    await feed.publish("b")
    assert (await feed.events())[0].xml[0][0][0].attrib == {"id": "b"}


async def test_deliver_payloads_off_leaves_id_publisher_and_headers(feed: World) -> None:
    """[xep-map 167]"""
    await feed.configure(deliver_payloads="0")
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    (event,) = await feed.events()

    assert (event.xml[0][0][0].attrib, len(event.xml[0][0][0])) == ({"id": "a", "publisher": OWNER}, 0)
    assert (event.total, event.last) == (1, "1304942400_0_e8b7be43")


async def test_deliver_notifications_off_sends_nothing_and_the_gap_shows_when_it_is_on_again(feed: World) -> None:
    """[xep-map 167]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(BOB, FEED)
    await feed.publish("a")
    (first, _) = await feed.events()
    await feed.configure(deliver_notifications="0", notify_config="1")
    await feed.publish("b")
    await feed.retract("a", notify=True)
    await feed.purge()
    assert await feed.told() == ""
    await feed.configure(deliver_notifications="1", notify_config="0")
    await feed.publish("c")

    (event,) = await feed.events(ALICE)
    assert event.previous not in (None, first.last)
    assert (await feed.pull(MODIFIED, after=first.last or "")).ids == "a b c"


async def test_notification_type_normal_asks_not_to_be_stored(feed: World) -> None:
    """[xep-map 165]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(BOB, MODIFIED, include_body="1")
    await feed.configure(notification_type="normal")
    await feed.publish("a")
    events = {event.to: event.xml for event in await feed.events()}

    assert {xml.get("type") for xml in events.values()} == {"normal"}
    assert events[ALICE].find("{urn:xmpp:hints}no-store") is not None
    assert events[BOB].find("{urn:xmpp:hints}no-store") is None


async def test_include_body_is_the_title_else_the_summary(feed: World) -> None:
    """[xep-map 180]"""
    await feed.subscribe(ALICE, MODIFIED, include_body="1")
    await feed.subscribe(BOB, MODIFIED)
    await feed.publish("a", entry("Fish & <chips>"))
    await feed.publish("b", entry(inner="<summary type='html'>&lt;b>Short&lt;/b></summary>"))
    await feed.publish("c", entry())
    await feed.settle()
    await feed.retract("a")

    events = await feed.events()
    assert [event.xml.findtext("body") for event in events if event.to == ALICE] == [
        "Fish & <chips>",
        "Short",
        None,
        None,
    ]
    assert {event.xml.findtext("body") for event in events if event.to == BOB} == {None}


async def test_deliver_false_keeps_the_subscription_and_true_resumes(feed: World) -> None:
    """[xep-map 128]"""
    await feed.subscribe(ALICE, MODIFIED, deliver="0")
    await feed.publish("a")
    assert await feed.told() == ""
    await feed.subscribe(ALICE, MODIFIED, deliver="1")
    await feed.publish("b")

    (event,) = await feed.events()
    assert (event.short, event.previous) == ("+b", "1304942400_0_e8b7be43")


async def test_odd_names_ids_and_addresses_are_escaped(world: World) -> None:
    """[xep-map 55]"""
    odd = "<&\"'>é東😀 x"
    await world.create(odd)
    await world.subscribe(BOB + "/<&\"'>", odd)
    await world.subscribe(ALICE + "/<&\"'>", odd + "?q=x")
    await world.publish(odd, node=odd, title="x", actor=OWNER)
    await world.settle()
    await world.retract(odd, node=odd)

    events = await world.events()
    assert {(event.node, event.item_id) for event in events} == {(odd, odd), (odd + "?q=x", odd)}
    assert {event.to for event in events} == {BOB + "/<&\"'>", ALICE + "/<&\"'>"}


async def test_configuration_is_told_once_where_wanted_with_the_form_only_with_payloads(feed: World) -> None:
    """[xep-map 75] [xep-map 179]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.configure(title="quiet")
    assert await feed.told() == ""
    await feed.configure(notify_config="1")
    await feed.configure(notify_config="1")
    (event,) = await feed.events()
    assert (event.short, event.node, event.last, event.total) == ("configuration", MODIFIED, None, None)
    assert event.xml.find(f"{EVENT}event/{EVENT}configuration/{{jabber:x:data}}x") is not None
    await feed.configure(deliver_payloads="0")
    (event,) = await feed.events()
    assert len(event.xml[0][0]) == 0


async def test_delete_is_told_once_to_everybody_pending_ones_too(feed: World) -> None:
    """[xep-map 79] [xep-map 179]"""
    await feed.subscribe(ALICE, MODIFIED)
    await feed.subscribe(ALICE, CREATED)
    await feed.configure(access_model="authorize")
    await feed.subscribe(BOB, FEED)
    await feed.delete()

    events = await feed.events()
    assert [(event.to, event.node, event.short, event.last) for event in events] == [
        (OWNER, FEED, "request", None),
        (ALICE, MODIFIED, "delete", None),
        (ALICE, CREATED, "delete", None),
        (BOB, FEED, "delete", None),
    ]


async def test_delete_with_notify_delete_off_tells_nobody_and_takes_the_rows_away(feed: World) -> None:
    """[xep-map 79]"""
    await feed.configure(notify_delete="0")
    await feed.subscribe(ALICE, MODIFIED)
    await feed.publish("a")
    await feed.settle()
    await feed.events()
    await feed.delete()

    assert await feed.told() == ""
    assert await feed.store.read(lambda tx: tx.node_by_no(1)) is None


async def test_delete_of_a_large_node_reaps_it_in_small_steps(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 80]"""
    monkeypatch.setattr("smartfeeds.service.item_writes.REAPED", 3)
    await feed.publish_all(" ".join(f"i{number}" for number in range(10)))
    await feed.subscribe(ALICE, MODIFIED)
    await feed.delete()

    assert await feed.told() == "delete"
    assert await feed.store.read(lambda tx: tx.node_by_no(1)) is None
    assert await feed.store.read(lambda tx: tx.behind()) == []


async def test_purge_is_one_event_a_subscriber_and_no_retractions(feed: World) -> None:
    """[xep-map 81] [xep-map 82] [xep-map 179]"""
    for who, node in ((ALICE, FEED), (ALICE, MODIFIED), (BOB, CREATED)):
        await feed.subscribe(who, node)
    await feed.publish_all("a b c")
    before = (await feed.events(ALICE, MODIFIED))[-1]
    await feed.purge()
    events = await feed.events()
    assert sorted((event.to, event.node, event.short, event.last) for event in events) == [
        (ALICE, FEED, "purge", None),
        (ALICE, MODIFIED, "purge", None),
        (BOB, CREATED, "purge", None),
    ]

    await feed.publish("d")
    after = {event.node: event for event in await feed.events()}
    assert after[MODIFIED].previous not in (None, before.last)
    assert (await feed.pull(MODIFIED, after=before.last or "")).ids == "a b c d"
    assert after[MODIFIED].total == 4 and after[FEED].total == 1


@pytest.mark.parametrize("node", [FEED, MODIFIED, CREATED])
async def test_purge_stands_between_the_items_before_and_behind_it(feed: World, node: str) -> None:
    """[SF-039] [xep-map 177] The created order has each item at its first place, as it is now."""
    await feed.subscribe(ALICE, node)
    await feed.publish("z")
    await feed.settle()
    await feed.cut()
    await feed.publish_all("a b")
    await feed.purge()
    await feed.publish("c")
    await feed.publish("z")
    await feed.start()

    assert await feed.told() == ("+z -a -b purge +c" if node == CREATED else "+z purge +c +z")


async def test_generic_node_tells_retractions_in_their_place(world: World) -> None:
    """[SF-039] [xep-map 161] [xep-map 170] [xep-map 172] As a feed: what was written while the link was down comes in
    its last version."""
    await world.create("things", kind="generic")
    await world.subscribe(ALICE, "things")
    await world.publish_all("a b", node="things")
    await world.events()
    await world.cut()
    await world.retract("a", node="things")
    await world.publish("a", node="things")
    await world.retract("b", node="things")
    await world.publish("c", node="things")
    await world.start()

    events = await world.events()
    assert " ".join(event.short for event in events) == "+a -b +c"
    assert [event.total for event in events] == [2, 1, 2]
    assert all(after.previous == before.last for before, after in pairwise(events))


async def test_generic_node_many_retractions_keep_their_place_before_later_items(world: World) -> None:
    """[SF-039] [xep-map 177] More changes than one batch reads."""
    ids = [f"i{number}" for number in range(150)]
    await world.create("things", kind="generic")
    await world.subscribe(ALICE, "things")
    await world.publish_all(" ".join(ids), node="things")
    await world.events()
    await world.cut()
    for item_id in ids:
        await world.retract(item_id, node="things")
    await world.publish("i149", node="things")
    await world.start()

    assert await world.told() == " ".join([f"-{item_id}" for item_id in ids[:-1]] + ["+i149"])


def test_recipient_and_frame_splice_to_a_message() -> None:
    """[xep-map 164] [xep-map 241] The id names the subscription."""
    frame = PushFrame(b"<message to='", b".5' type='headline'/>")

    assert frame.head + recipient("a@x/<", 7) + frame.tail == b"<message to='a@x/&lt;' id='7.5' type='headline'/>"
    assert PushHeaders(1, "", "c").previous == "" and RecipientGroup("", FEED, SERVICE, False).view == ""


@pytest.mark.parametrize("node", [FEED, MODIFIED, CREATED])
async def test_purge_is_not_told_to_those_who_came_after_it(feed: World, node: str) -> None:
    """[SF-047] [xep-map 81] They would throw away what they pulled."""
    await feed.subscribe(BOB, node)
    await feed.publish("a")
    await feed.events()
    await feed.cut()
    await feed.purge()
    await feed.publish("b")
    await feed.subscribe(ALICE, node)
    await feed.publish("c")
    await feed.start()

    events = await feed.events()
    assert " ".join(event.short for event in events if event.to == BOB) == "purge +b +c"
    assert " ".join(event.short for event in events if event.to == ALICE) == "+c"
