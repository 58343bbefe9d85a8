"""Affiliations (xep-map 84 to 92)."""

import pytest

from smartfeeds.core.model import Affiliation
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.affiliations import AFFILIATIONS, OWNERS
from smartfeeds.service.requests import (
    AffiliationList,
    AffiliationShown,
    Answer,
    EmptyResult,
    GetAffiliations,
    PartlyRefused,
    SetAffiliations,
)
from smartfeeds.store.base import WriteTx
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, SERVICE, World, jid, refusal


async def held(world: World, actor: str = OWNER, node: str | None = FEED, *, owner: bool = True) -> list[str]:
    answer = await world.service.handle(GetAffiliations(jid(actor), SERVICE, node, owner))
    assert isinstance(answer, AffiliationList) and (answer.node, answer.owner) == (node, owner)
    return [f"{shown.jid}{shown.node} {shown.affiliation.value}" for shown in answer.entries]


async def put(world: World, *entries: tuple[str, str | None], actor: str = OWNER) -> Answer:
    return await world.service.handle(SetAffiliations(jid(actor), SERVICE, FEED, entries))


async def test_own_affiliations_over_all_nodes_or_one(feed: World) -> None:
    """[xep-map 86]"""
    await feed.create("other", actor=ALICE)
    await put(feed, (ALICE, "publisher"))

    assert await held(feed, ALICE + "/x", None, owner=False) == ["comments publisher", "other owner"]
    assert await held(feed, ALICE, "other", owner=False) == ["other owner"]
    assert await held(feed, BOB, None, owner=False) == []
    assert await refusal(held(feed, ALICE, "nope", owner=False)) is Condition.ITEM_NOT_FOUND


async def test_owner_list_has_all_but_none_and_is_for_owners(feed: World) -> None:
    """[xep-map 87] [xep-map 97]"""
    await put(feed, (ALICE, "publish-only"), (BOB, "outcast"))
    await put(feed, (BOB, "none"))

    assert await held(feed) == [f"{ALICE} publish-only", f"{OWNER} owner"]
    assert await refusal(held(feed, ALICE)) is Condition.FORBIDDEN
    assert await refusal(held(feed, OWNER, "nope")) is Condition.ITEM_NOT_FOUND
    assert await refusal(put(feed, (BOB, "member"), actor=ALICE)) is Condition.FORBIDDEN


async def test_set_changes_only_the_entries_given_and_keeps_bare_jids(feed: World) -> None:
    """[xep-map 84] [xep-map 88]"""
    await put(feed, (ALICE + "/phone", "member"), (BOB, "publisher"))
    assert await put(feed, (ALICE, None), (BOB, "member")) == EmptyResult()

    assert await held(feed) == [f"{ALICE} member", f"{BOB} member", f"{OWNER} owner"]


async def test_set_never_removes_the_last_owner_and_applies_the_rest(feed: World) -> None:
    """[xep-map 89]"""
    answer = await put(feed, (OWNER, "none"), (ALICE, "member"))
    assert isinstance(answer, PartlyRefused) and answer.affiliations is not None
    assert answer.affiliations.entries == (AffiliationShown(Affiliation.OWNER, jid=OWNER),)
    assert await held(feed) == [f"{ALICE} member", f"{OWNER} owner"]

    await put(feed, (ALICE, "owner"))
    assert await put(feed, (OWNER, "publisher")) == EmptyResult()
    assert isinstance(await put(feed, (ALICE, "outcast"), actor=ALICE), PartlyRefused)
    assert await put(feed, (ALICE, "owner"), actor=ALICE) == EmptyResult()


@pytest.mark.parametrize(
    ("entries", "condition"),
    [
        (((ALICE, "member"), (ALICE + "/x", "none")), Condition.BAD_REQUEST),
        (((ALICE, "member"), ("@@", "none")), Condition.JID_MALFORMED),
        (((ALICE, "member"), (BOB, "king")), Condition.UNSUPPORTED),
    ],
)
async def test_set_malformed_is_refused_before_anything_changes(
    feed: World, entries: tuple[tuple[str, str], ...], condition: Condition
) -> None:
    """[xep-map 90] [xep-map 91]"""
    with pytest.raises(FeedError) as caught:
        await put(feed, *entries)

    assert caught.value.condition is condition
    assert caught.value.feature == ("king-affiliation" if condition is Condition.UNSUPPORTED else "")
    assert await held(feed) == [f"{OWNER} owner"]


@pytest.mark.parametrize(
    ("model", "affiliation", "ends"),
    [
        ("open", "outcast", True),
        ("open", "publish-only", True),
        ("open", "none", False),
        ("open", "publisher", False),
        ("whitelist", "none", True),
        ("authorize", "none", False),
    ],
)
async def test_set_to_what_may_not_read_ends_the_subscriptions_and_tells(
    feed: World, model: str, affiliation: str, ends: bool
) -> None:
    """[xep-map 92]"""
    await put(feed, (ALICE, "member"))
    await feed.configure(access_model=model)
    await feed.subscribe(ALICE, FEED)
    await feed.subscribe(ALICE + "/phone", MODIFIED)
    await put(feed, (ALICE, affiliation))
    await feed.publish("a")

    events = await feed.events()
    if ends:
        assert [(one.to, one.short) for one in events] == [
            (ALICE, "subscription"),
            (ALICE + "/phone", "subscription"),
        ]
        assert {one.xml[0][0].get("subscription") for one in events} == {"none"}
    else:
        assert [(one.to, one.short) for one in events] == [(ALICE, "+a"), (ALICE + "/phone", "+a")]


async def test_set_more_owners_than_may_hear_of_subscribers_changes_nothing(feed: World) -> None:
    """[xep-map 88]"""
    await put(feed, *[(f"u{number}@example.org", "owner") for number in range(OWNERS - 1)])
    assert len(await held(feed)) == OWNERS

    assert await refusal(put(feed, (ALICE, "member"), (BOB, "owner"))) is Condition.POLICY_VIOLATION
    assert len(await held(feed)) == OWNERS
    assert await put(feed, ("u0@example.org", "none"), (BOB, "owner")) == EmptyResult()
    assert await put(feed, (ALICE, "member")) == EmptyResult()


async def test_set_more_affiliations_than_a_node_has_changes_nothing(feed: World) -> None:
    """[xep-map 88]"""
    await put(feed, *[(f"u{number}@example.org", "member") for number in range(AFFILIATIONS - 1)])

    assert await refusal(put(feed, (BOB, "member"))) is Condition.POLICY_VIOLATION
    assert await put(feed, ("u0@example.org", "none"), (BOB, "member")) == EmptyResult()


async def test_set_reads_the_list_of_a_node_once_a_request(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many owners it has, and however many go: a request holds up all other writers."""
    await put(feed, *[(f"u{number}@example.org", "owner") for number in range(50)])
    tx_type = await feed.service.write(lambda tx, _context: type(tx))
    real, reads = tx_type.affiliations, 0

    def counted(tx: WriteTx, node_no: int, *, kind: Affiliation | None = None) -> list[tuple[str, Affiliation]]:
        nonlocal reads
        reads += kind is None
        return real(tx, node_no, kind=kind)

    monkeypatch.setattr(tx_type, "affiliations", counted)
    await put(feed, *[(f"u{number}@example.org", "none") for number in range(50)])

    assert reads == 1
