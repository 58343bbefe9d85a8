"""Nodes of other services into this one (`features.moving_in.moving`), with the stores in memory and in SQLite."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from smartfeeds.cli.reading import FileSpool, file_spool
from smartfeeds.core.model import Affiliation, Item, Node, NodeKind, Slice, SubscriptionState
from smartfeeds.core.options import AccessModel
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition
from smartfeeds.features.moving_in import moved_people, moving
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode, MovedProblem, MovedSubscription, UnreadableItem
from smartfeeds.features.moving_in.moving import MoveSettings, NodeReport, move_node
from smartfeeds.service import requests as r
from support.world import (
    ALICE,
    ATOM_NS,
    BOB,
    CREATED,
    FEED,
    MODIFIED,
    OWNER,
    SERVICE,
    T0_US,
    S,
    World,
    entry,
    jid,
    refusal,
)

SETTINGS = MoveSettings(SERVICE)
OWNED = {OWNER: "owner"}
GEO = '<geoloc xmlns="http://jabber.org/protocol/geoloc"><lat>%s</lat></geoloc>'
DAY_US = 86_400 * S


def item(
    item_id: str, made: float | None = 0, changed: float | None = None, payload: str | None = None, by: str = ALICE
) -> MovedItem:
    """An item with its dates in days before now."""
    days = [None if day is None else T0_US - int(day * DAY_US) for day in (made, changed)]
    return MovedItem(item_id, by, days[0], days[1], (entry(item_id) if payload is None else payload).encode())


def node(*items: MovedItem | MovedProblem, name: str = FEED, **parts: Any) -> MovedNode:
    return MovedNode(name, **{"affiliations": OWNED, **parts}, items=items)


@pytest.fixture
def spool() -> Iterator[FileSpool]:
    with file_spool() as made:
        yield made


Bring = Callable[..., Any]


@pytest.fixture
def bring(world: World, spool: FileSpool) -> Bring:
    """Moves a node."""

    async def move(moved: MovedNode, **settings: Any) -> NodeReport:
        return await move_node(world.service, moved, replace(SETTINGS, **settings), spool, world.clock.now_us)

    return move


def told(report: NodeReport) -> list[tuple[str, str]]:
    return [tuple(problem) for problem in report.problems]


async def people(world: World, name: str = FEED) -> tuple[dict[str, Affiliation], dict[str, SubscriptionState]]:
    """The affiliations and subscriptions of a node."""
    node_no = (await world.node(name)).node_no

    def read(tx: Any, _context: object) -> tuple[dict[str, Affiliation], dict[str, SubscriptionState]]:
        affiliations = dict(tx.affiliations(node_no))
        subscriptions = [
            subscription
            for bare in (ALICE, BOB, OWNER)
            for subscription in tx.subscriptions_on(node_no, bare, now_us=None)
        ]
        return affiliations, {subscription.jid: subscription.state for subscription in subscriptions}

    return await world.service.read(read)


async def rows(world: World) -> list[Item]:
    """The items as stored. A page has no revisions and no counts."""
    return await world.service.read(lambda tx, _context: list(tx.slice(tx.node(FEED).node_no, Slice(BARE, 100))))


async def nodes(world: World) -> list[Node]:
    """Every node that is not deleted, also one that nobody can see."""
    return await world.service.read(lambda tx, _context: list(tx.nodes("", 100)))


# Order and keys.


async def test_both_orders_have_the_dates_of_the_source(world: World, bring: Bring) -> None:
    """[IMP-060] [IMP-061] In any order of the source. An edited item has revision 2."""
    report = await bring(node(item("c", 1), item("a", 9, 2), item("b", 5)))

    assert (report.outcome, report.kind, report.counts.added) == ("created", "feed", 3)
    assert (await world.ids_of(CREATED), await world.ids_of(MODIFIED)) == ("a b c", "b a c")
    items = {one.id: one for one in await rows(world)}
    assert [(one.created_us, one.modified_us, one.revision) for one in map(items.get, "abc") if one] == [
        (T0_US - 9 * DAY_US, T0_US - 2 * DAY_US, 2),
        (T0_US - 5 * DAY_US, T0_US - 5 * DAY_US, 1),
        (T0_US - 1 * DAY_US, T0_US - 1 * DAY_US, 1),
    ]
    assert {one.publisher for one in items.values()} == {ALICE}
    assert (await world.node())[7:11] == (3, 3, T0_US - DAY_US, T0_US - DAY_US)


async def test_equal_missing_and_future_dates_give_growing_keys(world: World, bring: Bring) -> None:
    """[IMP-061] An item without a date has that of the item before it."""
    await bring(node(item("a", 2), item("b", 2), item("c", None), item("d", -5), item("e", -6), item("f", 3, 4)))

    items = {one.id: (one.created_us - T0_US, one.modified_us - T0_US) for one in (await world.pull(CREATED)).items}
    two, three = -2 * DAY_US, -3 * DAY_US
    assert list(items.items()) == [
        ("f", (three, three)),
        ("a", (two, two)),
        ("b", (two + 1, two + 1)),
        ("c", (two + 2, two + 2)),
        ("d", (0, 0)),
        ("e", (1, 1)),
    ]
    await world.publish("g")
    assert (await world.ids_of()).endswith("d e g")


async def test_node_with_items_gets_the_next_keys(feed: World, bring: Bring) -> None:
    """[IMP-062] Nothing is inserted before a cursor; the payload has the true dates."""
    await feed.publish("here")
    last_us = (await feed.node()).last_created_us

    report = await bring(node(item("old", 9)))

    assert (report.outcome, report.counts.added) == ("updated", 1)
    (_, old) = (await feed.pull(CREATED)).items
    assert old.id == "old" and old.created_us == last_us + 1


# Visibility.


class BrokenSpool:
    """A spool whose disk fails after some items."""

    def __init__(self, spool: FileSpool, reads: int) -> None:
        self.spool, self.reads = spool, reads

    def append(self, data: bytes) -> int:
        return self.spool.append(data)

    def read(self, offset: int, size: int) -> bytes:
        self.reads -= 1
        if self.reads < 0:
            raise OSError("disk")
        return self.spool.read(offset, size)


async def test_interrupted_node_is_invisible_and_a_second_import_completes_it(
    world: World, spool: FileSpool, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-062] Until its last transaction nobody can see the node, nor receive from it."""
    monkeypatch.setattr(moving, "BATCH", 2)
    moved = node(*(item(f"i{number}", 9 - number) for number in range(7)), subscriptions=(MovedSubscription(ALICE),))

    for reads in (0, 3, 6):
        with pytest.raises(OSError, match="disk"):
            await move_node(world.service, moved, SETTINGS, BrokenSpool(spool, reads), T0_US)
        assert await refusal(world.pull(FEED)) is Condition.ITEM_NOT_FOUND
        assert await refusal(world.publish("x")) is Condition.ITEM_NOT_FOUND
        assert [one.name for one in await nodes(world)] in ([], [f"urn:smartfeeds:moving:{FEED}"])
        answer = await world.service.handle(r.GetNodes(jid(OWNER), SERVICE))
        assert isinstance(answer, r.NodeList) and answer.nodes == ()

    report = await bring(moved)

    assert (report.outcome, report.counts.added, report.subscriptions) == ("created", 7, 1)
    assert await world.ids_of(CREATED) == "i0 i1 i2 i3 i4 i5 i6"
    assert [(one.total, one.live) for one in await rows(world)] == [(number, number) for number in range(1, 8)]
    assert [one.name for one in await nodes(world)] == [FEED]
    assert not await world.events()


