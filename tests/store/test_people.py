"""Subscriptions and affiliations by address, and their lists in parts, the same in every store."""

from functools import partial

import pytest

from smartfeeds.core.model import Affiliation, KeyRange, SubscriptionState
from smartfeeds.errors import StoreError
from smartfeeds.store.base import ReadTx, Store, WriteTx
from store.values import add_feed, item, node, subscription

PUBLISHER, MEMBER = Affiliation.PUBLISHER, Affiliation.MEMBER
# Which part of seven entries, by their places from 1 on, and which places that is.
PARTS: list[tuple[KeyRange[int], str]] = [
    (KeyRange(), "1234567"),
    (KeyRange(2), "12"),
    (KeyRange(2, after=3), "45"),
    (KeyRange(9, after=3, before=6), "45"),
    (KeyRange(2, before=6, newest=True), "45"),
    (KeyRange(2, newest=True), "67"),
    (KeyRange(2, offset=3), "45"),
    (KeyRange(2, offset=6), "7"),
    (KeyRange(2, offset=3, newest=True), "34"),
    (KeyRange(9, offset=3, newest=True), "1234"),
    (KeyRange(2, after=7), ""),
    (KeyRange(2, offset=7), ""),
    (KeyRange(0), ""),
]


async def test_subscriptions_on_a_node_are_those_of_one_address(store: Store) -> None:
    """[xep-map 113] [xep-map 249]: with its resources, and not of addresses that begin alike."""
    made, other = await store.write(add_feed(name="a")), await store.write(add_feed(name="b"))
    jids = [
        "bob@x",
        "bob@x/1",
        "bob@x/\U0001f600",
        "bob@x.org/1",
        "bob@x-y",
        "bob@x0",
        "bob@",
        "x",
        "bob@x0/1",
    ]

    def work(tx: WriteTx) -> None:
        for jid in jids:
            tx.put_subscription(subscription(made.node_no, jid))
        tx.put_subscription(subscription(other.node_no, "bob@x/1"))

    await store.write(work)
    found = await store.read(lambda tx: tx.subscriptions_on(made.node_no, "bob@x", now_us=None))
    assert [one.jid for one in found] == jids[:3]
    assert await store.read(lambda tx: (tx.subscribed_by("bob@x"), tx.subscribed_by("x"))) == (4, 1)


@pytest.mark.parametrize(("part", "places"), PARTS)
async def test_lists_are_read_in_parts(store: Store, part: KeyRange[int], places: str) -> None:
    """[xep-map 193] Each list by its key, whatever lies between that is of no concern to it."""

    def fill(tx: WriteTx) -> tuple[int, int]:
        nodes = [add_feed(name=name)(tx).node_no for name in "hgfedcba"]
        for place in range(7, 0, -1):
            tx.set_affiliation(nodes[0], f"{place}@x", PUBLISHER)
            tx.set_affiliation(nodes[0], f"{place}m@x", MEMBER)
            tx.put_subscription(subscription(nodes[0], f"{place}@x"))
            tx.put_subscription(subscription(nodes[0], f"{place}p@x", state="pending"))
        tx.put_subscription(subscription(nodes[0], "4@x", "order=created"))
        numbers = []
        for node_no in nodes:
            tx.set_affiliation(node_no, "all@x", MEMBER)
            numbers.append(tx.put_subscription(subscription(node_no, "all@y", state="pending")).sub_no)
            tx.put_subscription(subscription(node_no, "other@y", state="pending"))
        tx.retire_node(nodes[7])
        assert (numbers[1] - numbers[0], nodes[1] - nodes[0]) == (2, 1)
        return nodes[0], numbers[0]

    first_node, first_sub = await store.write(fill)

    def key(place: int | None) -> str | None:
        return None if place is None else f"{place}@x"

    def by(first: int, step: int) -> KeyRange[int]:
        after, before = (None if place is None else first + step * (place - 1) for place in (part.after, part.before))
        return KeyRange(part.limit, after, before, part.newest, part.offset)

    texts = KeyRange(part.limit, key(part.after), key(part.before), part.newest, part.offset)
    jids = [f"{place}@x" for place in places]
    held = await store.read(lambda tx: tx.affiliations(first_node, texts, kind=PUBLISHER))
    assert held == [(jid, PUBLISHER) for jid in jids]
    assert await store.read(lambda tx: tx.subscribers(first_node, texts, now_us=None)) == jids
    names = ["?hgfedcb"[int(place)] for place in places]
    mine = await store.read(lambda tx: tx.affiliations_of("all@x", by(first_node, 1)))
    assert [one.name for one, _ in mine] == names
    found = await store.read(lambda tx: tx.subscriptions_of("all@y", by(first_sub, 2), now_us=None))
    assert [one.name for one, _ in found] == names
    assert [one.sub_no for _, one in found] == [first_sub + 2 * (int(place) - 1) for place in places]
    counts = await store.read(lambda tx: (tx.affiliation_count(first_node), tx.affiliated("all@x")))
    assert counts == (15, 8)


