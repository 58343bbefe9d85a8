"""Reads a request for handlers: the address of the client, also behind proxies, our origin, and the credentials.

Forwarded (RFC 7239) and X-Forwarded-* are used only on connections from a configured proxy. The router authenticates
the credentials (`http.authentication`).
"""

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, MultipartReader, web

from smartfeeds.core.ip_addresses import Network, is_within, plain_address
from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.token import Token, TokenScope, covers
from smartfeeds.core.urls import local_path
from smartfeeds.errors import Condition
from smartfeeds.http.http_errors import HttpError, InsufficientScopeError
from smartfeeds.http.negotiation import takes_gzip
from smartfeeds.http.replies import Reply
from smartfeeds.parts import Parts

# Returns the token for its text; raises FeedError for an invalid token.
Authenticate = Callable[[str], Awaitable[Token]]

MAX_TOKEN = 256  # characters; tokens of this service are shorter
NO_TOKEN = "credentials are a bearer token, or one as the password of Basic"  # noqa: S105 - a message
# Elements that are read of a header with forwarded addresses. The last ones are those of our proxies, and a client may
# send any number before them.
MAX_HOPS = 16
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.\-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_PAIR = re.compile(r'\s*(for|proto|host)=("?)([^";,]*)\2\s*', re.IGNORECASE)
_PORT = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::[0-9]+)?")


@dataclass(slots=True)
class HttpCall:
    """A request while it is answered.

    `origin` is scheme and host without a slash at the end, `base_path` the path of `http.base_url` ("" without one),
    and `path` the raw path behind it. `parts` has what features run. `proxied`: the address comes from a header of a
    proxy. `credential` is the token as sent, or the cookie of a session, "" for a request without either. `bearer`: it
    came as a bearer token, so pages of other hosts may read the response: only a script that knows the token can send
    it. Browsers add passwords and cookies by themselves, also to requests of other hosts. Responses to these must not
    be readable elsewhere, not even later from the cache of the browser. After authentication `actor` is the JID that
    the token acts as and `token` the token. `session_id` is the session of a browser that is signed in,
    "" for other clients; then `form_token` is what its forms must carry, and `admin` whether it may administer the
    service. `body` is set if the router has read the body. `name`, `item_id` and `suffix` are what the path names,
    "" if its route has no such variable. `subject` is the JID or the id of a token in the path of a resource of
    administration. `written`: the response was sent already, by `HeldPulls`. `multipart` reads the parts of a body of
    which the first was read already, to check the form token.
    """

    request: web.BaseRequest
    address: str
    origin: str
    path: str
    query: str
    proxied: bool = False
    credential: str = field(default="", repr=False)
    bearer: bool = False
    actor: Jid = ANONYMOUS
    token: Token | None = None
    session_id: str = ""
    form_token: str = ""
    admin: bool = False
    body: bytes | None = None
    name: str = ""
    item_id: str = ""
    suffix: str = ""
    subject: str = ""
    written: bool = False
    multipart: MultipartReader | None = None
    base_path: str = ""
    parts: Parts = field(default_factory=Parts)

    @property
    def site_url(self) -> str:
        """The address of this site without a slash at its end. A path of `core.urls` follows it."""
        return f"{self.origin}{self.base_path}"

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies of the request."""
        return self.request.cookies

    @property
    def method(self) -> str:
        """GET, HEAD and so on."""
        return self.request.method

    @property
    def anonymous(self) -> bool:
        """Whether the request has no credentials."""
        return self.actor is ANONYMOUS

    @property
    def asker(self) -> str:
        """The network address of an anonymous caller, "" for any other (`PullFeed.asker`)."""
        return self.address if self.anonymous else ""

    @property
    def media_type(self) -> str:
        """The media type of the body, without parameters and in lower case."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    @property
    def referer_path(self) -> str:
        """The path of the page of this site that led to the request, "" if another site or no page did."""
        referer = self.header("Referer")
        return local_path(referer.removeprefix(self.site_url)) if referer.startswith(f"{self.site_url}/") else ""

    def act_as(self, token: Token) -> None:
        """Gives the request the rights of a token."""
        self.token, self.actor = token, token.actor

    def require(self, scope: TokenScope, feed: str) -> None:
        """Raises InsufficientScopeError if the request has a token without this scope on a feed, or for all feeds if
        `feed` is ""."""
        token = self.token
        if token is None or covers(token, scope, feed):
            return
        if feed:
            raise InsufficientScopeError(
                Condition.FORBIDDEN, f"this takes a token with the scope {scope.text} on this feed"
            )
        # A token for one feed has its scope on that feed only, so its scope alone would mislead.
        raise InsufficientScopeError(
            Condition.FORBIDDEN, f"this takes a token with the scope {scope.text} for all feeds"
        )

    def see_other(self, path: str, cookie: str = "") -> Reply:
        """The response that leads a browser from a form to a page of this site (RFC 9110 15.4.4), and may set a
        cookie."""
        headers = {"Location": f"{self.base_path}{path}", "Cache-Control": "no-store"}
        return Reply(status=HTTPStatus.SEE_OTHER, headers=headers | ({"Set-Cookie": cookie} if cookie else {}))

    def moved_to(self, path: str) -> Reply:
        """The response that leads to the full address of the same resource, with the same query."""
        location = f"{self.base_path}{path}{f'?{self.query}' if self.query else ''}"
        headers = {"Location": location, "Access-Control-Allow-Origin": "*"}
        return Reply(status=HTTPStatus.PERMANENT_REDIRECT, headers=headers)

    def zipped(self, reply: Reply) -> Reply:
        """The response, compressed if the client accepts that."""
        return reply.zipped() if takes_gzip(self.header("Accept-Encoding")) else reply

    def header(self, name: str) -> str:
        """The value of a header, "" if it is missing. Several lines are joined to one list."""
        values = self.request.headers.getall(name, ())
        return values[0] if len(values) == 1 else ", ".join(values)


