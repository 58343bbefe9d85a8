"""Sources that several processes on one PostgreSQL database could poll."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from features.cluster.processes import instance_at
from smartfeeds import system
from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.jid import Jid
from smartfeeds.delivery.shards import SHARDS, shard_of_name
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import new_source
from smartfeeds.service.requests import CreateNode
from support.polling import atom
from support.postgres import PostgresServer
from support.waiting import until
from support.website import Site, running_site

DOMAIN = "feeds.example.org"
PATH = "/feed.xml"


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@contextlib.asynccontextmanager
async def running(url: str) -> AsyncIterator[App]:
    """A process without a link, which may poll this machine."""
    app = App(
        settings_of(
            component={"jid": DOMAIN, "link": "off"},
            store={"url": url, "lease_s": 60.0},
            http={"listen": ""},
            sources={"allowed_networks": ["127.0.0.0/8"]},
        )
    )
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def has_items(app: App) -> bool:
    node = await app.service.read(lambda tx, _context: tx.node("news"))
    return node is not None and node.live > 0


async def test_source_is_polled_by_one_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-075] The other one takes over when it ends."""
    shard = shard_of_name("sources")
    instances = iter((instance_at(shard), instance_at((shard + SHARDS // 2) % SHARDS)))
    monkeypatch.setattr("smartfeeds.system.new_instance", lambda: next(instances))
    monkeypatch.setattr("smartfeeds.features.cluster.ownership.BEAT_S", 0.1)
    async with running_site() as site, contextlib.AsyncExitStack() as stack:
        site.pages[PATH] = atom("a")
        async with running(url) as first:
            second = await stack.enter_async_context(running(url))
            await until(
                lambda: len(first.ownership.owned) == len(second.ownership.owned) == SHARDS // 2, "equal shares"
            )
            await second.ownership.settle()
            assert first.ownership.owns_name("sources")
            await poll(first, site)
            assert site.paths == [PATH]
            assert second.parts.get(Poller)._looked_us is None, "it has never looked for sources that are due"
        await until(lambda: second.parts.get(Poller)._looked_us is not None, "the poller of the second process")


async def poll(owner: App, site: Site) -> None:
    """Adds a source, and returns when its items are there."""
    user = Jid("alice", "example.org", "x")
    await owner.service.handle(CreateNode(user, DOMAIN, "news", None))
    source = new_source("news", site.url(PATH), system.now_us())
    await owner.service.write(lambda tx, _context: source_rows.add(tx, source))
    await owner.parts.get(Poller).look()
    await until(lambda: has_items(owner), "the items of the source")
