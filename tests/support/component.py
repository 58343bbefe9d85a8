"""The whole component in this process, over a fake XMPP server on loopback and a SQLite file.

Wire in: stanzas as a server delivers them. Wire out: every stanza that the component sent, as XML trees. What must
hold for all stanzas (one answer for each IQ, addresses, no internal error) is checked for each of them and reported
when the component is closed.

`ask`, `get`, `set`, `owner_get` and `owner_set` return the answering `<iq/>`; `events` the messages that one address
got. The clock stands still until `clock.advance`, fresh ids count up, so all runs are alike.
"""

import asyncio
import itertools
import shutil
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pytest
from lxml import etree

from smartfeeds.app.config import Settings, settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.core.attachment_names import is_reserved
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import NO_LIMIT, Affiliation, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.service.context import Context
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import CreateNode, DeleteNode, Publish
from smartfeeds.store.base import WriteTx
from support.fakeserver import FakeServer, Session
from support.features import FEATURE_NAMES
from support.waiting import until, wait_for

if "presence" in FEATURE_NAMES:
    from smartfeeds.features.presence.xmpp import Presences

DOMAIN = "feeds.example.org"
ALICE = "alice@example.org/home"
BOB = "bob@example.org/work"
CAROL = "carol@example.org/phone"
EVE = "eve@elsewhere.example/x"  # of a domain whose users may not create nodes

PS = "http://jabber.org/protocol/pubsub"
OWNER = f"{PS}#owner"
DATA = "jabber:x:data"
NODE_CONFIG = f"{PS}#node_config"
PUBLISH_OPTIONS = f"{PS}#publish-options"
SUBSCRIBE_OPTIONS = f"{PS}#subscribe_options"
INFO = "http://jabber.org/protocol/disco#info"
ITEMS = "http://jabber.org/protocol/disco#items"
RSM = "http://jabber.org/protocol/rsm"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
NS = {
    "c": "jabber:component:accept",
    "ps": PS,
    "own": OWNER,
    "ev": f"{PS}#event",
    "err": f"{PS}#errors",
    "st": STANZAS,
    "x": DATA,
    "info": INFO,
    "items": ITEMS,
    "rsm": RSM,
    "shim": "http://jabber.org/protocol/shim",
    "delay": "urn:xmpp:delay",
    "a": "http://www.w3.org/2005/Atom",
    "sx": "http://feedsync.org/2007/feedsync",
}

Element = etree._Element
CONFERENCE_INFO = (
    "<identity category='conference' type='text' name='Chatrooms'/>"
    f"<feature var='{INFO}'/><feature var='http://jabber.org/protocol/muc'/>"
)
CONFERENCES = [
    address
    for domain in ("rooms.example.org", "rooms.evil.example")
    for address in (domain, f"club@{domain}")
]  # fmt: skip
_C = "{jabber:component:accept}"
_SYNC = "sync.example.org"
_START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


class Refusal(NamedTuple):
    """An error: its type, the defined condition, the pubsub condition and its feature (empty where there is none)."""

    type: str
    condition: str
    detail: str = ""
    feature: str = ""


@dataclass(slots=True)
class Clock:
    """Microseconds since the Unix epoch, moved by the test alone."""

    now_us: int = _START_US

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        """Moves the time on."""
        self.now_us += int(seconds * 1_000_000)


