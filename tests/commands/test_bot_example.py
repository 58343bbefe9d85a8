"""The example bot of docs/examples, as a process of its own, against the real service on a real server."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from smartfeeds.client import FileStore
from smartfeeds.client.position import BEGINNING, bare, parse_position
from smartfeeds.local.process import HOST
from smartfeeds.local.prosody import Prosody
from support.client import Client, ClientFactory
from support.servers import NAMES, ROOMS, SECRET, TestServer
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


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_bot_without_settings_names_them(arguments: tuple[str, ...]) -> None:
    """One line instead of a traceback, and the exit code of a usage error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOT_")}
    environment |= {"PYTHONPATH": str(ROOT / "component"), "BOT_JID": "a@example.org", "BOT_FEED": "xmpp:f?;node=n"}

    done = subprocess.run(
        [sys.executable, BOT, *arguments], env=environment, capture_output=True, text=True, check=False
    )

    assert done.stderr == "announce_bot: set BOT_PASSWORD, BOT_TARGET, BOT_POSITION in the environment\n"
    assert done.returncode == 2


@contextlib.asynccontextmanager
async def bot(
    server: TestServer, domain: str, position: Path, *, stderr: int | None = None, **settings: str
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
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", str(BOT), env=environment, stderr=stderr
    )
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
        message = await client.next_message()
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


async def open_room(owner: Client, room: str, nick: str = "carol", **options: str) -> None:
    """Makes a room with these options, and stays in it."""
    owner.send_raw(f'<presence to="{room}/{nick}"><x xmlns="http://jabber.org/protocol/muc"/></presence>')
    kind = "http://jabber.org/protocol/muc#roomconfig"
    fields = {"FORM_TYPE": kind, **{f"muc#roomconfig_{name}": value for name, value in options.items()}}
    form = "".join(f'<field var="{name}"><value>{value}</value></field>' for name, value in fields.items())
    await owner.iq(
        f'<iq type="set" to="{room}"><query xmlns="http://jabber.org/protocol/muc#owner">'
        f'<x xmlns="jabber:x:data" type="submit">{form if options else ""}</x></query></iq>'
    )


async def ban(owner: Client, room: str) -> None:
    """Bans the account of the bot (XEP-0045 9.1)."""
    query = (
        '<query xmlns="http://jabber.org/protocol/muc#admin"><item affiliation="outcast" jid="bot@localhost"/></query>'
    )
    assert (await owner.iq(f'<iq type="set" to="{room}">{query}</iq>')).get("type") == "result"


async def refusal(process: asyncio.subprocess.Process, room: str) -> str:
    """What the bot says about the room before it ends."""
    _, error = await asyncio.wait_for(process.communicate(), WAIT_S)
    assert process.returncode == 1, error.decode()
    assert error.count(b"\n") == 1
    start = f"announce_bot: cannot join {room} as news: "
    assert error.decode().startswith(start), error.decode()
    return error.decode().removeprefix(start).strip()


@pytest.mark.parametrize(
    ("name", "nick", "options", "condition"),
    [
        ("taken", "news", {}, "conflict"),
        ("members", "carol", {"membersonly": "1"}, "registration-required"),
        ("locked", "carol", {"passwordprotectedroom": "1", "roomsecret": "x"}, "not-authorized"),
        ("banned", "carol", {}, "forbidden"),
        ("missing", "", {}, "the room does not exist; create it first"),
    ],
    ids=["nick is taken", "members only", "password", "banned", "does not exist"],
)
async def test_bot_ends_with_a_message_when_a_room_refuses_it(
    server: TestServer,
    client: ClientFactory,
    tmp_path: Path,
    name: str,
    nick: str,
    options: dict[str, str],
    condition: str,
) -> None:
    """Also when no entry is there to be posted: it would wait for ever and post nothing."""
    room, domain = f"{name}@{ROOMS}", server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice, carol = await client(server, "alice"), await client(server, "carol")
        await create(alice, domain)
        if nick:
            await open_room(carol, room, nick, **options)
        if name == "banned":
            await ban(carol, room)
        pipe = asyncio.subprocess.PIPE
        async with bot(server, domain, tmp_path / "position", stderr=pipe, BOT_TARGET=room, BOT_NICK="news") as process:
            assert (await refusal(process, room)).startswith(condition)


async def test_bot_ends_when_the_domain_of_the_room_does_not_exist(
    server: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    """The condition differs: Prosody without s2s says service-unavailable."""
    room, domain = "news@no-rooms.localhost", server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        await create(await client(server, "alice"), domain)
        pipe = asyncio.subprocess.PIPE
        async with bot(server, domain, tmp_path / "position", stderr=pipe, BOT_TARGET=room, BOT_NICK="news") as process:
            condition = (await refusal(process, room)).partition(" ")[0]
    assert condition in ("remote-server-not-found", "service-unavailable", "not-allowed")


async def test_bot_ends_when_a_room_removes_it(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """It would take later entries for posted."""
    room, domain = f"removed@{ROOMS}", server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice, carol = await client(server, "alice"), await client(server, "carol")
        await create(alice, domain)
        await open_room(carol, room)
        FileStore(tmp_path / "position").save(str(BEGINNING))
        await publish(alice, domain, "zero", "zero")
        pipe = asyncio.subprocess.PIPE
        async with bot(server, domain, tmp_path / "position", stderr=pipe, BOT_TARGET=room, BOT_NICK="news") as process:
            assert await bodies(carol, 1, "groupchat") == ["zero"]
            await ban(carol, room)
            assert await refusal(process, room) == "the room has removed the bot, or was destroyed"


async def test_bot_with_a_wrong_password_ends_with_server_and_cause(prosody: TestServer, tmp_path: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    async with bot(
        prosody, "feeds.localhost", tmp_path / "position", stderr=pipe, BOT_TARGET="a@localhost", BOT_PASSWORD="wrong"
    ) as process:
        _, error = await asyncio.wait_for(process.communicate(), WAIT_S)

    assert process.returncode == 1
    assert error.decode().splitlines()[-1] == (
        f"announce_bot: 127.0.0.1:{prosody.client_port} refuses the login of bot@localhost: not-authorized; "
        "check the account and its password"
    )


async def test_readme_program_names_server_and_cause(prosody: TestServer, unused_tcp_port: int) -> None:
    """A wrong password and a server that is away end it at once."""
    await asyncio.to_thread(prosody.server.account, "bob")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "component")}
    (program,) = re.findall(r"(?s)```python\n(.*?)```", (ROOT / "README.md").read_text())

    async def last_line(port: int) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", program, "bob@localhost", "wrong", f"{HOST}:{port}"),
            env=environment,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, error = await asyncio.wait_for(process.communicate(), WAIT_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 1
        return error.decode().splitlines()[-1]

    assert await last_line(prosody.client_port) == (
        f"bot: {HOST}:{prosody.client_port} refuses the login of bob@localhost: not-authorized; "
        "check the account and its password"
    )
    assert await last_line(unused_tcp_port) == (
        f"bot: cannot connect to {HOST}:{unused_tcp_port} as bob@localhost: connection refused"
    )


async def test_bot_in_a_room_repeats_nothing_that_its_history_shows(
    prosody_with_rooms: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    """[SF-045]: cut off after posting and before storing, it finds its post in the room."""
    server, position = prosody_with_rooms, tmp_path / "position"
    domain, room = server.take_name(), "news@rooms.localhost"
    async with running(write_config(tmp_path, server, domain)):
        alice, carol = await client(server, "alice"), await client(server, "carol")
        await create(alice, domain)
        await open_room(carol, room)
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
