"""A service of ejabberd moves here: its users keep their nodes and subscriptions, and do nothing."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree

from smartfeeds.cli import main
from smartfeeds.formats.payload import accept_payload
from smartfeeds.service.moved import MovedItem, MovedNode
from smartfeeds.sources.ejabberd import read_ejabberd
from support.client import Client, log_in
from support.ejabberd_pubsub import MNESIA, SQL, EjabberdPubsub
from support.service import running, write_config

ROOT = Path(__file__).parents[2]
PS, OWNER = "http://jabber.org/protocol/pubsub", "http://jabber.org/protocol/pubsub#owner"
EVENT = "{http://jabber.org/protocol/pubsub#event}"
SERVICES = {"mnesia": MNESIA, "SQL": SQL}


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


async def import_command(config: Path, source: str, *options: str) -> dict[str, list[dict[str, object]]]:
    """Runs the import. Returns its report."""
    command = ["import", "--from", "ejabberd", source, "--config", str(config), "--json", *options]
    result = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert result.exit_code == 0, result.output
    report: dict[str, list[dict[str, object]]] = json.loads(result.stdout)
    return report


def stored_dates(database: Path) -> dict[str, tuple[int, int]]:
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT id, created_us, modified_us FROM item").fetchall()
    connection.close()
    return {item_id: (created_us, modified_us) for item_id, created_us, modified_us in rows}


def source_dates(source: str, service: str) -> dict[str, tuple[int | None, int | None]]:
    return {
        item.id: (item.created_us, item.modified_us)
        for node in read_ejabberd(source, service)
        if isinstance(node, MovedNode)
        for item in node.items
        if isinstance(item, MovedItem)
    }


# Two starts of ejabberd, on a slow machine.
@pytest.mark.timeout(240)
async def test_users_do_not_notice_the_move(server: EjabberdPubsub, clients: list[Client], tmp_path: Path) -> None:
    """[IMP-020] [IMP-022] [IMP-024] [IMP-026] [IMP-029] [IMP-032] [IMP-060] [IMP-065] [IMP-068] [IMP-071]

    From mnesia and from SQL. Items have the same ids, payloads and dates, and the subscriber receives the next item.
    """
    alice, bob = await log_in(server, "alice"), await log_in(server, "bob")
    clients += [alice, bob]
    before = {}
    for service in SERVICES.values():
        await use(alice, bob, service)
        before[service] = await published(alice, service, "blog")
        assert sorted(before[service]) == ["i0", "i1", "i3"]
    dump = tmp_path / "mnesia.dump"
    # ejabberdctl needs the name service of Erlang, which tests do not start. The command is the same over HTTP.
    await asyncio.to_thread(server.call, "dump", file=str(dump))
    while clients:
        await clients.pop().logout()
    await asyncio.to_thread(server.replace_services, *SERVICES.values())
    clients += [alice := await log_in(server, "alice"), bob := await log_in(server, "bob")]

    for service, source in ((MNESIA, str(dump)), (SQL, str(server.database))):
        folder = tmp_path / service
        folder.mkdir()
        config = write_config(folder, server, service)
        plan = await import_command(config, source, "--dry-run")
        report = await import_command(config, source)
        again = await import_command(config, source)

        assert plan["nodes"] == report["nodes"]
        (node,) = report["nodes"]
        assert (node["node"], node["kind"], node["added"], node["skipped"]) == ("blog", "feed", 3, [])
        assert (node["affiliations"], node["subscriptions"]) == (2, 1)
        assert (again["nodes"][0]["outcome"], again["nodes"][0]["unchanged"]) == ("unchanged", 3)
        assert stored_dates(folder / "feeds.db") == source_dates(source, service)
        async with running(config):
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