# Without `repr`: asyncio makes the text of a task with its result, and throws it away, each time that a test sets a
# handler of SIGINT. For the result of a fixture that took 10 ms.
@dataclass(slots=True, repr=False)
class Component:
    """The running component and the server that it is connected to."""

    app: App
    server: FakeServer
    session: Session
    clock: Clock
    faults: list[str] = field(default_factory=list)
    versions: "Counter[tuple[str, str]]" = field(default_factory=Counter)
    kinds: "deque[str]" = field(default_factory=lambda: deque(maxlen=64))  # names of the last stanzas, in order
    returned: dict[str, str] = field(default_factory=dict)  # bare address: the error with which messages come back
    forger: str = ""  # an address that returns all messages, which others received, with an error
    silent: set[str] = field(default_factory=set)  # addresses that do not answer pings
    presences: list[Element] = field(default_factory=list)
    # By address: the children of its service discovery information. Two servers have conference services.
    infos: dict[str, str] = field(default_factory=lambda: dict.fromkeys(CONFERENCES, CONFERENCE_INFO))
    # By server: the items of its services.
    services: dict[str, str] = field(
        default_factory=lambda: {domain: f"<item jid='rooms.{domain}'/>" for domain in ("example.org", "evil.example")}
    )
    listed: list[str] = field(default_factory=list)  # servers that were asked for their services
    asked: list[tuple[str, str]] = field(default_factory=list)  # requests for such information: address and node
    _asked: dict[str, tuple[str, str]] = field(default_factory=dict)
    _answers: dict[str, "asyncio.Future[Element]"] = field(default_factory=dict)
    _messages: dict[str, list[Element]] = field(default_factory=lambda: defaultdict(list))
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    reading: "asyncio.Task[None] | None" = None

    async def ask(self, user: str, kind: str, body: str, to: str = DOMAIN) -> Element:
        """Sends an IQ of this kind (get, set) from a full JID and returns its answer."""
        stanza_id = f"q{len(self._asked)}"
        self._asked[stanza_id] = (user, to)
        self._answers[stanza_id] = asyncio.get_running_loop().create_future()
        addresses = f"from={quoteattr(user)} to={quoteattr(to)}"
        await self.session.send(f"<iq type='{kind}' id='{stanza_id}' {addresses}>{body}</iq>")
        return await wait_for(asyncio.shield(self._answers[stanza_id]), f"the answer to {stanza_id}")

    async def ask_all(self, user: str, bodies: Sequence[str], kind: str = "get") -> list[Element]:
        """Sends many IQs in one write and returns their answers in that order."""
        first = len(self._asked)
        waiting = []
        stanzas = []
        for number, content in enumerate(bodies, first):
            self._asked[f"q{number}"] = (user, DOMAIN)
            waiting.append(asyncio.get_running_loop().create_future())
            self._answers[f"q{number}"] = waiting[-1]
            stanzas.append(f"<iq type='{kind}' id='q{number}' from={quoteattr(user)} to='{DOMAIN}'>{content}</iq>")
        await self.session.send("".join(stanzas))
        return await wait_for(asyncio.gather(*waiting), f"the answers to q{first} and {len(bodies) - 1} more")

    async def get(self, user: str, inner: str, to: str = DOMAIN) -> Element:
        """An IQ get with these children of `<pubsub/>`."""
        return await self.ask(user, "get", f"<pubsub xmlns='{PS}'>{inner}</pubsub>", to)

    async def set(self, user: str, inner: str, to: str = DOMAIN) -> Element:
        """An IQ set with these children of `<pubsub/>`."""
        return await self.ask(user, "set", f"<pubsub xmlns='{PS}'>{inner}</pubsub>", to)

    async def owner_get(self, user: str, inner: str, to: str = DOMAIN) -> Element:
        """An IQ get with these children of the owner's `<pubsub/>`."""
        return await self.ask(user, "get", f"<pubsub xmlns='{OWNER}'>{inner}</pubsub>", to)

    async def owner_set(self, user: str, inner: str, to: str = DOMAIN) -> Element:
        """An IQ set with these children of the owner's `<pubsub/>`."""
        return await self.ask(user, "set", f"<pubsub xmlns='{OWNER}'>{inner}</pubsub>", to)

    async def create(self, user: str, node: str, **options: str) -> None:
        """Makes a node with these options (`access_model="authorize"`); `kind` is feed or generic."""
        configure = f"<configure>{form(NODE_CONFIG, **options)}</configure>" if options else ""
        ok(await self.set(user, f"<create node={quoteattr(node)}/>{configure}"))

    async def publish(self, user: str, node: str, item_id: str, payload: str = "") -> None:
        """Publishes an item, by default an Atom entry with the id as its title, another version each time."""
        item = f"<item id={quoteattr(item_id)}>{payload or self._version(node, item_id)}</item>"
        ok(await self.set(user, f"<publish node={quoteattr(node)}>{item}</publish>"))

    def _version(self, node: str, item_id: str) -> str:
        version = self.versions[node, item_id]
        self.versions[node, item_id] += 1
        return entry(item_id, f"<rights>version {version}</rights>" if version else "")

    async def retract(self, user: str, node: str, item_id: str) -> None:
        """Retracts an item."""
        ok(await self.set(user, f"<retract node={quoteattr(node)}><item id={quoteattr(item_id)}/></retract>"))

    async def subscribe(self, user: str, node: str, jid: str = "", **options: str) -> str:
        """Subscribes an address, the bare one of the user by default; the state it is in then."""
        companion = f"<options>{form(SUBSCRIBE_OPTIONS, **options)}</options>" if options else ""
        target = quoteattr(jid or bare(user))
        answer = ok(await self.set(user, f"<subscribe node={quoteattr(node)} jid={target}/>{companion}"))
        return str(answer.xpath("string(ps:pubsub/ps:subscription/@subscription)", namespaces=NS))

    async def affiliate(self, owner: str, node: str, user: str, affiliation: str) -> None:
        """Gives a user an affiliation."""
        entry_ = f"<affiliation jid={quoteattr(bare(user))} affiliation='{affiliation}'/>"
        ok(await self.owner_set(owner, f"<affiliations node={quoteattr(node)}>{entry_}</affiliations>"))

    async def configure(self, owner: str, node: str, **options: str) -> None:
        """Changes options of a node."""
        ok(await self.owner_set(owner, f"<configure node={quoteattr(node)}>{form(NODE_CONFIG, **options)}</configure>"))

    async def config(self, owner: str, node: str) -> dict[str, list[str]]:
        """The configuration that the owner's form shows."""
        return fields(ok(await self.owner_get(owner, f"<configure node={quoteattr(node)}/>")))

    async def item_ids(self, user: str, node: str) -> list[str]:
        """The ids that a plain retrieval gives, in its order."""
        answer = ok(await self.get(user, f"<items node={quoteattr(node)}/>"))
        return [str(item.get("id")) for item in answer.iterfind("ps:pubsub/ps:items/ps:item", NS)]

    async def events(self, address: str) -> list[Element]:
        """The messages sent to exactly this address since it was asked for last, once nothing is left to send."""
        await self.settle()
        return self._messages.pop(address, [])

    async def next_event(self, address: str) -> list[Element]:
        """The messages to exactly this address, as soon as there is one; nothing else is waited for."""
        while not self._messages.get(address):
            self._arrived.clear()
            await wait_for(self._arrived.wait(), f"a message to {address}")
        return self._messages.pop(address)

    async def deaf(self) -> None:
        """Stops looking at what the component sends."""
        assert self.reading is not None
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)

    async def cut(self) -> None:
        """Breaks the link and lets no new one come; returns once the component knows."""
        await self.settle()
        await self.deaf()
        await self.server.stop_listening()
        await self.session.end()
        await wait_for(self.session.closed.wait(), "the end of the connection")
        await self.app.stream.wait_closed()
        await until(lambda: not self.app.online.is_set(), "the component to know that its link is lost")

    async def link(self) -> None:
        """Lets the component connect again, and waits for what is sent because of it."""
        number = len(self.server.sessions) + 1
        await self.server.listen()
        await self.relink(number)

    async def relink(self, number: int = 2) -> None:
        """Goes on with this connection of the component, as soon as it stands."""
        await self.deaf()
        self.session = await self.server.session(number)
        self.reading = asyncio.get_running_loop().create_task(self.read())
        await self.resumed()

    async def resumed(self) -> None:
        """Returns once the component is online and has done everything that it does after a connection."""
        await self.app.online.wait()
        await asyncio.gather(*(task for task in self.app.tasks if task.get_name() == "push resume"))
        await self.settle()

    async def many_nodes(self, names: Sequence[str], user: str = ALICE) -> None:
        """Makes many nodes at once."""
        owner = parse_jid(user)
        assert owner is not None
        requests = [CreateNode(owner, DOMAIN, name) for name in names]
        await asyncio.gather(*map(self.app.service.handle, requests))

    async def older_nodes(self, names: Sequence[str], user: str = ALICE, kind: str = "feed", **options: str) -> None:
        """Stores nodes with names that former versions allowed."""
        owner = parse_jid(user)
        assert owner is not None
        creator, node_kind = owner.bare_text, NodeKind(kind)
        stored = {name: (value,) for name, value in options.items()}

        def store(tx: WriteTx) -> None:
            for name in names:
                node = tx.add_node(Node(0, name, node_kind, creator, 0, NodeOptions(node_kind, stored)))
                tx.set_affiliation(node.node_no, creator, Affiliation.OWNER)

        await self.app.service.store.write(store)

    async def index(self) -> None:
        """Brings the filter index forward, which a search reads."""
        store = self.app.service.store
        nodes = await store.read(lambda tx: [node.node_no for node in tx.nodes("", 1_000)])
        for node_no in nodes:
            await store.write(lambda tx, node_no=node_no: tx.begin_index(node_no))  # type: ignore[misc]
        while await self.app.service.store.index_some(1_000):
            pass

    async def publish_unseen(self, node: str, item_id: str, user: str = ALICE) -> None:
        """Publishes while there is no link, as another process would."""
        sender = parse_jid(user)
        assert sender is not None
        draft = draft_of(etree.fromstring(self._version(node, item_id)))
        await self.app.service.handle(Publish(sender, DOMAIN, node, item_id, draft))

    async def send(self, text: str) -> None:
        """Delivers a stanza as it is."""
        await self.session.send(text)

    async def follow(self, session: Session) -> None:
        """Goes on with another connection of the component, after a lost link; forgets unanswered questions."""
        assert self.reading is not None
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)
        self.session = session
        self.reading = asyncio.get_running_loop().create_task(self.read())
        await self.resumed()

    async def settle(self) -> None:
        """Returns once everything delivered so far is worked off and everything it caused is on the wire."""
        await self._round_trip()
        # The stanzas of a sender whose former requests were expensive wait, and this request overtakes them.
        while self.app.stream.turns.stanzas:
            await asyncio.sleep(self.app.stream.turns.rest_s() or 0)
            await self.app.router.drain()
            await self._round_trip()
        await self.app.router.drain()
        # The bot tells people of answers, and of what waits for them, beside the delivery.
        await asyncio.gather(*(task for task in self.app.tasks if task.get_name() in ("answer news", "notices")))
        if "presence" in FEATURE_NAMES:
            await self.app.parts.get(Presences).idle()
        await self.app.dispatcher.idle()
        await self._round_trip()

    async def clear(self) -> None:
        """Deletes all nodes and tokens and forgets what happened; fails where a stanza broke a rule for all stanzas."""
        await self._delete_nodes()
        await self.app.service.write(_remove_tokens)
        await self.settle()
        faults, fresh = self.faults, Component(self.app, self.server, self.session, self.clock)
        for name in ("faults", "versions", "kinds", "returned", "forger", "silent", "presences", "infos", "services"):
            setattr(self, name, getattr(fresh, name))
        self.listed, self.asked, self._messages = fresh.listed, fresh.asked, fresh._messages
        if self.app.site is None:
            self.clock.now_us = _START_US
        else:  # its caches know a page by the time of the last change
            self.clock.advance(86_400)
        assert not faults, faults

    async def _delete_nodes(self) -> None:
        service, policy = self.app.service, self.app.service.policy
        service.policy = replace(policy, admins=policy.admins | {DOMAIN})
        try:
            for node in await service.store.read(lambda tx: tx.nodes("", NO_LIMIT)):
                if not is_reserved(node.name, DOMAIN):  # they are deleted with the node of their item
                    await service.handle(DeleteNode(Jid("", DOMAIN), DOMAIN, node.name))
        finally:
            service.policy = policy

    async def _round_trip(self) -> None:
        await self.ask(_SYNC, "get", "<sync xmlns='urn:example:sync'/>")

    async def read(self) -> None:
        """Sorts what the component sends; the fixture runs it as a task."""
        while True:
            stanza = await self.session.stanzas.get()
            self._check(stanza)
            self.kinds.append(str(stanza.tag).removeprefix(_C))
            if stanza.tag == f"{_C}iq" and stanza.get("type") in ("result", "error"):
                self._take_answer(stanza)
            elif stanza.tag == f"{_C}message":
                self._messages[str(stanza.get("to"))].append(stanza)
                self._arrived.set()
                if self.forger:
                    error = f"<error type='cancel'><gone xmlns='{STANZAS}'/></error>"
                    head = f"id={quoteattr(stanza.get('id', ''))} from={quoteattr(self.forger)} to='{DOMAIN}'"
                    await self.session.send(f"<message type='error' {head}>{error}</message>")
                condition = self.returned.get(bare(str(stanza.get("to"))))
                if condition is not None:
                    await self._return(stanza, condition)
            elif stanza.tag == f"{_C}presence":
                self.presences.append(stanza)
            elif stanza.find("{urn:xmpp:ping}ping") is not None:
                if stanza.get("to") not in self.silent:
                    await self._return(stanza, self.returned.get(bare(str(stanza.get("to"))), ""))
            elif (query := stanza.find(f"{{{INFO}}}query")) is not None:
                await self._describe(stanza, query.get("node", ""))
            elif stanza.find(f"{{{ITEMS}}}query") is not None:
                await self._list(stanza)
            else:
                self.faults.append(f"nobody asked for {text_of(stanza)}")

    async def _return(self, stanza: Element, condition: str) -> None:
        """Answers a stanza of the component: with an error, or with a result without a condition."""
        name = stanza.tag.removeprefix(_C)
        head = f"id={quoteattr(stanza.get('id', ''))} from={quoteattr(stanza.get('to', ''))} to='{DOMAIN}'"
        error = f"<error type='cancel'><{condition} xmlns='{STANZAS}'/></error>" if condition else ""
        await self.session.send(f"<{name} type='{'error' if condition else 'result'}' {head}>{error}</{name}>")

    async def _describe(self, iq: Element, node: str) -> None:
        """Answers a request for service discovery information, unless the address is silent."""
        to = iq.get("to", "")
        self.asked.append((to, node))
        if to in self.silent:
            return
        if to not in self.infos:
            await self._return(iq, "service-unavailable")
            return
        head = f"id={quoteattr(iq.get('id', ''))} from={quoteattr(to)} to='{DOMAIN}'"
        query = f"<query xmlns='{INFO}' node={quoteattr(node)}>{self.infos[to]}</query>"
        await self.session.send(f"<iq type='result' {head}>{query}</iq>")

    async def _list(self, iq: Element) -> None:
        """Answers a request for the services of a server, unless the server is silent."""
        to = iq.get("to", "")
        self.listed.append(to)
        if to in self.silent:
            return
        head = f"id={quoteattr(iq.get('id', ''))} from={quoteattr(to)} to='{DOMAIN}'"
        items = self.services.get(to, "")
        await self.session.send(f"<iq type='result' {head}><query xmlns='{ITEMS}'>{items}</query></iq>")

    def _check(self, stanza: Element) -> None:
        sender = stanza.get("from", "")
        if sender.partition("/")[0].rpartition("@")[2] != DOMAIN or not stanza.get("to"):
            self.faults.append(f"[xep-map 6] [xep-map 7] addresses of {text_of(stanza)}")
        if stanza.find(f".//{{{STANZAS}}}internal-server-error") is not None:
            self.faults.append(f"an internal error: {text_of(stanza)}")

    def _take_answer(self, stanza: Element) -> None:
        stanza_id = str(stanza.get("id"))
        answer = self._answers.get(stanza_id)
        if answer is None:
            self.faults.append(f"[xep-map 12] an answer to nothing: {text_of(stanza)}")
        elif answer.done():
            self.faults.append(f"[xep-map 12] a second answer: {text_of(stanza)}")
        else:
            if (stanza.get("to"), stanza.get("from")) != self._asked[stanza_id]:
                self.faults.append(f"[xep-map 12] addresses not swapped: {text_of(stanza)}")
            answer.set_result(stanza)