async def test_transactions_are_bounded_by_the_bytes_of_items(
    world: World, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-062] The memory does not depend on the sizes of items."""
    sizes: list[int] = []
    add = moving.add_batch

    def note(tx: Any, context: Any, name: str, items: Any) -> int:
        sizes.append(len(items))
        return add(tx, context, name, items)

    monkeypatch.setattr(moving, "add_batch", note)
    monkeypatch.setattr(moving, "BATCH_BYTES", 1)
    report = await bring(node(*(item(f"i{number}", 9 - number) for number in range(7))))

    assert report.counts.added == 7
    assert await world.ids_of(CREATED) == "i0 i1 i2 i3 i4 i5 i6"
    assert sizes == [1] * 6, "the first item is stored with the node"


async def test_node_whose_name_is_taken_during_the_import_is_refused(
    world: World, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-062]"""
    monkeypatch.setattr(moving, "BATCH", 1)
    begun = iter([True])
    begin = moving.begin_node

    def take(tx: Any, context: Any, node: Node, items: Any) -> int:
        count = begin(tx, context, node=node, items=items)
        if next(begun, False):
            tx.add_node(Node(0, FEED, NodeKind.FEED, BOB, T0_US, node.options))
        return count

    monkeypatch.setattr(moving, "begin_node", take)
    report = await bring(node(item("a"), item("b")))
    assert (report.outcome, [subject for subject, _ in told(report)]) == ("refused", ["node"])


