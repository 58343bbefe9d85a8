"""nbxmpp, the library of Gajim. It runs in GLib's main loop, in a thread of its own."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import gi

gi.require_version("Soup", "3.0")

from gi.repository import GLib  # noqa: E402
from nbxmpp.client import Client  # noqa: E402
from nbxmpp.const import ConnectionProtocol, ConnectionType  # noqa: E402
from nbxmpp.protocol import JID, Node, Presence  # noqa: E402
from nbxmpp.structs import StanzaHandler  # noqa: E402

from protocol import ATOM, NOTE, UPDATED, Events, Missing, serve  # noqa: E402


def payload(kind: str, title: str) -> Node:
    """An Atom entry or a note."""
    if kind == "note":
        return Node("note", attrs={"xmlns": NOTE}, payload=[title])
    entry = Node("entry", attrs={"xmlns": ATOM})
    entry.addChild("title", payload=[title])
    entry.addChild("updated", payload=[UPDATED])
    return entry


def read_item(item: Node) -> dict[str, str]:
    """The id of an item, and the text of its note or the title of its entry."""
    note, entry = item.getTag("note"), item.getTag("entry")
    title = note.getData() if note is not None else entry.getTagData("title") if entry is not None else ""
    return {"id": item.getAttr("id"), "title": title}


class Driver:
    """Calls of the test as calls of nbxmpp."""

    def __init__(self) -> None:
        self.events = Events()
        self.loop = asyncio.get_running_loop()
        self._callbacks: set[Callable[[Any], None]] = set()

    def _later(self, future: asyncio.Future[Any], value: Any) -> None:
        def settle() -> None:
            if not future.done():
                if isinstance(value, Exception):
                    future.set_exception(value)
                else:
                    future.set_result(value)

        self.loop.call_soon_threadsafe(settle)

    async def _ask(self, module: str, function: str, *values: Any, **more: Any) -> Any:
        future = self.loop.create_future()

        def start() -> None:
            def finished(task: Any) -> None:
                try:
                    self._later(future, task.finish())
                except Exception as error:  # noqa: BLE001 - handed to whoever waits
                    self._later(future, error)

            # A task has weak references to its callbacks only.
            self._callbacks.add(finished)
            future.add_done_callback(lambda _future: self._callbacks.discard(finished))
            getattr(self.client.get_module(module), function)(*values, callback=finished, **more)

        GLib.idle_add(start)
        return await future

    async def login(self, jid: str, password: str, host: str, port: int, service: str, **_ways: Any) -> str:
        self.service = JID.from_string(service)
        user = JID.from_string(jid)
        online = self.loop.create_future()

        def start() -> None:
            self.client = Client(log_context="driver")
            self.client.set_domain(user.domain)
            self.client.set_username(user.localpart)
            self.client.set_resource("nbxmpp")
            self.client.set_password(password)
            self.client.set_custom_host(f"{host}:{port}", ConnectionProtocol.TCP, ConnectionType.PLAIN)
            self.client.set_mechs({"PLAIN"})
            self.client.subscribe("login-successful", lambda *_: self._later(online, ""))
            self.client.subscribe("connected", lambda *_: self._connected(online))
            self.client.subscribe("connection-failed", lambda *_: self._failed(online))
            self.client.subscribe("disconnected", lambda *_: self._failed(online))
            self.client.register_handler(StanzaHandler(name="message", callback=self._read, priority=90))
            self.client.connect()

        threading.Thread(target=GLib.MainLoop().run, daemon=True).start()
        GLib.idle_add(start)
        await online
        return str(self.client.get_bound_jid())

    def _connected(self, online: asyncio.Future[Any]) -> None:
        self.client.send_stanza(Presence())
        self._later(online, "")

    def _failed(self, online: asyncio.Future[Any]) -> None:
        self._later(online, ConnectionError(str(self.client.get_error())))

    def _read(self, _client: Any, _stanza: Any, properties: Any) -> None:
        event = properties.pubsub_event
        if event is None:
            return
        found: dict[str, Any] = {"node": event.node}
        if event.purged or event.deleted:
            found["kind"] = "purge" if event.purged else "delete"
        elif event.retracted:
            found |= {"kind": "retract", "id": event.id}
        else:
            found |= {"kind": "item", **read_item(event.item)}
        asyncio.run_coroutine_threadsafe(self.events.add(found), self.loop)

    async def event(self, **wanted: Any) -> dict[str, Any]:
        return await self.events.wait(**wanted)

    async def info(self) -> dict[str, Any]:
        info = await self._ask("Discovery", "disco_info", self.service)
        return {"identities": [[one.category, one.type] for one in info.identities], "features": info.features}

    async def nodes(self) -> list[str]:
        answer = await self._ask("Discovery", "disco_items", self.service)
        return [item.node for item in answer.items]

    async def commands(self) -> list[str]:
        return [command.node for command in await self._ask("AdHoc", "request_command_list", self.service)]

    async def create(self, **_more: Any) -> None:
        raise Missing("creates nodes by publishing only")

    async def publish(
        self, node: str, item_id: str, title: str, kind: str, options: dict[str, Any] | None = None
    ) -> str:
        answer = await self._ask(
            "PubSub",
            "publish",
            node,
            payload(kind, title),
            id_=item_id,
            options=options and {f"pubsub#{name}": value for name, value in options.items()},
            jid=self.service,
            force_node_options=bool(options),
        )
        return answer.id

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        answer = await self._ask("PubSub", "request_items", node, max_items=max_items, jid=self.service)
        return [read_item(item) for item in answer]

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        item = await self._ask("PubSub", "request_item", node, item_id, jid=self.service)
        return [] if item is None else [read_item(item)]

    async def walk(self, **_way: Any) -> None:
        raise Missing("no result sets for items")

    async def subscribe(self, node: str) -> str:
        return (await self._ask("PubSub", "subscribe", node, jid=self.service)).subscription

    async def subscriptions(self) -> list[list[str]]:
        answer = await self._ask("PubSub", "get_subscriptions", self.service)
        return [[one.node, one.subscription] for one in answer]

    async def unsubscribe(self, node: str) -> None:
        await self._ask("PubSub", "unsubscribe", node, jid=self.service)

    async def retract(self, node: str, item_id: str) -> None:
        await self._ask("PubSub", "retract", node, item_id, jid=self.service)

    async def purge(self, node: str) -> None:
        await self._ask("PubSub", "purge", node, jid=self.service)

    async def delete(self, node: str) -> None:
        await self._ask("PubSub", "delete", node, jid=self.service)

    async def _form(self, node: str) -> Any:
        return (await self._ask("PubSub", "get_node_configuration", node, jid=self.service)).form

    async def config(self, node: str) -> dict[str, Any]:
        form = await self._form(node)
        return {name: str(field.value) for name, field in form.vars.items() if not hasattr(field, "values")}

    async def configure(self, node: str, values: dict[str, Any]) -> None:
        form = await self._form(node)
        for name, value in values.items():
            form[f"pubsub#{name}"].value = value
        await self._ask("PubSub", "set_node_configuration", node, form, jid=self.service)

    async def affiliations(self, **_more: Any) -> None:
        raise Missing("no affiliations")

    async def affiliate(self, **_more: Any) -> None:
        raise Missing("no affiliations")

    async def own_affiliations(self, **_more: Any) -> None:
        raise Missing("no affiliations")

    async def subscribers(self, **_more: Any) -> None:
        raise Missing("no list of subscribers")


async def main() -> None:
    """Serves until standard input ends."""
    await serve(Driver())
    os._exit(0)  # the thread of the main loop does not end by itself


if __name__ == "__main__":
    asyncio.run(main())
