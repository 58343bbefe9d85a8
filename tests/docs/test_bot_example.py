"""The example bot of docs/examples, as a process of its own, against the real service on a real server."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from smartfeeds.client import FileStore
from smartfeeds.client.position import BEGINNING, bare, parse_position
from smartfeeds.demo.process import HOST
from smartfeeds.demo.prosody import Prosody
from support.client import Client, ClientFactory
from support.servers import NAMES, SECRET, TestServer
from support.service import running, write_config

ROOT = Path(__file__).parents[2]
BOT = ROOT / "docs" / "examples" / "announce_bot.py"
PUBSUB = "http://jabber.org/protocol/pubsub"
RSM = "http://jabber.org/protocol/rsm"
JABBER = "{jabber:client}"
WAIT_S = 20.0


class ProsodyWithRooms(Prosody):
    """Prosody with group chat."""

    def write_config(self) -> None:
        """The usual file, and a component for rooms."""
        super().write_config()
        with self.config_file.open("a") as file:
            file.write('Component "rooms.localhost" "muc"\n')


@pytest.fixture
def prosody_with_rooms(tmp_path: Path) -> Iterator[TestServer]:
    folder = tmp_path / "prosody"
    folder.mkdir()
    server = ProsodyWithRooms(folder, {NAMES[0]: SECRET})
    server.start()
    yield TestServer(server)
    server.stop()


@contextlib.asynccontextmanager
async def bot(
    server: TestServer, domain: str, position: Path, **settings: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The bot, running; killed at the end without a chance to tidy up."""
    account = await asyncio.to_thread(server.server.account, "bot")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "component"),
        "BOT_JID": account.jid,
        "BOT_PASSWORD": account.password,
        "BOT_FEED": f"xmpp:{domain}?;node=comments%3Forder=created",
        "BOT_POSITION": str(position),
        "BOT_SERVER": f"{HOST}:{server.client_port}",
        **settings,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-W", "error", str(BOT), env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def caught_up(path: Path, client: Client, domain: str) -> None:
    """Waits until the position that the bot has stored is that of the newest entry."""
    newest = f"<items node='comments?order=created'/><set xmlns='{RSM}'><max>1</max><before/></set>"
    page = await client.get(domain, f"<pubsub xmlns='{PUBSUB}'>{newest}</pubsub>")
    cursor = bare(page.findtext(f".//{{{RSM}}}last", ""))
    async with asyncio.timeout(WAIT_S):
        while parse_position(FileStore(path).load() or "").cursor != cursor:  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.02)


async def publish(alice: Client, domain: str, item_id: str, title: str) -> None:
    entry = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{title}</title></entry>"
    item = f"<publish node='comments'><item id='{item_id}'>{entry}</item></publish>"
    reply = await alice.set(domain, f"<pubsub xmlns='{PUBSUB}'>{item}</pubsub>")
    assert reply.get("type") == "result"


async def create(alice: Client, domain: str) -> None:
    assert (await alice.set(domain, f"<pubsub xmlns='{PUBSUB}'><create node='comments'/></pubsub>")).get(
        "type"
    ) == "result"


async def bodies(client: Client, count: int, kind: str) -> list[str]:
    """The texts of the next messages of a type, and that no further one has arrived."""
    found: list[str] = []
    while len(found) < count:
        message = await client.next_message(WAIT_S)
        body = message.findtext(f"{JABBER}body")
        if message.get("type") == kind and body:
            found.append(body)
    await client.settle()
    assert [m for m in client.messages if m.findtext(f"{JABBER}body")] == []
    return found


async def test_bot_posts_each_new_entry_once_across_kills(
    server: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    """[SF-045] [SF-047] [SF-048] [SF-097] [SF-098]: an edit is not news, and what came while it was away is."""
    domain, position = server.take_name(), tmp_path / "position"
    async with running(write_config(tmp_path, server, domain)):
        alice, carol = await client(server, "alice"), await client(server, "carol")
        await create(alice, domain)
        await publish(alice, domain, "old", "from before")
        async with bot(server, domain, position, BOT_TARGET=carol.bare):
            await caught_up(position, alice, domain)
            await publish(alice, domain, "one", "one")
            await publish(alice, domain, "old", "edited")
            await publish(alice, domain, "two", "two")
            assert await bodies(carol, 2, "chat") == ["one", "two"]
            await caught_up(position, alice, domain)
        for title in ("three", "four"):
            await publish(alice, domain, title, title)
        async with bot(server, domain, position, BOT_TARGET=carol.bare):
            await caught_up(position, alice, domain)
            await publish(alice, domain, "five", "five")
            assert await bodies(carol, 3, "chat") == ["three", "four", "five"]


async def test_bot_in_a_room_repeats_nothing_that_its_history_shows(
    prosody_with_rooms: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    """[SF-045]: cut off after posting and before storing, it finds its post in the room."""
    server, position = prosody_with_rooms, tmp_path / "position"
    domain, room = server.take_name(), "news@rooms.localhost"
    async with running(write_config(tmp_path, server, domain)):
        alice, carol = await client(server, "alice"), await client(server, "carol")
        await create(alice, domain)
        carol.send_raw(f'<presence to="{room}/carol"><x xmlns="http://jabber.org/protocol/muc"/></presence>')
        await carol.iq(
            f'<iq type="set" to="{room}"><query xmlns="http://jabber.org/protocol/muc#owner">'
            '<x xmlns="jabber:x:data" type="submit"/></query></iq>'
        )
        FileStore(position).save(str(BEGINNING))
        async with bot(server, domain, position, BOT_TARGET=room, BOT_NICK="news"):
            await publish(alice, domain, "zero", "zero")
            assert await bodies(carol, 1, "groupchat") == ["zero"]
            await caught_up(position, alice, domain)
            before = FileStore(position).load() or ""
            await publish(alice, domain, "one", "one")
            assert await bodies(carol, 1, "groupchat") == ["one"]
        FileStore(position).save(before)
        async with bot(server, domain, position, BOT_TARGET=room, BOT_NICK="news"):
            await caught_up(position, alice, domain)
            await publish(alice, domain, "two", "two")
            assert await bodies(carol, 1, "groupchat") == ["two"]
