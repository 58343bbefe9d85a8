"""The chat bot with the libraries of ordinary clients, used as their manuals say: slixmpp and xmpp.js."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import slixmpp

from smartfeeds.local.process import HOST
from support.servers import TestServer
from support.service import running, write_config

SCRIPT = Path(__file__).parents[3] / "integration" / "js" / "chat.js"
DEADLINE_S = 40.0


class ChatClient(slixmpp.ClientXMPP):
    """A client that sends texts one after the other and collects the answers."""

    def __init__(self, jid: str, password: str, bot: str, texts: list[str]) -> None:
        mechanisms = {"unencrypted_plain": True, "use_mech": "PLAIN"}
        super().__init__(jid, password, plugin_config={"feature_mechanisms": mechanisms})
        self.enable_plaintext, self.enable_starttls, self.enable_direct_tls = True, False, False
        self.register_plugin("xep_0085")
        self.register_plugin("xep_0184")
        self.bot, self.texts = bot, texts
        self.answers: list[str] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.add_event_handler("session_start", self.on_start)
        self.add_event_handler("message", self.on_message)

    def on_start(self, _event: object) -> None:
        """Sends presence and the first text."""
        self.send_presence()
        self.say_next()

    def on_message(self, message: Any) -> None:
        """Collects an answer and sends the next text."""
        if message["type"] != "chat" or not message["body"]:
            return
        self.answers.append(message["body"])
        if len(self.answers) < len(self.texts):
            self.say_next()
        else:
            self.done.set_result(None)

    def say_next(self) -> None:
        """Sends the next text."""
        self.send_message(mto=self.bot, mbody=self.texts[len(self.answers)], mtype="chat")


async def test_slixmpp(server: TestServer, tmp_path: Path) -> None:
    domain = server.take_name()
    account = await asyncio.to_thread(server.server.account, "slix")
    async with running(write_config(tmp_path, server, domain)):
        client = ChatClient(f"{account.jid}/chat", account.password, domain, ["list", "subscribe nowhere", "abos"])
        client.connect(HOST, server.client_port)
        await asyncio.wait_for(client.done, DEADLINE_S)
        await client.disconnect(wait=2.0)
        if client._run_out_filters is not None:
            client._run_out_filters.cancel()

    assert client.answers == [
        "There are no feeds.",
        "There is no such feed or item, or it is closed to you.",
        "You follow no feed yet.",
    ]


async def test_xmpp_js(server: TestServer, tmp_path: Path) -> None:
    domain = server.take_name()
    account = await asyncio.to_thread(server.server.account, "jschat")
    node = shutil.which("node")
    assert node, "node is missing: apt-get install nodejs npm"
    settings = {
        "port": server.client_port,
        "domain": "localhost",
        "username": "jschat",
        "password": account.password,
        "bot": domain,
        "say": ["help", "list", "sprache de", "abos"],
    }
    async with running(write_config(tmp_path, server, domain)):
        process = await asyncio.create_subprocess_exec(
            node, str(SCRIPT), json.dumps(settings), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    assert process.returncode == 0, err.decode()
    answers = json.loads(out)

    assert {answer["type"] for answer in answers} == {"chat"}
    assert answers[0]["offers"] == ["list", "latest", "subscriptions"]
    assert [answer["body"] for answer in answers[1:]] == [
        "There are no feeds.",
        "Ich schreibe dir jetzt auf Deutsch.",
        "Du hast noch keinen Feed abonniert.",
    ]
