"""The commands of docs/moving-in.md for a real Prosody: its mod_pubsub is replaced, and its users notice nothing."""

import asyncio
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from lxml import etree

from smartfeeds.local.prosody import Prosody
from support.client import Client, ClientFactory
from support.pulls import infoset
from support.servers import TestServer
from support.service import running, write_config
from support.shell import Run, shell_in

PAGE = (Path(__file__).parents[4] / "docs" / "moving-in.md").read_text()
DOMAIN = "pubsub.localhost"
PS = "http://jabber.org/protocol/pubsub"
OWNER = f"{PS}#owner"
ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><id>tag:x,{0}</id><title>{1}</title><updated>2026-01-01T00:00:00Z'
    '</updated><x:a xmlns:x="urn:x" x:b="1" xml:lang="de">ü &amp; <b/></x:a></entry>'
)


class ProsodyWithPubsub(Prosody):
    """A Prosody that serves the nodes itself, until `replaced` is set: then a component does."""

    replaced = False
    storage = "internal"

    def write_config(self) -> None:
        """Adds the pubsub component, or the component that replaces it."""
        super().write_config()
        module = "" if self.replaced else '"pubsub"'
        secret = 'component_secret = "secret"' if self.replaced else 'admins = { "alice@localhost" }'
        storage = f'storage = "{self.storage}"\n    sql = {{ driver = "SQLite3", database = "prosody.sqlite" }}'
        with self.config_file.open("a") as config:
            config.write(f'Component "{DOMAIN}" {module}\n    {secret}\n    {storage if not self.replaced else ""}\n')


@pytest.fixture(params=["internal", "sql"])
def prosody_with_pubsub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProsodyWithPubsub]:
    server = ProsodyWithPubsub(tmp_path / "prosody", {})
    server.storage = request.param
    server.start()
    yield server
    server.stop()


