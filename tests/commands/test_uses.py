"""The five uses of docs/uses.md: its two programs, killed and started again, with the real service."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from smartfeeds.local.process import HOST, free_port
from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
VIEWS = re.findall(r"(?m)^\| \*\*.*\| `comments\?(.*)` \|$", (ROOT / "docs" / "uses.md").read_text())
PUBSUB = "http://jabber.org/protocol/pubsub"
NAMESPACES = "xmlns='http://www.w3.org/2005/Atom' xmlns:thr='http://purl.org/syndication/thread/1.0'"
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Comments:
    """The feed `comments`, with one who writes in it."""

    writer: Client
    domain: str
    origin: str

    async def ask(self, payload: str) -> None:
        reply = await self.writer.set(self.domain, f"<pubsub xmlns='{PUBSUB}'>{payload}</pubsub>")
        assert reply.get("type") == "result"

    async def write(self, item_id: str, title: str, author: str, answered: str = "article-1") -> None:
        entry = (
            f"<entry {NAMESPACES}><title>{title}</title><author><name>{author}</name></author>"
            f"<thr:in-reply-to ref='{answered}'/></entry>"
        )
        await self.ask(f"<publish node='comments'><item id='{item_id}'>{entry}</item></publish>")

    async def delete(self, item_id: str) -> None:
        await self.ask(f"<retract node='comments'><item id='{item_id}'/></retract>")

    async def titles(self, view: str) -> dict[str, str]:
        """What the view shows, by id."""
        url = f"{self.origin}/feeds/comments/?{view}&since=time:0&timeout=0&max=50"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return {item["id"]: item["title"] for item in (await answer.json())["items"] if "deleted" not in item}


@asynccontextmanager
async def program(name: str, *arguments: str) -> AsyncIterator[None]:
    """An example, running; killed at the end without a chance to tidy up."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / name), *arguments, env={**os.environ, "PYTHONPATH": str(ROOT / "component")}
    )
    try:
        yield
        assert process.returncode is None, f"{name} has ended"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


def copied(path: Path) -> dict[str, str] | None:
    """The copy of a program, None before there is one."""
    if not path.exists():
        return None
    db = sqlite3.connect(path)
    try:
        return dict(db.execute("SELECT id, title FROM items"))
    except sqlite3.OperationalError:
        return None  # the program has not made its tables yet
    finally:
        db.close()


def forget(path: Path) -> None:
    """Empties a copy, and its place: what a lost delivery does, as far as a gap can go."""
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM items")
        db.execute("DELETE FROM place")
    db.close()


async def equal(paths: list[Path], wanted: dict[str, str]) -> None:
    """Returns when all copies are as wanted."""
    try:
        async with asyncio.timeout(WAIT_S):
            while any(copied(path) != wanted for path in paths):  # noqa: ASYNC110 - files of other processes
                await asyncio.sleep(0.02)
    except TimeoutError:
        assert [copied(path) for path in paths] == [wanted] * len(paths)


def test_page_shows_five_uses() -> None:
    assert len(VIEWS) == 5


@pytest.mark.parametrize("view", VIEWS)
async def test_copies_by_websub_and_xmpp_equal_the_view(
    server: TestServer, client: ClientFactory, tmp_path: Path, view: str
) -> None:
    """[SF-003] [SF-005] [SF-047] [SF-079] [SF-080]: edits, deletions and what came while the programs were away."""
    domain, port = server.take_name(), free_port()
    origin = f"http://{HOST}:{port}"
    settings = write_config(
        tmp_path,
        server,
        domain,
        http={"listen": f"{HOST}:{port}", "base_url": origin},
        webhooks={"allowed_networks": ["127.0.0.0/8"]},
    )
    paths = [tmp_path / "websub.db", tmp_path / "xmpp.db"]
    callback = f"http://{HOST}:{free_port()}/comments"
    by_websub = ("copy_by_websub.py", f"{origin}/feeds/comments/?{view}", str(paths[0]), callback)
    account = await asyncio.to_thread(server.server.account, "reader")
    node = quote(f"comments?{view}", safe="=&")
    by_xmpp = ("copy_by_xmpp.py", f"xmpp:{domain}?;node={node}", str(paths[1]), account.jid, account.password)
    by_xmpp = (*by_xmpp, f"{HOST}:{server.client_port}")
    async with running(settings):
        comments = Comments(await client(server, "alice"), domain, origin)
        await comments.ask("<create node='comments'/>")
        await comments.write("c1", "Green tea", "alice")
        await comments.write("c2", "Coffee", "bob")
        async with program(*by_websub), program(*by_xmpp):
            await equal(paths, await comments.titles(view))
            await comments.write("c3", "More tea", "alice")
            await comments.write("c4", "Tea for me too", "bob", "c1")
            await equal(paths, await comments.titles(view))
            forget(paths[0])
            await comments.write("c7", "Tea of alice", "alice")
            await comments.write("c8", "Tea in reply", "alice", "c1")
            await equal(paths, await comments.titles(view))
        await comments.delete("c1")
        await comments.write("c3", "More coffee", "alice")
        await comments.write("c5", "A like of tea", "carol", "c3")
        async with program(*by_websub), program(*by_xmpp):
            await comments.write("c6", "Tea at five", "alice", "c3")
            await comments.delete("c4")
            await equal(paths, await comments.titles(view))
            assert await comments.titles(view)
