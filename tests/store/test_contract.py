"""The contract of `store/base.py`, on every store."""

import asyncio
import random
from dataclasses import replace
from functools import partial

import pytest

from smartfeeds.core.consumers import PUSH, Consumer, ConsumerRow, Failure, Pause, SentBatch
from smartfeeds.core.model import (
    AUDIENCE_CHANGE,
    MAX_ITEM_NO,
    Affiliation,
    Edge,
    IndexState,
    Item,
    Mark,
    Node,
    NodeEvent,
    NodeKind,
    NodeState,
    Slice,
    SubscriptionState,
)
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.view import BARE, CREATED, SHARED, SMART, Order, View, ViewStanding
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from store.values import add_feed, ids, item, node, subscription, view

# Nodes


async def test_add_node_new_is_found_by_name_and_number(store: Store) -> None:
    options = {"pubsub#title": ("A title",), "pubsub#contact": ("a@x", "b@x")}
    wanted = node("ünï/c\u0001de?", NodeKind.GENERIC)._replace(options=NodeOptions(NodeKind.GENERIC, options))
    made = await store.write(lambda tx: tx.add_node(wanted))
    assert made == wanted._replace(node_no=made.node_no)
    assert made.node_no > 0
    assert await store.read(lambda tx: tx.node(wanted.name)) == made
    assert await store.read(lambda tx: tx.node_by_no(made.node_no)) == made
    assert await store.read(lambda tx: tx.node("other")) is None
    assert await store.read(lambda tx: tx.node_by_no(made.node_no + 1)) is None
    assert await store.read(lambda tx: (tx.node_count(), tx.created_by("alice@example.org"))) == (1, 1)


async def test_nodes_by_no_leaves_out_what_does_not_exist(store: Store) -> None:
    first, second, third = [await store.write(add_feed(name=name)) for name in "abc"]
    await store.write(lambda tx: tx.retire_node(second.node_no))

    def both(tx: ReadTx) -> dict[int, Node]:
        tx.node("c")  # a node that was read before is no exception
        return tx.nodes_by_no([first.node_no, second.node_no, third.node_no, third.node_no + 1])

    deleted = second._replace(state=NodeState.DELETED)
    assert await store.read(both) == {first.node_no: first, second.node_no: deleted, third.node_no: third}
    assert await store.read(lambda tx: tx.nodes_by_no([])) == {}


async def test_add_node_name_taken_is_refused(store: Store) -> None:
    await store.write(add_feed())
    with pytest.raises(StoreError):
        await store.write(add_feed())
    assert await store.read(lambda tx: tx.node_count()) == 1


async def test_nodes_paged_both_ways_in_code_point_order(store: Store) -> None:
    names = ["a", "B", "é", "\U0001f600", "\uffef", "ab"]

    def work(tx: WriteTx) -> None:
        for name in names:
            tx.add_node(node(name))

    await store.write(work)
    found = await store.read(lambda tx: [one.name for one in tx.nodes("", 10)])
    assert found == sorted(names)
    assert await store.read(lambda tx: [one.name for one in tx.nodes("a", 2)]) == ["ab", "é"]
    assert await store.read(lambda tx: [one.name for one in tx.nodes("a", 9, before="é")]) == ["ab"]
    assert await store.read(lambda tx: [one.name for one in tx.nodes("", 2, newest=True)]) == ["\uffef", "\U0001f600"]
    assert await store.read(lambda tx: [one.name for one in tx.nodes("", 2, before="é", newest=True)]) == ["a", "ab"]


async def test_set_options_replaces_and_audience_grows(store: Store) -> None:
    made = await store.write(add_feed())

    def work(tx: WriteTx) -> None:
        tx.set_options(made.node_no, {"a": ("1",)})
        tx.set_options(made.node_no, {"b": ("2", "3")})

    await store.write(work)
    found = await store.read(lambda tx: tx.node("feed"))
    assert found == made._replace(options=NodeOptions(made.kind, {"b": ("2", "3")}), audience=2 * AUDIENCE_CHANGE)


async def test_set_kind_keeps_the_stored_options(store: Store) -> None:
    made = await store.write(add_feed())

    def work(tx: WriteTx) -> None:
        tx.set_options(made.node_no, {"title": ("T",)})
        tx.set_kind(made.node_no, NodeKind.GENERIC)

    await store.write(work)
    options = NodeOptions(NodeKind.GENERIC, {"title": ("T",)})
    found = await store.read(lambda tx: tx.node("feed"))
    assert found == made._replace(kind=NodeKind.GENERIC, options=options, audience=2 * AUDIENCE_CHANGE)


async def test_expiring_nodes_are_live_and_generic_and_have_the_option(store: Store) -> None:
    def work(tx: WriteTx) -> list[int]:
        numbers = [tx.add_node(node(name, NodeKind.GENERIC)).node_no for name in ("a", "b", "c", "plain")]
        numbers.append(tx.add_node(node("feed")).node_no)
        for node_no in (*numbers[:3], numbers[4]):
            tx.set_options(node_no, {"item_expire": ("60",)})
        tx.retire_node(numbers[1])
        return numbers

    numbers = await store.write(work)
    assert [each.name for each in await store.read(lambda tx: tx.expiring(0, 9))] == ["a", "c"]
    assert [each.name for each in await store.read(lambda tx: tx.expiring(0, 1))] == ["a"]
    assert [each.name for each in await store.read(lambda tx: tx.expiring(numbers[0], 9))] == ["c"]


