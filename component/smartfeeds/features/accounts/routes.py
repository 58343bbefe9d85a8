"""The pages to sign in and out by their paths, and what recognises users."""

from collections.abc import Mapping

from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES
from smartfeeds.core.urls import ACCOUNT, LOGIN, LOGIN_BASIC, LOGIN_WAIT
from smartfeeds.features.accounts import pages
from smartfeeds.features.accounts.http import Sessions
from smartfeeds.features.accounts.pages import SignInPages
from smartfeeds.features.accounts.setup import SharedSignIns
from smartfeeds.features.accounts.tokens import BearerTokens
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.openapi_schemas import JID, LIFETIME, TEXT, Schema, exactly
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.parts import Parts
from smartfeeds.service.answers import Handle


def _handlers(tools: SiteTools) -> SignInPages:
    sign_ins = tools.parts.get(SharedSignIns)
    return SignInPages(tools.handle, tools.authenticator.read_token, tools.bodies, tools.domain, sign_ins)


def _sessions(handle: Handle, bodies: BodyReader, domain: str, parts: Parts) -> Sessions:
    return Sessions(handle, parts.get(BearerTokens).read, domain, bodies)


_SCHEMAS: Mapping[str, Schema] = {
    "TokenRequest": exactly(
        {
            "feed": {**TEXT, "description": f"the node that the token is valid for, or {ALL_FEEDS} for all"},
            "scope": {"enum": list(SCOPES)},
        },
        {
            "jid": {**JID, "description": "the bare JID whose rights the token has; default: yours"},
            "expires": {**LIFETIME, "description": "the time until it expires, such as 90d; default: never"},
            "label": {"type": "string", "maxLength": MAX_LABEL_BYTES},
        },
    ),
    "TokenCreated": exactly({"id": TEXT, "token": TEXT, "nodeExists": {"type": "boolean"}}),
}
HTTP = HttpSide(
    (
        Route("GET", LOGIN, "login", pages.SHOW, lambda h: h.show),
        Route("POST", LOGIN, "login", pages.SIGN_IN, lambda h: h.post),
        Route("GET", LOGIN_WAIT, "login", pages.WAIT, lambda h: h.wait),
        Route("POST", LOGIN_WAIT, "login", pages.COMPLETE, lambda h: h.complete),
        Route("GET", LOGIN_BASIC, "login", pages.ASK_PASSWORD, lambda _: pages.ask_password),
        Route("GET", ACCOUNT, "account", pages.ACCOUNT_PAGE, lambda h: h.account),
        Route("POST", ACCOUNT, "account", pages.SIGN_OUT, lambda h: h.sign_out),
    ),
    _handlers,
    _sessions,
    schemas=_SCHEMAS,
)
