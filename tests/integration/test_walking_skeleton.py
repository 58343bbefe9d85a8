"""One feed through all layers on real servers: create, publish, pull, subscribe, push, edit, retract."""

from pathlib import Path

from lxml import etree

from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config

PS = "http://jabber.org/protocol/pubsub"
NS = {"ps": PS, "ev": PS + "#event", "rsm": "http://jabber.org/protocol/rsm", "shim": "http://jabber.org/protocol/shim"}


def _entry(title: str) -> str:
    return f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{title}</title></entry>"


def _headers(message: etree._Element) -> dict[str, str]:
    return {h.get("name", ""): h.text or "" for h in message.iterfind(".//shim:header", NS)}


async def test_feed_from_create_to_retract_on_a_real_server(
    server: TestServer,
    client: ClientFactory,
    tmp_path: Path,
) -> None:
    """[SF-003] [SF-017] [SF-018] [SF-084] [SF-099]"""
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice = await client(server, "alice")
        bob = await client(server, "bob")

        async def send(who: Client, kind: str, body: str) -> etree._Element:
            return await who.iq(f"<iq type='{kind}' to='{domain}'><pubsub xmlns='{PS}'>{body}</pubsub></iq>")

        created = await send(alice, "set", "<create node='comments'/>")
        subscribed = await send(bob, "set", f"<subscribe node='comments?order=modified' jid='{bob.bare}'/>")
        for title in ("one", "two"):
            published = await send(
                alice, "set", f"<publish node='comments'><item id='{title}'>{_entry(title)}</item></publish>"
            )
            assert published.get("type") == "result", etree.tostring(published)
        first, second = await bob.next_message(), await bob.next_message()
        page = await send(
            bob, "get", f"<items node='comments?order=modified'/><set xmlns='{NS['rsm']}'><max>1</max><before/></set>"
        )
        await send(alice, "set", "<retract node='comments'><item id='one'/></retract>")
        gone = await bob.next_message()

        assert created.get("type") == subscribed.get("type") == "result"
        assert _headers(first)["TotalItems"] == "1" and "PreviousCursor" not in _headers(first)
        assert _headers(second)["PreviousCursor"] == _headers(first)["LastCursor"]
        assert page.findtext(".//rsm:last", namespaces=NS) == "cursor:" + _headers(second)["LastCursor"]
        assert _headers(gone)["PreviousCursor"] == _headers(second)["LastCursor"]
        assert b"deleted=" in etree.tostring(gone)
