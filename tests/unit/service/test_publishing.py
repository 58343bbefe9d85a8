"""Publishing, retracting, purging (XEP-0060 7.1, 7.2, 8.5; Smart Feeds, As Abstract)."""

import re
from functools import partial

import pytest

from smartfeeds.core.model import Affiliation
from smartfeeds.core.options import GALLERY, FormFields
from smartfeeds.delivery.sweeps import PURGES
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS, read_meta
from smartfeeds.service.context import Context
from smartfeeds.service.publishing import publish, purge
from smartfeeds.service.requests import Publish, Published, Purge, Retract
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import WriteTx
from support.world import (
    ALICE,
    BOB,
    CREATED,
    FEED,
    MODIFIED,
    OWNER,
    SERVICE,
    T0_US,
    S,
    World,
    bare,
    draft,
    entry,
    form,
    jid,
    refusal,
)

XHTML = "<p xmlns='http://www.w3.org/1999/xhtml'>x</p>"
EVE = "eve@elsewhere.example"
ROLES = ("owner", "publisher", "publish-only", "member", "none", "subscriber", "pending", "outcast")
ALLOWED = {
    "publishers": {"owner", "publisher", "publish-only"},
    "subscribers": {"owner", "publisher", "publish-only", "subscriber"},
    "open": {"owner", "publisher", "publish-only", "member", "none", "subscriber", "pending"},
}


async def keys(world: World, item_id: str) -> tuple[int, int]:
    """The created and the modified key of an item."""
    item = (await world.pull(MODIFIED, ids=item_id)).items[0]
    return item.created_us, item.modified_us


# Publishing.


async def test_publish_with_id_gives_it_back_and_without_makes_one(feed: World) -> None:
    """[SF-011] [xep-map 130] [xep-map 131]"""
    assert await feed.publish("a") == "a"
    made = {await feed.publish(None, entry("x")) for _ in range(3)}

    assert len(made) == 3 and made == set((await feed.ids_of(MODIFIED)).split()) - {"a"}


async def test_publish_same_id_is_one_item_moved_to_the_newest_end(feed: World) -> None:
    """[SF-010] [SF-011] [xep-map 141]"""
    await feed.publish_all("a b")
    await feed.publish("a", title="second")

    assert await feed.ids_of(MODIFIED) == "b a"
    assert await feed.ids_of(CREATED) == "a b"
    page = await feed.pull(MODIFIED, max=9)
    assert page.count == 2 and b"second" in page.items[1].payload


@pytest.mark.parametrize("user", [BOB, EVE])
@pytest.mark.parametrize("buried", [False, True], ids=["live", "tombstone"])
async def test_publish_over_the_item_of_somebody_else_is_for_owners_and_publishers(
    feed: World, user: str, *, buried: bool
) -> None:
    """[xep-map 155] [xep-map 234] Others neither change it, nor delete it by the mark, nor bring it back."""
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=ALICE)
    if buried:
        await feed.retract("a", actor=ALICE)
    before = (await feed.pull(MODIFIED)).items

    for payload in (entry("mine now"), entry(deleted=True)):
        assert await refusal(feed.publish("a", payload, actor=user)) is Condition.FORBIDDEN
    assert (await feed.pull(MODIFIED)).items == before
    await feed.affiliate(user, "publisher")
    for actor in (ALICE + "/phone", user, OWNER):
        await feed.publish("a", actor=actor)
        assert (await feed.pull(MODIFIED)).items[0].publisher == actor.partition("/")[0]


@pytest.mark.parametrize("model", ["whitelist", "authorize"])
@pytest.mark.parametrize("deleted", [False, True], ids=["entry", "mark"])
async def test_publish_tells_who_may_not_read_nothing_of_what_is_there(
    feed: World, model: str, *, deleted: bool
) -> None:
    """[xep-map 155] The same answer for an id that is there, was there and never was; all else still goes."""
    await feed.configure(publish_model="open", access_model=model)
    await feed.publish_all("there gone")
    await feed.retract("gone")
    heard = set()
    for item_id in ("there", "gone", "never"):
        with pytest.raises(FeedError) as refused:
            await feed.publish(item_id, entry(deleted=deleted), actor=ALICE)
        heard.add((refused.value.condition, refused.value.text))
    assert len(heard) == 1

    made = await feed.publish(None, entry("x"), actor=ALICE)
    await feed.publish(made, entry("x, corrected"), actor=ALICE + "/phone")
    await feed.publish(made, entry(deleted=True), actor=ALICE)
    assert await refusal(feed.publish(made, actor=BOB)) is Condition.FORBIDDEN
    await feed.affiliate(BOB, "publish-only")
    await feed.publish("there", actor=BOB)
    await feed.affiliate(ALICE, "member")
    await feed.publish("mine", actor=ALICE)


