"""Publishers and a follower that go on while everything around them breaks, and what must be so in the end.

Publishers repeat what was not acknowledged. The follower is the public one, with its pauses shortened. Afterwards
`Race.judge` compares what was acknowledged, what the feed holds, what the follower kept, and what was on the wire.
"""

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from lxml import etree

from smartfeeds.client.change import Change, ChangeKind
from smartfeeds.client.follow import Follower, FollowerClock, Proof, Timer
from smartfeeds.client.transport import ClientLink, Timeouts
from smartfeeds.local.process import HOST
from support.client import Client, Session
from support.component import NS, PS, entry, text_of, tree
from support.waiting import waiting
from support.world import Event, read_event

NODE: Final = "news"
VIEW: Final = f"{NODE}?order=modified"
SHORTENED: Final = 0.004  # the follower's pauses are this part of what they are
NO_INTEGRITY_S: Final = 1e9  # no pull but for a reason: gaps have to be found by the pushes
REQUEST_S: Final = 1.0

_AWAY: Final = {"service-unavailable", "remote-server-not-found", "remote-server-timeout", "resource-constraint"}
_RSM_PAGE: Final = f"<set xmlns='{NS['rsm']}'><max>50</max><after>%s</after></set>"


class Up(Protocol):
    """Whether the service can be asked; lives are counted. A `Relay` is one."""

    async def ready(self) -> int:
        """Waits until it is up; its life."""

    async def over(self, life: int) -> None:
        """Waits until this life is over."""


class Always:
    """The service of this process, which stays."""

    async def ready(self) -> int:
        """At once."""
        return 1

    async def over(self, life: int) -> None:
        """Never."""
        await asyncio.Event().wait()


class Short:
    """The clock of an event loop with shortened pauses."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Calls back after a part of `delay`."""
        return asyncio.get_running_loop().call_later(delay * SHORTENED, callback)

    async def sleep(self, seconds: float) -> None:
        """Sleeps for a part of the time."""
        await asyncio.sleep(seconds * SHORTENED)


class Ledger:
    """The acknowledged writes: the last state of each item, None where it was deleted."""

    def __init__(self) -> None:
        self.state: dict[str, str | None] = {}
        self.acknowledged = 0
        self.attempts = 0
        self._changed = asyncio.Condition()

    async def note(self, item_id: str, title: str | None) -> None:
        """One acknowledgement."""
        self.state[item_id] = title
        async with self._changed:
            self.acknowledged += 1
            self._changed.notify_all()

    async def until(self, count: int) -> None:
        """Waits for the acknowledgement of this number."""
        async with waiting(f"acknowledgement {count}"), self._changed:
            await self._changed.wait_for(lambda: self.acknowledged >= count)


