"""The service as a process with the feed news: the database before it starts, and its HTTP side."""

from pathlib import Path
from urllib.parse import urlencode

import aiohttp

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import TokenScope
from smartfeeds.features.accounts.tokens import add_token, new_token
from smartfeeds.service.requests import CreateNode
from support.service import stored_service
from support.waiting import until

DOMAIN, OWNER = "feeds.example.org", "alice@example.org"
ENTRY = "<entry xmlns='http://www.w3.org/2005/Atom'><title>{}</title></entry>"


async def prepare(config: Path) -> str:
    """Makes the feed news in the database of a configuration. Returns a token to publish in it."""
    async with stored_service(config) as service:
        owner = parse_jid(OWNER)
        assert owner is not None
        await service.handle(CreateNode(owner, DOMAIN, "news", None))
        token, text = new_token(OWNER, TokenScope.PUBLISH, "news", "")
        await service.write(lambda tx, context: add_token(tx, context, token, None))
    return text


class PublishedSite:
    """The HTTP side of the process, which may be away."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session, self._url, self._token = session, url, token

    async def ready(self) -> None:

        async def answers() -> bool:
            try:
                async with self._session.get(f"{self._url}/healthz") as answer:
                    assert answer.status == 200
                    return True
            except aiohttp.ClientConnectionError:
                return False

        await until(answers, f"an answer of {self._url}")

    async def subscribe(self, callback: str) -> None:
        form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": f"{self._url}/feeds/news/"}
        async with self._session.post(
            f"{self._url}/hub",
            data=urlencode({**form, "hub.verify": "sync"}),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        ) as answer:
            assert answer.status == 204, await answer.text()

    async def publish(self, item_id: str) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/atom+xml"}
        url = f"{self._url}/entries/news/{item_id}"
        async with self._session.put(url, data=ENTRY.format(item_id), headers=headers) as answer:
            assert answer.status == 201, await answer.text()

    async def titles(self) -> list[str]:
        """The titles of the items, in the order of the feed."""
        url = f"{self._url}/feeds/news/?since=time:0&timeout=0&max=50"
        async with self._session.get(url, headers={"Accept": "application/json"}) as answer:
            assert answer.status == 200, await answer.text()
            return [item["title"] for item in (await answer.json())["items"]]

    async def has(self, title: str) -> None:
        """Returns when an item with this title is there."""

        async def is_there() -> bool:
            return title in await self.titles()

        await until(is_there, f"the item {title!r}")