# Kinds and options.


@pytest.mark.parametrize(
    ("items", "options", "kind"),
    [
        ((item("a"), item("b")), {}, "feed"),
        ((item("a"), item("b", payload=GEO % 1)), {}, "generic"),
        ((item("a"), item("0", payload=f'<feed xmlns="{ATOM_NS}"><title>T</title></feed>')), {}, "feed"),
        ((item("0", payload=GEO % 1),), {}, "generic"),
        ((), {"pubsub#max_items": ("20",)}, "feed"),
        ((), {"pubsub#persist_items": ("false",)}, "generic"),
        ((), {"pubsub#type": ("urn:xmpp:omemo:2:devices",)}, "generic"),
        ((item("a"),), {"pubsub#max_items": ("20",)}, "feed"),
    ],
)
async def test_payloads_decide_the_kind(
    world: World, bring: Bring, items: tuple[MovedItem, ...], options: dict[str, tuple[str, ...]], kind: str
) -> None:
    """[IMP-063] A feed has Atom entries, and the items about itself. Without items the options decide."""
    report = await bring(node(*items, options=options))

    assert (report.kind, report.counts.added) == (kind, len(items))
    assert (await world.node()).kind.value == kind


async def test_kind_can_be_chosen(world: World, bring: Bring) -> None:
    """[IMP-063]"""
    report = await bring(node(item("a"), item("b", payload=GEO % 1)), kind=NodeKind.FEED)
    assert report.counts.skipped == (("b", "the items of a feed are Atom entries"),)
    assert await world.ids_of() == "a"

    report = await bring(node(item("a"), name="places"), kind=NodeKind.GENERIC)
    assert (await world.node("places")).kind is NodeKind.GENERIC and report.counts.added == 1


async def test_generic_node_has_the_limit_of_the_source_and_its_newest_items(world: World, bring: Bring) -> None:
    """[IMP-063]"""
    items = [item(f"g{number}", 9 - number, payload=GEO % number) for number in range(5)]

    report = await bring(node(*items, options={"pubsub#max_items": ("3",)}))

    assert (await world.node()).options.max_items == 3
    assert report.counts.skipped == (("2 oldest items", "the node has up to 3 items"),)
    assert (await world.pull(FEED)).ids == "g2 g3 g4"
    assert [(one.total, one.live) for one in await rows(world)] == [(1, 1), (2, 2), (3, 3)]

    report = await bring(node(*items[3:], item("g5", 0, payload=GEO % 5), options={"pubsub#max_items": ("2",)}))
    assert (report.counts.added, report.counts.unchanged) == (1, 1)
    assert (await world.pull(FEED)).ids == "g4 g5"


async def test_limit_of_a_feed_is_dropped_and_reported(world: World, bring: Bring) -> None:
    """[IMP-063]"""
    report = await bring(node(item("a"), options={"pubsub#max_items": ("5",)}))

    assert (await world.node()).options.max_items is None
    assert told(report) == [("option pubsub#max_items", "a feed never expires items; the limit of 5 is dropped")]


