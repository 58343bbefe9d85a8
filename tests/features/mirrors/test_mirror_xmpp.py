"""Mirrors between services that reach each other over XMPP (A-46, A-61; SF-045 to SF-051)."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import NoReturn

import pytest
from lxml import etree

from smartfeeds.client.errors import RequestError
from smartfeeds.client.stanzas import PUBSUB
from smartfeeds.core.consumers import BROKEN, Consumer
from smartfeeds.core.model import Affiliation
from smartfeeds.core.touches import Touch
from smartfeeds.delivery.deliverer import ConsumerPosition, Delivered
from smartfeeds.errors import ConfigError, LinkError, StoreError
from smartfeeds.features.mirrors import mirror_in, mirror_state
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, make_mirror
from smartfeeds.features.mirrors.mirror_in import IncomingMirror
from smartfeeds.features.mirrors.statuses import (
    add_mirror,
    consumer_of_mirror,
    remove_mirror,
    restart_mirror,
    set_configured,
)
from smartfeeds.service import requests as r
from smartfeeds.xmpp.framer import CUT_NS
from support.mesh import NODE, OWNER, Net, Site, twin
from support.world import S, entry, jid

OUT = Direction.OUT
QUOTES = '"' * 60_000
CUT = f"<cut xmlns='{CUT_NS}'>too long</cut>"
NOTHING = f"<pubsub xmlns='{PUBSUB}'/>"
EMPTY = (
    f"<pubsub xmlns='{PUBSUB}'><items node='plans?order=modified&amp;sync=true'/>"
    "<set xmlns='http://jabber.org/protocol/rsm'><count>1</count></set></pubsub>"
)


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    yield made
    await made.close()


async def two(net: Net, direction: str = "in") -> tuple[Site, Site]:
    """A has the node, and B a mirror of it."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.mirror(a, direction)
    await net.settle()
    return a, b


def consumer_of(site: Site) -> Consumer:
    """The consumer of the site's outgoing mirror."""
    assert site.mirrors is not None
    [outlet] = [run.outlet for run in site.mirrors.runs.values() if run.outlet is not None]
    assert outlet.consumer is not None
    return outlet.consumer


def publishes(net: Net) -> list[tuple[str, str]]:
    """Who has published to whom since the last look."""
    found = [(sender, to) for sender, to, payload in net.asked if b"<publish " in payload]
    net.asked.clear()
    return found


def history(b: bytes) -> list[str]:
    """Who changed an item, the newest first."""
    return [one.get("by", "").partition(".")[2][:1] for one in etree.fromstring(b) if one.tag.endswith("history")]


async def consumers(site: Site) -> list[str]:
    """The mirrors that have a mark."""
    rows = await site.service.read(lambda tx, _context: tx.consumers((0, "", ""), 99))
    return [row.consumer.name for row in rows if row.consumer.kind == "mirror"]


async def test_bootstrap_brings_everything_there_is(net: Net) -> None:
    """Tombstones, keys of the feed's order and sync data; the node is made, and belongs to whom the mirror says."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    for number in range(7):
        await a.publish(f"i{number}", f"title {number}")
        net.clock.move(1)
    await a.retract("i3")
    await b.mirror(a)
    await net.settle()

    assert await b.shown() == await a.shown()
    assert [item.id for item in await b.items()] == ["i0", "i1", "i2", "i4", "i5", "i6", "i3"]
    assert (await b.state()).items == 7
    made = await b.service.read(lambda tx, _context: tx.node(NODE))
    assert made is not None
    held = await b.service.read(lambda tx, _context: tx.affiliation(made.node_no, OWNER))
    assert held is Affiliation.OWNER
    assert {item.publisher for item in await b.items()} == {a.domain}


async def test_long_bootstrap_takes_one_transaction_a_page(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds a page, and 250 items take no 250 transactions."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    for number in range(250):
        await a.publish(f"i{number}")
    sizes: list[int] = []
    merge = mirror_in.merge_items

    def counted(*arguments, **named):  # type: ignore[no-untyped-def]
        sizes.append(len(arguments[4]))
        return merge(*arguments, **named)

    monkeypatch.setattr(mirror_in, "merge_items", counted)
    await b.mirror(a)
    await net.settle()

    assert sum(sizes) == 250 == len(await b.items())
    assert max(sizes) <= mirror_in.BATCH and len(sizes) <= 4


async def test_pages_above_the_limit_of_the_stream_are_taken_over_in_parts(net: Net) -> None:
    """[SF-045] What left within the limit may come above it; and a service between may allow less."""
    net.limit_bytes = 70_000
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    for number in range(8):
        await a.publish(f"i{number}", payload=entry("words", content="w" * 30_000))
        net.clock.move(1)
    await b.mirror(a)
    await net.settle()

    state = await b.state()
    assert (state.items, state.error) == (8, "")
    assert state.in_step_us is not None
    assert await b.shown() == await a.shown()
    maxima = [int(re.findall(rb"max>(\d+)<", payload)[0]) for _, _, payload in net.asked if b"max>" in payload]
    assert maxima[:7] == [100, 50, 25, 12, 6, 3, 1]


async def test_pages_that_the_other_side_finds_too_long_are_taken_over_in_parts(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-045] It says so (`not-acceptable`) where the stanzas that it may send are shorter than its pages."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    for number in range(5):
        await a.publish(f"i{number}", payload=entry("words", content="w" * 3_000))
        net.clock.move(1)
    monkeypatch.setattr(a.router, "_answer_limit_bytes", 8_000)
    await b.mirror(a)
    await net.settle()

    state = await b.state()
    assert (state.items, state.error) == (5, "")
    assert state.in_step_us is not None and await b.shown() == await a.shown()


@pytest.mark.parametrize("answer", [CUT, NOTHING, EMPTY], ids=["cut", "pubsub", "empty page"])
async def test_service_whose_answers_say_nothing_is_never_in_step(
    net: Net, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """[SF-045] The state says where it is stuck; once a page comes, all is taken over."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await a.publish("x")
    replied = a.replied

    def lies(data: bytes) -> None:
        head, _, body = data.partition(b"<pubsub")
        replied(head + answer.encode() + b"</iq>" if b"<items" in body else data)

    monkeypatch.setattr(a.router, "_reply", lies)
    await b.mirror(a)
    await net.settle_all(3)

    state = await b.state()
    assert state.in_step_us is None and state.items == 0
    assert state.error.startswith(
        "feeds.a.example sends what cannot be used: cannot read the item after the start, even in a page of one item: "
    )
    monkeypatch.setattr(a.router, "_reply", replied)
    await net.settle_all()
    state = await b.state()
    assert state.in_step_us is not None and state.error == ""
    assert await b.shown() == await a.shown()


