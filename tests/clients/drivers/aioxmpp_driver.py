"""aioxmpp, with payloads as classes."""

import asyncio
from typing import Any

import aiosasl
import aioxmpp
import aioxmpp.connector
import aioxmpp.disco
import aioxmpp.forms
import aioxmpp.pubsub
import aioxmpp.pubsub.xso as pubsub_xso
import aioxmpp.sasl
import aioxmpp.security_layer
import aioxmpp.xso as xso

from protocol import ATOM, NOTE, UPDATED, Events, Missing, serve


class Title(xso.XSO):
    TAG = (ATOM, "title")
    UNKNOWN_ATTR_POLICY = xso.UnknownAttrPolicy.DROP
    text = xso.Text()


class Entry(xso.XSO):
    TAG = (ATOM, "entry")
    UNKNOWN_CHILD_POLICY = xso.UnknownChildPolicy.DROP
    title_child = xso.Child([Title])
    updated = xso.ChildText((ATOM, "updated"), default=None)

    @property
    def title(self) -> str:
        return self.title_child.text or ""


class Note(xso.XSO):
    TAG = (NOTE, "note")
    title = xso.Text()


for payload_class in (Entry, Note):
    pubsub_xso.as_payload_class(payload_class)


def payload(kind: str, title: str) -> xso.XSO:
    """An Atom entry or a note."""
    if kind == "note":
        note = Note()
        note.title = title
        return note
    entry, child = Entry(), Title()
    child.text = title
    entry.title_child, entry.updated = child, UPDATED
    return entry


def form(values: dict[str, Any], form_type: str) -> aioxmpp.forms.Data:
    data = aioxmpp.forms.Data(type_=aioxmpp.forms.DataType.SUBMIT)
    fields = {"FORM_TYPE": f"http://jabber.org/protocol/pubsub#{form_type}"}
    fields |= {f"pubsub#{name}": str(value) for name, value in values.items()}
    for name, value in fields.items():
        kind = aioxmpp.forms.FieldType.HIDDEN if name == "FORM_TYPE" else aioxmpp.forms.FieldType.TEXT_SINGLE
        data.fields.append(aioxmpp.forms.Field(type_=kind, var=name, values=[value]))
    return data


class PlainProvider(aioxmpp.security_layer.SASLProvider):
    """Authenticates with PLAIN, which the library's own provider refuses without TLS."""

    def __init__(self, password: str) -> None:
        self._password = password

    async def execute(self, jid: Any, features: Any, xmlstream: Any, _tls: Any) -> bool:
        async def credentials() -> tuple[str, str]:
            return jid.localpart, self._password

        mechanism, token = self._find_supported(features, [aiosasl.PLAIN(credentials)])
        machine = aiosasl.SASLStateMachine(aioxmpp.sasl.SASLXMPPInterface(xmlstream))
        return bool(await self._execute(machine, mechanism, token))


