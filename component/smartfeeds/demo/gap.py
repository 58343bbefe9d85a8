"""The recovery of gaps, as it really happens (Smart Feeds, Updates via Push; SF-047 to SF-051).

A real Prosody, the component as a process of its own, a publisher and a follower, each with its own client.
Notifications are lost in three ways: the reader's session does not take any, the component is killed, the reader is
not there. Nobody tells the follower: the cursors do.
"""

import asyncio
import hashlib
import signal
from dataclasses import replace
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from rich.console import Console

from smartfeeds.client.change import Change, ChangeKind
from smartfeeds.client.events import FollowCounters
from smartfeeds.client.follow import Follower, Proof
from smartfeeds.client.stanzas import PUBSUB, RSM, SHIM
from smartfeeds.client.transport import SlixLink
from smartfeeds.core.text import counted
from smartfeeds.demo.person import DemoUser
from smartfeeds.demo.stage import STEP_S, Stage, Tell, when_online

SERVICE: Final = "feeds.localhost"
NODE: Final = "news"
ADDRESS: Final = f"xmpp:{SERVICE}?;node={NODE}"


class TellingLink(SlixLink):
    """A link that tells what a follower asks for and what it is sent."""

    def __init__(self, person: DemoUser, tell: Tell) -> None:
        super().__init__(person.link.client)
        self._tell = tell

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Tells the request and the size of its answer."""
        reply = await super().ask(kind, to, payload)
        if payload.find(f"{{{PUBSUB}}}items") is not None:
            after = payload.findtext(f"{{{RSM}}}set/{{{RSM}}}after") or "the start"
            items = len(reply.findall(f".//{{{PUBSUB}}}item"))
            self._tell(f"   pull   since {after.removeprefix('cursor:')}: {counted(items, 'item')}")
        return reply

    def _on_message(self, stanza: object) -> None:
        headers = {one.get("name"): one.text for one in stanza.xml.iter(f"{{{SHIM}}}header")}  # type: ignore[attr-defined]
        if "LastCursor" in headers:
            self._tell(f"   push   previous {headers.get('PreviousCursor') or '(none)'}, last {headers['LastCursor']}")
        super()._on_message(stanza)  # type: ignore[arg-type]


class DemoReader:
    """Bob: follows the feed, copies it, and stores his position in a file."""

    def __init__(self, person: DemoUser, store: Path, tell: Tell) -> None:
        self.person = person
        self.mirror: dict[str, bytes] = {}
        self._store = store
        self._tell = tell
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.follower: Follower | None = None
        self._met = FollowCounters()

    async def begin(self) -> None:
        """Logs in and follows, from the stored position where there is one."""
        await self.person.login()
        link = TellingLink(self.person, self._tell)
        self.follower = Follower(link, ADDRESS, store=self._store, mirror=True, on_caught_up=self._caught_up)
        self._task = asyncio.create_task(self._read(self.follower))

    async def end(self) -> None:
        """Stops following and logs out; what comes now is lost."""
        if self._task is not None and self.follower is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self.follower.aclose()
            self._met += self.follower.proof().counters
        await self.person.logout()

    def proof(self) -> Proof:
        """Returns the proof of Bob's follower, with the counters of all his runs."""
        assert self.follower is not None
        now = self.follower.proof()
        return replace(now, counters=self._met + now.counters)

    async def until(self, newest: str) -> None:
        """Returns when the item that was published last is in the mirror and the follower is in step."""
        assert self.follower is not None
        assert self._task is not None
        async with asyncio.timeout(STEP_S):
            while newest not in self.mirror or not self.follower.proof().in_step:
                self._changed.clear()
                woken = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait((woken, self._task), return_when=asyncio.FIRST_COMPLETED)
                if self._task.done():
                    woken.cancel()
                    self._task.result()

    async def _read(self, follower: Follower) -> None:
        async for change in follower:
            self._take(change)
            self._changed.set()

    def _take(self, change: Change) -> None:
        self.mirror[change.item_id] = change.payload
        name = change.item_id if change.kind is ChangeKind.DELETED else f"{change.item_id} “{change.title}”"
        self._tell(f"   bob    {change.kind.value} {name}")

    def _caught_up(self, proof: Proof) -> None:
        """Comes before the last changes are handed over, so it waits for them."""
        asyncio.get_running_loop().call_soon(self._in_step, proof)

    def _in_step(self, proof: Proof) -> None:
        self._tell(f"   bob    has everything: {proof.total} items, at {proof.position}")
        self._changed.set()


