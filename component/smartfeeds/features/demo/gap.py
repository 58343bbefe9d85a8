"""`smartfeeds demo gap`: a follower detects lost notifications and pulls the missing items (SF-047 to SF-051).

A real Prosody, the component as a separate process, a publisher and a follower, each with a client. Notifications are
lost in three ways: the client of the reader is unavailable, the component is killed, the reader is logged out. The
follower learns of each loss from the cursors alone.
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
from smartfeeds.features.demo.person import DemoUser
from smartfeeds.features.demo.stage import STEP_S, Stage, Tell, when_online

SERVICE: Final = "feeds.localhost"
NODE: Final = "news"
ADDRESS: Final = f"xmpp:{SERVICE}?;node={NODE}"


class TellingLink(SlixLink):
    """A link that prints the requests of a follower and the notifications that it receives."""

    def __init__(self, person: DemoUser, tell: Tell) -> None:
        super().__init__(person.link.client)
        self._tell = tell

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Prints the request and the number of items in its response."""
        reply = await super().ask(kind, to, payload)
        if payload.find(f"{{{PUBSUB}}}items") is not None:
            after = payload.findtext(f"{{{RSM}}}set/{{{RSM}}}after") or "the start"
            items = len(reply.findall(f".//{{{PUBSUB}}}item"))
            self._tell(f"   pull   since {after.removeprefix('cursor:')}: {counted(items, 'item')}")
        return reply

    # The types of slixmpp are not imported here: only `client` knows the library.
    def _on_message(self, stanza: object) -> None:
        headers = {header.get("name"): header.text for header in stanza.xml.iter(f"{{{SHIM}}}header")}  # type: ignore[attr-defined]
        if "LastCursor" in headers:
            self._tell(f"   push   previous {headers.get('PreviousCursor') or '(none)'}, last {headers['LastCursor']}")
        super()._on_message(stanza)  # type: ignore[arg-type]


class DemoReader:
    """A reader, such as Bob, who follows the feed, copies it, and stores the position in a file."""

    def __init__(self, person: DemoUser, store: Path, tell: Tell) -> None:
        self.person = person
        self.mirror: dict[str, bytes] = {}
        self._store = store
        self._tell = tell
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.follower: Follower | None = None
        self._counters = FollowCounters()

    async def begin(self) -> None:
        """Logs in and follows, from the stored position if there is one."""
        await self.person.login()
        link = TellingLink(self.person, self._tell)
        self.follower = Follower(link, ADDRESS, store=self._store, mirror=True, on_caught_up=self._caught_up)
        self._task = asyncio.create_task(self._read(self.follower))

    async def end(self) -> None:
        """Stops following and logs out. Later notifications are lost."""
        if self._task is not None and self.follower is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self.follower.aclose()
            self._counters += self.follower.proof().counters
        await self.person.logout()

    def proof(self) -> Proof:
        """Returns the proof of the follower, with the counters of all runs."""
        assert self.follower is not None
        proof = self.follower.proof()
        return replace(proof, counters=self._counters + proof.counters)

    async def until(self, newest: str) -> None:
        """Returns when the item that was published last is in the mirror and the follower is in step."""
        assert self.follower is not None  # `begin` was called
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
        """Prints the proof after the changes that the follower delivers next."""
        asyncio.get_running_loop().call_soon(self._in_step, proof)

    def _in_step(self, proof: Proof) -> None:
        self._tell(f"   bob    has everything: {proof.total} items, at {proof.position}")
        self._changed.set()


class GapDemo(Stage):
    """The scenes: Alice publishes, Bob follows."""

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
        """Publishes items as Alice. Returns the id of the last item, which the service has acknowledged."""
        item_id = ""
        for _ in range(count):
            self._published += 1
            item_id = f"item-{self._published}"
            await self.alice.publish(SERVICE, NODE, f"Number {self._published}", item_id)
        self.tell(f"   alice  published {'up to ' if count > 1 else ''}{item_id}")
        return item_id

    async def _play(self) -> None:
        self.tell(f"1. Alice creates the feed {NODE}; Bob mirrors it.")
        await when_online(lambda: self.alice.create(SERVICE, NODE))
        newest = await self.publish(3)
        await self.bob.begin()
        await self.bob.until(newest)
        await self.bob.until(await self.publish())

        self.tell("\n2. Bob's client becomes unavailable: Prosody drops three notifications, and nobody gets an error.")
        self.bob.person.link.client.send_presence(ptype="unavailable")
        await self._settled()
        await self.publish(3)
        await self._settled()
        self.bob.person.link.client.send_presence()
        await self._settled()
        self.tell("   The next notification names the item before it. Bob lacks that item and pulls:")
        await self.bob.until(await self.publish())

        self.tell("\n3. The component is killed right after it has acknowledged an item, and starts again.")
        newest = await self.publish()
        await self._component.end(signal.SIGKILL)
        self.tell(
            "   killed and started; it repeats notifications that may be lost, and Bob ignores those that he has:"
        )
        await self._component.start()
        await when_online(lambda: self.alice.publish(SERVICE, NODE, "Number 1, edited", "item-1"))
        self.tell("   alice  edited item-1")
        await self.bob.until(newest)
        await self.bob.until(await self.publish())

        self.tell("\n4. Bob is logged out while Alice publishes, edits and deletes. He returns with his stored cursor.")
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
        """Returns whether the mirror equals the feed as a new reader pulls it."""
        proof = self.bob.proof()
        await self.bob.end()
        fresh = DemoReader(await self.person("carol"), self.folder / "fresh", lambda _text: None)
        await fresh.begin()
        await fresh.until(f"item-{self._published}")
        await fresh.end()
        same = fresh.mirror == self.bob.mirror
        self.tell("\n5. The proof: Bob's mirror, and the feed as Carol reads it from the beginning.")
        self.tell(f"   mirror {_digest(self.bob.mirror)}")
        self.tell(f"   feed   {_digest(fresh.mirror)}")
        self.tell(f"   {'They are the same.' if same else 'THEY DIFFER.'} Bob, in all his runs: {proof}")
        return same

    async def _settled(self) -> None:
        """Returns when the server has processed everything that Bob and Alice sent: stanzas are answered in order."""
        for person in (self.bob.person, self.alice):
            await person.link.ask("get", "localhost", Element("{urn:xmpp:ping}ping"))
            await person.link.ask("get", SERVICE, Element("{urn:xmpp:ping}ping"))


def _digest(mirror: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for item_id in sorted(mirror):
        whole.update(item_id.encode() + b"\0" + mirror[item_id] + b"\0")
    return f"{counted(len(mirror), 'item')}, sha256 {whole.hexdigest()[:16]}"