async def test_domains_are_tallied(store: Store) -> None:
    """[xep-map 249] What the JIDs of a domain have, through every way that it comes and goes."""

    async def counts(domain: str) -> tuple[int, int]:
        use = await store.read(lambda tx: tx.subscriber_use(1, f"a@{domain}", now_us=None))
        return await store.read(lambda tx: tx.created_in(domain)), use.of_domain

    def fill(tx: WriteTx) -> tuple[int, int]:
        first, second = (tx.add_node(node(name, creator=f"{name}@x")).node_no for name in "ab")
        tx.add_node(node("c", creator="x"))
        for jid in ("1@x", "2@x/r", "x", "1@x.y", "1@y"):
            tx.put_subscription(subscription(first, jid, state="pending"))
            tx.put_subscription(subscription(second, jid))
        return first, second

    first, second = await store.write(fill)
    assert [await counts(domain) for domain in ("x", "x.y", "y", "z", "")] == [(3, 6), (0, 2), (0, 2), (0, 0), (0, 0)]

    def change(tx: WriteTx) -> None:
        gone, moved, *_ = tx.subscriptions(first, 0, 9)
        tx.remove_subscription(gone.sub_no)
        tx.put_subscription(moved._replace(jid="9@y"))
        tx.put_subscription(tx.subscriptions(second, 0, 1)[0]._replace(options={"a": ("b",)}))
        tx.retire_node(second)
        tx.retire_node(second)

    await store.write(change)
    assert [await counts(domain) for domain in ("x", "y")] == [(2, 4), (0, 3)]
    with pytest.raises(StoreError):
        await store.write(lambda tx: (tx.remove_subscription(tx.subscriptions(first, 0, 1)[0].sub_no), fill(tx)))
    assert await counts("x") == (2, 4)
    before = sum([(await counts(domain))[1] for domain in ("x", "x.y", "y")])
    assert not await store.write(lambda tx: tx.reap(second, 2))  # any two of its rows
    assert sum([(await counts(domain))[1] for domain in ("x", "x.y", "y")]) == before - 2
    await store.write(lambda tx: tx.reap(second, 99))
    assert [await counts(domain) for domain in ("x", "x.y", "y")] == [(2, 1), (0, 1), (0, 2)]


