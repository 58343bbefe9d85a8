"""Sessions of browsers for tests."""

from dataclasses import dataclass

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope
from smartfeeds.features.accounts.session import form_token
from smartfeeds.features.accounts.sessions import BeginSession, new_session
from support.component import DOMAIN, bare
from support.web import Got, Web

SESSION_COOKIE = "smartfeeds-session"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser with a session. `cookie` is the header Cookie, `csrf` the form token."""

    web: Web
    text: str
    session_id: str

    @property
    def cookie(self) -> str:
        return f"{SESSION_COOKIE}={self.text}"

    @property
    def csrf(self) -> str:
        return form_token(self.text)

    async def get(self, path: str, accept: str = "", **headers: str) -> Got:
        """GET from a page of the service."""
        return await self.web.get(path, accept, Cookie=self.cookie, Sec_Fetch_Site="same-origin", **headers)

    async def change(self, method: str, path: str, data: bytes | None = None, **headers: str) -> Got:
        """A change by a script of our own page."""
        sent = {"Cookie": self.cookie, "Sec_Fetch_Site": "same-origin", "X_CSRF_Token": self.csrf, **headers}
        return await self.web.ask(method, path, data, **{name: value for name, value in sent.items() if value})

    async def post(self, path: str, data: str, **headers: str) -> Got:
        """A form of our own page, with its form token."""
        sent = {"Cookie": self.cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": FORM, **headers}
        return await self.web.ask("POST", path, f"csrf={self.csrf}&{data}".rstrip("&").encode(), "text/html", **sent)


async def sign_in(
    web: Web, user: str, scope: TokenScope = TokenScope.ADMIN, feed: str = ALL_FEEDS, token_id: str = ""
) -> SignedIn:
    """A browser that this user has signed in."""
    token = Token(token_id, b"", bare(user), scope, feed, "", 0)
    session, text = new_session(token, "Firefox")
    actor = parse_jid(bare(user))
    assert actor is not None
    await web.component.app.service.handle(BeginSession(actor, DOMAIN, session))
    return SignedIn(web, text, session.session_id)
