"""The kind of a node from what is published to it, and what generic nodes accept (docs/xmpp.md 2.1; XEP-0060 4.3)."""

from xml.etree import ElementTree

import pytest
from lxml import etree

from smartfeeds.client.payload import read_item
from smartfeeds.core.options import FormFields
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import Answer, Publish, Published
from support.world import ALICE, ATOM_NS, BOB, OWNER, SERVICE, World, draft, entry, form, jid, refusal

BOX = "box"
NOTE = "<n xmlns='urn:example:n'/>"
AVATAR_ID = "urn:xmpp:avatar:metadata"
AVATAR = f"<metadata xmlns='{AVATAR_ID}'><info bytes='1' id='1' type='image/png'/></metadata>"
# The options of a user's avatar node, which Movim sends with the picture of a community.
MOVIM_AVATAR = form(
    persist_items="true",
    access_model="presence",
    send_last_published_item="on_sub_and_presence",
    deliver_payloads="true",
    max_items="1",
)
NO_ITEM, NO_PAYLOAD = "no item", "no payload"


async def publish(
    world: World, sent: str, item_id: str = "x", *, options: FormFields | None = None, actor: str = OWNER
) -> Answer:
    """Publishes a payload, an item without a payload, or no item at all."""
    if sent == NO_ITEM:
        request = Publish(jid(actor), SERVICE, BOX, None, None, options, item_present=False)
    else:
        payload = None if sent == NO_PAYLOAD else draft(sent)
        request = Publish(jid(actor), SERVICE, BOX, item_id, payload, options)
    return await world.service.handle(request)


async def kind(world: World) -> str:
    return (await world.node(BOX)).kind.value


# The first item decides.


