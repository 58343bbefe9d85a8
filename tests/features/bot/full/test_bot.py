"""The chat bot on real servers, used by ordinary clients."""

import re
from pathlib import Path

from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config
from support.talk import ask, hear, next_from, say, text_of
from support.waiting import wait_for

ROOT = Path(__file__).parents[4]
PS = "http://jabber.org/protocol/pubsub"


async def create(owner: Client, domain: str, node: str, **options: str) -> None:
    """Makes a feed."""
    fields = "".join(f"<field var='pubsub#{name}'><value>{value}</value></field>" for name, value in options.items())
    form = (
        f"<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>{PS}#node_config</value></field>"
        f"{fields}</x>"
    )
    answer = await owner.set(
        domain, f"<pubsub xmlns='{PS}'><create node='{node}'/><configure>{form}</configure></pubsub>"
    )
    assert answer.get("type") == "result"


async def test_person_follows_reads_posts_and_leaves_with_nothing_but_chat(
    server: TestServer, client: ClientFactory, tmp_path: Path
) -> None:
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await create(alice, domain, "village", title="The Village", publish_model="open")

        assert "- The Village (village)" in await ask(bob, domain, "list")
        assert (await ask(bob, domain, "subscribe village")).startswith("You follow The Village (village) now.")
        assert (await ask(alice, domain, "post village Market on Sunday", message_id="a1")) == "Published in village."
        assert (await hear(bob, domain)).startswith("Market on Sunday\nalice in The Village (village)\nxmpp:")
        assert (await ask(bob, domain, "post village See you there", message_id="b1")) == "Published in village."
        assert (await ask(bob, domain, "unsubscribe village")) == "You no longer follow village."
        await ask(alice, domain, "post village Unheard", message_id="a2")
        assert await ask(bob, domain, "subscriptions") == "You follow no feed yet."


async def test_items_wait_for_a_person_who_is_away(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """The server returns the message before it answers the ping, because it has no storage for absent users."""
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)) as app:
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await create(alice, domain, "village", publish_model="open")
        await ask(bob, domain, "subscribe village")
        await bob.logout()
        await ask(alice, domain, "post village First", message_id="a1")
        await wait_for(app.dispatcher.idle(), "the end of all deliveries")
        assert [reading.retrying for reading in app.dispatcher.readings() if reading.kind == "chat"] == [1]
        bob = await client(server, "bob")
        await ask(bob, domain, "help")

        assert (await hear(bob, domain)).startswith("First\n")


async def test_reply_publishes_an_answer(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await create(alice, domain, "village", publish_model="open")
        await ask(alice, domain, "subscribe village")
        await ask(bob, domain, "subscribe village")
        await ask(alice, domain, "post village Who comes?", message_id="a1")
        item = await next_from(bob, domain)
        assert text_of(item).startswith("Who comes?\n")
        reply = f"<reply xmlns='urn:xmpp:reply:0' id='{item.get('id')}' to='{domain}'/>"

        assert await ask(bob, domain, "I do", reply, message_id="b1") == "Your answer is published in village."
        assert (await hear(alice, domain)).startswith("> Who comes?\nI do\nbob in village")


def transcript() -> list[tuple[str, str]]:
    """The conversation of docs/bot.md: who speaks, and the text."""
    text = (ROOT / "docs" / "bot.md").read_text()
    block = text.partition("<!-- transcript: chat -->")[2].partition("<!-- end of transcript -->")[0]
    lines: list[tuple[str, str]] = []
    for line in block.strip().strip("`").removeprefix("text\n").rstrip("\n").split("\n"):
        speaker, said = line[:7].strip(), line[7:]
        if speaker:
            lines.append((speaker, said))
        else:
            lines[-1] = (lines[-1][0], f"{lines[-1][1]}\n{said}")
    return lines


async def test_conversation_of_the_page(prosody: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    domain = prosody.take_name()
    http = {"listen": "127.0.0.1:0", "base_url": "https://feeds.example.org"}
    lines = transcript()
    assert len(lines) > 10
    async with running(write_config(tmp_path, prosody, domain, http=http)):
        alice, bob = await client(prosody, "alice"), await client(prosody, "bob")
        await create(alice, domain, "village", title="The Village", publish_model="open")
        for number, (speaker, text) in enumerate(lines):
            if speaker == "bot":
                heard = await hear(bob, domain)
                assert re.sub(r"chat-[0-9a-f]{32}", "chat-ITEM", heard) == text
            else:
                say({"alice": alice, "bob": bob}[speaker], domain, text, message_id=f"m{number}")
