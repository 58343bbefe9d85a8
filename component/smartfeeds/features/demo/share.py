"""`smartfeeds demo share`: one feed at two services, edited apart (docs/mirrors.md; FeedSync 3.2 to 3.4).

A real Prosody, two services as separate processes with a mirror between them, and a user at each. The services are
apart because only one of them runs at a time; each accepts changes of the same items meanwhile. After each meeting the
databases are compared with each other and with the expected versions.
"""

import asyncio
import hashlib
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import canonicalize

from rich.console import Console

from smartfeeds.app.config import load
from smartfeeds.app.opening import open_service
from smartfeeds.core.model import NO_LIMIT, Item, Node, Slice
from smartfeeds.core.text import counted
from smartfeeds.core.view import SHARED
from smartfeeds.features.conflicts.requests import version_tag
from smartfeeds.features.demo.person import DemoUser
from smartfeeds.features.demo.stage import STEP_S, DemoService, Stage, when_online
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.syncing import read_shared, sync_of
from smartfeeds.store.base import OpenMode, ReadTx

SERVICE_A: Final = "feeds-a.localhost"
SERVICE_B: Final = "feeds-b.localhost"
NODE: Final = "plans"
ADDRESS: Final = f"xmpp:{SERVICE_A}?;node={NODE}"
_LOOK_S: Final = 0.05  # between two reads of the databases: services in other processes do not report changes

# The expected feed: for each item the titles of its versions with their numbers of changes, the winner first.
_DELETED: Final = ""
Titles = dict[str, tuple[tuple[str, int], ...]]
_BEFORE: Final[Titles] = {"meeting": (("Monday", 1),), "cake": (("Cake", 1),)}
_MET: Final[Titles] = {
    "meeting": (("Friday at ten", 3), ("Tuesday", 2)),
    "cake": ((_DELETED, 3), ("Plum cake", 2)),
    "tea": (("Tea", 1),),
    "cups": (("Cups", 1),),
}
_SETTLED: Final[Titles] = _MET | {"meeting": (("Friday at ten", 4),), "cake": (("Plum cake", 4),)}


class SharedVersion(NamedTuple):
    """A version of an item: its title (empty if it is deleted), number of changes, author, and tag."""

    title: str
    changes: int
    by: str
    tag: str

    def __str__(self) -> str:
        name = f"“{self.title}”" if self.title else "deleted"
        return f"{name} ({counted(self.changes, 'change')}, {self.by})"


class SharedItem(NamedTuple):
    """The data of an item that must be equal at both services. Prefixes are normalised: servers may change them."""

    payload: str
    sync: str
    deleted: bool
    versions: tuple[SharedVersion, ...]


@dataclass(frozen=True, slots=True)
class FeedCopy:
    """The items of the feed at one service, by item id, including tombstones."""

    items: dict[str, SharedItem]

    def holds(self, titles: Titles) -> bool:
        """Returns whether the copy has exactly these items with these versions."""
        versions = {key: tuple((row.title, row.changes) for row in item.versions) for key, item in self.items.items()}
        return versions == titles

    def __str__(self) -> str:
        whole = hashlib.sha256()
        for item_id, item in sorted(self.items.items()):
            whole.update("\0".join((item_id, item.payload, item.sync, str(item.deleted), "")).encode())
        conflicts = sum(len(item.versions) - 1 for item in self.items.values())
        changes = sum(item.versions[0].changes for item in self.items.values())
        parts = counted(len(self.items), "item"), counted(changes, "change"), counted(conflicts, "conflict")
        return f"{', '.join(parts)}, sha256 {whole.hexdigest()[:16]}"


