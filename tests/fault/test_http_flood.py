"""Many clients over HTTP at once: what they hold is given back, and who follows over XMPP does not notice them."""

import asyncio
import contextlib
import gc
import socket
from itertools import pairwise

import pytest

from smartfeeds.store.work_queue import WorkQueue
from support.component import ALICE, BOB, Component, Starter, bare, ok
from support.raw import Raw, connected, request

OURS = ("smartfeeds", "aiohttp")
HELD = 2_000
PULLS = 4_000
CONNECTIONS = 40
PUBLISHED = 20


async def filled(start: Starter, **http: object) -> Component:
    """A component with HTTP, a feed of Alice's that everybody may read, and Bob who follows it."""
    component = await start(http={"listen": "127.0.0.1:0", "connections_per_address": 10_000, **http})
    await component.create(ALICE, "notes", access_model="open")
    await component.publish(ALICE, "notes", "first")
    await component.subscribe(BOB, "notes")
    await component.events(bare(BOB))
    return component


def port_of(component: Component) -> int:
    assert component.app.site is not None
    return component.app.site.listener.port


async def held(component: Component, count: int) -> None:
    """Returns when exactly so many pulls are held."""
    assert component.app.site is not None
    while component.app.site.feeds.waiting.held != count:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)


async def last_cursor(port: int) -> str:
    async with connected(port) as raw:
        raw.say(request("/feeds/notes/"))
        return str((await raw.hear()).json["last_cursor"])


def tasks() -> set[str]:
    """The kinds of tasks that there are; the store's come and go."""
    return {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]


