"""A smartfeeds beside a server of the federation: in this process, or as a process that can be killed.

Both keep their store when they are stopped and started again. `state` is what has to be equal between replicas.
"""

import asyncio
import json
import signal
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self
from xml.etree.ElementTree import fromstring, tostring

from smartfeeds.app.config import Settings, load
from smartfeeds.app.lifecycle import App
from smartfeeds.core.model import NO_LIMIT, Slice
from smartfeeds.core.view import SHARED
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.syncing import sync_of
from smartfeeds.store.base import ReadTx
from support.federation import KINDS, FederatedServer, domain_of
from support.process import ServiceProcess
from support.relay import Relay
from support.service import stored_service, write_config
from support.waiting import HANG_S, wait_for

_LOOK_S: Final = 0.05  # how often the store of another process is looked at: it tells nobody of its changes


class Kept(NamedTuple):
    """The parts of an item that replicas share. Prefixes of the XML are written anew, because servers may change
    them."""

    payload: bytes
    sync: bytes
    deleted: bool
    conflicts: int


State = dict[str, Kept]


class Site:
    """A component of this name on this server, with a store in `folder`. An async context manager: it runs inside.

    `sections` are those of the configuration; users of all servers may create nodes.
    """

    def __init__(self, server: FederatedServer, folder: Path, name: str = "", **sections: dict[str, object]) -> None:
        self.server = server
        self.name = name or server.take_name()
        self.folder = folder
        folder.mkdir(exist_ok=True)
        sections["pubsub"] = {"creators": [domain_of(each) for each in KINDS], **sections.get("pubsub", {})}
        self.sections = sections
        self.mirrors: list[dict[str, object]] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Starts it; returns once the server has accepted it."""
        raise NotImplementedError

    def mirror(self, other: "Site", node: str, direction: str = "in", **settings: object) -> None:
        """Lets it mirror the node of this name there, from its next start on."""
        address = f"xmpp:{other.name}?;node={node}"
        self.mirrors.append({"node": node, "address": address, "direction": direction, **settings})

    def _write_config(self, **sections: dict[str, object]) -> Path:
        path = write_config(self.folder, self.server, self.name, **{**self.sections, **sections})
        with path.open("a") as file:
            for mirror in self.mirrors:
                file.write(
                    "\n[[mirror]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in mirror.items())
                )
        return path

    async def stop(self) -> None:
        """Ends it in good order."""
        raise NotImplementedError

    async def news(self) -> None:
        """Waits until its store may have changed since the last call."""
        raise NotImplementedError

    async def state(self, node: str) -> State:
        """Returns the items of a node by sync id, tombstones too; nothing if the node does not exist."""
        raise NotImplementedError


class AppSite(Site):
    """In this process, where a test can give it a clock of its own (microseconds)."""

    def __init__(
        self,
        server: FederatedServer,
        folder: Path,
        name: str = "",
        *,
        clock: Callable[[], int] | None = None,
        **sections: dict[str, object],
    ) -> None:
        super().__init__(server, folder, name, **sections)
        self._clock = clock
        self.app: _WatchedApp

    async def start(self) -> None:
        """As `Site.start`."""
        config = self._write_config()
        self.app = _WatchedApp(load(config), self._clock)
        await self.app.start()
        await wait_for(self.app.online.wait(), f"the connection of {self.name}")

    async def stop(self) -> None:
        """As `Site.stop`."""
        await self.app.stop()

    async def news(self) -> None:
        """As `Site.news`."""
        await self.app.changed.wait()
        self.app.changed.clear()

    async def state(self, node: str) -> State:
        """As `Site.state`."""
        return await _state(self.app.service, node)


class ProcessSite(Site):
    """`smartfeeds run`, which can be killed. Its connection to the server goes through `relay`."""

    def __init__(self, server: FederatedServer, folder: Path, name: str = "", **sections: dict[str, object]) -> None:
        super().__init__(server, folder, name, **sections)
        self.relay = Relay(server.component_port)
        self.process: ServiceProcess

    async def __aenter__(self) -> Self:
        await self.relay.__aenter__()
        self.sections["component"] = {"port": self.relay.port, **self.sections.get("component", {})}
        self.sections["link"] = {"retry_first_s": 0.05, **self.sections.get("link", {})}
        self.process = ServiceProcess(self._write_config())
        try:
            return await super().__aenter__()
        except BaseException:
            await self.process.end(signal.SIGKILL)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            await self.process.__aexit__(kind, error, trace)
            await self.relay.__aexit__(kind, error, trace)

    async def start(self) -> None:
        """As `Site.start`."""
        self._write_config()
        await self.process.start()
        await self.relay.until(lambda: self.relay.accepted == self.relay.life > self.relay.ended)

    async def stop(self) -> None:
        """As `Site.stop`."""
        await self.process.end()
        await self._parted()

    async def kill(self) -> None:
        """Ends it as a crash would."""
        assert await self.process.end(signal.SIGKILL) == -signal.SIGKILL
        await self._parted()

    async def news(self) -> None:
        """As `Site.news`."""
        await asyncio.sleep(_LOOK_S)

    async def state(self, node: str) -> State:
        """As `Site.state`, alive or not."""
        async with stored_service(self.process.config) as service:
            return await _state(service, node)

    async def _parted(self) -> None:
        await self.relay.until(lambda: self.relay.ended == self.relay.life)


async def alike(sites: Sequence[Site], node: str, enough: Callable[[State], bool] = bool) -> State:
    """Waits until all of them have the same of a node, and enough of it; what that is."""
    news = {site: asyncio.ensure_future(site.news()) for site in sites}
    try:
        async with asyncio.timeout(HANG_S):
            while True:
                states = [await site.state(node) for site in sites]
                if enough(states[0]) and all(state == states[0] for state in states):
                    return states[0]
                await asyncio.wait(news.values(), return_when=asyncio.FIRST_COMPLETED)
                for site, task in news.items():
                    if task.done():
                        task.result()
                        news[site] = asyncio.ensure_future(site.news())
    except TimeoutError:
        report = "\n".join([f"{site.name}: {await site.state(node)}" for site in sites])
        raise AssertionError(f"they do not become alike:\n{report}") from None
    finally:
        for task in news.values():
            task.cancel()


class _WatchedApp(App):
    """Tells of each commit that changed a node."""

    def __init__(self, settings: Settings, clock: Callable[[], int] | None) -> None:
        super().__init__(settings, clock=clock)
        self.changed = asyncio.Event()
        self.changes.listen(self)

    def wake(self, node_nos: Collection[int]) -> None:
        """A commit has changed nodes."""
        self.changed.set()

    async def look(self) -> None:
        """There are no other processes."""


def _written_anew(data: bytes) -> bytes:
    return tostring(fromstring(data))


async def _state(service: FeedService, node: str) -> State:
    def read(tx: ReadTx, context: Context) -> State:
        row = tx.node(node)
        if row is None:
            return {}
        everything = tx.slice(row.node_no, Slice(SHARED, NO_LIMIT))
        return {
            item.sync_id or item.id: Kept(
                _written_anew(item.payload),
                _written_anew(sync_of(context, row, item)),
                item.deleted,
                item.conflicts,
            )
            for item in everything
        }

    return await service.read(read)