class Starter:
    """Starts components; all of them are stopped and judged by `close`."""

    def __init__(self, store_url: str, clock: Clock, files: Path | None = None) -> None:
        """`files` is the folder of uploaded files, None for the default."""
        self._store_url = store_url
        self._files = {} if files is None else {"files": files}
        self._clock = clock
        self._running: list[Component] = []
        self._faults: list[str] = []

    async def __call__(self, **sections: dict[str, Any]) -> Component:
        """A component with these settings: `await start(pubsub={"auto_create": True})`."""
        server = FakeServer(DOMAIN, "secret")
        await server.listen()
        sections["store"] = {**self._files, **sections.get("store", {})}
        app = App(settings(server.port, self._store_url, **sections))
        try:
            await app.start()
        except BaseException:
            await server.__aexit__(None, None, None)
            raise
        component = Component(app, server, await server.session(), self._clock)
        component.reading = asyncio.get_running_loop().create_task(component.read())
        self._running.append(component)
        await component.resumed()
        return component

    async def again(self, component: Component, **sections: dict[str, Any]) -> Component:
        """Stops a component and starts another one over the same data."""
        await self.stop(component)
        return await self(**sections)

    async def stop(self, component: Component) -> None:
        """Stops a component."""
        self._running.remove(component)
        self._faults += await _stop(component)

    async def close(self) -> None:
        """Stops everything; fails where a stanza broke a rule for all stanzas."""
        for component in self._running:
            self._faults += await _stop(component)
        assert not self._faults, self._faults


