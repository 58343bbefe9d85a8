"""Archives and attachments through real servers, as Libervia asks for them."""

from pathlib import Path

from support.client import Client, ClientFactory
from support.component import PS
from support.servers import TestServer
from support.service import running, write_config

XML = {
    "ev": f"{PS}#event",
    "mam": "urn:xmpp:mam:2",
    "rsm": "http://jabber.org/protocol/rsm",
    "fwd": "urn:xmpp:forward:0",
    "cl": "jabber:client",
}
ATOM = "http://www.w3.org/2005/Atom"
# What Libervia takes out of each result.
ITEM = "mam:result[@queryid='f27']/fwd:forwarded/cl:message/ev:event/ev:items[@node='notes']/ev:item/@id"


async def publish(client: Client, name: str, item_id: str, category: str) -> None:
    """Publishes an entry with a category."""
    entry = f"<entry xmlns='{ATOM}'><title>{item_id}</title><category term='{category}'/></entry>"
    item = f"<publish node='notes'><item id='{item_id}'>{entry}</item></publish>"
    assert (await client.set(name, f"<pubsub xmlns='{PS}'>{item}</pubsub>")).get("type") == "result"


async def test_archive_is_queried_page_by_page(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """XEP-0313, XEP-0442: the results come before the response, with what clients check in them."""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name)):
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await alice.set(name, f"<pubsub xmlns='{PS}'><create node='notes'/></pubsub>")
        for number in range(5):
            await publish(alice, name, f"n{number}", "odd" if number % 2 else "even")

        field = "<field var='category'><value>even</value></field>"
        form_type = "<field var='FORM_TYPE' type='hidden'><value>urn:xmpp:mam:2</value></field>"
        form = f"<x xmlns='jabber:x:data' type='submit'>{form_type}{field}</x>"
        seen: list[str] = []
        after, complete = "", False
        while not complete:
            page = f"<set xmlns='{XML['rsm']}'><max>2</max><after>{after}</after></set>"
            query = f"<query xmlns='{XML['mam']}' queryid='f27' node='notes'>{form}{page}</query>"
            (fin,) = await bob.set(name, query)
            results = [message for message in bob.messages if message.get("from") == name]
            bob.messages.clear()
            found = [str(item) for message in results for item in message.xpath(ITEM, namespaces=XML)]
            assert found and len(found) == len(results)
            seen += found
            after, complete = fin.findtext("rsm:set/rsm:last", "", XML), fin.get("complete") == "true"

    assert seen == ["n0", "n2", "n4"]


async def test_attachment_is_made_and_summarised(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """XEP-0470: the node with the query-like name, as Libervia writes it."""
    name = server.take_name()
    space, summary = "urn:xmpp:pubsub-attachments:1", "urn:xmpp:pubsub-attachments:summary:1"
    async with running(write_config(tmp_path, server, name)):
        alice, bob = await client(server, "alice"), await client(server, "bob")
        await alice.set(name, f"<pubsub xmlns='{PS}'><create node='notes'/></pubsub>")
        await publish(alice, name, "n0", "x")

        node = f"{space}/xmpp:{name}?;node=notes;item=n0"
        payload = f"<attachments xmlns='{space}'><noticed/><reactions><reaction>👍</reaction></reactions></attachments>"
        item = f"<publish node='{node}'><item id='{bob.bare}'>{payload}</item></publish>"
        attached = await bob.set(name, f"<pubsub xmlns='{PS}'>{item}</pubsub>")
        page = await alice.get(name, f"<pubsub xmlns='{PS}'><items node='{summary}/notes'/></pubsub>")

    assert attached.get("type") == "result"
    assert page.xpath("string(.//*[local-name()='noticed']/@count)") == "1"
    assert page.xpath("string(.//*[local-name()='reaction'])") == "👍"
