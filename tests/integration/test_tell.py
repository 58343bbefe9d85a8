"""One command follows a blog and pushes it to a phone: `smartfeeds source add URL --tell JID`."""

import asyncio
import os
import sys
from pathlib import Path

from support.client import Client, ClientFactory
from support.polling import atom
from support.servers import TestServer
from support.service import running, write_config
from support.website import running_site

ROOT = Path(__file__).parents[2]
BODY = "{jabber:client}body"


async def next_text(person: Client) -> str:
    """The next message with a text."""
    while True:
        text = (await person.next_message()).findtext(BODY)
        if text:
            return text


async def smartfeeds(folder: Path, *arguments: str) -> None:
    """A command beside the running service."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "component")}
    command = [sys.executable, "-m", "smartfeeds", *arguments]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment)
    assert await process.wait() == 0


async def test_entries_of_a_blog_reach_a_phone(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """[SRC-083] What the blog has, then what comes; no node, no subscription and no setting was there before."""
    settings = write_config(tmp_path, server, server.take_name(), sources={"allowed_networks": ["127.0.0.0/8"]})
    async with running_site() as site, running(settings):
        site.pages["/feed"] = atom("one", *(f"old {number}" for number in range(30)))
        alice = await client(server, "alice")
        await smartfeeds(
            tmp_path, "source", "add", site.url("/feed"), "--node", "blog", "--told", "1", "--tell", alice.bare
        )
        assert (await next_text(alice)).startswith("one\nA blog (blog)\n")
        await smartfeeds(tmp_path, "publish", "blog", "two")
        assert (await next_text(alice)).startswith("two\n")
