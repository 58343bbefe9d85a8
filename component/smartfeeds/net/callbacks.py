"""Requests to callbacks: addresses that subscribers choose, and hubs and clouds that call us back.

Every result is a value: a status, or the reason why there was none. The IP address of each connection is checked when
its socket is made (`addresses`). Only http and https are requested, without cookies, proxies or .netrc. A redirect is
an answer like any other unless the caller asks to follow it.
"""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds import __version__
from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S
from smartfeeds.core.text import one_line
from smartfeeds.net.addresses import Network, RefusedAddressError, guarded_socket, plain_address
from smartfeeds.net.headers import PARSER_LIMITS, headers_of, parser_fault
from smartfeeds.net.limiter import retry_after_s
from smartfeeds.net.names import NameCache

# Deliveries of one publish to a host share connections. After this time an idle one is closed, because its server may
# do that at the moment of the next POST, and HTTP does not allow to repeat a POST at once (RFC 9110 section 9.2.2).
REUSED_S: Final = 3.0
# The address of a host is remembered so long: the host of many callbacks is looked up once for all deliveries of a
# publish, and a subscriber that has moved is reached by the next attempt.
NAMES_S: Final = 1.0
TOTAL_S: Final = 10.0  # for connecting, sending and the first bytes of the answer (WS-035, WS-065, RC-044)
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
PERMANENT: Final = frozenset({301, 308})
# WebSub knows 307 and 308 only; a hub that answers 301 may mean no more than 307 (WS-106).
PERMANENT_FOR_HUBS: Final = frozenset({308})
_CHUNK_BYTES: Final = 1_024
_REASON_CHARACTERS: Final = 200
_REFUSED: Final = "its address is not public; the operator may allow it with "


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """The answer to a request.

    `status` is the HTTP status, 0 if there was none; then `reason` is a sentence for people. `body` has the first bytes
    of the body, as many as the caller wanted. `retry_after_s` is the pause in seconds that the answer asks for, None if
    it asks for none. `url` is the address after redirects, `permanent_url` the one after permanent redirects only.
    """

    status: int = 0
    body: bytes = b""
    reason: str = ""
    retry_after_s: float | None = None
    url: str = ""
    permanent_url: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def outcome(self) -> str:
        """The status or the reason, for people."""
        return f"answered {self.status}" if self.status else self.reason