async def test_redirects_are_stored_replaced_counted_and_removed(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        tx.put_redirect("a", "xmpp:x", "alice@x")
        tx.put_redirect("a", "xmpp:y", "alice@x")
        tx.put_redirect("b", "xmpp:z", "bob@x")
        tx.remove_redirect("b")
        tx.remove_redirect("nothing")

    await store.write(work)
    assert await store.read(lambda tx: [tx.redirect(name) for name in ("a", "b", "c")]) == ["xmpp:y", None, None]
    assert await store.read(lambda tx: [tx.redirects_by(jid) for jid in ("alice@x", "bob@x")]) == [1, 0]


async def test_set_keys_are_remembered(store: Store) -> None:
    made = await store.write(add_feed())
    assert (made.last_modified_us, made.last_created_us) == (-1, -1)
    await store.write(lambda tx: tx.set_keys(made.node_no, 20, 10))
    found = await store.read(lambda tx: tx.node("feed"))
    assert found == made._replace(last_modified_us=20, last_created_us=10)


async def test_lock_sees_what_the_same_work_wrote(store: Store) -> None:
    def work(tx: WriteTx) -> list[object]:
        made = tx.add_node(node())
        first = tx.lock("feed")
        tx.put_item(made.node_no, item("a", 5))
        tx.set_keys(made.node_no, 5, 5)
        second = tx.lock_no(made.node_no)
        return [first == made, second, tx.lock("none"), tx.lock_no(99), tx.nodes("", 9) == [second]]

    same, second, *rest = await store.write(work)
    assert same
    assert rest == [None, None, True]
    assert second == await store.read(lambda tx: tx.node("feed"))


async def test_rename_node_moves_the_name_the_counts_and_the_creator(store: Store) -> None:
    """[IMP-062] An unfinished node gets its name. Lists show it once its options say so."""
    hidden = NodeOptions(NodeKind.FEED, {"access_model": ("whitelist",)})
    made = await store.write(lambda tx: tx.add_node(node("moving", creator="")._replace(options=hidden)))
    assert (made.creator, await store.read(lambda tx: tx.created_in(""))) == ("", 1)

    def rename(tx: WriteTx) -> None:
        tx.rename_node(made.node_no, "feed", "alice@example.org")
        tx.set_options(made.node_no, {})

    await store.write(rename)

    renamed = await store.read(lambda tx: tx.node("feed"))
    assert renamed is not None
    assert renamed[:4] == (made.node_no, "feed", NodeKind.FEED, "alice@example.org")
    assert renamed.audience > made.audience
    assert await store.read(lambda tx: tx.node("moving")) is None
    assert await store.read(lambda tx: (tx.created_in(""), tx.created_in("example.org"), tx.node_count())) == (0, 1, 1)
    again = await store.write(lambda tx: tx.add_node(node("moving")))
    assert again.node_no != made.node_no


async def test_add_items_stores_many_items_with_any_text(store: Store) -> None:
    """PostgreSQL gets them by COPY, which has escapes of its own."""
    texts = ["\\N", "\\.", "a\tb", "a\nb", "a\rb", "\\x41", '"', ",", "NULL", "\U0001f600"]
    items = [item(f"{texts[n % 10]}{n}", n, f"| {texts[n % 10]}", publisher=texts[n % 10]) for n in range(300)]

    def work(tx: WriteTx) -> list[Item]:
        made = tx.add_node(node())
        tx.add_items(made.node_no, items)
        later = tx.put_item(made.node_no, item("later", 300))
        return [*tx.slice(made.node_no, Slice(SMART, 999)), later]

    *stored, last, later = await store.write(work)
    assert [one._replace(item_no=0, sync=b"") for one in stored] == items
    assert last.item_no == later.item_no
    assert sorted(one.item_no for one in stored) == [one.item_no for one in stored]


async def test_add_items_stores_what_put_item_stores(store: Store) -> None:
    """[IMP-061] Keys may go down, and the filter index reads the items later."""
    one = (await store.write(add_feed(name="one"))).node_no
    other = (await store.write(add_feed(name="other"))).node_no
    items = [item(name, at, payload=f"by={name} | words") for name, at in (("a", 5), ("b", 3), ("c", 9), ("d", 4))]

    def add(tx: WriteTx) -> None:
        tx.add_items(one, items[:1])
        tx.index_node(one)
        tx.add_items(one, items[1:])
        tx.add_items(one, [])
        for made in items:
            tx.put_item(other, made)

    await store.write(add)

    def shown(tx: ReadTx, number: int) -> list[object]:
        node_row = tx.node_by_no(number)
        assert node_row is not None
        slices = [tx.slice(number, Slice(shape, 10)) for shape in (BARE, CREATED, SMART)]
        return [[[made._replace(item_no=0) for made in page] for page in slices], node_row.total, node_row.live]

    assert await store.read(lambda tx: shown(tx, one)) == await store.read(lambda tx: shown(tx, other))
    assert not await store.read(lambda tx: tx.index_state(one) is IndexState.CURRENT)
    await store.write(lambda tx: tx.index_node(one))
    by = view("author=b")
    assert await store.read(lambda tx: [made.id for made in tx.slice(one, Slice(by, 10))]) == ["b"]


async def test_brief_slice_has_what_documents_and_stanzas_show(store: Store) -> None:
    fields = {"revision": 7, "notify": True, "deleted": True, "conflicts": 2, "sync_id": "urn:b", "sync": b"<x/>"}
    node_no = (await store.write(add_feed(item("a", 5), item("b", 3, **fields)))).node_no
    brief = await store.read(lambda tx: tx.slice(node_no, Slice(SMART, 9, brief=True)))
    whole = await store.read(lambda tx: tx.slice(node_no, Slice(SMART, 9)))
    assert whole[0].revision == 7
    assert brief == [made._replace(revision=1, notify=False, total=0, live=0, conflicts=0) for made in whole]
    slices = [Slice(SHARED, 9, brief=is_brief) for is_brief in (True, False)]
    assert await store.read(lambda tx: tx.slice(node_no, slices[0]) == tx.slice(node_no, slices[1]))


async def test_retire_node_frees_the_name_for_a_new_number(store: Store) -> None:
    old = await store.write(add_feed(item("a", 1)))

    def work(tx: WriteTx) -> int:
        tx.retire_node(old.node_no)
        assert tx.node("feed") is None
        assert tx.lock("feed") is None
        return tx.add_node(node()).node_no

    new_no = await store.write(work)
    assert new_no > old.node_no
    assert await store.read(lambda tx: tx.node_count()) == 1
    assert await store.read(lambda tx: [one.node_no for one in tx.nodes("", 9)]) == [new_no]
    retired = await store.read(lambda tx: tx.node_by_no(old.node_no))
    assert retired == old._replace(state=NodeState.DELETED, total=1, live=1)
    assert await store.read(lambda tx: tx.item(old.node_no, "a")) is not None
    assert await store.read(lambda tx: tx.item(new_no, "a")) is None
    assert await store.read(lambda tx: tx.created_by("alice@example.org")) == 1


async def test_reap_in_chunks_leaves_nothing(store: Store) -> None:
    def fill(tx: WriteTx) -> int:
        made = tx.add_node(node())
        for number in range(10):
            tx.put_item(made.node_no, item(str(number), number, "by=bob | some words"))
        tx.put_subscription(subscription(made.node_no, "bob@x/1"))
        tx.set_affiliation(made.node_no, "bob@x", Affiliation.OWNER)
        tx.add_event(NodeEvent(0, made.node_no, 5, "delete"))
        tx.set_mark(made.node_no, Order.MODIFIED, PUSH, Mark(3, "c"))
        tx.set_wait(Consumer(made.node_no, PUSH), Failure(1, 2, 3, "e"))
        tx.put_batch(Consumer(made.node_no, PUSH), SentBatch(3, joined=True))
        tx.index_node(made.node_no)
        return made.node_no

    node_no = await store.write(fill)
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.reap(node_no, 5))
    await store.write(lambda tx: tx.retire_node(node_no))
    assert await store.read(lambda tx: tx.behind()) == [Consumer(node_no, PUSH)]
    rounds = 1
    while not await store.write(lambda tx: tx.reap(node_no, 4)):
        rounds += 1
    assert rounds >= 4
    assert await store.write(lambda tx: tx.reap(node_no, 4))

    def nothing(tx: ReadTx) -> list[object]:
        lists = [tx.slice(node_no, Slice(SMART, 9)), tx.subscriptions(node_no, 0, 9), tx.affiliations(node_no)]
        events = [tx.events(node_no, 9), tx.behind(), tx.subscriptions_of("bob@x", now_us=None)]
        consumers = [tx.failures(), tx.consumers((0, "", ""), 9), tx.mark(node_no, Order.MODIFIED, PUSH)]
        consumers.append(tx.batch(Consumer(node_no, PUSH)))
        return [*lists, *events, *consumers, tx.node_by_no(node_no)]

    assert await store.read(nothing) == [[], [], [], [], [], [], [], [], None, None, None]
    # What was reaped cannot be found in the filter index of a new node either.
    again = await store.write(add_feed(item("0", 1, "by=carol | other")))
    assert again.node_no > node_no
    await store.write(lambda tx: tx.index_node(again.node_no))
    assert await store.read(lambda tx: tx.count(again.node_no, view("q=words"))) == 0


async def test_unknown_numbers_are_refused(store: Store) -> None:
    works = [
        lambda tx: tx.set_options(99, {}),
        lambda tx: tx.set_kind(99, NodeKind.GENERIC),
        lambda tx: tx.set_keys(99, 1, 1),
        lambda tx: tx.put_item(99, item("a", 1)),
        lambda tx: tx.set_affiliation(99, "a@x", Affiliation.OWNER),
        lambda tx: tx.put_subscription(subscription(99, "a@x")),
        lambda tx: tx.add_event(NodeEvent(0, 99, 1, "purge")),
        lambda tx: tx.set_mark(99, Order.CREATED, PUSH, Mark(1, "")),
        lambda tx: tx.set_wait(Consumer(99, PUSH), Failure(1, 1, 1, "")),
        lambda tx: tx.retire_node(99),
    ]
    for work in works:
        with pytest.raises(StoreError):
            await store.write(work)
    assert await store.read(lambda tx: tx.behind()) == []


