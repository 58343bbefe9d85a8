"""Slixfeed, a bot that copies feeds: its class `XmppPubsub` creates nodes and makes entries."""

import asyncio
from typing import Any

from slixfeed.interface.xmpp.iq import XmppIQ
from slixfeed.interface.xmpp.publish import XmppPubsub
from slixfeed.utility.atom import UtilityAtom
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp_driver import Driver as SlixmppDriver

from protocol import UPDATED, Missing, serve


def entry(title: str) -> dict[str, Any]:
    """An entry as the bot has it in its database."""
    return {
        "title": title,
        "title_type": "text",
        "summary_text": "Text",
        "summary_type": "text",
        "summary_lang": "en",
        "contents": [],
        "authors": [{"name": "Anne", "url": "https://example.org/anne", "email": "anne@example.org"}],
        "contributors": [],
        "category": "news",
        "tags": [{"term": "tag", "scheme": "", "label": ""}],
        "link": "https://example.org/1",
        "links": [{"url": "https://example.org/1", "type": "text/html", "rel": "alternate", "size": ""}],
        "updated": UPDATED,
        "published": UPDATED,
    }


class Driver(SlixmppDriver):
    """Calls of the test as calls of the bot's class."""

    CALLS = ("login", "info", "nodes", "create", "publish", "items", "item", "purge", "delete")

    async def _send(self, iq: Any) -> Any:
        answer = await XmppIQ.send(iq)
        if isinstance(answer, IqError | IqTimeout):
            raise answer
        return answer

    async def create(self, node: str, config: dict[str, Any]) -> str:
        iq = XmppPubsub.create_node(self.client, self.service, node, config["title"], "What is published")
        await self._send(iq)
        return node

    async def publish(self, node: str, item_id: str, title: str, kind: str, options: Any = None) -> str:
        if options:
            raise Missing("no publish-options")
        payload = UtilityAtom.create_rfc4287_entry(entry(title))
        await self._send(XmppPubsub.create_entry(self.client, self.service, node, item_id, payload))
        return item_id

    async def nodes(self) -> list[str]:
        answer = await XmppPubsub.get_nodes(self.client, self.service)
        return [node for _jid, node, _name in answer["disco_items"]["items"]]

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        if max_items:
            raise Missing("no `max_items`")
        return self._items(await XmppPubsub.get_items(self.client, self.service, node))

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        return self._items(await XmppPubsub.get_item(self.client, self.service, node, item_id))

    async def purge(self, node: str) -> None:
        XmppPubsub.purge_node(self.client, self.service, node)
        await self.info()  # the answer to a later request follows that to the purge, which the bot does not await

    async def delete(self, node: str) -> None:
        XmppPubsub.delete_node(self.client, self.service, node)
        await self.info()


if __name__ == "__main__":
    asyncio.run(serve(Driver()))