class CallbackClient:
    """The client; an async context manager.

    `allowed` are networks that may be reached although they are not public, `allowed_by` names their setting. `contact`
    is the address of this service for the header User-Agent. `ca_file` has certificates that are trusted in addition to
    those of the system. `clock` gives the Unix time in seconds.
    """

    def __init__(
        self,
        allowed: Sequence[Network] = (),
        *,
        allowed_by: str = "webhooks.allowed_networks",
        contact: str = "",
        ca_file: Path | None = None,
        total_s: float = TOTAL_S,
        resolver: AbstractResolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._allowed = tuple(allowed)
        self._allowed_by = allowed_by
        self._agent = f"smartfeeds/{__version__}" + (f" (+{contact})" if contact else "")
        self._ca_file = ca_file
        self._total_s = total_s
        self._names = NameCache(resolver, kept_s=NAMES_S)
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "CallbackClient":
        # aiohttp has loaded the certificates of the system once, which takes 50 ms.
        tls: ssl.SSLContext | bool = True
        if self._ca_file is not None:
            tls = ssl.create_default_context()
            tls.load_verify_locations(self._ca_file)
        connector = aiohttp.TCPConnector(
            limit=0,  # the delivery mechanism has the bounds
            ssl=tls,
            resolver=self._names,
            use_dns_cache=False,  # `NameCache` is one
            socket_factory=partial(guarded_socket, allowed=self._allowed),
            keepalive_timeout=REUSED_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"User-Agent": self._agent, "Accept": "*/*", "Accept-Encoding": "identity"},
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
            trust_env=False,
            **PARSER_LIMITS,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def get(self, url: str, *, max_bytes: int = 1_024, redirects: int = 0) -> CallbackAnswer:
        """The answer to a GET. Its body is cut after `max_bytes`."""
        return await self._answer("GET", url, None, {}, max_bytes, redirects)

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        max_bytes: int = 0,
        redirects: int = 0,
        permanent: Collection[int] = PERMANENT,
    ) -> CallbackAnswer:
        """The answer to a POST. Up to `redirects` redirects are followed with the same method and body, those with a
        status in `permanent` for good. A redirect from https to http is a failure, because the body may have secrets.
        """
        return await self._answer("POST", url, body, headers, max_bytes, redirects, permanent)

    async def is_address_of(self, host: str, address: str) -> bool:
        """Whether a host is this network address, or a name that leads to it. It is not if the name leads nowhere."""
        known = plain_address(address)
        return known is not None and any(plain_address(text) == known for text in await self.addresses_of(host))

    async def addresses_of(self, host: str) -> list[str]:
        """The IP addresses of a host; none if its name leads nowhere."""
        if (own := plain_address(host.strip("[]"))) is not None:
            return [str(own)]
        try:
            async with asyncio.timeout(self._total_s):
                results = await self._names.resolve(host, 0, socket.AF_UNSPEC)
        except (OSError, TimeoutError):
            return []
        return [result["host"] for result in results]

    async def _answer(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        max_bytes: int,
        redirects: int,
        permanent: Collection[int] = PERMANENT,
    ) -> CallbackAnswer:
        if self._session is None:
            raise RuntimeError("the client is not open: use it in async with")
        target, permanent_url, is_permanent = url, url, True
        try:
            async with asyncio.timeout(self._total_s):
                for hop in range(redirects + 1):
                    request = partial(self._session.request, method, data=body, headers=headers, allow_redirects=False)
                    async with request(_address(target)) as response:
                        location = headers_of(response).get("Location", "")
                        if hop < redirects and response.status in _REDIRECTS and location:
                            is_permanent = is_permanent and response.status in permanent
                            following = str(response.url.join(URL(location, encoded=True)))
                            response.close()
                            if response.url.scheme == "https" and not following.startswith("https:"):
                                raise ValueError(f"it redirects from https to {following}")
                            target, permanent_url = following, following if is_permanent else permanent_url
                            continue
                        answer = await self._read(response, max_bytes)
                        return replace(answer, url=target, permanent_url=permanent_url)
        except TimeoutError:
            reason = f"did not answer within {self._total_s:g} seconds"
        except aiohttp.ClientConnectorError as error:
            refused = isinstance(error.os_error, RefusedAddressError)
            reason = f"{_REFUSED}{self._allowed_by}" if refused else f"cannot be reached: {_text(error.os_error)}"
        except aiohttp.ClientResponseError as error:
            reason = parser_fault(error)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = f"gave no usable answer: {_text(error)}"
        else:
            raise AssertionError("the last hop always returns")
        return CallbackAnswer(reason=reason, url=target, permanent_url=permanent_url)

    async def _read(self, response: aiohttp.ClientResponse, max_bytes: int) -> CallbackAnswer:
        """The status and the first bytes of the body. Unless the body ends there, the connection is closed, whatever
        else it would send."""
        body = b""
        while len(body) < max_bytes and (chunk := await response.content.read(min(max_bytes, _CHUNK_BYTES))):
            body += chunk
        pause_s = retry_after_s(response.headers.get("Retry-After", "")[:64], self._clock())
        with contextlib.suppress(aiohttp.ClientError):
            # Without a wait: a short answer has come together with its status, and its connection can be reused.
            response.content.read_nowait(_CHUNK_BYTES)
        if not response.content.at_eof():
            response.close()
        pause_s = None if pause_s is None else min(pause_s, MAX_REQUESTED_PAUSE_S)
        return CallbackAnswer(response.status, body[:max_bytes], "", pause_s)


def _address(text: str) -> URL:
    """The address, its escapes as they are written: the bytes must reach the subscriber unchanged (WS-013)."""
    url = URL(text, encoded=True)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the address is not http or https")
    return url


def _text(error: BaseException) -> str:
    """The text of an error on one line, and bounded: it may quote what the server sent."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return one_line(str(text))[:_REASON_CHARACTERS]
