"""Several processes of the service on one PostgreSQL database and one component name."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import aiohttp

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import ALL_FEEDS, TokenScope
from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.accounts.tokens import add_token, new_token
from smartfeeds.local.process import free_port
from smartfeeds.service.requests import CreateNode, Subscribe
from support.process import ServiceProcess
from support.servers import TestServer
from support.service import stored_service, write_config
from support.waiting import until

OWNER = "alice@localhost"
ENTRY = "<entry xmlns='http://www.w3.org/2005/Atom'><title>{}</title></entry>"


@dataclass
class Member:
    """One process: its HTTP side and its metrics."""

    process: ServiceProcess
    port: int
    session: aiohttp.ClientSession
    token: str

    @property
    def url(self) -> str:
        """The address of its HTTP side."""
        return f"http://127.0.0.1:{self.port}"

    async def metric(self, name: str) -> float | None:
        """The value of a metric, None while the process does not answer."""
        try:
            async with self.session.get(f"{self.url}/metrics") as answer:
                match = re.search(rf"^{name} (\S+)$", await answer.text(), re.M)
        except aiohttp.ClientError:
            return None
        return None if match is None else float(match[1])

    async def shards(self) -> int:
        """The number of shards that the process owns; 0 while it does not answer."""
        return int(await self.metric("smartfeeds_shards_owned") or 0)

    async def is_online(self) -> bool:
        """Whether the process has a link."""
        return await self.metric("smartfeeds_link_online") == 1.0

    async def publish(self, node: str, item_id: str) -> None:
        """Publishes an item over HTTP."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/atom+xml"}
        url = f"{self.url}/entries/{node}/{item_id}"
        async with self.session.put(url, data=ENTRY.format(item_id), headers=headers) as answer:
            assert answer.status == 201, await answer.text()


async def prepare(config: Path, domain: str, nodes: Sequence[str], subscriber: str) -> str:
    """Creates feeds with one subscriber. Returns a token that may publish in them."""
    async with stored_service(config) as service:
        owner, reader = parse_jid(OWNER), parse_jid(subscriber)
        assert owner is not None
        assert reader is not None
        for node in nodes:
            await service.handle(CreateNode(owner, domain, node, None))
            await service.handle(Subscribe(reader, domain, node, reader.bare_text))
        token, text = new_token(OWNER, TokenScope.PUBLISH, ALL_FEEDS, "")
        await service.write(lambda tx, context: add_token(tx, context, token, None))
    return text


@asynccontextmanager
async def shared_service(
    folder: Path,
    server: TestServer,
    url: str,
    nodes: Sequence[str],
    subscriber: str,
    count: int = 2,
    *,
    domain: str,
    **sections: dict[str, object],
) -> AsyncIterator[list[Member]]:
    """Configured processes, which are not started yet."""
    members: list[Member] = []
    token = ""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for number in range(count):
            place, port = folder / f"process{number}", free_port()
            place.mkdir()
            config = write_config(
                place,
                server,
                domain,
                **{
                    "store": {"url": url, "lease_s": 2.0},
                    "http": {"listen": f"127.0.0.1:{port}"},
                    "log": {"level": "info"},
                    **sections,
                },
            )
            token = token or await prepare(config, domain, nodes, subscriber)
            process = await stack.enter_async_context(ServiceProcess(config))
            members.append(Member(process, port, session, token))
        yield members


async def share(members: Sequence[Member]) -> None:
    """Returns when the processes own all shards, none of them more than its share."""

    async def is_shared() -> bool:
        counts = [await member.shards() for member in members]
        return sum(counts) == SHARDS and max(counts) <= ceil(SHARDS / len(members))

    await until(is_shared, "equal shares")