async def test_item_that_cannot_come_is_told_and_not_passed_over(net: Net) -> None:
    """[SF-045] What is before it is there, in step it is not; a smaller version of the item mends it."""
    a, b = await two(net)
    net.limit_bytes = 20_000
    await a.publish("small")
    await net.settle()
    net.clock.move(1)
    before = (await b.state()).in_step_us
    await a.publish("large", payload=entry("quotes", content=QUOTES))
    net.clock.move(1)
    await a.publish("next")
    await net.settle()

    state = await b.state()
    assert "even in a page of one item: the response was truncated: the stanza is too long" in state.error
    assert state.in_step_us == before and list(await b.titles()) == ["small"]

    await a.publish("large", "shorter")
    await net.settle_all(2)
    state = await b.state()
    assert state.error == "" and await b.shown() == await a.shown()


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        *((name, True) for name in ("forbidden", "not-allowed", "not-authorized", "registration-required")),
        *((name, False) for name in ("not-acceptable", "policy-violation", "feature-not-implemented")),
    ],
)
async def test_refusal_tells_to_become_a_member_only_where_that_helps(net: Net, condition: str, right: bool) -> None:
    net.fault = lambda _sender, _to, _payload: RequestError(condition, "cancel", "because")
    a, b = await two(net)

    failure = (await b.state()).error

    assert condition in failure and a.domain in failure
    assert ("needs to be a member" in failure) is right
    assert ("because" in failure) is not right


async def test_push_is_taken_over_without_a_pull(net: Net) -> None:
    a, b = await two(net)
    net.asked.clear()

    await a.publish("x", "pushed")
    await net.settle()

    assert await b.titles() == {"x": "pushed"}
    assert net.asked == []


async def test_lost_push_is_found_by_the_next_one_and_pulled(net: Net) -> None:
    """[SF-048] [SF-049] The gap check of the follower."""
    a, b = await two(net)
    net.lose = lambda _sender, _to: True
    await a.publish("lost")
    await net.settle()
    assert await b.titles() == {}
    net.lose = lambda _sender, _to: False

    await a.publish("next")
    await net.settle()

    assert await b.shown() == await a.shown()
    assert [item.id for item in await b.items()] == ["lost", "next"]


async def test_silence_is_checked(net: Net) -> None:
    """[SF-051] Where the last push was lost, the integrity pull finds it."""
    a, b = await two(net)
    net.lose = lambda _sender, _to: True
    await a.publish("lost")
    await net.settle()

    assert 300.0 in b.timers.planned
    b.timers.fire()
    await net.settle()

    assert list(await b.titles()) == ["lost"]


async def test_two_ways_edits_go_both_ways_once(net: Net) -> None:
    """No echo: what came from there is not sent back, and a change crosses the wire once."""
    a, b = await two(net, "both")
    await a.publish("a1")
    await net.settle()
    assert publishes(net) == []

    await b.publish("b1")
    await b.publish("a1", "changed at b")
    await net.settle()

    assert publishes(net) == [(b.domain, a.domain)] * 2
    assert await a.titles() == await b.titles() == {"a1": "changed at b", "b1": "b1"}
    assert await a.shown() == await b.shown()
    keys = [item.modified_us for item in await b.items()]
    await net.settle_all()
    assert [item.modified_us for item in await b.items()] == keys
    assert publishes(net) == []


async def test_retraction_goes_both_ways(net: Net) -> None:
    a, b = await two(net, "both")
    await a.publish("x")
    await a.publish("y")
    await net.settle()

    await b.retract("x")
    await a.retract("y")
    await net.settle()

    assert await a.titles() == await b.titles() == {}
    assert await a.shown() == await b.shown()
    assert len(await a.items()) == 2


async def test_edits_made_while_apart_merge_and_conflict_on_both_sides(net: Net) -> None:
    """The same winner and the same conflict everywhere; it is counted."""
    a, b = await two(net, "both")
    await a.publish("x", "first")
    await net.settle()
    net.part(a, b)
    net.clock.move(60)
    await a.publish("x", "at a")
    net.clock.move(60)
    await b.publish("x", "at b")
    await b.publish("only at b")
    await a.publish("only at a")
    await net.settle()
    assert (await b.state(OUT)).error.startswith("feeds.a.example cannot take it now: remote-server-not-found")

    net.heal()
    await net.settle_all()

    assert await a.shown() == await b.shown()
    assert await a.titles() == {"x": "at b", "only at a": "only at a", "only at b": "only at b"}
    (x,) = [item for item in await a.items() if item.id == "x"]
    assert x.conflicts == 1 and b"at a" in x.sync
    assert (await b.state()).conflicts == 1
    assert all(one.in_step for one in (await b.status()).standings)


async def test_other_side_away_is_asked_less_and_less_and_told(net: Net) -> None:
    a, b = await two(net, "both")
    net.part(a, b)
    await b.publish("x")
    net.clock.move(7)

    pauses = []
    for _ in range(12):
        await net.settle()
        pauses += b.timers.fire(longest=200)
    assert pauses[:4] == sorted(pauses[:4]) and pauses[0] == 1.0
    assert max(pauses) <= mirror_state.BACKOFF.pause_s(99, 0.0) == 150.0

    (standing,) = [one for one in (await b.status()).standings if one.direction is OUT]
    assert (standing.in_step, standing.waiting, standing.behind_us) == (False, 1, 7 * S)
    assert "cannot be reached" in standing.state.error

    net.heal()
    await net.settle_all()
    assert await a.titles() == {"x": "x"}
    (standing,) = [one for one in (await b.status()).standings if one.direction is OUT]
    assert (standing.in_step, standing.waiting, standing.state.error) == (True, 0, "")