async def test_options_are_kept_or_reported(world: World, bring: Bring) -> None:
    """[IMP-060] [IMP-067] No node opens by moving."""
    options = {
        "pubsub#title": ("News",),
        "pubsub#access_model": ("roster",),
        "pubsub#publish_model": ("open",),
        "pubsub#max_payload_size": ("5000000",),
        "pubsub#roster_groups_allowed": (),
        "pubsub#vendor": ("x",),
    }

    report = await bring(node(item("a"), options=options))

    stored = (await world.node()).options
    assert (stored.title, stored.access_model, stored.publish_model.value) == ("News", AccessModel.WHITELIST, "open")
    assert [subject for subject, _ in told(report)] == [
        "option pubsub#access_model",
        "option pubsub#access_model",
        "option pubsub#max_payload_size",
        "option pubsub#vendor",
    ]
    assert await refusal(world.pull(FEED)) is Condition.CLOSED_NODE


@pytest.mark.parametrize("values", [(), ("",), ("nonsense",)])
async def test_node_whose_access_model_is_unknown_is_closed(
    world: World, bring: Bring, values: tuple[str, ...]
) -> None:
    """[IMP-045] The reader could not read it. An open node that exists closes, too."""
    closed = node(item("a"), options={"pubsub#access_model": values})
    await bring(closed)
    await bring(node(item("a"), name="blog", options={"pubsub#access_model": ("open",)}))
    assert (await world.pull("blog")).ids == "a"
    report = await bring(replace(closed, name="blog"))

    assert ("option pubsub#access_model", "the access model is whitelist now, with the same affiliations") in told(
        report
    )
    for name in (FEED, "blog"):
        assert (await world.node(name)).options.access_model is AccessModel.WHITELIST
        assert await refusal(world.pull(name)) is Condition.CLOSED_NODE


async def test_item_that_is_for_some_users_now_is_removed_by_a_mirror(world: World, bring: Bring) -> None:
    """[IMP-045] [IMP-068] The reader leaves it out, because the node is open to others."""
    await bring(node(item("a", 2), item("b", 1)))
    withheld = MovedProblem("item b", "only some users may read it, and the node is open to others")

    report = await bring(node(item("a", 2), withheld), mirror=True)

    assert (report.counts.deleted, withheld in report.problems) == (1, True)
    assert await world.ids_of(FEED) == "a"


# Names.


@pytest.mark.parametrize(
    "name",
    [
        "blog?order=modified",
        "blog%3Forder=created",
        "blog?author=alice",
        "",
        "x" * 1_024,
        "a\0b",
        "\udcff",
        "urn:xmpp:pubsub-attachments:summary:1/blog",
    ],
)
async def test_name_that_no_node_can_have_is_refused(world: World, bring: Bring, name: str) -> None:
    """[IMP-064] Nothing is renamed."""
    report = await bring(node(item("a"), name=name))

    assert (report.node, report.outcome) == (name, "refused")
    assert [problem.subject for problem in report.problems] == ["node"]
    assert await nodes(world) == []


async def test_name_with_a_query_that_names_no_view_is_kept(world: World, bring: Bring) -> None:
    """[IMP-064]"""
    name = "ünï/c ode?a=b&c"
    assert (await bring(node(item("a"), name=name))).outcome == "created"
    assert (await world.node(name)).name == name


# People.


async def test_subscribers_receive_what_comes_after_the_import(world: World, bring: Bring) -> None:
    """[IMP-065] The service of the subscriptions is ours; a full JID is kept."""
    subscriptions = (MovedSubscription(ALICE), MovedSubscription(f"{BOB}/phone"))
    report = await bring(node(item("a", 2), item("b", 1), subscriptions=subscriptions))
    assert report.subscriptions == 2
    assert not await world.events()

    await world.publish("new")

    events = await world.events()
    assert [(event.to, event.short) for event in events] == [(ALICE, "+new"), (f"{BOB}/phone", "+new")]
    assert events[0].xml.get("from") == SERVICE
    assert events[0].total == 3