# Affiliations and subscriptions


async def test_affiliations_are_stored_replaced_and_removed(store: Store) -> None:
    made = await store.write(add_feed())

    def work(tx: WriteTx) -> None:
        tx.set_affiliation(made.node_no, "bob@x", Affiliation.MEMBER)
        tx.set_affiliation(made.node_no, "alice@x", Affiliation.OWNER)
        tx.set_affiliation(made.node_no, "bob@x", Affiliation.OUTCAST)
        tx.set_affiliation(made.node_no, "carol@x", Affiliation.PUBLISH_ONLY)
        tx.set_affiliation(made.node_no, "carol@x", Affiliation.NONE)

    await store.write(work)
    found = await store.read(lambda tx: tx.affiliations(made.node_no))
    assert found == [("alice@x", Affiliation.OWNER), ("bob@x", Affiliation.OUTCAST)]
    assert await store.read(lambda tx: tx.affiliation(made.node_no, "bob@x")) is Affiliation.OUTCAST
    assert await store.read(lambda tx: tx.affiliation(made.node_no, "carol@x")) is Affiliation.NONE
    loaded = await store.read(lambda tx: tx.node("feed"))
    assert loaded is not None
    assert loaded.audience == 5 * AUDIENCE_CHANGE


HIDDEN = {"access_model": ("whitelist",)}


async def known(store: Store, jid: str, after: str = "", limit: int = 99, **bounds: object) -> str:
    """The names of the nodes that a JID may know of, and how many there are in all where these are all."""
    nodes = await store.read(lambda tx: tx.listed_nodes(jid, after, limit, **bounds))  # type: ignore[arg-type]
    if not after and limit == 99:
        assert await store.read(lambda tx: tx.listed_count(jid)) == len(nodes)
    assert nodes == [await store.read(lambda tx, name=one.name: tx.node(name)) for one in nodes]
    return " ".join(one.name for one in nodes)


async def letters(store: Store, names: str, hidden: str) -> dict[str, int]:
    """Nodes of these names, some of them hidden; their numbers."""

    def work(tx: WriteTx) -> dict[str, int]:
        made = [
            tx.add_node(node(name)._replace(options=NodeOptions(NodeKind.FEED, HIDDEN if name in hidden else {})))
            for name in names
        ]
        return {one.name: one.node_no for one in made}

    return await store.write(work)


async def test_listed_nodes_are_those_a_jid_may_know_of(store: Store) -> None:
    """[xep-map 38] Those open to all, and hidden ones that it may read; none that it is kept out of."""
    numbers = await letters(store, "abcdefgh", "bdfg")
    held = {"b": "owner", "c": "outcast", "d": "publisher", "e": "publish-only", "f": "member", "g": "outcast"}
    held |= {"a": "owner", "h": "member"}

    def work(tx: WriteTx) -> None:
        for name, affiliation in held.items():
            tx.set_affiliation(numbers[name], "b@x", Affiliation(affiliation))

    await store.write(work)
    assert await known(store, "a@x") == "a c e h"
    assert await known(store, "b@x") == "a b d f h"


async def test_listed_nodes_are_paged_both_ways(store: Store) -> None:
    numbers = await letters(store, "abcdefgh", "bdfg")

    def work(tx: WriteTx) -> None:
        for name in "bdf":
            tx.set_affiliation(numbers[name], "b@x", Affiliation.MEMBER)
        tx.set_affiliation(numbers["c"], "b@x", Affiliation.OUTCAST)

    await store.write(work)
    assert await known(store, "b@x", "", 3) == "a b d"
    assert await known(store, "b@x", "d", 2) == "e f"
    assert await known(store, "b@x", "b", 9, before="f") == "d e"
    assert await known(store, "b@x", "", 3, newest=True) == "e f h"
    assert await known(store, "b@x", "", 2, before="f", newest=True) == "d e"
    assert await known(store, "a@x", "c", 9) == "e h"


async def test_listed_nodes_follow_options_affiliations_and_deletion(store: Store) -> None:
    numbers = await letters(store, "abc", "b")
    await store.write(lambda tx: tx.set_affiliation(numbers["b"], "b@x", Affiliation.OWNER))
    await store.write(lambda tx: tx.set_affiliation(numbers["c"], "b@x", Affiliation.MEMBER))

    async def seen() -> list[str]:
        return [await known(store, jid) for jid in ("a@x", "b@x")]

    assert await seen() == ["a c", "a b c"]
    await store.write(lambda tx: tx.set_options(numbers["b"], {"title": ("T",)}))
    assert await seen() == ["a b c", "a b c"]
    await store.write(lambda tx: tx.set_options(numbers["b"], HIDDEN))
    await store.write(lambda tx: tx.set_options(numbers["c"], HIDDEN))
    assert await seen() == ["a", "a b c"]
    await store.write(lambda tx: tx.set_affiliation(numbers["b"], "b@x", Affiliation.NONE))
    await store.write(lambda tx: tx.set_affiliation(numbers["a"], "b@x", Affiliation.OUTCAST))
    assert await seen() == ["a", "c"]
    await store.write(lambda tx: tx.set_affiliation(numbers["c"], "b@x", Affiliation.PUBLISH_ONLY))
    assert await seen() == ["a", ""]
    await store.write(lambda tx: tx.set_affiliation(numbers["c"], "b@x", Affiliation.OWNER))
    for name in "ac":
        await store.write(lambda tx, name=name: tx.retire_node(numbers[name]))  # type: ignore[misc]
    assert await seen() == ["", ""]
    # What happens to a node that is gone changes no list.
    await store.write(lambda tx: tx.set_affiliation(numbers["c"], "b@x", Affiliation.MEMBER))
    await store.write(lambda tx: tx.set_options(numbers["c"], {}))
    await store.write(lambda tx: tx.set_options(numbers["c"], HIDDEN))
    assert await seen() == ["", ""]
    await letters(store, "ac", "c")
    assert await seen() == ["a", "a"]


async def test_publisher_is_a_facet_where_the_node_shows_it(store: Store) -> None:
    """A node that changes its mind needs no other index, for tombstones and past versions neither."""
    items = item("a", 1, "by=alice"), item("b", 2), item("c", 3, deleted=True), item("d", 4), item("e", 5, "by=bob@x")
    made = await store.write(add_feed(*items))
    await edit(store, "d", 6, "", publisher="bob@x")
    await store.write(lambda tx: tx.index_node(made.node_no))
    author = view("author=alice%40example.org&author=alice")

    for value, expected in (("publisher", "a b c e d"), ("none", "a"), ("publisher", "a b c e d")):
        await store.write(lambda tx, value=value: tx.set_options(made.node_no, {"itemreply": (value,)}))  # type: ignore[misc]
        assert await store.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
        found = await store.read(lambda tx: tx.slice(made.node_no, Slice(author, 9)))
        assert ids(found) == expected
        assert [one.id for one in found if one.left] == ["d"] * (value == "publisher")


