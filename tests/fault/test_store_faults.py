"""The store fails under a running service: clients are told to wait, the rest goes on, and so does all afterwards."""

import asyncio
import os
import resource
import sqlite3
from pathlib import Path

from support.client import Client, log_in
from support.component import ALICE, BOB, NS, PS, Component, Refusal, Starter, entry, ok, refusal, text_of
from support.process import ServiceProcess
from support.relay import Relay
from support.servers import TestServer
from support.service import write_config

BUSY = Refusal("wait", "resource-constraint")
BIG = entry("x" * 20_000)
STALL_S = 1.0  # of the event loop: more would be noticed
NODE = "<publish node='news'><item id='{}'>{}</item></publish>"


class Beat:
    """Measures for how long the event loop did nothing else. To be used as `async with`."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Beat":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before_s = loop.time()
            await asyncio.sleep(0.01)
            self.longest_s = max(self.longest_s, loop.time() - before_s)


async def page(component: Component) -> list[str]:
    """The ids in the feed, in its order."""
    return await component.item_ids(BOB, "news?order=modified")


async def sent(component: Component) -> list[str]:
    """The ids of the items that Bob was told of since the last look."""
    messages = await component.events("bob@example.org")
    return [str(item.get("id")) for message in messages for item in message.iterfind(".//ev:item", NS)]


async def pragma(component: Component, text: str) -> int:
    """Asks or tells the writing connection something."""
    row = await component.app.service.store.write(lambda tx: tx.db.row(f"PRAGMA {text}"))  # type: ignore[attr-defined]
    return int(row[0])


async def test_locked_database_makes_clients_wait_and_nothing_else(start: Starter, tmp_path: Path) -> None:
    """Another process holds the write lock for longer than we wait for it. [xep-map 9]"""
    component = await start()
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news?order=modified")
    await component.publish(ALICE, "news", "before")
    assert await sent(component) == ["before"]
    await pragma(component, "busy_timeout = 500")  # milliseconds; it is 5 s else
    other = sqlite3.connect(tmp_path / "feeds.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        async with Beat() as beat:
            waiting = [asyncio.create_task(component.set(ALICE, NODE.format(f"n{n}", entry("t")))) for n in range(20)]
            assert await page(component) == ["before"], "reads go on"
            ok(await component.get(BOB, "<subscriptions/>"))
            assert not any(task.done() for task in waiting)
            answers = await asyncio.gather(*waiting)
        assert {refusal(answer)[:2] for answer in answers} == {BUSY[:2]}
        assert "locked" not in "".join(map(text_of, answers)), "what is inside stays inside"
        assert beat.longest_s < STALL_S
        assert await page(component) == ["before"]
        other.execute("ROLLBACK")
    finally:
        other.close()

    await component.publish(ALICE, "news", "after")
    assert await page(component) == ["before", "after"]
    assert await sent(component) == ["after"]


async def limit_pages(component: Component, spare: int | None) -> None:
    """Lets the database grow by so many pages, or (None) as it likes."""
    bound = 2**30 if spare is None else await pragma(component, "page_count") + spare
    await pragma(component, f"max_page_count = {bound}")


async def test_full_database_keeps_what_it_acknowledged_and_goes_on_when_there_is_room(start: Starter) -> None:
    """[xep-map 9] [xep-map 152] [xep-map 153]"""
    component = await start()
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news?order=modified")
    await limit_pages(component, 40)
    async with Beat() as beat:
        ids = [f"n{number}" for number in range(60)]
        answers = await asyncio.gather(*(component.set(ALICE, NODE.format(item_id, BIG)) for item_id in ids))
    kept = [item_id for item_id, answer in zip(ids, answers, strict=True) if answer.get("type") == "result"]
    assert 0 < len(kept) < len(ids)
    assert {refusal(answer)[:2] for answer in answers if answer.get("type") != "result"} == {BUSY[:2]}
    assert beat.longest_s < STALL_S
    assert await page(component) == kept
    assert await sent(component) == kept, "told is what is there, and all of it"
    assert refusal(await component.set(ALICE, NODE.format("late", BIG)))[:2] == BUSY[:2]

    await limit_pages(component, None)
    await component.publish(ALICE, "news", "late", BIG)
    assert await page(component) == [*kept, "late"]
    (message,) = await component.events("bob@example.org")
    shown = {header.get("name"): header.text for header in message.iterfind(".//shim:header", NS)}
    assert shown["TotalItems"] == str(len(kept) + 1), "counts were not moved by what was refused"


async def publish(alice: Client, component: str, item_id: str, payload: str) -> str:
    """Publishes; `result`, or type and condition of the error."""
    answer = await alice.set(component, f"<pubsub xmlns='{PS}'>{NODE.format(item_id, payload)}</pubsub>")
    if answer.get("type") == "result":
        return "result"
    return f"{answer[-1].get('type')} {answer[-1][0].tag.rpartition('}')[2]}"


async def test_disk_that_takes_no_more_is_survived_by_the_process(prosody: TestServer, tmp_path: Path) -> None:
    """The real thing: writes to the files fail, then work again. Killed in between, nothing is half written.

    [xep-map 9]
    """
    name = prosody.take_name()
    async with (
        Relay(prosody.component_port) as relay,
        ServiceProcess(write_config(tmp_path, prosody, name, component={"port": relay.port})) as service,
    ):
        await service.start()
        await relay.ready()
        alice = await log_in(prosody, "alice")
        await alice.set(name, f"<pubsub xmlns='{PS}'><create node='news'/></pubsub>")
        acknowledged = ["a"]
        assert await publish(alice, name, "a", BIG) == "result"
        unlimited = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
        log_bytes = (tmp_path / "feeds.db-wal").stat().st_size
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (log_bytes + 100_000, unlimited[1]))
        outcomes = []
        for number in range(10):
            outcomes.append(await publish(alice, name, f"n{number}", BIG))
            acknowledged += [f"n{number}"] if outcomes[-1] == "result" else []
        assert set(outcomes) == {"result", "wait resource-constraint"}
        assert outcomes == sorted(outcomes), "once it is full it stays so"

        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, unlimited)
        assert await publish(alice, name, "b", BIG) == "result"
        life = relay.life
        os.kill(service.pid, 9)
        await service.ended()
        await relay.over(life)
        await service.start()
        await relay.ready()
        answer = await alice.get(name, f"<pubsub xmlns='{PS}'><items node='news?order=modified'/></pubsub>")
        found = [item.get("id") for item in answer.iterfind(".//ps:item", NS)]
        assert found == [*acknowledged, "b"]
        assert "check the disk and its free space" in service.said, "the operator is told what to do"
        assert "Traceback" not in service.said
        await alice.logout()
        assert await service.end() == 0
