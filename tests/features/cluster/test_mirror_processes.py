"""A mirror of a service that runs as two processes, whose XMPP server sends each stanza to the wrong one of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.model import Slice
from smartfeeds.core.view import SMART
from smartfeeds.delivery import changes
from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.cluster import ownership
from smartfeeds.features.mirrors.mirror import make_mirror
from smartfeeds.service import requests as r
from support.fakeserver import FakeServer, Session
from support.postgres import PostgresServer
from support.waiting import until
from support.world import draft, entry, form, jid

A, B = "feeds.a.example", "feeds.b.example"
NODE = "plans"
OWNER = "owner@people.example"
MIRROR = {"node": NODE, "address": f"xmpp:{A}?;node={NODE}", "direction": "both"}


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    address = postgres.create_database()
    yield address
    postgres.drop_database(address)


class Process:
    """A process with its connection to the XMPP server. `requests` are the IQs that it has sent to the other side."""

    def __init__(self, domain: str, app: App, session: Session) -> None:
        self.domain, self.app, self.session = domain, app, session
        self.requests: list[str] = []

    async def items(self) -> set[str]:
        def read(tx: Any, _context: Any) -> set[str]:
            return {item.id for item in tx.slice(tx.node(NODE).node_no, Slice(SMART, 100))}

        return await self.app.service.read(read)

    async def publish(self, item_id: str) -> None:
        await self.app.service.handle(r.Publish(jid(OWNER), self.domain, NODE, item_id, draft(entry(item_id))))

    async def has(self, *item_ids: str) -> None:

        async def is_so() -> bool:
            return await self.items() == set(item_ids)

        await until(is_so, f"the items {item_ids} of {self.domain}")


class Net:
    """The processes of both services. Stanzas for B go to the process that does not run the mirror."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.passing: dict[Process, asyncio.Task[None]] = {}
        self._parts = contextlib.AsyncExitStack()

    async def start(self, domain: str, url: str, *, first: bool, mirrors: tuple[dict[str, Any], ...] = ()) -> Process:
        server = await self._parts.enter_async_context(FakeServer(domain, "secret"))
        values = {
            "component": {"jid": domain, "secret": "secret", "port": server.port},
            "store": {"url": url},
            "http": {"listen": ""},
            "mirror": list(mirrors),
        }
        app = App(settings_of(**values))
        if first:
            await app.service.store.open()
            app.service.policy = app.service.policy.__class__(domain, admins=frozenset({OWNER}))
            await app.service.handle(r.CreateNode(jid(OWNER), domain, NODE, form(kind="feed")))
            people = (({A: B, B: A}[domain], "publisher"),)
            await app.service.handle(r.SetAffiliations(jid(OWNER), domain, NODE, people))
            await app.service.store.close()
        app.service.policy = app.service.policy.__class__(domain, admins=frozenset({OWNER}))
        await app.start()
        process = Process(domain, app, await server.session())
        self.processes.append(process)
        self.passing[process] = asyncio.create_task(self._pass(process))
        return process

    async def _pass(self, process: Process) -> None:
        while True:
            stanza = await process.session.stanzas.get()
            if stanza.tag.endswith("}iq") and stanza.get("type") in ("get", "set"):
                process.requests.append(stanza[0][0].tag if len(stanza[0]) else stanza[0].tag)
            to = [each for each in self.processes if each.domain == stanza.get("to", "")]
            if not to:
                continue
            wrong = [each for each in to if not owns(each)]
            with contextlib.suppress(ConnectionError):
                await (wrong or to)[0].session.send(etree.tostring(stanza, with_tail=False))

    async def stop(self, process: Process) -> None:
        self.processes.remove(process)
        await process.app.stop()
        task = self.passing.pop(process)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        for process in list(self.processes):
            await self.stop(process)
        await self._parts.aclose()


def owns(process: Process) -> bool:
    """Whether a process runs the mirror."""
    return process.app.ownership.owns_name(make_mirror(**MIRROR).consumer_name)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Net]:
    net = Net()
    try:
        yield net
    finally:
        await net.close()


async def test_mirror_runs_on_one_process_which_gets_all_stanzas_for_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-030] [TOP-005] [PG-074] [PG-064] Responses and events reach the other process, which passes them on. When
    the process with the mirror ends, the other one goes on."""
    monkeypatch.setattr(changes, "LOOK_S", 3_600.0)
    monkeypatch.setattr(ownership, "BEAT_S", 0.1)
    async with running() as net:
        upstream = await net.start(A, f"sqlite:///{tmp_path / 'a.db'}", first=True)
        pair = [await net.start(B, url, first=number == 0, mirrors=(MIRROR,)) for number in range(2)]
        for process in pair:
            await until(lambda each=process: len(each.app.ownership.owned) == SHARDS // 2, "equal shares")
        owner, other = sorted(pair, key=owns, reverse=True)
        assert (owns(owner), owns(other)) == (True, False)

        await upstream.publish("from a")
        await other.has("from a")
        await other.publish("from b")  # a notice wakes the mirror of the owner
        await upstream.has("from a", "from b")
        await upstream.publish("second from a")
        await other.has("from a", "from b", "second from a")
        before = len(other.requests)
        assert any("publish" in name for name in owner.requests), owner.requests

        await net.stop(owner)
        await until(lambda: owns(other), "the take-over")
        await other.publish("after")
        await upstream.has("from a", "from b", "second from a", "after")
        await upstream.publish("after in a")
        await other.has("from a", "from b", "second from a", "after", "after in a")
        assert len(other.requests) > before, "it was silent while the other process had the mirror"
        assert not any("publish" in name for name in other.requests[:before]), other.requests
