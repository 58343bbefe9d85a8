"""What every component answers, asked through a real server."""

from pathlib import Path

from smartfeeds import __version__
from support.client import ClientFactory
from support.servers import TestServer
from support.service import running, write_config


async def test_ping_and_version_are_answered(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """[xep-map 238] The version names no operating system; addresses of users of the component answer too."""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name)):
        alice = await client(server, "alice")

        ping = await alice.get(name, '<ping xmlns="urn:xmpp:ping"/>')
        version = await alice.get(name, '<query xmlns="jabber:iq:version"/>')

    assert (ping.get("type"), ping.get("from"), len(ping)) == ("result", name, 0)
    found = {child.tag.rpartition("}")[2]: child.text for child in version[0]}
    assert (found["name"], found["version"]) == ("smartfeeds", __version__)
    assert not found.get("os")


async def test_uptime_time_and_card_are_answered(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """XEP-0012, XEP-0202, XEP-0054: the server passes the queries on, also for an address of a node."""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name)):
        alice = await client(server, "alice")
        for address in (name, f"news@{name}"):
            uptime = await alice.get(address, '<query xmlns="jabber:iq:last"/>')
            time = await alice.get(address, '<time xmlns="urn:xmpp:time"/>')
            card = await alice.get(address, '<vCard xmlns="vcard-temp"/>')

            assert int(uptime[0].get("seconds", "")) < 3_600
            assert time.findtext(".//{urn:xmpp:time}tzo") == "+00:00"
            assert card.findtext(".//{vcard-temp}FN") == "Smart Feeds"
