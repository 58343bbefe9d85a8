"""The service is killed between a delivery of the hub and its mark: nothing is lost, and the order stays."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from smartfeeds.local.process import free_port
from support.callbacks import Subscribers, running_subscribers
from support.process import ServiceProcess
from support.publishing import DOMAIN, PublishedSite, prepare
from support.waiting import until


@pytest.fixture
async def subscribers() -> AsyncIterator[Subscribers]:
    async with running_subscribers() as running:
        yield running


async def received(subscribers: Subscribers, item_id: str) -> None:
    """Returns when an item was delivered."""
    pushes = subscribers.pushes["reader"]
    await until(lambda: any(item_id in push.ids.split() for push in pushes), f"the delivery of {item_id}")


async def test_killed_service_delivers_again_and_in_order(subscribers: Subscribers, tmp_path: Path) -> None:
    """[WS-051] [SF-039] [SF-041] Killed before the answer to a delivery, and right after it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    config = tmp_path / "smartfeeds.toml"
    config.write_text(
        f'[component]\njid = "{DOMAIN}"\nsecret = "s"\nport = 1\n[store]\nurl = "sqlite:///{tmp_path}/feeds.db"\n'
        f'[http]\nlisten = "127.0.0.1:{port}"\nbase_url = "{url}"\n[webhooks]\nallowed_networks = ["127.0.0.0/8"]\n'
    )
    token = await prepare(config)
    async with aiohttp.ClientSession() as session, ServiceProcess(config) as service:
        site = PublishedSite(session, url, token)
        await service.start()
        await site.ready()
        await site.subscribe(subscribers.url("reader"))
        # Killed while the callback has the delivery and has not answered.
        gate = subscribers.silence("reader")
        await site.publish("one")
        await subscribers.began.wait()
        await service.end(signal.SIGKILL)
        gate.set()
        del subscribers.receive["reader"]
        await service.start()
        await site.ready()
        await received(subscribers, "one")
        # Killed as soon as the answer is there; the mark is stored a quarter of a second later.
        await site.publish("two")
        await received(subscribers, "two")
        await service.end(signal.SIGKILL)
        await service.start()
        await site.ready()
        await site.publish("three")
        await received(subscribers, "three")
        assert await service.end() == 0
    pushes = subscribers.pushes["reader"]
    items = [item_id for push in pushes for item_id in push.ids.split()]
    firsts = [item_id for number, item_id in enumerate(items) if item_id not in items[:number]]
    assert firsts == ["one", "two", "three"]
    for push in pushes[1:]:
        known = {one.text("fo:last_cursor") for one in pushes} | {one.text("fo:prev_cursor") for one in pushes}
        assert push.text("fo:prev_cursor") in known
    assert "Traceback" not in service.said
