"""The hub and subscribers that are not ours, each as a process: the npm package pubsubhubbub, Flask-WebSub, and
mod_pubsub_feeds of Prosody.
"""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.view import Order
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.hub.requests import HUB
from smartfeeds.local.process import free_port
from smartfeeds.service.context import Context
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import Publish
from smartfeeds.store.base import ReadTx
from support.component import ALICE, DOMAIN, entry
from support.lines import PEERS, running
from support.waiting import until, wait_for, waiting
from support.web import Web, WebStarter

JS = Path(__file__).parent / "js" / "hub.js"
FLASK = Path(__file__).parent / "flask_subscriber.py"


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


async def publish(web: Web, item_id: str) -> None:
    sender = parse_jid(ALICE)
    assert sender is not None
    draft = draft_of(etree.fromstring(entry(item_id)))
    await web.component.app.service.handle(Publish(sender, DOMAIN, "notes", item_id, draft))


async def active(web: Web) -> None:
    """Returns when a subscription is active."""
    store = web.component.app.service.store

    async def is_active() -> bool:
        return any(row.active for row in await store.read(lambda tx: callback_rows.callbacks(tx, HUB, 0, 9)))

    await until(is_active, "the subscription")


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
    assert PEERS.exists(), "tools/setup test-all installs Flask-WebSub"
    topic, _ = links(web, ".atom")
    await publish(web, "old")
    async with running(str(PEERS), str(FLASK), str(free_port()), topic) as lines:
        await lines.event("success_subscribe")
        await active(web)
        await publish(web, "first")
        event = await lines.event("listener")
        assert event["topic"] == topic and "first" in event["body"] and "old" not in event["body"]


PROSODY = """\
{root}daemonize = false
data_path = "{folder}"
c2s_ports = {{ }}
s2s_ports = {{ }}
https_ports = {{ }}
http_ports = {{ {port} }}
http_interfaces = {{ "127.0.0.1" }}
http_default_host = "pubsub.localhost"
http_external_url = "http://127.0.0.1:{port}/"
modules_enabled = {{ "posix" }}
modules_disabled = {{ "s2s", "tls", "c2s", "offline" }}
log = {{ debug = "{folder}/prosody.log" }}
VirtualHost "localhost"
Component "pubsub.localhost" "pubsub"
    modules_enabled = {{ "pubsub_feeds" }}
    feeds = {{ planet = "{topic}" }}
    use_pubsubhubub = true
    feed_pull_interval_seconds = 86400
"""


async def test_prosody_finds_the_hub_and_takes_deliveries(web: Web, tmp_path: Path) -> None:
    """[WS-019] [WS-041] [WS-067] [WS-081] It reads the hub from the document, and takes sha1 only (202, else 401)."""
    topic, _ = links(web, ".atom")
    await publish(web, "old")
    config = tmp_path / "prosody.cfg.lua"
    root = "run_as_root = true\n" if os.geteuid() == 0 else ""
    config.write_text(PROSODY.format(root=root, folder=tmp_path, port=free_port(), topic=topic))
    process = await asyncio.create_subprocess_exec(
        *("prosody", "--config", str(config), "-F"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await active(web)
        for item_id in ("first", "second"):
            await publish(web, item_id)
            assert await result_of_newest(web) == "answered 202"
    finally:
        process.terminate()
        await wait_for(process.wait(), "the end of the peer")


async def result_of_newest(web: Web) -> str:
    """The answer to the delivery that has reached the newest item."""
    service, dispatcher = web.component.app.service, web.component.app.dispatcher

    def read(tx: ReadTx, _context: Context) -> tuple[Callback, bool]:
        (row,), node = callback_rows.callbacks(tx, HUB, 0, 9), tx.node("notes")
        assert node is not None
        mark = tx.mark(node.node_no, Order.MODIFIED, row.consumer.name)
        return row, mark is not None and mark.key_us == node.last_modified_us and bool(row.result)

    async with waiting("the delivery of the newest item"):
        while True:
            row, done = await service.read(read)
            assert dispatcher.failure(row.consumer) is None, row
            if done:
                return row.result
            await asyncio.sleep(0)
