"""The client of `callbacks`, over aiohttp."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from smartfeeds import __version__
from smartfeeds.core.backoff import MAX_REQUESTED_PAUSE_S
from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.text import one_line
from smartfeeds.net.addresses import RefusedAddressError, guarded_socket
from smartfeeds.net.callbacks import PERMANENT, CallbackAnswer
from smartfeeds.net.headers import PARSER_LIMITS, headers_of, parser_fault
from smartfeeds.net.limiter import retry_after_s
from smartfeeds.net.names import NameCache

# Deliveries of one publish to a host share connections. After this time an idle one is closed, because its server may
# do that at the moment of the next POST, and HTTP does not allow to repeat a POST at once (RFC 9110 section 9.2.2).
REUSED_S: Final = 3.0
# The address of a host is remembered so long: the host of many callbacks is looked up once for all deliveries of a
# publish, and a subscriber that has moved is reached by the next attempt.
NAMES_S: Final = 1.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES: Final = 1_024
_REASON_CHARACTERS: Final = 200
_REFUSED: Final = "its address is not public; the operator may allow it with "


class HttpCallbacks:
    """The client behind `CallbackClient`, in a running event loop."""

    def __init__(
        self,
        allowed: Sequence[Network],
        allowed_by: str,
        contact: str,
        tls: ssl.SSLContext | bool,
        total_s: float,
        resolver: AbstractResolver | None,
        clock: Callable[[], float],
    ) -> None:
        self._allowed_by = allowed_by
        self._total_s = total_s
        self._clock = clock
        self._names = NameCache(resolver, kept_s=NAMES_S)
        agent = f"smartfeeds/{__version__}" + (f" (+{contact})" if contact else "")
        connector = aiohttp.TCPConnector(
            limit=0,  # the delivery mechanism has the bounds
            ssl=tls,  # aiohttp has loaded the certificates of the system once, which takes 50 ms
            resolver=self._names,
            use_dns_cache=False,  # `NameCache` is one
            socket_factory=partial(guarded_socket, allowed=allowed),
            keepalive_timeout=REUSED_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"User-Agent": agent, "Accept": "*/*", "Accept-Encoding": "identity"},
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
            trust_env=False,
            **PARSER_LIMITS,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def look_up(self, host: str) -> list[str]:
        """The IP addresses of a name; none if it leads nowhere."""
        try:
            async with asyncio.timeout(self._total_s):
                results = await self._names.resolve(host, 0, socket.AF_UNSPEC)
        except (OSError, TimeoutError):
            return []
        return [result["host"] for result in results]

    async def answer(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        max_bytes: int,
        redirects: int,
        permanent: Collection[int] = PERMANENT,
    ) -> CallbackAnswer:
        """The answer to a request. Parameters are those of `CallbackClient.post`."""
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
