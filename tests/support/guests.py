"""A browser that signs in, and the person who confirms it."""

import re
from dataclasses import dataclass, field
from urllib.parse import quote

from lxml import etree

from smartfeeds.features.accounts.session import form_token
from smartfeeds.features.accounts.sign_ins import SignIns
from support.browsing import FORM, SESSION_COOKIE
from support.chat import deliver
from support.component import Component, bare
from support.web import Got, Web

GUEST_COOKIE = "smartfeeds-guest"
SITE = "http://web.example.org"
HTTP_AUTH = "http://jabber.org/protocol/http-auth"
CODE = re.compile(r"<code>([2-9A-Z]{4}-[2-9A-Z]{4})</code>")


def sign_ins_of(component: Component) -> SignIns:
    """The sign-ins that a component knows."""
    return component.app.parts.get(SignIns)


@dataclass
class Guest:
    """A browser with its cookies."""

    web: Web
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    async def ask(self, method: str, path: str, data: str = "", accept: str = "text/html", **headers: str) -> Got:
        sent = {"Sec_Fetch_Site": "same-origin", **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={text}" for name, text in self.cookies.items())
        if method == "POST":
            sent.setdefault("Content_Type", FORM)
        body = data.encode() if method == "POST" else None
        got = await self.web.ask(method, path, body, accept, **{name: text for name, text in sent.items() if text})
        if cookie := got.header("Set-Cookie"):
            name, _, text = cookie.partition(";")[0].partition("=")
            self.cookies[name] = text
            if name == GUEST_COOKIE:
                self.csrf = form_token(text)  # as the next page shows it
        if match := re.search(r'name="csrf" value="([^"]+)"', got.text):
            self.csrf = match[1]
        return got

    async def get(self, path: str, accept: str = "text/html", **headers: str) -> Got:
        return await self.ask("GET", path, "", accept, **headers)

    async def post(self, path: str, data: str = "", **headers: str) -> Got:
        return await self.ask("POST", path, f"csrf={self.csrf}&{data}".rstrip("&"), **headers)

    @property
    def session(self) -> str:
        return self.cookies.get(SESSION_COOKIE, "")


async def code_of(guest: Guest, jid: str = "") -> str:
    """Begins a sign-in through XMPP and returns the code that the page shows."""
    got = await guest.post("/login", f"jid={quote(jid)}&next=/feeds/closed/")
    assert (got.status, got.header("Location")) == (303, "/login/wait")
    match = CODE.search((await guest.get("/login/wait")).text)
    assert match is not None
    return match[1]


async def state(guest: Guest) -> str:
    got = await guest.get("/login/wait", "application/json")
    return str(got.json["state"])


async def confirm_request(web: Web, user: str) -> etree._Element:
    """The request of XEP-0070 that a user received."""
    (message,) = [
        event for event in await web.component.events(bare(user)) if event.find(f"{{{HTTP_AUTH}}}confirm") is not None
    ]
    return message


async def answer(web: Web, user: str, code: str, kind: str = "normal") -> None:
    """Sends the answer of a client that knows XEP-0070, and waits until it was read."""
    confirm = f"<confirm xmlns='{HTTP_AUTH}' id='{code}' method='POST' url='{SITE}/login'/>"
    await deliver(web.component, user, "", confirm, type=kind)
    await web.component.get(user, "<items node='closed'/>")
