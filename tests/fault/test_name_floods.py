"""Names of elements that nobody has sent before, in masses: memory stays bounded, and nobody's new names are refused.

libxml2 keeps each name in the dictionary of a thread. The service runs in a process of its own, and the server of this
test does not parse what it receives, so only the service stores names.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from smartfeeds.core.options import KIND
from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token
from smartfeeds.formats.atom import ATOM_NS
from support.component import DATA, DOMAIN, OWNER, PS
from support.process import ServiceProcess
from support.service import stored_service

FLOOD_BYTES = 2_097_152
NAMES = 150  # of one payload, which may have 256
NAME = "n{:0>9}"
IN_FLIGHT = 16
# The names of all floods take 110 MB in a process that never frees them. The caches of the store grow, too.
GROWTH_KIB = 24 * 1024
NODE = "evil"
GENERIC = "any"
HEADER = (
    "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' id='1' "
    f"from='{DOMAIN}'>"
)
ANSWER = re.compile(r"<iq [^>]*?id=['\"]([^'\"]+)['\"][^>]*>")


def creation(node: str) -> str:
    values = {"pubsub#publish_model": "open"} | ({KIND: "generic"} if node == GENERIC else {})
    fields = "".join(f"<field var='{var}'><value>{value}</value></field>" for var, value in values.items())
    form = f"<x xmlns='{DATA}' type='submit'>{fields}</x>"
    return f"<pubsub xmlns='{PS}'><create node='{node}'/><configure>{form}</configure></pubsub>"


def publish(payload: str, node: str = NODE) -> str:
    return f"<pubsub xmlns='{PS}'><publish node='{node}'><item id='i'>{payload}</item></publish></pubsub>"


def atom(inside: str) -> str:
    return f"<entry xmlns='{ATOM_NS}'><title>t</title>{inside}</entry>"


def many(written: str, first: int) -> str:
    return "".join(written.format(NAME.format(number)) for number in range(first, first + NAMES))


def elements(first: int) -> str:
    return publish(atom(f"<x xmlns='urn:x'>{many('<{0}/>', first)}</x>"))


def attributes(first: int) -> str:
    half = many(" {0}=''", first).split(" ")
    return publish(atom(f"<x xmlns='urn:x'><a {' '.join(half[:100])}/><a {' '.join(half[100:])}/></x>"))


def prefixes(first: int) -> str:
    pairs = [NAME.format(number) for number in range(first, first + 50)]
    return publish(atom("".join(f"<{one}:x xmlns:{one}='urn:{one}:{one}:{one}'/>" for one in pairs)))


def namespaces(first: int) -> str:
    return publish(atom(many("<x xmlns='urn:{0}'/>", first)))


def generic(first: int) -> str:
    return publish(f"<{NAME.format(first)} xmlns='urn:x'>{many('<{0}/>', first)}</{NAME.format(first)}>", GENERIC)


def html(first: int) -> str:
    return publish(atom(f"<content type='html'>{many('&lt;{0}&gt;', first)}</content>"))


def form(first: int) -> str:
    values = many("<{0}/>", first)
    return (
        f"<pubsub xmlns='{OWNER}'><configure node='{NODE}'><x xmlns='{DATA}' type='submit'>"
        f"<field var='pubsub#title'><value>t</value>{values}</field></x></configure></pubsub>"
    )


def refused(first: int) -> str:
    return publish(atom(many("<{0}/>", first) + many("<{0}/>", first + NAMES)))


def unknown(first: int) -> str:
    return f"<query xmlns='urn:unknown'>{many('<{0}/>', first)}</query>"


def one_sender(_number: int) -> str:
    return "eve@flood.example/x"


def one_domain(number: int) -> str:
    return f"eve{number % 100}@flood.example/x"


def many_domains(number: int) -> str:
    return f"eve@flood{number % 100}.example/x"


# The content of requests, and their senders.
FLOODS: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "elements of one sender": (elements, one_sender),
    "elements of a domain": (elements, one_domain),
    "elements of many domains": (elements, many_domains),
    "attributes": (attributes, many_domains),
    "prefixes": (prefixes, many_domains),
    "namespaces": (namespaces, many_domains),
    "generic payloads": (generic, many_domains),
    "HTML in an entry": (html, many_domains),
    "forms": (form, many_domains),
    "payloads that are refused": (refused, many_domains),
    "requests that nobody knows": (unknown, many_domains),
}
HTTP_FLOODS: dict[str, Callable[[int], str]] = {
    "elements over HTTP": lambda first: atom(many("<{0} xmlns='urn:x'/>", first)),
    "processing instructions over HTTP": lambda first: atom(many("<?{0}?>", first)),
}


@dataclass
class Link:
    """The server's side of the component link. It reads nothing of a stanza but the id and the type of an answer."""

    online: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, "asyncio.Future[str]"] = field(default_factory=dict)
    writer: asyncio.StreamWriter | None = None
    sent: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the component."""
        self.writer = writer
        text = ""
        while data := await reader.read(65_536):
            text += data.decode("utf-8", "ignore")
            if not self.online.is_set():
                if "<stream:stream" in text and "<handshake" not in text:
                    writer.write(HEADER.encode())
                elif "<handshake" in text:
                    writer.write(b"<handshake/>")
                    self.online.set()
                continue
            end = 0
            for match in ANSWER.finditer(text):
                end = match.end()
                if (future := self.answers.pop(match[1], None)) is not None:
                    future.set_result(match[0])
            text = text[end:][-4_096:]
        writer.close()

    async def ask(self, sender: str, kind: str, content: str) -> str:
        """The start tag of the answer."""
        assert self.writer is not None
        self.sent += 1
        stanza_id = f"t{self.sent}"
        future = self.answers[stanza_id] = asyncio.get_running_loop().create_future()
        self.writer.write(f"<iq type='{kind}' id='{stanza_id}' from='{sender}' to='{DOMAIN}'>{content}</iq>".encode())
        return await asyncio.wait_for(future, 60)


@pytest.fixture
async def link() -> AsyncIterator[tuple[Link, int]]:
    """The link and the port of the server."""
    link = Link()
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    yield link, server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


def resident_kib(pid: int) -> int:
    """What a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def write_config(folder: Path, port: int, http_port: int) -> Path:
    path = folder / "smartfeeds.toml"
    path.write_text(
        f"[component]\njid = '{DOMAIN}'\nsecret = 's'\nhost = '127.0.0.1'\nport = {port}\n"
        f"[store]\nurl = 'sqlite:///{folder / 'feeds.db'}'\n[http]\nlisten = '127.0.0.1:{http_port}'\n"
        "[pubsub]\ncreators = ['*']\n[log]\nlevel = 'error'\n"
    )
    return path


