"""People who change a feed that several services share, and what is to be so of it in the end."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import aiohttp
from lxml import etree

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token
from smartfeeds.features.conflicts.requests import ConflictList, ListConflicts, ResolveConflicts
from smartfeeds.features.mirrors.mirror_in import XmppMirrorReader
from smartfeeds.features.mirrors.mirror_out import MirrorOutlet
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.mirrors.mirrors import Mirrors
from support.client import Client
from support.component import NS, PS, entry, text_of
from support.race import NODE
from support.site import AppSite, Site, State
from support.waiting import waiting

_SECRET: Final = "s" * 43
_numbers = itertools.count(1)


class Person:
    """Somebody at a server, who changes what the service there holds. Raises AssertionError for what is refused."""

    def __init__(self, client: Client, site: Site) -> None:
        self.client = client
        self.site = site

    @property
    def jid(self) -> Jid:
        """The JID of the user."""
        address = parse_jid(self.client.jid)
        assert address is not None
        return address

    async def ask(self, inner: str, xmlns: str = PS) -> None:
        """A request that has to be granted."""
        answer = await self.client.set(self.site.name, f"<pubsub xmlns='{xmlns}'>{inner}</pubsub>")
        assert answer.get("type") == "result", text_of(answer)

    async def create(self, publishers: Iterable[Site] = ()) -> None:
        """Makes the node; these services may publish to it."""
        await self.ask(f"<create node='{NODE}'/>")
        for site in publishers:
            who = f"<affiliation jid='{site.name}' affiliation='publisher'/>"
            await self.ask(f"<affiliations node='{NODE}'>{who}</affiliations>", f"{PS}#owner")

    async def publish(self, item_id: str, title: str = "") -> None:
        """Publishes an item or changes it."""
        await self.ask(f"<publish node='{NODE}'><item id='{item_id}'>{entry(title or item_id)}</item></publish>")

    async def publish_many(self, item_ids: Iterable[str]) -> None:
        """Publishes items, several at once."""
        numbers = iter(item_ids)
        while some := list(itertools.islice(numbers, 50)):
            await asyncio.gather(*map(self.publish, some))

    async def retract(self, item_id: str) -> None:
        """Deletes an item."""
        await self.ask(f"<retract node='{NODE}'><item id='{item_id}'/></retract>")

    async def put(self, item_id: str, title: str = "", payload: str = "") -> None:
        """Publishes over HTTP. The service is in this process and listens."""
        assert isinstance(self.site, AppSite)
        app = self.site.app
        assert app.site is not None
        token_id = f"{next(_numbers):012x}"
        token = Token(token_id, digest_of(_SECRET), self.jid.bare_text, TokenScope.PUBLISH, ALL_FEEDS, "", 0)
        await app.service.write(lambda tx, context: add_token(tx, context, token, None))
        url = f"http://127.0.0.1:{app.site.listener.port}/entries/{NODE}/{item_id}"
        headers = {"Authorization": f"Bearer {write_token(token_id, _SECRET)}", "Content-Type": "application/atom+xml"}
        async with aiohttp.request("PUT", url, data=(payload or entry(title)).encode(), headers=headers) as answer:
            assert answer.status in (200, 201, 204), await answer.text()

    async def settle(self, item_id: str, title: str = "") -> None:
        """Settles all conflicts of an item: the version with this title stays, or the winner."""
        assert isinstance(self.site, AppSite)
        app, service = self.site.app, self.site.name
        conflicted = await app.handle(ListConflicts(self.jid, service, NODE, item_id=item_id))
        assert isinstance(conflicted, ConflictList)
        (one,) = conflicted.entries
        titles = [title_of(version.payload) for version in (one.version, *one.version.conflicts)]
        keep = one.tags[titles.index(title)] if title else ""
        await app.handle(ResolveConflicts(self.jid, service, NODE, item_id, keep=keep, seen=one.tags))


def title_of(payload: bytes) -> str:
    """The title of an entry."""
    return etree.fromstring(payload).findtext("a:title", "", NS)


def titles(state: State) -> dict[str, str]:
    """The titles of the live items, by id."""
    return {item_id: title_of(item.payload) for item_id, item in state.items() if not item.deleted}


def conflicts(state: State) -> dict[str, int]:
    """The items that have conflicts, and how many."""
    return {item_id: item.conflicts for item_id, item in state.items() if item.conflicts}


async def connect(near: Site, far: Site, direction: str, every_s: float) -> None:
    """One feed of two: by one mirror of the far side that goes both ways, or by one each that goes in."""
    for site, source in [(far, near)] if direction == "both" else [(near, far), (far, near)]:
        await site.stop()
        site.mirror(source, NODE, direction, every_s=every_s)
        await site.start()


class Steps:
    """Counts how often each direction of each mirror in this process came to be in step."""

    def __init__(self) -> None:
        self.of: Counter[MirrorStateStore] = Counter()
        self._stepped = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, state_store: MirrorStateStore) -> None:
        """One more."""
        self.of[state_store] += 1
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._stepped:
            self._stepped.notify_all()

    async def lap(self, sites: Sequence[AppSite]) -> None:
        """Lets every mirror look whether there is more to fetch or to send, until each is in step again."""
        before: dict[MirrorStateStore, int] = {}
        for site in sites:
            for run in site.app.parts.get(Mirrors).runs.values():
                for part in run.directions:
                    before[part.state_store] = self.of[part.state_store]
                    if isinstance(part, MirrorOutlet):
                        assert part.consumer is not None
                        site.app.dispatcher.hurry(part.consumer)
                    else:
                        assert isinstance(part, XmppMirrorReader)
                        part.check()
        assert before
        async with waiting("a lap of every mirror"), self._stepped:
            await self._stepped.wait_for(
                lambda: all(self.of[state_store] > count for state_store, count in before.items())
            )


def moved(sites: Sequence[AppSite]) -> list[tuple[int, int]]:
    """The activity of each site: events sent, and changes that mirrors took over or sent."""
    return [
        (
            site.app.notifications.sent,
            sum(
                part.state_store.state.items
                for run in site.app.parts.get(Mirrors).runs.values()
                for part in run.directions
            ),
        )
        for site in sites
    ]
