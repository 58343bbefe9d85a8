"""Several components on one PostgreSQL database, each with a connection of its own to the XMPP server of the domain.

A test chooses the component that receives a stanza, as ejabberd does at random.
"""

import asyncio
from collections.abc import Callable

from smartfeeds.core.shards import SHARDS, shard_of_node
from support.component import Component

DEADLINE_S = 60.0


async def until(condition: Callable[[], object], what: str) -> None:
    """Returns when a condition holds. It is read again and again: the database reports to the components, not here."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not reached in {DEADLINE_S:g} s: {what}") from None


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