async def test_affiliations_of_live_nodes_by_number(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        for name in ("c", "a", "b"):
            made = tx.add_node(node(name))
            tx.set_affiliation(made.node_no, "bob@x", Affiliation.OWNER)
            if name == "b":
                tx.retire_node(made.node_no)

    await store.write(work)
    found = await store.read(lambda tx: tx.affiliations_of("bob@x"))
    assert [(one.name, kind) for one, kind in found] == [("c", Affiliation.OWNER), ("a", Affiliation.OWNER)]
    assert await store.read(lambda tx: (tx.affiliated("bob@x"), tx.affiliated("bob@"))) == (3, 0)


async def test_subscriptions_are_paged_counted_and_changed(store: Store) -> None:
    made = await store.write(add_feed())

    def work(tx: WriteTx) -> list[int]:
        put = [
            tx.put_subscription(subscription(made.node_no, "bob@x/1")),
            tx.put_subscription(subscription(made.node_no, "bob@x/1", "order=created")),
            tx.put_subscription(subscription(made.node_no, "bob@x", "order=modified", "pending")),
            tx.put_subscription(subscription(made.node_no, "carol@x")._replace(options={"a": ("1", "2")})),
        ]
        return [one.sub_no for one in put]

    numbers = await store.write(work)
    assert numbers == sorted(set(numbers))
    first = await store.read(lambda tx: tx.subscriptions(made.node_no, 0, 3))
    rest = await store.read(lambda tx: tx.subscriptions(made.node_no, first[-1].sub_no, 3))
    assert [one.sub_no for one in first + rest] == numbers
    assert rest[0].options == {"a": ("1", "2")}
    assert await store.read(lambda tx: tx.subscription_count(made.node_no)) == 3
    assert await store.read(lambda tx: tx.subscribed_views(made.node_no)) == ["", "order=created"]
    assert (
        await store.read(lambda tx: tx.subscription(made.node_no, "bob@x", "order=modified", now_us=None)) == first[2]
    )
    assert await store.read(lambda tx: tx.subscription(made.node_no, "bob@x", "", now_us=None)) is None
    assert await store.read(lambda tx: tx.subscription_by_no(numbers[3])) == rest[0]
    mine = await store.read(lambda tx: tx.subscriptions_of("bob@x", now_us=None))
    assert [one.sub_no for _, one in mine] == numbers[:3]
    assert await store.read(lambda tx: tx.subscriptions_on(made.node_no, "bob@x", now_us=None)) == [
        one for _, one in mine
    ]
    assert await store.read(
        lambda tx: (tx.subscriptions_on(99, "bob@x", now_us=None), tx.subscriptions_on(1, "bob@", now_us=None))
    ) == ([], [])
    assert await store.read(lambda tx: (tx.subscribed_by("bob@x"), tx.subscribed_by("bob@"))) == (3, 0)
    approved = first[2]._replace(state=SubscriptionState.SUBSCRIBED)
    assert await store.write(lambda tx: tx.put_subscription(approved)) == approved
    assert await store.read(lambda tx: tx.subscription_count(made.node_no)) == 4
    await store.write(lambda tx: (tx.remove_subscription(numbers[0]), tx.remove_subscription(99)))
    assert await store.read(lambda tx: tx.subscription_count(made.node_no)) == 3
    assert await store.read(lambda tx: tx.subscribed_views(made.node_no)) == ["", "order=created", "order=modified"]
    loaded = await store.read(lambda tx: tx.node("feed"))
    assert loaded is not None
    assert loaded.audience == 4 + 2 * AUDIENCE_CHANGE
    assert await store.read(lambda tx: tx.subscriptions_of("bob@x", now_us=None)) == [
        (loaded, one._replace(state=SubscriptionState.SUBSCRIBED)) for one in first[1:]
    ]


async def test_put_subscription_twice_is_refused(store: Store) -> None:
    made = await store.write(add_feed())
    await store.write(lambda tx: tx.put_subscription(subscription(made.node_no, "bob@x")))
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.put_subscription(subscription(made.node_no, "bob@x")))
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.put_subscription(subscription(made.node_no, "a@x")._replace(sub_no=99)))
    assert await store.read(lambda tx: tx.subscription_count(made.node_no)) == 1
    loaded = await store.read(lambda tx: tx.node("feed"))
    assert loaded is not None
    assert loaded.audience == 1


async def test_subscription_numbers_are_never_given_out_again(store: Store) -> None:
    made = await store.write(add_feed())
    first = await store.write(lambda tx: tx.put_subscription(subscription(made.node_no, "bob@x")))
    await store.write(lambda tx: tx.remove_subscription(first.sub_no))
    second = await store.write(lambda tx: tx.put_subscription(subscription(made.node_no, "bob@x")))
    assert second.sub_no > first.sub_no


# Items


async def test_put_item_new_and_changed_keeps_counts(store: Store) -> None:
    made = await store.write(add_feed())
    stored = await store.write(lambda tx: tx.put_item(made.node_no, item("a", 10, "one")))
    assert stored == item("a", 10, "one")._replace(item_no=stored.item_no)
    edited = stored._replace(modified_us=20, payload=b"two", revision=2)
    await store.write(lambda tx: tx.put_item(made.node_no, edited))
    assert await store.read(lambda tx: tx.item(made.node_no, "a")) == edited
    deleted = edited._replace(modified_us=30, payload=b"", deleted=True, revision=3, notify=True)
    await store.write(lambda tx: tx.put_item(made.node_no, deleted))
    assert await store.read(lambda tx: tx.item(made.node_no, "a")) == deleted

    def counts(tx: ReadTx) -> tuple[int, int, int, int]:
        found = tx.node_by_no(made.node_no)
        assert found is not None
        return found.total, found.live, tx.count(made.node_no, SMART), tx.count(made.node_no, BARE)

    assert await store.read(counts) == (1, 0, 1, 0)
    await store.write(lambda tx: tx.put_item(made.node_no, deleted._replace(deleted=False, revision=4)))
    assert await store.read(counts) == (1, 1, 1, 1)


async def test_put_item_id_taken_or_number_unknown_is_refused(store: Store) -> None:
    made = await store.write(add_feed(item("a", 1)))
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.put_item(made.node_no, item("a", 2)))
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.put_item(made.node_no, item("b", 2)._replace(item_no=99)))
    found = await store.read(lambda tx: tx.node("feed"))
    assert found is not None
    assert (found.total, found.live) == (1, 1)