async def test_pending_requests_are_found_by_node_and_by_owner(store: Store) -> None:
    """[xep-map 105]"""
    made = {name: await store.write(add_feed(name=name)) for name in "dcba"}
    owner, other = "own@x", "other@x"

    def work(tx: WriteTx) -> None:
        for name, jid, state in (
            ("a", "1@x", SubscriptionState.SUBSCRIBED),
            ("b", "2@x", SubscriptionState.PENDING),
            ("c", "3@x", SubscriptionState.PENDING),
            ("c", "4@x", SubscriptionState.SUBSCRIBED),
            ("c", "5@x", SubscriptionState.PENDING),
            ("d", "6@x", SubscriptionState.PENDING),
        ):
            tx.put_subscription(subscription(made[name].node_no, jid)._replace(state=state))
        for name in "abc":
            tx.set_affiliation(made[name].node_no, owner, Affiliation.OWNER)
        tx.set_affiliation(made["d"].node_no, owner, MEMBER)
        tx.set_affiliation(made["d"].node_no, other, MEMBER)

    await store.write(work)

    def pending(tx: WriteTx) -> tuple[list[str], ...]:
        return (
            [one.jid for one in tx.pending_subscriptions(made["c"].node_no, 9, now_us=None)],
            [one.jid for one in tx.pending_subscriptions(made["c"].node_no, 1, now_us=None)],
            [node.name for node in tx.pending_nodes(None, 9, now_us=None)],
            [node.name for node in tx.pending_nodes(owner, 9, now_us=None)],
            [node.name for node in tx.pending_nodes(owner, 1, now_us=None)],
            [node.name for node in tx.pending_nodes(other, 9, now_us=None)],
        )

    assert await store.write(pending) == (["3@x", "5@x"], ["3@x"], ["b", "c", "d"], ["b", "c"], ["b"], [])
    await store.write(lambda tx: tx.retire_node(made["b"].node_no))
    assert [node.name for node in await store.read(lambda tx: tx.pending_nodes(owner, 9, now_us=None))] == ["c"]


async def test_ended_leases_are_found_by_their_end(store: Store) -> None:
    """XEP-0060 12.19."""
    made = await store.write(add_feed(name="a"))
    ends = {"1@x": "1970-01-01T00:00:03Z", "2@x": "1970-01-01T00:00:01Z", "3@x": "", "4@x": "1970-01-01T00:00:02Z"}

    def work(tx: WriteTx) -> None:
        for jid, end in ends.items():
            options = {"expire": (end,)} if end else {}
            tx.put_subscription(subscription(made.node_no, jid)._replace(options=options))

    await store.write(work)

    async def ended(now_us: int, limit: int = 9) -> list[str]:
        return [one.jid for one in await store.read(lambda tx: tx.ended_leases(now_us, limit))]

    assert await ended(999_999) == []
    assert await ended(1_000_000) == ["2@x"]
    assert await ended(9_000_000) == ["2@x", "4@x", "1@x"]
    assert await ended(9_000_000, 2) == ["2@x", "4@x"]
    first = (await store.read(lambda tx: tx.ended_leases(1_000_000, 1)))[0]
    await store.write(lambda tx: tx.put_subscription(first._replace(options={})))
    assert await ended(9_000_000) == ["4@x", "1@x"]


async def test_reads_with_a_time_leave_out_ended_leases(store: Store) -> None:
    """XEP-0060 12.19: the rows stay until the sweep, which needs them for the messages."""
    made = await store.write(add_feed(name="a"))
    ends = {"a@x/1": "1970-01-01T00:00:01Z", "a@x/2": "1970-01-01T00:00:02Z", "a@x/3": ""}

    def work(tx: WriteTx) -> None:
        tx.set_affiliation(made.node_no, "owner@x", Affiliation.OWNER)
        for jid, end in ends.items():
            options = {"expire": (end,)} if end else {}
            tx.put_subscription(subscription(made.node_no, jid)._replace(options=options))
            tx.put_subscription(subscription(made.node_no, jid, "v", state="pending")._replace(options=options))

    await store.write(work)

    def read(tx: ReadTx, now_us: int | None) -> list[list[str]]:
        number = made.node_no
        return [
            sorted({one.jid for one in tx.subscriptions_on(number, "a@x", now_us=now_us)}),
            sorted({one.jid for _, one in tx.subscriptions_of("a@x", now_us=now_us)}),
            [jid for jid in ends if tx.subscription(number, jid, "", now_us=now_us) is not None],
            tx.subscribers(number, now_us=now_us),
            [one.jid for one in tx.pending_subscriptions(number, 9, now_us=now_us)],
        ]

    for now_us, count in ((None, 3), (999_999, 3), (1_000_000, 2), (2_000_000, 1)):
        rest = list(ends)[-count:]
        assert await store.read(partial(read, now_us=now_us)) == [rest] * 5
    last = await store.read(lambda tx: tx.subscription(made.node_no, "a@x/3", "v", now_us=None))
    assert last is not None
    await store.write(lambda tx: tx.remove_subscription(last.sub_no))

    for owner in (None, "owner@x"):
        in_time, late, every = [
            await store.read(lambda tx, now_us=now_us, owner=owner: tx.pending_nodes(owner, 9, now_us=now_us))
            for now_us in (1_999_999, 2_000_000, None)
        ]
        assert [[node.name for node in nodes] for nodes in (in_time, late, every)] == [["a"], [], ["a"]]


