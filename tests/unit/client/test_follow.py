"""The follower over a link: what it asks, hands over and keeps."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from smartfeeds.client import (
    Change,
    Follower,
    FollowError,
    NodeMissingError,
    PositionRefusedError,
    Proof,
    RefusedError,
)
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.follow import INBOX, FollowerClock
from smartfeeds.client.position import parse_position
from smartfeeds.client.stanzas import PUBSUB, RSM
from smartfeeds.xmpp.framer import CUT_NS
from support.waiting import wait_for, waiting
from unit.client.model_link import ADDRESS, ME, NODE, FakeTimers, MemoryStore, ModelLink, atom


def follower(link: ModelLink, **options: Any) -> tuple[Follower, FakeTimers]:
    timers = FakeTimers()
    clock = FollowerClock(timers, spread=lambda: 0.0, wall_clock=lambda: 1_000.0)
    return Follower(link, ADDRESS, clock=clock, **options), timers


async def take(feed: Follower, count: int) -> list[Change]:
    async with waiting(f"{count} changes"):
        return [await anext(feed) for _ in range(count)]


class Waiting:
    """A caller that waits for the next change."""

    def __init__(self, feed: Follower) -> None:
        self.task = asyncio.ensure_future(anext(feed))

    async def quiet(self) -> None:
        """Everything that can go on has done so, without a socket or a thread, and no change has come."""
        for _ in range(30):
            await asyncio.sleep(0)
        assert not self.task.done(), self.task

    async def change(self) -> Change:
        """The change that has come."""
        return await wait_for(self.task, "the change")

    async def error(self) -> BaseException:
        """The error that has come."""
        await wait_for(asyncio.wait([self.task]), "the error")
        found = self.task.exception()
        assert found is not None
        return found


def asked(link: ModelLink) -> list[str]:
    return [request[0].tag.rpartition("}")[2] for request in link.asked]


def faults(*errors: RequestError | RequestTimeoutError | None) -> Any:
    """A fault for each request in turn, then none."""
    queue: Iterator[RequestError | RequestTimeoutError | None] = iter(errors)
    return lambda _request: next(queue, None)


async def test_follower_mirror_hands_over_the_feed_then_pushes() -> None:
    """[SF-045] [SF-047] [SF-048]"""
    link = ModelLink()
    for number in range(5):
        link.feed.put(atom(f"i{number}", f"title {number}"))
    feed, _ = follower(link, mirror=True, page_items=2)

    old = await take(feed, 5)
    link.deliver(link.feed.put(atom("i9", "pushed")))
    (new,) = await take(feed, 1)

    assert [change.title for change in old] == [f"title {number}" for number in range(5)]
    assert (new.item_id, new.title, new.node, new.total) == ("i9", "pushed", NODE, 6)
    assert link.subscriptions == {(NODE, ME)}
    assert asked(link) == ["subscribe", "items", "items", "items"]


async def test_follower_from_now_saves_its_position_before_any_change() -> None:
    """[SF-047]: what comes while it is away the first time is not missed."""
    link, store = ModelLink(), MemoryStore()
    link.feed.put(atom("old", "old"))
    feed, _ = follower(link, store=store)
    waiting = Waiting(feed)
    await waiting.quiet()
    waiting.task.cancel()
    await feed.aclose()
    assert parse_position(store.position or "").cursor == link.feed.newest_cursor()
    link.feed.put(atom("new", "new"))

    again, _ = follower(ModelLink(link.feed), store=store)

    assert [change.item_id for change in await take(again, 1)] == ["new"]


async def test_follower_position_is_saved_when_the_next_change_is_asked_for() -> None:
    """[SF-045]"""
    link, store = ModelLink(), MemoryStore()
    for item_id in "ab":
        link.feed.put(atom(item_id, item_id))
    feed, _ = follower(link, store=store, mirror=True)

    stored = [store.load()]
    (first,) = await take(feed, 1)
    stored.append(store.load())
    (second,) = await take(feed, 1)
    stored.append(store.load())
    feed.acknowledge()
    stored.append(store.load())

    assert stored == [None, None, first.position, second.position]
    assert feed.position == second.position and str(parse_position(second.position)) == second.position


@pytest.mark.parametrize("prefix", ["", "cursor:"])
async def test_follower_since_a_cursor_goes_on_behind_it(prefix: str) -> None:
    """[SF-045] (A-15): with the type or without."""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    cursor = link.feed.newest_cursor()
    link.feed.put(atom("b", "b"))

    feed, _ = follower(link, since=prefix + cursor)

    assert [change.item_id for change in await take(feed, 1)] == ["b"]


async def test_follower_stored_position_wins_over_since(tmp_path: Path) -> None:
    """[SF-045]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    since = link.feed.newest_cursor()
    link.feed.put(atom("b", "b"))
    (tmp_path / "position").write_text(link.feed.newest_cursor())
    link.feed.put(atom("c", "c"))

    feed, _ = follower(link, since=since, store=tmp_path / "position")

    assert [change.item_id for change in await take(feed, 1)] == ["c"]


