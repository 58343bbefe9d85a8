"""Several real processes on one PostgreSQL database, beside a real ejabberd or Prosody (docs/scaling.md)."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import psycopg
import pytest
from lxml import etree

from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.cluster.setup import LINKS
from smartfeeds.features.cluster.shards import pings_for
from support.client import LOST_S, Client, log_in
from support.component import NS, PS, entry
from support.postgres import PostgresServer
from support.servers import ROOMS, TestServer
from support.shared_service import Member, share, shared_service
from support.talk import hear, next_from, say, text_of
from support.waiting import until
from support.wiretap import Wiretap

NODES = [f"feed{number}" for number in range(8)]  # in different shards
READER = "bob@localhost"
SENDERS = 4
MUC_USER = "http://jabber.org/protocol/muc#user"


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


def received(client: Client) -> list[str]:
    """The ids of the items that have been notified, in the order of their arrival."""
    found = (message.find("ev:event/ev:items/ev:item", NS) for message in client.messages)
    return [item.get("id", "") for item in found if item is not None]


def requested(tap: Wiretap, client: Client) -> set[str]:
    """The ids of the items that a client has published by requests that reached a process."""
    requests = (etree.fromstring(request) for request, _response in tap.exchanges(client.jid, 0))
    return {item.get("id", "") for request in requests for item in request.iter(f"{{{PS}}}item")}


async def until_received(client: Client, item_ids: Sequence[str]) -> None:
    """Returns when all these items have been notified."""

    async def is_there() -> bool:
        return set(item_ids) <= set(received(client))

    await until(is_there, f"all of {item_ids[0]} to {item_ids[-1]}")


async def begin(members: Sequence[Member]) -> None:
    """Starts processes and returns when all of them have a link and their share."""
    for member in members:
        await member.process.start()
    for member in members:
        await until(member.is_online, "a link")
    await share(members)


async def test_two_processes_notify_each_item_once_and_in_order(ejabberd: TestServer, url: str, tmp_path: Path) -> None:
    """[TOP-010] [TOP-040] [TOP-042] [TOP-045] [PG-070] [PG-071] A process that is killed or stopped is replaced."""
    domain = ejabberd.take_name()
    async with shared_service(tmp_path, ejabberd, url, NODES, READER, domain=domain) as members:
        first, second = members
        await begin(members)
        reader = await log_in(ejabberd, "bob")
        ids = [f"item-{number:02}" for number in range(60)]
        for number, item_id in enumerate(ids):
            await members[number % 2].publish("feed0", item_id)
        await until_received(reader, ids)
        await reader.settle()
        assert received(reader) == ids

        reader.messages.clear()
        os.kill(first.process.pid, signal.SIGSTOP)
        ids = [f"stopped-{node}" for node in NODES]
        for node in NODES:
            await second.publish(node, f"stopped-{node}")
        await until_received(reader, ids)
        await share([second])
        os.kill(first.process.pid, signal.SIGCONT)
        await share(members)
        for node in NODES:
            await first.publish(node, f"woken-{node}")
        await until_received(reader, [f"woken-{node}" for node in NODES])
        # A stop before the marks are stored repeats the notifications before it.
        news = [item_id for item_id in received(reader) if item_id.startswith(("stopped", "woken"))]
        assert sorted(news) == sorted([*ids, *(f"woken-{node}" for node in NODES)])
        assert "shards_lost" in first.process.said

        reader.messages.clear()
        await first.process.end(signal.SIGKILL)
        ids = [f"killed-{node}" for node in NODES]
        for node in NODES:
            await second.publish(node, f"killed-{node}")
        await until_received(reader, ids)
        await reader.settle()
        # A kill before the marks are stored repeats the notifications before it.
        assert sorted(item_id for item_id in received(reader) if item_id.startswith("killed")) == sorted(ids)
        await reader.logout()
        assert await second.process.end() == 0
        assert "Traceback" not in second.process.said


async def test_rolling_restart_loses_no_request_and_no_notification(
    ejabberd: TestServer, url: str, tmp_path: Path
) -> None:
    """[TOP-034] Each process is stopped and started again while several requests at a time arrive over XMPP."""
    domain = ejabberd.take_name()
    async with (
        Wiretap(ejabberd.component_port) as tap,
        shared_service(tmp_path, ejabberd, url, NODES, READER, domain=domain, component={"port": tap.port}) as members,
    ):
        await begin(members)
        reader, alice = await log_in(ejabberd, "bob"), await log_in(ejabberd, "alice", presence=False)
        ids: list[str] = []
        is_over = asyncio.Event()

        async def publish(item_id: str) -> None:
            item = f"<item id='{item_id}'>{entry(item_id)}</item>"
            request = f"<pubsub xmlns='{PS}'><publish node='feed0'>{item}</publish></pubsub>"
            try:
                async with asyncio.timeout(LOST_S):
                    answer = await alice.set(domain, request)
            except TimeoutError:
                # ejabberd loses what it routes to a link between the end of the stream and that of the route.
                assert item_id not in requested(tap, alice), "a process has received the request"
                answer = await alice.set(domain, request)
            assert answer.get("type") == "result", item_id

        async def publish_on(sender: int) -> None:
            for number in count():
                item_id = f"item-{sender}-{number}"
                await publish(item_id)
                ids.append(item_id)
                if is_over.is_set():
                    return

        # A process that is asked to stop has several of their requests at any time.
        publishers = [asyncio.create_task(publish_on(sender)) for sender in range(SENDERS)]
        for member in members:
            assert await member.process.end() == 0
            await member.process.start()
            await until(member.is_online, "a link")
            await share(members)
        is_over.set()
        await asyncio.gather(*publishers)
        await until_received(reader, ids)
        await reader.settle()
        with psycopg.connect(url) as connection:
            order = [row[0] for row in connection.execute("SELECT id FROM item ORDER BY modified_us").fetchall()]
        assert sorted(order) == sorted(ids)
        assert set(ids) == requested(tap, alice)
        assert received(reader) == order
        await asyncio.gather(reader.logout(), alice.logout())


async def test_room_gets_one_answer_to_each_message(ejabberd: TestServer, url: str, tmp_path: Path) -> None:
    """[TOP-005] [TOP-013] Each message of the room reaches one of two processes at random. After a kill the other one
    answers all of them."""
    domain, room = ejabberd.take_name(), f"processes@{ROOMS}"
    often = {"messages_per_minute": 600}
    async with shared_service(tmp_path, ejabberd, url, ["feed0"], READER, domain=domain, bot=often) as members:
        await begin(members)
        alice = await log_in(ejabberd, "alice")
        await create_room(alice, room, "Alice")
        alice.send_raw(f"<message to='{domain}'><x xmlns='jabber:x:conference' jid='{room}'/></message>")
        assert "I am in the room" in await hear(alice, domain)

        async def answers(count: int) -> list[str]:
            """The answers to messages that are sent one after the other, and one more for what comes too often."""
            found = []
            for _ in range(count):
                say(alice, room, "feeds: subscriptions", kind="groupchat")
                while not (text := text_of(await next_from(alice, room))).startswith("Alice: "):
                    pass
                found.append(text)
            await alice.settle()
            return found

        # With one process that knows the room, all of these reach it with a probability of 1 : 4,096.
        assert await answers(12) == ["Alice: You follow no feed yet."] * 12
        await members[0].process.end(signal.SIGKILL)
        await share(members[1:])  # takes longer than the server needs to notice the end of the connection
        assert await answers(4) == ["Alice: You follow no feed yet."] * 4
        late = [text for message in alice.messages if (text := text_of(message)).startswith("Alice: ")]
        assert late == [], "no message has two answers"
        await alice.logout()


async def create_room(client: Client, room: str, nick: str) -> None:
    """Enters a room as its owner."""
    client.send_raw(f"<presence to='{room}/{nick}'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
    codes: set[str | None] = set()
    while "110" not in codes:
        presence = await client.next_presence()
        codes = {status.get("code") for status in presence.iter(f"{{{MUC_USER}}}status")}
    if "201" in codes:
        form = "<x xmlns='jabber:x:data' type='submit'/>"
        owner = f"<query xmlns='http://jabber.org/protocol/muc#owner'>{form}</query>"
        assert (await client.set(room, owner)).get("type") == "result"


async def test_idle_links_of_two_processes_stay(ejabberd: TestServer, url: str, tmp_path: Path) -> None:
    """[TOP-011] [TOP-032] The server sends the pings of a process to any of them."""
    domain = ejabberd.take_name()
    quick = {"ping_idle_s": 0.2, "ping_timeout_s": 2.0}
    async with shared_service(tmp_path, ejabberd, url, [], READER, domain=domain, link=quick) as members:
        await begin(members)

        async def have_pinged() -> bool:
            pings = [await member.metric("smartfeeds_link_pings_total") or 0.0 for member in members]
            return min(pings) > 2 * pings_for(LINKS)

        # A third burst shows that the link was sound after the first two.
        await until(have_pinged, "three bursts of pings")
        assert [await member.metric("smartfeeds_link_connects_total") for member in members] == [1.0, 1.0]


async def test_two_of_three_processes_take_over_what_the_third_had(
    ejabberd: TestServer, url: str, tmp_path: Path
) -> None:
    """[TOP-040] [TOP-033] [OPS-081] [OPS-082] [OPS-084] Each feed has one owner before and after the kill."""
    domain = ejabberd.take_name()
    async with shared_service(tmp_path, ejabberd, url, NODES, READER, 3, domain=domain) as members:
        await begin(members)
        reader = await log_in(ejabberd, "bob")
        for number, node in enumerate(NODES):
            await members[number % 3].publish(node, f"before-{node}")
        await until_received(reader, [f"before-{node}" for node in NODES])
        await reader.settle()
        assert sorted(received(reader)) == sorted(f"before-{node}" for node in NODES)

        reader.messages.clear()
        killed, *others = members
        await killed.process.end(signal.SIGKILL)
        for number, node in enumerate(NODES):
            await others[number % 2].publish(node, f"after-{node}")
        await share(others)
        await until_received(reader, [f"after-{node}" for node in NODES])
        await reader.settle()
        # A kill before the marks are stored repeats the notifications before it.
        ids = [item_id for item_id in received(reader) if item_id.startswith("after")]
        assert sorted(ids) == sorted(f"after-{node}" for node in NODES)

        async def is_measured() -> bool:
            return all([await member.metric("smartfeeds_canary_seconds") or 0.0 for member in others])

        await until(is_measured, "pings to the own address that came back")
        for member in others:
            assert await member.metric("smartfeeds_database_free_connections") > 0  # type: ignore[operator]
            assert await member.metric("smartfeeds_processes") == 2.0
            assert await member.metric(r"smartfeeds_process_info\{.*\}") == 1.0
            assert await member.metric("smartfeeds_lease_age_seconds") is not None
            assert "Traceback" not in member.process.said
        assert sum([await member.shards() for member in others]) == SHARDS
        await reader.logout()


async def test_held_pulls_go_on_at_another_process(ejabberd: TestServer, url: str, tmp_path: Path) -> None:
    """[PG-061] [PG-062] [PG-064] [PG-079] [TOP-024] [TOP-060] Processes without a link serve HTTP. A pull ends when
    another process writes. After a kill the client repeats it elsewhere with its cursor, and lacks nothing."""
    domain = ejabberd.take_name()
    off = {"link": "off"}
    async with shared_service(tmp_path, ejabberd, url, ["feed0"], READER, domain=domain, component=off) as members:
        for member in members:
            await member.process.start()
        await share(members)
        first, second = members
        pull = asyncio.create_task(titles(first, "since=time:0&timeout=60"))

        async def is_held() -> bool:
            return await first.metric("smartfeeds_http_held") == 1.0

        await until(is_held, "a held pull")
        await second.publish("feed0", "news")
        assert await pull == ["news"]

        async with read_stream(first) as stream:
            cursor = await next_event(stream, "news")
            pull = asyncio.create_task(titles(first, f"since=cursor:{cursor}&timeout=60"))

            async def are_held() -> bool:
                return await first.metric("smartfeeds_http_held") == 2.0

            await until(are_held, "a held pull and a stream")
            await first.process.end(signal.SIGKILL)
            with pytest.raises(aiohttp.ClientError):
                await pull
            with pytest.raises(aiohttp.ClientError):
                await next_event(stream, "later")
        await second.publish("feed0", "meanwhile")
        assert await titles(second, f"since=cursor:{cursor}&timeout=60") == ["meanwhile"]
        async with read_stream(second, cursor) as stream:
            await next_event(stream, "meanwhile")
            await second.publish("feed0", "after")
            await next_event(stream, "after")


@asynccontextmanager
async def read_stream(member: Member, cursor: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
    """An event stream from the first item on, or from a cursor as a browser sends it after a lost connection."""
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": cursor} if cursor else {})}
    async with member.session.get(f"{member.url}/feeds/feed0/?since=time:0", headers=headers) as answer:
        assert answer.status == 200
        yield answer


async def next_event(stream: aiohttp.ClientResponse, title: str) -> str:
    """The id of the next event, whose only item has this title."""
    event_id = ""
    async for line in stream.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            event_id = value
        if name == "data" and (items := json.loads(value)["items"]):
            assert [item["title"] for item in items] == [title]
            return event_id
    raise aiohttp.ClientPayloadError("the stream has ended")


async def titles(member: Member, query: str) -> list[str]:
    """The titles of the answer to a pull."""
    url = f"{member.url}/feeds/feed0/?{query}"
    async with member.session.get(url, headers={"Accept": "application/json"}) as answer:
        assert answer.status == 200, await answer.text()
        return [item["title"] for item in (await answer.json())["items"]]


async def test_standby_takes_the_link_when_the_active_process_is_killed(
    prosody: TestServer, url: str, tmp_path: Path
) -> None:
    """[TOP-001] [TOP-021] [TOP-041] With the lease of the link, the standby does not even try to connect."""
    domain = prosody.take_name()
    lease = {"link": "lease"}
    async with shared_service(tmp_path, prosody, url, ["feed0"], READER, domain=domain, component=lease) as members:
        active, standby = members
        await active.process.start()
        await until(active.is_online, "a link")
        await standby.process.start()

        async def is_beside() -> bool:
            return await standby.metric("smartfeeds_processes") == 2.0

        await until(is_beside, "two processes")
        reader = await log_in(prosody, "bob")
        await standby.publish("feed0", "while-standing-by")
        await until_received(reader, ["while-standing-by"])
        assert await standby.metric("smartfeeds_link_connects_total") == 0.0
        await active.process.end(signal.SIGKILL)
        await standby.publish("feed0", "after-the-kill")
        await until(standby.is_online, "a link")
        await until_received(reader, ["after-the-kill"])
        # A kill before the mark is stored repeats a notification.
        assert list(dict.fromkeys(received(reader))) == ["while-standing-by", "after-the-kill"]
        await reader.logout()