@pytest.mark.parametrize(
    ("item_id", "sent", "options", "expected"),
    [
        ("x", NOTE, {}, "generic"),
        ("x", entry("x"), {}, "feed"),
        ("x", entry("x"), {"max_items": "20"}, "generic"),
        ("x", entry("x"), {"max_items": "max", "persist_items": "1"}, "feed"),
        ("x", NO_PAYLOAD, {"deliver_payloads": "0"}, "generic"),
        ("", NO_ITEM, {"deliver_payloads": "0", "persist_items": "0"}, "generic"),
        (AVATAR_ID, AVATAR, {}, "feed"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
async def test_first_item_decides_the_kind(
    world: World, item_id: str, sent: str, options: dict[str, str], expected: str, *, exists: bool
) -> None:
    """On a node that the publish creates, and on an empty feed of the publisher."""
    world.set_policy(auto_create=not exists)
    if exists:
        await world.create(BOX, deliver_payloads=options.get("deliver_payloads", "1"))

    await publish(world, sent, item_id, options=form(**options) or None)

    assert await kind(world) == expected
    expected_max = int(options["max_items"]) if options.get("max_items", "max") != "max" else None
    assert (await world.node(BOX)).options.max_items == expected_max


@pytest.mark.parametrize("exists", [False, True])
async def test_publish_option_without_a_value_is_refused(world: World, *, exists: bool) -> None:
    """No field of a request may lead to an internal error."""
    world.set_policy(auto_create=True)
    if exists:
        await world.create(BOX, max_items="5")
    options: FormFields = {"pubsub#deliver_payloads": ()}

    expected = Condition.PRECONDITION_NOT_MET if exists else Condition.NOT_ACCEPTABLE
    assert await refusal(publish(world, NO_PAYLOAD, options=options)) is expected


async def test_item_of_another_publisher_does_not_change_the_kind(world: World) -> None:
    await world.create(BOX, publish_model="open")

    assert await refusal(publish(world, NOTE, actor=BOB)) is Condition.INVALID_PAYLOAD
    limited = publish(world, entry("x"), options=form(max_items="5"), actor=BOB)
    assert await refusal(limited) is Condition.PRECONDITION_NOT_MET
    assert await kind(world) == "feed"


# The picture of a community.


async def test_picture_of_a_community_is_an_item_of_its_feed(world: World) -> None:
    """Movim publishes it before or after posts. Its id is the only one that accepts it."""
    await world.create(BOX)
    await publish(world, AVATAR, AVATAR_ID)
    await world.publish("post", node=BOX)

    (picture,) = (await world.pull(BOX, ids=AVATAR_ID)).items
    assert b'type="image/png"' in picture.payload
    assert await refusal(publish(world, AVATAR)) is Condition.INVALID_PAYLOAD
    assert await kind(world) == "feed"


@pytest.mark.parametrize("options", [{}, {"type": "urn:xmpp:spaces:0", "access_model": "authorize"}])
@pytest.mark.parametrize("posts", [True, False])
async def test_picture_of_a_community_has_no_conditions(world: World, options: dict[str, str], *, posts: bool) -> None:
    """Movim sends the options of a user's avatar node. They neither conflict nor change the community."""
    await world.create(BOX, deliver_payloads="false", **options)
    if posts:
        await world.publish("post", node=BOX)
    before = await world.node(BOX)

    await publish(world, AVATAR.replace("png", "jpeg"), AVATAR_ID, options=MOVIM_AVATAR)

    (picture,) = (await world.pull(BOX, ids=AVATAR_ID, actor=OWNER)).items
    assert b'type="image/jpeg"' in picture.payload
    after = await world.node(BOX)
    assert (after.options, after.kind) == (before.options, before.kind)


async def test_only_the_picture_of_a_community_has_no_conditions(world: World) -> None:
    """XEP-0060 7.1.5: neither another id nor another payload is exempt, and the right to publish still counts."""
    await world.create(BOX, kind="generic")
    await world.publish("post", node=BOX)

    for sent, item_id in ((AVATAR, "x"), (NOTE, AVATAR_ID), (NO_PAYLOAD, AVATAR_ID)):
        publishing = publish(world, sent, item_id, options=MOVIM_AVATAR)
        assert await refusal(publishing) is Condition.PRECONDITION_NOT_MET
    by_another = publish(world, AVATAR, AVATAR_ID, options=MOVIM_AVATAR, actor=BOB)
    assert await refusal(by_another) is Condition.FORBIDDEN


# Event types.


@pytest.mark.parametrize(
    ("persist", "payloads", "sent", "expected"),
    [
        ("1", "1", NO_ITEM, Condition.ITEM_REQUIRED),
        ("1", "1", NO_PAYLOAD, Condition.PAYLOAD_REQUIRED),
        ("1", "1", NOTE, None),
        ("1", "0", NO_ITEM, Condition.ITEM_REQUIRED),
        ("1", "0", NO_PAYLOAD, None),
        ("1", "0", NOTE, None),
        ("0", "1", NO_ITEM, Condition.PAYLOAD_REQUIRED),
        ("0", "1", NO_PAYLOAD, Condition.PAYLOAD_REQUIRED),
        ("0", "1", NOTE, None),
        ("0", "0", NO_ITEM, None),
        ("0", "0", NO_PAYLOAD, Condition.ITEM_FORBIDDEN),
        ("0", "0", NOTE, Condition.ITEM_FORBIDDEN),
    ],
)
async def test_each_event_type_requires_its_parts_of_an_item(
    world: World, persist: str, payloads: str, sent: str, expected: Condition | None
) -> None:
    """[xep-map 135] [xep-map 136]"""
    await world.create(BOX, kind="generic", persist_items=persist, deliver_payloads=payloads)
    await world.subscribe(ALICE, BOX)

    if expected is None:
        await publish(world, sent)
    else:
        assert await refusal(publish(world, sent)) is expected

    await world.settle()
    assert len(world.wire.sent) == int(expected is None)
    for stanza in world.wire.sent:
        (items,) = etree.fromstring(stanza).iterfind("{*}event/{*}items")
        assert [(item.get("id"), item.get("publisher"), len(item)) for item in items] == (
            [] if sent == NO_ITEM else [("x", OWNER, int(payloads))]
        )
    if persist == "1":
        assert (await world.pull(BOX)).ids == ("x" if expected is None else "")
    else:
        with pytest.raises(FeedError) as refused:
            await world.pull(BOX)
        assert (refused.value.condition, refused.value.feature) == (Condition.UNSUPPORTED, "persistent-items")


# Full nodes (XEP-0060 7.1.2.5, 7.1.3.4).


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "+a +b -a +c"),
        ({"publish_node_full": "retract-oldest", "notify_retract": "0"}, "+a +b +c"),
        ({"publish_node_full": "discard-oldest"}, "+a +b +c"),
    ],
)
async def test_publish_on_a_full_node_removes_the_oldest_item(
    world: World, options: dict[str, str], expected: str
) -> None:
    """[xep-map 73]"""
    await world.create(BOX, max_items="2", **options)
    await world.subscribe(BOB, BOX)

    for item_id in "abc":
        await publish(world, NOTE, item_id)
        await world.settle()

    assert (await world.pull(BOX)).ids == "b c"
    assert await world.told() == expected


