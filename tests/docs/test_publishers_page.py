"""docs/publishers.md: its commands run against a service, and its two ways push to a subscriber of the hub."""

import re
import textwrap
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest

from smartfeeds.core.token import TokenScope
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.local.process import free_port
from support.bearer import bearer
from support.callbacks import Subscribers, running_subscribers
from support.component import ALICE
from support.polling import atom
from support.shell import run_process
from support.waiting import until
from support.web import Web, WebStarter
from support.website import running_site

PAGE = (Path(__file__).parents[2] / "docs" / "publishers.md").read_text()
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}
TITLE = "{http://www.w3.org/2005/Atom}entry/{http://www.w3.org/2005/Atom}title"


@pytest.fixture
async def blog(start_web: WebStarter, monkeypatch: pytest.MonkeyPatch) -> Web:
    """A service that has the feed blog of Alice, at its public address. It looks for new sources all the time."""
    monkeypatch.setattr("smartfeeds.features.polling.poller.LOOK_S", 0.05)
    address = f"127.0.0.1:{free_port()}"
    web = await start_web(
        http={"listen": address, "base_url": f"http://{address}"}, webhooks=LOOPBACK, sources=LOOPBACK
    )
    await web.component.create(ALICE, "blog", access_model="open")
    return web


@pytest.fixture
async def subscribers(blog: Web) -> AsyncIterator[Subscribers]:
    """A subscriber of the feed blog, confirmed."""
    async with running_subscribers() as running:
        topic = f"{blog.origin}/feeds/blog/"
        form = {"mode": "subscribe", "topic": topic, "callback": running.url("reader"), "verify": "sync"}
        body = urlencode({f"hub.{name}": value for name, value in form.items()}).encode()
        got = await blog.ask("POST", "/hub", body, Content_Type="application/x-www-form-urlencoded")
        assert got.status == 204, got.text
        yield running


async def titles(subscribers: Subscribers, count: int) -> list[str | None]:
    """The titles of the deliveries, when there are so many."""

    def found() -> list[str | None]:
        return [e.text for push in subscribers.pushes["reader"] for e in push.root.findall(TITLE)]

    await until(lambda: len(found()) >= count, f"{count} deliveries")
    return found()


async def test_commands_publish_and_push(blog: Web, subscribers: Subscribers, tmp_path: Path) -> None:
    """[SF-074] The whole page in one shell, twice: what is unchanged is not delivered again."""
    token = (await bearer(blog, ALICE, TokenScope.PUBLISH, "blog")).removeprefix("Bearer ")
    script = "\n".join(map(textwrap.dedent, re.findall(r"(?ms)^ *```sh http\n(.*?)^ *```$", PAGE)))
    assert script.count("curl") == 5
    for expected in (["Hello, world", "Spring"], ["Hello, world", "Spring", "Hello, world"]):
        command = ["bash", "-euxo", "pipefail", "-c", script]
        status, output = await run_process(command, tmp_path, FEEDS=blog.origin, TOKEN=token)
        assert status == 0, output
        assert f"<{blog.origin}/feeds/blog/hub/>" in output and "rsscloud" in output.lower()
        assert await titles(subscribers, len(expected)) == expected
    await blog.component.publish(ALICE, "blog", "last")
    assert await titles(subscribers, 4) == ["Hello, world", "Spring", "Hello, world", "last"]


async def test_blog_elsewhere_is_pushed_on(blog: Web, subscribers: Subscribers) -> None:
    """[SRC-083] From the poll of a blog without a hub to a callback."""
    async with running_site() as site:
        site.pages["/feed"] = atom("First post")
        source = new_source("blog", site.url("/feed"), blog.component.clock())
        await blog.component.app.service.write(partial(add_source, source=source))
        assert await titles(subscribers, 1) == ["First post"]


def test_hub_of_the_page_is_that_of_a_feed() -> None:
    """The lines for the head of a web site have the addresses that a feed names."""
    assert 'rel="hub" href="https://feeds.example.org/feeds/blog/hub/"' in PAGE
    assert 'href="https://feeds.example.org/feeds/blog.atom"' in PAGE