async def quiet(component: Component) -> None:
    """Returns when no connection and nothing that was done for one is left."""
    assert component.app.site is not None
    while component.app.site.listener.connections or "RequestHandler.start" in tasks():  # noqa: ASYNC110
        await asyncio.sleep(0)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_held_pulls_whose_clients_go_leave_nothing_behind(start: Starter, accept: str) -> None:
    """[SF-056] 2,000 at once, all cut off: no waiter, no connection, no task; four times, and no object stays."""
    component = await filled(start)
    site, port = component.app.site, port_of(component)
    assert site is not None
    since = await last_cursor(port)
    await quiet(component)
    before = tasks()
    objects: list[int] = []
    for _ in range(4):
        clients = [Raw(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(HELD)]
        for raw in clients:
            raw.say(request(f"/feeds/notes/?since=cursor:{since}", f"Accept: {accept}"))
        await held(component, HELD)
        assert site.listener.connections == HELD
        for raw in clients:
            raw.close()
        await held(component, 0)
        await quiet(component)
        while site.feeds.waiting.node_nos:  # noqa: ASYNC110 - an answer is still being made
            await asyncio.sleep(0)
        del clients, raw
        gc.collect()
        objects.append(sum(1 for one in gc.get_objects() if str(type(one).__module__).startswith(OURS)))
    assert site.listener._open == set() and len(site.listener._per_address) == 0
    # The task of a store lane ends with its queue and starts with the next job, so it may be missing in `before`.
    assert tasks() - {WorkQueue._serve.__qualname__} <= before
    # What is put aside for a while comes and goes; what stays of each would grow with every round.
    assert min(later - earlier for earlier, later in pairwise(objects)) < HELD / 20


async def test_held_pulls_that_are_cut_while_they_are_answered_take_nothing_from_others(start: Starter) -> None:
    """[SF-004] Half of the clients go in the moment of the publish: the other half gets the item."""
    component = await filled(start)
    port = port_of(component)
    since = await last_cursor(port)
    clients = [Raw(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(400)]
    for raw in clients:
        raw.say(request(f"/feeds/notes/?since=cursor:{since}"))
    await held(component, 400)
    publish = asyncio.create_task(component.publish(ALICE, "notes", "second"))
    for raw in clients[::2]:
        raw.close()
    await publish
    for raw in clients[1::2]:
        assert [item["id"] for item in (await raw.hear()).json["items"]] == ["second"]
        raw.close()
    await quiet(component)
    await held(component, 0)


async def test_pulls_that_are_given_up_at_once_are_forgotten(start: Starter) -> None:
    """Clients that ask and go without waiting for the answer: nothing is left of them, and others are served."""
    component = await filled(start)
    port = port_of(component)
    for _ in range(10):
        clients = [Raw(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(50)]
        for number, raw in enumerate(clients):
            raw.say(request(f"/feeds/notes/?timeout=0&q=word{number}") * 3)
        await asyncio.sleep(0)
        for raw in clients:
            raw.close()
    await quiet(component)
    async with connected(port) as raw:
        raw.say(request("/feeds/notes/?timeout=0"))
        assert (await raw.hear()).status == 200


@pytest.mark.parametrize(
    "leaving", [slice(0, 1), slice(0, None, 2), slice(0, 29)], ids=["first", "half", "all but one"]
)
async def test_pulls_alike_survive_each_other(start: Starter, leaving: slice) -> None:
    """[SF-053] What is made once for many is made for those who stay, whoever of them asked first and is gone."""
    component = await filled(start)
    port = port_of(component)
    for number in range(10):
        clients = [Raw(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(30)]
        for raw in clients:
            raw.say(request(f"/feeds/notes/?timeout=0&since=time:{number}"))
        for _ in range(number):
            await asyncio.sleep(0)
        gone = clients[leaving]
        for raw in gone:
            raw.close()
        for raw in clients:
            if raw not in gone:
                assert (await raw.hear()).json["count"] == 1
                raw.close()
    await quiet(component)


async def flood(port: int, number: int, answered: list[int]) -> None:
    """One client of the flood: pulls one behind the other as fast as they are answered, no two alike."""
    async with connected(port) as raw:
        for count in range(PULLS // CONNECTIONS):
            raw.say(request(f"/feeds/notes/?timeout=0&q=word{number}-{count}"))
            answered.append((await raw.hear()).status)


async def test_followers_over_xmpp_do_not_notice_a_flood_of_pulls(start: Starter) -> None:
    """[SF-041] Each publish is answered and notified, in order, while the pulls go on, counted in pulls and not in
    time; and all of these get their answer."""
    component = await filled(start)
    port = port_of(component)
    answered: list[int] = []
    clients = [asyncio.create_task(flood(port, number, answered)) for number in range(CONNECTIONS)]
    waited: list[int] = []
    for number in range(PUBLISHED):
        before = len(answered)
        while len(answered) == before and len(answered) < PULLS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        before = len(answered)
        await component.publish(ALICE, "notes", f"item-{number}")
        waited.append(len(answered) - before)
    assert len(answered) < PULLS, "the flood is over before the last publish: nothing was shown"
    await asyncio.gather(*clients)
    events = await component.events(bare(BOB))
    ids = [str(found) for event in events for found in event.xpath(".//*[local-name()='item']/@id")]
    print(f"pulls that were answered during a publish: most {max(waited)}, of {PULLS}")
    assert ids == [f"item-{number}" for number in range(PUBLISHED)]
    assert set(answered) == {200} and len(answered) == PULLS
    assert max(waited) < 10 * CONNECTIONS, "a publish waits for a few answers of each client at most"
    assert component.app.supervisor.epoch == 1


async def test_tokens_that_are_guessed_hold_up_nobody(start: Starter) -> None:
    """[SF-110] Thousands of wrong tokens: each is refused, and what is published beside them arrives."""
    component = await filled(start)
    port = port_of(component)
    refused: list[int] = []

    async def guess(number: int) -> None:
        async with connected(port) as raw:
            for count in range(50):
                token = f"sf_{number:06x}{count:06x}_{'a' * 43}"
                raw.say(request("/feeds/notes/?timeout=0", f"Authorization: Bearer {token}"))
                refused.append((await raw.hear()).status)

    guessing = [asyncio.create_task(guess(number)) for number in range(CONNECTIONS)]
    for number in range(PUBLISHED):
        await component.publish(ALICE, "notes", f"item-{number}")
    await asyncio.gather(*guessing)
    assert set(refused) == {401} and len(refused) == 50 * CONNECTIONS
    assert len(await component.events(bare(BOB))) == PUBLISHED


async def test_clients_that_do_not_read_keep_nothing_from_followers(start: Starter) -> None:
    """[SF-041] Event streams of clients that went to sleep: what is written for them is bounded, others get all."""
    component = await filled(start)
    port, site = port_of(component), component.app.site
    assert site is not None
    sleepers = []
    for _ in range(20):
        mine = socket.socket()
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        mine.setblocking(False)
        await asyncio.get_running_loop().sock_connect(mine, ("127.0.0.1", port))
        raw = Raw(*await asyncio.open_connection(sock=mine, limit=1_024))
        raw.say(request("/feeds/notes/", "Accept: text/event-stream"))
        sleepers.append(raw)
    await held(component, 20)
    transports = [connection.transport for connection in site.listener._open]
    for transport in transports:
        assert transport is not None
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    for number in range(PUBLISHED):
        await component.publish(ALICE, "notes", f"item-{number}", _large(number))
    assert len(await component.events(bare(BOB))) == PUBLISHED
    unread = [transport.get_write_buffer_size() for transport in transports if transport is not None]
    assert len(unread) == 20 and min(unread) > 0, "nobody reads"
    assert max(unread) < 65_536 + 2 * 60_000, "no more than what one may be behind, and an event"
    for raw in sleepers:
        raw.close()
    await quiet(component)
    ok(await component.get(BOB, "<items node='notes' max_items='1'/>"))


def _large(number: int) -> str:
    return (
        f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{number}</title><content>{'x' * 50_000}</content></entry>"
    )


async def test_a_stop_in_the_middle_of_a_flood_ends_it(start: Starter) -> None:
    """[design 5] Every client sees the end of its connection; nothing is left running."""
    component = await filled(start)
    port = port_of(component)
    answered: list[int] = []
    clients = [asyncio.create_task(flood(port, number, answered)) for number in range(CONNECTIONS)]
    while not answered:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert component.app.site is not None
    await component.app.site.stop()
    for client in clients:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await client
    assert set(answered) == {200} and len(answered) < PULLS
    assert "RequestHandler.start" not in tasks()
