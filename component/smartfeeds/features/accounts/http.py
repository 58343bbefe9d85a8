"""The sessions of browsers over HTTP: cookies, and the check of forms (RFC 6265; OWASP, Cross-Site Request Forgery).

A session stands for a token, so handlers see no difference between a browser and a program. The cookie of a session
counts only in requests of our own pages, and a change also needs the form token of the session. Bearer tokens need no
form token, because no page of another host can make a browser send them.
"""

import re
import secrets
from http import HTTPStatus

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.token import Token
from smartfeeds.errors import FeedError
from smartfeeds.features.accounts.session import MOST_S, form_token, is_form_token, parse_session
from smartfeeds.features.accounts.sessions import BeginSession, GetSession, RenewSession, SessionShown, new_session
from smartfeeds.http.authentication import FORM_TOKEN
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import NO_TOKEN, Authenticate, HttpCall, is_from_elsewhere, is_from_here, set_cookie
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.multipart import read_first_field
from smartfeeds.http.negotiation import MULTIPART, WEB_FORM
from smartfeeds.service.answers import Handle, ask

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TOKEN_HEADER = "X-CSRF-Token"  # noqa: S105 - the name of the header
_SESSION, _GUEST = "session", "guest"
_GUEST_TEXT = re.compile(r"[A-Za-z0-9_-]{43}")
_STALE = "this form is too old, or comes from another page: load the page again"


class Sessions:
    """Recognises users by their bearer tokens and by their sessions (`http.authentication.Authenticator`).
    `read_bearer` returns the bearer token with a text."""

    def __init__(self, handle: Handle, read_bearer: Authenticate, service: str, bodies: BodyReader) -> None:
        self._handle = handle
        self._read_bearer = read_bearer
        self._service = service
        self._bodies = bodies

    async def authenticate(self, credential: str) -> Token:
        """The token for the credential of a call: a bearer token or the cookie of a session. Raises FeedError."""
        if parse_session(credential) is None:
            return await self.read_token(credential)
        return (await self._shown(credential)).session.token

    async def read_token(self, text: str) -> Token:
        """The bearer token with this text. Raises FeedError."""
        return await self._read_bearer(text)

    async def identify(self, call: HttpCall) -> None:
        """Sets the actor of a call from its token or from the cookie of its session. A session that has ended is no
        session. Raises FeedError for an invalid token."""
        if call.credential:
            # The text of a session counts in its cookie only, because there its forms are checked.
            if parse_session(call.credential) is not None:
                raise HttpError(HTTPStatus.UNAUTHORIZED, NO_TOKEN)
            call.act_as(await self.read_token(call.credential))
        elif cookie := _cookie(call, _SESSION):
            await self._resume(call, cookie)

    async def check_form(self, call: HttpCall) -> None:
        """Raises HttpError(403) if a change does not come from a page of ours that was made for this browser.

        Called for requests with a session, and for forms of guests.
        """
        if call.method in SAFE_METHODS:
            return
        if not is_from_here(call):
            raise HttpError(HTTPStatus.FORBIDDEN, "a change by cookie must be sent from a page of this service")
        cookie = call.credential if call.session_id else guest_of(call)
        text = call.header(FORM_TOKEN_HEADER) or await self._field(call)
        if not cookie or not is_form_token(cookie, text):
            raise HttpError(HTTPStatus.FORBIDDEN, _STALE)

    async def _resume(self, call: HttpCall, cookie: str) -> None:
        if parse_session(cookie) is None or is_from_elsewhere(call):
            return
        try:
            answer = await self._shown(cookie)
        except FeedError:
            return
        call.act_as(answer.session.token)
        call.session_id, call.credential = answer.session.session_id, cookie
        call.form_token = form_token(cookie)
        call.admin = answer.admin
        if answer.due:
            await self._handle(RenewSession(ANONYMOUS, self._service, answer.session.session_id))

    async def _shown(self, cookie: str) -> SessionShown:
        return await ask(self._handle, GetSession(ANONYMOUS, self._service, cookie), SessionShown)

    async def _field(self, call: HttpCall) -> str:
        """The form token in the body of a form. In a form with files it is the first field, because the files are not
        read before it was checked."""
        if call.media_type == MULTIPART:
            name, text = await read_first_field(call, self._bodies.timeout_s)
            return text if name == FORM_TOKEN else ""
        if call.media_type != WEB_FORM:
            return ""
        return dict(await self._bodies.form(call)).get(FORM_TOKEN, "")


async def begin_session(handle: Handle, service: str, call: HttpCall, token: Token) -> str:
    """Begins a session with the rights of a token, and returns the header Set-Cookie. Raises FeedError.

    A session always gets a new id, so a cookie from before the sign-in is worth nothing.
    """
    session, cookie = new_session(token, browser_of(call.header("User-Agent")))
    await handle(BeginSession(token.actor, service, session))
    return set_cookie(call, _cookie_name(call, _SESSION), cookie, MOST_S)


def new_guest() -> str:
    """A cookie for a browser that is to sign in."""
    return secrets.token_urlsafe(32)


def guest_of(call: HttpCall) -> str:
    """The cookie of a browser that is to sign in, "" if it has none."""
    text = _cookie(call, _GUEST)
    return text if _GUEST_TEXT.fullmatch(text) else ""


def guest_cookie(call: HttpCall, text: str, age_s: int) -> str:
    """The header Set-Cookie for a browser that is to sign in."""
    return set_cookie(call, _cookie_name(call, _GUEST), text, age_s)


def cleared_cookie(call: HttpCall) -> str:
    """The header Set-Cookie that removes the cookie of a session."""
    return set_cookie(call, _cookie_name(call, _SESSION), "", 0)


def browser_of(user_agent: str) -> str:
    """The name of a browser and of its system for the list of sessions, from the header User-Agent."""
    browser = next((label for word, label in _BROWSERS if word in user_agent), "")
    system = next((label for word, label in _SYSTEMS if word in user_agent), "")
    return ", ".join(filter(None, (browser, system)))


# The first word that occurs decides: browsers name their ancestors, too.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def _cookie_name(call: HttpCall, name: str) -> str:
    if not call.origin.startswith("https:"):
        return f"smartfeeds-{name}"
    # Other hosts of the same domain cannot set a cookie with the prefix __Host-, which requires the path "/".
    return f"{'__Secure-' if call.base_path else '__Host-'}smartfeeds-{name}"


def _cookie(call: HttpCall, name: str) -> str:
    # Most requests have no cookie, and parsing the header takes longer than looking for it.
    if "Cookie" not in call.request.headers:
        return ""
    return call.cookies.get(_cookie_name(call, name), "")