async def test_follower_lost_push_is_pulled() -> None:
    """[SF-049]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.feed.put(atom("lost", "lost"))
    link.deliver(link.feed.put(atom("seen", "seen")))

    changes = [await waiting.change(), *await take(feed, 1)]

    assert [change.item_id for change in changes] == ["lost", "seen"]
    counters = feed.proof().counters
    assert (counters.gaps_found, counters.gaps_healed, counters.pulls, counters.pushes) == (1, 1, 2, 1)


async def test_follower_tombstone_is_a_deletion() -> None:
    """[SF-013] [SF-048]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.deliver(link.feed.put(atom("a", "", deleted=True)))

    change = await waiting.change()

    assert (change.kind.value, change.item_id, b"deleted" in change.payload) == ("deleted", "a", True)


@pytest.mark.parametrize(
    ("sender", "node"),
    [("evil.example", NODE), ("alice@feeds.example.org", NODE), ("", NODE), ("feeds.example.org", "comments")],
)
async def test_follower_listens_to_its_node_on_its_service_only(sender: str, node: str) -> None:
    """[SF-100]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()

    link.deliver(link.feed.put(atom("a", "a")), sender=sender, node=node)
    await waiting.quiet()

    assert feed.proof().counters.pushes == 0
    waiting.task.cancel()


# Silence


async def test_follower_silence_subscribes_and_pulls() -> None:
    """[SF-051]"""
    link = ModelLink()
    feed, timers = follower(link, integrity_s=300)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.subscriptions.clear()
    link.feed.put(atom("unseen", "unseen"))

    assert timers.fire() == 300
    change = await waiting.change()

    assert change.item_id == "unseen" and link.subscriptions == {(NODE, ME)}
    assert asked(link) == ["subscribe", "items"] * 2


async def test_follower_each_push_puts_silence_off() -> None:
    """[SF-051]: a push that fits proves as much as a pull."""
    link = ModelLink()
    feed, timers = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.deliver(link.feed.put(atom("a", "a")))
    await waiting.change()

    assert timers.planned == [300]


async def test_follower_silence_is_spread_over_a_quarter() -> None:
    """[SF-051]: so that a thousand followers do not pull at once."""
    timers = FakeTimers()
    feed = Follower(ModelLink(), ADDRESS, clock=FollowerClock(timers, lambda: 1.0), integrity_s=400)
    waiting = Waiting(feed)
    await waiting.quiet()

    assert timers.planned == [300]
    waiting.task.cancel()


@pytest.mark.parametrize(
    "event",
    [f'<purge node="{NODE}"/>', f'<subscription node="{NODE}" jid="{ME}" subscription="none"/>'],
)
async def test_follower_event_that_may_hide_changes_pulls(event: str) -> None:
    """[SF-049]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.feed.put(atom("a", "", deleted=True))

    link.deliver_event(event)

    assert (await waiting.change()).item_id == "a"