ELEVEN = [item(chr(ord("a") + n), 10 * (n // 3), created_us=100 - 10 * (n // 2)) for n in range(11)]


SLICES = [
    (Slice(SMART, 4), "a b c d"),
    (Slice(SMART, 4, newest=True), "h i j k"),
    (Slice(SMART, 4, offset=2), "c d e f"),
    (Slice(SMART, 4, newest=True, offset=2), "f g h i"),
    (Slice(SMART, 20, offset=20), ""),
    (Slice(SMART, 0), ""),
    (Slice(SMART, 3, after=Edge(10, 4)), "e f g"),
    (Slice(SMART, 20, after=Edge(10, -1)), "d e f g h i j k"),
    (Slice(SMART, 20, after=Edge(10, MAX_ITEM_NO)), "g h i j k"),
    (Slice(SMART, 20, after=Edge(5, 0)), "d e f g h i j k"),
    (Slice(SMART, 20, before=Edge(10, 5)), "a b c d e"),
    (Slice(SMART, 2, before=Edge(10, 5), newest=True), "d e"),
    (Slice(SMART, 20, before=Edge(10, -1)), "a b c"),
    (Slice(SMART, 20, after=Edge(0, 2), before=Edge(20, 8)), "c d e f g h"),
    (Slice(SMART, 2, after=Edge(0, 2), before=Edge(20, 8), newest=True), "g h"),
    (Slice(SMART, 2, after=Edge(0, 2), before=Edge(20, 8), offset=3), "f g"),
    (Slice(SMART, 2, after=Edge(0, 2), before=Edge(20, 8), newest=True, offset=3), "d e"),
    (Slice(SMART, 20, after=Edge(10, 4), before=Edge(10, 5)), "e"),
    (Slice(SMART, 20, after=Edge(10, 5), before=Edge(10, 5)), ""),
    (Slice(SMART, 20, after=Edge(20, 8), before=Edge(10, 5)), ""),
    (Slice(SMART, 20, after=Edge(10, 5), before=Edge(10, 4)), ""),
    (Slice(CREATED, 4), "k i j g"),
    (Slice(CREATED, 4, newest=True), "c d a b"),
    (Slice(CREATED, 20, after=Edge(60, 9)), "j g h e f c d a b"),
    (Slice(CREATED, 20, before=Edge(70, 7)), "k i j g"),
]


async def test_slice_at_edges_and_ties(store: Store) -> None:
    """Three items share each modified key, two each created key; numbers are 1 to 11 in the order of storing."""
    made = await store.write(add_feed(*ELEVEN))
    for wanted, expected in SLICES:
        assert ids(await store.read(lambda tx, wanted=wanted: tx.slice(made.node_no, wanted))) == expected, wanted  # type: ignore[misc]


async def test_slice_bare_hides_tombstones_smart_shows_them(store: Store) -> None:
    def work(tx: WriteTx) -> int:
        made = tx.add_node(node())
        for number in range(6):
            tx.put_item(made.node_no, item(str(number), number, deleted=number % 2 == 1, revision=1 + number % 2))
        return made.node_no

    no = await store.write(work)
    assert ids(await store.read(lambda tx: tx.slice(no, Slice(BARE, 9)))) == "0 2 4"
    assert ids(await store.read(lambda tx: tx.slice(no, Slice(BARE, 1, newest=True)))) == "4"
    assert ids(await store.read(lambda tx: tx.slice(no, Slice(BARE, 9, after=Edge(0, 1))))) == "2 4"
    assert ids(await store.read(lambda tx: tx.slice(no, Slice(SMART, 9)))) == "0 1 2 3 4 5"
    assert ids(await store.read(lambda tx: tx.slice(no, Slice(View(order=Order.CREATED), 9)))) == "0 2 4"
    assert await store.read(lambda tx: tx.count(no, BARE, before=Edge(3, 4))) == 2
    assert await store.read(lambda tx: tx.count(no, SMART, before=Edge(3, 4))) == 4
    assert await store.read(lambda tx: tx.count(no, CREATED, before=Edge(3, -1))) == 3


async def test_group_lists_the_items_of_one_key(store: Store) -> None:
    made = await store.write(add_feed(*ELEVEN))
    assert await store.read(lambda tx: tx.group(made.node_no, Order.MODIFIED, 10, 9)) == [(4, "d"), (5, "e"), (6, "f")]
    assert await store.read(lambda tx: tx.group(made.node_no, Order.MODIFIED, 10, 2)) == [(4, "d"), (5, "e")]
    assert await store.read(lambda tx: tx.group(made.node_no, Order.CREATED, 100, 9)) == [(1, "a"), (2, "b")]
    assert await store.read(lambda tx: tx.group(made.node_no, Order.CREATED, 7, 9)) == []


async def test_slice_of_unknown_node_is_empty(store: Store) -> None:
    for wanted in (Slice(SMART, 5), Slice(view("author=x"), 5)):
        assert await store.read(lambda tx, wanted=wanted: tx.slice(99, wanted)) == []
        assert await store.read(lambda tx, wanted=wanted: tx.count(99, wanted.view)) == 0


async def test_items_are_never_dropped(store: Store) -> None:
    """[SF-012] A feed keeps everything: the oldest of 10,000 items is still there, whatever the options say."""
    made = await store.write(add_feed(*(item(str(number), number) for number in range(10_000))))
    await store.write(lambda tx: tx.set_options(made.node_no, {"pubsub#max_items": ("10",)}))
    assert ids(await store.read(lambda tx: tx.slice(made.node_no, Slice(BARE, 1)))) == "0"
    assert await store.read(lambda tx: tx.count(made.node_no, BARE)) == 10_000


async def test_values_come_back_as_they_were(store: Store) -> None:
    """[xep-map 248] Whatever a peer writes is a value, never a statement."""
    nasty = ["'; DROP TABLE item; --", '"', "%_?", "\\", "\u2028\U0001f600", "$1 :a @b", "NEAR(a b)", ""]
    if not isinstance(store, PostgresStore):
        nasty.append("a\0b")

    def work(tx: WriteTx) -> list[tuple[Item, Item | None]]:
        pairs = []
        for number, text in enumerate(nasty):
            made = tx.add_node(node(text + "n"))
            put = tx.put_item(made.node_no, item(text, number, text, publisher=text))
            tx.put_subscription(subscription(made.node_no, text, text))
            tx.set_affiliation(made.node_no, text, Affiliation.MEMBER)
            tx.add_event(NodeEvent(0, made.node_no, 1, text, text, text))
            tx.set_mark(made.node_no, Order.CREATED, PUSH, Mark(1, text))
            pairs.append((put, tx.item(made.node_no, text)))
        return pairs

    pairs = await store.write(work)
    assert all(put == found for put, found in pairs)
    for number, text in enumerate(nasty, 1):
        filters = View(True, filters=(("author", frozenset({text})), ("q", frozenset({text}))))

        def check(tx: ReadTx, number: int = number, text: str = text, filters: View = filters) -> None:
            assert tx.node(text + "n") == tx.node_by_no(number)
            sub = tx.subscription(number, text, text, now_us=None)
            assert sub is not None
            # No JID has a character that XML forbids: a store reads it as damaged.
            assert sub.jid == text or not is_xml_text(text)
            assert tx.affiliations(number) == [(text, Affiliation.MEMBER)]
            assert tx.events(number, 9)[0].data == text
            assert tx.mark(number, Order.CREATED, PUSH) == Mark(1, text)
            assert tx.slice(number, Slice(filters, 9)) == []

        await store.read(check)


# Marks and events


async def test_marks_and_events_are_kept_in_order(store: Store) -> None:
    made = await store.write(add_feed())

    def work(tx: WriteTx) -> list[NodeEvent]:
        events = [(30, "configuration"), (10, "purge"), (10, "subscription")]
        return [tx.add_event(NodeEvent(0, made.node_no, at_us, kind, "d", "bob@x")) for at_us, kind in events]

    third, first, second = await store.write(work)
    assert await store.read(lambda tx: tx.events(made.node_no, 9)) == [first, second, third]
    assert await store.read(lambda tx: tx.events(made.node_no, 2)) == [first, second]
    await store.write(lambda tx: tx.remove_events([first.event_no, third.event_no, 99]))
    assert await store.read(lambda tx: tx.events(made.node_no, 9)) == [second]
    await store.write(lambda tx: tx.set_mark(made.node_no, Order.MODIFIED, PUSH, Mark(5, "")))
    await store.write(lambda tx: tx.set_mark(made.node_no, Order.MODIFIED, PUSH, Mark(7, "7_0_x")))
    assert await store.read(lambda tx: tx.mark(made.node_no, Order.MODIFIED, PUSH)) == Mark(7, "7_0_x")
    assert await store.read(lambda tx: tx.mark(made.node_no, Order.CREATED, PUSH)) is None


HUB = "hub:https://reader.example/?a=1:2"
BROKEN = Failure(3, 5, 9, "the connection was refused")


async def test_each_consumer_has_marks_and_a_failure_of_its_own(store: Store) -> None:
    made = await store.write(add_feed(item("a", 10)))
    no = made.node_no

    def work(tx: WriteTx) -> None:
        tx.set_mark(no, Order.MODIFIED, PUSH, Mark(10, "x"))
        tx.set_mark(no, Order.CREATED, PUSH, Mark(9, "y"))
        tx.set_mark(no, Order.MODIFIED, HUB, Mark(3, "z"))
        tx.set_wait(Consumer(no, HUB), Failure(1, 5, 7, "first"))
        tx.set_wait(Consumer(no, HUB), BROKEN)
        tx.set_wait(Consumer(no, "mirror:m"), Failure(1, 5, None, "given up"))
        tx.set_wait(Consumer(no, "chat:a@x"), Pause(9))

    await store.write(work)
    rows = [
        ConsumerRow(Consumer(no, PUSH), Order.CREATED, Mark(9, "y")),
        ConsumerRow(Consumer(no, HUB), Order.MODIFIED, Mark(3, "z"), BROKEN),
        ConsumerRow(Consumer(no, PUSH), Order.MODIFIED, Mark(10, "x")),
    ]
    assert await store.read(lambda tx: tx.consumers((0, "", ""), 9)) == rows
    assert await store.read(lambda tx: tx.consumers((no, "created", PUSH), 1)) == rows[1:2]
    other = (await store.write(add_feed(name="other"))).node_no
    await store.write(lambda tx: tx.set_mark(other, Order.MODIFIED, PUSH, Mark(1, "")))
    assert await store.read(lambda tx: tx.consumers_of(no, ("", ""), 9)) == rows
    assert await store.read(lambda tx: tx.consumers_of(no, ("created", PUSH), 1)) == rows[1:2]
    assert await store.read(lambda tx: tx.consumers_of(other + 1, ("", ""), 9)) == []
    await store.write(lambda tx: tx.remove_consumer(Consumer(other, PUSH)))
    assert await store.read(lambda tx: tx.behind()) == [Consumer(no, HUB), Consumer(no, PUSH)]
    assert await store.read(lambda tx: tx.wait(Consumer(no, HUB))) == BROKEN
    assert await store.read(lambda tx: tx.wait(Consumer(no, PUSH))) is None
    failures = [(Consumer(no, HUB), BROKEN), (Consumer(no, "mirror:m"), Failure(1, 5, None, "given up"))]
    assert await store.read(lambda tx: tx.failures()) == failures
    assert await store.read(lambda tx: tx.waits()) == [(Consumer(no, "chat:a@x"), Pause(9)), *failures]

    await store.write(lambda tx: tx.set_wait(Consumer(no, "chat:a@x"), None))
    await store.write(lambda tx: tx.remove_consumer(Consumer(no, HUB)))
    await store.write(lambda tx: tx.set_wait(Consumer(no, "mirror:m"), None))
    assert await store.read(lambda tx: tx.consumers((0, "", ""), 9)) == [rows[0], rows[2]]
    assert await store.read(lambda tx: tx.failures()) == []
    assert await store.read(lambda tx: tx.behind()) == [Consumer(no, PUSH)]


async def test_batch_is_replaced_and_removed_with_its_consumer(store: Store) -> None:
    made = await store.write(add_feed(item("a", 10)))
    consumer = Consumer(made.node_no, "chat:bob@x")
    assert await store.read(lambda tx: tx.batch(consumer)) is None
    for batch in (SentBatch(10, joined=False), SentBatch(20, joined=True)):
        await store.write(lambda tx, batch=batch: tx.put_batch(consumer, batch))  # type: ignore[misc]
        assert await store.read(lambda tx: tx.batch(consumer)) == batch
    await store.write(lambda tx: tx.remove_consumer(consumer))
    assert await store.read(lambda tx: tx.batch(consumer)) is None


@pytest.mark.parametrize("settles", [False, True])
async def test_consumers_at_one_mark_fall_behind_an_item_of_the_same_transaction(
    store: Store, *, settles: bool
) -> None:
    """[SF-007] Whether there is an item above the mark is looked up once, but an item may come between two marks."""
    no = (await store.write(add_feed(item("a", 10)))).node_no
    names = ["hub:1:a", "hub:2:b", "hub:3:c"]

    def work(tx: WriteTx) -> None:
        for name in names[:2]:
            tx.set_mark(no, Order.MODIFIED, name, Mark(10, "x"))
        tx.put_item(no, item("b", 20))
        if settles:
            tx.settle()
        tx.set_mark(no, Order.MODIFIED, names[2], Mark(10, "x"))

    await store.write(work)
    assert sorted(consumer.name for consumer in await store.read(lambda tx: tx.behind())) == names
    await store.write(lambda tx: [tx.move_mark(Consumer(no, name), Order.MODIFIED, Mark(20, "y")) for name in names])
    assert await store.read(lambda tx: tx.behind()) == []


async def test_behind_lists_consumers_with_items_above_their_marks(store: Store) -> None:
    """[SF-007] The feed is its own outbox: items above a mark are what is still to be sent."""

    def work(tx: WriteTx) -> None:
        quiet = ("quiet", "subscribed", "pending", "pushed", "one order", "empty")
        for name in (*quiet, "event", "behind", "created", "deleted"):
            no = tx.add_node(node(name)).node_no
            if name != "empty":
                tx.put_item(no, item("a", 10, created_us=20))
            tx.put_subscription(subscription(no, "bob@x", state="subscribed" if name != "pending" else "pending"))
            if name == "quiet":
                tx.remove_subscription(no)
            if name == "event":
                tx.add_event(NodeEvent(0, no, 1, "purge"))
            if name in ("event", "pushed", "behind", "created", "deleted", "one order"):
                tx.set_mark(no, Order.MODIFIED, PUSH, Mark(9 if name == "behind" else 10, ""))
            if name in ("event", "pushed", "behind", "created", "deleted"):
                tx.set_mark(no, Order.CREATED, PUSH, Mark(19 if name == "created" else 20, ""))
            if name == "deleted":
                tx.retire_node(no)

    await store.write(work)

    def names(tx: ReadTx) -> list[str]:
        found = [tx.node_by_no(consumer.node_no) for consumer in tx.behind()]
        return [one.name for one in found if one]

    assert await store.read(names) == ["event", "behind", "created", "deleted"]


# The filter index

ENTRIES = [
    item("a", 10, "by=bob in=news | Straße to Ärger", created_us=1),
    item("b", 20, "by=carol in=News re=a | street food", created_us=2, publisher="xmpp:dave@x"),
    item("c", 30, "by=bob in=sport in=news | strasse ÄRGER 42", created_us=3),
    item("d", 40, "re=a la=zh-Hant-TW | 漢字 street", created_us=4, revision=2),
    item("e", 50, "", created_us=5, deleted=True, revision=2, publisher="bob"),
    item("f", 50, "by=bob la=zh | " + "w" * 5000, created_us=6),
]


FILTERED = [
    ("author=bob", "a c e f"),
    ("author=BOB&author=carol", "a b c e f"),
    ("author=dave%40x", "b"),
    ("category=news", "a b c"),
    ("category=news&author=bob", "a c"),
    ("category=news&category=sport&author=bob&author=carol", "a b c"),
    ("category=sport&category=none", "c"),
    ("in-reply-to=a", "b d"),
    ("in-reply-to=a&author=nobody", ""),
    ("lang=zh", "d f"),
    ("lang=zh-hant", "d"),
    ("lang=zh-TW", ""),
    ("lang=zh&kind=edited", "d"),
    ("lang=zh&author=bob", "f"),
    ("q=strasse", "a c"),
    ("q=STREET", "b d"),
    ("q=street+food", "b"),
    ("q=food+strasse", ""),
    ("q=%C3%A4rger&author=bob&category=sport", "c"),
    ("q=%E6%BC%A2%E5%AD%97", "d"),
    ("q=42", "c"),
    ("q=" + "w" * 5000, "f"),
    ("q=" + "w" * 4999, ""),
    ("q=stra", ""),
    ("kind=new", "a b c f"),
    ("kind=edited", "d"),
    ("kind=deleted", "e"),
    ("kind=deleted&kind=edited", "d e"),
    ("kind=deleted&author=bob", "e"),
    ("kind=new&author=bob", "a c f"),
]


async def test_filtered_slice_and_count(store: Store) -> None:
    """[SF-007] Facets and words come from the items alone; a tombstone keeps its publisher, no content."""
    made = await store.write(add_feed(*ENTRIES))
    await store.write(lambda tx: tx.index_node(made.node_no))

    def check(tx: ReadTx, query: str, order: str, expected: str) -> None:
        case = f"{query[:99]} in the order {order}"
        wanted = view(f"{query}&order={order}")
        found = tx.slice(made.node_no, Slice(wanted, 9))
        assert ids(found) == expected, case
        assert tx.count(made.node_no, wanted) == len(found), case
        assert tx.slice(made.node_no, Slice(wanted, 9, newest=True)) == found, case
        assert tx.slice(made.node_no, Slice(wanted, 2, newest=True)) == found[-2:], case
        assert tx.slice(made.node_no, Slice(wanted, 2, offset=1)) == found[1:3], case
        for position, one in enumerate(found):
            edge = Edge(one.modified_us if order == "modified" else one.created_us, one.item_no)
            assert tx.slice(made.node_no, Slice(wanted, 9, after=edge)) == found[position + 1 :], case
            assert tx.slice(made.node_no, Slice(wanted, 9, before=edge)) == found[: position + 1], case
            assert tx.count(made.node_no, wanted, before=edge) == position + 1, case
        bare = replace(wanted, smart=False)
        assert tx.slice(made.node_no, Slice(bare, 9)) == [one for one in found if not one.deleted], case
        assert tx.count(made.node_no, bare) == sum(not one.deleted for one in found), case

    for query, expected in FILTERED:
        for order in ("modified", "created"):
            await store.read(partial(check, query=query, order=order, expected=expected))


async def edit(store: Store, item_id: str, key_us: int, payload: str, **fields: object) -> None:
    """Stores a new version of an item of the first node."""

    def work(tx: WriteTx) -> None:
        old = tx.item(1, item_id)
        assert old is not None
        changes = {"modified_us": key_us, "payload": payload.encode(), "revision": old.revision + 1, **fields}
        tx.put_item(1, old._replace(**changes))  # type: ignore[arg-type]

    await store.write(work)


async def test_index_edited_item_has_left_the_views_of_its_old_version(store: Store) -> None:
    """[A-20]"""
    made = await store.write(add_feed(item("a", 10, "in=old | before"), item("b", 20, "in=old | other")))
    await store.write(lambda tx: tx.index_node(made.node_no))
    assert await store.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
    await edit(store, "a", 30, "in=new | after")

    def found(tx: ReadTx) -> list[str]:
        queries = ("category=old", "category=new", "q=before", "q=after", "category=old&order=created")
        return [_shown(tx.slice(made.node_no, Slice(view(query), 9))) for query in queries]

    assert not await store.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
    assert await store.read(found) == ["b", "", "", "", "b"]
    await store.write(lambda tx: tx.index_node(made.node_no))
    assert await store.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
    assert await store.read(found) == ["b -a", "a", "-a", "a", "-a b"]
    assert await store.read(lambda tx: tx.count(made.node_no, view("category=old"))) == 2


def _shown(items: list[Item]) -> str:
    """The ids of items; those that have left with a minus."""
    return " ".join("-" + one.id if one.left else one.id for one in items)


GONE = "deleted"
FIRST, SECOND = "by=ann in=news | fox", "by=bob in=sport re=t1 | hen"
HISTORIES = [
    # versions, one after the other -> query: how the last one stands
    (
        [FIRST, SECOND],
        "category=news left, category=sport present, category=none absent, category=news&category=none left,"
        "category=news&category=sport present, category=news&author=ann left, category=news&author=bob absent,"
        "category=sport&author=bob present, author=ann left, author=bob present, in-reply-to=t1 present, q=fox left,"
        "q=hen present, q=fox+hen absent, q=fox&category=news left, q=fox&category=sport absent,"
        "q=fox&category=news&category=sport left, q=hen&in-reply-to=t1&author=bob present,"
        "q=hen&in-reply-to=t1&author=ann absent, kind=new left, kind=edited present, kind=new&kind=edited present,"
        "kind=deleted absent, kind=new&q=fox left, kind=edited&q=fox absent, kind=new&kind=edited&q=fox left,"
        "kind=new&category=news left, kind=new&category=sport absent, kind=new&kind=deleted left,"
        "kind=edited&category=sport&q=hen present, author=ann&author=bob&category=news left,"
        "author=alice%40example.org present, author=alice%40example.org&category=news left",
    ),
    (
        [FIRST, GONE],
        "category=news present, author=ann present, q=fox present, kind=new present, kind=deleted present,"
        "kind=edited absent, category=sport absent, kind=new&q=fox present, kind=deleted&category=news absent,"
        "q=fox&category=news present, author=alice%40example.org present, q=hen absent",
    ),
    (
        [FIRST, GONE, SECOND],
        "category=news left, category=sport present, kind=deleted left, kind=edited present, kind=new left,"
        "q=fox&author=ann left, kind=deleted&kind=edited present, in-reply-to=t1 present, in-reply-to=t2 absent",
    ),
    (
        [FIRST, SECOND, FIRST, SECOND, FIRST],
        "category=news present, category=sport left, q=fox present, q=hen left, q=hen&category=sport left,"
        "q=hen&category=news absent, kind=new left, kind=new&category=sport absent, kind=edited&q=hen left,"
        "author=ann&category=news&q=fox present",
    ),
    (
        [FIRST, "in=news | fox hen", "in=news | hen"],
        "category=news present, q=fox left, q=hen present, q=fox+hen left, author=ann left,"
        "author=ann&q=hen absent, category=news&q=fox+hen left",
    ),
    ([GONE, "in=news | fox"], "category=news present, kind=deleted left, kind=new absent"),
    (["", FIRST, "", GONE, ""], "category=news left, q=fox left, kind=deleted left, kind=edited present"),
]


async def test_item_that_is_not_indexed_is_in_no_filtered_view(store: Store) -> None:
    made = await store.write(add_feed(item("a", 1, "in=x | one")))
    (stored,) = await store.read(lambda tx: tx.items(made.node_no, ["a"]))
    views = [view("q=one"), view("category=x"), view("category=x&q=one")]
    assert await store.read(lambda tx: tx.standings(made.node_no, stored, views)) == [ViewStanding.ABSENT] * 3


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(("versions", "cases"), HISTORIES)
async def test_standing_follows_from_the_versions_that_an_item_has_had(
    store: Store, versions: list[str], cases: str, indexed: bool
) -> None:
    """[A-20] [SF-015] A view contains an item if one version matches all its filters, whenever the index came by."""
    made = await store.write(add_feed(item("b", 1, "in=other"), item("a", 2, versions[0], deleted=versions[0] is GONE)))
    for number, payload in enumerate(versions[1:], 3):
        if indexed:
            await store.write(lambda tx: tx.index_node(made.node_no))
        await edit(store, "a", number, "" if payload is GONE else payload, deleted=payload is GONE)
    await store.write(lambda tx: tx.index_node(made.node_no))

    def check(tx: ReadTx, query: str, standing: str) -> None:
        stored = tx.item(made.node_no, "a")
        assert stored is not None and not stored.left
        for order in Order:
            wanted = view(f"{query}&order={order.value}")
            shown = replace(wanted, smart=False)
            assert [one.value for one in tx.standings(made.node_no, stored, [wanted])] == [standing], query
            inside = [one for one in tx.slice(made.node_no, Slice(wanted, 9)) if one.id == "a"]
            left = {"absent": [], "present": [False], "left": [True]}[standing]
            assert [one.left for one in inside] == left, query
            assert tx.count(made.node_no, wanted) == len(tx.slice(made.node_no, Slice(wanted, 9))), query
            live = standing == "present" and not stored.deleted
            assert ("a" in ids(tx.slice(made.node_no, Slice(shown, 9)))) is live, query
            assert tx.standings(made.node_no, stored, [BARE, shown, SMART]) == [
                ViewStanding.ABSENT if stored.deleted else ViewStanding.PRESENT,
                ViewStanding.PRESENT if live else ViewStanding.ABSENT,
                ViewStanding.PRESENT,
            ], query

    for case in cases.split(","):
        query, standing = case.split()
        await store.read(partial(check, query=query, standing=standing))


async def test_standing_of_an_item_that_comes_and_goes_for_ever_is_never_absent(store: Store) -> None:
    """[A-20] However many versions there were: what one of them had in a view is still there as left."""
    made = await store.write(add_feed(item("a", 1, "in=c0 | w0")))
    for number in range(1, 100):
        await edit(store, "a", number + 1, f"in=c{number} | w{number}")
    await store.write(lambda tx: tx.index_node(made.node_no))
    for number in range(100):
        for query in (f"category=c{number}", f"q=w{number}", f"q=w{number}&category=c{number}"):
            found = await store.read(lambda tx, query=query: tx.slice(made.node_no, Slice(view(query), 9)))  # type: ignore[misc]
            assert _shown(found) == ("a" if number == 99 else "-a")
    assert await store.read(lambda tx: tx.count(made.node_no, view("q=w100"))) == 0


async def test_index_item_below_its_position_is_indexed_again(store: Store) -> None:
    """Data moved in from elsewhere may be older than what the index knows, or share its keys."""
    made = await store.write(add_feed(item("a", 10, "in=x"), item("b", 20, "in=x")))
    await store.write(lambda tx: tx.index_node(made.node_no))
    await store.write(lambda tx: [tx.put_item(made.node_no, item(name, 10, "in=x")) for name in ("c", "d")])
    assert not await store.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
    await store.write(lambda tx: tx.index_node(made.node_no))
    assert ids(await store.read(lambda tx: tx.slice(made.node_no, Slice(view("category=x"), 9)))) == "a c d b"
    assert await store.read(lambda tx: tx.count(made.node_no, view("category=x"))) == 4


async def test_index_some_goes_on_where_it_stopped(store: Store) -> None:
    one = await store.write(add_feed(*(item(str(n), n, "in=x") for n in range(5)), name="one"))
    two = await store.write(add_feed(*(item(str(n), n, "in=x") for n in range(3)), name="two"))
    assert [await store.index_some(4) for _ in range(4)] == [4, 4, 0, 0]
    for made, total in ((one, 5), (two, 3)):
        assert await store.read(lambda tx, made=made: tx.index_state(made.node_no) is IndexState.CURRENT)
        assert await store.read(lambda tx, made=made: tx.count(made.node_no, view("category=x"))) == total


# Transactions


async def test_write_that_raises_leaves_nothing(store: Store) -> None:
    made = await store.write(add_feed(item("a", 10)))

    def fail(tx: WriteTx) -> None:
        tx.put_item(made.node_no, item("b", 20))
        tx.set_keys(made.node_no, 20, 20)
        tx.set_affiliation(made.node_no, "bob@x", Affiliation.OWNER)
        tx.add_node(node("other"))
        tx.retire_node(made.node_no)
        raise FeedError(Condition.CONFLICT)

    with pytest.raises(FeedError):
        await store.write(fail)
    found = await store.read(lambda tx: tx.node("feed"))
    assert found == made._replace(total=1, live=1)
    assert await store.read(lambda tx: (tx.node_count(), tx.affiliations(made.node_no))) == (1, [])
    assert ids(await store.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 9)))) == "a"


