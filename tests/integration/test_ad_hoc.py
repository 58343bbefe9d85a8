"""Ad-hoc commands as a client with a library for them sees them, on real servers (XEP-0050)."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import slixmpp
from lxml import etree
from slixmpp.exceptions import IqError

from smartfeeds.console import Exit
from smartfeeds.core.jid import parse_jid
from smartfeeds.local.process import HOST
from smartfeeds.service.requests import CreateNode, SetAffiliations
from support.commands import GREET, TABLE, TIME, WALK, WITH_TABLE
from support.form_client import FormClient
from support.process import ServiceProcess
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import HANG_S

PS = "http://jabber.org/protocol/pubsub"
ATOM = "http://www.w3.org/2005/Atom"
CMD = "http://jabber.org/protocol/commands"


@asynccontextmanager
async def logged_in(server: TestServer, name: str) -> AsyncIterator[slixmpp.ClientXMPP]:
    """A plain slixmpp client with its plugin for ad-hoc commands."""
    account = await asyncio.to_thread(server.server.account, name)
    mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
    client = slixmpp.ClientXMPP(
        f"{account.jid}/adhoc", account.password, plugin_config={"feature_mechanisms": mechanisms}
    )
    client.enable_plaintext, client.enable_starttls, client.enable_direct_tls = True, False, False
    client.register_plugin("xep_0050")
    online: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    client.add_event_handler("session_start", online.set_result)
    client.connect(HOST, server.server.client_port)
    await asyncio.wait_for(online, HANG_S)
    try:
        yield client
    finally:
        await client.disconnect(wait=2.0)
        if client._run_out_filters is not None:
            client._run_out_filters.cancel()


class Dialog:
    """A command run with the workflow of slixmpp: `begin`, `next` and the others return the answering stanza."""

    def __init__(self, client: slixmpp.ClientXMPP, service: str) -> None:
        self._plugin = client.plugin["xep_0050"]
        self._service = service
        self._session: dict[str, Any] = {}
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    async def begin(self, node: str) -> Any:
        """The first answer."""
        self._session = {"next": self._take, "error": self._take}
        self._plugin.start_command(self._service, node, self._session)
        return await asyncio.wait_for(self._answers.get(), HANG_S)

    async def go(self, action: str, answer: Any = None, **values: str) -> Any:
        """Fills in the form of an answer, which slixmpp sends back as it came, and takes an action."""
        self._session["payload"] = None
        if answer is not None:
            form = answer["command"]["form"]
            form["type"] = "submit"
            form.set_values(values)
            self._session["payload"] = [form]
        {
            "next": self._plugin.continue_command,
            "prev": lambda session: self._plugin.continue_command(session, direction="prev"),
            "complete": self._plugin.complete_command,
            "cancel": self._plugin.cancel_command,
        }[action](self._session)
        return await asyncio.wait_for(self._answers.get(), HANG_S)

    def _take(self, stanza: Any, _session: dict[str, Any]) -> None:
        self._answers.put_nowait(stanza)


async def test_commands_are_found_run_and_cancelled_by_slixmpp(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hidden fields come back, back works with and without the form, errors arrive [xep-map 46] [xep-map 239]
    [xep-map 240]."""
    monkeypatch.setattr("smartfeeds.app.lifecycle.xmpp_side", lambda: WITH_TABLE)
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)), logged_in(server, "alice") as alice:
        listed = await alice.plugin["xep_0050"].get_commands(domain)
        info = await alice.plugin["xep_0030"].get_info(domain, node=GREET.node)
        dialog = Dialog(alice, domain)

        first = await dialog.begin(GREET.node)
        second = await dialog.go("next", first, name="Bob & <Carol>")
        back = await dialog.go("prev")
        second = await dialog.go("next", back)
        back = await dialog.go("prev", second)
        second = await dialog.go("next", back)
        last = await dialog.go("complete", second, how="coldly")
        over = await dialog.go("cancel")

        await dialog.begin(GREET.node)
        cancelled = await dialog.go("cancel")
        at_once = await dialog.begin(TIME.node)
        refused = await dialog.begin("urn:test:none")
        with pytest.raises(IqError) as unknown:
            await alice.plugin["xep_0030"].get_info(domain, node="urn:test:none")

    assert set(listed["disco_items"]["items"]) == {(domain, each.node, each.name) for each in TABLE.values()}
    assert {identity[:2] for identity in info["disco_info"]["identities"]} == {("automation", "command-node")}
    assert {CMD, "jabber:x:data"} <= set(info["disco_info"]["features"])
    assert [answer["command"]["status"] for answer in (first, second, back, last, cancelled, at_once)] == [
        *["executing"] * 3,
        "completed",
        "canceled",
        "completed",
    ]
    assert (second["command"]["actions"], back["command"]["actions"]) == ({"prev", "complete"}, {"next"})
    assert back["command"]["form"].get_values()["name"] == "Bob & <Carol>"
    assert last["command"]["notes"] == [("info", "Bob & <Carol> was greeted coldly")]
    assert at_once["command"]["form"].get_values()["time"] == "noon"
    assert (over["type"], over["error"]["condition"]) == ("error", "not-allowed")
    assert (refused["type"], refused["error"]["condition"]) == ("error", "item-not-found")
    assert unknown.value.condition == "item-not-found"


