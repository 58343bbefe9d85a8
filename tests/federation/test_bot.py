"""The chat bot and a person on another server, and items that wait while that server cannot be reached."""

import asyncio
from pathlib import Path

from support.client import Client, ClientFactory
from support.component import PS
from support.federation import Federation
from support.service import running, write_config
from support.talk import ask, next_from, say, text_of

FORM = (
    f"<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>{PS}#node_config</value></field>"
    "<field var='pubsub#publish_model'><value>open</value></field></x>"
)


async def hear_until(client: Client, domain: str, start: str) -> list[str]:
    """The messages of the bot up to the first that begins with this text."""
    texts: list[str] = []
    while not texts or not texts[-1].startswith(start):
        texts.append(text_of(await next_from(client, domain)))
    return texts


async def test_person_on_another_server_uses_the_bot(two: Federation, client: ClientFactory, tmp_path: Path) -> None:
    near, far = two.near, two.far
    domain = near.take_name()
    async with running(write_config(tmp_path, near, domain, pubsub={"creators": [near.domain]})) as app:
        alice, bob = await client(near, "alice"), await client(far, "bob")
        create = f"<pubsub xmlns='{PS}'><create node='village'/><configure>{FORM}</configure></pubsub>"
        assert (await alice.set(domain, create)).get("type") == "result"
        await two.until_reached(bob, domain)

        assert (await ask(bob, domain, "list")).startswith("Feeds:\n- village")
        assert (await ask(bob, domain, "subscribe village")).startswith("You follow village now.")
        assert await ask(alice, domain, "post village Market on Sunday", message_id="a1") == "Published in village."
        assert text_of(await next_from(bob, domain)).startswith("Market on Sunday\nalice in village\n")
        assert await ask(bob, domain, "post village See you there", message_id="b1") == "Published in village."
        assert (await ask(bob, domain, "latest village 1")).startswith("See you there\nbob in village\n")

        await two.cut()
        await two.until_parted(alice, bob.bare)
        for number in (2, 3):
            await ask(alice, domain, f"post village Notice {number}", message_id=f"a{number}")
        await asyncio.wait_for(app.dispatcher.idle(), 60)
        assert [reading.retrying for reading in app.dispatcher.readings() if reading.kind == "chat"] == [1]

        await two.heal()
        await two.until_reached(bob, domain)
        say(bob, domain, "subscriptions")
        texts = await hear_until(bob, domain, "Notice 3")
        await asyncio.wait_for(app.dispatcher.idle(), 20)
        say(bob, domain, "unsubscribe village")
        texts += await hear_until(bob, domain, "You no longer follow village.")

    heard = [text.split("\n")[0] for text in texts if text.startswith("Notice")]
    assert heard == ["Notice 2", "Notice 3"]