def commands(mark: str, source: Path) -> list[list[str]]:
    """The commands of the page with a mark, for the data of the test."""
    blocks = re.findall(rf"^ *```sh {mark}\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    text = "\n".join(blocks).replace("pubsub.example.org", DOMAIN)
    text = text.replace("/var/lib/prosody/prosody.sqlite", str(source)).replace("/var/lib/prosody", str(source))
    found = [shlex.split(line) for line in text.splitlines() if line.strip()]
    assert found and all(words[0] == "smartfeeds" for words in found)
    return [words[1:] for words in found]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    folder = tmp_path / "service"
    folder.mkdir()
    return shell_in(folder, monkeypatch)


async def ask(client: Client, kind: str, body: str, *, owner: bool = False) -> etree._Element:
    namespace = OWNER if owner else PS
    answer = await client.iq(f"<iq type='{kind}' to='{DOMAIN}'><pubsub xmlns='{namespace}'>{body}</pubsub></iq>")
    assert answer.get("type") == "result", etree.tostring(answer)
    return answer


async def publish(client: Client, item_id: str, title: str) -> None:
    item = f"<item id='{item_id}'>{ENTRY.format(item_id, title)}</item>"
    await ask(client, "set", f"<publish node='blog'>{item}</publish>")


async def items(client: Client) -> dict[str, object]:
    answer = await ask(client, "get", "<items node='blog'/>")
    return {item.get("id", ""): infoset(item[0]) for item in answer.iter(f"{{{PS}}}item")}


async def affiliations(client: Client) -> dict[str, str]:
    answer = await ask(client, "get", "<affiliations node='blog'/>", owner=True)
    return {one.get("jid", ""): one.get("affiliation", "") for one in answer.iter(f"{{{OWNER}}}affiliation")}


async def fill(alice: Client, bob: Client) -> None:
    """The life of a node: publishes, an edit, a retraction, people."""
    await ask(alice, "set", "<create node='blog'/>")
    for name in ("access_model", "open"), ("title", "Alice &amp; friends"), ("max_items", "20"):
        field = f"<field var='pubsub#{name[0]}'><value>{name[1]}</value></field>"
        kind = f"<field var='FORM_TYPE'><value>{PS}#node_config</value></field>"
        form = f"<x xmlns='jabber:x:data' type='submit'>{kind}{field}</x>"
        await ask(alice, "set", f"<configure node='blog'>{form}</configure>", owner=True)
    await ask(bob, "set", f"<subscribe node='blog' jid='{bob.bare}'/>")
    people = (
        f"<affiliation jid='{bob.bare}' affiliation='publisher'/><affiliation jid='m@x.example' affiliation='outcast'/>"
    )
    await ask(alice, "set", f"<affiliations node='blog'>{people}</affiliations>", owner=True)
    for item_id in ("one", "two", "three"):
        await publish(alice, item_id, item_id)
    await publish(bob, "by bob", "from Bob")
    await publish(alice, "one", "one, edited")
    await ask(alice, "set", "<retract node='blog' notify='true'><item id='two'/></retract>")


async def test_move_from_prosody(
    prosody_with_pubsub: ProsodyWithPubsub, client: ClientFactory, tmp_path: Path, run: Run
) -> None:
    """[IMP-001] [IMP-009] [IMP-060] [IMP-065] Ids, payloads, dates, order and affiliations are kept. The subscriber
    receives the next item without doing anything."""
    began_us = int(time.time()) * 1_000_000
    server = TestServer(prosody_with_pubsub)
    alice, bob = await client(server, "alice"), await client(server, "bob")
    await fill(alice, bob)
    before, people = await items(alice), await affiliations(alice)
    for one in (alice, bob):
        await one.logout()
    await asyncio.to_thread(prosody_with_pubsub.stop)

    data = prosody_with_pubsub.folder / "data"
    is_sql = prosody_with_pubsub.storage == "sql"
    source = data / "prosody.sqlite" if is_sql else data
    program = [*commands("run", source), *commands("sql" if is_sql else "host", source)]
    results: list[Result] = [await asyncio.to_thread(run, *words) for words in program]
    assert "1 node would be moved; nothing was written." in results[1].output
    assert "1 node moved." in results[2].output and "blog" in results[2].output
    assert all(re.search(r"blog +unchanged", result.output) for result in results[3:])

    prosody_with_pubsub.replaced = True
    await asyncio.to_thread(prosody_with_pubsub.start)
    path = write_config(
        tmp_path / "service", server, DOMAIN, store={"url": f"sqlite:///{tmp_path / 'service' / 'smartfeeds.db'}"}
    )
    async with running(path) as app:
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await publish(alice, "four", "after the move")

        event = (await bob.next_message()).find(f".//{{{PS}#event}}item")
        assert event is not None and event.get("id") == "four"
        after = await items(alice)
        assert {item_id: after[item_id] for item_id in before} == before
        assert list(after) == ["three", "by bob", "one", "four"]
        assert {jid: people[jid] for jid in people} == await affiliations(alice)
        assert people["bob@localhost"] == "publisher" and people["m@x.example"] == "outcast"
        await publish(bob, "five", "Bob may publish")
        event = (await bob.next_message()).find(f".//{{{PS}#event}}item")
        assert event is not None and event.get("id") == "five" and not bob.messages

        def stored(tx: object, _context: object) -> list[tuple[str, str, int]]:
            found = tx.node("blog")  # type: ignore[attr-defined]
            rows = tx.items(found.node_no, list(before))  # type: ignore[attr-defined]
            return sorted((row.id, row.publisher, row.created_us) for row in rows)

        rows = await app.service.read(stored)
    assert [row[:2] for row in rows] == [
        ("by bob", "bob@localhost"),
        ("one", "alice@localhost"),
        ("three", "alice@localhost"),
    ]
    assert all(began_us <= created_us <= time.time() * 1_000_000 for _, _, created_us in rows)