async def test_conflict_is_settled_with_slixmpp(server: TestServer, tmp_path: Path) -> None:
    """The service's own command through a real server: what was hidden comes back, and the tags match [A-62]."""
    domain = server.take_name()
    elsewhere = (
        "<sx:sync xmlns:sx='http://feedsync.org/2007/feedsync' id='one' updates='1'>"
        "<sx:history sequence='1' when='2025-12-31T12:00:00Z' by='elsewhere'/></sx:sync>"
    )
    async with running(write_config(tmp_path, server, domain)), logged_in(server, "alice") as alice:

        async def ask(kind: str, inner: str) -> Any:
            iq = alice.make_iq(ito=domain, itype=kind)
            iq.append(ET.fromstring(f"<pubsub xmlns='{PS}'>{inner}</pubsub>"))
            return await iq.send(timeout=HANG_S)

        await ask("set", "<create node='tea'/>")
        for title, sync in (("ours", ""), ("th&amp;irs", elsewhere)):
            entry = f"<entry xmlns='{ATOM}'>{sync}<title>{title}</title></entry>"
            await ask("set", f"<publish node='tea'><item id='one'>{entry}</item></publish>")
        dialog = Dialog(alice, domain)

        first = await dialog.begin("urn:smartfeeds:0#conflicts")
        items = await dialog.go("next", first, node="tea")
        versions = await dialog.go("next", items, item="one")
        options = versions["command"]["form"].get_fields()["keep"]["options"]
        done = await dialog.go("complete", versions, keep=options[1]["value"])
        shown = await ask("get", "<items node='tea'/>")

    assert [option["label"].rpartition(", ")[2] for option in options] == ["ours", "th&irs"]
    assert done["command"]["notes"] == [("info", "Resolved 1 conflict of th&irs (one).")]
    assert [title.text for title in shown.xml.iter(f"{{{ATOM}}}title")] == ["th&irs"]


ADMIN_NS = "http://jabber.org/protocol/admin"


async def names_of(client: slixmpp.ClientXMPP, domain: str) -> set[str]:
    """The names of the commands that the service shows to a user."""
    answer = await client.plugin["xep_0050"].get_commands(domain)
    return {name for _, _, name in answer["disco_items"]["items"]}


def lines_of(answer: Any) -> int:
    """The number of texts for reading in a form."""
    return len(answer.xml.findall(".//*[@type='fixed']"))


async def test_service_is_administered_with_slixmpp(server: TestServer, tmp_path: Path) -> None:
    """An admin creates, lists and deletes a node of many; an ordinary user neither sees nor runs the commands."""
    domain = server.take_name()
    root = await asyncio.to_thread(server.server.account, "root")
    config = write_config(tmp_path, server, domain, pubsub={"admins": [root.jid], "creators": []})
    async with running(config) as app, logged_in(server, "root") as admin, logged_in(server, "bob") as bob:
        shown = (await names_of(admin, domain), await names_of(bob, domain))
        dialog = Dialog(admin, domain)
        form = await dialog.begin("urn:smartfeeds:0#create-node")
        created = await dialog.go("complete", form, **{"node": "n<0>", "pubsub#title": "Tea & cakes"})
        for number in range(1, 60):
            actor = parse_jid(root.jid)
            assert actor is not None
            await app.service.handle(CreateNode(actor, domain, f"n{number:02}"))
        pages = [await dialog.begin("urn:smartfeeds:0#list-nodes")]
        sizes = [lines_of(pages[0])]  # at once, because filling a form in changes it
        for action in ("next", "prev"):
            pages.append(await dialog.go(action, pages[-1] if action == "next" else None))
            sizes.append(lines_of(pages[-1]))
        table = await dialog.go("complete", pages[-1])
        choice = await dialog.begin("urn:smartfeeds:0#delete-node")
        confirm = await dialog.go("next", choice, node="n<0>")
        deleted = await dialog.go("complete", confirm, confirm="1")
        refused = await Dialog(bob, domain).begin("urn:smartfeeds:0#delete-node")

    assert {"Create a node", "Statistics", "Shut down the service"} <= shown[0]
    assert shown[1] == {"Conflicts of a node"}
    assert created["command"]["notes"] == [("info", "Created the node n<0>.")]
    assert sizes == [50, 10, 50]
    assert table["command"]["form"]["title"] == "List nodes"
    rows = table["command"]["form"].get_items()
    assert [row["node"] for row in rows] == [f"n{number:02}" for number in range(1, 51)]
    assert deleted["command"]["notes"] == [("info", "Deleted the node n<0>.")]
    assert (refused["type"], refused["error"]["condition"]) == ("error", "forbidden")


