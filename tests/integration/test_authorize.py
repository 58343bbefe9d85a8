"""Requests to subscribe, owners and unsubscribing with slixmpp, on real servers (XEP-0060 6.2, 8.6 to 8.9)."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import slixmpp
from slixmpp.exceptions import IqError

from smartfeeds.local.process import HOST
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import HANG_S

PS = "http://jabber.org/protocol/pubsub"
EVENT = f"{PS}#event"
ATOM = "http://www.w3.org/2005/Atom"
AUTHORIZATION = f"{PS}#subscribe_authorization"
PENDING = f"{PS}#get-pending"


class User:
    """A plain slixmpp client with its plugins for pubsub, forms and commands, and the messages that it received."""

    def __init__(self, client: slixmpp.ClientXMPP, domain: str) -> None:
        self.client, self.domain = client, domain
        self.pubsub = client.plugin["xep_0060"]
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        client.add_event_handler("message", self.messages.put_nowait)
        # slixmpp does not call the handler of messages for those without a body.
        for name in ("pubsub_publish", "pubsub_subscription", "message_xform"):
            client.add_event_handler(name, self.messages.put_nowait)

    @property
    def jid(self) -> str:
        return str(self.client.boundjid.bare)

    async def message(self) -> Any:
        """The next message."""
        return await asyncio.wait_for(self.messages.get(), HANG_S)

    async def state(self) -> str | None:
        """The state in the next notification of a subscription to this user."""
        subscription = (await self.message()).xml.find(f"{{{EVENT}}}event/{{{EVENT}}}subscription")
        assert subscription is not None and subscription.get("jid") == self.jid
        return str(subscription.get("subscription"))

    async def items(self) -> tuple[str | None, list[str | None]]:
        """The node and the ids in the next notification of items."""
        items = (await self.message()).xml.find(f"{{{EVENT}}}event/{{{EVENT}}}items")
        assert items is not None
        return items.get("node"), [item.get("id") for item in items]

    async def create(self, node: str, **options: str) -> None:
        """Creates a node with these options."""
        form = self.client.plugin["xep_0004"].make_form(ftype="submit")
        form.add_field(var="FORM_TYPE", ftype="hidden", value=f"{PS}#node_config")
        for name, value in options.items():
            form.add_field(var=f"pubsub#{name}", value=value)
        await self.pubsub.create_node(self.domain, node, config=form, timeout=HANG_S)

    async def publish(self, node: str, item_id: str) -> None:
        """Publishes an Atom entry."""
        entry = ET.fromstring(f"<entry xmlns='{ATOM}'><title>{item_id}</title></entry>")
        await self.pubsub.publish(self.domain, node, id=item_id, payload=entry, timeout=HANG_S)

    async def subscribe(self, node: str, options: Any = None) -> str:
        """Subscribes the bare address; the state."""
        answer = await self.pubsub.subscribe(self.domain, node, options=options, timeout=HANG_S)
        return str(answer["pubsub"]["subscription"]["subscription"])

    async def subscribers(self, node: str) -> list[tuple[str, str]]:
        """The owner's list."""
        answer = await self.pubsub.get_node_subscriptions(self.domain, node, timeout=HANG_S)
        found = answer["pubsub_owner"]["subscriptions"]
        return [(str(each["jid"]), each["subscription"]) for each in found]

    async def request(self) -> Any:
        """The form of the next request to subscribe."""
        message = await self.message()
        form = message["form"]
        assert (message["type"], form["type"]) == ("normal", "form"), message
        assert form.get_values()["FORM_TYPE"] == [AUTHORIZATION]
        return form

    def answer(self, form: Any, *, allow: bool) -> None:
        """Fills in the form and sends it back in a message, as a client does."""
        form["type"] = "submit"
        form.set_values({"pubsub#allow": allow})
        message = self.client.make_message(mto=self.domain)
        message.append(form)
        message.send()


@asynccontextmanager
async def logged_in(server: TestServer, name: str, domain: str) -> AsyncIterator[User]:
    """A user who is online."""
    account = await asyncio.to_thread(server.server.account, name)
    mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
    client = slixmpp.ClientXMPP(
        f"{account.jid}/authorize", account.password, plugin_config={"feature_mechanisms": mechanisms}
    )
    client.enable_plaintext, client.enable_starttls, client.enable_direct_tls = True, False, False
    for plugin in ("xep_0004", "xep_0050", "xep_0060"):
        client.register_plugin(plugin)
    online: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    client.add_event_handler("session_start", online.set_result)
    client.connect(HOST, server.server.client_port)
    await asyncio.wait_for(online, HANG_S)
    user = User(client, domain)
    client.send_presence()
    # The server has processed the presence when it answers, so messages to the bare address arrive here.
    await client.get_roster(timeout=HANG_S)
    try:
        yield user
    finally:
        await client.disconnect(wait=2.0)
        if client._run_out_filters is not None:
            client._run_out_filters.cancel()


