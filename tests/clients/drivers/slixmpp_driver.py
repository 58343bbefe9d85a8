"""slixmpp, as an ordinary client."""

import asyncio
from typing import Any
from xml.etree import ElementTree as ET

import slixmpp
from slixmpp.plugins.xep_0059 import Set
from slixmpp.plugins.xep_0060.stanza import Pubsub
from slixmpp.xmlstream import register_stanza_plugin

from protocol import ATOM, NOTE, PUBSUB, UPDATED, Events, serve

NODE_CONFIG, PUBLISH_OPTIONS = f"{PUBSUB}#node_config", f"{PUBSUB}#publish-options"
AUTHORIZATION = f"{PUBSUB}#subscribe_authorization"


def payload(kind: str, title: str) -> ET.Element:
    """An Atom entry or a note."""
    if kind == "note":
        note = ET.Element(f"{{{NOTE}}}note")
        note.text = title
        return note
    entry = ET.Element(f"{{{ATOM}}}entry")
    ET.SubElement(entry, f"{{{ATOM}}}title").text = title
    ET.SubElement(entry, f"{{{ATOM}}}updated").text = UPDATED
    return entry


def title_of(element: ET.Element | None) -> str:
    """The text of a note, or the title of an entry."""
    if element is None:
        return ""
    return element.findtext(f"{{{ATOM}}}title") or element.text or ""