async def test_publish_stores_the_bare_jid_of_the_publisher(feed: World) -> None:
    """[xep-map 142]"""
    await feed.publish("a", actor=OWNER + "/phone")

    assert (await feed.pull(MODIFIED)).items[0].publisher == OWNER


@pytest.mark.parametrize("model", ALLOWED)
@pytest.mark.parametrize("role", ROLES)
async def test_publish_is_open_to_exactly_whom_the_model_names(feed: World, model: str, role: str) -> None:
    """[xep-map 85] [xep-map 132] [xep-map 234] A user who may not read the node leaves the id to it."""
    pending = role == "pending"
    await feed.configure(publish_model=model, access_model="authorize" if pending else "open")
    if role in ("subscriber", "pending"):
        await feed.subscribe(ALICE, FEED)
    else:
        await feed.affiliate(ALICE, role)

    publishing = feed.publish(None if pending else "a", entry("x"), actor=ALICE + "/phone")
    if role in ALLOWED[model]:
        await publishing
    else:
        assert await refusal(publishing) is Condition.FORBIDDEN
    assert (await feed.pull(FEED, actor=OWNER, max=9)).count == int(role in ALLOWED[model])


async def test_publish_by_a_subscriber_where_the_model_says_so(feed: World) -> None:
    """[xep-map 132]"""
    await feed.configure(publish_model="subscribers", access_model="authorize")
    await feed.subscribe(ALICE, FEED)
    assert await refusal(feed.publish("a", actor=ALICE)) is Condition.FORBIDDEN  # pending
    await feed.affiliate(ALICE, "member")
    await feed.subscribe(ALICE, FEED)

    assert await feed.publish("a", actor=ALICE) == "a"


async def test_publish_to_a_missing_node_follows_auto_create(world: World) -> None:
    """[xep-map 133] [xep-map 150]"""
    assert await refusal(world.publish("a")) is Condition.ITEM_NOT_FOUND
    world.set_policy(auto_create=True)
    await world.publish("a", actor=ALICE, options=form(access_model="whitelist", title="Mine"))

    node = await world.node()
    assert node.options.stored == {"access_model": ("whitelist",), "title": ("Mine",)}
    assert await world.ids_of(FEED) == "a"
    assert await refusal(world.pull(FEED, actor=BOB)) is Condition.CLOSED_NODE
    await world.configure(actor=ALICE, title="Hers")


async def test_who_may_only_publish_makes_no_node(world: World) -> None:
    """[xep-map 133] [SF-110] The request says whether a missing node may be made; one that is there takes the item."""
    world.set_policy(auto_create=True)
    request = Publish(jid(ALICE), SERVICE, FEED, "a", draft(entry("x")), may_create=False)
    assert await refusal(world.service.handle(request)) is Condition.ITEM_NOT_FOUND
    assert await world.store.read(lambda tx: tx.node_count()) == 0
    await world.publish("b", actor=ALICE)
    await world.service.handle(request)
    assert await world.ids_of(FEED) == "b a"


async def test_publish_auto_create_refused_leaves_no_node(world: World) -> None:
    """[xep-map 133] [xep-map 150] [xep-map 151]"""
    world.set_policy(auto_create=True, creators=frozenset({"elsewhere.example"}))
    assert await refusal(world.publish("a")) is Condition.FORBIDDEN
    world.set_policy(creators=frozenset({"*"}))
    assert await refusal(world.publish("a", options=form(kind="feed"), payload=XHTML)) is Condition.INVALID_PAYLOAD
    presence = form(access_model="presence")
    assert await refusal(world.publish("a", options=presence)) is Condition.UNSUPPORTED_ACCESS_MODEL
    for item_present, condition in ((False, Condition.ITEM_REQUIRED), (True, Condition.PAYLOAD_REQUIRED)):
        request = Publish(jid(OWNER), SERVICE, FEED, None, None, item_present=item_present)
        assert await refusal(world.service.handle(request)) is condition

    assert await world.store.read(lambda tx: tx.node_count()) == 0
    assert await refusal(world.publish("a", node="")) is Condition.NODEID_REQUIRED


