"""The two real servers that tests run against, and the client that talks to them."""

from pathlib import Path

import pytest

from smartfeeds.errors import ConfigError, LinkError
from smartfeeds.local.process import free_port, is_listening
from smartfeeds.local.prosody import Prosody
from support.client import ClientFactory
from support.servers import TestServer
from support.waiting import HANG_S

VERSION = '<query xmlns="jabber:iq:version"/>'


async def test_client_asks_the_server_for_its_version_gets_its_name(server: TestServer, client: ClientFactory) -> None:
    alice = await client(server, "alice")

    answer = await alice.get("localhost", VERSION)

    assert answer.get("type") == "result"
    assert answer.findtext(".//{jabber:iq:version}name", "").lower() == server.software.lower()


async def test_client_sends_message_other_client_receives_it_as_written(
    server: TestServer, client: ClientFactory
) -> None:
    alice, bob = await client(server, "alice"), await client(server, "bob")

    alice.send_raw(f'<message to="{bob.jid}"><x xmlns="urn:x" xmlns:y="urn:y" y:a="1">&amp;</x></message>')
    message = await bob.next_message()

    found = message.find("{urn:x}x")
    assert found is not None
    assert (found.get("{urn:y}a"), found.text) == ("1", "&")


async def test_messages_reach_all_clients_of_an_account(prosody: TestServer, client: ClientFactory) -> None:
    """XEP-0280: who answers an entry on the phone sees it on the desktop, too."""
    phone, desktop = await client(prosody, "alice", "phone"), await client(prosody, "alice", "desktop")
    bob = await client(prosody, "bob")
    enabled = await desktop.set(desktop.bare, "<enable xmlns='urn:xmpp:carbons:2'/>")
    assert enabled.get("type") == "result"

    phone.send_raw(f"<message to='{bob.jid}' type='chat'><body>hello</body></message>")
    message = await desktop.next_message()

    assert message.find("{urn:xmpp:carbons:2}sent") is not None


async def test_client_asks_absent_component_gets_an_error_answer(server: TestServer, client: ClientFactory) -> None:
    alice = await client(server, "alice")

    answer = await alice.get(server.take_name(), VERSION)

    assert answer.get("type") == "error"


def test_prosody_restarted_keeps_ports_and_accounts(tmp_path: Path) -> None:
    server = Prosody(tmp_path, {"feeds.localhost": "secret"})
    server.start()
    try:
        server.account("alice", "one")
        ports = (server.client_port, server.component_port)
        server.stop()
        server.start()

        assert all(is_listening(port) for port in ports)
        assert (server.folder / "data/localhost/accounts/alice.dat").exists()
    finally:
        server.stop()

    assert not any(is_listening(port) for port in ports)


def test_prosody_left_behind_by_a_killed_run_is_ended_by_the_next_start(tmp_path: Path) -> None:
    first = Prosody(tmp_path, {"feeds.localhost": "secret"})
    first.start()
    assert first.process is not None
    second = Prosody(tmp_path, first.components, client_port=first.client_port, component_port=first.component_port)

    second.start()
    try:
        assert first.process.wait(HANG_S) is not None
        assert second.running
    finally:
        second.stop()


def test_server_port_taken_by_another_program_says_so(tmp_path: Path, prosody: TestServer) -> None:
    clashing = Prosody(tmp_path, {}, client_port=prosody.client_port, component_port=free_port())

    with pytest.raises(LinkError, match=f"port {prosody.client_port} is in use"):
        clashing.start()


def test_server_program_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prosody, "program", "no-such-program")

    with pytest.raises(ConfigError, match="apt-get install --no-install-recommends prosody"):
        Prosody.find_program()
