"""Two services of ours over HTTP: one follows a feed of the other through its hub or its cloud."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smartfeeds.features.polling.source import PushKind
from support.component import ALICE
from support.following import LOOPBACK, Follower, follower
from support.gateway import Gateway, running_gateway
from support.waiting import until
from support.web import Web, WebStarter

NOTIFIED_S = 60  # a notification leads to a poll in this time


@asynccontextmanager
async def services(
    start_web: WebStarter, blank_database: Path, folder: Path, suffix: str, **webhooks: object
) -> AsyncIterator[tuple[Web, Gateway, Follower, Gateway]]:
    """The publisher of the feed notes and its gateway, the follower and its gateway."""
    async with running_gateway() as before_feed, running_gateway() as before_copy:
        feed = await start_web(http={"base_url": before_feed.origin}, webhooks={**LOOPBACK, **webhooks})
        before_feed.target = feed.origin
        await feed.component.create(ALICE, "notes", access_model="open")
        shutil.copy(blank_database, folder / "copy.db")
        web = await start_web(
            store={"url": f"sqlite:///{folder}/copy.db"},
            http={"base_url": before_copy.origin},
            sources={**LOOPBACK, "secret_over_http": True},
        )
        before_copy.target = web.origin
        yield feed, before_feed, await follower(web, f"{before_feed.origin}/feeds/notes{suffix}"), before_copy


def requests(gateway: Gateway, start: str) -> list[str]:
    return [line for line in gateway.asked if line.startswith(start)]


@pytest.mark.parametrize("suffix", ["/", ".atom"])
async def test_lost_push_is_pulled_once(
    start_web: WebStarter, blank_database: Path, tmp_path: Path, suffix: str
) -> None:
    """[SF-044] [WS-132] The chain of cursors shows the gap; one pull from the last cursor closes it."""
    async with services(start_web, blank_database, tmp_path, suffix) as (feed, before_feed, copy, before_copy):
        await feed.component.publish(ALICE, "notes", "zero")
        push = await copy.follow()
        assert push.kind is PushKind.HUB and push.has_secret
        feed.component.clock.advance(1)
        await feed.component.publish(ALICE, "notes", "one")
        await copy.has("one")
        await feed.component.settle()
        known = (await copy.push()).cursor

        before_copy.losing = True
        for item_id in ("two", "three"):
            feed.component.clock.advance(1)
            await feed.component.publish(ALICE, "notes", item_id)
            await feed.component.settle()
        assert before_copy.lost >= 1 and await copy.titles() == ["zero", "one"]

        before_copy.losing = False
        before_feed.asked.clear()
        feed.component.clock.advance(1)
        await feed.component.publish(ALICE, "notes", "four")
        await copy.has("four")
        assert await copy.titles() == ["zero", "one", "two", "three", "four"]
        (pull,) = requests(before_feed, "GET /feeds/notes")
        assert pull == f"GET /feeds/notes{suffix}?since=cursor:{known}&timeout=0"

        before_feed.asked.clear()
        feed.component.clock.advance(1)
        await feed.component.publish(ALICE, "notes", "five")
        await copy.has("five")
        assert requests(before_feed, "GET /feeds/notes") == []


def without_hub(body: bytes, headers: dict[str, str]) -> bytes:
    """A response of a server that has a cloud and no hub, and whose cloud is named by the element of RSS 2.0 alone."""
    headers.pop("Link", None)
    headers.pop("ETag", None)
    return re.sub(rb"<atom:link[^>]*rel=\"hub\"[^>]*/>|<source:cloud[^>]*>[^<]*</source:cloud>", b"", body)


@pytest.mark.parametrize("protocol", ["http-post", "xml-rpc", "soap"])
async def test_follower_is_notified_by_the_cloud(
    start_web: WebStarter, blank_database: Path, tmp_path: Path, protocol: str
) -> None:
    """[RC-056] [RC-058] [RC-059] [RC-069] [RSS-019] [RSS-023] [RSS-024] Each protocol."""
    async with services(start_web, blank_database, tmp_path, ".rss", cloud=protocol) as (
        feed,
        before_feed,
        copy,
        before_copy,
    ):
        before_feed.edit = without_hub
        await feed.component.publish(ALICE, "notes", "zero")
        push = await copy.follow()
        assert (push.kind, push.target.protocol, push.notify) == (PushKind.CLOUD, protocol, protocol)
        door = {"http-post": "/rsscloud/pleaseNotify", "xml-rpc": "/RPC2", "soap": "/rsscloud/soap"}[protocol]
        assert requests(before_feed, "POST") == [f"POST {door}"]

        # The cloud tries the callback when it is registered, which leads to polls that bring nothing.
        while await copy.due_s() <= NOTIFIED_S:
            copy.web.component.clock.advance(NOTIFIED_S)
            await copy.poll()
        before_copy.asked.clear()
        await feed.component.publish(ALICE, "notes", "one")

        async def is_notified() -> bool:
            return await copy.due_s() <= NOTIFIED_S

        await until(is_notified, "the notification")
        assert len(requests(before_copy, "POST /push/")) == 1
        await copy.poll()
        assert await copy.titles() == ["zero", "one"]