async def test_follower_pushes_beyond_its_inbox_are_pulled() -> None:
    """[SF-049]: memory is bounded however slow the caller is."""
    link = ModelLink()
    feed, _ = follower(link, page_items=500)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.deliver(link.feed.put(atom("first", "first")))
    await waiting.change()
    for number in range(INBOX + 20):
        link.deliver(link.feed.put(atom(f"i{number}", f"{number}")))
    assert not feed.proof().in_step

    changes = await take(feed, INBOX + 20)

    assert [change.item_id for change in changes] == [f"i{number}" for number in range(INBOX + 20)]
    assert feed.proof().counters.gaps_found == 1


# Trouble

BUSY = RequestError("resource-constraint", "wait", "too many requests")
AWAY = RequestError("service-unavailable", "cancel")
SLOW = RequestTimeoutError("no answer")
MISSING = RequestError("item-not-found", "cancel")
CLOSED = RequestError("not-allowed", "cancel", "this node is closed")
NOT_APPROVED = RequestError("not-authorized", "auth")


@pytest.mark.parametrize("error", [BUSY, AWAY, SLOW], ids=["busy", "away", "slow"])
async def test_follower_passing_trouble_is_tried_again_with_back_off(error: RequestError | RequestTimeoutError) -> None:
    """[SF-049]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    link.fault = faults(error, error, None, error)
    feed, timers = follower(link, mirror=True)
    waiting = Waiting(feed)

    delays = []
    for _ in range(3):
        await waiting.quiet()
        delays.append(timers.fire())

    assert (await waiting.change()).item_id == "a"
    assert delays == [0.5, 1.0, 0.5]
    assert asked(link) == ["subscribe"] * 3 + ["items"] * 2


@pytest.mark.parametrize("drops", [False, True], ids=["cut", "lost"])
async def test_follower_pages_that_are_too_long_are_had_in_parts(drops: bool) -> None:
    """[SF-045]: an answer that was cut down is no empty page. Nobody is troubled where fewer items come through."""
    link = ModelLink()
    for number in range(8):
        link.feed.put(atom(f"i{number}", '"' * 1_000))
    link.limit_bytes, link.limit_drops = 3_000, drops
    told: list[Exception] = []
    feed, timers = follower(link, mirror=True, on_trouble=told.append)
    waiting = Waiting(feed)
    for _ in range(5 if drops else 0):
        await waiting.quiet()
        timers.fire()

    changes = [await waiting.change(), *await take(feed, 7)]

    assert [change.item_id for change in changes] == [f"i{number}" for number in range(8)]
    assert feed.proof().in_step and feed.proof().total == 8
    assert len(told) == (5 if drops else 0)


async def test_follower_item_that_cannot_be_had_alone_is_told_and_waited_for() -> None:
    """[SF-045]: where it is stuck, after what came before, never in step, and with back-off; until it is mended."""
    link = ModelLink()
    link.feed.put(atom("a", "small"))
    before = link.feed.newest_cursor()
    link.feed.put(atom("b", "x" * 5_000))
    link.limit_bytes = 3_000
    told: list[str] = []
    proofs: list[Proof] = []
    feed, timers = follower(
        link, mirror=True, on_trouble=lambda error: told.append(str(error)), on_caught_up=proofs.append
    )
    assert [change.item_id for change in await take(feed, 1)] == ["a"]
    waiting = Waiting(feed)
    delays = []
    for _ in range(8):
        await waiting.quiet()
        delays.append(timers.fire())

    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    stuck = (
        f"cannot read the item after {before}, even in a page of one item: "
        "the response was truncated: the stanza is too long"
    )
    assert told == [stuck] * 8
    assert proofs == [] and not feed.proof().in_step and feed.proof().checked_at is None

    await waiting.quiet()
    link.limit_bytes = 10_000
    timers.fire()
    assert (await waiting.change()).item_id == "b"
    assert feed.proof().in_step


async def test_follower_lost_answer_of_one_item_names_it() -> None:
    """[SF-045]: servers between may end their streams over a long stanza, and nobody hears of it."""
    link = ModelLink()
    link.fault = faults(None, SLOW, SLOW)
    told: list[str] = []
    feed, timers = follower(link, mirror=True, page_items=2, on_trouble=lambda error: told.append(str(error)))
    waiting = Waiting(feed)
    await waiting.quiet()
    timers.fire()
    await waiting.quiet()
    waiting.task.cancel()

    assert told == ["no answer", "no answer; the request was for the item after the start alone"]


@pytest.mark.parametrize("condition", ["not-acceptable", "policy-violation"])
async def test_follower_page_that_the_service_finds_too_long_is_asked_for_in_parts(condition: str) -> None:
    """[SF-045]: where it refuses one item, too, that is the end."""
    too_long = RequestError(condition, "modify", "the answer is too long")
    link = ModelLink()
    for item_id in "abc":
        link.feed.put(atom(item_id, item_id))
    link.fault = faults(None, too_long, too_long, None, too_long)
    feed, _ = follower(link, mirror=True, page_items=4)

    assert [change.item_id for change in await take(feed, 1)] == ["a"]
    error = await Waiting(feed).error()

    assert isinstance(error, RefusedError) and error.condition == condition
    assert [request.findtext(f".//{{{RSM}}}max") for request in link.asked] == [None, "4", "2", "1", "1"]


@pytest.mark.parametrize("reply", ["<pubsub xmlns='http://jabber.org/protocol/pubsub'/>", "<cut xmlns='x'/>", ""])
async def test_follower_answers_that_say_nothing_prove_nothing(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-045]: a few requests, then pauses that grow; nothing is in step."""
    link = ModelLink()
    monkeypatch.setattr(link, "_within_limit", lambda _reply: fromstring(f"<iq type='result'>{reply}</iq>"))
    told: list[Exception] = []
    proofs: list[Proof] = []
    feed, timers = follower(link, mirror=True, on_trouble=told.append, on_caught_up=proofs.append)
    waiting = Waiting(feed)
    delays = []
    for _ in range(4):
        await waiting.quiet()
        delays.append(timers.fire())
    await waiting.quiet()
    waiting.task.cancel()

    assert delays == [0.5, 1.0, 2.0, 4.0] and len(told) == 5
    assert "cannot read the item after the start, even in a page of one item: the response is not a page" in str(
        told[0]
    )
    assert asked(link) == ["subscribe"] + ["items"] * (6 + 4)
    assert proofs == [] and not feed.proof().in_step