class Driver:
    """Calls of the test as calls of slixmpp."""

    def __init__(self) -> None:
        self.events = Events()

    async def login(self, jid: str, password: str, host: str, port: int, service: str, **_ways: Any) -> str:
        mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
        self.client = self.make(jid, password, plugin_config={"feature_mechanisms": mechanisms})
        self.client.enable_plaintext, self.client.enable_starttls, self.client.enable_direct_tls = True, False, False
        self.service = service
        for name in ("xep_0030", "xep_0004", "xep_0050", "xep_0059", "xep_0060"):
            self.client.register_plugin(name)
        # slixmpp attaches result sets to disco only.
        register_stanza_plugin(Pubsub, Set)
        self.client.add_event_handler("message_xform", self._read_form)
        online = asyncio.get_running_loop().create_future()
        self.client.add_event_handler("session_start", online.set_result)
        self.client.add_event_handler("failed_all_auth", online.set_exception)
        for kind in ("publish", "retract", "purge", "delete"):
            self.client.add_event_handler(f"pubsub_{kind}", self._read_event)
        self.client.connect(host, port)
        await online
        self.client.send_presence()
        return str(self.client.boundjid.full)

    def make(self, jid: str, password: str, **settings: Any) -> slixmpp.ClientXMPP:
        return slixmpp.ClientXMPP(jid, password, **settings)

    async def _read_event(self, message: Any) -> None:
        event = message["pubsub_event"]
        for kind in ("purge", "delete"):
            if event.xml.find(f"{{{event.namespace}}}{kind}") is not None:
                await self.events.add({"kind": kind, "node": event[kind]["node"]})
                return
        for item in event["items"]:
            kind = "retract" if item.name == "retract" else "item"
            title = title_of(item["payload"]) if kind == "item" else ""
            await self.events.add({"kind": kind, "node": event["items"]["node"], "id": item["id"], "title": title})

    async def event(self, **wanted: Any) -> dict[str, Any]:
        return await self.events.wait(**wanted)

    async def _read_form(self, message: Any) -> None:
        """A request to subscribe. slixmpp reads the values of hidden fields as lists."""
        values = {field["var"]: field["value"] for field in message["form"]}
        if values.pop("FORM_TYPE", None) == [AUTHORIZATION]:
            values["pubsub#subid"] = values["pubsub#subid"][0]
            named = {name.removeprefix("pubsub#"): value for name, value in values.items()}
            await self.events.add({"kind": "request", **named})

    async def decide(self, node: str, jid: str, allow: bool) -> None:
        """Answers a request to subscribe by its form."""
        request = await self.events.wait(kind="request", node=node, subscriber_jid=jid)
        form = self._form({name: request[name] for name in ("subid", "node", "subscriber_jid")}, AUTHORIZATION)
        form.add_field("pubsub#allow", "boolean", value=allow)
        message = self.client.make_message(self.service)
        message.append(form)
        message.send()

    @property
    def pubsub(self) -> Any:
        return self.client["xep_0060"]

    async def info(self) -> dict[str, Any]:
        answer = await self.client["xep_0030"].get_info(self.service)
        identities = [[category, kind] for category, kind, *_ in answer["disco_info"]["identities"]]
        return {"identities": identities, "features": list(answer["disco_info"]["features"])}

    async def nodes(self) -> list[str]:
        answer = await self.pubsub.get_nodes(self.service)
        return [node for _jid, node, _name in answer["disco_items"]["items"]]

    def _form(self, values: dict[str, Any], form_type: str) -> Any:
        form = self.client["xep_0004"].make_form(ftype="submit")
        form.add_field("FORM_TYPE", "hidden", value=form_type)
        for name, value in values.items():
            form.add_field(f"pubsub#{name}", value=value)
        return form

    async def create(self, node: str, config: dict[str, Any] | None = None) -> str:
        form = self._form(config, NODE_CONFIG) if config else None
        answer = await self.pubsub.create_node(self.service, node, config=form)
        return answer["pubsub"]["create"]["node"] or node

    async def publish(
        self, node: str, item_id: str, title: str, kind: str, options: dict[str, Any] | None = None
    ) -> str:
        form = self._form(options, PUBLISH_OPTIONS) if options else None
        answer = await self.pubsub.publish(self.service, node, id=item_id, payload=payload(kind, title), options=form)
        return answer["pubsub"]["publish"]["item"]["id"]

    def _items(self, answer: Any) -> list[dict[str, str]]:
        return [{"id": item["id"], "title": title_of(item["payload"])} for item in answer["pubsub"]["items"]]

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        return self._items(await self.pubsub.get_items(self.service, node, max_items=max_items))

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        return self._items(await self.pubsub.get_item(self.service, node, item_id))

    async def walk(self, node: str, size: int, back: bool) -> list[list[str]]:
        """Pages of ids, as the iterator of slixmpp reads them."""
        answer = self.client.Iq(stype="get", sto=self.service)
        answer["pubsub"]["items"]["node"] = node
        iterator = self.client["xep_0059"].iterate(answer, "pubsub", amount=size, reverse=back)
        return [[item["id"] for item in self._items(page)] async for page in iterator]

    async def subscribe(self, node: str) -> str:
        answer = await self.pubsub.subscribe(self.service, node)
        return answer["pubsub"]["subscription"]["subscription"]

    async def subscriptions(self) -> list[list[str]]:
        answer = await self.pubsub.get_subscriptions(self.service)
        return [[one["node"], one["subscription"]] for one in answer["pubsub"]["subscriptions"]]

    async def unsubscribe(self, node: str) -> None:
        await self.pubsub.unsubscribe(self.service, node)

    async def retract(self, node: str, item_id: str) -> None:
        await self.pubsub.retract(self.service, node, item_id, notify=True)

    async def purge(self, node: str) -> None:
        await self.pubsub.purge(self.service, node)

    async def delete(self, node: str) -> None:
        await self.pubsub.delete_node(self.service, node)

    async def config(self, node: str) -> dict[str, Any]:
        answer = await self.pubsub.get_node_config(self.service, node)
        return dict(answer["pubsub_owner"]["configure"]["form"].get_values())

    async def configure(self, node: str, values: dict[str, Any]) -> None:
        await self.pubsub.set_node_config(self.service, node, self._form(values, NODE_CONFIG))

    async def affiliations(self, node: str) -> dict[str, str]:
        answer = await self.pubsub.get_node_affiliations(self.service, node)
        return {str(one["jid"]): one["affiliation"] for one in answer["pubsub_owner"]["affiliations"]}

    async def own_affiliations(self) -> list[list[str]]:
        answer = await self.pubsub.get_affiliations(self.service)
        return [[one["node"], one["affiliation"]] for one in answer["pubsub"]["affiliations"]]

    async def affiliate(self, node: str, jid: str, affiliation: str) -> None:
        await self.pubsub.modify_affiliations(self.service, node, affiliations=[(slixmpp.JID(jid), affiliation)])

    async def subscribers(self, node: str) -> dict[str, str]:
        answer = await self.pubsub.get_node_subscriptions(self.service, node)
        return {str(one["jid"]): one["subscription"] for one in answer["pubsub_owner"]["subscriptions"]}

    async def commands(self) -> list[str]:
        answer = await self.client["xep_0050"].get_commands(self.service)
        return [node for _jid, node, _name in answer["disco_items"]["items"]]


if __name__ == "__main__":
    asyncio.run(serve(Driver()))