@dataclass(frozen=True, slots=True)
class CallReader:
    """Makes an HttpCall of a request. `base_url` is the configured address of this site, "" to use the origin of the
    request. A proxy passes the path on unchanged, so the path of `base_url` is removed here."""

    proxies: Sequence[Network] = ()
    base_url: str = ""
    parts: Parts = field(default_factory=Parts)

    def read(self, request: web.BaseRequest) -> HttpCall:
        """The call. Raises HttpError if the host or the credentials cannot be read."""
        peer = peer_of(request.transport.get_extra_info("peername") if request.transport else None)
        address, proto, host = peer, "http", ""
        proxied = bool(self.proxies) and self._trusted(peer)
        if proxied:
            address, proto, host = self._forwarded(request, peer)
        authorization = request.headers.get("Authorization", "")
        origin, base_path = split_base_url(self.base_url) if self.base_url else (self._origin(request, proto, host), "")
        path = request.rel_url.raw_path
        # Other paths are served as well: a health check of the machine itself knows nothing of the proxy.
        if base_path and f"{path}/".startswith(f"{base_path}/"):
            # People type the address without the slash at its end.
            path = path.removeprefix(base_path) or "/"
        return HttpCall(
            request,
            address,
            origin,
            path,
            request.rel_url.raw_query_string,
            proxied,
            credential_of(authorization) if authorization else "",
            authorization[:7].lower() == "bearer ",
            base_path=base_path,
            parts=self.parts,
        )

    def _origin(self, request: web.BaseRequest, proto: str, host: str) -> str:
        host = host or request.headers.get("Host", "")
        if not host and request.version < HttpVersion11 and request.transport is not None:
            host = _host_of(request.transport.get_extra_info("sockname"))
        if not _HOST.fullmatch(host):
            raise HttpError(HTTPStatus.BAD_REQUEST, "the Host header is missing, or names no host")
        return f"{proto}://{host.lower()}"

    def _trusted(self, text: str) -> bool:
        return is_within(text, self.proxies)

    def _forwarded(self, request: web.BaseRequest, peer: str) -> tuple[str, str, str]:
        """Address, scheme and host from the headers of the nearest proxies. Reads from our side, the first address that
        is not a proxy is that of the client; the client may have forged those before it.

        A proxy writes one kind of header and passes the other kind on as the client sent it. If both kinds are present
        and differ, the address is unknown."""
        origins = [
            self._client_origin(hops, peer) for hops in (_forwarded_hops(request), _x_forwarded_hops(request)) if hops
        ]
        address, proto, host = origins[-1] if origins else (peer, "http", "")
        return "unknown" if any(other[0] != address for other in origins) else address, proto, host

    def _client_origin(self, hops: list[dict[str, str]], peer: str) -> tuple[str, str, str]:
        address, proto, host = peer, "http", ""
        for hop in reversed(hops):
            address = hop.get("for", "unknown")
            proto = hop.get("proto", proto)
            host = hop.get("host", host)
            if not self._trusted(address):
                break
        return address, proto if proto in ("http", "https") else "http", host


