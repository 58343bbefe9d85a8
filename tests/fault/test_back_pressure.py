"""The server does not read for a while: pushes wait, then are dropped and counted, and followers find out (SF-041)."""

import asyncio

from smartfeeds.xmpp.outbox import HIGH_WATER_BYTES, REPLY_LIMIT_BYTES
from support.component import ALICE, BOB, NS, Component, Starter, entry, headers, ok

MAX_AGE_S = 60.0
LONG = "x" * 60_000
SUBSCRIBERS = 100  # so that an item is 6 MB to send: more than all buffers between us and the server


def titles(pushes: list) -> list[str]:  # type: ignore[type-arg]
    """The ids of the items pushed."""
    return [str(item.get("id")) for push in pushes for item in push.iterfind(".//ev:item", NS)]


async def until_paused(component: Component) -> None:
    while not component.app.stream.outbox.paused:  # noqa: ASYNC110 the transport tells only the outbox
        await asyncio.sleep(0)


async def until_stored(component: Component, count: int) -> None:
    """Waits until the feed has so many items: while the server does not read, nobody is told."""

    async def stored() -> int:
        node = await component.app.service.store.read(lambda tx: tx.node("news"))
        assert node is not None
        return node.total

    while await stored() < count:  # noqa: ASYNC110 nobody is told
        await asyncio.sleep(0)


async def test_pushes_that_wait_too_long_are_dropped_and_the_gap_shows(start: Starter) -> None:
    """[SF-039] [SF-041] [SF-044] [SF-048] [xep-map 152] [xep-map 183]"""
    component = await start(push={"max_age_s": MAX_AGE_S})
    counters = component.app.sender.counters
    await component.create(ALICE, "news")
    for number in range(SUBSCRIBERS):
        await component.subscribe(f"u{number}@example.org/x", "news?order=modified")
    await component.subscribe(BOB, "news?order=modified")
    await component.publish(ALICE, "news", "first")
    (seen,) = await component.events("bob@example.org")

    component.session.stop_reading()
    waiting = [asyncio.create_task(component.publish(ALICE, "news", f"n{number}", entry(LONG))) for number in range(4)]
    await until_paused(component)
    await until_stored(component, 5)
    transport = component.app.stream.transport
    assert transport is not None
    assert transport.get_write_buffer_size() < HIGH_WATER_BYTES * 2, "what waits, waits in the store"
    assert counters.dropped == 0
    component.clock.advance(MAX_AGE_S + 1)
    late = asyncio.create_task(component.publish(ALICE, "news", "late"))
    await until_stored(component, 6)
    component.session.read_again()
    await asyncio.gather(*waiting, late)

    pushes = await component.events("bob@example.org")
    told = titles(pushes)
    assert told[-1] == "late" and 0 < counters.dropped == 5 - len(told)
    assert told == [item_id for item_id in ("n0", "n1", "n2", "n3", "late") if item_id in told], "in order"
    got = [headers(seen)["LastCursor"], *(headers(push)["LastCursor"] for push in pushes)]
    named = [headers(push).get("PreviousCursor") for push in pushes]
    assert named[-1] not in got, "the last one says that there is something between"
    assert headers(pushes[-1])["TotalItems"] == "6"

    behind = got[-2]  # where a follower is that has worked on what came
    answer = ok(
        await component.get(
            BOB, f"<items node='news?order=modified'/><set xmlns='{NS['rsm']}'><after>cursor:{behind}</after></set>"
        )
    )
    pulled = [str(item.get("id")) for item in answer.iterfind(".//ps:item", NS)]
    assert ["first", *told[:-1], *pulled] == ["first", "n0", "n1", "n2", "n3", "late"], "then it has everything"
    await component.publish(ALICE, "news", "next")
    (after,) = await component.events("bob@example.org")
    assert headers(after)["PreviousCursor"] == got[-1], "and the chain holds again"


async def test_pushes_that_wait_less_arrive_all(start: Starter) -> None:
    """[SF-039] [xep-map 183]"""
    component = await start(push={"max_age_s": MAX_AGE_S})
    await component.create(ALICE, "news")
    for number in range(SUBSCRIBERS):
        await component.subscribe(f"u{number}@example.org/x", "news?order=modified")
    component.session.stop_reading()
    waiting = [asyncio.create_task(component.publish(ALICE, "news", f"n{number}", entry(LONG))) for number in range(4)]
    await until_paused(component)
    await until_stored(component, 4)
    component.clock.advance(MAX_AGE_S - 1)
    component.session.read_again()
    await asyncio.gather(*waiting)

    for number in range(SUBSCRIBERS):
        assert titles(await component.events(f"u{number}@example.org")) == ["n0", "n1", "n2", "n3"]
    assert component.app.sender.counters.dropped == 0


async def test_answers_that_nobody_reads_are_bounded_and_counted(start: Starter) -> None:
    """[SF-041] [xep-map 183]"""
    component = await start()
    await component.create(ALICE, "news")
    for number in range(3):
        await component.publish(ALICE, "news", f"n{number}", entry(LONG))
    component.session.stop_reading()
    outbox, transport = component.app.stream.outbox, component.app.stream.transport
    assert transport is not None
    answered = outbox.written_replies + 300
    asked = [asyncio.create_task(component.get(BOB, "<items node='news'/>")) for _ in range(300)]
    while outbox.written_replies + outbox.dropped_replies < answered:
        await asyncio.sleep(0)
        assert transport.get_write_buffer_size() <= REPLY_LIMIT_BYTES
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    component.session.read_again()
    while transport.get_write_buffer_size():  # noqa: ASYNC110 until then an answer has no room
        await asyncio.sleep(0)

    assert await component.item_ids(BOB, "news") == ["n0", "n1", "n2"], "and all is well again"
    assert component.app.online.is_set()
    assert 0 < outbox.dropped_replies < 300