@asynccontextmanager
async def starting(folder: Path, blank_database: Path | str) -> AsyncIterator[Starter]:
    """A starter of components with a fixed clock and counted ids, over a copy of this file of SQLite in the folder, or
    over the database of this address.
    """
    clock, numbers = Clock(), itertools.count(1)
    store_url, files = str(blank_database), None
    if isinstance(blank_database, Path):
        store_url = f"sqlite:///{shutil.copy(blank_database, folder / 'feeds.db')}"
    else:
        files = folder / "files"  # otherwise in the working directory
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smartfeeds.system.now_us", clock)
        patch.setattr("smartfeeds.system.monotonic", lambda: clock.now_us / 1_000_000)
        patch.setattr("smartfeeds.system.new_id", lambda: f"fresh-{next(numbers)}")
        starter = Starter(store_url, clock, files)
        yield starter
        await starter.close()


def own_or_shared(request: pytest.FixtureRequest, name: str) -> Any:
    """The fixture `own_NAME`, or `shared_NAME` in a file with the mark `shared`."""
    return request.getfixturevalue(f"{'shared' if request.node.get_closest_marker('shared') else 'own'}_{name}")


async def _stop(component: Component) -> list[str]:
    """Stops a component and its server; what was wrong with its stanzas."""
    await component.app.stop()
    assert component.reading is not None
    component.reading.cancel()
    await asyncio.gather(component.reading, return_exceptions=True)
    await component.server.__aexit__(None, None, None)
    return component.faults