async def test_one_direction_that_works_again_wakes_the_other(net: Net) -> None:
    """What was missed is fetched as soon as a publish gets through, not at the next integrity pull."""
    a, b = await two(net, "both")
    net.part(a, b)
    await a.publish("missed")
    await b.publish("x")
    await net.settle()
    net.heal()

    b.timers.fire(longest=1.0)  # the publish is tried again
    await net.settle()

    assert await b.titles() == await a.titles() == {"missed": "missed", "x": "x"}


async def test_no_right_to_publish_is_told_with_what_to_do_and_loses_nothing(net: Net) -> None:
    a, b = await net.add("a"), await net.add("b")
    await a.create()
    await b.create()
    await b.publish("x")
    await b.mirror(a, "out")
    await net.settle()

    state = await b.state(OUT)
    assert state.error == (
        "feeds.a.example does not let us publish (forbidden): feeds.b.example has to be a publisher of its node plans"
    )
    assert (state.position, state.refused) == ("", 0)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("direction", "role"), [("in", "member"), ("out", "publisher")])
async def test_node_that_is_not_there_or_hidden_is_told(net: Net, direction: str, role: str, *, closed: bool) -> None:
    """[SF-111] A service that hides closed nodes does not tell one from the other."""
    a = await net.add("a")
    a.service.policy = replace(a.service.policy, hides_closed=True)
    if closed:
        await a.create(access_model="whitelist")
    b = await net.add("b")
    await b.create()
    await b.publish("x")
    await b.mirror(net.sites["feeds.a.example"], direction)
    await net.settle()

    state = await b.state(Direction(direction))
    assert state.error == (
        "there is no node plans at feeds.a.example, or it is closed: its owner makes it, or makes feeds.b.example "
        f"a {role}"
    )


async def test_outgoing_mirror_of_no_node_here_makes_none(net: Net) -> None:
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.mirror(a, "out")
    await net.settle()

    assert (await b.state(OUT)).error.startswith("there is no node plans here")
    assert not (await b.status()).node_there


async def test_node_that_may_not_be_read_is_told_with_what_to_do(net: Net) -> None:
    a, b = await net.add("a"), await net.add("b")
    await a.create(access_model="whitelist")
    await b.mirror(a)
    await net.settle()

    failure = (await b.state()).error
    assert failure.startswith("feeds.a.example does not let feeds.b.example read plans (")
    assert "has to be" in failure or "needs to be a member" in failure


