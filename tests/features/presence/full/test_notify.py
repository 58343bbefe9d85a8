"""Notifications by capabilities and by presence on real servers, with slixmpp as an ordinary client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import slixmpp

from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.local.process import HOST
from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import HANG_S

PS = "http://jabber.org/protocol/pubsub"


class Reader(slixmpp.ClientXMPP):
    """A client with the plugins of slixmpp for service discovery, pubsub, capabilities and PEP."""

    def __init__(self, jid: str, password: str) -> None:
        mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
        super().__init__(jid, password, plugin_config={"feature_mechanisms": mechanisms})
        self.enable_plaintext, self.enable_starttls, self.enable_direct_tls = True, False, False
        for plugin in ("xep_0030", "xep_0060", "xep_0115", "xep_0163"):
            self.register_plugin(plugin)
        self.ids: asyncio.Queue[tuple[str, str]] = asyncio.Queue()  # of items: node and id
        self.add_event_handler("pubsub_publish", self._on_publish)

    def _on_publish(self, message: slixmpp.Message) -> None:
        items = message["pubsub_event"]["items"]
        for item in items["substanzas"]:
            self.ids.put_nowait((items["node"], item["id"]))

    async def next_id(self) -> tuple[str, str]:
        return await asyncio.wait_for(self.ids.get(), HANG_S)


@asynccontextmanager
async def reader(server: TestServer, name: str, *nodes: str) -> AsyncIterator[Reader]:
    """A client that requests notifications of these nodes, logged in but without presence."""
    account = await asyncio.to_thread(server.server.account, name)
    client = Reader(f"{account.jid}/desk", account.password)
    online: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    client.add_event_handler("session_start", online.set_result)
    client.connect(HOST, server.server.client_port)
    try:
        await asyncio.wait_for(online, HANG_S)
        await client.get_roster()
        client.plugin["xep_0163"].add_interest(list(nodes))
        await client.plugin["xep_0115"].update_caps(broadcast=False)
        yield client
    finally:
        await client.disconnect(wait=2.0)
        if client._run_out_filters is not None:
            client._run_out_filters.cancel()


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: object, method: str) -> "asyncio.Queue[None]":
    """A queue with an entry for each call of a method that has returned."""
    calls: asyncio.Queue[None] = asyncio.Queue()
    original = getattr(owner, method)

    def call(*args: object, **options: object) -> object:
        result = original(*args, **options)
        calls.put_nowait(None)
        return result

    monkeypatch.setattr(owner, method, call)
    return calls


async def next_call(calls: "asyncio.Queue[None]") -> None:
    await asyncio.wait_for(calls.get(), HANG_S)


async def create(user: Client, service: str, **options: str) -> None:
    fields = "".join(f"<field var='pubsub#{var}'><value>{value}</value></field>" for var, value in options.items())
    form_type = f"<field var='FORM_TYPE'><value>{PS}#node_config</value></field>"
    form = f"<x xmlns='jabber:x:data' type='submit'>{form_type}{fields}</x>"
    answer = await user.set(
        service, f"<pubsub xmlns='{PS}'><create node='news'/><configure>{form}</configure></pubsub>"
    )
    assert answer.get("type") == "result"


async def publish(user: Client, service: str, item_id: str) -> None:
    entry = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{item_id}</title></entry>"
    item = f"<item id='{item_id}'>{entry}</item>"
    answer = await user.set(service, f"<pubsub xmlns='{PS}'><publish node='news'>{item}</publish></pubsub>")
    assert answer.get("type") == "result"


async def test_client_receives_what_its_capabilities_request(
    server: TestServer, client: ClientFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a subscription; the newest item comes with the first presence, and again after a lost link."""
    service = server.take_name()
    alice = await client(server, "alice")
    async with running(write_config(tmp_path, server, service)) as app, reader(server, "bob", "news") as bob:
        await create(alice, service, send_last_published_item="on_sub_and_presence")
        await publish(alice, service, "zero")
        requested = calls_of(monkeypatch, app.parts.get(Presences).interests, "add")
        bob.send_presence()
        bob.send_presence_subscription(pto=service)
        await next_call(requested)
        assert await bob.next_id() == ("news", "zero")
        await publish(alice, service, "one")
        assert await bob.next_id() == ("news", "one")

        app.stream.drop("lost")
        await next_call(requested)
        assert await bob.next_id() == ("news", "one")
        await publish(alice, service, "two")
        assert await bob.next_id() == ("news", "two")


async def test_events_wait_for_the_presence_of_the_subscriber(
    server: TestServer, client: ClientFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = server.take_name()
    alice = await client(server, "alice")
    async with running(write_config(tmp_path, server, service)) as app, reader(server, "bob") as bob:
        await create(alice, service, presence_based_delivery="true")
        noted = calls_of(monkeypatch, app.parts.get(Presences).availability, "note")
        gone = calls_of(monkeypatch, app.parts.get(Presences).availability, "leave")
        granted = calls_of(monkeypatch, app.parts.get(Presences).availability, "watch")
        bob.send_presence()
        bob.send_presence_subscription(pto=service)
        for calls in (granted, granted, noted):
            await next_call(calls)
        await bob.plugin["xep_0060"].subscribe(service, "news")
        await publish(alice, service, "one")
        assert await bob.next_id() == ("news", "one")

        while not gone.empty():
            gone.get_nowait()
        bob.send_presence(ptype="unavailable")
        await next_call(gone)
        for item_id in ("two", "three"):
            await publish(alice, service, item_id)
        await app.dispatcher.idle()
        bob.send_presence()
        assert [await bob.next_id(), await bob.next_id()] == [("news", "two"), ("news", "three")]
        await publish(alice, service, "four")
        assert await bob.next_id() == ("news", "four")
