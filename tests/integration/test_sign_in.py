"""Signing in to the web pages through a real Prosody or ejabberd, by ordinary clients (XEP-0070; chat)."""

import re
from pathlib import Path
from xml.sax.saxutils import quoteattr

import aiohttp
from yarl import URL

from support.client import Client, ClientFactory
from support.servers import TestServer
from support.service import running, write_config
from support.talk import ask, next_from, text_of

SITE = "http://web.example.org"
CONFIRM = "{http://jabber.org/protocol/http-auth}confirm"
HERE = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


class Visitor:
    """A browser that keeps its cookies, without script."""

    def __init__(self, session: aiohttp.ClientSession, origin: str) -> None:
        self._session = session
        self._origin = origin
        self.text = ""

    async def get(self, path: str) -> int:
        """Opens a page."""
        async with self._session.get(URL(self._origin + path), headers=HERE) as answer:
            self.text = await answer.text()
            return answer.status

    async def submit(self, path: str, **fields: str) -> int:
        """Sends the form of the page, and follows the redirect."""
        match = re.search(r'name="csrf" value="([^"]+)"', self.text)
        assert match is not None
        fields["csrf"] = match[1]
        async with self._session.post(URL(self._origin + path), data=fields, headers=HERE) as answer:
            self.text = await answer.text()
            return answer.status

    @property
    def code(self) -> str:
        """The code on the page."""
        match = re.search(r"<code>([2-9A-Z]{4}-[2-9A-Z]{4})</code>", self.text)
        assert match is not None
        return match[1]


def bare_of(client: Client) -> str:
    """The bare JID of a client."""
    return str(client.boundjid.bare)


async def test_people_sign_in_with_their_clients(server: TestServer, client: ClientFactory, tmp_path: Path) -> None:
    """Alice sends the code to the bot; Bob's client confirms the request, with what it received, as XEP-0070 says."""
    domain = server.take_name()
    config = write_config(tmp_path, server, domain, http={"listen": "127.0.0.1:0", "base_url": SITE})
    async with running(config) as app, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as first:
        assert app.site is not None
        origin = f"http://127.0.0.1:{app.site.listener.port}"
        alice, bob = await client(server, "alice"), await client(server, "bob")

        visitor = Visitor(first, origin)
        await visitor.get("/login")
        assert await visitor.submit("/login", jid="") == 200
        code = visitor.code
        question = await ask(alice, domain, f"login {code}")
        assert SITE in question and "127.0.0.1" in question
        assert "signed in as" in await ask(alice, domain, f"login {code} yes")
        await visitor.get("/login/wait")
        assert await visitor.submit("/login/wait") == 200
        assert bare_of(alice) in visitor.text

        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as second:
            visitor = Visitor(second, origin)
            await visitor.get("/login")
            assert await visitor.submit("/login", jid=bare_of(bob)) == 200
            request = await next_from(bob, domain)
            assert visitor.code in text_of(request) and SITE in text_of(request)
            confirm = request.find(CONFIRM)
            assert confirm is not None
            attributes = " ".join(f"{name}={quoteattr(str(value))}" for name, value in confirm.attrib.items())
            element = f"<confirm xmlns='http://jabber.org/protocol/http-auth' {attributes}/>"
            bob.send_raw(f"<message to='{domain}'><thread>x</thread>{element}</message>")
            # A response to a later request shows that the service has read the message.
            await ask(bob, domain, "help")
            await visitor.get("/login/wait")
            assert await visitor.submit("/login/wait") == 200
            assert bare_of(bob) in visitor.text
