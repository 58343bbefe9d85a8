"""The HTTP client for addresses that others named: bounded in time, size, redirects and number, and kept out of
private networks.

Only http and https. Every hop of a redirect is checked like the first address; the check of the IP address is made
where the socket is made (`addresses`). A body is bounded as it is after decompression (`bodies`). Nothing of a cookie,
a proxy or a .netrc is used.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Protocol
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds import __version__
from smartfeeds.core.text import one_line
from smartfeeds.errors import SmartfeedsError
from smartfeeds.net.addresses import Network, RefusedAddressError, guarded_socket
from smartfeeds.net.bodies import ENCODINGS, BodyError, body_of

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED: Final = 304
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_SHOWN: Final = 200


class FetchError(SmartfeedsError):
    """An address could not be fetched. `status` is the HTTP status where one came that is no success, else 0."""

    def __init__(self, url: str, reason: str, *, status: int = 0) -> None:
        super().__init__(f"{shown(url)} {reason}")
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What one fetch, and all of them together, may use. `allowed` are networks open to it though they are private."""

    connect_s: float = 10.0
    idle_s: float = 20.0
    total_s: float = 60.0
    max_bytes: int = 10_000_000
    redirects: int = 5
    at_once: int = 20
    at_once_per_host: int = 2
    allowed: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: `url` is where it came from after redirects, `content_type` is lower case without parameters, and
    `charset` is the parameter of that name.

    `etag` and `last_modified` are for the next conditional request; with `not_modified` there is no body.
    """

    url: str
    status: int
    body: bytes = b""
    content_type: str = ""
    etag: str = ""
    last_modified: str = ""
    charset: str = ""

    @property
    def not_modified(self) -> bool:
        """Whether what was asked for is still what the asker has."""
        return self.status == _NOT_MODIFIED


class HttpClient(Protocol):
    """The part of `Fetcher` that readers of documents use; tests have another one."""

    async def get(
        self, url: str, *, etag: str = "", last_modified: str = "", accept: str = "*/*", max_bytes: int | None = None
    ) -> Response:
        """As `Fetcher.get`."""


class Fetcher:
    """The HTTP client for addresses of strangers: an async context manager. `resolver` looks names up."""

    def __init__(self, limits: FetchLimits | None = None, *, resolver: AbstractResolver | None = None) -> None:
        self.limits = limits or FetchLimits()
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._all = asyncio.Semaphore(self.limits.at_once)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __aenter__(self) -> "Fetcher":
        await self.open()
        return self

    async def open(self) -> None:
        """Begins; `close` ends."""
        connector = aiohttp.TCPConnector(
            limit=0,
            resolver=self._resolver,
            socket_factory=partial(guarded_socket, allowed=self.limits.allowed),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect_s, sock_read=self.limits.idle_s),
            headers={"User-Agent": f"smartfeeds/{__version__}", "Accept-Encoding": ENCODINGS},
            auto_decompress=False,
            trust_env=False,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def get(
        self, url: str, *, etag: str = "", last_modified: str = "", accept: str = "*/*", max_bytes: int | None = None
    ) -> Response:
        """What is at an address, or that it has not changed since `etag` or `last_modified`. Follows redirects.

        `max_bytes` is for this answer, that of the limits where it is None. Raises FetchError.
        """
        headers = {"Accept": accept}
        if etag:
            headers["If-None-Match"] = etag
        if last_modified:
            headers["If-Modified-Since"] = last_modified
        return await self._within_limits("GET", url, headers, b"", max_bytes)

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str] | None = None, max_bytes: int | None = None
    ) -> Response:
        """Sends something to an address; the answer. A redirect is an error. Raises FetchError."""
        return await self._within_limits("POST", url, dict(headers or {}), body, max_bytes)

    async def _within_limits(
        self, method: str, url: str, headers: dict[str, str], body: bytes, max_bytes: int | None
    ) -> Response:
        """Waits for its turn, which the time limit does not count: first at the host, then among all."""
        host = (_address(url).host or "").lower()
        async with AsyncExitStack() as turns:
            if (turn := self._hosts.get(host)) is None:
                turn = self._hosts[host] = asyncio.Semaphore(self.limits.at_once_per_host)
            await turns.enter_async_context(turn)
            await turns.enter_async_context(self._all)
            limit = self.limits.max_bytes if max_bytes is None else max_bytes
            try:
                async with asyncio.timeout(self.limits.total_s):
                    return await self._follow(method, url, headers, body, limit)
            except TimeoutError:
                raise FetchError(url, f"did not answer within {self.limits.total_s:g} seconds") from None

    async def _follow(self, method: str, url: str, headers: dict[str, str], body: bytes, max_bytes: int) -> Response:
        target = _address(url)
        for _hop in range(self.limits.redirects + 1):
            answer = await self._once(method, target, headers, body, max_bytes)
            if isinstance(answer, Response):
                return answer
            if method != "GET":
                raise FetchError(url, "answered with a redirect, which is not followed")
            target = answer
        raise FetchError(url, f"redirects more than {self.limits.redirects} times")

    async def _once(
        self, method: str, url: URL, headers: dict[str, str], body: bytes, max_bytes: int
    ) -> Response | URL:
        """One request: its answer, or where it is sent on to."""
        if self._session is None:
            raise RuntimeError("the fetcher is not open: use it in async with")
        text = str(url)
        try:
            async with self._session.request(
                method, url, headers=headers, data=body or None, allow_redirects=False
            ) as response:
                if response.status in _REDIRECTS:
                    return _joined(text, url, response.headers.get("Location", ""))
                conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
                if not (response.ok and response.status < 300) and not (
                    response.status == _NOT_MODIFIED and conditional
                ):
                    response.close()
                    raise FetchError(text, f"answered {response.status}", status=response.status)
                return await _read(response, max_bytes)
        except TimeoutError:
            raise FetchError(text, "does not answer") from None
        except aiohttp.ClientConnectorError as error:
            raise FetchError(text, _why(error.os_error)) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(text, f"gave no usable answer: {_named(error)}") from None


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> Response:
    try:
        body = body_of(response.headers.get("Content-Encoding", ""), max_bytes)
        if response.status != _NOT_MODIFIED:
            if (response.content_length or 0) > max_bytes:
                raise BodyError(f"is larger than {max_bytes} bytes")
            async for chunk in response.content.iter_any():
                body.feed(chunk)
        whole = body.whole()
    except BodyError as error:
        response.close()
        raise FetchError(str(response.url), str(error)) from None
    return Response(
        charset=response.charset or "",
        url=str(response.url),
        status=response.status,
        body=whole,
        content_type=response.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        etag=response.headers.get("ETag", ""),
        last_modified=response.headers.get("Last-Modified", ""),
    )


def _address(text: str) -> URL:
    """The address to ask, its escapes as they were written. Raises FetchError for what is none of http or https."""
    try:
        url = URL(text, encoded=True) if _PRINTABLE.fullmatch(text) else URL(text)
        port = url.port
    except (ValueError, TypeError):
        raise FetchError(text, "is no address") from None
    if url.scheme not in ("http", "https") or not url.host or not port:
        raise FetchError(text, "is no address that starts with http:// or https://")
    return url


def _joined(text: str, url: URL, location: str) -> URL:
    if not location:
        raise FetchError(text, "redirects to nowhere")
    try:
        target = url.join(URL(location, encoded=_PRINTABLE.fullmatch(location) is not None))
    except (ValueError, TypeError):
        raise FetchError(text, "redirects to something that is no address") from None
    return _address(str(target))


def _why(error: OSError) -> str:
    if isinstance(error, RefusedAddressError):
        return f"was not asked: {error.args[0]}"
    return f"cannot be reached: {_named(error)}"


def _named(error: BaseException) -> str:
    """What a person can make of an error; never a page of it."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return one_line(str(text))[:_SHOWN]


def shown(url: str) -> str:
    """An address for people: without the name and password that may stand in it, on one line, not too long."""
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    except ValueError:
        pass
    return one_line(url)[:_SHOWN]