async def test_refused_items_are_told_and_stop_nothing(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent: what is too long, and what is refused there for its own sake, is passed over and told."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain, max_payload_size="2000")
    await b.create()
    await b.publish("long", "x" * 4_000)
    await b.publish("good")
    await b.mirror(a, "out")
    await net.settle()

    assert await a.titles() == {"good": "good"}
    state = await b.state(OUT)
    assert (state.refused, state.items, state.error) == (1, 1, "")
    assert state.reasons[0].item_id == "long"
    assert "feeds.a.example refuses it: not-acceptable" in state.reasons[0].reason


async def test_id_that_is_taken_there_is_given_another(net: Net) -> None:
    """Two items of one id that were shared under two: both are on both sides, and edits find theirs."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.create()
    shared = (
        "<sync xmlns='http://feedsync.org/2007/feedsync' id='{0}' updates='1'><history sequence='1' by='{0}'/></sync>"
    )
    await a.publish("x", payload=entry("of a", inner=shared.format("urn:a")))
    await b.publish("x", payload=entry("of b", inner=shared.format("urn:b")))
    await b.mirror(a, "both")
    await net.settle()

    assert sorted((await a.titles()).values()) == sorted((await b.titles()).values()) == ["of a", "of b"]
    await b.publish("x", "of b, edited")
    await net.settle()
    assert sorted((await a.titles()).values()) == sorted((await b.titles()).values()) == ["of a", "of b, edited"]


async def test_what_a_feed_says_of_itself_stays_its_own(net: Net) -> None:
    """The item 0 with an atom:feed (XEP-0277) is neither sent nor taken, nor told as refused."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.create()
    head = "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:{0}</id><title>{0}</title><updated>2026-01-01T00:00:00Z</updated></feed>"
    await a.publish("0", payload=head.format("a"))
    await b.publish("0", payload=head.format("b"))
    await b.mirror(a, "both")
    await net.settle()

    assert await a.titles() == {"0": "a"} and await b.titles() == {"0": "b"}
    status = await b.status()
    assert [(one.in_step, one.state.refused, one.waiting) for one in status.standings] == [(True, 0, 0)] * 2


async def test_item_that_no_stanza_can_carry_is_not_sent(net: Net) -> None:
    """A stanza beyond the server's limit would end the link for everybody."""
    a, b = await two(net, "both")
    outlet = next(iter(b.mirrors.runs.values())).outlet  # type: ignore[union-attr]
    assert outlet is not None
    outlet._publisher = replace(outlet._publisher, limit_bytes=500)
    net.asked.clear()
    await b.publish("long", "x" * 600)
    await b.publish("good")
    await net.settle()

    assert len(publishes(net)) == 1
    assert await a.titles() == {"good": "good"}
    assert "bytes" in (await b.state(OUT)).reasons[0].reason


async def test_mirror_that_lies_about_who_edited_is_refused(net: Net) -> None:
    """[A-61] A history that names an edit made here, which never was, is refused; what else comes is taken."""
    a, b = await two(net)
    lie = entry("lie").replace(
        "</entry>",
        "<sync xmlns='http://feedsync.org/2007/feedsync' id='lie' updates='1'>"
        f"<history sequence='1' when='2011-01-01T00:00:00Z' by='{b.domain}%2Fking@{b.domain}'/></sync></entry>",
    )
    await a.publish("lie", payload=lie)
    await a.publish("good")
    await net.settle()

    assert await b.titles() == {"good": "good"}
    state = await b.state()
    assert state.refused == 1 and state.reasons[0].item_id == "lie"
    assert state.error == ""
    assert not (await b.status()).standings[0].in_step
    (reading,) = b.mirrors.readings()  # type: ignore[union-attr]
    assert (reading.in_step, reading.lag_s, reading.refused) == (False, 0.0, 1)


async def test_own_edits_that_this_database_lost_come_back_where_they_are_believed(net: Net) -> None:
    """After a restore from backup."""
    a, b = await two(net, "both")
    await b.publish("x", "made at b")
    await net.settle()
    await b.stop()
    del net.sites[b.domain]
    again = await net.add("b")
    await again.mirror(a, "both", own_edits=True)
    await net.settle()

    assert await again.shown() == await a.shown() != {}
    assert (await again.state()).refused == 0


async def test_feed_without_sync_data_is_refused_item_by_item(net: Net) -> None:
    a, b = await two(net)
    message = (
        f"<message from='{a.domain}' to='{b.domain}'><event xmlns='http://jabber.org/protocol/pubsub#event'>"
        f"<items node='{NODE}?order=modified&amp;sync=true'><item id='plain'>{entry('plain')}</item></items></event>"
        "<headers xmlns='http://jabber.org/protocol/shim'><header name='LastCursor'>1.0_0_00000000</header></headers>"
        "</message>"
    )
    net.deliver(a.domain, b.domain, message.encode())
    await net.settle()

    assert await b.titles() == {}
    assert (await b.state()).reasons[0].reason == mirror_in.NO_SYNC


async def test_restart_goes_on_from_the_stored_position(net: Net) -> None:
    """Nothing that is here is pulled or sent again, and what happened meanwhile is."""
    a, b = await two(net, "both")
    for number in range(5):
        await a.publish(f"a{number}")
        await b.publish(f"b{number}")
    await net.settle()
    await b.stop()
    await a.publish("meanwhile")
    net.asked.clear()

    await b.start()
    await net.settle()

    assert await b.shown() == await a.shown()
    assert "meanwhile" in await b.titles()
    assert len([one for one in net.asked if b"items " in one[2]]) == 1
    assert publishes(net) == []


async def test_position_is_kept_with_the_items_or_not_at_all(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails takes nothing over; it is tried again from the same place."""
    a, b = await two(net)
    before = (await b.state()).position
    merge = mirror_in.merge_items
    failures = iter([True])

    def failing(*arguments, **named):  # type: ignore[no-untyped-def]
        result = merge(*arguments, **named)
        if next(failures, False):
            raise StoreError("the disk is full")
        return result

    monkeypatch.setattr(mirror_in, "merge_items", failing)
    await a.publish("x")
    await net.settle()
    state = await b.state()
    assert (await b.titles(), state.position, state.error) == ({}, before, "the disk is full")

    b.timers.fire(longest=5)
    await net.settle()
    state = await b.state()
    assert (await b.titles(), state.error) == ({"x": "x"}, "")


async def test_end_of_our_own_link_is_no_failure_of_the_other_service(net: Net) -> None:
    """Nothing is recorded and no pause begins: the deliveries go on when the link is back."""
    a, b = await two(net, "out")
    await b.create()
    await net.settle()
    lost = LinkError("the link to the XMPP server is down")
    net.fault = lambda sender, _to, payload: lost if sender == b.domain and b"<publish " in payload else None
    for number in range(3):
        await b.publish(f"b{number}")
    await net.settle()
    consumer = consumer_of(b)
    assert await a.titles() == {} and b.timers.planned == []
    assert b.dispatcher.failure(consumer) is None

    net.fault = None
    assert b.mirrors is not None
    await b.mirrors.resume()
    await net.settle()
    assert await a.titles() == {f"b{number}": f"b{number}" for number in range(3)}
    assert b.dispatcher.is_current(consumer)


async def test_items_that_were_sent_before_the_link_ended_are_not_sent_again(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smartfeeds.features.mirrors.mirror_out.AT_ONCE", 1)
    a, b = await two(net, "out")
    await b.create()
    await net.settle()
    lost = LinkError("the link to the XMPP server is down")
    net.fault = lambda sender, _to, payload: lost if sender == b.domain and b"'b2'" in payload else None
    await b.dispatcher.pause("mirror")
    for number in range(3):
        await b.publish(f"b{number}")
        b.clock.move(1)
    assert b.mirrors is not None
    await b.mirrors.resume()
    await net.settle()
    assert await a.titles() == {"b0": "b0", "b1": "b1"}
    assert (await b.state(OUT)).items == 2

    net.fault = None
    await b.stop()
    net.asked.clear()
    await b.start()
    await net.settle()
    assert await a.titles() == {f"b{number}": f"b{number}" for number in range(3)}
    assert len(publishes(net)) == 1


async def test_delivery_while_the_service_ends_keeps_the_mark(net: Net) -> None:
    """Else the next start would send everything again."""
    _a, b = await two(net, "out")
    await b.create()
    await b.publish("b")
    await net.settle()
    consumer, mirrors = consumer_of(b), b.mirrors
    assert mirrors is not None
    await mirrors.stop()
    with pytest.raises(LinkError):
        await mirrors.deliver(consumer, ConsumerPosition())


async def test_fault_of_the_program_ends_neither_the_mirror_nor_the_service(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await two(net, "both")

    def broken(*_arguments, **_named):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError

    merge = mirror_in.merge_items
    monkeypatch.setattr(mirror_in, "merge_items", broken)
    await a.publish("x")
    await net.settle()
    assert (await b.state()).error == BROKEN
    monkeypatch.setattr(mirror_in, "merge_items", merge)
    await net.settle_all()

    assert await b.titles() == {"x": "x"}


async def test_node_that_was_deleted_and_created_again_is_followed_from_the_beginning(net: Net) -> None:
    """Its owner was faster than the next change, so no merge has failed for a missing node."""
    a, b = await two(net)
    await a.publish("x")
    await net.settle()
    await b.service.handle(r.DeleteNode(jid(OWNER), b.domain, NODE))
    await b.create()
    await a.publish("y")
    await net.settle_all()

    assert await b.titles() == {"x": "x", "y": "y"}
    assert (await b.state()).failure is None


async def test_delivery_does_not_search_all_mirrors(net: Net) -> None:
    a, b = await two(net, "both")
    await a.publish("x")
    await net.settle()
    assert b.mirrors is not None

    class Unsearchable(dict[str, object]):
        def values(self) -> NoReturn:
            raise AssertionError("a delivery must not read all mirrors")

    runs = b.mirrors.runs
    (outlet,) = (run.outlet for run in runs.values())
    assert outlet is not None and outlet.consumer is not None
    b.mirrors.runs = Unsearchable(runs)  # type: ignore[assignment]
    assert isinstance(await b.mirrors.deliver(outlet.consumer, ConsumerPosition()), Delivered)
    b.mirrors.runs = runs


async def test_temporary_refusal_is_tried_again(net: Net) -> None:
    """Also "wait" of a service that is asked too fast."""
    a, b = await two(net, "both")
    net.fault = lambda _sender, _to, payload: (
        RequestError("resource-constraint", "wait", "too fast") if b"<publish " in payload else None
    )
    await b.publish("x")
    await net.settle()
    state = await b.state(OUT)
    assert state.error == "feeds.a.example wants us to wait: resource-constraint: too fast"
    assert (state.refused, state.position) == (0, "")

    net.fault = None
    await net.settle_all()
    assert await a.titles() == {"x": "x"}


async def test_rate_limit_is_waited_for_whatever_it_is_called(net: Net) -> None:
    """RFC 6120 8.3.3.12: a policy violation of type wait says nothing against the item."""
    a, b = await two(net, "both")
    net.fault = lambda _sender, _to, payload: (
        RequestError("policy-violation", "wait", "slow down") if b"<publish " in payload else None
    )
    await b.publish("x")
    await net.settle()
    state = await b.state(OUT)
    assert (state.error, state.refused) == ("feeds.a.example wants us to wait: policy-violation: slow down", 0)

    net.fault = None
    await net.settle_all()
    assert await a.titles() == {"x": "x"}


@pytest.mark.parametrize(("at_a", "at_b"), [("one", "two"), ("two", "one")])
async def test_twins_end_the_same_on_both_sides(net: Net, at_a: str, at_b: str) -> None:
    """[A-59] Equal history and other content: what came is not taken for what is here, whoever of them wins."""
    a, b = await two(net, "both")
    net.fault = lambda _sender, _to, payload: (
        RequestError("resource-constraint", "wait") if b"<publish " in payload else None
    )
    await a.publish("x", payload=twin("x", at_a))
    await b.publish("x", payload=twin("x", at_b))
    await net.settle()
    net.fault = None
    await net.settle_all()

    assert await a.shown() == await b.shown() != {}


async def test_idle_mirror_writes_nothing(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that finds nothing new leaves the database alone."""
    a, b = await two(net, "both")
    await b.publish("x")
    await net.settle_all()
    before = (await b.state(OUT)).in_step_us
    writes: list[str] = []
    write = b.service.write

    def noted(work, *, turn="", touch=None):  # type: ignore[no-untyped-def]
        writes.append(turn)
        return write(work, turn=turn, touch=touch)

    monkeypatch.setattr(b.service, "write", noted)
    for _ in range(3):
        net.clock.move(5)
        await b.mirrors.look()  # type: ignore[union-attr]
        await net.settle()
    assert writes == []

    await b.publish("y")
    await net.settle()
    after = (await b.state(OUT)).in_step_us
    assert before is not None and after is not None and after > before
    assert await a.titles() == {"x": "x", "y": "y"}


async def test_what_takes_long_is_done_beside_the_event_loop(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes: one large item holds up others like many small ones do. What is remembered of them is made there."""
    inside: list[bool] = []
    made: list[bool] = []

    async def aside(work, /, *arguments, party=""):  # type: ignore[no-untyped-def]
        inside.append(True)
        try:
            return work(*arguments)
        finally:
            inside.pop()

    digest = mirror_in.digest

    def noted(root):  # type: ignore[no-untyped-def]
        made.append(bool(inside))
        return digest(root)

    monkeypatch.setattr("support.mesh.at_once", aside)
    monkeypatch.setattr(mirror_in, "digest", noted)
    a, b = await two(net, "both")
    await a.publish("small")
    await net.settle()
    await a.publish("large", "x" * 20_000)
    await net.settle()

    assert made == [False, True]
    assert set(await b.titles()) == {"small", "large"}


async def test_only_mirrors_that_send_remember_what_the_other_side_has(net: Net) -> None:
    """There is one bound for all mirrors of a process; what is forgotten is sent once more and changes nothing."""
    a, b = await two(net)
    await a.publish("x")
    await net.settle()
    assert b.mirrors is not None and len(b.mirrors.peers.versions) == 0

    c = await net.add("c")
    await a.service.handle(r.SetAffiliations(jid(OWNER), a.domain, NODE, ((c.domain, "publisher"),)))
    assert c.mirrors is not None
    c.mirrors.peers.limit = 2
    await c.mirror(a, "both")
    for number in range(3):
        await a.publish(f"more {number}")
    await net.settle()
    assert len(c.mirrors.peers.versions) == 2
    assert await c.shown() == await a.shown()


async def test_addresses_are_read_once_and_not_with_every_event(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    _, b = await two(net, "both")

    def forbidden(*_arguments: object, **_named: object) -> None:
        raise AssertionError("an address was read")

    monkeypatch.setattr("smartfeeds.features.mirrors.mirror.parse_address", forbidden)
    assert b.mirrors is not None
    assert b.mirrors.follows("feeds.a.example") and not b.mirrors.follows("feeds.c.example")


async def test_what_was_sent_beside_a_failure_is_not_sent_again(net: Net) -> None:
    a, b = await two(net, "both")
    net.asked.clear()
    net.fault = lambda _sender, _to, payload: (
        RequestError("internal-server-error", "cancel") if b"id='x1'" in payload else None
    )
    for number in range(4):
        await b.publish(f"x{number}")
    await net.settle()
    net.fault = None
    await net.settle_all()

    sent = [payload.partition(b"<item id='")[2][:2].decode() for _, _, payload in net.asked if b"<publish " in payload]
    assert sorted(set(sent)) == ["x0", "x1", "x2", "x3"]
    assert {one: sent.count(one) for one in ("x0", "x2", "x3")} == {"x0": 1, "x2": 1, "x3": 1}
    assert await a.shown() == await b.shown()


async def ring(net: Net, letters: str, direction: str = "both") -> list[Site]:
    """Each site mirrors the next one."""
    sites = [await net.add(letter) for letter in letters]
    for site in sites:
        await site.create(*(other.domain for other in sites if other is not site))
    for one, other in zip(sites, [*sites[1:], sites[0]], strict=True):
        await one.mirror(other, direction)
    await net.settle()
    return sites


@pytest.mark.parametrize("direction", ["in", "out", "both"])
async def test_ring_of_three_converges_and_comes_to_rest(net: Net, direction: str) -> None:
    """Edits, conflicts and deletions made while every link was cut; then nothing moves any more."""
    a, b, c = await ring(net, "abc", direction)
    await a.publish("x", "first")
    await c.publish("y", "first")
    await net.settle()
    assert await a.shown() == await b.shown() == await c.shown()
    for one, other in itertools.combinations((a, b, c), 2):
        net.part(one, other)
    for number, site in enumerate((a, b, c)):
        net.clock.move(60)
        await site.publish("x", f"x at {site.domain}")
        await site.publish(f"own {number}")
    await a.retract("y")
    await b.publish("y", "kept at b")
    await net.settle()

    net.heal()
    await net.settle_all()

    shown = [await site.shown() for site in (a, b, c)]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0]["x"][3] == 2 and shown[0]["y"][3] == 1
    before = [[item.modified_us for item in await site.items()] for site in (a, b, c)]
    net.asked.clear()
    await net.settle_all()
    assert publishes(net) == []
    assert [[item.modified_us for item in await site.items()] for site in (a, b, c)] == before


async def test_full_mesh_converges(net: Net) -> None:
    """Each of four services mirrors every other one, in both directions."""
    sites = [await net.add(letter) for letter in "abcd"]
    for site in sites:
        await site.create(*(other.domain for other in sites if other is not site))
    for one, other in itertools.permutations(sites, 2):
        await one.mirror(other, "both")
    await net.settle()
    for number, site in enumerate(sites):
        net.clock.move(10)
        await site.publish("x", f"at {number}")
        await site.publish(f"own {number}")
    await net.settle_all()

    shown = [await site.shown() for site in sites]
    assert all(one == shown[0] for one in shown) and len(shown[0]) == 5


async def test_node_that_was_deleted_here_is_filled_again_from_the_beginning(net: Net) -> None:
    """[A-61] With the edits that were made here, of which the new node knows nothing; later ones are no truth again."""
    a, b = await two(net, "both")
    await a.publish("x")
    await a.publish("z")
    await net.settle()
    await b.publish("own")
    await b.publish("x", "changed here")
    await b.retract("z")
    await net.settle()
    await b.service.handle(r.DeleteNode(jid(OWNER), b.domain, NODE))
    await a.publish("y")
    await net.settle_all()

    assert await b.shown() == await a.shown()
    assert await b.titles() == {"x": "changed here", "own": "own", "y": "y"}
    state = await b.state()
    assert (state.refused, state.filling) == (0, False)
    assert [one.in_step for one in (await b.status()).standings] == [True, True]


@pytest.mark.parametrize("anew", [False, True], ids=["restart", "mirror restart"])
async def test_restart_while_a_node_is_filled_goes_on_believing_own_edits(net: Net, anew: bool) -> None:
    a, b = await two(net, "both")
    for number in range(130):
        await b.publish(f"own {number}")
    await net.settle_all()
    assert len(await a.items()) == 130
    pulls: list[bytes] = []

    def second_fails(_sender: str, _to: str, payload: bytes) -> RequestError | None:
        if b"items " not in payload:
            return None
        pulls.append(payload)
        return RequestError("resource-constraint", "wait") if len(pulls) > 1 else None

    net.fault = second_fails
    await b.service.handle(r.DeleteNode(jid(OWNER), b.domain, NODE))
    await a.publish("y")
    await net.settle()
    b.timers.fire(longest=5)
    await net.settle()
    assert 0 < len(await b.items()) < 130
    assert (await b.state()).filling
    await b.stop()
    if anew:
        await b.store.open()
        name = (await b.service.read(lambda tx, _context: stored_mirrors.mirrors(tx)))[0].mirror.name
        await b.service.write(lambda tx, context: restart_mirror(tx, context, name))
        await b.store.close()
    net.fault = None
    await b.start()
    await net.settle_all()

    assert await b.shown() == await a.shown()
    state = await b.state()
    assert (state.refused, state.filling, len(await b.items())) == (0, False, 131)


async def test_payloads_come_as_they_are_whatever_prefixes_they_have(net: Net) -> None:
    """Foreign markup and namespaced attributes survive both directions; equal versions have equal content."""
    a, b = await two(net, "both")
    inner = "<p:geo xmlns:p='urn:p' xmlns:q='urn:q' q:at='here'><p:x/></p:geo>"
    await a.publish("a", payload=entry("a", inner=inner))
    await b.publish("b", payload=entry("b", inner=inner))
    await net.settle_all()

    for site in (a, b):
        for item in await site.items():
            geo = etree.fromstring(item.payload).find("{urn:p}geo")
            assert geo is not None and geo.get("{urn:q}at") == "here" and geo[0].tag == "{urn:p}x"
    assert publishes(net) == [(b.domain, a.domain)]


async def test_mirrors_of_two_nodes_of_one_service_do_not_mix(net: Net) -> None:
    """They share one address, so each takes the events of its node alone."""
    a, b = await two(net)
    other = make_mirror(node="other", address=f"xmpp:{a.domain}?;node=other")
    await b.service.write(lambda tx, context: add_mirror(tx, context, other))
    await b.mirrors.look()  # type: ignore[union-attr]
    await a.publish("x")
    await net.settle()

    assert await b.titles() == {"x": "x"}
    found = await b.service.read(lambda tx, _context: tx.node("other"))
    assert found is not None and found.total == 0


async def test_mirror_that_was_removed_ends_and_leaves(net: Net) -> None:
    """Its subscription there ends too, and what it brought stays."""
    a, b = await two(net, "both")
    await a.publish("x")
    await net.settle()
    name = next(iter(b.mirrors.runs))  # type: ignore[union-attr]
    await b.service.write(lambda tx, context: remove_mirror(tx, context, name))
    await b.mirrors.look()  # type: ignore[union-attr]
    await net.settle()
    events = net.events
    await a.publish("y")
    await b.publish("z")
    await net.settle()

    assert await b.titles() == {"x": "x", "z": "z"}
    assert await a.titles() == {"x": "x", "y": "y"}
    assert net.events == events
    await b.dispatcher.save_marks()
    assert await consumers(b) == []
    assert b.mirrors is not None and not b.mirrors.follows(a.domain)


async def test_configured_mirrors_begin_and_end_with_the_configuration(net: Net) -> None:
    """Their state survives, also where the rest of the section changes."""
    a = await net.add("a")
    await a.create("feeds.b.example")
    await a.publish("x")
    mirror = make_mirror(node=NODE, address=f"xmpp:{a.domain}?;node={NODE}", name="one")
    net.configured["feeds.b.example"] = [mirror]
    b = await net.add("b")
    await net.settle()
    assert await b.titles() == {"x": "x"}
    position = (await b.state()).position
    await b.stop()

    net.configured["feeds.b.example"] = [replace(mirror, every_s=60.0, name="two")]
    await b.start()
    await net.settle()
    assert [run.mirror.name for run in b.mirrors.runs.values()] == ["two"]  # type: ignore[union-attr]
    assert (await b.state()).position == position
    await b.stop()

    net.configured.clear()
    await b.start()
    assert b.mirrors is not None and b.mirrors.runs == {}


async def test_configured_mirror_that_no_longer_sends_is_no_consumer(net: Net) -> None:
    """Its mark goes with it, so that it sends everything once it sends again; a new name keeps the mark."""
    a = await net.add("a")
    await a.create("feeds.b.example")
    mirror = make_mirror(node=NODE, address=f"xmpp:{a.domain}?;node={NODE}", name="one", direction="both", owner=OWNER)
    net.configured["feeds.b.example"] = [mirror]
    b = await net.add("b")
    await net.settle()
    await b.publish("x")
    await net.settle()
    await b.stop()
    net.asked.clear()
    net.configured["feeds.b.example"] = [replace(mirror, name="two")]
    await b.start()
    await net.settle()
    assert await consumers(b) == [f"mirror:xmpp:{a.domain}?;node={NODE}"] and publishes(net) == []
    await b.stop()

    net.configured["feeds.b.example"] = [replace(mirror, direction=Direction.IN)]
    await b.start()
    await net.settle()
    assert await consumers(b) == []
    await b.stop()
    net.configured["feeds.b.example"] = [mirror]
    await b.start()
    await net.settle()
    assert publishes(net) == [(b.domain, a.domain)]


async def test_look_behind_the_stop_starts_no_mirror(net: Net) -> None:
    """The end of a service takes seconds, in which the look at the store goes on."""
    a, b = await two(net, "both")
    mirrors = b.mirrors
    assert mirrors is not None and mirrors.runs
    await mirrors.stop()
    await mirrors.look()
    mirrors.wake([1])
    await net.settle()
    net.asked.clear()
    await a.publish("x")
    await b.publish("y")
    await net.settle()

    assert mirrors.runs == {} and not mirrors.follows(a.domain)
    assert net.asked == []


async def test_outgoing_mirror_begins_when_its_node_is_made(net: Net) -> None:
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.mirror(a, "out")
    await net.settle()
    await b.create()
    await b.publish("x")
    await net.settle()

    assert await a.titles() == {"x": "x"}
    assert (await b.state(OUT)).error == ""


async def test_configured_mirror_that_is_called_something_else_keeps_its_state(net: Net) -> None:
    """Also where two of them change their names."""
    a = await net.add("a")
    await a.create("feeds.b.example")
    await a.publish("x")
    one = make_mirror(node=NODE, address=f"xmpp:{a.domain}?;node={NODE}", name="one")
    two_ = make_mirror(node="other", address=f"xmpp:{a.domain}?;node={NODE}", name="two")
    net.configured["feeds.b.example"] = [one, two_]
    b = await net.add("b")
    await net.settle()
    before = {status.mirror.node: status.standings[0].state for status in await b.statuses()}
    assert all(state.items == 1 and state.position for state in before.values())
    await b.stop()
    await b.store.open()
    renamed = [replace(one, name="two"), replace(two_, name="three")]
    await b.service.write(lambda tx, context: set_configured(tx, context, renamed))
    after = {row.mirror.name: row for row in await b.service.read(lambda tx, _context: stored_mirrors.mirrors(tx))}

    assert {name: row.mirror.node for name, row in after.items()} == {"two": NODE, "three": "other"}
    assert {row.mirror.node: row.state(Direction.IN) for row in after.values()} == before


async def test_configured_mirror_takes_no_name_of_one_that_was_added(net: Net) -> None:
    """Both are named; the same mirror may move into the configuration, with its state."""
    b = await net.add("b")
    added = make_mirror(node=NODE, address=f"xmpp:feeds.a.example?;node={NODE}", name="one")
    other = make_mirror(node="other", address="xmpp:feeds.c.example?;node=x", name="one")
    await b.service.write(lambda tx, context: add_mirror(tx, context, added))
    with pytest.raises(ConfigError) as caught:
        await b.service.write(lambda tx, context: set_configured(tx, context, [other]))
    for text in ("one", NODE, str(added.address), "other", str(other.address), "smartfeeds mirror remove one"):
        assert text in str(caught.value)
    rows = await b.service.read(lambda tx, _context: stored_mirrors.mirrors(tx))
    assert [(row.mirror, row.configured) for row in rows] == [(added, False)]

    await b.service.write(lambda tx, context: set_configured(tx, context, [added]))
    rows = await b.service.read(lambda tx, _context: stored_mirrors.mirrors(tx))
    assert [(row.mirror, row.configured) for row in rows] == [(added, True)]


async def test_metrics_tell_lag_and_counts(net: Net) -> None:
    a, b = await two(net, "both")
    await a.publish("x")
    await net.settle()
    assert b.mirrors is not None
    readings = {one.direction: one for one in b.mirrors.readings()}
    assert (readings["in"].in_step, readings["in"].lag_s, readings["in"].changes) == (True, 0.0, 1)
    assert (readings["out"].in_step, readings["out"].lag_s) == (True, 0.0)

    net.part(a, b)
    await b.publish("y")
    net.clock.move(30)
    await net.settle()
    (out,) = [one for one in b.mirrors.readings() if one.direction == "out"]
    assert (out.in_step, out.lag_s) == (False, pytest.approx(30, abs=0.001))


async def test_events_of_strangers_reach_no_follower(net: Net) -> None:
    """The router keeps what no mirror follows."""
    a, b = await two(net)
    assert b.mirrors is not None and b.mirrors.follows(a.domain)
    before = net.events
    evil = f"<message from='evil.example' to='{b.domain}'><event xmlns='http://jabber.org/protocol/pubsub#event'/></message>"
    net.sites["evil.example"] = b  # so that it is delivered at all
    net.deliver("evil.example", b.domain, evil.encode())
    del net.sites["evil.example"]
    assert net.events == before


async def test_mirror_that_begins_anew_sends_what_the_other_side_has_lost(net: Net) -> None:
    """[A-61] After a restore of a backup there, what was sent once is sent again; the mirror goes on as before."""
    a, b = await two(net, "both")
    await b.publish("i1")
    await a.publish("i2")
    await net.settle()
    await a.service.handle(r.DeleteNode(jid(OWNER), a.domain, NODE))
    await a.create(b.domain)
    await net.settle_all()
    lost = await a.shown()
    (row,) = await b.service.read(lambda tx, _context: stored_mirrors.mirrors(tx))
    await b.service.write(lambda tx, context: restart_mirror(tx, context, row.mirror.name))
    await b.mirrors.look()
    await net.settle_all()

    assert lost == {}
    assert set(await a.titles()) == {"i1"}  # i2 names an edit made at A, which A does not know any more
    await a.mirror(b, own_edits=True)
    await a.publish("i3")
    await b.publish("i4")
    await net.settle_all()
    assert set(await a.titles()) == set(await b.titles()) == {"i1", "i2", "i3", "i4"}
    assert await a.shown() == await b.shown()


async def test_change_while_a_mirror_gets_other_settings_sends_nothing_twice(net: Net) -> None:
    """The old directions end one after the other. A delivery in between must not take the mirror for a removed one:
    that would remove its mark, and every item would be sent again."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.create()
    mirror = await b.mirror(a, "both")
    for number in range(5):
        await b.publish(f"i{number}")
    await net.settle()
    assert len(publishes(net)) == 5
    assert b.mirrors is not None
    part = b.mirrors.runs[mirror.name].incoming
    assert isinstance(part, IncomingMirror)
    task = part._task
    assert task is not None

    async def slow_end() -> None:
        try:
            await task
        except asyncio.CancelledError:
            await b.publish("new")
            await net.settle()
            raise

    part._task = asyncio.get_running_loop().create_task(slow_end())
    await asyncio.sleep(0)
    other = replace(mirror, every_s=60.0)
    await b.service.write(
        lambda tx, _context: stored_mirrors.put(tx, replace(stored_mirrors.mirror(tx, mirror.name), mirror=other))
    )  # type: ignore[type-var]
    await b.mirrors.look()
    await net.settle()

    assert len(publishes(net)) == 1
    assert await a.titles() == await b.titles()


async def test_node_that_cannot_be_attached_now_is_logged_and_attached_later(
    net: Net, capsys: pytest.CaptureFixture[str]
) -> None:
    """The attempt that a change starts runs in a task of its own, and nobody waits for its result."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.mirror(a, "out")
    write = b.service.write

    async def failing_write(work: object, *, turn: str = "", touch: Touch | None = None) -> object:
        if getattr(work, "func", None) is consumer_of_mirror:
            raise StoreError("the disk is full")
        return await write(work, turn=turn, touch=touch)  # type: ignore[arg-type]

    b.service.write = failing_write  # type: ignore[assignment, method-assign]
    await b.create()
    await b.publish("x")
    await net.settle()
    assert "store_failed" in capsys.readouterr().out
    assert await consumers(b) == []
    b.service.write = write  # type: ignore[method-assign]
    assert b.mirrors is not None
    await b.mirrors.look()
    assert len(await consumers(b)) == 1


async def test_mirror_that_began_anew_while_it_was_attached_is_not_followed(net: Net) -> None:
    """The former outlet would take the place of its successor, and nothing would end it."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    mirror = await b.mirror(a, "out")
    write, mirrors = b.service.write, b.mirrors
    assert mirrors is not None
    attached: list[Consumer] = []

    async def slow_write(work: object, *, turn: str = "", touch: Touch | None = None) -> object:
        result = await write(work, turn=turn, touch=touch)  # type: ignore[arg-type]
        if getattr(work, "func", None) is consumer_of_mirror and not attached:
            assert isinstance(result, Consumer)
            attached.append(result)
            await write(lambda tx, context: restart_mirror(tx, context, mirror.name))
            await mirrors.look()
        return result

    b.service.write = slow_write  # type: ignore[assignment, method-assign]
    await b.create()
    await b.publish("x")
    await net.settle()

    assert mirrors._outlets == {attached[0]: mirrors.runs[mirror.name].outlet}
    assert await a.titles() == {"x": "x"}


@pytest.fixture
async def both_ways(net: Net, monkeypatch: pytest.MonkeyPatch) -> tuple[Site, str]:
    """A site with a mirror in both directions whose mark cannot be stored any more, and the name of the mirror."""
    a, b = await net.add("a"), await net.add("b")
    await a.create(b.domain)
    await b.create()
    mirror = await b.mirror(a, "both")
    await b.publish("x")
    await net.settle()

    async def failing(_consumer: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(b.dispatcher, "forget", failing)
    return b, mirror.name


async def test_mirror_that_ends_while_the_store_fails_reads_no_more_and_leaves(
    net: Net, both_ways: tuple[Site, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its successor reads beside it otherwise, and the other service sends events for ever."""
    b, name = both_ways
    assert b.mirrors is not None
    task = b.mirrors.runs[name].incoming._task
    await b.service.write(lambda tx, context: remove_mirror(tx, context, name))
    net.asked.clear()
    await b.mirrors.look()
    await net.settle()

    assert task is not None and task.done()
    assert any(b"unsubscribe " in payload for _sender, _to, payload in net.asked)
    assert "store_failed" in capsys.readouterr().out


async def test_end_of_all_mirrors_goes_on_if_the_store_fails(
    both_ways: tuple[Site, str], capsys: pytest.CaptureFixture[str]
) -> None:
    b, name = both_ways
    mirrors = b.mirrors
    assert mirrors is not None
    task = mirrors.runs[name].incoming._task
    background = mirrors._spawn(asyncio.Event().wait(), "background")  # type: ignore[arg-type]
    await mirrors.stop()

    assert task is not None and task.done() and background.cancelled()
    assert "store_failed" in capsys.readouterr().out