@pytest.mark.parametrize(
    ("request_", "condition"),
    [
        (Publish(jid(OWNER), SERVICE, None, "a", draft(entry())), Condition.NODEID_REQUIRED),
        (Publish(jid(OWNER), SERVICE, FEED, None, None, item_present=False), Condition.ITEM_REQUIRED),
        (Publish(jid(OWNER), SERVICE, FEED, "a", None), Condition.PAYLOAD_REQUIRED),
        (Publish(jid(OWNER), SERVICE, FEED, "a", draft(XHTML)), Condition.INVALID_PAYLOAD),
        (
            Publish(jid(OWNER), SERVICE, FEED, "a", draft("<feed xmlns='http://www.w3.org/2005/Atom'/>")),
            Condition.INVALID_PAYLOAD,
        ),
        (Publish(jid(OWNER), SERVICE, FEED, "a", draft(entry("x" * 65_536))), Condition.PAYLOAD_TOO_BIG),
        (Retract(jid(OWNER), SERVICE, None, "a"), Condition.NODEID_REQUIRED),
        (Retract(jid(OWNER), SERVICE, FEED, None), Condition.ITEM_REQUIRED),
        (Retract(jid(OWNER), SERVICE, FEED, ""), Condition.ITEM_REQUIRED),
        (Retract(jid(OWNER), SERVICE, "nope", "a"), Condition.ITEM_NOT_FOUND),
        (Purge(jid(OWNER), SERVICE, None), Condition.NODEID_REQUIRED),
        (Purge(jid(OWNER), SERVICE, "nope"), Condition.ITEM_NOT_FOUND),
    ],
    ids=str,
)
async def test_writing_malformed_request_is_refused_and_stores_nothing(
    feed: World, request_: Publish | Retract | Purge, condition: Condition
) -> None:
    """[SF-091] [xep-map 134] [xep-map 135] [xep-map 137] [xep-map 138] [xep-map 151] [xep-map 157] [xep-map 83]"""
    await feed.publish("old")
    for node in (FEED, MODIFIED, CREATED):
        await feed.subscribe(ALICE, node)
    assert await refusal(feed.service.handle(request_)) is condition
    assert (await feed.pull(MODIFIED, max=1)).count == 1
    assert await feed.told() == ""


async def test_publish_atom_feed_is_accepted_as_item_nought_alone(feed: World) -> None:
    """[xep-map 138]"""
    await feed.publish("0", "<feed xmlns='http://www.w3.org/2005/Atom'><title>Mine</title></feed>")

    assert await feed.ids_of(MODIFIED) == "0"


async def test_publish_entry_is_completed_and_a_whole_one_is_left_alone(feed: World) -> None:
    """[SF-092] [xep-map 139]"""
    await feed.publish("a", "<entry xmlns='http://www.w3.org/2005/Atom'/>")
    whole = (
        '<entry xmlns="http://www.w3.org/2005/Atom"><id>tag:x</id><title>T</title>'
        "<updated>2011-05-09T12:00:00Z</updated></entry>"
    )
    await feed.publish("b", whole)
    made, kept = (await feed.pull(MODIFIED)).items

    for part in (
        b"<id>xmpp:feeds.example.org?;node=comments;item=a</id>",
        b"<title></title>",
        b"<updated>2011-05-09T12:00:00Z</updated>",
    ):
        assert part in made.payload
    assert kept.payload == whole.encode()


async def test_publish_max_payload_size_of_the_node_counts(feed: World) -> None:
    """[xep-map 137]"""
    await feed.configure(max_payload_size="200")

    with pytest.raises(FeedError) as caught:
        await feed.publish("a", title="x" * 20_000)
    assert caught.value.condition is Condition.PAYLOAD_TOO_BIG
    assert re.match(r"the item has 20,\d{3} bytes, and the limit of this node is 200; shorten it", caught.value.text)
    await feed.publish("a", title="x")