async def test_follower_contradictory_pages_are_asked_for_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-045] [SF-095]: a page without items from the start of a feed that has some is none."""
    link = ModelLink()
    page = f"<pubsub xmlns='{PUBSUB}'><items node='{NODE}'/><set xmlns='{RSM}'><count>8</count></set></pubsub>"
    monkeypatch.setattr(link, "_within_limit", lambda _reply: fromstring(f"<iq type='result'>{page}</iq>"))
    feed, timers = follower(link, mirror=True)
    waiting = Waiting(feed)
    delays = []
    for _ in range(4):
        await waiting.quiet()
        delays.append(timers.fire())
    waiting.task.cancel()

    assert delays == [0.5, 1.0, 2.0, 4.0] and not feed.proof().in_step


async def test_follower_subscription_that_was_cut_down_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-047]: nobody knows whether it was accepted."""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    answer = link.ask
    cuts = iter([True])

    async def ask(kind: str, to: str, payload: Element) -> Element:
        reply = await answer(kind, to, payload)
        return fromstring(f"<iq type='result'><cut xmlns='{CUT_NS}'/></iq>") if next(cuts, False) else reply

    monkeypatch.setattr(link, "ask", ask)
    feed, timers = follower(link, mirror=True)
    waiting = Waiting(feed)
    await waiting.quiet()
    assert asked(link) == ["subscribe"] and timers.fire() == 0.5

    assert (await waiting.change()).item_id == "a"
    assert asked(link) == ["subscribe", "subscribe", "items"]


async def test_follower_missing_node_is_a_clear_error() -> None:
    """[SF-045]"""
    link = ModelLink()
    link.fault = faults(MISSING)
    feed, _ = follower(link)

    error = await Waiting(feed).error()

    assert isinstance(error, NodeMissingError) and "the node does not exist" in str(error)
    assert await Waiting(feed).error() is error