class SharingDemo(Stage):
    """The scenes at the two services."""

    def __init__(self, folder: Path, console: Console) -> None:
        super().__init__(folder, console, [SERVICE_A, SERVICE_B])
        self._a, self._b = self.components
        self._alice: DemoUser
        self._bob: DemoUser

    async def perform(self) -> bool:
        """Plays all scenes. Returns whether both services were equal and as expected. Raises LinkError, ConfigError."""
        async with self.open():
            self._alice, self._bob = await self.person("alice"), await self.person("bob")
            await self._alice.login()
            await self._bob.login()
            is_expected = await self._begin() and await self._part() and await self._settle()
            if is_expected:
                self.tell("   The two databases are the same, with all histories. No version was lost.")
            await self._alice.logout()
            await self._bob.logout()
            return is_expected

    async def _begin(self) -> bool:
        self.tell(f"1. Alice publishes meeting “Monday” and cake “Cake” at {SERVICE_A}. {SERVICE_B} shares the feed.")
        await self._a.start()
        await when_online(lambda: self._alice.create(SERVICE_A, NODE))
        await self._alice.publish(SERVICE_A, NODE, "Monday", "meeting")
        await self._alice.publish(SERVICE_A, NODE, "Cake", "cake")
        await self._alice.let_publish(SERVICE_A, NODE, SERVICE_B)
        mirror = ("mirror", "add", ADDRESS, "--node", NODE, "--direction", "both", "--owner", "bob@localhost")
        await self._b.command(*mirror)
        await self._b.start()
        return await self._meet(_BEFORE)

    async def _part(self) -> bool:
        self.tell("\n2. The services are apart: each is killed while a user edits at the other.")
        await self._a.end(signal.SIGKILL)
        await self._bob.publish(SERVICE_B, NODE, "Tuesday", "meeting")
        await self._bob.publish(SERVICE_B, NODE, "No cake", "cake")
        await self._bob.retract(SERVICE_B, NODE, "cake")
        await self._bob.publish(SERVICE_B, NODE, "Tea", "tea")
        self.tell("   bob    edited meeting “Tuesday”, cake “No cake”, deleted cake; published tea “Tea”")
        await self._b.end(signal.SIGKILL)
        await self._a.start()
        await when_online(lambda: self._alice.publish(SERVICE_A, NODE, "Friday", "meeting"))
        await self._alice.publish(SERVICE_A, NODE, "Friday at ten", "meeting")
        await self._alice.publish(SERVICE_A, NODE, "Plum cake", "cake")
        await self._alice.publish(SERVICE_A, NODE, "Cups", "cups")
        self.tell("   alice  edited meeting “Friday”, “Friday at ten”, cake “Plum cake”; published cups “Cups”")

        self.tell(
            "\n3. Both run again. They choose the same winner of each item and store the other version as a conflict."
        )
        await self._b.start()
        return await self._meet(_MET)

    async def _settle(self) -> bool:
        self.tell(
            f"\n4. Alice resolves both at {SERVICE_A}: she keeps the winner of meeting, and the other version of cake."
        )
        cake = (await _copy_of(self._a)).items["cake"].versions[1]
        for arguments in (["meeting"], ["cake", "--keep", cake.tag]):
            settled = await self._a.command("conflicts", "resolve", NODE, *arguments, "--by", "alice@localhost")
            self.tell(f"   {settled}")
        return await self._meet(_SETTLED)

    async def _meet(self, titles: Titles) -> bool:
        """Waits until both services have these versions, and prints them. Returns False after a timeout."""
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(_opened(component)) for component in self.components]
            try:
                async with asyncio.timeout(STEP_S):
                    copies = await _alike(stores, titles)
            except TimeoutError:
                copies = [await _read(store) for store in stores]
                self.tell(f"   {verdict(copies, titles)} after {STEP_S:.0f} s")
        for item_id, item in copies[0].items.items():
            winner, *others = item.versions
            if others:
                self.tell(f"   {item_id:8} {winner}; conflict: {', '.join(map(str, others))}")
        for component, copy in zip(self.components, copies, strict=True):
            self.tell(f"   {component.service.partition('.')[0]}  {copy}")
        return not verdict(copies, titles)


def verdict(copies: Sequence[FeedCopy], titles: Titles) -> str:
    """Returns the difference between the copies and these versions, or an empty text."""
    if any(copy != copies[0] for copy in copies):
        return "THEY DIFFER"
    return "" if copies[0].holds(titles) else "THEY ARE THE SAME, BUT NOT WHAT WAS WRITTEN"


async def _alike(stores: Sequence[FeedService], titles: Titles) -> list[FeedCopy]:
    while True:
        copies = [await _read(store) for store in stores]
        if not verdict(copies, titles):
            return copies
        await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _opened(component: DemoService) -> AsyncIterator[FeedService]:
    """Yield the use cases over the database of a service, for reading. The service may be running."""
    service = open_service(load(component.config), on_change=lambda _nodes: None, mode=OpenMode.READ)
    await service.store.open()
    try:
        yield service
    finally:
        await service.store.close()


async def _copy_of(component: DemoService) -> FeedCopy:
    async with _opened(component) as service:
        return await _read(service)


async def _read(service: FeedService) -> FeedCopy:
    def read(tx: ReadTx, context: Context) -> FeedCopy:
        node = tx.node(NODE)
        items = [] if node is None else tx.slice(node.node_no, Slice(SHARED, NO_LIMIT))
        return FeedCopy({} if node is None else {item.id: _kept(context, node, item) for item in items})

    return await service.read(read)


def _kept(context: Context, node: Node, item: Item) -> SharedItem:
    winner = read_shared(context, node, item).version
    versions = tuple(
        SharedVersion(
            _DELETED if version.deleted.on else read_meta(version.payload).body,
            version.counter,
            unquote(version.top.by),
            version_tag(version),
        )
        for version in (winner, *winner.conflicts)
    )
    sync = sync_of(context, node, item)
    return SharedItem(_anew(item.payload), _anew(sync), item.deleted, versions)


def _anew(data: bytes) -> str:
    return canonicalize(data.decode(), rewrite_prefixes=True)
