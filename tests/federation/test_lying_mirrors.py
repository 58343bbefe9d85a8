"""Mirrors of services that mean harm: what is refused is told, and costs nobody else anything."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import pytest
import slixmpp
from aiohttp import web
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from smartfeeds.client.follow import Follower
from smartfeeds.client.stanzas import EVENT, PUBSUB, RSM, SHIM
from smartfeeds.client.transport import SlixLink
from smartfeeds.features.mirrors.mirror import MirrorState
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.formats.atom import ATOM_NS, FEEDSYNC_NS
from smartfeeds.local.process import HOST
from smartfeeds.service.syncing import endpoint
from support.client import ClientFactory
from support.federation import Federation, component_on
from support.sharing import NODE, Person, titles
from support.site import AppSite, alike
from support.waiting import waiting

SX: Final = f"xmlns:sx='{FEEDSYNC_NS}'"
THEM: Final = "liar.example%2Fmallory"
BIG: Final = 2**31
MANY: Final = 100_000


class Lie(NamedTuple):
    """An item, and what is said of it when it is refused; it is taken where that is empty."""

    item_id: str
    payload: str
    reason: str = ""


def record(sequence: int | str, by: str = THEM) -> str:
    """One record of a history."""
    return f"<sx:history sequence='{sequence}' when='2026-01-01T00:00:00Z' by='{by}'/>"


def sync(item_id: str, updates: int | str, *records: str, inside: str = "") -> str:
    """Sync data."""
    return f"<sx:sync {SX} id='{item_id}' updates='{updates}'>{''.join(records)}{inside}</sx:sync>"


def item(title: str, sync: str) -> str:
    """An entry with it."""
    return f"<entry xmlns='{ATOM_NS}'><title>{title}</title>{sync}</entry>"


def conflict(item_id: str, number: int, inside: str = "") -> str:
    """A version that stands in sx:conflicts."""
    return item(f"lost {number}", sync(item_id, 1, record(1, f"x{number}"), inside=inside))


def conflicts(*found: str) -> str:
    """sx:conflicts."""
    return f"<sx:conflicts>{''.join(found)}</sx:conflicts>"


def lies(ours: str) -> list[Lie]:
    """What a server lets through; `ours` is the endpoint of somebody at the service that is lied to."""
    deepest = conflicts(conflict("nested", 3))
    nested = conflicts(conflict("nested", 1, conflicts(conflict("nested", 2, deepest))))
    crowd = conflicts(*(conflict("crowd", number) for number in range(101)))
    no_number = "it must be a number from 1 to"
    return [
        Lie("ours", item("never said", sync("ours", 3, record(3, ours), record(1, ours))), "did not make it"),
        Lie("forged", item("never said", sync("forged", 1, record(1, ours))), "did not make it"),
        Lie("zero", item("", sync("zero", 0, record(1))), no_number),
        Lie("minus", item("", sync("minus", -1, record(1))), no_number),
        Lie("huge", item("", sync("huge", BIG, record(1))), no_number),
        Lie("late", item("", sync("late", 1, record(BIG))), no_number),
        Lie("long", item("", sync("long", 1001, *map(record, range(1001, 0, -1)))), "more than 1000 history records"),
        Lie("nested", item("", sync("nested", 1, record(1), inside=nested)), "nested deeper"),
        Lie("crowd", item("", sync("crowd", 1, record(1), inside=crowd)), "more than 100 conflicts"),
        Lie(
            "alien",
            item("", sync("alien", 1, record(1), inside=conflicts(conflict("x", 1)))),
            "differs from the item's id",
        ),
        Lie("blank", item("", sync("a b", 1, record(1))), "Namespace Specific String"),
        Lie("nobody", item("", sync("nobody", 1, "<sx:history sequence='1'/>")), "neither when nor by"),
        Lie("bare", item("", sync("bare", 1)), "no sx:history"),
        Lie("plain", item("", ""), "without sync data"),
        Lie("alien-root", f"<x xmlns='urn:x'>{sync('alien-root', 1, record(1))}</x>", "Atom entries"),
        Lie("deep", item("", "<b>" * 200 + "</b>" * 200 + sync("deep", 1, record(1))), "nested deeper"),
        Lie("large", item("x" * 70_000, sync("large", 1, record(1))), "over the limit"),
        Lie("nothing", "", "without sync data"),
        Lie("last", item("last", sync("last", BIG - 1, record(BIG - 1))), "few more"),
        Lie("true", item("true", sync("true", 1, record(1)))),
    ]


class Liar:
    """A component that has one feed, in one page, and answers whatever it is asked about it."""

    def __init__(self, xmpp: slixmpp.ComponentXMPP, lies: Sequence[Lie]) -> None:
        self._xmpp = xmpp
        self._lies = lies
        xmpp.register_handler(
            Callback("liar", MatchXPath(f"{{jabber:component:accept}}iq/{{{PUBSUB}}}pubsub"), self._on_ask)
        )

    @property
    def name(self) -> str:
        """Its address."""
        return str(self._xmpp.boundjid.bare)

    def _on_ask(self, stanza: slixmpp.Iq) -> None:
        pubsub = stanza.xml[0]
        request = pubsub[0]
        node = quoteattr(request.get("node", ""))
        if request.tag.endswith("}items"):
            answer = self._page(node, pubsub)
        else:
            answer = f"<subscription node={node} jid='{stanza['from']}' subscription='subscribed'/>"
        self._xmpp.send_raw(
            f"<iq type='result' id={quoteattr(stanza['id'])} from='{self.name}' to='{stanza['from']}'>"
            f"<pubsub xmlns='{PUBSUB}'>{answer}</pubsub></iq>"
        )

    def _page(self, node: str, pubsub: Element) -> str:
        count = len(self._lies)
        if "}after" in "".join(child.tag for child in pubsub.iter()):
            return f"<items node={node}/><set xmlns='{RSM}'><count>{count}</count></set>"
        items = "".join(f"<item id='{lie.item_id}'>{lie.payload}</item>" for lie in self._lies)
        places = f"<first index='0'>cursor:1</first><last>cursor:{count}</last><count>{count}</count>"
        return f"<items node={node}>{items}</items><set xmlns='{RSM}'>{places}</set>"

    def push(self, to: str, node: str, lie: Lie) -> None:
        """Tells of one more item, as if nothing had been between."""
        places = {"PreviousCursor": f"cursor:{len(self._lies)}", "LastCursor": "cursor:x"}
        headers = "".join(f"<header name='{name}'>{place}</header>" for name, place in places.items())
        item = f"<item id='{lie.item_id}'>{lie.payload}</item>"
        self._xmpp.send_raw(
            f"<message from='{self.name}' to='{to}'><event xmlns='{EVENT}'><items node={quoteattr(node)}>"
            f"{item}</items></event><headers xmlns='{SHIM}'>{headers}</headers></message>"
        )


@asynccontextmanager
async def serving(pages: dict[str, str]) -> AsyncIterator[str]:
    """The address of a web server that has these pages."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=pages[request.path], content_type="application/atom+xml")

    made = web.Application()
    made.router.add_get("/{name}", answer)
    runner = web.AppRunner(made)
    await runner.setup()
    found = web.TCPSite(runner, HOST, 0)
    await found.start()
    try:
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class States:
    """What the mirrors of a site say of themselves, as soon as they say it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._said = asyncio.Event()
        for name in ("note", "write"):
            monkeypatch.setattr(MirrorStateStore, name, self._heard(getattr(MirrorStateStore, name)))

    def _heard(self, method: Callable[..., object]) -> Callable[..., object]:
        def heard(*arguments: object) -> object:
            asyncio.get_running_loop().call_soon(self._said.set)
            return method(*arguments)

        return heard

    async def until(self, site: AppSite, name: str, condition: Callable[[MirrorState], bool]) -> MirrorState:
        """Waits until something is so of the mirror of this name."""
        state_store = site.app.parts.get(Mirrors).runs[name].incoming.state_store
        async with waiting(f"the state of the mirror {name}"):
            while not condition(state_store.state):
                self._said.clear()
                await self._said.wait()
        await state_store.settle()
        return state_store.state


async def status_of(site: AppSite) -> str:
    """What `smartfeeds mirror status` tells the operator."""
    command = sys.executable, "-m", "smartfeeds", "mirror", "status", "--config", str(site.folder / "smartfeeds.toml")
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "component"), "COLUMNS": "500"}
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 1, "some are not in step"
    return told.decode()


@pytest.mark.usefixtures("short_pauses")
async def test_lies_are_refused_one_by_one_and_touch_nobody_else(
    pair: Federation, client: ClientFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A-52] [A-54] [A-56] [A-61] Claimed edits, counters, histories and conflicts beyond all bounds, entity bombs."""
    long = item("", sync("web-long", MANY, *map(record, range(MANY, 0, -1))))
    short = item("web-true", sync("web-true", 1, record(1)))
    entities = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 10))
    feed = f"<feed xmlns='{ATOM_NS}'>"
    bomb = item("&e9;", sync("bomb", 1, record(1)))
    pages = {
        "/long": f"{feed}{long}{short}</feed>",
        "/bomb": f"<!DOCTYPE feed [<!ENTITY e0 'ha'>{entities}]>{feed}{bomb}</feed>",
        "/broken": f"{feed}{item('', sync('broken', 1, record(1)))}<entry><title>",
    }
    states = States(monkeypatch)
    site, good = AppSite(pair["a"], tmp_path / "site"), AppSite(pair["b"], tmp_path / "good")
    async with site, good, component_on(pair["b"]) as xmpp, component_on(pair["b"]) as bot, serving(pages) as origin:
        ann, bob = Person(await client(pair["a"], "ann"), site), Person(await client(pair["b"], "bob"), good)
        await ann.create()
        await bob.create()
        await ann.publish("ours", "said")
        told = lies(endpoint(site.name, ann.jid.bare_text))
        liar = Liar(xmpp, told)
        await site.stop()
        site.mirror(good, NODE, name="good")
        site.mirrors.append({"node": NODE, "address": f"xmpp:{liar.name}?;node={NODE}", "name": "liar"})
        for page in pages:
            settings = {"address": f"{origin}{page}", "name": page[1:], "allow_private": True}
            site.mirrors.append({"node": NODE, **settings})
        await site.start()
        await good.stop()
        good.mirror(site, NODE)
        await good.start()

        state = await states.until(site, "liar", lambda state: bool(state.items) and bool(state.in_step_us))
        refused = {one.item_id: one.reason for one in state.reasons}
        # By their item id, or by their sync id where it can be read.
        assert {
            lie.item_id: lie.reason for lie in told if lie.reason and lie.reason not in refused.get(lie.item_id, "")
        } == {}
        assert (state.refused, state.items, state.error) == (len(refused), 1, "")
        liar.push(
            site.name,
            f"{NODE}?order=modified&sync=true",
            told[0]._replace(payload=told[0].payload.replace("never", "not")),
        )
        state = await states.until(site, "liar", lambda state: state.refused == len(refused) + 1)
        long_state = await states.until(site, "long", lambda state: bool(state.items))
        assert "larger than" in long_state.reasons[0].reason
        bomb = await states.until(site, "bomb", lambda state: bool(state.error))
        broken = await states.until(site, "broken", lambda state: bool(state.error))

        link = SlixLink(bot, subscribe_as=f"news@{bot.boundjid.bare}")
        async with (
            Follower(link, f"xmpp:{site.name}?;node={NODE}", mirror=True) as follower,
            waiting("the changes of the feed"),
        ):
            await bob.publish("of-bob")
            await ann.publish("ours", "said again")
            seen: set[str] = set()
            while not {"of-bob", "ours"} <= seen:
                seen.add((await anext(follower)).item_id)
            found = await alike([site, good], NODE, lambda state: len(state) == 4)
        assert titles(found) == {
            "ours": "said again",
            "of-bob": "of-bob",
            "true": "true",
            "web-true": "web-true",
        }
        honest = await states.until(site, "good", lambda state: bool(state.items))
        assert (honest.refused, honest.error) == (0, "")

        told_status = await status_of(site)
        for reason in [one.reason for one in (*state.reasons, *long_state.reasons)] + [bomb.error, broken.error]:
            assert reason in told_status
