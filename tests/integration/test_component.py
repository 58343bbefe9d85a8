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