async def test_options_of_subscriptions_move_or_are_reported(world: World, bring: Bring) -> None:
    """[IMP-060] [IMP-067] None is lost without a line, and none that has no effect gets one."""
    options = {
        "pubsub#deliver": ("0",),
        "pubsub#include_body": ("true",),
        "pubsub#digest": ("1",),
        "pubsub#digest_frequency": ("0",),
        "pubsub#subscription_type": ("items",),
        "pubsub#expire": ("2001-01-01T00:00:00Z",),
        "pubsub#color": ("blue",),
    }
    geo = item("g", payload=GEO % 1)

    report = await bring(node(geo, subscriptions=[MovedSubscription(BOB, options=options)]))

    node_no = (await world.node()).node_no
    (stored,) = await world.service.read(lambda tx, _context: tx.subscriptions_on(node_no, BOB, now_us=None))
    assert stored.options == {"deliver": ("false",)}
    reasons = [reason for subject, reason in told(report) if subject == f"subscription {BOB!r}"]
    lost = ["include_body does not", "digest is not supported", "expire is in the past", "color does not"]
    assert [
        reason.startswith(f"option left out: pubsub#{text}") for reason, text in zip(reasons, lost, strict=True)
    ] == [True] * 4


async def test_second_import_notifies_nobody(world: World, bring: Bring) -> None:
    """[IMP-065] [IMP-068] The subscribers have received these items from the other service."""
    subscriptions = (MovedSubscription(ALICE),)
    await bring(node(item("a", 2), item("b", 1), subscriptions=subscriptions))
    world.clock.move(10)

    changed = item("a", 2, 0, payload=entry("a", inner="<rights>new</rights>"))
    report = await bring(node(changed, item("c", 0), subscriptions=subscriptions), mirror=True)
    assert (report.counts.added, report.counts.changed, report.counts.deleted) == (1, 1, 1)
    assert not await world.events()

    world.clock.move(10)
    await world.publish("new")
    assert await world.told() == "+new"


async def test_addresses_are_prepared_again(world: World, bring: Bring) -> None:
    """[IMP-066] What is no address is listed and left out."""
    report = await bring(
        node(
            item("a", by="ALICE@Example.ORG/x"),
            item("b", by="@@"),
            affiliations={"OWNER@example.org": "owner", "owner@EXAMPLE.org": "publisher", "a b@x": "member"},
            subscriptions=(
                MovedSubscription("BOB@example.org/Phone"),
                MovedSubscription("@"),
                MovedSubscription("bob@example.org/Phone", "pending"),
                MovedSubscription(ALICE, "unconfigured"),
                MovedSubscription(OWNER, options={"pubsub#digest": ("true",), "pubsub#deliver": ("false",)}),
            ),
        )
    )

    assert [one.publisher for one in (await world.pull(CREATED)).items] == [ALICE, SERVICE]
    affiliations, subscriptions = await people(world)
    assert affiliations == {OWNER: Affiliation.OWNER}
    assert set(subscriptions) == {f"{BOB}/Phone", OWNER}
    assert [subject for subject, _ in told(report)] == [
        "publisher '@@'",
        "affiliation 'a b@x'",
        "affiliation 'owner@EXAMPLE.org'",
        "subscription '@'",
        "subscription 'bob@example.org/Phone'",
        f"subscription '{ALICE}'",
        f"subscription '{OWNER}'",
    ]


async def test_resource_of_a_publisher_does_not_matter(world: World, bring: Bring) -> None:
    """[IMP-066] Neither for the publisher nor for the memory of an import."""
    report = await bring(node(item("a", by=f"{ALICE}/{'x' * 1_024}"), item("b", by="/phone")))

    assert [one.publisher for one in (await world.pull(CREATED)).items] == [ALICE, SERVICE]
    assert told(report) == [("publisher '/phone'", "not a JID")]


async def test_node_without_an_owner_belongs_to_the_operator(world: World, bring: Bring) -> None:
    """[IMP-066]"""
    report = await bring(node(item("a"), affiliations={"@": "owner"}), operator=BOB)

    assert (await people(world))[0] == {BOB: Affiliation.OWNER}
    assert (await world.node()).creator == BOB
    assert told(report)[-1] == ("owner", f"the source names no valid owner; {BOB} owns the node")


