"""The HTTP session of every client: it reaches no private network, and bounds what a server may send.

It requests http and https only. The IP address of every connection is checked where the socket is made (`addresses`),
so each hop of a redirect is checked. It uses no cookies, no proxy and no .netrc. `headers` limits the fields of
responses. The two clients, `fetch_client` and `callback_client`, differ in this:

| | documents | callbacks: subscribers, hubs and clouds | why |
|---|---|---|---|
| result | a document, or FetchError | a value: a status, or a reason | deliveries act on each status |
| requests at a time | `limiter` has the bounds | the caller has them | deliveries have fair turns of their own |
| body | whole and decompressed, up to a limit | the first bytes, never compressed | only challenges are compared |
| time | for connecting, silence and the whole, without waits for turns | one limit for all | a document may be large |
| redirects | are followed | are answers, unless the caller follows them | a POST may have secrets |
| certificates | those of the system | and those of the operator | callbacks may be inside a company |
| connection without requests | stays for 15 s | for 3 s | a POST may not be repeated (RFC 9110 section 9.2.2) |
| IP addresses of names | are known for 60 s | for 1 s | the next attempt finds a subscriber that has moved |
"""

import re
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds import __version__
from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.text import one_line
from smartfeeds.net.addresses import RefusedAddressError, guarded_socket
from smartfeeds.net.headers import PARSER_LIMITS, parser_fault
from smartfeeds.net.limiter import retry_after_s
from smartfeeds.net.resolver import NameCache

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SHOWN_CHARACTERS: Final = 200
# yarl gets an address of these characters as encoded. Otherwise it would change escapes and remove segments of dots.
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


class GuardedSession:
    """The base of both clients, in a running event loop.

    `allowed` are the networks that may be reached although they are not public. `contact` is the address of this
    service for the header User-Agent. `resolver` looks names up. `clock` gives the Unix time in seconds. `tls` are the
    trusted certificates, True for those of the system.
    """

    encodings: ClassVar[str]  # the header Accept-Encoding
    names_s: ClassVar[float]  # how long the IP addresses of a name are remembered
    reused_s: ClassVar[float]  # how long a connection without requests stays open

    def __init__(
        self,
        allowed: Sequence[Network],
        contact: str,
        resolver: AbstractResolver | None,
        clock: Callable[[], float],
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        self._names = NameCache(resolver, kept_s=self.names_s)
        self._clock = clock
        agent = f"smartfeeds/{__version__}" + (f" (+{contact})" if contact else "")
        connector = aiohttp.TCPConnector(
            limit=0,  # the limiter or the delivery mechanism has the bounds
            ssl=tls,  # aiohttp has loaded the certificates of the system once, which takes 50 ms
            resolver=self._names,
            use_dns_cache=False,  # `NameCache` is one
            socket_factory=partial(guarded_socket, allowed=allowed),
            keepalive_timeout=self.reused_s,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # each client has its own
            headers={"User-Agent": agent, "Accept-Encoding": self.encodings},
            skip_auto_headers=("Content-Type",),  # aiohttp would say application/octet-stream of a body without a type
            auto_decompress=False,  # aiohttp has no limit for the decompressed size; `bodies` has one
            trust_env=False,  # neither proxies nor .netrc
            **PARSER_LIMITS,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    def _send(self, method: str, url: URL, **options: Any) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """The response to one request, and not to those that a redirect asks for."""
        return self._session.request(method, url, allow_redirects=False, **options)

    async def _look_up(self, host: str, port: int = 0) -> list[str]:
        """The IP addresses of a host; none if its name leads nowhere."""
        try:
            results = await self._names.resolve(host, port, socket.AF_UNSPEC)
        except OSError:
            return []
        return [result["host"] for result in results]

    def _requested_pause_s(self, response: aiohttp.ClientResponse) -> float | None:
        """The pause in seconds that a response asks for, None if it asks for none."""
        # An HTTP date has at most 33 characters; Python's parser of dates has no limit of its own.
        return retry_after_s(response.headers.get("Retry-After", "")[:64], self._clock())


class UnreadableUrlError(ValueError):
    """A text cannot be read as an address."""


def web_url(text: str) -> URL | None:
    """An address, its escapes as they are written, because its bytes must arrive unchanged (WS-013). None if it is not
    http or https. Raises UnreadableUrlError if it is no address."""
    url = _read_url(text)
    return url if url.scheme in ("http", "https") and url.host and url.port else None


def target_of(url: URL, location: str) -> URL:
    """The address that a response from `url` redirects to. Raises UnreadableUrlError if `location` is no address."""
    return _read_url(location, url)


def _read_url(text: str, base: URL | None = None) -> URL:
    """The address in a text of a stranger, as seen from `base`. Raises UnreadableUrlError, and nothing else.

    The rest of the service reads addresses by `urlsplit`. One that it reads otherwise, or not at all, is refused: with
    a port such as `+8080`, or with brackets around no IP address.
    """
    try:
        url = URL(text, encoded=_PRINTABLE.fullmatch(text) is not None)
        url = url if base is None else base.join(url)
        _host, _port = url.host, url.port  # yarl decodes them when they are read
        parts = urlsplit(str(url))
        other_host, _other_port = parts.hostname, parts.port
        if (other_host or "").lower() != (url.raw_host or "").lower():
            raise ValueError("two hosts")
    except Exception:  # noqa: BLE001 - `http://[]@` makes yarl raise IndexError, and others may raise others
        raise UnreadableUrlError("an address cannot be read") from None
    return url


def fault_of(error: Exception, refusal: str) -> str:
    """Returns the reason why a request got no response, for people: on one line and bounded. `refusal` is the reason if
    the IP address is not allowed."""
    if isinstance(error, aiohttp.ClientSSLError):
        return _tls_fault(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        return refusal if isinstance(cause, RefusedAddressError) else f"cannot be reached: {_text(cause)}"
    if isinstance(error, aiohttp.ClientResponseError):
        # Its text quotes what the server sent: whoever chooses an address would read what another service says.
        return parser_fault(error)
    return f"gave no usable answer: {_text(error)}"


def _tls_fault(error: aiohttp.ClientSSLError) -> str:
    """Returns the reason why there is no secure connection, without the texts of OpenSSL, which name its source
    files."""
    if not isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "cannot be reached over https; if the server has no https, use http://"
    message = getattr(error.certificate_error, "verify_message", "")
    return "has a certificate that is not valid" + (f": {one_line(message)[:_SHOWN_CHARACTERS]}" if message else "")


def _text(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return one_line(str(text))[:_SHOWN_CHARACTERS]