async def test_follower_refused_says_what_the_service_says() -> None:
    """[SF-045]"""
    link = ModelLink()
    link.fault = faults(CLOSED)
    feed, _ = follower(link)

    error = await Waiting(feed).error()

    assert isinstance(error, RefusedError) and error.condition == "not-allowed"
    assert "this node is closed" in str(error)


async def test_follower_pending_subscription_waits_for_approval() -> None:
    """[SF-047]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    link.pending = True
    link.fault = faults(None, NOT_APPROVED)
    feed, timers = follower(link, mirror=True)
    waiting = Waiting(feed)
    await waiting.quiet()
    timers.fire()

    assert (await waiting.change()).item_id == "a"


async def test_follower_not_authorized_without_pending_is_the_end() -> None:
    link = ModelLink()
    link.fault = faults(None, NOT_APPROVED)
    feed, _ = follower(link)

    assert isinstance(await Waiting(feed).error(), RefusedError)


async def test_follower_refused_cursor_reads_again() -> None:
    """[SF-109]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    feed, _ = follower(link, since="not a cursor of this service")

    assert [change.item_id for change in await take(feed, 1)] == ["a"]


async def test_follower_refused_cursor_without_replay_is_the_end() -> None:
    """[SF-030]"""
    feed, _ = follower(ModelLink(), since="not a cursor of this service", replay=False)

    assert isinstance(await Waiting(feed).error(), PositionRefusedError)


async def test_follower_deleted_node_hands_over_what_came_before() -> None:
    """[SF-048]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.deliver(link.feed.put(atom("a", "a")))
    link.deliver_event(f'<delete node="{NODE}"/>')

    assert (await waiting.change()).item_id == "a"
    assert isinstance(await Waiting(feed).error(), NodeMissingError)


async def test_follower_link_that_fails_is_the_end() -> None:
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.told.on_failure(FollowError("no"))

    assert str(await waiting.error()) == "no"


# Sessions


async def test_follower_new_session_subscribes_and_pulls() -> None:
    """[SF-049]"""
    link = ModelLink()
    feed, timers = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()

    link.told.on_down()
    await waiting.quiet()
    assert timers.planned == [] and not feed.proof().in_step
    link.feed.put(atom("meanwhile", "meanwhile"))
    link.told.on_up()

    assert (await waiting.change()).item_id == "meanwhile"


async def test_follower_tells_each_outage_once_and_its_end() -> None:
    """[SF-049]: neither the first session nor another failed try is news."""
    link, told = ModelLink(), list[bool]()
    feed, _ = follower(link, on_connection=told.append)
    waiting = Waiting(feed)
    await waiting.quiet()
    assert told == []

    link.told.on_down()
    link.told.on_down()
    assert told == [False]
    link.told.on_up()
    link.told.on_down()
    link.told.on_up()

    assert told == [False, True, False, True]
    waiting.task.cancel()


async def test_follower_answer_of_an_ended_session_is_not_waited_for() -> None:
    """[SF-049]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    link.hold = asyncio.Event()
    feed, _ = follower(link, mirror=True)
    waiting = Waiting(feed)
    await waiting.quiet()

    link.told.on_down()
    link.hold = None
    link.told.on_up()

    assert (await waiting.change()).item_id == "a"
    assert asked(link) == ["subscribe", "subscribe", "items"]


async def test_follower_before_a_session_asks_nothing() -> None:
    """[SF-047]"""
    link = ModelLink()
    link.up_at_once = False
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()

    assert link.asked == []
    waiting.task.cancel()


async def test_follower_wait_that_is_given_up_loses_nothing() -> None:
    """[SF-045]: `asyncio.wait_for(anext(feed), ...)` may time out and be repeated."""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    waiting.task.cancel()
    await asyncio.wait([waiting.task])
    link.deliver(link.feed.put(atom("a", "a")))

    assert [change.item_id for change in await take(feed, 1)] == ["a"]


# The end


