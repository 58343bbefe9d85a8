"""One feed at two services, edited while they are apart (docs/mirrors.md; FeedSync 3.2 to 3.4).

A real Prosody, two services as processes of their own with a mirror between them, and a person at each. The services
are apart because never more than one of them runs; each takes changes of the same items meanwhile. After each meeting
their stores are compared, and what is in them with what was written.
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

from smartfeeds.config import load
from smartfeeds.core.model import NO_LIMIT, Item, Node, Slice
from smartfeeds.core.text import counted
from smartfeeds.core.view import SHARED
from smartfeeds.demo.person import DemoUser
from smartfeeds.demo.stage import STEP_S, DemoService, Stage, when_online
from smartfeeds.formats.atom import read_meta
from smartfeeds.opening import open_service
from smartfeeds.service.conflicts import version_tag
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.syncing import read_shared, sync_of
from smartfeeds.store.base import OpenMode, ReadTx

SERVICE_A: Final = "feeds-a.localhost"
SERVICE_B: Final = "feeds-b.localhost"
NODE: Final = "plans"
ADDRESS: Final = f"xmpp:{SERVICE_A}?;node={NODE}"
_LOOK_S: Final = 0.05  # how often the stores are looked at: services in other processes do not tell us of changes

# What the feed is to hold: the titles of the versions of each item with their number of changes, the winner first.
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
    """A version of an item, for people: its title (empty where it is deleted), changes, who made it, and its tag."""

    title: str
    changes: int
    by: str
    tag: str

    def __str__(self) -> str:
        name = f"“{self.title}”" if self.title else "deleted"
        return f"{name} ({counted(self.changes, 'change')}, {self.by})"


class SharedItem(NamedTuple):
    """What two services must have in common of an item: XML whose prefixes are written anew, as servers may do."""

    payload: str
    sync: str
    deleted: bool
    versions: tuple[SharedVersion, ...]


@dataclass(frozen=True, slots=True)
class FeedCopy:
    """The items of the feed at one service, by item id, including tombstones."""

    items: dict[str, SharedItem]

    def holds(self, titles: Titles) -> bool:
        """Whether it has these items with these versions, and no others."""
        found = {key: tuple((one.title, one.changes) for one in kept.versions) for key, kept in self.items.items()}
        return found == titles

    def __str__(self) -> str:
        whole = hashlib.sha256()
        for item_id, kept in sorted(self.items.items()):
            whole.update("\0".join((item_id, kept.payload, kept.sync, str(kept.deleted), "")).encode())
        conflicts = sum(len(kept.versions) - 1 for kept in self.items.values())
        changes = sum(kept.versions[0].changes for kept in self.items.values())
        parts = counted(len(self.items), "item"), counted(changes, "change"), counted(conflicts, "conflict")
        return f"{', '.join(parts)}, sha256 {whole.hexdigest()[:16]}"


class SharingDemo(Stage):
    """Plays the demonstration at the two services."""

    def __init__(self, folder: Path, console: Console) -> None:
        super().__init__(folder, console, [SERVICE_A, SERVICE_B])
        self._a, self._b = self.components
        self._alice: DemoUser
        self._bob: DemoUser

    async def perform(self) -> bool:
        """All scenes; whether everything was as it is told."""
        async with self.open():
            self._alice, self._bob = await self.person("alice"), await self.person("bob")
            await self._alice.login()
            await self._bob.login()
            told = await self._begin() and await self._part() and await self._settle()
            if told:
                self.tell("   The two stores are the same, with all histories. Nothing was lost: Alice has decided.")
            await self._alice.logout()
            await self._bob.logout()
            return told

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
        self.tell("\n2. They are apart: each is killed while somebody edits at the other.")
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

        self.tell("\n3. They meet again. Both have the same winner of each item, and keep what lost as a conflict.")
        await self._b.start()
        return await self._meet(_MET)

    async def _settle(self) -> bool:
        self.tell(f"\n4. Alice settles both at {SERVICE_A}: of one the winner stays, of the other what lost.")
        cake = (await _copy_of(self._a)).items["cake"].versions[1]
        for arguments in (["meeting"], ["cake", "--keep", cake.tag]):
            settled = await self._a.command("conflicts", "resolve", NODE, *arguments, "--by", "alice@localhost")
            self.tell(f"   {settled}")
        return await self._meet(_SETTLED)

    async def _meet(self, titles: Titles) -> bool:
        """Waits until both hold this and the same, and tells what they hold; False where it does not come to that."""
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(_opened(component)) for component in self.components]
            try:
                async with asyncio.timeout(STEP_S):
                    copies = await _alike(stores, titles)
            except TimeoutError:
                copies = [await _read(store) for store in stores]
                self.tell(f"   {verdict(copies, titles)} after {STEP_S:.0f} s")
        for item_id, kept in copies[0].items.items():
            winner, *others = kept.versions
            if others:
                self.tell(f"   {item_id:8} {winner}; conflict: {', '.join(map(str, others))}")
        for component, copy in zip(self.components, copies, strict=True):
            self.tell(f"   {component.service.partition('.')[0]}  {copy}")
        return not verdict(copies, titles)


def verdict(copies: Sequence[FeedCopy], titles: Titles) -> str:
    """Returns what is wrong with copies that should all have these versions; empty if they have."""
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
    """A look into the store of a service, whether it runs or not."""
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
        found = [] if node is None else tx.slice(node.node_no, Slice(SHARED, NO_LIMIT))
        return FeedCopy({} if node is None else {item.id: _kept(context, node, item) for item in found})

    return await service.read(read)


def _kept(context: Context, node: Node, item: Item) -> SharedItem:
    winner = read_shared(context, node, item).version
    seen = tuple(
        SharedVersion(
            _DELETED if one.deleted.on else read_meta(one.payload).body,
            one.counter,
            unquote(one.top.by),
            version_tag(one),
        )
        for one in (winner, *winner.conflicts)
    )
    sync = sync_of(context, node, item)
    return SharedItem(_anew(item.payload), _anew(sync), item.deleted, seen)


def _anew(data: bytes) -> str:
    return canonicalize(data.decode(), rewrite_prefixes=True)