async def test_publish_to_a_gallery_needs_an_enclosure(feed: World) -> None:
    """[xep-map 237]"""
    await feed.create("texts")
    await feed.configure(type=GALLERY)
    for link in ("", "<link rel='alternate' href='http://example.org/'/>", "<link rel='enclosure'/>"):
        without = entry("x", inner=link)
        assert await refusal(feed.publish("a", without)) is Condition.INVALID_PAYLOAD
        await feed.publish("a", without, node="texts")
    for item_id in ("a", "b"):
        await feed.publish(item_id, entry("pic", inner="<link rel='enclosure' href='https://x/y.jpg'/>"))
    # A tombstone has no enclosure.
    await feed.publish("a", entry(deleted=True))
    await feed.retract("b")

    assert [item.deleted for item in (await feed.pull(MODIFIED)).items] == [True, True]


@pytest.mark.parametrize(
    "options",
    [
        form(max_items="max", notify_retract="1", access_model="open"),
        {},
        form(persist_items="true"),
        form(persist_items="1", deliver_payloads="1"),
        form(max_items="10000"),
        form(access_model="open", publish_model="publishers", itemreply="publisher"),
        form(title="Comments"),
        form(notify_sub="true"),
    ],
)
async def test_publish_options_that_are_met_let_it_through(feed: World, options: FormFields) -> None:
    """[xep-map 145] [xep-map 149] Only owners notice notify_sub, so it is no condition."""
    await feed.configure(title="Comments")
    await feed.publish("old")
    before = await feed.node()
    await feed.publish("a", options=options)

    assert await feed.ids_of(FEED) == "old a"
    assert (await feed.node()).options == before.options


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(form(access_model="whitelist"), id="[xep-map 146] another value"),
        pytest.param(form(persist_items="true", notify_config="true"), id="[xep-map 146] one of two"),
        pytest.param(form(max_items="1"), id="[xep-map 146] fewer items"),
        pytest.param(form(item_expire="86400"), id="[xep-map 146] expiry"),
        pytest.param(form(access_model="presence"), id="[xep-map 146] a model that is not served"),
        pytest.param(form(title="Other"), id="[xep-map 146] title"),
        pytest.param(form(persist_items="yes"), id="[xep-map 146] no boolean"),
        pytest.param(form(colour="red"), id="[xep-map 147] unknown"),
        pytest.param({"title": ("Comments",)}, id="[xep-map 147] without its prefix"),
        pytest.param(form(body_xslt="http://example.org/"), id="[xep-map 147] not offered"),
        pytest.param(form(collection="x"), id="[xep-map 147] collections"),
        pytest.param(form(kind="generic"), id="[xep-map 147] the kind"),
    ],
)
async def test_publish_option_that_is_not_met_stops_it(feed: World, options: FormFields) -> None:
    """[xep-map 146] [xep-map 147] [xep-map 151] Nothing is stored, nothing is configured, nobody is told."""
    await feed.configure(title="Comments")
    await feed.publish("old")
    await feed.subscribe(ALICE, FEED)
    before = await feed.node()

    assert await refusal(feed.publish("a", options=options)) is Condition.PRECONDITION_NOT_MET
    assert (await feed.node(), await feed.ids_of(FEED), await feed.told()) == (before, "old", "")


@pytest.mark.parametrize("node", [MODIFIED, CREATED])
async def test_writing_to_a_view_is_unsupported(feed: World, node: str) -> None:
    """[xep-map 52]"""
    await feed.publish("a")
    for doing, feature in (
        (feed.publish("b", node=node), "publish"),
        (feed.retract("a", node=node), "delete-items"),
        (feed.purge(node=node), "purge-nodes"),
    ):
        with pytest.raises(FeedError) as caught:
            await doing
        assert (caught.value.condition, caught.value.feature) == (Condition.UNSUPPORTED, feature)


# Keys.


async def test_keys_are_the_clock_and_strictly_grow_also_when_it_stands_or_steps_back(feed: World) -> None:
    """[SF-104] [A-38] [xep-map 153] A-31."""
    await feed.publish("a")
    await feed.publish("b")
    feed.clock.move(-3_600)
    await feed.publish("c")
    await feed.publish("a", title="edited")
    feed.clock.move(7_200)
    await feed.publish("d")

    assert await keys(feed, "b") == (T0_US + 1, T0_US + 1)
    assert await keys(feed, "c") == (T0_US + 2, T0_US + 2)
    assert await keys(feed, "a") == (T0_US, T0_US + 3)
    assert await keys(feed, "d") == (T0_US + 3_600 * S, T0_US + 3_600 * S)
    assert await feed.ids_of(MODIFIED) == "b c a d"
    assert await feed.ids_of(CREATED) == "a b c d"


