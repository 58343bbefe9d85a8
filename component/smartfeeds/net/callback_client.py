"""The client of `callbacks`. It is one of the two clients of the guarded `session`."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver

from smartfeeds.core.ip_addresses import Network
from smartfeeds.net.callbacks import PERMANENT, CallbackAnswer
from smartfeeds.net.headers import headers_of
from smartfeeds.net.session import REDIRECTS, GuardedSession, fault_of, target_of, web_url

_CHUNK_BYTES: Final = 1_024  # read at a time; the answers that are compared, to challenges, are shorter


class HttpCallbacks(GuardedSession):
    """The client behind `CallbackClient`, in a running event loop."""

    encodings = "identity"
    # The host of many callbacks is looked up once for all deliveries of a publish, and a subscriber that has moved is
    # reached by the next attempt.
    names_s = 1.0
    # Deliveries of one publish to a host share connections. After this time an idle one is closed, because its server
    # may do that at the moment of the next POST, and HTTP does not allow to repeat a POST at once (RFC 9110 section
    # 9.2.2).
    reused_s = 3.0

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
        self._refusal = f"its address is not public; the operator may allow it with {allowed_by}"
        self._total_s = total_s
        super().__init__(allowed, contact, resolver, clock, tls)

    async def look_up(self, host: str) -> list[str]:
        """The IP addresses of a name; none if it leads nowhere."""
        try:
            async with asyncio.timeout(self._total_s):
                return await self._look_up(host)
        except TimeoutError:
            return []

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
                    address = web_url(target)
                    if address is None:
                        raise ValueError("the address is not http or https")
                    async with self._send(method, address, data=body, headers=headers) as response:
                        location = headers_of(response).get("Location", "")
                        if hop < redirects and response.status in REDIRECTS and location:
                            is_permanent = is_permanent and response.status in permanent
                            following = str(target_of(address, location))
                            response.close()  # not released, because the body of a redirect may have no end
                            if address.scheme == "https" and not following.startswith("https:"):
                                raise ValueError(f"it redirects from https to {following}")
                            target, permanent_url = following, following if is_permanent else permanent_url
                            continue
                        answer = await self._read(response, max_bytes)
                        return replace(answer, url=target, permanent_url=permanent_url)
        except TimeoutError:
            reason = f"did not answer within {self._total_s:g} seconds"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = fault_of(error, self._refusal)
        else:
            raise AssertionError("the last hop always returns")
        return CallbackAnswer(reason=reason, url=target, permanent_url=permanent_url)

    async def _read(self, response: aiohttp.ClientResponse, max_bytes: int) -> CallbackAnswer:
        """The status and the first bytes of the body. Unless the body ends there, the connection is closed, whatever
        else it would send."""
        body = b""
        while len(body) < max_bytes and (chunk := await response.content.read(min(max_bytes, _CHUNK_BYTES))):
            body += chunk
        with contextlib.suppress(aiohttp.ClientError):
            # Without a wait: a short answer has come together with its status, and its connection can be reused.
            response.content.read_nowait(_CHUNK_BYTES)
        if not response.content.at_eof():
            response.close()
        return CallbackAnswer(response.status, body[:max_bytes], "", self._requested_pause_s(response))