async def test_works_of_one_group_are_atomic_each(store: Store) -> None:
    made = await store.write(add_feed())

    def work(number: int) -> int:
        def run(tx: WriteTx) -> int:
            if number % 5 == 1:
                raise FeedError(Condition.FORBIDDEN)
            tx.put_item(made.node_no, item(str(number), number))
            tx.set_keys(made.node_no, number, number)
            if number % 5 == 2:
                raise FeedError(Condition.CONFLICT)
            return number

        return run  # type: ignore[return-value]

    results = await asyncio.gather(
        *(store.write(work(number)) for number in range(40)),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    good = [number for number in range(40) if number % 5 not in (1, 2)]
    assert [result for result in results if isinstance(result, int)] == good
    assert sum(isinstance(result, FeedError) for result in results) == 16
    found = await store.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 99)))
    assert ids(found) == " ".join(map(str, good))
    loaded = await store.read(lambda tx: tx.node("feed"))
    assert loaded == made._replace(total=24, live=24, last_modified_us=39, last_created_us=39)


async def test_writes_are_answered_in_order_and_then_seen(store: Store) -> None:
    made = await store.write(add_feed())
    answered: list[int] = []

    async def publish(number: int) -> None:
        await store.write(lambda tx: tx.put_item(made.node_no, item(str(number), number)))
        answered.append(number)
        assert await store.read(lambda tx: tx.item(made.node_no, str(number))) is not None

    await asyncio.gather(*(publish(number) for number in range(50)))
    assert answered == list(range(50))