async def test_no_item_appears_behind_a_cursor_when_the_clock_steps_back(feed: World) -> None:
    """[A-38] [SF-101] [xep-map 153]"""
    await feed.subscribe(BOB, MODIFIED)
    ids: list[str] = []
    cursor = ""
    for step_s in (0, -3_600, 0, 1, -86_400, 7_200):
        feed.clock.move(step_s)
        await feed.publish(f"i{len(ids)}")
        page = await feed.pull(MODIFIED, after=cursor)
        assert page.ids == f"i{len(ids)}"
        ids.append(page.ids)
        cursor = page.last or ""
        (event,) = await feed.events()
        assert event.last == bare(cursor)

    assert await feed.ids_of(CREATED) == await feed.ids_of(MODIFIED) == " ".join(ids)


# Retracting.


async def test_retract_leaves_a_stripped_marked_tombstone_at_its_places(feed: World) -> None:
    """[SF-013] [xep-map 154] [xep-map 159] [xep-map 160]"""
    await feed.publish("a", author="Ann", category="news", content="secret")
    await feed.publish_all("b")
    await feed.retract("a")

    assert await feed.ids_of(FEED) == (await feed.pull(FEED)).ids == "b"
    by_id = await feed.pull(FEED, ids="a")
    assert (by_id.ids, by_id.told, (await feed.pull(FEED, ids="a b")).ids) == ("", False, "b")
    assert await feed.ids_of(CREATED) == "a b"
    page = await feed.pull(MODIFIED, max=9)
    assert (page.ids, page.count) == ("b a", 2)
    tombstone = page.items[1]
    assert tombstone.deleted and b'deleted="true"' in tombstone.payload
    assert b"secret" not in tombstone.payload and b"Ann" not in tombstone.payload
    assert b"<id>xmpp:feeds.example.org?;node=comments;item=a</id>" in tombstone.payload
    assert read_meta(tombstone.payload).text == ""


@pytest.mark.parametrize("model", ["publishers", "open"])
@pytest.mark.parametrize("role", ["publisher", "publish-only"])
async def test_retract_is_for_owners_and_the_original_publisher(feed: World, model: str, role: str) -> None:
    """[xep-map 85] [xep-map 154] [xep-map 155]"""
    await feed.configure(publish_model=model)
    await feed.affiliate(ALICE, role)
    await feed.publish("a", actor=ALICE)
    await feed.publish("b", actor=ALICE)

    await feed.retract("a", actor=ALICE + "/other")
    await feed.retract("b", actor=OWNER)
    assert await feed.ids_of(FEED, actor=OWNER) == ""


@pytest.mark.parametrize("role", ["none", "member", "publisher", "publish-only", "outcast"])
async def test_retract_of_the_item_of_somebody_else_is_forbidden(feed: World, role: str) -> None:
    """[xep-map 85] [xep-map 155] Another publisher may not either."""
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=ALICE)
    await feed.affiliate(BOB, role)

    assert await refusal(feed.retract("a", actor=BOB)) is Condition.FORBIDDEN
    assert await feed.ids_of(FEED) == "a"


async def test_retract_by_an_outcast_of_its_own_item_is_forbidden(feed: World) -> None:
    """[xep-map 155]"""
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=ALICE)
    await feed.affiliate(ALICE, "outcast")

    assert await refusal(feed.retract("a", actor=ALICE)) is Condition.FORBIDDEN