async def test_owner_denies_and_approves_requests(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 104] [xep-map 105] [xep-map 106]"""
    domain = server.take_name()
    async with (
        running(write_config(tmp_path, server, domain)),
        logged_in(server, "alice", domain) as alice,
        logged_in(server, "bob", domain) as bob,
    ):
        await alice.create("tea", access_model="authorize")
        first = await bob.subscribe("tea")
        form = await alice.request()
        values = form.get_values()
        alice.answer(form, allow=False)
        denied = await bob.state()
        subscribers = await alice.subscribers("tea")

        second = await bob.subscribe("tea")
        alice.answer(await alice.request(), allow=True)
        approved = await bob.state()
        await alice.publish("tea", "one")
        node, item_ids = await bob.items()

        assert (first, denied, subscribers) == ("pending", "none", [])
        assert (values["pubsub#node"], values["pubsub#subscriber_jid"]) == ("tea", bob.jid)
        assert (second, approved, await alice.subscribers("tea")) == (
            "pending",
            "subscribed",
            [(bob.jid, "subscribed")],
        )
        assert (node, item_ids) == ("tea", ["one"])


async def test_command_sends_the_requests_that_an_owner_missed(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 105]; XEP-0060 8.7: these servers store no messages for users who are offline."""
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)), logged_in(server, "bob", domain) as bob:
        async with logged_in(server, "alice", domain) as alice:
            await alice.create("tea", access_model="authorize")
        await bob.subscribe("tea")
        async with logged_in(server, "alice", domain) as alice:
            answers: asyncio.Queue[Any] = asyncio.Queue()
            commands = alice.client.plugin["xep_0050"]

            def take(stanza: Any, _session: dict[str, Any]) -> None:
                answers.put_nowait(stanza)

            session: dict[str, Any] = {"next": take, "error": take}
            commands.start_command(domain, PENDING, session)
            choice = await asyncio.wait_for(answers.get(), HANG_S)
            form = choice["command"]["form"]
            options = [option["value"] for option in form.get_fields()["pubsub#node"]["options"]]
            form["type"] = "submit"
            form.set_values({"pubsub#node": "tea"})
            session["payload"] = [form]
            commands.complete_command(session)
            done = await asyncio.wait_for(answers.get(), HANG_S)
            alice.answer(await alice.request(), allow=True)
            state = await bob.state()

    assert options == ["tea"]
    assert done["command"]["status"] == "completed"
    assert state == "subscribed"


async def test_owner_sets_its_own_affiliation_and_subscriptions(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 88] [xep-map 89] [xep-map 96]: of itself always, of others where the operator allows it."""
    domain = server.take_name()
    config = write_config(tmp_path, server, domain, pubsub={"owners_subscribe_others": True})
    async with (
        running(config),
        logged_in(server, "alice", domain) as alice,
        logged_in(server, "bob", domain) as bob,
    ):
        await alice.create("tea", access_model="authorize")

        async def subscribe(*jids: str) -> None:
            entries = [(jid, "subscribed") for jid in jids]
            await alice.pubsub.modify_subscriptions(domain, "tea", entries, timeout=HANG_S)

        await subscribe(alice.jid)
        await subscribe(bob.jid)
        state = await bob.state()
        subscribers = await alice.subscribers("tea")
        await alice.publish("tea", "one")
        items = [await user.items() for user in (alice, bob)]
        condition = ""
        try:
            await alice.pubsub.modify_affiliations(domain, "tea", [(alice.jid, "none")], timeout=HANG_S)
        except IqError as error:
            condition = error.condition
        entries = [(bob.jid, "owner"), (alice.jid, "publisher")]
        await alice.pubsub.modify_affiliations(domain, "tea", entries, timeout=HANG_S)
        answer = await bob.pubsub.get_node_affiliations(domain, "tea", timeout=HANG_S)
        affiliations = {str(e["jid"]): e["affiliation"] for e in answer["pubsub_owner"]["affiliations"]}

    assert (state, subscribers) == ("subscribed", [(alice.jid, "subscribed"), (bob.jid, "subscribed")])
    assert items == [("tea", ["one"])] * 2
    assert condition == "not-acceptable"
    assert affiliations == {alice.jid: "publisher", bob.jid: "owner"}


async def test_subscribe_sends_the_last_item_again_and_unsubscribe_is_answered(
    server: TestServer, tmp_path: Path
) -> None:
    """[xep-map 116] [xep-map 119]: as Prosody answers."""
    domain = server.take_name()
    async with (
        running(write_config(tmp_path, server, domain)),
        logged_in(server, "alice", domain) as alice,
        logged_in(server, "bob", domain) as bob,
    ):
        await alice.create("tea", send_last_published_item="on_sub_and_presence")
        await alice.publish("tea", "one")

        items = []
        for _ in range(2):
            assert await bob.subscribe("tea") == "subscribed"
            items.append(await bob.items())
        answer = await bob.pubsub.unsubscribe(domain, "tea", timeout=HANG_S)

    former = answer["pubsub"]["subscription"]
    assert items == [("tea", ["one"])] * 2
    assert (former["node"], str(former["jid"]), former["subscription"]) == ("tea", bob.jid, "none")