class Driver:
    """Calls of the test as calls of aioxmpp."""

    def __init__(self) -> None:
        self.events = Events()
        self._tasks: set[asyncio.Future[None]] = set()

    async def login(self, jid: str, password: str, host: str, port: int, service: str, **_ways: Any) -> str:
        layer = aioxmpp.make_security_layer(password, no_verify=True)
        layer = layer._replace(tls_required=False, sasl_providers=[PlainProvider(password)])
        peer = (host, port, aioxmpp.connector.STARTTLSConnector())
        self.client = aioxmpp.PresenceManagedClient(aioxmpp.JID.fromstr(jid), layer, override_peer=[peer])
        self.pubsub = self.client.summon(aioxmpp.PubSubClient)
        self.disco = self.client.summon(aioxmpp.DiscoClient)
        self.adhoc = self.client.summon(aioxmpp.AdHocClient)
        self.service = aioxmpp.JID.fromstr(service)
        self.pubsub.on_item_published.connect(self._published)
        self.pubsub.on_item_retracted.connect(self._retracted)
        self._stack = self.client.connected()
        await self._stack.__aenter__()
        return str(self.client.local_jid)

    def _note_event(self, **event: Any) -> None:
        task = asyncio.ensure_future(self.events.add(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _published(self, _service: Any, node: str, item: Any, **_more: Any) -> None:
        title = item.registered_payload.title if item.registered_payload else ""
        self._note_event(kind="item", node=node, id=item.id_, title=title)

    def _retracted(self, _service: Any, node: str, id_: str, **_more: Any) -> None:
        self._note_event(kind="retract", node=node, id=id_)

    async def event(self, **wanted: Any) -> dict[str, Any]:
        return await self.events.wait(**wanted)

    async def info(self) -> dict[str, Any]:
        info = await self.disco.query_info(self.service)
        return {"identities": [[one.category, one.type_] for one in info.identities], "features": list(info.features)}

    async def nodes(self) -> list[str]:
        # `get_nodes` of the pubsub service returns the list of its first call.
        answer = await self.disco.query_items(self.service, require_fresh=True)
        return [item.node for item in answer.items]

    async def commands(self) -> list[str]:
        return [item.node for item in await self.adhoc.get_commands(self.service)]

    async def create(self, node: str, config: dict[str, Any] | None = None) -> str:
        created = await self.pubsub.create(self.service, node)
        if config:
            await self.configure(node, config)
        return created or node

    async def publish(
        self, node: str, item_id: str, title: str, kind: str, options: dict[str, Any] | None = None
    ) -> str:
        data = form(options, "publish-options") if options else None
        result: str = await self.pubsub.publish(
            self.service, node, payload(kind, title), id_=item_id, publish_options=data
        )
        return result

    def _items(self, answer: Any) -> list[dict[str, str]]:
        return [{"id": item.id_, "title": item.registered_payload.title} for item in answer.payload.items]

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        return self._items(await self.pubsub.get_items(self.service, node, max_items=max_items))

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        return self._items(await self.pubsub.get_items_by_id(self.service, node, [item_id]))

    async def walk(self, **_way: Any) -> None:
        raise Missing("no result sets for items")

    async def subscribe(self, node: str) -> str:
        answer = await self.pubsub.subscribe(self.service, node)
        return str(answer.payload.subscription)

    async def subscriptions(self) -> list[list[str]]:
        answer = await self.pubsub.get_subscriptions(self.service)
        return [[one.node, str(one.subscription)] for one in answer.subscriptions]

    async def unsubscribe(self, node: str) -> None:
        await self.pubsub.unsubscribe(self.service, node)

    async def retract(self, node: str, item_id: str) -> None:
        await self.pubsub.retract(self.service, node, item_id, notify=True)

    async def purge(self, node: str) -> None:
        await self.pubsub.purge(self.service, node)

    async def delete(self, node: str) -> None:
        await self.pubsub.delete(self.service, node)

    async def config(self, node: str) -> dict[str, Any]:
        data = await self.pubsub.get_node_config(self.service, node)
        return {one.var: (one.values or [None])[0] for one in data.fields}

    async def configure(self, node: str, values: dict[str, Any]) -> None:
        await self.pubsub.set_node_config(self.service, form(values, "node_config"), node)

    async def affiliations(self, node: str) -> dict[str, str]:
        answer = await self.pubsub.get_node_affiliations(self.service, node)
        return {str(one.jid): one.affiliation for one in answer.payload.affiliations}

    async def own_affiliations(self) -> None:
        raise Missing("no list of own affiliations")

    async def affiliate(self, node: str, jid: str, affiliation: str) -> None:
        await self.pubsub.change_node_affiliations(self.service, node, [(aioxmpp.JID.fromstr(jid), affiliation)])

    async def subscribers(self, node: str) -> dict[str, str]:
        answer = await self.pubsub.get_node_subscriptions(self.service, node)
        return {str(one.jid): one.subscription for one in answer.payload.subscriptions}


if __name__ == "__main__":
    asyncio.run(serve(Driver()))