async def test_retract_of_an_unknown_item_or_a_tombstone_is_not_found(feed: World) -> None:
    """[xep-map 156] Only appointed publishers learn that an item is missing."""
    await feed.configure(publish_model="open")
    await feed.affiliate(BOB, "publisher")
    await feed.publish("a", actor=ALICE)
    await feed.retract("a", actor=ALICE)
    before = await keys(feed, "a")

    for actor, item_id in ((OWNER, "a"), (ALICE, "a"), (OWNER, "nope"), (BOB, "nope")):
        assert await refusal(feed.retract(item_id, actor=actor)) is Condition.ITEM_NOT_FOUND
    assert await refusal(feed.retract("nope", actor=EVE)) is Condition.FORBIDDEN
    for actor in (OWNER, EVE):
        assert await refusal(feed.retract("a", node="missing", actor=actor)) is Condition.ITEM_NOT_FOUND
    assert await refusal(feed.publish("a", entry(deleted=True))) is Condition.ITEM_NOT_FOUND
    assert await keys(feed, "a") == before


async def test_publish_of_a_tombstoned_id_brings_it_back_with_its_created_date(feed: World) -> None:
    """[SF-013] [xep-map 163] D19, A-19."""
    await feed.publish_all("a b")
    created_us, _ = await keys(feed, "a")
    await feed.retract("a")
    for node in (FEED, MODIFIED, CREATED):
        await feed.subscribe(ALICE, node)
    await feed.publish("a", title="back")
    assert sorted((event.node, event.short) for event in await feed.events()) == [(FEED, "+a"), (MODIFIED, "+a")]

    assert await feed.ids_of(FEED) == await feed.ids_of(MODIFIED) == "b a"
    assert await feed.ids_of(CREATED) == "a b"
    assert (await keys(feed, "a"))[0] == created_us
    assert (await feed.pull(MODIFIED, max=1)).count == 2
    assert FEEDSYNC_NS.encode() not in (await feed.pull(FEED, ids="a")).items[0].payload
    await feed.retract("a")


async def test_publish_of_an_entry_marked_as_deleted_is_a_retraction(feed: World) -> None:
    """[SF-013] A-18; xep-map 2.3."""
    await feed.publish_all("a b")
    await feed.subscribe(ALICE, FEED)
    await feed.publish("a", entry("left over", deleted=True))

    assert await feed.told() == "-a"
    assert await feed.ids_of(FEED) == "b"
    assert await feed.ids_of(MODIFIED) == "b a"
    assert b"left over" not in (await feed.pull(MODIFIED)).items[1].payload


@pytest.mark.parametrize("role", ["none", "publisher"])
async def test_publish_of_a_deletion_needs_the_right_to_retract(feed: World, role: str) -> None:
    """[xep-map 155] It is for the owner and the author, and an item must be there."""
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=ALICE)
    await feed.publish("b", actor=ALICE)
    await feed.affiliate(BOB, role)
    mark = entry(deleted=True)

    assert await refusal(feed.publish("a", mark, actor=BOB)) is Condition.FORBIDDEN
    assert await feed.ids_of(FEED) == "a b"
    await feed.publish("a", mark, actor=ALICE)
    await feed.publish("b", mark, actor=OWNER)
    assert await feed.ids_of(FEED) == ""
    for item_id in ("a", "never"):
        assert await refusal(feed.publish(item_id, mark, actor=ALICE)) is Condition.ITEM_NOT_FOUND


# Purging.


async def test_purge_makes_tombstones_of_all_with_a_key_each_in_order(feed: World) -> None:
    """[xep-map 81] [xep-map 82]"""
    await feed.publish_all("a b c d")
    await feed.retract("b")
    await feed.purge()

    assert await feed.ids_of(FEED) == ""
    assert await feed.ids_of(MODIFIED) == "b a c d"
    assert await feed.ids_of(CREATED) == "a b c d"
    page = await feed.pull(MODIFIED)
    assert all(item.deleted for item in page.items)
    assert len({item.modified_us for item in page.items}) == 4
    # Only what was there is purged.
    await feed.subscribe(ALICE, FEED)
    await feed.publish("e")
    assert (await feed.ids_of(FEED), await feed.told()) == ("e", "+e")


