"""Long lists in pages: an entity's own subscriptions and affiliations, and an owner's of a node (XEP-0059)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, SubscriptionState
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition
from smartfeeds.service.feeds import _Read
from smartfeeds.service.paged_lists import FARTHEST, shown_bytes
from smartfeeds.service.requests import (
    AffiliationList,
    AffiliationShown,
    GetAffiliations,
    GetNodeInfo,
    GetNodeSubscriptions,
    GetSubscriptions,
    NodeInfo,
    Request,
    SubscriptionList,
    SubscriptionShown,
)
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.xmpp.encode import ENCODERS
from store.values import subscription
from support.world import ALICE, FEED, MODIFIED, OWNER, SERVICE, World, jid, refusal

LETTERS = "abcdefg"


async def own_subscriptions(world: World) -> None:
    for name in reversed(LETTERS):
        await world.create(name)
    for name in LETTERS:
        await world.subscribe(ALICE, name)


async def own_affiliations(world: World) -> None:
    for name in LETTERS:
        await world.create(name, actor=ALICE)


async def subscribers(world: World) -> None:
    await world.create(FEED)
    for name in reversed(LETTERS):
        await world.subscribe(f"{name}@x", FEED)
    await world.subscribe("b@x", MODIFIED)  # who follows two views is one subscriber


async def affiliations(world: World) -> None:
    await world.create(FEED)

    def work(tx: WriteTx) -> None:
        for name in reversed(LETTERS):
            tx.set_affiliation(1, f"{name}@x", Affiliation.PUBLISHER)
        tx.set_affiliation(1, OWNER, Affiliation.NONE)

    await world.store.write(work)


@dataclass(frozen=True)
class List:
    """One of the lists: how it is filled, how it is asked for, whether its last count is exact."""

    fill: Callable[[World], object]
    request: Request
    of_node: bool = False
    counted: int = len(LETTERS)


ADMIN, ASKING = jid("admin@example.org"), jid(ALICE + "/x")
LISTS = {
    "own subscriptions": List(own_subscriptions, GetSubscriptions(ASKING, SERVICE)),
    "own affiliations": List(own_affiliations, GetAffiliations(ASKING, SERVICE)),
    "subscribers": List(subscribers, GetNodeSubscriptions(ADMIN, SERVICE, FEED), True, len(LETTERS) + 1),
    "affiliations": List(affiliations, GetAffiliations(ADMIN, SERVICE, FEED, True), True),
}


@pytest.fixture(params=LISTS)
async def filled(request: pytest.FixtureRequest, world: World) -> "Filled":
    found = LISTS[request.param]
    world.set_policy(admins=frozenset({str(ADMIN)}))
    await found.fill(world)  # type: ignore[misc]
    return Filled(world, found)


@dataclass(frozen=True)
class Filled:
    """A list with an entry for each letter."""

    world: World
    list: List

    async def ask(self, **rsm: int | str) -> tuple[str, SubscriptionList | AffiliationList]:
        """The letters on a page, and the page."""
        page = ResultSetRequest(**{name: str(value) for name, value in rsm.items()}) if rsm else None
        answer = await self.world.service.handle(replace(self.list.request, page=page))  # type: ignore[call-arg]
        assert isinstance(answer, SubscriptionList | AffiliationList)
        texts = [one.jid if self.list.of_node else one.node for one in answer.entries]
        return "".join(text[0] for text in texts), answer


async def test_list_that_fits_is_whole_and_has_no_result_set(filled: Filled) -> None:
    """[xep-map 86] [xep-map 87] [xep-map 93] [xep-map 114]"""
    letters, answer = await filled.ask()

    assert (letters, answer.result_set) == (LETTERS, None)


async def test_list_that_is_too_long_is_cut_and_says_where_it_goes_on(filled: Filled) -> None:
    """Row 27: without a result set, as much as one stanza carries, and then the UID of the last entry."""
    filled.world.set_policy(page_bytes=220)
    letters, answer = await filled.ask()

    assert 1 < len(letters) < len(LETTERS) and LETTERS.startswith(letters)
    assert answer.result_set is not None and answer.result_set.last is not None
    assert (answer.result_set.index, answer.result_set.count) == (0, filled.list.counted)
    while rest := await filled.ask(after=answer.result_set.last):
        found, answer = rest
        if not found:
            break
        letters += found
        assert answer.result_set is not None and answer.result_set.last is not None
    assert letters == LETTERS


@pytest.mark.parametrize(
    "entry",
    [
        AffiliationShown(Affiliation.PUBLISH_ONLY, node='"' * 20),
        SubscriptionShown("feed", "alice&co@example.org", SubscriptionState.PENDING),
        SubscriptionShown("feed", "alice@example.org", SubscriptionState.SUBSCRIBED, 1_700_000_000_123_456),
    ],
    ids=["affiliation", "subscription", "lease"],
)
def test_entry_is_written_in_the_bytes_that_it_counts(entry: AffiliationShown | SubscriptionShown) -> None:
    """[xep-map 10] Otherwise a list of thousands of them would be longer than a stanza may be."""
    kind = AffiliationList if isinstance(entry, AffiliationShown) else SubscriptionList
    none, one = (len(ENCODERS[kind](kind(None, entries))) for entries in ((), (entry,)))  # type: ignore[arg-type]

    assert one - none <= shown_bytes(entry)


@pytest.mark.parametrize("backwards", [False, True])
async def test_paging_visits_every_entry_once(filled: Filled, backwards: bool) -> None:
    """[xep-map 193] In both directions, and the ends of a page are where its neighbours go on."""
    seen: list[str] = []
    rsm: dict[str, int | str] = {"before": ""} if backwards else {}
    while True:
        letters, answer = await filled.ask(max=3, **rsm)
        assert answer.result_set is not None
        if not letters:
            break
        seen.append(letters)
        first, last = answer.result_set.first, answer.result_set.last
        assert first is not None and last is not None
        rsm = {"before": first} if backwards else {"after": last}

    assert seen == (["efg", "bcd", "a"] if backwards else ["abc", "def", "g"])
    assert (answer.result_set.first, answer.result_set.last) == (None, None)


@pytest.mark.parametrize(
    ("rsm", "letters", "index"),
    [
        ({"max": 0}, "", None),
        ({"max": 2}, "ab", 0),
        ({"max": 2, "index": 5}, "fg", 5),
        ({"max": 2, "index": 6}, "g", 6),
        ({"max": 2, "index": 7}, "", None),
        ({"max": 2, "before": ""}, "fg", None),
        ({"max": 99}, LETTERS, 0),
        ({"index": 1}, LETTERS[1:], 1),
    ],
)
async def test_result_set_is_followed(
    filled: Filled, rsm: dict[str, int | str], letters: str, index: int | None
) -> None:
    """Rows 6 to 23 hold for lists too; where the end was seen, the count is right."""
    found, answer = await filled.ask(**rsm)

    assert found == letters and answer.result_set is not None
    assert answer.result_set.index == index
    seen_all = letters.endswith("g") and "before" not in rsm
    assert answer.result_set.count == (len(LETTERS) if seen_all else filled.list.counted)


async def test_position_holds_where_its_entry_is_gone(filled: Filled) -> None:
    """A UID stays good: who reads on after an entry that went away misses nothing and sees nothing twice."""
    _, answer = await filled.ask(max=3)
    assert answer.result_set is not None and answer.result_set.last is not None
    if isinstance(answer, SubscriptionList):
        await filled.world.unsubscribe(answer.entries[2].jid, answer.entries[2].node)
    else:
        gone = answer.entries[2]

        def work(tx: WriteTx) -> None:
            node = tx.node(gone.node or FEED)
            assert node is not None
            tx.set_affiliation(node.node_no, gone.jid or ALICE, Affiliation.NONE)

        await filled.world.store.write(work)

    assert (await filled.ask(max=2, after=answer.result_set.last))[0] == "de"
    assert (await filled.ask(max=2, before=answer.result_set.last))[0] == "ab"


@pytest.mark.parametrize(
    ("rsm", "condition"),
    [
        ({"max": "x"}, Condition.BAD_REQUEST),
        ({"index": 1, "after": "1"}, Condition.BAD_REQUEST),
        ({"index": FARTHEST + 1}, Condition.FEATURE_NOT_IMPLEMENTED),
    ],
)
async def test_result_set_that_makes_no_sense_is_refused(
    filled: Filled, rsm: dict[str, int | str], condition: Condition
) -> None:
    assert await refusal(filled.ask(**rsm)) is condition


@pytest.mark.parametrize("uid", ["x", "-1", "1.5", "٣", "9" * 19])
@pytest.mark.parametrize("name", ["own subscriptions", "own affiliations"])
async def test_uid_that_was_never_told_is_not_found(world: World, name: str, uid: str) -> None:
    """XEP-0059 2.2: item-not-found."""
    listed = Filled(world, LISTS[name])
    assert await refusal(listed.ask(after=uid)) is Condition.ITEM_NOT_FOUND


@pytest.mark.parametrize("request_type", [GetSubscriptions, GetAffiliations])
async def test_own_entries_of_one_node_have_a_result_set_where_it_is_asked_for(
    feed: World, request_type: Callable[..., Request]
) -> None:
    await feed.subscribe(OWNER, FEED)
    await feed.subscribe(OWNER + "/x", FEED)
    asked: Callable[[ResultSetRequest | None], Request] = lambda page: request_type(  # noqa: E731
        jid(OWNER), SERVICE, FEED, page=page
    )
    several = request_type is GetSubscriptions

    whole, page, second, newest = [
        await feed.service.handle(asked(one))
        for one in (None, ResultSetRequest("1"), ResultSetRequest("1", after="0"), ResultSetRequest("1", before=""))
    ]

    for answer in (whole, page, second, newest):
        assert isinstance(answer, SubscriptionList | AffiliationList)
    assert whole.result_set is None and len(whole.entries) == 1 + several  # type: ignore[union-attr]
    assert page.entries == whole.entries[:1]  # type: ignore[union-attr]
    assert page.result_set.count == 1 + several  # type: ignore[union-attr]
    assert second.entries == whole.entries[1:]  # type: ignore[union-attr]
    assert newest.entries == whole.entries[-1:]  # type: ignore[union-attr]


async def test_metadata_reads_only_the_owners_and_publishers_that_it_shows(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 33] Members, however many, are not read for it."""

    def work(tx: WriteTx) -> None:
        for number in range(60):
            tx.set_affiliation(1, f"p{number:02}@x", Affiliation.PUBLISHER)
            tx.set_affiliation(1, f"m{number:02}@x", Affiliation.MEMBER)
        tx.put_subscription(subscription(1, ALICE))

    await feed.store.write(work)
    read: list[int] = []

    class Watched:
        def __init__(self, tx: ReadTx) -> None:
            self._tx = tx

        def __getattr__(self, name: str) -> object:
            return getattr(self._tx, name)

        def affiliations(self, *args: object, **kwargs: object) -> object:
            found = self._tx.affiliations(*args, **kwargs)  # type: ignore[arg-type]
            read.append(len(found))
            return found

    step = _Read.step
    monkeypatch.setattr(_Read, "step", lambda work, tx: step(work, Watched(tx)))  # type: ignore[arg-type]
    info = await feed.service.handle(GetNodeInfo(Jid("alice", "example.org", ""), SERVICE, FEED))

    assert isinstance(info, NodeInfo)
    assert info.owners == (OWNER,) and info.publishers == tuple(f"p{number:02}@x" for number in range(50))
    assert read == [1, 50]