async def add_bearer(config: Path) -> str:
    """A token of Alice."""
    token_id, secret = f"{7:012x}", f"{7:043d}"
    token = Token(token_id, digest_of(secret), "alice@home.example", TokenScope.PUBLISH, "*", "", 0)
    async with stored_service(config) as service:
        await service.write(lambda tx, context: add_token(tx, context, token, None))
    return f"Bearer {write_token(token_id, secret)}"


async def test_floods_of_new_names_are_forgotten(link: tuple[Link, int], tmp_path: Path, unused_tcp_port: int) -> None:
    """[xep-map 246] After each flood the names of others are taken at once, and memory has hardly grown."""
    peer, port = link
    config = write_config(tmp_path, port, unused_tcp_port)
    authorization = await add_bearer(config)
    async with ServiceProcess(config) as service, aiohttp.ClientSession() as session:
        await service.start()
        await asyncio.wait_for(peer.online.wait(), 30)
        for node in (NODE, GENERIC):
            assert "result" in await peer.ask("alice@home.example/x", "set", creation(node))
        grown_kib: dict[str, int] = {}
        before_kib = 0

        async def measure(name: str) -> None:
            nonlocal before_kib
            fresh = f"<m:t{len(grown_kib)} xmlns:m='urn:m'/>"
            for payload, node in ((atom(fresh), NODE), (fresh, GENERIC)):
                assert "result" in await peer.ask("bob@home.example/x", "set", publish(payload, node)), name
            await peer.ask("bob@home.example/x", "get", f"<pubsub xmlns='{PS}'><items node='{NODE}'/></pubsub>")
            now_kib = resident_kib(service.pid)
            before_kib = before_kib or now_kib
            grown_kib[name] = now_kib - before_kib

        await measure("begin")
        number = 0
        for name, (content_of, sender_of) in FLOODS.items():
            count = FLOOD_BYTES // (NAMES * len(NAME.format(0)))
            for _ in range(0, count, IN_FLIGHT):
                requests = []
                for _ in range(IN_FLIGHT):
                    number += 1
                    requests.append(peer.ask(sender_of(number), "set", content_of(number * 2 * NAMES)))
                await asyncio.gather(*requests)
            await measure(name)
        for name, body_of in HTTP_FLOODS.items():
            for _ in range(FLOOD_BYTES // (NAMES * len(NAME.format(0)))):
                number += 1
                url = f"http://127.0.0.1:{unused_tcp_port}/entries/{NODE}/h"
                headers = {"Authorization": authorization, "Content-Type": "application/atom+xml"}
                async with session.put(url, data=body_of(number * 2 * NAMES), headers=headers) as answer:
                    assert answer.status in (200, 201), await answer.text()
            await measure(name)
    print(grown_kib)
    assert max(grown_kib.values()) < GROWTH_KIB, grown_kib