async def test_purge_of_more_items_than_one_chunk_takes_all(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 81]"""
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 3)
    await feed.publish_all("a b c d e f g")
    await feed.purge()

    assert await feed.ids_of(MODIFIED) == "a b c d e f g"
    assert (await feed.pull(FEED, max=1)).count == 0


async def test_purge_in_chunks_leaves_what_is_published_meanwhile_and_its_event_before_it(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 81] [SF-039] No transaction grows with the feed, and no client throws away what came after."""
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 3)
    await feed.publish_all("a b c d e f g")
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(BOB, MODIFIED)
    rest = await feed.step(partial(purge, request=Purge(jid(OWNER), SERVICE, FEED)))
    await feed.settle()
    assert isinstance(rest, MoreSteps)
    await feed.publish("h")
    await feed.service.write(rest.step)

    events = await feed.events()
    assert [event.short for event in events if event.to == ALICE] == ["purge", "+h"]
    bobs = [event for event in events if event.to == BOB]
    assert [event.short for event in bobs[:2]] == ["purge", "+h"]
    assert sorted(event.short for event in bobs[2:]) == ["-d", "-e", "-f", "-g"]
    assert await feed.ids_of(FEED) == "h"


async def test_purge_that_a_killed_process_began_is_continued(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 81] The event was sent, so the items that were live then must not stay live."""
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 3)
    await feed.publish_all("a b c d e f g")
    await feed.subscribe(ALICE, FEED)
    await feed.step(partial(purge, request=Purge(jid(OWNER), SERVICE, FEED)))
    assert await feed.told() == "purge"
    await feed.publish("h")
    await feed.crash()
    await feed.start()
    await PURGES.sweep(feed.service)

    assert await feed.ids_of(FEED) == "h"
    assert await feed.told() == "+h"
    assert await feed.store.read(lambda tx: tx.open_purges()) == []


async def test_purge_of_a_deleted_node_ends(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 3)
    await feed.publish_all("a b c d")
    await feed.step(partial(purge, request=Purge(jid(OWNER), SERVICE, FEED)))
    await feed.cut()
    await feed.delete()
    await PURGES.sweep(feed.service)

    assert await feed.store.read(lambda tx: tx.open_purges()) == []


async def test_purge_of_an_empty_node_is_fine_and_only_for_owners(feed: World) -> None:
    """[xep-map 83]"""
    await feed.purge()
    await feed.affiliate(ALICE, "publisher")

    assert await refusal(feed.purge(actor=ALICE)) is Condition.FORBIDDEN


async def test_publish_reads_the_affiliation_of_the_publisher_once(feed: World) -> None:
    await feed.configure(publish_model="open")
    await feed.publish("a", actor=ALICE)
    reads: list[str] = []

    def work(tx: WriteTx, context: Context) -> Published:
        real = type(tx).affiliation

        def affiliation(tx: WriteTx, node_no: int, address: str) -> Affiliation:
            reads.append(address)
            return real(tx, node_no, address)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(tx), "affiliation", affiliation)
            return publish(tx, context, Publish(jid(ALICE), SERVICE, FEED, "a", draft(entry("new"))))

    assert (await feed.service.write(work)).item_id == "a"
    assert reads == [ALICE]


# Generic nodes.


async def test_generic_node_takes_any_payload_and_deletes(world: World) -> None:
    """[xep-map 73] [xep-map 159] D20; tombstones belong to feeds."""
    await world.create("things", kind="generic")
    await world.publish("a", XHTML, node="things")
    await world.publish("b", entry(), node="things")
    await world.subscribe(ALICE, "things")
    await world.retract("a", node="things")

    assert await world.told() == "-a"
    assert await refusal(world.retract("a", node="things")) is Condition.ITEM_NOT_FOUND
    page = await world.pull("things")
    assert page.ids == "b" and not page.items[0].deleted
    await world.purge(node="things")
    assert await world.told() == "purge"
    assert (await world.pull("things", max=1)).count == 0


async def test_generic_node_keeps_the_newest_max_items(world: World) -> None:
    """[xep-map 73]"""
    await world.create("things", kind="generic", max_items="3")
    await world.publish_all("a b c d", node="things")
    await world.publish("b", title="edited", node="things")
    await world.publish("e", node="things")

    assert (await world.pull("things")).ids == "d b e"
    assert (await world.pull("things?order=modified")).short == "-a +d +b -c +e"
    assert (await world.pull("things?order=created")).short == "-a +b -c +d +e"


async def test_feed_keeps_everything(feed: World) -> None:
    """[SF-012] [xep-map 71]"""
    await feed.put(*[(f"i{number}", number) for number in range(1, 10_001)])
    await feed.publish("newest")

    page = await feed.pull(MODIFIED, max=1)
    assert (page.ids, page.count) == ("i1", 10_001)
