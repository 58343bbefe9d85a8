"""The client of `fetch`: documents at addresses that strangers named, bounded in time, size and redirects.

It is one of the two clients of the guarded `session`. A body is bounded by its size after decompression (`bodies`).
`limiter` bounds how many requests go out, and how often.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.net.bodies import ENCODINGS, Body, BodyError
from smartfeeds.net.fetch import FetchError, FetchLimits, FetchResponse, Hop, Sender
from smartfeeds.net.headers import charset_of, echoed, header_fault, headers_of
from smartfeeds.net.limiter import HostLimiter, HostPausedError
from smartfeeds.net.resolver import KEPT_S
from smartfeeds.net.session import REDIRECTS, GuardedSession, UnreadableUrlError, fault_of, target_of, web_url

_NOT_MODIFIED: Final = 304
_SUCCESS: Final = frozenset(range(200, 300))
# Too Many Requests (RFC 6585 section 4) and Service Unavailable (RFC 9110 section 15.6.4).
_OVERLOADED: Final = frozenset({429, 503})
HELD_ANSWER_S: Final = 20.0  # after the time that a server may hold a request; then the connection is dead
_REFUSAL: Final = (
    "was not requested: its address is not public; "
    "the operator may allow it with --allow-private or sources.allowed_networks"
)


T = TypeVar("T")


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


class FetchClient(GuardedSession):
    """The client behind `Fetcher`, in a running event loop."""

    encodings = ENCODINGS
    names_s = KEPT_S
    reused_s = 15.0  # for redirects inside a host, and the pictures of a page

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
        super().__init__(limits.allowed, contact, resolver, clock)

    async def get(
        self, url: str, known: Validators, accept: str, max_bytes: int, sender: Sender, hold_s: float
    ) -> FetchResponse:
        """As `Fetcher.get`."""
        first = _address(url)

        async def request(target: URL) -> tuple[int, FetchResponse | URL]:
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
        request = partial(self._request, headers=headers, expected=expected, read=lambda got: receive(Stream(got)))
        received, _hops = await self._follow(url, request)
        return received

    async def _follow(
        self, url: str, request: Callable[[URL], Awaitable[tuple[int, T | URL]]], hold_s: float = 0.0
    ) -> tuple[T, tuple[Hop, ...]]:
        """The first answer to `request` that is no redirect, and the requests up to it. Raises FetchError."""
        total_s = self._limits.total_s + hold_s
        # Look-ups, requests and bodies share one limit. Waits for a turn do not count, because the limiter causes them.
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
                        status, answer = await request(target)
                    left_s -= loop.time() - began_s
                hops[-1] = replace(hops[-1], status=status)
                if not isinstance(answer, URL):
                    return answer, tuple(hops)
                target = answer
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
        addresses = await self._look_up(url.host, url.port or 0)
        return addresses[0] if addresses else ""

    async def _request(
        self,
        url: URL,
        headers: Mapping[str, str],
        expected: AbstractSet[int],
        read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
        hold_s: float = 0.0,
    ) -> tuple[int, T | URL]:
        """The status of the response to one request, and what `read` makes of it, or the address of a redirect."""
        text = str(url)
        try:
            idle_s = hold_s + HELD_ANSWER_S if hold_s else self._limits.idle_s
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s, sock_read=idle_s)
            async with self._send("GET", url, headers=headers, timeout=timeout) as response:
                if fault := header_fault(response):
                    response.close()
                    raise FetchError(text, fault)
                headers_read = headers_of(response)
                if response.status in REDIRECTS:
                    return response.status, _joined(text, url, headers_read.get("Location", ""))
                if response.status in expected:
                    return response.status, await read(response)
                response.close()
                pause_s = self._pause(response) if response.status in _OVERLOADED else None
                raise FetchError(
                    text,
                    f"answered {response.status}",
                    status=response.status,
                    retry_after_s=pause_s,
                    headers=headers_read,
                )
        except TimeoutError:  # first, because the timeouts of aiohttp are ClientErrors too
            raise FetchError(text, "does not answer") from None
        except aiohttp.ClientPayloadError:
            raise FetchError(text, "ended early: the rest of the document is missing") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            fault = fault_of(error, _REFUSAL)
            raise FetchError(text, fault, is_refused=fault == _REFUSAL) from None

    def _pause(self, response: aiohttp.ClientResponse) -> float | None:
        """Pauses requests to the server for as long as it asks; returns the seconds, None if it does not say."""
        pause_s = self._requested_pause_s(response)
        if pause_s is not None:
            self._limiter.pause(response.url.host or "", response.url.port or 0, pause_s)
        return pause_s


async def _read(response: aiohttp.ClientResponse, known: Validators, max_bytes: int) -> FetchResponse:
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
    return FetchResponse(
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
    """The address to request. Raises FetchError if it is not http or https."""
    try:
        url = web_url(text)
    except UnreadableUrlError:
        raise FetchError(text, "cannot be read as an address; check its spelling") from None
    if url is None:
        raise FetchError(text, "is not supported; use an address that starts with http:// or https://")
    return url


def _joined(text: str, url: URL, location: str) -> URL:
    if not location:
        raise FetchError(text, "redirects without naming an address; use the address that the document has now")
    try:
        target = target_of(url, location)
    except UnreadableUrlError:
        raise FetchError(
            text, "redirects to a text that cannot be read as an address; use the address that the document has now"
        ) from None
    return _address(str(target))
