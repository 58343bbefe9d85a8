"""The service is killed right after its response to a push: what it has taken is not lost, and nothing comes twice."""

import asyncio
import signal
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.local.process import free_port
from smartfeeds.service.requests import CreateNode
from support.polling import atom
from support.process import ServiceProcess
from support.pushing import signature
from support.service import stored_service
from support.waiting import HANG_S

DOMAIN, OWNER = "feeds.example.org", "alice@example.org"
PASSWORD, HUB_KEY = "pa55word", "k3yOfTheHub"
LOGIN = b64encode(f"carol:{PASSWORD}".encode()).decode()


@dataclass
class Blog:
    """A feed with a hub. `titles` are the entries that a poll finds, `forms` the requests to the hub."""

    titles: list[str] = field(default_factory=lambda: ["a"])
    forms: list[dict[str, str]] = field(default_factory=list)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    checks: set["asyncio.Task[None]"] = field(default_factory=set)
    url: str = ""

    async def feed(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Basic " + LOGIN
        links = f'<link rel="hub" href="{self.url}/hub?{HUB_KEY}"/><link rel="self" href="{self.url}/feed"/>'
        return web.Response(body=atom(*reversed(self.titles), inner=links))

    async def hub(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl((await request.read()).decode()))
        self.forms.append(form)
        self.checks.add(asyncio.create_task(self._check(form)))
        return web.Response(status=202)

    async def _check(self, form: dict[str, str]) -> None:
        names = ("hub.mode", "hub.topic", "hub.lease_seconds")
        query = urlencode({name: form[name] for name in names} | {"hub.challenge": "c1"})
        async with aiohttp.ClientSession() as session, session.get(f"{form['hub.callback']}?{query}") as answer:
            assert (answer.status, await answer.text()) == (200, "c1")
        self.confirmed.set()

    async def push(self, *titles: str) -> int:
        """The status of a push."""
        form, body = self.forms[-1], atom(*titles)
        headers = {"X-Hub-Signature": signature(form["hub.secret"], body), "Content-Type": "application/atom+xml"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(form["hub.callback"], data=body, headers=headers) as answer,
        ):
            return answer.status


@asynccontextmanager
async def running_blog() -> AsyncIterator[Blog]:
    blog = Blog()
    app = web.Application()
    app.router.add_get("/feed", blog.feed)
    app.router.add_post("/hub", blog.hub)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    blog.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield blog
    finally:
        await runner.cleanup()


async def prepare(config: Path, address: str) -> None:
    """The feed news, filled from an address."""
    async with stored_service(config) as service:
        owner = parse_jid(OWNER)
        assert owner is not None
        await service.handle(CreateNode(owner, DOMAIN, "news", None))
        source = new_source("news", address, 0)
        await service.write(lambda tx, context: add_source(tx, context, source))


async def make_due(config: Path) -> None:
    """Checks that the store has the push, and makes the source due in ten seconds: the service spreads overdue polls
    over a minute after its start.
    """
    async with stored_service(config) as service:
        (source,) = await service.read(lambda tx, _context: source_rows.sources(tx, 0, 2))
        pushes = await service.read(lambda tx, _context: source_push_rows.pushes_of(tx, source.source_no))
        entries = await service.read(lambda tx, _context: source_rows.entries(tx, source.source_no))
        await service.write(
            lambda tx, context: source_rows.put(tx, replace(source, due_us=context.now_us + 10 * US_PER_S))
        )
    assert any(push.pending_us for push in pushes) or len(entries) == 2, "the push was lost"


async def wait_for(url: str, *titles: str) -> list[str]:
    """The titles of the feed, as soon as these are among them."""
    async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/feeds/news.jsonfeed") as answer:
                    stored = [item["title"] for item in (await answer.json(content_type=None))["items"]]
            except aiohttp.ClientConnectionError:
                stored = []
            if set(titles) <= set(stored):
                return stored
            await asyncio.sleep(0.05)


async def test_killed_service_loses_no_push_and_logs_no_secret(tmp_path: Path) -> None:
    """[WS-119] [WS-076] Killed with the response; the source names the item in its polls, too."""
    port, config = free_port(), tmp_path / "smartfeeds.toml"
    url = f"http://127.0.0.1:{port}"
    config.write_text(
        f'[component]\njid = "{DOMAIN}"\nsecret = "c0mponent"\nport = 1\n[store]\nurl = "sqlite:///{tmp_path}/feeds.db"\n'
        f'[http]\nlisten = "127.0.0.1:{port}"\nbase_url = "{url}"\n[log]\nlevel = "debug"\n'
        '[sources]\nallowed_networks = ["127.0.0.0/8"]\nsecret_over_http = true\n'
    )
    async with running_blog() as blog, ServiceProcess(config) as service:
        await prepare(config, f"{blog.url.replace('://', f'://carol:{PASSWORD}@')}/feed")
        await service.start()
        await wait_for(url, "a")
        async with asyncio.timeout(HANG_S):
            await blog.confirmed.wait()
        blog.titles.append("b")
        assert await blog.push("b") == 202
        await service.end(signal.SIGKILL)
        await make_due(config)
        await service.start()
        await wait_for(url, "a", "b")
        # In the order of arrival, with a repetition that a hub sends after a time-out.
        assert [await blog.push("c"), await blog.push("c"), await blog.push("d")] == [202] * 3
        await wait_for(url, "c", "d")
        assert await service.end() == 0
        await service.start()
        stored = await wait_for(url, "a", "b", "c", "d")
        assert await service.end() == 0
        await asyncio.gather(*blog.checks)
    assert sorted(stored) == ["a", "b", "c", "d"]
    log = service.said
    assert "Traceback" not in log and "source_polled" in log
    form = blog.forms[0]
    secrets = (PASSWORD, LOGIN, form["hub.secret"], form["hub.callback"].rpartition("/")[2], "c0mponent")
    assert [line for line in log.splitlines() if any(secret in line for secret in secrets)] == []