class GapDemo(Stage):
    """Plays the demonstration: Alice publishes, Bob follows."""

    def __init__(self, folder: Path, console: Console) -> None:
        super().__init__(folder, console, [SERVICE])
        (self._component,) = self.components
        self._published = 0
        self.alice: DemoUser
        self.bob: DemoReader

    async def perform(self) -> bool:
        """Plays all scenes. Returns whether mirror and feed are the same at the end. Raises LinkError, ConfigError."""
        async with self.open():
            await self._component.start()
            self.alice = await self.person("alice")
            self.bob = DemoReader(await self.person("bob"), self.folder / "position", self.tell)
            await self.alice.login()
            await self._play()
            same = await self._compare()
            await self.alice.logout()
            return same

    async def publish(self, count: int = 1) -> str:
        """Alice publishes; returns the id of the last item, acknowledged by the service."""
        item_id = ""
        for _ in range(count):
            self._published += 1
            item_id = f"item-{self._published}"
            await self.alice.publish(SERVICE, NODE, f"Number {self._published}", item_id)
        self.tell(f"   alice  published {'up to ' if count > 1 else ''}{item_id}")
        return item_id

    async def _play(self) -> None:
        self.tell(f"1. Alice makes the feed {NODE}; Bob mirrors it.")
        await when_online(lambda: self.alice.create(SERVICE, NODE))
        newest = await self.publish(3)
        await self.bob.begin()
        await self.bob.until(newest)
        await self.bob.until(await self.publish())

        self.tell("\n2. Bob's session takes no messages for a while: Prosody drops three notifications without a word.")
        self.bob.person.link.client.send_presence(ptype="unavailable")
        await self._settled()
        await self.publish(3)
        await self._settled()
        self.bob.person.link.client.send_presence()
        await self._settled()
        self.tell("   The next notification says what came before it, and Bob does not have that:")
        await self.bob.until(await self.publish())

        self.tell("\n3. The component is killed right after it has acknowledged an item, and started again.")
        newest = await self.publish()
        await self._component.end(signal.SIGKILL)
        self.tell("   killed and started again; it sends again what it cannot know to have arrived, and Bob knows it:")
        await self._component.start()
        await when_online(lambda: self.alice.publish(SERVICE, NODE, "Number 1, edited", "item-1"))
        self.tell("   alice  edited item-1")
        await self.bob.until(newest)
        await self.bob.until(await self.publish())

        self.tell(
            "\n4. Bob is not there while Alice publishes, edits and deletes. He comes back with his stored cursor."
        )
        await self.bob.end()
        await self.publish(2)
        await self.alice.publish(SERVICE, NODE, "Number 2, edited", "item-2")
        await self.alice.retract(SERVICE, NODE, "item-3")
        self.tell("   alice  edited item-2, deleted item-3")
        newest = await self.publish()
        self.bob.person = await self.person("bob")
        await self.bob.begin()
        await self.bob.until(newest)

    async def _compare(self) -> bool:
        """Whether the mirror is the feed, as a fresh reader pulls it."""
        proof = self.bob.proof()
        await self.bob.end()
        fresh = DemoReader(await self.person("carol"), self.folder / "fresh", lambda _text: None)
        await fresh.begin()
        await fresh.until(f"item-{self._published}")
        await fresh.end()
        same = fresh.mirror == self.bob.mirror
        self.tell("\n5. The proof: Bob's mirror beside the feed as Carol pulls it, from its first item on.")
        self.tell(f"   mirror {_digest(self.bob.mirror)}")
        self.tell(f"   feed   {_digest(fresh.mirror)}")
        self.tell(f"   {'They are the same.' if same else 'THEY DIFFER.'} Bob, in all his runs: {proof}")
        return same

    async def _settled(self) -> None:
        """Returns when the server has worked on everything that Bob and Alice had sent."""
        for person in (self.bob.person, self.alice):
            await person.link.ask("get", "localhost", Element("{urn:xmpp:ping}ping"))
            await person.link.ask("get", SERVICE, Element("{urn:xmpp:ping}ping"))


def _digest(mirror: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for item_id in sorted(mirror):
        whole.update(item_id.encode() + b"\0" + mirror[item_id] + b"\0")
    return f"{counted(len(mirror), 'item')}, sha256 {whole.hexdigest()[:16]}"
