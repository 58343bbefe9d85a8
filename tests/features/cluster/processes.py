"""Several components on one PostgreSQL database, each with a connection of its own to the XMPP server of the domain.

A test chooses the component that receives a stanza, as ejabberd does at random.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from zlib import crc32

import psycopg

from smartfeeds.delivery.shards import SHARDS, shard_of_node
from smartfeeds.features.cluster.locks import ShardLocks
from smartfeeds.store.postgres_programs import session_name
from support.component import Component
from support.waiting import until


async def joined(*components: Component) -> None:
    """Returns when each component knows the others."""
    for component in components:
        await until(lambda each=component: each.app.ownership.processes >= len(components), "the other processes")


async def shared(*components: Component) -> None:
    """Returns when the components own all shards in equal parts, and deliver."""
    await joined(*components)
    share = SHARDS // len(components)
    for component in components:
        await until(lambda each=component: len(each.app.ownership.owned) in (share, share + 1), "equal shares")
        await component.app.ownership.settle()


async def owner_first(node: str, *components: Component) -> list[Component]:
    """Returns the component that serves a feed, and then the others."""
    found = await components[0].app.service.read(lambda tx, _context: tx.node(node))
    assert found is not None
    shard = shard_of_node(found.node_no)
    return sorted(components, key=lambda each: not each.app.ownership.owns(shard))


@asynccontextmanager
async def without_locks(component: Component) -> AsyncIterator[None]:
    """Ends the lock session of a process, as a restart of the database does. It gets another one at the end."""
    ownership, may_open = component.app.ownership, asyncio.Event()
    open_locks = ownership._open_locks
    # Otherwise the next owner may repeat what was delivered before (docs/scaling.md).
    await component.app.dispatcher.save_marks()
    await ownership.step()  # after the marks: the session has one queue

    async def wait() -> ShardLocks:
        await may_open.wait()
        return await open_locks()

    ownership._open_locks = wait
    with psycopg.connect(component.app.settings.store.address.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (session_name(component.app.group.instance),),
        )
    await until(lambda: not ownership.is_current, "the end of the lock session")
    yield
    may_open.set()
    await until(lambda: ownership.is_current, "another lock session")


def instance_at(shard: int) -> str:
    """An id of a process that takes its shards from this one on."""
    return next(text for text in map("{:08x}".format, count()) if crc32(text.encode()) % SHARDS == shard)
