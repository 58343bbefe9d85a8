"""Runs each client through each operation on a default service, and notes what works.

`CLIENTS` are the columns of docs/clients.md.
"""

import asyncio
import re
import sys
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clients.driver import ClientError, Driver, MissingError
from clients.operations import APPLICATION, OPERATIONS
from clients.run import ATOM_NODE, FEED, GENERIC, SPACE, Cell, Kind, Run, Wrong
from clients.servers import NAME, SECRET, WebEjabberd, WebProsody
from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.local.process import HOST, LocalServer
from support.client import Client, log_in
from support.federation import Country, Federation
from support.wiretap import Wiretap

ONLINE_S = 20.0
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ClientKind:
    """A column of the table."""

    name: str
    command: tuple[str, ...]
    kinds: tuple[Kind, ...] = (FEED, GENERIC)


VENV = HERE.parents[1] / ".venv-clients" / "bin" / "python"
CLIENTS = [
    ClientKind("slixmpp", (sys.executable, str(HERE / "drivers" / "slixmpp_driver.py"))),
    ClientKind("nbxmpp", (str(VENV), str(HERE / "drivers" / "nbxmpp_driver.py"))),
    ClientKind("aioxmpp", (str(VENV), str(HERE / "drivers" / "aioxmpp_driver.py"))),
    ClientKind("xmpp.js", ("node", str(HERE / "js" / "xmppjs.js"))),
    ClientKind("StanzaJS", ("node", str(HERE / "js" / "stanzajs.js"))),
    ClientKind("strophe.js", ("node", str(HERE / "js" / "strophe.js"))),
    ClientKind("Movim", (sys.executable, str(HERE / "drivers" / "movim_driver.py")), (FEED, SPACE)),
    ClientKind("Libervia", ("/usr/bin/python3", str(HERE / "drivers" / "libervia_driver.py"))),
    ClientKind("atomtopubsub", (str(VENV), str(HERE / "drivers" / "atomtopubsub_driver.py")), (FEED,)),
    ClientKind("slixfeed", (str(VENV), str(HERE / "drivers" / "slixfeed_driver.py")), (ATOM_NODE,)),
]
REMOTE_CLIENTS = [replace(CLIENTS[0], name="slixmpp, remote user")]


async def run_operations(run: Run, tap: Wiretap, jid: str) -> None:
    """Fills the cells of a run."""
    for name, operation in OPERATIONS.items():
        if run.kind.name not in APPLICATION.get(name, {run.kind.name}):
            continue
        mark = tap.mark(jid)
        try:
            await operation(run)
            cell = Cell("yes")
        except MissingError as error:
            cell = Cell("missing", str(error))
        except (ClientError, Wrong, AssertionError, KeyError, TypeError) as error:
            mine = [pair for pair in tap.exchanges(jid, mark) if run.node in pair[0] or "node=" not in pair[0]]
            cell = Cell("wrong", f"{type(error).__name__}: {error}", tuple(mine))
        run.cells[name] = cell


@dataclass(frozen=True, slots=True)
class Key:
    """A run: the client, the software of the server, and the kind of node."""

    client: str
    server: str
    kind: str


Results = dict[Key, dict[str, Cell]]


async def together(runs: Iterable[Coroutine[Any, Any, Results]]) -> Results:
    """The results of runs at the same time. If one fails, the others end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run) for run in runs]
    return {key: cells for task in tasks for key, cells in task.result().items()}


@dataclass(frozen=True, slots=True)
class Place:
    """Where users log in, and the component that they use."""

    name: str  # the software of the server, as the table names it
    users: LocalServer
    service: str
    websocket: str = ""


async def run_client(kind: ClientKind, place: Place, tap: Wiretap) -> Results:
    """The cells of a client, for the kinds of nodes that it knows."""
    name = re.sub(r"\W", "", kind.name).lower()
    account = await asyncio.to_thread(place.users.account, name)
    raw = Client(f"{account.jid}/raw", account.password, presence=False)
    await raw.login(place.users.client_port)
    friend = await log_in(place.users, f"{name}friend")
    async with Driver(*kind.command) as client:
        jid = await client.call(
            "login",
            jid=account.jid,
            password=account.password,
            host=HOST,
            port=place.users.client_port,
            websocket=place.websocket,
            service=place.service,
        )
        runs = [Run(client, raw, friend, place.service, f"{kind.name}-{one.name}", one) for one in kind.kinds]
        for run in runs:
            await run_operations(run, tap, jid)
    for user in (raw, friend):
        await user.logout()
    return {Key(kind.name, place.name, run.kind.name): run.cells for run in runs}


async def run_place(place: Place, component_port: int, folder: Path, clients: Sequence[ClientKind]) -> Results:
    """Starts a default service, and runs the clients at once."""
    async with Wiretap(component_port) as tap:
        settings = settings_of(
            component={"jid": place.service, "secret": SECRET, "port": tap.port},
            store={"url": f"sqlite:///{folder}/feeds.db"},
            http={"listen": f"{HOST}:0"},
            pubsub={"creators": [place.users.domain]},
        )
        app = App(settings)
        await app.start()
        await asyncio.wait_for(app.online.wait(), ONLINE_S)
        try:
            return await together(run_client(kind, place, tap) for kind in clients)
        finally:
            await app.stop()


async def run_near(server: WebProsody | WebEjabberd, folder: Path) -> Results:
    """All clients, whose users are on the server of the component."""
    await asyncio.to_thread(server.start)
    try:
        place = Place(server.software, server, NAME, server.websocket)
        return await run_place(place, server.component_port, folder, CLIENTS)
    finally:
        await asyncio.to_thread(server.stop)


async def run_far(folder: Path) -> Results:
    """One client whose user is on another server than the component, both ways."""
    country = Country(folder)
    try:
        async with Federation(country, "a", "e") as servers:
            runs = []
            for users, host in (("a", "e"), ("e", "a")):
                name = f"{servers[users].software} to {servers[host].software}"
                place = Place(name, servers[users].server, servers[host].take_name())
                port = servers[host].component_port
                runs.append(run_place(place, port, folder / host, REMOTE_CLIENTS))
            return await together(runs)
    finally:
        await asyncio.to_thread(country.close)


async def run_all(folder: Path) -> Results:
    """The whole table."""
    return await together(
        [
            run_near(WebProsody(folder / "prosody"), folder / "prosody"),
            run_near(WebEjabberd(folder / "ejabberd"), folder / "ejabberd"),
            run_far(folder / "federation"),
        ]
    )
