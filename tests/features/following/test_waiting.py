"""My feeds is live: a request is held until a feed that its reader follows has a newer entry."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import pytest

from smartfeeds import telemetry
from smartfeeds.core.jid import parse_jid
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.features.accounts.sessions import EndSessions
from smartfeeds.features.following.entries import NewestKey
from smartfeeds.features.following.waiting import NewsWaiters
from smartfeeds.http import server
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, DOMAIN, Starter, bare
from support.faketime import settle
from support.sqlite_memory import SqliteMemoryStore
from support.waiting import HANG_S, until, wait_for
from support.web import Got, Web, WebStarter
from support.world import World

NODES = (1, 2)


class Keys:
    """Reads of the newest key for a reader of NODES. Each announces the first of `changes`."""

    def __init__(self, *keys: int, wait_s: float = HANG_S) -> None:
        self.notifier = ChangeNotifier()
        self.waiters = NewsWaiters(World(SqliteMemoryStore()).service, self.notifier, wait_s)
        self.keys = list(keys)
        self.node_nos: tuple[int, ...] = NODES
        self.changes: list[int] = []
        self.reads = 0

    async def __call__(self) -> NewestKey:
        self.reads += 1
        key = self.keys.pop(0) if len(self.keys) > 1 else self.keys[0]
        await asyncio.sleep(0)
        if self.changes:
            self.notifier.announce([self.changes.pop(0)])
        return NewestKey(key, self.node_nos)

    def wait(self) -> "asyncio.Task[NewestKey]":
        """The wait of a reader who has the key 5."""
        return asyncio.create_task(self.waiters.newest(self, 5))

    @property
    def rest(self) -> tuple[int, list[int], int]:
        """The readers, their nodes, and the listeners of changes."""
        return self.waiters.held, sorted(self.waiters.node_nos), len(self.notifier._listeners)


async def test_newer_key_is_returned_at_once() -> None:
    read = Keys(6)
    assert (await read.wait()).modified_us == 6
    assert (read.reads, read.rest) == (1, (0, [], 0))


@pytest.mark.parametrize("change", [*NODES, 3])
async def test_change_between_the_read_and_the_wait_is_not_lost(change: int) -> None:
    """That of another feed costs one read."""
    read = Keys(5, 6)
    read.changes = [change]
    assert (await wait_for(read.wait(), "the newer key")).modified_us == 6


async def test_change_during_the_next_read_is_not_lost() -> None:
    read = Keys(5, 5, 6)
    task = read.wait()
    await settle()
    read.changes = [2]
    read.notifier.announce([1])
    assert (await wait_for(task, "the newer key")).modified_us == 6
    assert read.reads == 3


async def test_changes_of_other_feeds_read_nothing() -> None:
    """Without readers nothing listens to changes, so that a publish costs nothing more."""
    read = Keys(5)
    tasks = [read.wait() for _ in range(2)]
    await settle()
    assert (read.reads, read.rest) == (2, (2, [*NODES], 1))
    for _ in range(3):
        read.notifier.announce([3, 4])
        await settle()
    assert (read.reads, [task.done() for task in tasks]) == (2, [False, False])
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert read.rest == (0, [], 0)


async def test_wait_ends_with_the_key_of_before() -> None:
    read = Keys(5, wait_s=0.001)
    assert (await wait_for(read.wait(), "the end of the time")).modified_us == 5
    assert read.rest == (0, [], 0)


async def test_changes_without_news_do_not_prolong_a_wait() -> None:
    """Such as publishes in a feed that was closed to the reader."""
    read = Keys(5, wait_s=0.001)

    async def read_and_change() -> NewestKey:
        read.changes = [1]
        return await read()

    await wait_for(read.waiters.newest(read_and_change, 5), "the end of the time")


@pytest.mark.parametrize("node_nos", [NODES, ()], ids=["feeds", "no feed"])
async def test_stop_ends_every_wait(node_nos: tuple[int, ...]) -> None:
    """Also of readers who follow nothing, and of those who come later."""
    read = Keys(5)
    read.node_nos = node_nos
    tasks = [read.wait() for _ in range(2)]
    await settle()
    await read.waiters.stop()
    tasks.append(read.wait())
    ends = await wait_for(asyncio.gather(*tasks, return_exceptions=True), "the ends of the waits")
    assert [type(end) for end in ends] == [ConnectionResetError] * 3
    assert read.rest == (0, [], 0)


# In the running service.


def waiters_of(web: Web) -> NewsWaiters:
    return web.component.app.parts.get(NewsWaiters)


async def newest(reader: SignedIn, **headers: str) -> int:
    """The key that the page has."""
    return int((await reader.get("/follow/entries", "application/json", **headers)).json["newest"])


@contextmanager
def held(reader: SignedIn, since: int, **headers: str) -> Iterator["asyncio.Task[Got]"]:
    """A held request of the page."""
    task = asyncio.create_task(reader.get(f"/follow/entries?since={since}", "application/json", **headers))
    try:
        yield task
    finally:
        task.cancel()


async def holding(web: Web, count: int = 1) -> None:
    await until(lambda: waiters_of(web).held == count, f"{count} held requests")


async def publish(web: Web, node: str, item_id: str) -> None:
    web.component.clock.advance(1)
    await web.component.publish(BOB, node, item_id)


async def open_page(web: Web, *nodes: str) -> tuple[SignedIn, int]:
    """A reader who follows these feeds, and the key of the page."""
    for node in nodes:
        await web.component.create(BOB, node)
        await web.component.subscribe(ALICE, node)
    await publish(web, nodes[0], "first")
    reader = await sign_in(web, ALICE)
    return reader, await newest(reader)


@pytest.mark.both_engines
async def test_publish_in_a_followed_feed_answers(start_web: WebStarter) -> None:
    web = await start_web()
    reader, key = await open_page(web, "one", "two")
    with held(reader, key) as task:
        await holding(web)
        await publish(web, "two", "a")
        got = await task
    assert got.status == 200 and int(got.json["newest"]) == await newest(reader) > key
    assert "no-store" in got.header("Cache-Control")
    await holding(web, 0)


async def test_news_since_the_page_answer_at_once(own_web: Web) -> None:
    reader, key = await open_page(own_web, "one")
    await publish(own_web, "one", "a")
    with held(reader, key) as task:
        assert int((await task).json["newest"]) > key


async def test_other_feeds_answer_nothing(own_web: Web) -> None:
    """A feed that the reader does not follow, one that was closed since, and one that the reader has left."""
    await own_web.component.create(BOB, "other")
    reader, key = await open_page(own_web, "one", "closed", "left")
    with held(reader, key) as task:
        await holding(own_web)
        await own_web.component.configure(BOB, "closed", access_model="whitelist")
        assert (await reader.change("DELETE", "/following/left")).status == 204
        for node in ("other", "closed", "left"):
            await publish(own_web, node, "a")
        assert await newest(reader) == key
        await publish(own_web, "one", "b")
        got = await task
    assert int(got.json["newest"]) == await newest(reader) > key


async def test_reader_is_answered_after_the_time(start_web: WebStarter, monkeypatch: pytest.MonkeyPatch) -> None:
    web = await start_web(http={"poll_default_s": 50, "poll_max_s": 40})
    assert waiters_of(web).wait_s == 40
    reader, key = await open_page(web, "one")
    monkeypatch.setattr(waiters_of(web), "wait_s", 0.001)
    with held(reader, key) as task:
        got = await task
    assert (got.status, got.json) == (200, {"newest": str(key)})


async def test_session_that_has_ended_gets_nothing(own_web: Web) -> None:
    reader, key = await open_page(own_web, "one")
    actor = parse_jid(bare(ALICE))
    assert actor is not None
    with held(reader, key) as task:
        await holding(own_web)
        await own_web.component.app.service.handle(EndSessions(actor, DOMAIN, reader.session_id))
        await publish(own_web, "one", "a")
        got = await task
    assert got.status == 401 and "newest" not in got.text


async def test_change_by_another_process_is_found_by_looking(own_web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, key = await open_page(own_web, "one")
    app = own_web.component.app
    with held(reader, key) as task:
        await until(lambda: waiters_of(own_web).node_nos, "the wait for changes")
        monkeypatch.setattr(app.service, "_on_change", lambda _node_nos: None)
        await publish(own_web, "one", "a")
        assert await newest(reader) > key and not task.done()
        await app.changes.look()
        assert int((await task).json["newest"]) > key


async def test_reader_who_leaves_is_forgotten(own_web: Web) -> None:
    reader, key = await open_page(own_web, "one")
    with held(reader, key):
        await holding(own_web)
    await holding(own_web, 0)
    assert list(waiters_of(own_web).node_nos) == []


async def test_stop_does_not_wait_for_readers(
    start: Starter, start_web: WebStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has no exception."""
    monkeypatch.setattr(server, "SHUTDOWN_S", HANG_S)
    stream = io.StringIO()
    telemetry.set_up_logging("console", "info", stream)
    web = await start_web()
    reader, key = await open_page(web, "one")
    with held(reader, key) as task:
        await holding(web)
        await start.stop(web.component)
        with pytest.raises(aiohttp.ClientError):
            await task
    assert not {"Traceback", "failed", "error"} & set(stream.getvalue().replace("=", " ").split()), stream.getvalue()


async def test_readers_behind_a_proxy_are_counted_by_address(start_web: WebStarter) -> None:
    web = await start_web(http={"proxies": ["127.0.0.1"], "connections_per_address": 1})
    reader, key = await open_page(web, "one")
    with held(reader, key, X_Forwarded_For="203.0.113.1") as task:
        await holding(web)
        with held(reader, key, X_Forwarded_For="203.0.113.1") as more:
            assert (await more).status == 429
        with held(reader, key, X_Forwarded_For="203.0.113.2") as another:
            await holding(web, 2)
            await publish(web, "one", "a")
            assert {(await each).status for each in (task, another)} == {200}
    assert await newest(reader, X_Forwarded_For="203.0.113.1") > key


async def test_key_is_a_number(own_web: Web) -> None:
    reader, _key = await open_page(own_web, "one")
    assert (await reader.get("/follow/entries?since=x", "application/json")).status == 400
