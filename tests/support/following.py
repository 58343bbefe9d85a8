"""A component whose source follows another server: polls and requests to hubs, when a test wants them."""

from dataclasses import dataclass

from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.push_states import PushState, SourcePush
from smartfeeds.features.polling.source import Source, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.polling.subscriber import Subscriber
from support.component import ALICE
from support.waiting import until
from support.web import Web

COPY = "copy"
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}


@dataclass(frozen=True, slots=True)
class Follower:
    """The node copy of a component, and its source."""

    web: Web
    source_no: int

    async def source(self) -> Source:
        row = await self.web.component.app.service.store.read(lambda tx: source_rows.source(tx, self.source_no))
        assert row is not None
        return row

    async def push(self) -> SourcePush:
        """The newest subscription of the source."""
        rows = await self.web.component.app.service.store.read(
            lambda tx: source_push_rows.pushes_of(tx, self.source_no)
        )
        return list(rows)[-1]

    async def poll(self) -> Source:
        """Polls the source now."""
        await self.web.component.app.parts.get(Poller).poll(await self.source())
        return await self.source()

    async def due_s(self) -> float:
        """The seconds until the next poll."""
        due_us = (await self.source()).due_us
        assert due_us is not None
        return (due_us - self.web.component.clock()) / US_PER_S

    async def look(self) -> None:
        """Sends the requests to hubs and clouds that are due."""
        await self.web.component.app.parts.get(Subscriber).look()
        await self.web.component.app.parts.get(Subscriber).settle()

    async def active(self) -> SourcePush:
        """The subscription, as soon as the hub has checked it."""

        async def is_active() -> bool:
            await self.look()
            return (await self.push()).state is PushState.ACTIVE

        await until(is_active, "the subscription")
        return await self.push()

    async def follow(self) -> SourcePush:
        """Polls, and subscribes at the hub or the cloud of the document."""
        await self.poll()
        return await self.active()

    async def titles(self) -> list[str]:
        """The titles of the items, in the order of the feed."""
        page = await self.web.get(f"/feeds/{COPY}/?since=time:0&timeout=0&max=50", accept="application/json")
        return [item["title"] for item in page.json["items"]]

    async def has(self, title: str) -> None:
        """Returns when an item with this title is there."""

        async def is_there() -> bool:
            return title in await self.titles()

        await until(is_there, f"the item {title!r}")


async def follower(web: Web, url: str) -> Follower:
    """A source of this address, which fills a new node."""
    await web.component.create(ALICE, COPY, access_model="open")
    source = new_source(COPY, url, web.component.clock())
    row = await web.component.app.service.write(lambda tx, context: add_source(tx, context, source))
    return Follower(web, row.source_no)