async def test_all_affiliations_are_kept_and_their_rights_hold(world: World, bring: Bring) -> None:
    """[IMP-060] A subscriber who may not read is reported and left out."""
    affiliations = {**OWNED, ALICE: "member", BOB: "outcast", "carol@x.example": "publish-only", "dora@x": "publisher"}
    report = await bring(
        node(
            item("a"),
            options={"pubsub#access_model": ("whitelist",)},
            affiliations={**affiliations, "none@x": "none"},
            subscriptions=(MovedSubscription(ALICE), MovedSubscription(BOB)),
        )
    )

    assert {bare: kind.value for bare, kind in (await people(world))[0].items()} == affiliations
    assert report.affiliations == 5
    assert (await people(world))[1] == {ALICE: SubscriptionState.SUBSCRIBED}
    assert told(report) == [(f"subscription '{BOB}'", "the subscriber may not read the node")]
    assert (await world.pull(FEED, actor=ALICE)).ids == "a"
    assert await refusal(world.pull(FEED, actor=BOB)) is Condition.FORBIDDEN


async def test_people_follow_the_source(world: World, bring: Bring) -> None:
    """[IMP-068] A second import stores what the source says; only a mirror removes what it does not name."""
    await bring(node(item("a"), affiliations={**OWNED, ALICE: "publisher"}, subscriptions=(MovedSubscription(ALICE),)))
    changed = node(
        item("a"),
        options={"pubsub#title": ("New",)},
        affiliations={**OWNED, BOB: "member"},
        subscriptions=(MovedSubscription(BOB),),
    )

    report = await bring(changed)
    assert (report.outcome, report.affiliations, report.subscriptions) == ("updated", 1, 1)
    affiliations, subscriptions = await people(world)
    assert {ALICE, BOB} < set(affiliations) and set(subscriptions) == {ALICE, BOB}
    assert (await world.node()).options.title == "New"

    report = await bring(changed, mirror=True)
    assert (report.outcome, report.affiliations, report.subscriptions, report.ended) == ("updated", 1, 0, 1)
    affiliations, subscriptions = await people(world)
    assert set(affiliations) == {OWNER, BOB} and set(subscriptions) == {BOB}
    assert (await bring(changed, mirror=True)).outcome == "unchanged"


async def test_options_and_affiliations_change_together_before_the_items(
    world: World, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-068] An open node must not admit an outcast of the source while the items are written."""
    await bring(node(item("a"), options={"pubsub#access_model": ("whitelist",)}))
    rights: list[tuple[str, Affiliation]] = []
    write_changes = moving.write_changes

    def observe(tx: Any, context: object, **arguments: Any) -> Any:
        stored = tx.node(FEED)
        rights.append((stored.options.access_model.value, tx.affiliation(stored.node_no, BOB)))
        return write_changes(tx, context, **arguments)

    monkeypatch.setattr(moving, "write_changes", observe)
    changed = node(
        item("a"),
        item("b"),
        options={"pubsub#access_model": ("open",)},
        affiliations={**OWNED, BOB: "outcast"},
    )
    report = await bring(changed)

    assert rights == [("open", Affiliation.OUTCAST)]
    assert (report.outcome, report.affiliations, report.counts.added) == ("updated", 1, 1)


# Limits.


async def test_items_beyond_the_limits_are_reported_and_the_others_moved(world: World, bring: Bring) -> None:
    """[IMP-067]"""
    sync = 'xmlns:sx="http://feedsync.org/2007/feedsync"'
    broken = [
        item("x" * 1_024),
        item("", payload=entry("e")),
        item("\udcff", payload=GEO % 1),
        item("nul", payload="<e>\0</e>"),
        item("text", payload="no element"),
        item("two", payload="<a/><b/>"),
        item("empty", payload=""),
        item("large", payload=entry("t" * 70_000)),
        item("gone", payload=entry("t", inner=f'<sx:sync {sync} id="gone" updates="1" deleted="true"/>')),
        MovedProblem("file x.list", "damaged"),
    ]

    report = await bring(node(item("a", 3), *broken, item("b", 1)), kind=NodeKind.FEED)

    assert await world.ids_of() == "a b"
    assert report.counts.added == 2
    assert [subject for subject, _ in told(report)] == [
        f"item {'x' * 79 + chr(0x2026)!r}",
        "item ''",
        "item ''",
        "item 'nul'",
        "item 'text'",
        "item 'two'",
        "file x.list",
    ]
    assert {item_id: reason.split(";")[0] for item_id, reason in report.counts.skipped} == {
        "empty": "the item has no payload",
        "large": "the item has 70,162 bytes, and the limit of this node is 65,536",
        "gone": "the payload is marked as deleted",
    }


async def test_id_that_the_source_has_twice_is_stored_once(
    world: World, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-067] The version that was changed last moves, wherever it is in the source. One line reports the others."""
    monkeypatch.setattr(moving, "BATCH", 2)
    older, newer = item("a", 9, 8, payload=entry("older")), item("a", 7, 1, payload=entry("newer"))
    source = (newer, item("b", 3), item("c", 2), older, item("b", 4), item("d", 5))

    report = await bring(node(*source))
    again = await bring(node(*reversed(source)))

    assert await world.ids_of(MODIFIED) == "d b c a"
    assert {one.id: "newer" in one.payload.decode() for one in (await world.pull(CREATED)).items}["a"]
    assert (report.counts.added, again.outcome, again.counts.unchanged) == (4, "unchanged", 4)
    reason = "the source has the id more than once; the item that was changed last moves"
    assert told(report) == [("2 older items such as 'a'", reason)]