def settings(port: int, store_url: str, **sections: dict[str, Any]) -> Settings:
    """Settings as from a file, without a file."""
    tables: dict[str, Any] = {
        "component": {"jid": DOMAIN, "secret": "secret", "port": port},
        "store": {"url": store_url},
        "http": {"listen": ""},
        "pubsub": {"creators": ["example.org"]},
    }
    for name, values in sections.items():
        tables.setdefault(name, {}).update(values)
    return settings_of(**tables)


def bare(user: str) -> str:
    """An address without its resource."""
    return user.partition("/")[0]


def entry(title: str, inner: str = "") -> str:
    """An Atom entry as clients write it."""
    return f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{escape(title)}</title>{inner}</entry>"


def form(form_type: str, kind: str = "", **values: str | list[str]) -> str:
    """A submitted data form. Names are those of pubsub without prefix; `kind` is the node kind of this project."""
    fields = {"FORM_TYPE": [form_type]}
    fields |= {f"pubsub#{name}": [value] if isinstance(value, str) else value for name, value in values.items()}
    if kind:
        fields["{urn:smartfeeds:0}kind"] = [kind]
    return submit(fields)


def submit(fields: dict[str, list[str]], kind: str = "submit") -> str:
    """A data form of exactly these fields."""
    inner = "".join(
        f"<field var={quoteattr(var)}>" + "".join(f"<value>{escape(v)}</value>" for v in values) + "</field>"
        for var, values in fields.items()
    )
    return f"<x xmlns='{DATA}' type='{kind}'>{inner}</x>"


