"""Presence between the service and users of real servers (RFC 6121)."""

import asyncio
from pathlib import Path

import pytest

from smartfeeds.app.lifecycle import App
from smartfeeds.features.presence.states import OnlineResource
from smartfeeds.features.presence.xmpp import Presences
from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import HANG_S

PS = "http://jabber.org/protocol/pubsub"
DIARY = (
    f"<pubsub xmlns='{PS}'><create node='diary'/><configure><x xmlns='jabber:x:data' type='submit'>"
    f"<field var='FORM_TYPE'><value>{PS}#node_config</value></field>"
    "<field var='pubsub#access_model'><value>presence</value></field></x></configure></pubsub>"
)
ITEMS = f"<pubsub xmlns='{PS}'><items node='diary'/></pubsub>"
PING = "<ping xmlns='urn:xmpp:ping'/>"


async def presence_from(user: Client, service: str) -> str:
    """The type of the next presence from the service."""
    while True:
        presence = await user.next_presence()
        if presence.get("from") == service:
            return presence.get("type", "")


async def befriend(user: Client, service: str) -> None:
    """Subscribes a user to the presence of the service and grants its request, as a client does."""
    # Servers send `subscribed` only to resources that have requested the roster (RFC 6121 section 3.1.6).
    await user.get(user.bare, "<query xmlns='jabber:iq:roster'/>")
    user.send_raw(f"<presence type='subscribe' to='{service}'/>")
    kinds = {await presence_from(user, service) for _ in range(3)}
    assert kinds == {"subscribed", "", "subscribe"}
    user.send_raw(f"<presence type='subscribed' to='{service}'/>")
    # The service has handled the presence of the user when it answers.
    await user.get(service, PING)


async def test_contacts_see_the_service_and_are_seen(
    server: TestServer, client: ClientFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A contact goes online, reads, survives a lost link and goes offline; another one sees the service stop."""
    name = server.take_name()
    alice, bob = await client(server, "alice"), await client(server, "bob")
    async with running(write_config(tmp_path, server, name, pubsub={"contacts": ["localhost"]})) as app:
        availability = app.parts.get(Presences).availability
        assert (await alice.set(name, DIARY)).get("type") == "result"
        refusal = await bob.get(name, ITEMS)
        assert refusal.find(f".//{{{PS}#errors}}presence-subscription-required") is not None

        await befriend(bob, name)
        assert availability.resources(name, bob.bare) == {"test": OnlineResource()}
        assert (await bob.get(name, ITEMS)).get("type") == "result"

        await cut_link(app, monkeypatch)
        assert await presence_from(bob, name) == ""
        assert availability.resources(name, bob.bare) == {"test": OnlineResource()}

        gone = event_after(app, "leave", monkeypatch)
        bob.send_raw("<presence type='unavailable'/>")
        await asyncio.wait_for(gone.wait(), HANG_S)
        assert availability.resources(name, bob.bare) == {}

        await befriend(alice, name)
    # Prosody probes the service when it has accepted the subscription, so available presence may come first.
    while await presence_from(alice, name) != "unavailable":
        pass


async def test_contact_that_unsubscribes_is_forgotten(
    server: TestServer, client: ClientFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.take_name()
    bob = await client(server, "bob")
    async with running(write_config(tmp_path, server, name, pubsub={"contacts": ["localhost"]})) as app:
        await befriend(bob, name)
        forgotten = event_after(app, "forget", monkeypatch)
        bob.send_raw(f"<presence type='unsubscribe' to='{name}'/>")
        await asyncio.wait_for(forgotten.wait(), HANG_S)
        assert await app.service.read(lambda tx, _: tx.contact(name, bob.bare)) is None
        assert app.parts.get(Presences).availability.resources(name, bob.bare) == {}


def event_after(app: App, method: str, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """An event that is set when a method of the availability was called."""
    called = asyncio.Event()
    original = getattr(app.parts.get(Presences).availability, method)

    def call(*args: object) -> object:
        result = original(*args)
        called.set()
        return result

    monkeypatch.setattr(app.parts.get(Presences).availability, method, call)
    return called


async def cut_link(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drops the link, and waits until a contact has answered a probe over the next one."""
    noted = event_after(app, "note", monkeypatch)
    app.stream.drop("lost")
    await asyncio.wait_for(noted.wait(), HANG_S)
