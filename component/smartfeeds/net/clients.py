"""Clients of the web that are made at their first request.

aiohttp takes 11 MB and 0.2 s, and many services ask no web server for hours, or never. It would import aiodns to look
up hosts, which `resolver` does.
"""

import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from smartfeeds.core.ip_addresses import Network, plain_address
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.hidden import hidden
from smartfeeds.net.callbacks import PERMANENT, TOTAL_S, CallbackAnswer
from smartfeeds.net.fetch import ANYBODY, FetchLimits, FetchResponse, Sender
from smartfeeds.net.limiter import HostLimiter

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

    from smartfeeds.net.callback_client import HttpCallbacks
    from smartfeeds.net.fetch_client import FetchClient, Stream

T = TypeVar("T")


class Closable(Protocol):
    """A client with connections."""

    async def close(self) -> None:
        """Closes them."""


C = TypeVar("C", bound=Closable)


class LateClient(Generic[C]):
    """An async context manager. `make` returns the client, in a running event loop."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._made: C | None = None
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        made, self._made, self._is_open = self._made, None, False
        if made is not None:
            await made.close()

    @property
    def client(self) -> C:
        """The client, made at the first call. Raises RuntimeError outside of `async with`."""
        if not self._is_open:
            raise RuntimeError("the client is not open: use it in async with")
        if self._made is None:
            with hidden("aiodns"):  # the first client imports aiohttp
                self._made = self._make()
        return self._made


class Fetcher(LateClient["FetchClient"]):
    """The HTTP client for documents; an async context manager.

    Fetchers share a `limiter`, so that a host sees one client. `resolver` looks names up. `clock`
    gives the Unix time in seconds. `contact` is the address of this service for the header User-Agent.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        limiter: HostLimiter | None = None,
        resolver: "AbstractResolver | None" = None,
        clock: Callable[[], float] = time.time,
        contact: str = "",
    ) -> None:
        self.limits = limits or FetchLimits()
        limiter = HostLimiter() if limiter is None else limiter

        def make() -> "FetchClient":
            from smartfeeds.net.fetch_client import FetchClient

            return FetchClient(self.limits, limiter, resolver, clock, contact)

        super().__init__(make)

    async def get(
        self,
        url: str,
        *,
        known: Validators = NO_VALIDATORS,
        accept: str = "*/*",
        max_bytes: int | None = None,
        sender: Sender = ANYBODY,
        hold_s: float = 0.0,
    ) -> FetchResponse:
        """The document at an address, after redirects; `not_modified` if it is still the one that `known` belongs to.

        `max_bytes` bounds this body, in place of the limit for all. The time limit does not count waiting for a turn.
        `hold_s`: the server may hold the request for so long. Such a request does not count for the limits of requests
        at a time. Raises FetchError.
        """
        max_bytes = self.limits.max_bytes if max_bytes is None else max_bytes
        return await self.client.get(url, known, accept, max_bytes, sender, hold_s)

    async def stream(
        self,
        url: str,
        headers: Mapping[str, str],
        expected: AbstractSet[int],
        receive: Callable[["Stream"], Awaitable[T]],
    ) -> T:
        """Returns the result of `receive` for the response at an address, after redirects, while its turn lasts. The
        status of the response is one of `expected`. Raises FetchError, and what `receive` raises."""
        return await self.client.stream(url, headers, expected, receive)


class CallbackClient(LateClient["HttpCallbacks"]):
    """The HTTP client for callbacks; an async context manager.

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
        resolver: "AbstractResolver | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        tls: ssl.SSLContext | bool = True
        if ca_file is not None:
            # Now and not at the first request: a file that cannot be read must stop the start of the service.
            tls = ssl.create_default_context()
            tls.load_verify_locations(ca_file)

        def make() -> "HttpCallbacks":
            from smartfeeds.net.callback_client import HttpCallbacks

            return HttpCallbacks(tuple(allowed), allowed_by, contact, tls, total_s, resolver, clock)

        super().__init__(make)

    async def get(self, url: str, *, max_bytes: int = 1_024, redirects: int = 0) -> CallbackAnswer:
        """The answer to a GET. Its body is cut after `max_bytes`."""
        return await self.client.answer("GET", url, None, {}, max_bytes, redirects)

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
        return await self.client.answer("POST", url, body, headers, max_bytes, redirects, permanent)

    async def is_address_of(self, host: str, address: str) -> bool:
        """Whether a host is this network address, or a name that leads to it. It is not if the name leads nowhere."""
        known = plain_address(address)
        return known is not None and any(plain_address(text) == known for text in await self.addresses_of(host))

    async def addresses_of(self, host: str) -> list[str]:
        """The IP addresses of a host; none if its name leads nowhere."""
        if (own := plain_address(host.strip("[]"))) is not None:
            return [str(own)]
        return await self.client.look_up(host)