async def test_read_is_one_snapshot(store: Store) -> None:
    """[xep-map 205] [PG-007] Items and count come from one snapshot, whatever is written in between."""
    made = await store.write(add_feed())

    def page(tx: ReadTx) -> tuple[int, int, int]:
        found = tx.node_by_no(made.node_no)
        assert found is not None
        items = tx.slice(made.node_no, Slice(SMART, 1000))
        return len(items), tx.count(made.node_no, SMART), tx.count(made.node_no, SMART, before=Edge(2**60, 0))

    async def writing() -> None:
        for number in range(100):
            await store.write(lambda tx, number=number: tx.put_item(made.node_no, item(str(number), number)))

    writer = asyncio.create_task(writing())
    pages = []
    while not writer.done():
        pages.append(await store.read(page))
        await asyncio.sleep(0)
    await writer
    assert all(one == two == three for one, two, three in pages)
    assert await store.read(page) == (100, 100, 100)


async def test_cancelled_callers_do_not_harm_the_others(store: Store) -> None:
    made = await store.write(add_feed())
    works = [
        asyncio.create_task(store.write(lambda tx, n=n: tx.put_item(made.node_no, item(str(n), n)))) for n in range(30)
    ]
    reads = [asyncio.create_task(store.read(lambda tx: tx.node("feed"))) for _ in range(30)]
    await asyncio.sleep(0)
    for number in range(0, 30, 3):
        works[number].cancel()
        reads[number].cancel()
    results = await asyncio.gather(*works, *reads, return_exceptions=True)
    assert not [one for one in results if isinstance(one, Exception)]
    found = {one.id for one in await store.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 99)))}
    assert {str(n) for n in range(30) if n % 3} <= found
    loaded = await store.read(lambda tx: tx.node("feed"))
    assert loaded is not None
    assert loaded.total == len(found)


