"""Real servers that talk to each other over real s2s: Prosody `a`, `b`, `c` and ejabberd `e`, for every test process.

Each is an ordinary child process with TLS (self-signed) and dialback, under a name that exists nowhere. Whatever one
server opens to another goes through a `Wire`, so that a test can break the network between them, one way or both.
"""

import asyncio
import contextlib
import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import slixmpp

from smartfeeds.local.process import HOST, LocalServer, free_port
from smartfeeds.local.prosody import Prosody
from support.client import Client
from support.ejabberd import Ejabberd
from support.logs import LOGS
from support.nameserver import ZONE, Nameserver
from support.servers import SECRET, TestServer
from support.waiting import HANG_S, wait_for, waiting
from support.wire import Wire

COMPONENTS: Final = 40  # names that each server knows
PING: Final = "<ping xmlns='urn:xmpp:ping'/>"
_PONG_S: Final = 1.0
OPEN_S: Final = 10  # how long a connection between servers may take to stand

_PROSODY = """\
{root}daemonize = false
data_path = "{folder}/data"
interfaces = {{ "{host}" }}
component_interfaces = {{ "{host}" }}
c2s_ports = {{ {client_port} }}
component_ports = {{ {component_port} }}
s2s_ports = {{ {s2s_port} }}
http_ports = {{ }}
https_ports = {{ }}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "posix", "tls", "dialback" }}
modules_disabled = {{ "http", "offline" }}
use_ipv6 = false
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
ssl = {{ certificate = "{folder}/server.pem"; key = "{folder}/server.pem" }}
s2s_require_encryption = true
s2s_secure_auth = false
s2s_timeout = {open_s}
s2s_close_timeout = 1
-- Without a resolv.conf every question goes to our name server; .test would be answered with "no such name".
unbound = {{
    resolvconf = false;
    hoststxt = false;
    forward = "{host}@{dns_port}";
    options = {{ ["do-not-query-localhost:"] = "no"; ["local-zone:"] = "{zone} transparent" }};
}}
log = {{ info = "{folder}/prosody.log" }}
VirtualHost "{domain}"
{components}"""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a server for other servers, and of its name server."""

    s2s: int
    dns: int


class FederatedProsody(Prosody):
    """A Prosody with s2s. Its module waits for nothing after a failure: the next stanza opens a new connection."""

    def __init__(self, folder: Path, domain: str, components: Mapping[str, str], ports: "Ports") -> None:
        super().__init__(folder, components, domain=domain)
        self._ports = ports

    def write_config(self) -> None:
        """Writes the configuration and the certificate."""
        (self.folder / "data").mkdir(exist_ok=True)
        _write_certificate(self.folder / "server.pem", self.domain)
        blocks = [f'Component "{name}"\n    component_secret = "{key}"\n' for name, key in self.components.items()]
        self.config_file.write_text(
            _PROSODY.format(
                root="run_as_root = true\n" if os.geteuid() == 0 else "",
                folder=self.folder,
                host=HOST,
                client_port=self.client_port,
                component_port=self.component_port,
                s2s_port=self._ports.s2s,
                open_s=OPEN_S,
                dns_port=self._ports.dns,
                zone=ZONE,
                domain=self.domain,
                components="".join(blocks),
            )
        )


class FederatedEjabberd(Ejabberd):
    """An ejabberd with s2s. After a failure it bounces what goes that way for up to a second, the least it can."""

    def __init__(self, folder: Path, domain: str, components: Mapping[str, str], ports: "Ports") -> None:
        super().__init__(folder, components, domain=domain)
        self._ports = ports

    def write_config(self) -> None:
        """Writes the configuration, the certificate, and where names are looked up."""
        super().write_config()
        _write_certificate(self.folder / "server.pem", self.domain)
        address = "{127,0,0,1}"
        (self.folder / "inetrc").write_text(
            '{resolv_conf, ""}.\n{hosts_file, ""}.\n{lookup, [dns]}.\n'
            f"{{nameserver, {address}, {self._ports.dns}}}.\n"
        )

    def configuration(self) -> dict[str, object]:
        """The content of the configuration file."""
        plain = super().configuration()
        listen, modules = plain["listen"], plain["modules"]
        assert isinstance(listen, list) and isinstance(modules, dict)
        federated = {"port": self._ports.s2s, "ip": HOST, "module": "ejabberd_s2s_in", "shaper": "none"}
        return {
            **plain,
            "listen": [*listen, {**federated, "max_stanza_size": 1_048_576}],
            "modules": {**modules, "mod_s2s_dialback": {}},
            "certfiles": [str(self.folder / "server.pem")],
            "s2s_use_starttls": "required",
            "s2s_max_retry_delay": 1,
            "negotiation_timeout": OPEN_S,
            "outgoing_s2s_timeout": OPEN_S,
        }

    def environment(self) -> dict[str, str]:
        """As without s2s, with our own name server."""
        return {**super().environment(), "ERL_INETRC": str(self.folder / "inetrc")}


FederatedKind = type[FederatedProsody] | type[FederatedEjabberd]
KINDS: Final[Mapping[str, FederatedKind]] = {
    "a": FederatedProsody,
    "b": FederatedProsody,
    "c": FederatedProsody,
    "e": FederatedEjabberd,
}


class FederatedServer(TestServer):
    """A running server of the federation; `name` is its letter, `s2s_port` where it listens for others."""

    __test__ = False

    def __init__(self, name: str, server: LocalServer, s2s_port: int) -> None:
        super().__init__(server)
        self.name = name
        self.s2s_port = s2s_port
        self._fresh = iter(server.components)

    @property
    def domain(self) -> str:
        """The name of the server."""
        return self.server.domain


class Country:
    """All servers of a test process, each started when it is first wanted, and the wires between them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._s2s = {name: free_port() for name in KINDS}
        self.wires = {pair: Wire(self._s2s[pair[1]]) for pair in itertools.permutations(KINDS, 2)}
        self._nameservers = {
            name: Nameserver({domain_of(far): wire.port for (near, far), wire in self.wires.items() if near == name})
            for name in KINDS
        }
        self._servers: dict[str, FederatedServer] = {}

    def server(self, name: str) -> FederatedServer:
        """The running server of this name."""
        if name not in self._servers:
            domain = domain_of(name)
            components = {f"feeds-{number}.{domain}": SECRET for number in range(COMPONENTS)}
            ports = Ports(self._s2s[name], self._nameservers[name].port)
            server = KINDS[name](self._folder / name, domain, components, ports)
            LOGS.follow(f"{server.software} {name} of the federation", server.log_files)
            server.start(HANG_S)
            self._servers[name] = FederatedServer(name, server, ports.s2s)
        return self._servers[name]

    def close(self) -> None:
        """Stops everything."""
        for federated in self._servers.values():
            federated.server.stop()
        for nameserver in self._nameservers.values():
            nameserver.close()


