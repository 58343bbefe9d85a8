"""The pages to sign in, to wait for a confirmation through XMPP, and to end sessions. They work without a script.

A browser that is to sign in has a cookie of its own. The forms of these pages and the code of a sign-in belong to it,
so nobody can sign a stranger's browser in, nor use a code that another browser shows.
"""

from http import HTTPStatus
from urllib.parse import quote

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope, covers
from smartfeeds.core.urls import ACCOUNT, ADMIN, FEEDS, LOGIN, LOGIN_WAIT, NEXT, local_path, message_uri
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.accounts.chat import HOW_TO_CONFIRM, confirming_command
from smartfeeds.features.accounts.http import begin_session, cleared_cookie, guest_cookie, guest_of, new_guest
from smartfeeds.features.accounts.resources import TOKENS
from smartfeeds.features.accounts.session import form_token
from smartfeeds.features.accounts.sessions import EndSessions, ListSessions, SessionList
from smartfeeds.features.accounts.setup import SharedSignIns
from smartfeeds.features.accounts.sign_ins import LIFETIME_S, SignIn, SignInState
from smartfeeds.features.pages.frame import frame_of, page_reply
from smartfeeds.features.pages.look import look_of
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import MAX_TOKEN, Authenticate, HttpCall
from smartfeeds.http.http_errors import BASIC_CHALLENGE, HttpError
from smartfeeds.http.negotiation import HTML, JSON, choose
from smartfeeds.http.operations import Operation, page_for_people
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.texts import N_

GUEST_AGE_S = 3_600  # a sign-in page that was loaded earlier must be loaded again
EVERY_SESSION = "all"
_STATE_FORMS = (HTML, JSON)


ASK_PASSWORD = Operation("login", "Makes a browser ask for the password", {303: {}})
SHOW = page_for_people("signInPage", "The page to sign in with a token or through XMPP")
SIGN_IN = page_for_people("signIn", "Signs in with a token, or begins a sign-in through XMPP", form=True, guests=True)
WAIT = page_for_people("signInWait", "The state of a sign-in through XMPP")
COMPLETE = page_for_people("completeSignIn", "Completes a sign-in through XMPP", form=True, guests=True)
ACCOUNT_PAGE = page_for_people("account", "The sessions of the signed-in user")
SIGN_OUT = page_for_people("signOut", "Ends sessions of the signed-in user", form=True)


