"""This process among the processes on a database: its link, and what it passes on when it stops."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lxml import etree

from features.cluster.test_ownership import Locks, Table
from smartfeeds.app.group import GroupLink
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.features.cluster.setup import ProcessGroup, SharedGroup
from smartfeeds.service.feeds import FeedService
from smartfeeds.xmpp.router import StanzaRouter
from smartfeeds.xmpp.stanza_side import StanzaSide
from smartfeeds.xmpp.stream import ComponentStream
from support.component import settings

REQUEST = "<iq xmlns='jabber:component:accept' type='get' id='1' from='a@x' to='feeds.example.org'/>"


class Outbox:
    """Takes every stanza."""

    def reply(self, _stanza: bytes) -> bool:
        return True


class Stream:
    """Notes why it was closed."""

    domain = "feeds.example.org"
    outbox = Outbox()

    def __init__(self) -> None:
        self.drops: list[str] = []

    def drop(self, condition: str) -> None:
        self.drops.append(condition)


class Process:
    """A process whose locks are in a table."""

    def __init__(self, link: str = "always") -> None:
        self.online = asyncio.Event()
        self.stream = Stream()
        self.group = SharedGroup(
            settings(1, "postgresql://localhost/feeds", component={"link": link}),
            cast(FeedService, None),
            ChangeNotifier(),
            self._spawn,
        )
        router = cast(StanzaRouter, SimpleNamespace(addresses=None, start=None))
        self.group.attach(GroupLink(cast(ComponentStream, self.stream), self.online, router, StanzaSide()))

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> "asyncio.Task[None]":
        return asyncio.create_task(work, name=name)

    async def step(self) -> None:
        await self.group.ownership.step()
        await self.group.ownership.settle()


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """The locks of the processes of a test."""
    table = Table()

    async def open_locks(*_: Any, **__: Any) -> Locks:
        return Locks(table)

    monkeypatch.setattr("smartfeeds.features.cluster.lock_session.LockSession.open", open_locks)
    return table


async def test_process_that_stops_passes_stanzas_to_one_with_a_link_only() -> None:
    """[TOP-034] A standby and a process for HTTP could not answer them, so they would be lost."""
    first, second = Process(), Process()
    first.online.set()
    for process in (first, second, first):
        await process.step()
    first.group.leave()
    assert first.group.letters.has_others() and not first.group.relay.hand_over(etree.fromstring(REQUEST))

    second.online.set()
    for process in (second, first):
        await process.step()
    first.group.leave()
    assert first.group.relay.hand_over(etree.fromstring(REQUEST))
    await first.group.letters.close()


async def test_link_whose_lease_was_lost_while_it_was_opened_is_closed(table: Table) -> None:
    """[TOP-021] Another process may have the lease by now."""
    process = Process("lease")
    await process.step()
    await process.group.ownership.await_link()
    assert process.group.has_lease() and process.stream.drops == []
    await process.group.ownership.note_lost("the database restarts")
    process.stream.drops.clear()  # the connection did not exist yet
    assert not process.group.has_lease()
    assert process.stream.drops == ["lease-lost"]
    assert table.link is None


@pytest.mark.parametrize("link", ["always", "lease"])
async def test_link_of_a_process_that_may_have_it_stays(link: str) -> None:
    """[TOP-021] [TOP-022] Without `component.link = "lease"` no process needs a lease."""
    process = Process(link)
    await process.step()
    if link == "lease":
        await process.group.ownership.await_link()
    assert process.group.has_lease() and process.stream.drops == []


async def test_report_has_the_group_where_the_database_may_have_one() -> None:
    """The status file of a process with a file of its own says nothing of processes that cannot be."""
    alone = ProcessGroup(settings(1, "sqlite:///feeds.db"), cast(FeedService, None), Process()._spawn)
    assert alone.report() == {}
    process = Process()
    await process.step()
    assert {"ownership", "standbys"} < set(process.group.report())
    assert process.group.report()["ownership"]["shards"] == process.group.ownership.reading().shards > 0
