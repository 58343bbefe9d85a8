"""The commands of docs/moving-in.md for a real ejabberd: its users notice nothing, and do nothing."""

import asyncio
import json
import re
import shlex
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from lxml import etree

from features.moving_in.ejabberd_pubsub import MNESIA, SQL, EjabberdPubsub
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode
from smartfeeds.formats.payload import accept_payload
from support.client import Client, log_in
from support.service import running, write_config
from support.shell import shell_in

PAGE = (Path(__file__).parents[4] / "docs" / "moving-in.md").read_text("utf-8")
PS, OWNER = "http://jabber.org/protocol/pubsub", "http://jabber.org/protocol/pubsub#owner"
EVENT = "{http://jabber.org/protocol/pubsub#event}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EjabberdPubsub]:
    """An ejabberd with its own services."""
    server = EjabberdPubsub(tmp_path_factory.mktemp("ejabberd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def clients(server: EjabberdPubsub) -> AsyncIterator[list[Client]]:
    """The clients that are logged out at the end."""
    clients: list[Client] = []
    yield clients
    for client in clients:
        await client.logout()


def entry(text: str) -> str:
    return (
        f'<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:x:{text}</id><title>{text} é 日本 &amp; &lt;x&gt;</title>'
        "<updated>2026-01-02T03:04:05Z</updated></entry>"
    )


def publish(node: str, item: str, text: str) -> str:
    return f'<pubsub xmlns="{PS}"><publish node="{node}"><item id="{item}">{entry(text)}</item></publish></pubsub>'


async def change(client: Client, service: str, payload: str) -> None:
    response = await client.set(service, payload)
    assert response.get("type") == "result", etree.tostring(response)


async def published(client: Client, service: str, node: str) -> dict[str, bytes]:
    """The items that a service returns, in canonical form."""
    response = await client.get(service, f'<pubsub xmlns="{PS}"><items node="{node}"/></pubsub>')
    return {item.get("id", ""): bytes(accept_payload(item[0])) for item in response.iter(f"{{{PS}}}item")}


async def use(alice: Client, bob: Client, service: str) -> None:
    """What users do before the move."""
    form = (
        '<x xmlns="jabber:x:data" type="submit"><field var="FORM_TYPE"><value>'
        "http://jabber.org/protocol/pubsub#node_config</value></field>"
        '<field var="pubsub#title"><value>A blog &amp; more</value></field></x>'
    )
    await change(alice, service, f'<pubsub xmlns="{PS}"><create node="blog"/><configure>{form}</configure></pubsub>')
    await change(bob, service, f'<pubsub xmlns="{PS}"><subscribe node="blog" jid="{bob.bare}"/></pubsub>')
    for item in ("i0", "i1", "i2", "i3"):
        await change(alice, service, publish("blog", item, item))
    await change(alice, service, publish("blog", "i1", "edited"))
    await change(alice, service, f'<pubsub xmlns="{PS}"><retract node="blog"><item id="i2"/></retract></pubsub>')
    affiliation = '<affiliation jid="carol@localhost" affiliation="publisher"/>'
    await change(
        alice, service, f'<pubsub xmlns="{OWNER}"><affiliations node="blog">{affiliation}</affiliations></pubsub>'
    )


def commands(mark: str, names: dict[str, str]) -> list[list[str]]:
    """The commands of the page with a mark, with the names of the test."""
    text = "\n".join(re.findall(rf"^ *```sh {mark}\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE))
    for name, replacement in names.items():
        assert name in text
        text = text.replace(name, replacement)
    return [shlex.split(line) for line in text.splitlines() if line.strip()]


def stored(database: Path) -> dict[str, list[object]]:
    """The publisher and the dates of each item here."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, publisher, created_us, modified_us FROM item")
        return {item_id: values for item_id, *values in rows}


def moved(source: str, service: str) -> dict[str, list[object]]:
    """The same in the source."""
    return {
        item.id: [item.publisher.partition("/")[0], item.created_us, item.modified_us]
        for node in read_ejabberd(source, service)
        if isinstance(node, MovedNode)
        for item in node.items
        if isinstance(item, MovedItem)
    }


# Two starts of ejabberd, on a slow machine.
async def test_users_do_not_notice_the_move(
    server: EjabberdPubsub, clients: list[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[IMP-020] [IMP-024] [IMP-026] [IMP-029] [IMP-032] [IMP-060] [IMP-065] [IMP-068] [IMP-071]

    From mnesia and from SQL. Items have the same ids, payloads and dates, and the subscriber receives the next item.
    """
    alice, bob = await log_in(server, "alice"), await log_in(server, "bob")
    clients += [alice, bob]
    before = {}
    for service in (MNESIA, SQL):
        await use(alice, bob, service)
        before[service] = await published(alice, service, "blog")
        assert sorted(before[service]) == ["i0", "i1", "i3"]
    await change(alice, alice.bare, publish("urn:xmpp:microblog:0", "personal", "of the account"))
    while clients:
        await clients.pop().logout()
    await asyncio.to_thread(server.free_names)
    clients += [alice := await log_in(server, "alice"), bob := await log_in(server, "bob")]
    dump = tmp_path / "move"
    dump.mkdir()
    programs = {
        MNESIA: commands("ejabberd", {"pubsub.example.org": MNESIA, "/var/lib/ejabberd/move": str(dump)}),
        SQL: [
            ["smartfeeds", "init", SQL],
            *commands("ejabberd-sql", {"/var/lib/ejabberd/ejabberd.sqlite": str(server.database)}),
        ],
    }

    for service, program in programs.items():
        folder = tmp_path / service
        folder.mkdir()
        run = shell_in(folder, monkeypatch)
        output = ""
        for words in program:
            if words[0] == "ejabberdctl":
                # It needs the name service of Erlang, which tests do not start. Over HTTP the command is the same.
                command, file, table = words[1:]
                await asyncio.to_thread(server.call, command, file=file, table=table)
            else:
                output += (await asyncio.to_thread(run, *words[1:])).output
        source = str(dump if service == MNESIA else server.database)
        again = json.loads((await asyncio.to_thread(run, "import", "--from", "ejabberd", source, "--json")).stdout)

        assert "1 node moved." in output
        assert ("1 node (PEP) stays on the server" in output) == (service == MNESIA)
        (node,) = again["nodes"]
        assert (node["node"], node["kind"], node["outcome"]) == ("blog", "feed", "unchanged")
        assert (node["unchanged"], node["skipped"]) == (3, [])
        assert stored(folder / "smartfeeds.db") == moved(source, service)
        store = {"url": f"sqlite:///{folder / 'smartfeeds.db'}"}
        async with running(write_config(folder, server, service, store=store)):
            assert await published(alice, service, "blog") == before[service]
            await change(alice, service, publish("blog", "i9", "after the move"))
            message = await bob.next_message()
            affiliations = await alice.get(service, f'<pubsub xmlns="{OWNER}"><affiliations node="blog"/></pubsub>')

        assert message.get("from") == service
        assert [item.get("id") for item in message.iter(f"{EVENT}item")] == ["i9"]
        assert not bob.messages
        assert {part.get("jid"): part.get("affiliation") for part in affiliations.iter(f"{{{OWNER}}}affiliation")} == {
            "alice@localhost": "owner",
            "carol@localhost": "publisher",
        }
    assert sorted(await published(alice, alice.bare, "urn:xmpp:microblog:0")) == ["personal"]