class SignInPages:
    """Handles the pages. `read_token` returns the bearer token with a text. `service` is the address of the service."""

    def __init__(
        self, handle: Handle, read_token: Authenticate, bodies: BodyReader, service: str, xmpp: SharedSignIns
    ) -> None:
        self._handle = handle
        self._read_token = read_token
        self._bodies = bodies
        self._service = service
        self._xmpp = xmpp

    async def show(self, call: HttpCall) -> Reply:
        """The page to sign in. Signed-in users are redirected."""
        path = _next_of(call)
        if call.session_id:
            return call.see_other(path)
        return self._page(call, path)

    async def post(self, call: HttpCall) -> Reply:
        """Signs in with a token, or begins a sign-in through XMPP. Raises FeedError."""
        fields = await self._bodies.fields(call)
        path = local_path(fields.get(NEXT, "")) or FEEDS
        if "token" in fields:
            return await self._by_token(call, fields["token"].strip(), path)
        return self._by_xmpp(call, fields.get("jid", "").strip(), path)

    async def wait(self, call: HttpCall) -> Reply:
        """The state of the sign-in: as a page, which loads itself again, or as JSON for the script of the page."""
        sign_in = self._xmpp.sign_ins.of_browser(guest_of(call))
        if choose(call.header("Accept"), _STATE_FORMS) is JSON:
            state = "ended" if sign_in is None else sign_in.state.value
            headers = {"Cache-Control": "no-store", "Vary": "Accept, Cookie"}
            return Reply(dump_json({"state": state}), JSON.media_type, headers=headers)
        if sign_in is None:
            return call.see_other(LOGIN)
        frame = frame_of(call)
        body = frame.page(
            "accounts/templates/sign_in_wait.html",
            sign_in=sign_in,
            waiting=sign_in.state is SignInState.WAITING,
            confirmed=sign_in.state is SignInState.CONFIRMED,
            chat=self._xmpp.chat,
            asks=self._xmpp.requests,
            service=self._service,
            message=message_uri(self._service, f"login {sign_in.shown_code}"),
            minutes=LIFETIME_S // 60,
            wait_path=LOGIN_WAIT,
            guest_csrf=_form_token(call),
        )
        return call.zipped(page_reply(body))

    async def complete(self, call: HttpCall) -> Reply:
        """Begins the session of a sign-in that was confirmed. Works once."""
        sign_in = self._xmpp.sign_ins.take(guest_of(call))
        if sign_in is None or sign_in.jid is None:
            raise HttpError(HTTPStatus.FORBIDDEN, "this sign-in was not confirmed, or it is too old: sign in again")
        token = Token("", b"", str(sign_in.jid), TokenScope.ADMIN, ALL_FEEDS, "", 0)
        return await self._enter(call, token, sign_in.path)

    async def account(self, call: HttpCall) -> Reply:
        """The sessions of the user."""
        if not call.session_id:
            return call.see_other(f"{LOGIN}?{NEXT}={quote(ACCOUNT, safe='/')}")
        answer = await ask(self._handle, ListSessions(call.actor, self._service, _token_id(call)), SessionList)
        body = frame_of(call).page(
            "accounts/templates/sessions.html",
            sessions=answer.sessions,
            own=call.session_id,
            administers=_has_all_rights(call),
        )
        return call.zipped(page_reply(body))

    async def sign_out(self, call: HttpCall) -> Reply:
        """Ends one session of the user, or all. Raises FeedError."""
        if not call.session_id:
            raise FeedError(Condition.NOT_AUTHORIZED, "you are not signed in")
        session_id = (await self._bodies.fields(call)).get("session", "") or call.session_id
        all_sessions = session_id == EVERY_SESSION
        request = EndSessions(call.actor, self._service, None if all_sessions else session_id, _token_id(call))
        await self._handle(request)
        if all_sessions or session_id == call.session_id:
            return call.see_other(FEEDS, cleared_cookie(call))
        return call.see_other(ACCOUNT)

    def _page(self, call: HttpCall, path: str, error: str = "", jid: str = "") -> Reply:
        # A page that is loaded again keeps the cookie, so that the forms in other tabs stay valid.
        guest = guest_of(call) or new_guest()
        frame = frame_of(call)
        body = frame.page(
            "accounts/templates/sign_in.html",
            next_path=path,
            error=frame.texts.message(error),
            jid=jid,
            chat=self._xmpp.chat,
            asks=self._xmpp.requests,
            guest_csrf=_form_token(call) or form_token(guest),
            tokens_path=f"{ADMIN}{TOKENS.name}/",
        )
        reply = call.zipped(page_reply(body, {"Set-Cookie": guest_cookie(call, guest, GUEST_AGE_S)}))
        # 401 needs a challenge, after which browsers ask for a password in a dialog of their own.
        return reply.with_status(HTTPStatus.FORBIDDEN) if error else reply

    async def _by_token(self, call: HttpCall, text: str, path: str) -> Reply:
        try:
            token = await self._read_token(text[:MAX_TOKEN])
        except FeedError as error:
            return self._page(call, path, error.text)
        return await self._enter(call, token, path)

    def _by_xmpp(self, call: HttpCall, text: str, path: str) -> Reply:
        if not self._xmpp.requests and not self._xmpp.chat:
            raise HttpError(
                HTTPStatus.FORBIDDEN, "sign-in through XMPP needs http.base_url or the bot; sign in with a token"
            )
        jid = parse_jid(text) if text else None
        if (text and (jid is None or not jid.local)) or (not text and not self._xmpp.chat):
            return self._page(call, path, N_("type your XMPP address, such as alice@example.org"), text)
        target = None if jid is None else jid.bare
        site = f"{look_of(call).name} ({call.site_url})"
        # Another host of the same domain may know the cookie that the browser has: it can set one for a site under a
        # path. A sign-in therefore belongs to a new cookie.
        guest = new_guest()
        try:
            sign_in = self._xmpp.sign_ins.begin(guest, call.address, site, target, path)
        except FeedError as error:
            return self._page(call, path, error.text, text)
        self._xmpp.sign_ins.drop(guest_of(call))
        if target is not None and self._xmpp.requests:
            self._xmpp.sign_ins.inform(sign_in, target)
            text = _request_text(call, sign_in, target, by_chat=self._xmpp.chat)
            self._xmpp.ask(sign_in, f"{call.site_url}{LOGIN}", text)
        return call.see_other(LOGIN_WAIT, guest_cookie(call, guest, GUEST_AGE_S))

    async def _enter(self, call: HttpCall, token: Token, path: str) -> Reply:
        """Begins a session, which replaces the session that this browser has."""
        if call.session_id:
            await self._handle(EndSessions(call.actor, self._service, call.session_id))
        return call.see_other(path, await begin_session(self._handle, self._service, call, token))


async def ask_password(call: HttpCall) -> Reply:
    """Makes the browser ask for the password, which it then sends for all paths (RFC 7617 2.2).

    A closed feed cannot ask for the password itself: that would reveal that the feed exists.
    """
    if call.token is None:
        raise HttpError(
            HTTPStatus.UNAUTHORIZED, "log in with a token as the password", WWW_Authenticate=BASIC_CHALLENGE
        )
    return call.see_other(FEEDS)


def _token_id(call: HttpCall) -> str:
    """The token whose sessions a session may see and end, "" for all sessions of the user: a token with few rights must
    not sign its owner out."""
    return "" if call.token is None or _has_all_rights(call) else call.token.token_id


def _has_all_rights(call: HttpCall) -> bool:
    return call.token is not None and covers(call.token, TokenScope.ADMIN, ALL_FEEDS)


def _request_text(call: HttpCall, sign_in: SignIn, target: Jid, *, by_chat: bool) -> str:
    """The words of a request to confirm, which name the site and who asks: anybody can type this address. They end with
    what to write in a client that has no button for such requests."""
    texts = frame_of(call).texts
    text = texts.say(
        "A browser at {address} asks to sign in to {site} as {jid}. The page shows the code {code}. Confirm only if "
        "this is your browser and it shows this code. If not, ignore this message: nobody is signed in then.",
        address=sign_in.address,
        site=sign_in.site,
        jid=target,
        code=sign_in.shown_code,
    )
    return f"{text}\n{texts.say(HOW_TO_CONFIRM, command=confirming_command(texts))}" if by_chat else text


def _next_of(call: HttpCall) -> str:
    """The page to return to: the parameter `next`, else the page of ours that led here."""
    if path := local_path(read_parameters(call.query, (NEXT,)).get(NEXT, "")):
        return path
    return FEEDS if not call.referer_path or call.referer_path.startswith(LOGIN) else call.referer_path


def _form_token(call: HttpCall) -> str:
    if call.form_token:
        return call.form_token
    guest = guest_of(call)
    return form_token(guest) if guest else ""