async def test_affiliations_beyond_the_limits_are_reported(
    world: World, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-067]"""
    monkeypatch.setattr(moved_people, "AFFILIATIONS", 4)
    monkeypatch.setattr(moved_people, "OWNERS", 2)
    owners = {f"o{number}@example.org": "owner" for number in range(3)}
    members = {f"m{number}@example.org": "member" for number in range(3)}

    report = await bring(node(item("a"), affiliations={**members, **owners, "x@example.org": "king"}))

    assert sorted((await people(world))[0]) == [
        "m0@example.org",
        "m1@example.org",
        "o0@example.org",
        "o1@example.org",
    ]
    assert told(report) == [
        ("affiliation 'o2@example.org'", "a node has up to 2 owners"),
        ("affiliation 'm2@example.org'", "a node has up to 4 affiliations"),
        ("affiliation 'x@example.org'", "'king' is no affiliation"),
    ]


async def test_sync_data_and_missing_parts_of_entries(world: World, bring: Bring) -> None:
    """[IMP-068] An entry without an atom:id gets one; a second import finds the same payload."""
    bare = f'<entry xmlns="{ATOM_NS}"><title>bare</title><published>yesterday</published></entry>'
    history = '<sx:history sequence="1" by="x"/>'
    sync = f'<sx:sync xmlns:sx="http://feedsync.org/2007/feedsync" id="b" updates="1">{history}</sx:sync>'
    moved = node(item("a", 3, 1, payload=bare), item("b", 2, payload=entry("b", inner=sync)))
    assert (await bring(moved)).counts.added == 2

    first = {one.id: one.payload for one in (await world.pull(CREATED)).items}
    assert b"<id>xmpp:" in first["a"] and b"feedsync" not in first["b"]
    world.clock.move(1_000)
    assert (await bring(moved)).outcome == "unchanged"
    assert {one.id: one.payload for one in (await world.pull(CREATED)).items} == first


async def test_ids_with_other_characters_have_unique_sync_ids(world: World, bring: Bring) -> None:
    """[IMP-067] `a b` is shared as `a%20b`, which is the id of another item."""
    report = await bring(node(item("a%20b", 3), item("a b", 2), item("c", 1)))
    assert report.counts.added == 3
    ids = {one.sync_id or one.id for one in (await world.pull(f"{FEED}?sync=true")).items}
    assert len(ids) == 3


# Repetition, reports.


async def test_second_import_changes_nothing(world: World, bring: Bring) -> None:
    """[IMP-068]"""
    moved = node(
        item("a", 3, 1),
        item("b", 2),
        options={"pubsub#title": ("T",)},
        affiliations={**OWNED, ALICE: "publisher"},
        subscriptions=(MovedSubscription(ALICE, options={"pubsub#include_body": ("true",)}),),
    )
    await bring(moved)
    before = await world.node(), (await world.pull(CREATED)).items, await people(world)
    world.clock.move(60)

    report = await bring(moved)

    assert (report.outcome, report.counts.unchanged) == ("unchanged", 2)
    assert (report.affiliations, report.subscriptions) == (0, 0)
    assert (await world.node(), (await world.pull(CREATED)).items, await people(world)) == before


async def test_second_import_brings_what_was_published_meanwhile(world: World, bring: Bring) -> None:
    """[IMP-068] Deletions on the other service are seen by a mirror only. An item that was deleted here comes back."""
    await bring(node(item("a", 5), item("b", 4), item("c", 3)))
    await world.retract("c")
    world.clock.move(60)
    changed = item("a", 5, 0, payload=entry("edited"))

    report = await bring(node(changed, item("c", 3), item("d", 1)))
    assert report.counts.counts() == {"added": 1, "changed": 2, "deleted": 0, "unchanged": 0}
    assert await world.ids_of(FEED) == "b c d a"

    report = await bring(node(changed, item("c", 3), item("d", 1)), mirror=True)
    assert report.counts.counts() == {"added": 0, "changed": 0, "deleted": 1, "unchanged": 3}
    assert await world.ids_of(FEED) == "c d a"


async def test_mirror_removes_no_item_that_the_source_has(world: World, bring: Bring) -> None:
    """[IMP-067] [IMP-068] An item that no node can store is there, and an unreadable item may be any."""
    await bring(node(item("a", 5), item("b", 4), item("c", 3)))
    refused = item("b", 4, 1, payload="no element")

    report = await bring(node(item("a", 5), refused), mirror=True)
    assert report.counts.deleted == 1
    assert await world.ids_of(FEED) == "a b"

    report = await bring(node(refused, UnreadableItem("file x.list", "damaged")), mirror=True)
    assert report.counts.deleted == 0
    assert told(report)[-1] == ("items", "no item is removed here, because some items of the source cannot be read")
    assert await world.ids_of(FEED) == "a b"


class Meanwhile:
    """A service in which something happens before its first write."""

    def __init__(self, world: World, event: Callable[[], Any]) -> None:
        self._service = world.service
        self._event: Callable[[], Any] | None = event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    async def write(self, *arguments: Any) -> Any:
        event, self._event = self._event, None
        if event is not None:
            await event()
        return await self._service.write(*arguments)


async def test_node_that_appears_or_vanishes_meanwhile_is_refused(world: World, spool: FileSpool) -> None:
    """[IMP-064] [IMP-069] The import goes on with the next node."""

    async def move(event: Callable[[], Any]) -> NodeReport:
        service: Any = Meanwhile(world, event)
        return await move_node(service, node(item("a")), SETTINGS, spool, world.clock.now_us)

    report = await move(world.create)
    assert (report.outcome, [subject for subject, _ in told(report)]) == ("refused", ["node"])
    assert [made.name for made in await nodes(world)] == [FEED]

    report = await move(world.delete)
    assert (report.outcome, told(report)) == ("refused", [("node", f"the node {FEED} was deleted during the import")])


@pytest.mark.parametrize("mirror", [False, True])
async def test_dry_run_reports_the_same_and_writes_nothing(world: World, bring: Bring, mirror: bool) -> None:
    """[IMP-067] [IMP-069]"""
    first = node(
        item("a", 5),
        item("b", 4),
        item("x" * 1_024),
        options={"pubsub#max_items": ("5",)},
        affiliations={**OWNED, "@": "member"},
        subscriptions=(MovedSubscription(ALICE),),
    )
    second = node(
        item("a", 5), item("c", 1), item("b", 4, 0, payload=entry("new")), subscriptions=(MovedSubscription(BOB),)
    )
    for moved in (first, second):
        before = await nodes(world)
        planned = await bring(moved, dry_run=True, mirror=mirror)
        assert await nodes(world) == before

        assert await bring(moved, mirror=mirror) == planned
        assert planned.outcome == ("created" if moved is first else "updated")
        world.clock.move(5)