class Federation:
    """Some of the servers, with whole wires between them for the time of a test. An async context manager."""

    def __init__(self, country: Country, *names: str) -> None:
        self._country = country
        self._names = names
        self._stack = AsyncExitStack()
        self.servers: dict[str, FederatedServer] = {}

    async def __aenter__(self) -> "Federation":
        for name in self._names:
            self.servers[name] = await asyncio.to_thread(self._country.server, name)
        async with self._stack:
            for pair in itertools.permutations(self._names, 2):
                await self._stack.enter_async_context(self._country.wires[pair])
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def __getitem__(self, name: str) -> FederatedServer:
        return self.servers[name]

    @property
    def near(self) -> FederatedServer:
        """The first server."""
        return self.servers[self._names[0]]

    @property
    def far(self) -> FederatedServer:
        """The last server."""
        return self.servers[self._names[-1]]

    def wire(self, near: str, far: str) -> Wire:
        """The wire of the connections that `near` opens to `far`: for its own stanzas, and for the dialback that
        confirms `far`'s."""
        assert near in self.servers and far in self.servers
        return self._country.wires[near, far]

    async def cut(self, one: str = "", other: str = "") -> None:
        """Breaks the network between two servers, or all of it. Returns once all of them know."""
        await asyncio.gather(*(wire.cut() for wire in self._between(one, other)))

    def lose(self, one: str = "", other: str = "") -> None:
        """Lets everything between them get lost from now on, without anybody knowing."""
        for wire in self._between(one, other):
            wire.lose()

    async def heal(self, one: str = "", other: str = "") -> None:
        """Makes the network between them whole again."""
        await asyncio.gather(*(wire.heal() for wire in self._between(one, other)))

    def _between(self, one: str, other: str) -> list[Wire]:
        pairs = itertools.permutations((one, other) if one else self._names, 2)
        return [self.wire(*pair) for pair in pairs]

    async def until_reached(self, client: Client, address: str) -> None:
        """Waits until an address answers a client's ping.

        After a failure ejabberd bounces for up to a second, and what comes as that second ends gets lost.
        """
        await _until(client, address, "result")

    async def until_parted(self, client: Client, address: str) -> None:
        """Waits until a client's ping comes back as an error. What ejabberd routes right behind a cut gets lost."""
        await _until(client, address, "error")


@asynccontextmanager
async def component_on(server: FederatedServer) -> AsyncIterator[slixmpp.ComponentXMPP]:
    """A component of this server that is no smartfeeds."""
    component = slixmpp.ComponentXMPP(server.take_name(), SECRET, HOST, server.component_port)
    online = asyncio.Event()
    component.add_event_handler("session_start", lambda _event: online.set())
    component.connect()
    await wait_for(online.wait(), f"the connection of {component.boundjid}")
    yield component
    await component.disconnect()


def domain_of(name: str) -> str:
    """The domain of the server of this letter."""
    return f"{name}.{ZONE}"


def run_country(folder: Path) -> Iterator[Country]:
    """The servers for the time of a fixture."""
    country = Country(folder)
    try:
        yield country
    finally:
        country.close()


async def _until(client: Client, address: str, kind: str) -> None:
    async with waiting(f"the {kind} of a ping of {address}"):
        answer_kind = None
        while answer_kind != kind:
            # A ping that got lost is sent again.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PONG_S):
                    answer = await client.iq(f"<iq type='get' to='{address}'>{PING}</iq>")
                answer_kind = answer.get("type")


def _write_certificate(path: Path, domain: str) -> None:
    """A certificate that nobody has signed, for the domain and the names below it, and its key in one file."""
    name = ["-subj", f"/CN={domain}", "-addext", f"subjectAltName=DNS:{domain},DNS:*.{domain}"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = subprocess.run(
        ["openssl", "req", "-x509", "-days", "2", *key, *name, "-keyout", "-", "-out", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    path.write_text(made.stdout)
    path.chmod(0o600)
