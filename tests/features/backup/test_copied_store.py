"""A follower goes on with its cursors after the service has moved to another database."""

from dataclasses import replace

import psycopg
import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.core.times import parse_t
from smartfeeds.features.backup.copy_postgres import postgres_source, postgres_target
from smartfeeds.features.backup.copy_sqlite import sqlite_source, sqlite_target
from smartfeeds.features.backup.copying import copy_store
from support.component import ALICE, Starter
from support.golden import GOLDEN
from support.postgres import PostgresServer
from support.pulls import put
from support.waiting import until
from support.web import Web, WebStarter

pytestmark = pytest.mark.needs("cluster")

ITEMS = [(name, parse_t(t) or 0) for name, t in GOLDEN["windows"]["feed"]]
CASES = [
    f"/feeds/comments/?order={order}&timeout=0&{query}"
    for order, letter in (("created", "c"), ("modified", ""))
    for case in GOLDEN["windows"]["cases"]
    for query in [case["query"].replace("cursor:", f"cursor:{letter}").replace("(none)", "").replace(" (empty)", "")]
]


async def pages(web: Web) -> dict[str, tuple[int, str]]:
    """What a follower gets for every position, with the cursors in it."""
    base = str(web.origin)
    return {path: (got.status, got.text.replace(base, "")) for path in CASES for got in [await web.get(path)]}


def others_at(url: str) -> int:
    """The number of other connections to a database. One stays in the list of the server for a moment after its end."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
async def test_cursors_stay_valid_when_the_service_moves_to_postgres_and_back(
    start: Starter, start_web: WebStarter, postgres: PostgresServer
) -> None:
    """[OPS-092] Items with equal keys included, whose cursors count items."""
    web = await start_web()
    path = web.component.app.settings.store.path
    await web.component.create(ALICE, "comments")
    await put(web.component, "comments", ITEMS)
    before = await pages(web)
    cursor = (await web.get("/feeds/comments/?timeout=0")).json["last_cursor"]

    async def move(**store: str) -> Web:
        component = await start.again(web.component, http={"listen": "127.0.0.1:0"}, store=store)
        return replace(web, component=component)

    url = postgres.create_database()
    await web.component.app.stop()
    with sqlite_source(path) as source, postgres_target(parse_store(url)) as target:
        copy_store(source, target, str(path))
    web = await move(url=url)
    assert await pages(web) == before
    await web.component.publish(ALICE, "comments", "newest")
    after = (await web.get(f"/feeds/comments/?timeout=0&since=cursor:{cursor}")).json
    assert [item["id"] for item in after["items"]] == ["newest"]

    await web.component.app.stop()
    await until(lambda: others_at(url) == 0, "the server to forget the connections of the service")
    back = path.with_name("back.db")
    with postgres_source(parse_store(url)) as source, sqlite_target(back) as target:
        copy_store(source, target, url)
    web = await move(url=f"sqlite:///{back}")
    again = (await web.get(f"/feeds/comments/?timeout=0&since=cursor:{cursor}")).json
    assert again | {"url": ""} == after | {"url": ""}