def _forwarded_hops(request: web.BaseRequest) -> list[dict[str, str]]:
    """The elements that proxies added to Forwarded (RFC 7239), the one next to the client first."""
    elements = ",".join(request.headers.getall("Forwarded", ())).split(",")[-MAX_HOPS:]
    return _plain(
        [{m[1].lower(): m[3] for part in hop.split(";") if (m := _PAIR.fullmatch(part))} for hop in elements if hop]
    )


def _x_forwarded_hops(request: web.BaseRequest) -> list[dict[str, str]]:
    """The addresses that proxies added to X-Forwarded-For; scheme and host come from the nearest proxy."""
    addresses = ",".join(request.headers.getall("X-Forwarded-For", ())).split(",")[-MAX_HOPS:]
    hops = [{"for": address.strip()} for address in addresses if address.strip()]
    for name, header in (("proto", "X-Forwarded-Proto"), ("host", "X-Forwarded-Host")):
        if value := ",".join(request.headers.getall(header, ())).rpartition(",")[2].strip():
            hops = hops or [{}]
            hops[-1][name] = value
    return _plain(hops)


def _plain(hops: list[dict[str, str]]) -> list[dict[str, str]]:
    for hop in hops:
        if "for" in hop:
            match = _PORT.fullmatch(hop["for"])
            plain = plain_address(hop["for"]) or plain_address((match[1] or match[2] or "") if match else "")
            hop["for"] = str(plain) if plain is not None else "unknown"
        if "proto" in hop:
            hop["proto"] = hop["proto"].lower()
    return hops


@lru_cache(4)  # a service has one such setting
def split_base_url(base_url: str) -> tuple[str, str]:
    """Returns the origin and the path of `http.base_url`, the path without a slash at its end."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}".lower(), parts.path.rstrip("/")


def is_from_elsewhere(call: HttpCall) -> bool:
    """Whether a page of another origin sends a request, so that its cookies do not count. A link to a page of ours is
    no such request: the other page cannot read the response (Fetch Metadata; RFC 6265 section 8.2)."""
    site = call.header("Sec-Fetch-Site")
    if site:
        follows_link = call.method in ("GET", "HEAD") and call.header("Sec-Fetch-Mode") == "navigate"
        return site not in ("same-origin", "none") and not follows_link
    return call.header("Origin").lower() not in ("", call.origin)


def is_from_here(call: HttpCall) -> bool:
    """Whether a request comes from a page of this service, as a browser states (Fetch standard; Fetch Metadata), or
    from a program, which sends neither header and has its credentials from nobody's browser."""
    site = call.header("Sec-Fetch-Site")
    if not site and not call.header("Origin"):
        return bool(call.header("Authorization")) or not call.header("Cookie")
    return site == "same-origin" if site else call.header("Origin").lower() == call.origin


def peer_of(peername: object) -> str:
    """The address of the peer of a connection, "local" for a Unix socket."""
    if isinstance(peername, tuple) and peername:
        return _plain_address(str(peername[0]))
    return "local"


@lru_cache(1_024)  # the address of a client comes back with each connection, that of a proxy with all of them
def _plain_address(text: str) -> str:
    return str(plain_address(text) or text)


def set_cookie(call: HttpCall, name: str, text: str, age_s: int) -> str:
    """The header Set-Cookie (RFC 6265bis 4.1). No script can read the cookie, and browsers send it to us only."""
    secure = "; Secure" if call.origin.startswith("https:") else ""
    path = call.base_path or "/"
    return f"{name}={text}; Path={path}; Max-Age={age_s}; HttpOnly; SameSite=Lax{secure}"


def _host_of(sockname: object) -> str:
    """Our own address as a host, for HTTP/1.0, which has no Host header."""
    if not isinstance(sockname, tuple) or len(sockname) < 2:
        return "localhost"
    address, port = str(sockname[0]), int(sockname[1])
    return f"[{address.partition('%')[0]}]:{port}" if ":" in address else f"{address}:{port}"


def credential_of(header: str) -> str:
    """The token in an Authorization header: a bearer token, or the password of Basic, because many feed readers support
    only Basic. Raises HttpError for any other scheme."""
    if not header:
        return ""
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            value = ""
    elif scheme.lower() != "bearer":
        value = ""
    if not value or len(value) > MAX_TOKEN:
        raise HttpError(HTTPStatus.UNAUTHORIZED, NO_TOKEN)
    return value
