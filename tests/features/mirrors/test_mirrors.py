"""Two whole services whose servers pass on each other's stanzas: mirrors from the configuration to the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from smartfeeds.app.config import Settings, settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.backoff import Backoff
from smartfeeds.core.model import Slice
from smartfeeds.core.view import SMART
from smartfeeds.features.mirrors.mirror import make_mirror
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.features.mirrors.statuses import add_mirror, describe_standing, mirror_statuses, remove_mirror
from smartfeeds.service import requests as r
from support.fakeserver import FakeServer, Session
from support.waiting import until, wait_for
from support.world import draft, entry, form, jid

A, B = "feeds.a.example", "feeds.b.example"
NODE = "plans"
OWNER = "owner@people.example"


def settings(folder: Path, domain: str, port: int, mirrors: list[dict[str, Any]]) -> Settings:
    return settings_of(
        component={"jid": domain, "secret": "secret", "port": port},
        store={"url": f"sqlite:///{folder / domain}.db"},
        http={"listen": "127.0.0.1:0"},
        mirror=mirrors,
    )


class Pair:
    """Two services, and the servers between them. `changed` is set whenever one of them has written something."""

    def __init__(self) -> None:
        self.apps: dict[str, App] = {}
        self.servers: dict[str, FakeServer] = {}
        self.sessions: dict[str, Session] = {}
        self.changed = asyncio.Event()
        self.passing: list[asyncio.Task[None]] = []
        self.listening = contextlib.AsyncExitStack()

    async def start(self, folder: Path, mirrors: dict[str, list[dict[str, Any]]]) -> None:
        for domain in (A, B):
            server = self.servers[domain] = await self.listening.enter_async_context(FakeServer(domain, "secret"))
            app = self.apps[domain] = App(settings(folder, domain, server.port, mirrors.get(domain, [])))
            app.service._on_change = self._noting(app.changes.announce)
            await app.service.store.open()
            await self._node(app, {A: B, B: A}[domain])
            await app.service.store.close()
        for domain, app in self.apps.items():
            await app.start()
            self.sessions[domain] = await self.servers[domain].session()
        self.passing = [asyncio.ensure_future(self._pass(domain)) for domain in self.sessions]

    def _noting(self, on_change: Callable[[Any], None]) -> Callable[[Any], None]:
        def note(node_nos: Any) -> None:
            on_change(node_nos)
            self.changed.set()

        return note

    async def _node(self, app: App, publisher: str) -> None:
        domain = app.settings.component.jid
        app.service.policy = app.service.policy.__class__(domain, admins=frozenset({OWNER}))
        await app.service.handle(r.CreateNode(jid(OWNER), domain, NODE, form(kind="feed")))
        await app.service.handle(r.SetAffiliations(jid(OWNER), domain, NODE, ((publisher, "publisher"),)))

    async def _pass(self, domain: str) -> None:
        while True:
            stanza = await self.sessions[domain].stanzas.get()
            to = self.sessions.get(stanza.get("to", ""))
            if to is not None:
                with contextlib.suppress(ConnectionError):  # what is sent to a link that was cut is lost
                    await to.send(etree.tostring(stanza, with_tail=False))

    async def until(self, domain: str, ids: set[str]) -> dict[str, bytes]:
        """Waits until just these items are there; their payloads."""
        while True:
            self.changed.clear()
            found = await self.apps[domain].service.read(self._items)
            if found.keys() == ids:
                return found
            await wait_for(self.changed.wait(), f"the items {ids} of {domain} instead of {found.keys()}")

    @staticmethod
    def _items(tx: Any, _context: Any) -> dict[str, bytes]:
        return {item.id: item.payload for item in tx.slice(tx.node(NODE).node_no, Slice(SMART, 100))}

    async def publish(self, domain: str, item_id: str, payload: str = "") -> None:
        request = r.Publish(jid(OWNER), domain, NODE, item_id, draft(payload or entry(item_id)))
        await self.apps[domain].service.handle(request)

    async def stop(self) -> None:
        for task in self.passing:
            task.cancel()
        await asyncio.gather(*self.passing, return_exceptions=True)
        for app in self.apps.values():
            await app.stop()
        await self.listening.aclose()


@contextlib.asynccontextmanager
async def running(folder: Path, mirrors: dict[str, list[dict[str, Any]]]) -> AsyncIterator[Pair]:
    pair = Pair()
    try:
        await pair.start(folder, mirrors)
        yield pair
    finally:
        await pair.stop()


@pytest.mark.parametrize("direction", ["in", "out", "both"])
async def test_item_published_on_either_side_is_on_both(tmp_path: Path, direction: str) -> None:
    """Over the component stream; foreign markup comes as it was, attributes with a namespace too."""
    marked = entry("x", inner="<geo xmlns='urn:g' xmlns:p='urn:p' p:at='here'/>")
    mirrors = {B: [{"node": NODE, "address": f"xmpp:{A}?;node={NODE}", "direction": direction}]}
    async with running(tmp_path, mirrors) as pair:
        source, target = (B, A) if direction == "out" else (A, B)
        await pair.publish(source, "x", marked)
        found = await pair.until(target, {"x"})
        geo = etree.fromstring(found["x"]).find("{urn:g}geo")
        assert geo is not None and geo.get("{urn:p}at") == "here"

        if direction == "both":
            await pair.publish(B, "y", marked)
            found = await pair.until(A, {"x", "y"})
            geo = etree.fromstring(found["y"]).find("{urn:g}geo")
            assert geo is not None and geo.get("{urn:p}at") == "here"


@pytest.mark.parametrize("path", ["/feeds/plans/", "/feeds/plans.atom?sync=true"])
async def test_item_comes_over_http_without_a_poll(tmp_path: Path, path: str) -> None:
    """[SF-046] The next poll is due in a day. The pull that the other service holds ends with the mirror."""
    async with running(tmp_path, {}) as pair:
        publisher, follower = pair.apps[A].site, pair.apps[B]
        assert publisher is not None
        held = publisher.feeds.waiting
        address = f"http://127.0.0.1:{publisher.listener.port}{path}"
        mirror = make_mirror(node=NODE, address=address, name="a", every_s=86_400.0, allow_private=True)
        await pair.publish(A, "first")
        await follower.service.write(partial(add_mirror, mirror=mirror))
        await follower.parts.get(Mirrors).look()
        await pair.until(B, {"first"})
        await until(lambda: held.held == 1, "the pull of the mirror")

        await pair.publish(A, "second")
        await pair.until(B, {"first", "second"})
        await until(lambda: held.held == 1, "the next pull of the mirror")
        (status,) = await follower.service.read(mirror_statuses)
        assert describe_standing(status.standings[0]) == "in step, followed by held pull"

        await follower.service.write(partial(remove_mirror, name="a"))
        await follower.parts.get(Mirrors).look()
        await until(lambda: held.held == 0, "the end of the pull")


async def test_link_that_breaks_is_made_good(tmp_path: Path) -> None:
    """Requests on their way are asked again on the next link."""
    mirrors = {B: [{"node": NODE, "address": f"xmpp:{A}?;node={NODE}", "direction": "both"}]}
    async with running(tmp_path, mirrors) as pair:
        await pair.publish(A, "x")
        await pair.until(B, {"x"})
        pair.sessions[B].cut()
        await pair.publish(A, "meanwhile at a")
        await pair.publish(B, "meanwhile at b")
        pair.sessions[B] = await pair.servers[B].session(2)
        pair.passing[1].cancel()
        pair.passing[1] = asyncio.ensure_future(pair._pass(B))

        everything = {"x", "meanwhile at a", "meanwhile at b"}
        await pair.until(B, everything)
        await pair.until(A, everything)


@pytest.mark.parametrize("direction", ["in", "out"])
async def test_service_that_never_answers_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    """A server whose network breaks may lose a request without an error: the request ends after `link.answer_s`.

    [xep-map 245] The service subscribes upstream from its own address, and as itself.
    """
    monkeypatch.setattr(import_module("smartfeeds.client.follow"), "BACKOFF", Backoff(first_s=0.01, longest_s=60.0))
    monkeypatch.setattr("smartfeeds.features.mirrors.mirror_state.BACKOFF", Backoff(first_s=0.01, longest_s=300.0))
    mirror = {"node": NODE, "address": f"xmpp:{A}?;node={NODE}", "direction": direction}
    async with FakeServer(B, "secret") as server:
        made = settings(tmp_path, B, server.port, [mirror])
        app = App(made.model_copy(update={"link": made.link.model_copy(update={"answer_s": 0.05})}))
        await app.service.store.open()
        await Pair()._node(app, A)
        await app.service.handle(r.Publish(jid(OWNER), B, NODE, "x", draft(entry("x"))))
        await app.service.store.close()
        await app.start()
        session = await server.session()
        asked = [await session.expect() for _ in range(3)]
        await app.stop()

    what = "subscribe" if direction == "in" else "publish"
    assert [stanza[0][0].tag for stanza in asked] == [f"{{http://jabber.org/protocol/pubsub}}{what}"] * 3
    assert {stanza.get("from") for stanza in asked} == {B}
    if direction == "in":
        assert {stanza[0][0].get("jid") for stanza in asked} == {B}