async def test_addresses_of_owners_and_subscribers_are_listed_once(store: Store) -> None:
    """In the order of the addresses, behind one of them; those of deleted nodes and without approval do not count."""

    def work(tx: WriteTx) -> None:
        nodes = [add_feed(name=name)(tx).node_no for name in "abc"]
        for node_no in nodes:
            tx.set_affiliation(node_no, "owner@x", Affiliation.OWNER)
            tx.put_subscription(subscription(node_no, "bob@x/1"))
        tx.set_affiliation(nodes[0], "other@x", Affiliation.OWNER)
        tx.set_affiliation(nodes[0], "reader@x", Affiliation.MEMBER)
        tx.set_affiliation(nodes[2], "gone@x", Affiliation.OWNER)
        tx.put_subscription(subscription(nodes[0], "bob@x"))
        tx.put_subscription(subscription(nodes[0], "carol@x"))
        tx.put_subscription(subscription(nodes[0], "dan@x", state="pending"))
        tx.retire_node(nodes[2])

    await store.write(work)

    def read(tx: ReadTx) -> list[list[str]]:
        return [
            tx.addresses(owners=True, after="", limit=9),
            tx.addresses(owners=True, after="other@x", limit=9),
            tx.addresses(owners=False, after="", limit=9),
            tx.addresses(owners=False, after="", limit=1),
        ]

    assert await store.read(read) == [["other@x", "owner@x"], ["owner@x"], ["bob@x", "carol@x"], ["bob@x"]]
    owned = await store.read(lambda tx: (tx.owned_count("owner@x"), tx.owned_count("reader@x")))
    assert owned == (2, 0)
    found = await store.read(lambda tx: tx.affiliations_of("reader@x", kind=Affiliation.OWNER))
    assert found == []


async def test_totals_count_what_live_nodes_have(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        first = add_feed(item("a", 1, total=1, live=1), item("b", 2, deleted=True, total=2, live=1), name="a")(tx)
        second = add_feed(item("c", 3, total=1, live=1), name="b")(tx)
        tx.put_subscription(subscription(first.node_no, "bob@x"))
        tx.put_subscription(subscription(second.node_no, "bob@x"))
        tx.retire_node(second.node_no)

    await store.write(work)
    assert await store.read(lambda tx: tx.totals()) == (1, 1, 1)


async def test_forms_are_counted_for_each_requester_of_a_node_in_its_window(store: Store) -> None:
    """[xep-map 105]"""
    first, second = [(await store.write(add_feed(name=name))).node_no for name in "ab"]

    def count(tx: WriteTx) -> None:
        tx.count_request_form(first, ["bob@x"], 100, 0)
        tx.count_request_form(first, ["bob@x", "@x"], 150, 0)
        tx.count_request_form(second, ["@x"], 9, 0)

    async def counted(after_us: int) -> list[int]:
        places = ((first, "bob@x"), (first, "@x"), (second, "@x"), (second, "bob@x"))
        return await store.read(lambda tx: [tx.request_forms(*place, after_us) for place in places])

    await store.write(count)
    assert await counted(8) == [2, 1, 1, 0]
    assert await counted(9) == [2, 1, 0, 0]
    assert await counted(100) == [0, 1, 0, 0]

    await store.write(lambda tx: tx.count_request_form(first, ["bob@x"], 200, 100))
    assert await counted(0) == [1, 1, 0, 0]

    await store.write(lambda tx: tx.retire_node(first))
    await store.write(lambda tx: tx.reap(first, 99))
    assert await counted(0) == [0, 0, 0, 0]