@pytest.mark.parametrize(("leave", "left"), [(True, set()), (False, {(NODE, ME)})])
async def test_follower_closed_unsubscribes_when_asked_to(leave: bool, left: set[tuple[str, str]]) -> None:
    """[SF-097]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    async with follower(link, mirror=True, leave=leave)[0] as feed:
        await take(feed, 1)

    assert link.closed and link.subscriptions == left
    assert isinstance(await Waiting(feed).error(), FollowError)


async def test_follower_closed_when_the_service_is_away_ends_all_the_same() -> None:
    """[SF-097]"""
    link = ModelLink()
    link.feed.put(atom("a", "a"))
    async with follower(link, mirror=True, leave=True)[0] as feed:
        await take(feed, 1)
        link.fault = faults(SLOW)

    assert link.closed


async def test_follower_never_started_closes() -> None:
    """[SF-097]"""
    link = ModelLink()
    async with follower(link, leave=True)[0]:
        pass

    assert not link.closed and link.asked == []


# Proof


async def test_proof_says_where_it_is_and_when_that_was_checked() -> None:
    """[SF-051] [SF-095]"""
    link, proofs = ModelLink(), list[Proof]()
    link.feed.put(atom("a", "a"))
    feed, _ = follower(link, mirror=True, on_caught_up=proofs.append)
    assert feed.proof().checked_at is None and not feed.proof().in_step

    await take(feed, 1)

    (proof,) = proofs
    assert (proof.position, proof.total, proof.in_step, proof.checked_at) == (
        link.feed.newest_cursor(),
        1,
        True,
        1_000.0,
    )
    assert str(proof).startswith(f"in step with {NODE} at {proof.position}, 1 item; 1 change, 0 pushes, 1 pull,")
    link.deliver(link.feed.put(atom("b", "b")))
    assert not feed.proof().in_step, "there is something that was not looked at"
    assert proof.counters.pushes == 0, "a proof does not change"


def asks_for_newest(request: Element) -> bool:
    return request.find(".//{http://jabber.org/protocol/rsm}before") is not None


async def test_follower_from_now_asks_for_the_newest_item_only() -> None:
    """[SF-047]"""
    link = ModelLink()
    feed, _ = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()

    assert [asks_for_newest(request) for request in link.asked] == [False, True]
    waiting.task.cancel()


async def test_follower_several_hands_over_what_is_ready_and_saves_behind_all_of_it() -> None:
    """Up to a limit; the position is that behind the last of them, once more is asked for."""
    link, store = ModelLink(), MemoryStore()
    for number in range(5):
        link.feed.put(atom(f"i{number}", "x"))
    feed, _ = follower(link, mirror=True, store=store)

    first = await feed.several(3)
    assert [change.item_id for change in first] == ["i0", "i1", "i2"]
    assert (feed.waiting, store.position) == (2, None)
    second = await feed.several(3)

    assert [change.item_id for change in second] == ["i3", "i4"]
    assert feed.waiting == 0
    assert store.position == first[-1].position
    feed.acknowledge()
    assert parse_position(store.position or "").cursor == link.feed.newest_cursor()


async def test_follower_check_asks_at_once() -> None:
    """What no push told is found without waiting for the silence to end."""
    link = ModelLink()
    feed, timers = follower(link)
    waiting = Waiting(feed)
    await waiting.quiet()
    link.feed.put(atom("unseen", "x"))
    feed.check()

    assert (await waiting.change()).item_id == "unseen"
    assert timers.planned == [300.0]


async def test_follower_check_does_not_wait_for_the_next_try() -> None:
    """And trouble is told each time."""
    link = ModelLink()
    link.feed.put(atom("a", "x"))
    link.fault = faults(RequestTimeoutError("away"), RequestTimeoutError("still away"))
    told: list[str] = []
    feed, timers = follower(link, mirror=True, on_trouble=lambda error: told.append(str(error)))
    waiting = Waiting(feed)
    await waiting.quiet()
    assert (told, timers.planned) == (["away"], [0.5])
    feed.check()
    await waiting.quiet()
    assert (told, timers.planned) == (["away", "still away"], [1.0])
    feed.check()

    assert (await waiting.change()).item_id == "a"