async def test_announcement_reaches_a_subscriber(server: TestServer, tmp_path: Path) -> None:
    """XEP-0133 4.23: a message to the bare JID, which the server delivers to the client."""
    domain = server.take_name()
    root = await asyncio.to_thread(server.server.account, "root")
    received: asyncio.Queue[Any] = asyncio.Queue()
    config = write_config(tmp_path, server, domain, pubsub={"admins": [root.jid]})
    async with running(config), logged_in(server, "root") as admin, logged_in(server, "carol") as reader:
        reader.add_event_handler("message", received.put_nowait)
        reader.send_presence()
        for body in ("<create node='tea'/>", f"<subscribe node='tea' jid='{reader.boundjid.bare}'/>"):
            iq = reader.make_iq(ito=domain, itype="set")
            iq.append(ET.fromstring(f"<pubsub xmlns='{PS}'>{body}</pubsub>"))
            await iq.send(timeout=HANG_S)
        dialog = Dialog(admin, domain)
        form = await dialog.begin(f"{ADMIN_NS}#announce")
        sent = await dialog.go("complete", form, subject="News", announcement="Tea is ready & hot")
        message = await asyncio.wait_for(received.get(), HANG_S)

    assert sent["command"]["notes"] == [("info", "The announcement is being sent to all subscribers.")]
    assert (message["subject"], message["body"]) == ("News", "Tea is ready & hot")
    assert message["from"] == domain


@pytest.mark.parametrize(("command", "code"), [("shutdown", Exit.OK), ("restart", Exit.RESTART)])
async def test_process_ends_with_the_code_of_the_command(
    server: TestServer, tmp_path: Path, command: str, code: Exit
) -> None:
    """XEP-0133 4.31, 4.32: the admin gets the answer, then the process ends."""
    domain = server.take_name()
    root = await asyncio.to_thread(server.server.account, "root")
    config = write_config(tmp_path, server, domain, pubsub={"admins": [root.jid]}, run={"restarts": True})
    async with ServiceProcess(config) as process, logged_in(server, "root") as admin:
        await process.start()
        dialog = Dialog(admin, domain)
        form = await first_answer(dialog, f"{ADMIN_NS}#{command}")
        done = await dialog.go("complete", form, delay="0")
        ended = await process.ended()

    assert done["command"]["status"] == "completed"
    assert ended == code


async def first_answer(dialog: Dialog, node: str) -> Any:
    """The first form of a command of a service that is about to come online."""
    async with asyncio.timeout(HANG_S):
        while True:
            answer = await dialog.begin(node)
            if answer["type"] == "result":
                return answer


def form_client(client: slixmpp.ClientXMPP, domain: str) -> FormClient:
    """A client that knows only forms, over a logged-in client."""

    async def send(kind: str, payload: str) -> etree._Element:
        iq = client.make_iq(ito=domain, itype=kind)
        iq.append(ET.fromstring(payload))
        try:
            answer = await iq.send(timeout=HANG_S)
        except IqError as error:
            answer = error.iq
        return etree.fromstring(ET.tostring(answer.xml))

    return FormClient(send)


async def test_every_command_is_walked_to_its_end(server: TestServer, tmp_path: Path) -> None:
    """An admin, an owner and a stranger; the commands shown are those that the user may run [xep-map 46]."""
    domain = server.take_name()
    root = await asyncio.to_thread(server.server.account, "root")
    config = write_config(tmp_path, server, domain, pubsub={"admins": [root.jid], "creators": []})
    async with running(config) as app, AsyncExitStack() as stack:
        users = {name: await stack.enter_async_context(logged_in(server, name)) for name in ("root", "alice", "bob")}
        walkers = {name: form_client(client, domain) for name, client in users.items()}
        owner, admin = (parse_jid(users[name].boundjid.bare) for name in ("alice", "root"))
        assert owner is not None and admin is not None
        await app.service.handle(CreateNode(admin, domain, "tea"))
        entries = ((str(owner), "owner"),)
        await app.service.handle(SetAffiliations(admin, domain, "tea", entries))
        shown = {name: await walker.commands() for name, walker in walkers.items()}
        # The admin last: the delay of the shutdown is a minute, and its last command cancels it.
        outcomes = {name: {node: await walkers[name].walk(node) for node in WALK} for name in ("bob", "alice", "root")}

    for name, walks in outcomes.items():
        assert {node for node, outcome in walks.items() if outcome != "forbidden"} == set(shown[name])
        assert {walks[node] for node in shown[name]} == {"completed"}
    assert len(shown["bob"]) == 1 < len(shown["alice"]) < len(shown["root"])
