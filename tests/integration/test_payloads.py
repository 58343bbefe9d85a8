"""Payloads through real servers: published, pushed and pulled again, they are what was published."""

from pathlib import Path

from lxml import etree

from support.client import ClientFactory
from support.pulls import infoset
from support.servers import TestServer
from support.service import running, write_config

PS = "http://jabber.org/protocol/pubsub"
ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:x,1</id><title>%s</title>"
    "<updated>2026-01-01T00:00:00Z</updated>%s</entry>"
)
PAYLOADS = {
    "plain": ENTRY % ("plain", ""),
    "language": (ENTRY % ("Sprache", "<summary xml:lang='fr'>langue</summary>")).replace(
        "<entry", "<entry xml:lang='de'"
    ),
    "other namespaces": ENTRY % ("x", "<x:a xmlns:x='urn:x' x:b='1' c='&quot;2'><d xmlns=''/>&lt;<x:e/> tail</x:a>"),
    "markup": ENTRY
    % ("x", "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a <b>b</b> é 😀</div></content>"),
    "space": ENTRY % ("x", "<content xml:space='preserve'>  a\n b  </content>"),
}


async def test_payload_comes_back_as_published(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """[xep-map 144] Both servers put an xml:lang on every stanza; the payload has only what its publisher wrote."""
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)):
        alice = await client(server, "alice")

        async def ask(kind: str, body: str) -> etree._Element:
            iq = f"<iq type='{kind}' to='{domain}' xml:lang='de'><pubsub xmlns='{PS}'>{body}</pubsub></iq>"
            answer = await alice.iq(iq)
            assert answer.get("type") == "result", etree.tostring(answer)
            return answer

        await ask("set", "<create node='notes'/>")
        await ask("set", f"<subscribe node='notes' jid='{alice.bare}'/>")
        for name, payload in PAYLOADS.items():
            sent = infoset(etree.fromstring(payload))
            await ask("set", f"<publish node='notes'><item id='{name}'>{payload}</item></publish>")
            pushed = (await alice.next_message()).find(f".//{{{PS}#event}}item")
            pulled = (await ask("get", f"<items node='notes'><item id='{name}'/></items>")).find(f".//{{{PS}}}item")
            assert pushed is not None and pulled is not None
            assert [infoset(pushed[0]), infoset(pulled[0])] == [sent] * 2, name

            await ask("set", f"<publish node='notes'><item id='{name}'>{payload}</item></publish>")
            await alice.settle()
            assert not alice.messages, f"{name}: an identical publish was pushed"
