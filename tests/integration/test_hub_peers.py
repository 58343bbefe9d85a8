"""The hub and subscribers that are not ours: the npm package pubsubhubbub and Flask-WebSub, each as a process."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from smartfeeds.core.jid import parse_jid
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.hub import HUB
from smartfeeds.service.requests import Publish
from support.component import ALICE, DOMAIN, entry
from support.ports import free_port
from support.web import Web, WebStarter

DEADLINE_S = 50.0
JS = Path(__file__).parent / "js" / "hub.js"
FLASK = Path(__file__).parent / "flask_subscriber.py"
PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


@pytest.fixture
async def web(start_web: WebStarter) -> Web:
    """A component whose public address is its own port, with the feed notes."""
    port = free_port()
    web = await start_web(
        http={"listen": f"127.0.0.1:{port}", "base_url": f"http://127.0.0.1:{port}"},
        webhooks={"allowed_networks": ["127.0.0.0/8"]},
    )
    await web.component.create(ALICE, "notes", access_model="open")
    return web


@asynccontextmanager
async def running(*command: str) -> AsyncIterator["Lines"]:
    """A program that ends with its input."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Lines(process.stdout)
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), DEADLINE_S)


class Lines:
    """The events of a program, and what else it says for the message of a failure."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self.others: list[str] = []

    async def event(self, name: str) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while line := (await self._stream.readline()).decode():
                if not line.startswith("{"):
                    self.others.append(line)
                    continue
                event: dict[str, Any] = json.loads(line)
                assert event["event"] == name, (event, self.others)
                return event
        raise AssertionError(self.others)


async def publish(web: Web, item_id: str) -> None:
    sender = parse_jid(ALICE)
    assert sender is not None
    draft = draft_of(etree.fromstring(entry(item_id)))
    await web.component.app.service.handle(Publish(sender, DOMAIN, "notes", item_id, draft))


async def active(web: Web) -> None:
    """Returns when a subscription is active."""
    async with asyncio.timeout(DEADLINE_S):
        store = web.component.app.service.store
        while not any(row.active for row in await store.read(lambda tx: tx.callbacks(HUB, 0, 9))):  # noqa: ASYNC110
            await asyncio.sleep(0)


def links(web: Web, topic: str) -> tuple[str, str]:
    return f"{web.origin}/feeds/notes{topic}", f"{web.origin}/feeds/notes/hub/"


@pytest.mark.parametrize("suffix", ["/", ".atom", ".rss"])
async def test_package_pubsubhubbub_subscribes_and_receives(web: Web, suffix: str) -> None:
    """[WS-019] [WS-031] [WS-053] [WS-054]"""
    node = shutil.which("node")
    assert node, "node is missing: apt-get install nodejs npm"
    topic, hub = links(web, suffix)
    async with running(node, str(JS), str(free_port()), topic, hub) as lines:
        subscribed = await lines.event("subscribe")
        assert subscribed["topic"] == topic
        await active(web)
        await publish(web, "first")
        feed = await lines.event("feed")
        assert (feed["topic"], feed["hub"]) == (topic, hub)
        assert "first" in feed["body"]
        await publish(web, "second")
        assert "second" in (await lines.event("feed"))["body"]


async def test_flask_websub_discovers_subscribes_and_receives(web: Web) -> None:
    """[WS-031] [WS-066] [WS-080] It finds the hub itself, and checks the signature."""
    assert PEERS.exists(), "tools/setup test installs Flask-WebSub"
    topic, _ = links(web, ".atom")
    await publish(web, "old")
    async with running(str(PEERS), str(FLASK), str(free_port()), topic) as lines:
        await lines.event("success_subscribe")
        await active(web)
        await publish(web, "first")
        event = await lines.event("listener")
        assert event["topic"] == topic and "first" in event["body"] and "old" not in event["body"]
