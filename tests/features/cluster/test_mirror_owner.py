"""The mirrors of the configuration, if processes with different configurations use one PostgreSQL database."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from features.cluster.processes import instance_at
from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.delivery.shards import SHARDS, shard_of_name
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirrors import CONFIGURED
from support.postgres import PostgresServer
from support.waiting import until


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@contextlib.asynccontextmanager
async def running(url: str, *mirrors: str) -> AsyncIterator[App]:
    """A process without a link, with mirrors of these names."""
    app = App(
        settings_of(
            component={"jid": "feeds.example.org", "link": "off"},
            store={"url": url, "lease_s": 60.0},
            http={"listen": ""},
            mirror=[
                {"name": name, "node": name, "address": f"xmpp:other.example.org?;node={name}", "direction": "out"}
                for name in mirrors
            ],
        )
    )
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def names(app: App) -> list[str]:
    """The mirrors that are stored."""
    return sorted(row.mirror.name for row in await app.service.read(lambda tx, _context: stored_mirrors.mirrors(tx)))


async def test_owner_stores_its_mirrors_and_the_next_owner_stores_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[PG-077] A process with another configuration changes nothing, and logs that it differs."""
    shard = shard_of_name(CONFIGURED)
    instances = iter((instance_at(shard), instance_at((shard + SHARDS // 2) % SHARDS)))
    monkeypatch.setattr("smartfeeds.system.new_instance", lambda: next(instances))
    async with contextlib.AsyncExitStack() as stack:
        async with running(url, "alpha", "beta") as first:
            with structlog.testing.capture_logs() as logs:
                second = await stack.enter_async_context(running(url, "gamma"))
                await until(
                    lambda: len(first.ownership.owned) == len(second.ownership.owned) == SHARDS // 2, "equal shares"
                )
                await second.ownership.settle()
            assert first.ownership.owns_name(CONFIGURED)
            assert await names(first) == ["alpha", "beta"]
            (event,) = (log for log in logs if log["event"] == "mirrors_differ")
            assert (event["configured"], event["stored"]) == (["gamma"], ["alpha", "beta"])
        # The first process has ended.
        await until(lambda: second.ownership.owns_name(CONFIGURED), "the shard of the mirror")
        await second.ownership.settle()
        assert await names(second) == ["gamma"]