def fields(element: Element) -> dict[str, list[str]]:
    """The values of the first data form in an element, by the names of the fields, `pubsub#` left out."""
    form = element if element.tag == f"{{{DATA}}}x" else element.find(".//x:x", NS)
    assert form is not None, text_of(element)
    return {
        str(each.get("var")).removeprefix("pubsub#"): [value.text or "" for value in each.iterfind("x:value", NS)]
        for each in form.iterfind("x:field", NS)
    }


def ok(answer: Element) -> Element:
    """The answer, which has to be a result."""
    assert answer.get("type") == "result", text_of(answer)
    return answer


def refusal(answer: Element) -> Refusal:
    """Returns the parts of an error. Fails unless it has the structure of RFC 6120 and XEP-0060 [xep-map 17]."""
    assert answer.get("type") == "error", text_of(answer)
    error = answer[-1]
    assert error.tag == f"{_C}error", text_of(answer)
    names = [etree.QName(child) for child in error]
    spaces = [name.namespace for name in names if name.localname != "text"]
    assert spaces in ([STANZAS], [STANZAS, NS["err"]]), text_of(answer)
    assert [n for n, name in enumerate(names) if name.localname == "text"] in ([], [1]), text_of(answer)
    detail = error[-1] if len(spaces) == 2 else None
    return Refusal(
        str(error.get("type")),
        names[0].localname,
        "" if detail is None else names[-1].localname,
        "" if detail is None else detail.get("feature", ""),
    )


def headers(message: Element) -> dict[str, str]:
    """The SHIM headers of a message."""
    return {str(h.get("name")): h.text or "" for h in message.iterfind("shim:headers/shim:header", NS)}


Tree = tuple[str, dict[str, str], str, list[Any]]


def tree(xml: Element | str) -> Tree:
    """An element as nested values, for comparing: name, attributes, text, children (a text is parsed)."""
    element = etree.fromstring(xml) if isinstance(xml, str) else xml
    attributes = {str(name): str(value) for name, value in element.attrib.items()}
    return (str(element.tag), attributes, (element.text or "").strip(), [tree(child) for child in element])


def body(answer: Element) -> list[Tree]:
    """The children of an answer, for comparing with `[tree("<pubsub .../>")]`."""
    return [tree(child) for child in answer]


def text_of(element: Element) -> str:
    """An element as text, for messages."""
    text = etree.tostring(element, encoding="unicode", with_tail=False)
    return text if len(text) < 4_000 else f"{text[:4_000]}... ({len(text)} characters)"


def _remove_tokens(tx: WriteTx, _context: Context) -> None:
    tx.change("DELETE FROM session WHERE token_id IN (SELECT token_id FROM token)", ())
    tx.change("DELETE FROM token", ())
