"""The stanzas of atomtopubsub, a bot that copies feeds, as its class `Publishx` makes them with slixmpp.

slixmpp 1.17 writes such a payload with two default namespaces, which is not well-formed.
"""

import asyncio
from typing import Any
from xml.etree import ElementTree as ET

from slixmpp.plugins.xep_0060.stanza.pubsub import Item
from slixmpp_driver import Driver as SlixmppDriver

from protocol import ATOM, UPDATED, Missing, serve

CONFIG = (
    ("type", "text-single", "urn:xmpp:pubsub-social-feed:1"),
    ("persist_items", "boolean", 1),
    ("notify_retract", "boolean", 1),
    ("title", "text-single", None),
    ("max_items", "text-single", "max"),
    ("send_last_published_item", "text-single", "never"),
    ("deliver_payloads", "boolean", 0),
    ("description", "text-single", "What is published"),
)


def entry(title: str) -> ET.Element:
    """An entry without an id, with the two authors that the bot writes for one."""
    root = ET.Element("entry")
    root.set("xmlns", ATOM)
    ET.SubElement(root, "title").text = title
    ET.SubElement(root, "updated").text = UPDATED
    content = ET.SubElement(root, "content")
    content.set("type", "text/html")
    content.text = "<html><body><p>Text</p></body></html>"
    link = ET.SubElement(root, "link")
    for name, value in (("href", "https://example.org/1"), ("type", "text/html"), ("rel", "alternate")):
        link.set(name, value)
    ET.SubElement(root, "category").set("term", "tag")
    ET.SubElement(root, "author")
    ET.SubElement(root, "author").text = "Anne"
    return root


class Driver(SlixmppDriver):
    """Calls of the test as requests of the bot. It creates nodes and publishes, and does nothing else."""

    CALLS = ("login", "create", "publish")

    async def create(self, node: str, config: dict[str, Any]) -> str:
        iq = self.client.Iq(stype="set", sto=self.service)
        iq["pubsub"]["create"]["node"] = node
        form = iq["pubsub"]["configure"]["form"]
        form["type"] = "submit"
        for name, kind, value in CONFIG:
            form.addField(f"pubsub#{name}", ftype=kind, value=config["title"] if value is None else value)
        await iq.send()
        return node

    async def publish(self, node: str, item_id: str, title: str, kind: str, options: Any = None) -> str:
        if options:
            raise Missing("no publish-options")
        iq = self.client.Iq(stype="set", sto=self.service)
        iq["pubsub"]["publish"]["node"] = node
        item = Item()
        item["id"], item["payload"] = item_id, entry(title)
        iq["pubsub"]["publish"].append(item)
        await iq.send()
        return item_id


if __name__ == "__main__":
    asyncio.run(serve(Driver()))