class Publisher:
    """Publishes, edits and deletes items of its own, one request at a time, each until it is acknowledged."""

    def __init__(self, session: Session, service: str, up: Up, ledger: Ledger, name: str, seed: int) -> None:
        self._session = session
        self._service = service
        self._up = up
        self._ledger = ledger
        self._name = name
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self._live: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Goes on until `stop` is set; what has begun is acknowledged first."""
        while not stop.is_set():
            await self.step()

    async def step(self) -> None:
        """One change, acknowledged."""
        chance = self._random.random()
        if chance < 0.5 or not self._live:
            item_id = f"{self._name}-{next(self._numbers)}"
            await self.publish(item_id)
            self._live.append(item_id)
        elif chance < 0.85:
            await self.publish(self._random.choice(self._live))
        else:
            item_id = self._live.pop(self._random.randrange(len(self._live)))
            await self._insist(lambda _n: f"<retract node='{NODE}'><item id='{item_id}'/></retract>")
            await self._ledger.note(item_id, None)

    async def publish(self, item_id: str) -> None:
        """One item, with another title at every attempt, and than anybody else gives it."""

        def title(number: int) -> str:
            return f"{item_id} {self._name} {number}"

        def request(number: int) -> str:
            return f"<publish node='{NODE}'><item id='{item_id}'>{entry(title(number))}</item></publish>"

        await self._ledger.note(item_id, title(await self._insist(request)))

    async def _insist(self, request: Callable[[int], str]) -> int:
        """Asks until there is an answer; the number of the attempt that got it."""
        while True:
            life = await self._up.ready()
            self._ledger.attempts += 1
            number, stanza_id = self._ledger.attempts, f"{self._name}{self._ledger.attempts}"
            inner = f"<pubsub xmlns='{PS}'>{request(number)}</pubsub>"
            xml = f"<iq id='{stanza_id}' type='set' to='{self._service}'>{inner}</iq>"
            try:
                answer = await self._session.ask(stanza_id, xml, partial(self._up.over, life))
            except (ConnectionError, TimeoutError):
                continue
            if answer is None:
                continue
            if answer.get("type") == "result" or _condition(answer) == "item-not-found":
                return number  # a deletion that is not there was acknowledged to nobody
            assert _condition(answer) in _AWAY, text_of(answer)
            if _condition(answer) != "resource-constraint":
                await self._up.over(life)


class Mirror:
    """The copy of a follower: the newest version of each item, in the order in which changes came."""

    def __init__(self, jid: str, password: str, port: int, service: str, store: Path) -> None:
        self._account = jid, password
        self._port = port
        self._address = f"xmpp:{service}?;node={NODE}"
        self._store = store
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._link: ClientLink | None = None
        self.follower: Follower | None = None
        self.items: dict[str, Change] = {}
        self.handed: set[tuple[str, bytes]] = set()
        self.twice: list[str] = []
        self.changes = 0
        self.restarts = 0
        self.pushes = self.pulls = self.gaps = self.late = 0

    def begin(self) -> None:
        """Follows, from the stored position where there is one."""
        short = Short()
        link = self._link = ClientLink(
            *self._account,
            server=(HOST, self._port),
            plaintext=True,
            timeouts=Timeouts(request_s=REQUEST_S),
            sleep=short.sleep,
        )
        self.handed.clear()
        self.follower = Follower(
            link,
            self._address,
            store=self._store,
            mirror=True,
            clock=FollowerClock(short),
            page_items=20,
            integrity_s=NO_INTEGRITY_S,
            on_caught_up=self._caught_up,
        )
        self._task = asyncio.get_running_loop().create_task(self._read(self.follower))

    async def end(self) -> None:
        """Stops following; what comes now is lost."""
        assert self._task is not None and self.follower is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.follower.aclose()
        counters = self.follower.proof().counters
        self.pushes += counters.pushes
        self.pulls += counters.pulls
        self.gaps += counters.gaps_found
        self.late += counters.late_pushes

    async def restart(self) -> None:
        """Ends, and begins from what is stored."""
        await self.end()
        self.restarts += 1
        self.begin()

    def cut(self) -> None:
        """The network of the follower breaks."""
        assert self._link is not None
        if self._link.client.is_connected():
            self._link.client.abort()

    async def until_in_step(self, item_id: str) -> None:
        """Waits until it has this item and knows of nothing that it has not."""
        await self._until(lambda: item_id in self.items and self._in_step, f"{item_id} at the follower")

    async def until_more(self, changes: int) -> None:
        """Waits until it was handed so many more changes."""
        total = self.changes + changes
        await self._until(lambda: self.changes >= total, f"{changes} changes at the follower")

    @property
    def _in_step(self) -> bool:
        return self.follower is not None and self.follower.proof().in_step

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        assert self._task is not None
        async with waiting(what):
            while not condition():
                self._changed.clear()
                woken = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait((woken, self._task), return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
                if self._task.done():
                    self._task.result()

    def _caught_up(self, _proof: Proof) -> None:
        """The last changes are handed over after this."""
        asyncio.get_running_loop().call_soon(self._changed.set)

    async def _read(self, follower: Follower) -> None:
        async for change in follower:
            self.changes += 1
            if (change.item_id, change.payload) in self.handed:
                self.twice.append(change.item_id)
            self.handed.add((change.item_id, change.payload))
            self.items.pop(change.item_id, None)
            self.items[change.item_id] = change
            self._changed.set()


class Wire:
    """Every notification that the component sent, in order, by life."""

    def __init__(self, life: Callable[[], int]) -> None:
        self._life = life
        self.events: list[tuple[int, Event]] = []

    def see(self, stanza: bytes) -> bool:
        """Keeps a notification; whether it was one."""
        if not stanza.startswith(b"<message") or b"/pubsub#event'" not in stanza:
            return False
        self.events.append((self._life(), read_event(stanza)))
        return True

    def judge(self) -> None:
        """Cursors of a stream of pushes strictly grow and name the one before.

        A new life goes on from one of them, or behind them: what was in the buffers of a cut connection is gone.
        """
        last: dict[tuple[str, str], Event] = {}
        lives: dict[tuple[str, str], int] = {}
        known: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for life, event in self.events:
            assert event.last is not None
            stream = event.to, event.node
            before = last.get(stream)
            if before is None:
                known[stream].add(event.previous)
            elif lives[stream] == life:
                assert event.previous == before.last, "a link of the chain is missing"
                assert _key(event.last) > _key(before.last), "out of order"
            else:
                gone = _key(event.previous) > _key(before.last)
                assert gone or event.previous in known[stream], "a life goes on from where nothing was"
            assert event.previous is None or _key(event.previous) < _key(event.last)
            last[stream], lives[stream] = event, life
            known[stream].add(event.last)


def _key(cursor: str | None) -> Decimal:
    assert cursor is not None
    return Decimal(cursor.partition("_")[0])


async def make_feed(client: Client, service: str) -> None:
    """Makes the feed of the race."""
    answer = await client.set(service, f"<pubsub xmlns='{PS}'><create node='{NODE}'/></pubsub>")
    assert answer.get("type") == "result", text_of(answer)


async def pull_all(client: Client, service: str, after: str = "") -> list[etree._Element]:
    """All items of the feed in its order, page by page; from behind a cursor where one is given."""
    items: list[etree._Element] = []
    after = after and f"cursor:{after}"
    while True:
        inner = f"<pubsub xmlns='{PS}'><items node='{VIEW}'/>{_RSM_PAGE % after}</pubsub>"
        answer = await client.get(service, inner if after else inner.replace("<after></after>", ""))
        assert answer.get("type") == "result", text_of(answer)
        page = answer.findall("ps:pubsub/ps:items/ps:item", NS)
        if not page:
            return items
        items += page
        after = answer.findtext("ps:pubsub/rsm:set/rsm:last", "", NS)


def judge(feed: list[etree._Element], ledger: Ledger, mirror: Mirror) -> None:
    """The feed holds what was acknowledged, and the mirror is the feed, in its order."""
    held = {str(item.get("id")): item for item in feed}
    state = {item_id: _title(item) for item_id, item in held.items()}
    assert len(held) == len(feed)
    assert state == ledger.state, "acknowledged and lost, or there and not acknowledged"
    assert list(mirror.items) == list(held), "the changes came in the order of the feed"
    assert mirror.twice == []
    for item_id, change in mirror.items.items():
        assert (change.kind is ChangeKind.DELETED) == (state[item_id] is None)
        assert tree(etree.fromstring(change.payload)) == tree(held[item_id][0])


def _title(item: etree._Element) -> str | None:
    deleted = item.find(".//sx:sync[@deleted='true']", NS) is not None
    return None if deleted else item.findtext(".//a:title", "", NS)


def _condition(answer: etree._Element) -> str:
    return str(answer[-1][0].tag.rpartition("}")[2])


@asynccontextmanager
async def publishing(publishers: list[Publisher]) -> AsyncIterator[None]:
    """They publish at the same time until the block ends, and end with what has begun. Raises what one failed with."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for publisher in publishers:
            group.create_task(publisher.run(stop))
        yield
        stop.set()
