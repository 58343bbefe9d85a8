"""A real sat-pubsub is replaced: its users keep their nodes and subscriptions, and do nothing."""

import asyncio
from pathlib import Path

import pytest
from lxml import etree

from features.moving_in.running_sat_pubsub import running_sat_pubsub, wait_for_answers
from smartfeeds.formats.payload import accept_payload
from support.client import Client, ClientFactory
from support.postgres import PostgresServer
from support.servers import TestServer
from support.service import running, write_config
from support.shell import shell_in

PS = "http://jabber.org/protocol/pubsub"
OWNER, EVENT = f"{PS}#owner", f"{{{PS}#event}}"


def publish(item: str, text: str) -> str:
    entry = (
        f'<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:x:{text}</id><title>{text} é 日本 &amp; &lt;x&gt;</title>'
        "<updated>2026-01-02T03:04:05Z</updated></entry>"
    )
    return f'<publish node="blog"><item id="{item}">{entry}</item></publish>'


async def change(client: Client, service: str, payload: str, space: str = PS) -> None:
    response = await client.set(service, f'<pubsub xmlns="{space}">{payload}</pubsub>')
    assert response.get("type") == "result", etree.tostring(response)


async def published(client: Client, service: str) -> dict[str, bytes]:
    """The items that a service returns, in canonical form."""
    response = await client.get(service, f'<pubsub xmlns="{PS}"><items node="blog"/></pubsub>')
    return {item.get("id", ""): bytes(accept_payload(item[0])) for item in response.iter(f"{{{PS}}}item")}


async def next_items(client: Client, service: str) -> list[str]:
    """The ids in the next message of a service."""
    while (message := await client.next_message()).get("from") != service:
        pass
    return [item.get("id", "") for item in message.iter(f"{EVENT}item")]


async def test_users_do_not_notice_the_move(
    prosody: TestServer,
    postgres: PostgresServer,
    client: ClientFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[IMP-040] [IMP-042] [IMP-060] [IMP-065] The service takes the place of sat-pubsub under the same JID."""
    service, url = prosody.take_name(), postgres.create_database()
    alice, bob = await client(prosody, "alice"), await client(prosody, "bob")
    async with running_sat_pubsub(prosody, service, url, tmp_path) as process:
        await wait_for_answers(process, alice, service)
        await change(alice, service, '<create node="blog"/>')
        await change(bob, service, f'<subscribe node="blog" jid="{bob.bare}"/>')
        for item in ("i0", "i1", "i2"):
            await change(alice, service, publish(item, item))
            assert await next_items(bob, service) == [item]
        await change(alice, service, publish("i1", "edited"))
        assert await next_items(bob, service) == ["i1"]
        await change(alice, service, '<retract node="blog"><item id="i2"/></retract>')
        affiliation = '<affiliation jid="carol@localhost" affiliation="publisher"/>'
        await change(alice, service, f'<affiliations node="blog">{affiliation}</affiliations>', OWNER)
        before = await published(alice, service)
        assert sorted(before) == ["i0", "i1"]
    bob.messages.clear()
    run = shell_in(tmp_path, monkeypatch)
    config = write_config(tmp_path, prosody, service)

    output = (await asyncio.to_thread(run, "import", "--from", "sat-pubsub", url)).output
    async with running(config):
        assert await published(alice, service) == before
        await change(alice, service, publish("i9", "after the move"))
        assert await next_items(bob, service) == ["i9"]
        affiliations = await alice.get(service, f'<pubsub xmlns="{OWNER}"><affiliations node="blog"/></pubsub>')
    postgres.drop_database(url)

    assert "1 node moved." in output
    assert {part.get("jid"): part.get("affiliation") for part in affiliations.iter(f"{{{OWNER}}}affiliation")} == {
        alice.bare: "owner",
        "carol@localhost": "publisher",
    }