async def test_publish_on_a_full_node_that_rejects_is_refused(world: World) -> None:
    await world.create(BOX, max_items="2", publish_node_full="reject")
    for item_id in "ab":
        await publish(world, NOTE, item_id)

    assert await refusal(publish(world, NOTE, "c")) is Condition.NODE_FULL
    answer = await publish(world, "<m xmlns='urn:example:n'/>", "a")
    assert isinstance(answer, Published) and not answer.created
    await world.retract("b", node=BOX)
    await publish(world, NOTE, "c")
    assert (await world.pull(BOX)).ids == "a c"


# Marks of deletions.


REMOVED = "<sync xmlns='http://feedsync.org/2007/feedsync' deleted='{}'/>"
LEFT = "<left xmlns='urn:smartfeeds:0'/>"
REMOVALS = {
    "a deleted entry": f"<entry xmlns='{ATOM_NS}'>{REMOVED.format('true')}</entry>",
    "another spelling of true": f"<entry xmlns='{ATOM_NS}'>{REMOVED.format('1')}</entry>",
    "an entry that has left": f"<entry xmlns='{ATOM_NS}'>{LEFT}</entry>",
    "a feed": f"<feed xmlns='{ATOM_NS}'>{REMOVED.format('true')}</feed>",
    "another payload": f"<n xmlns='urn:example:n'>{REMOVED.format('true')}</n>",
    "another payload that has left": f"<n xmlns='urn:example:n'>{LEFT}</n>",
    "RFC 6721": "<deleted-entry xmlns='http://purl.org/atompub/tombstones/1.0' ref='urn:x:1'/>",
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("persist", ["1", "0"])
async def test_generic_node_refuses_payloads_that_followers_read_as_deletions(
    world: World, removal: str, persist: str
) -> None:
    """The item would be live on the node, and missing from the copy of each follower."""
    await world.create(BOX, kind="generic", persist_items=persist)
    received = read_item(ElementTree.fromstring(f"<item id='x'>{REMOVALS[removal]}</item>"))
    assert received.deleted or received.left

    assert await refusal(publish(world, REMOVALS[removal])) is Condition.INVALID_PAYLOAD
    await publish(world, f"<n xmlns='urn:example:n'><m>{REMOVALS[removal]}</m></n>")


async def test_item_about_a_feed_with_the_mark_of_a_deletion_is_refused(world: World) -> None:
    await world.create(BOX)
    for item_id, start, end in (
        ("0", f"<feed xmlns='{ATOM_NS}'>", "</feed>"),
        (AVATAR_ID, f"<metadata xmlns='{AVATAR_ID}'>", "</metadata>"),
    ):
        for mark in (REMOVED.format("true"), LEFT):
            assert await refusal(publish(world, f"{start}{mark}{end}", item_id)) is Condition.INVALID_PAYLOAD
