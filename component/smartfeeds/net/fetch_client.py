"""The HTTP client for addresses that strangers named: bounded in time, size and redirects, and kept out of private
networks.

It requests http and https only. The IP address of every connection is checked where the socket is made (`addresses`),
so each hop of a redirect is checked. A body is bounded by its size after decompression (`bodies`). `limiter` bounds how
many requests go out, and how often. The client uses no cookies, no proxy and no .netrc.
"""

import asyncio
import re
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds import __version__
from smartfeeds.core.text import one_line
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.net.addresses import RefusedAddressError, guarded_socket
from smartfeeds.net.bodies import ENCODINGS, Body, BodyError
from smartfeeds.net.fetch import FetchError, FetchLimits, Hop, Response, Sender
from smartfeeds.net.headers import PARSER_LIMITS, charset_of, echoed, header_fault, headers_of, parser_fault
from smartfeeds.net.limiter import HostLimiter, HostPausedError, retry_after_s
from smartfeeds.net.names import NameCache

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED: Final = 304
_SUCCESS: Final = frozenset(range(200, 300))
# Too Many Requests (RFC 6585 section 4) and Service Unavailable (RFC 9110 section 15.6.4).
_OVERLOADED: Final = frozenset({429, 503})
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_SHOWN_CHARACTERS: Final = 200
HELD_ANSWER_S: Final = 20.0  # after the time that a server may hold a request; then the connection is dead
_ALLOW: Final = "the operator may allow it with --allow-private or sources.allowed_networks"


@dataclass(frozen=True, slots=True)
class _Redirect:
    """A redirect and its target."""

    status: int
    target: URL


class _Answer(Protocol):
    @property
    def status(self) -> int: ...


T = TypeVar("T")
A = TypeVar("A", bound=_Answer)


@dataclass(frozen=True, slots=True)
class _Received(Generic[T]):
    """What the receiver of a stream has made of it."""

    status: int
    value: T


class Stream:
    """A response whose body is read in pieces. `media_type` is lower case without parameters."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = headers_of(response)
        self.media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives, without decoding. Raises FetchError if it ends early or stalls."""
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except aiohttp.ClientPayloadError:
            raise FetchError(str(self._response.url), "ended early") from None