async def test_random_writes_keep_every_order(store: Store) -> None:
    """Pages of both orders, from either end, in any size, join to the same sequence."""
    chance = random.Random(5)
    keys = [(chance.randrange(30), chance.randrange(30)) for _ in range(120)]
    made = await store.write(add_feed(*(item(f"i{n}", m, created_us=c) for n, (m, c) in enumerate(keys))))
    for wanted, keyed in ((SMART, 0), (CREATED, 1)):
        expected = [f"i{n}" for n in sorted(range(120), key=lambda n: (keys[n][keyed], n))]
        for size in (1, 7, 50, 200):
            for newest in (False, True):
                assert await _walk(store, made.node_no, wanted, size, newest=newest) == expected


async def _walk(store: Store, node_no: int, wanted: View, size: int, *, newest: bool) -> list[str]:
    found: list[Item] = []
    edge: Edge | None = None
    while True:
        page = Slice(wanted, size, before=edge, newest=True) if newest else Slice(wanted, size, after=edge)
        items = await store.read(lambda tx, page=page: tx.slice(node_no, page))
        if not items:
            return [one.id for one in found]
        found = items + found if newest else found + items
        end = items[0] if newest else items[-1]
        key_us = end.modified_us if wanted.order is Order.MODIFIED else end.created_us
        edge = Edge(key_us, end.item_no - 1 if newest else end.item_no)


async def test_closed_store_refuses(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreError):
        await store.read(lambda tx: tx.node_count())
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.node_count())


async def test_reopened_store_has_everything(store: Store) -> None:
    made = await store.write(add_feed(item("a", 10, "in=x")))
    await store.close()
    await store.open()
    assert ids(await store.read(lambda tx: tx.slice(made.node_no, Slice(BARE, 9)))) == "a"