class FetchClient:
    """The client behind `Fetcher`, in a running event loop."""

    def __init__(
        self,
        limits: FetchLimits,
        limiter: HostLimiter,
        resolver: AbstractResolver | None,
        clock: Callable[[], float],
        contact: str,
    ) -> None:
        self._limits = limits
        self._limiter = limiter
        self._clock = clock
        self._names = NameCache(resolver)
        agent = f"smartfeeds/{__version__}" + (f" (+{contact})" if contact else "")
        connector = aiohttp.TCPConnector(
            limit=0,  # the limiter has the bounds
            resolver=self._names,
            use_dns_cache=False,  # `NameCache` is one
            socket_factory=partial(guarded_socket, allowed=limits.allowed),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": agent, "Accept-Encoding": ENCODINGS},
            auto_decompress=False,
            trust_env=False,
            **PARSER_LIMITS,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def get(
        self, url: str, known: Validators, accept: str, max_bytes: int, sender: Sender, hold_s: float
    ) -> Response:
        """As `Fetcher.get`."""
        first = _address(url)

        async def request(target: URL) -> Response | _Redirect:
            headers = _headers(target, known, accept, sender, is_first_origin=target.origin() == first.origin())
            conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
            expected = _SUCCESS | {_NOT_MODIFIED} if conditional else _SUCCESS
            return await self._request(target, headers, expected, lambda got: _read(got, known, max_bytes), hold_s)

        response, hops = await self._follow(url, request, hold_s)
        return replace(response, hops=hops)

    async def stream(
        self,
        url: str,
        headers: Mapping[str, str],
        expected: AbstractSet[int],
        receive: Callable[[Stream], Awaitable[T]],
    ) -> T:
        """As `Fetcher.stream`."""

        async def read(got: aiohttp.ClientResponse) -> _Received[T]:
            return _Received(got.status, await receive(Stream(got)))

        received, _hops = await self._follow(url, lambda target: self._request(target, headers, expected, read))
        return received.value

    async def _follow(
        self, url: str, request: Callable[[URL], Awaitable[A | _Redirect]], hold_s: float = 0.0
    ) -> tuple[A, tuple[Hop, ...]]:
        """The first answer to `request` that is no redirect, and the requests up to it. Raises FetchError."""
        total_s = self._limits.total_s + hold_s
        loop, left_s, target = asyncio.get_running_loop(), total_s, _address(url)
        hops = [Hop(str(target))]
        try:
            for _hop in range(self._limits.redirects + 1):
                began_s = loop.time()
                async with asyncio.timeout(left_s):
                    address = await self._host_address(target)
                left_s -= loop.time() - began_s
                hops[-1] = Hop(str(target), 0, address)
                host, port = target.host or "", target.port or 0
                async with self._limiter.held(host, port) if hold_s else self._limiter.turn(host, port, address):
                    began_s = loop.time()
                    async with asyncio.timeout(left_s):
                        answer = await request(target)
                    left_s -= loop.time() - began_s
                hops[-1] = replace(hops[-1], status=answer.status)
                if not isinstance(answer, _Redirect):
                    return answer, tuple(hops)
                target = answer.target
                hops.append(Hop(str(target)))
            raise FetchError(url, f"redirects more than {self._limits.redirects} times")
        except HostPausedError as error:
            failure = FetchError(url, str(error), retry_after_s=error.left_s)
        except TimeoutError:
            failure = FetchError(url, f"did not answer within {total_s:g} seconds")
        except FetchError as error:
            failure = error
            hops[-1] = replace(hops[-1], status=hops[-1].status or error.status)
        failure.hops = tuple(hops)
        raise failure from None

    async def _host_address(self, url: URL) -> str:
        """The IP address of a host, "" if it is not wanted or not known: connecting reports why."""
        if not self._limiter.limits.at_once_per_address or not url.host:
            return ""
        try:
            results = await self._names.resolve(url.host, url.port or 0, socket.AF_UNSPEC)
        except OSError:
            return ""
        return results[0]["host"] if results else ""

    async def _request(
        self,
        url: URL,
        headers: Mapping[str, str],
        expected: AbstractSet[int],
        read: Callable[[aiohttp.ClientResponse], Awaitable[A]],
        hold_s: float = 0.0,
    ) -> A | _Redirect:
        """What `read` makes of the response to one request, or the address that it redirects to."""
        text = str(url)
        try:
            timeout = self._timeout(hold_s + HELD_ANSWER_S if hold_s else self._limits.idle_s)
            async with self._session.get(url, headers=headers, allow_redirects=False, timeout=timeout) as response:
                if fault := header_fault(response):
                    response.close()
                    raise FetchError(text, fault)
                headers_read = headers_of(response)
                if response.status in _REDIRECTS:
                    return _Redirect(response.status, _joined(text, url, headers_read.get("Location", "")))
                if response.status in expected:
                    return await read(response)
                response.close()
                pause_s = self._pause(response) if response.status in _OVERLOADED else None
                raise FetchError(
                    text,
                    f"answered {response.status}",
                    status=response.status,
                    retry_after_s=pause_s,
                    headers=headers_read,
                )
        except TimeoutError:
            raise FetchError(text, "does not answer") from None
        except aiohttp.ClientSSLError as error:
            raise FetchError(text, _tls_reason(error)) from None
        except aiohttp.ClientConnectorError as error:
            cause = error.os_error
            if isinstance(cause, RefusedAddressError):
                raise FetchError(text, f"was not requested: {cause}; {_ALLOW}") from None
            raise FetchError(text, f"cannot be reached: {_named(cause)}") from None
        except aiohttp.ClientResponseError as error:
            # Its text quotes what the server sent: whoever chooses an address would read what another service says.
            raise FetchError(text, parser_fault(error)) from None
        except aiohttp.ClientPayloadError:
            raise FetchError(text, "ended early: the rest of the document is missing") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(text, f"gave no usable answer: {_named(error)}") from None

    def _timeout(self, idle_s: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s, sock_read=idle_s)

    def _pause(self, response: aiohttp.ClientResponse) -> float | None:
        """Pauses requests to the server for as long as it asks; returns the seconds, None if it does not say."""
        pause_s = retry_after_s(response.headers.get("Retry-After", ""), self._clock())
        if pause_s is not None:
            self._limiter.pause(response.url.host or "", response.url.port or 0, pause_s)
        return pause_s


async def _read(response: aiohttp.ClientResponse, known: Validators, max_bytes: int) -> Response:
    not_modified = response.status == _NOT_MODIFIED
    try:
        body = Body(response.headers.get("Content-Encoding", ""), max_bytes)
        if not not_modified:
            if (response.content_length or 0) > max_bytes:
                raise BodyError(f"is larger than {max_bytes} bytes")
            async for chunk in response.content.iter_any():
                await body.feed(chunk)
        whole = body.whole()
    except BodyError as error:
        response.close()
        raise FetchError(str(response.url), str(error)) from None
    headers = headers_of(response)
    # The fields of a 304 replace those of the stored response (RFC 9111 section 4.3.4); a 200 replaces both.
    former = known if not_modified else NO_VALIDATORS
    return Response(
        url=str(response.url),
        status=response.status,
        body=whole,
        content_type=headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        validators=Validators(
            str(response.url),
            echoed(headers.get("ETag", former.etag)),
            echoed(headers.get("Last-Modified", former.last_modified)),
        ),
        charset=charset_of(response),
        headers=headers,
    )


def _headers(target: URL, known: Validators, accept: str, sender: Sender, *, is_first_origin: bool) -> dict[str, str]:
    """The fields of one request. Validators are for the address that gave them, a password for its origin."""
    fields = {"Accept": accept}
    if str(target) == known.url:
        conditions = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
        fields |= {name: value for name, value in conditions.items() if value}
    if sender.user and is_first_origin:
        fields["Authorization"] = "Basic " + b64encode(f"{sender.user}:{sender.password}".encode()).decode()
    if sender.agent:
        fields["User-Agent"] = sender.agent
    return fields


def _address(text: str) -> URL:
    """The address to request, its escapes as they were written. Raises FetchError if it is not http or https."""
    try:
        url = URL(text, encoded=True) if _PRINTABLE.fullmatch(text) else URL(text)
        host, port = url.host, url.port  # yarl decodes a host when it is read, and raises ValueError then
    except (ValueError, TypeError):
        raise FetchError(text, "cannot be read as an address; check its spelling") from None
    if url.scheme not in ("http", "https") or not host or not port:
        raise FetchError(text, "is not supported; use an address that starts with http:// or https://")
    return url


def _joined(text: str, url: URL, location: str) -> URL:
    if not location:
        raise FetchError(text, "redirects without naming an address; use the address that the document has now")
    try:
        target = url.join(URL(location, encoded=_PRINTABLE.fullmatch(location) is not None))
    except (ValueError, TypeError):
        raise FetchError(
            text, "redirects to a text that cannot be read as an address; use the address that the document has now"
        ) from None
    return _address(str(target))


def _tls_reason(error: aiohttp.ClientSSLError) -> str:
    """Why there is no secure connection, without the texts of OpenSSL, which name its source files."""
    if not isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "cannot be reached over https; if the server has no https, use http://"
    message = getattr(error.certificate_error, "verify_message", "")
    return "has a certificate that is not valid" + (f": {one_line(message)[:_SHOWN_CHARACTERS]}" if message else "")


def _named(error: BaseException) -> str:
    """The text of an error for people, on one line and bounded: it may quote what the server sent."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return one_line(str(text))[:_SHOWN_CHARACTERS]
