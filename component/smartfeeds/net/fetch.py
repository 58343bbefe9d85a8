"""Requests for documents at addresses that strangers named: what they need, and what they give."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from multidict import CIMultiDict, CIMultiDictProxy

from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.text import one_line
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.errors import SmartfeedsError

Headers = CIMultiDictProxy[str]

_PERMANENT: Final = frozenset({301, 308})
_NOT_MODIFIED: Final = 304
_SHOWN_CHARACTERS: Final = 200
NO_HEADERS: Final[Headers] = CIMultiDictProxy(CIMultiDict())


@dataclass(frozen=True, slots=True)
class Hop:
    """One request of a fetch: its address, the status of the response (0 if there was none), and the IP address of the
    host, "" if the client did not look it up."""

    url: str
    status: int = 0
    address: str = ""


class FetchError(SmartfeedsError):
    """An address could not be fetched. `status` is the HTTP status if a response came that is no success, else 0.

    `headers` are those of that response, `hops` the requests up to the one that failed. `retry_after_s` is the pause in
    seconds that the server asked for, None if it asked for none. The client sends no request to that host and port
    before the pause ends. `is_refused`: the client may not reach the network of the address.
    """

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        status: int = 0,
        retry_after_s: float | None = None,
        headers: Headers = NO_HEADERS,
        is_refused: bool = False,
    ) -> None:
        super().__init__(f"{display_url(url)} {reason}")
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s
        self.headers = headers
        self.is_refused = is_refused
        self.hops: tuple[Hop, ...] = ()

    @property
    def is_refused_at_first(self) -> bool:
        """Whether the client may not reach the network of the address itself, and not only that of a redirect."""
        return self.is_refused and len(self.hops) == 1


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of one fetch (SRC-016). `allowed` are the networks that may be reached although they are not public.

    `max_bytes` is also the memory that a fetch takes, because a body is read as a whole.
    """

    connect_s: float = 10.0
    idle_s: float = 20.0
    total_s: float = 60.0
    max_bytes: int = 10_000_000
    redirects: int = 5
    allowed: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The response to a fetch.

    `url` is its address after redirects. `content_type` is lower case without parameters, `charset` is the parameter of
    that name. `validators` are for the next request. A response that is `not_modified` has no body. `headers` are all
    fields of the response, `hops` all requests, redirects included.
    """

    url: str
    status: int
    body: bytes = b""
    content_type: str = ""
    validators: Validators = NO_VALIDATORS
    charset: str = ""
    headers: Headers = field(default_factory=lambda: NO_HEADERS, compare=False)
    hops: tuple[Hop, ...] = field(default=(), compare=False)

    def __reduce__(self) -> tuple[type["FetchResponse"], tuple[object, ...]]:
        """Copies the response for the process that reads the document: all but the fields of the response and the
        requests."""
        return FetchResponse, (self.url, self.status, self.body, self.content_type, self.validators, self.charset)

    @property
    def permanent_url(self) -> str:
        """The address that permanent redirects name: 301 and 308, up to the first other one (RFC 9110 section 15.4).
        The first address if there was none."""
        statuses = [hop.status for hop in self.hops]
        permanent = next((place for place, status in enumerate(statuses) if status not in _PERMANENT), 0)
        return self.hops[permanent].url if self.hops else self.url

    @property
    def not_modified(self) -> bool:
        """Whether the document is still the one that the validators of the request belong to."""
        return self.status == _NOT_MODIFIED


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a request. `user` and `password` are for HTTP Basic, at the origin of the first address alone; ""
    sends none. `agent` replaces the User-Agent of the client."""

    user: str = ""
    password: str = ""
    agent: str = ""


ANYBODY: Final = Sender()


class HttpClient(Protocol):
    """The part of `Fetcher` that readers of documents use; tests have another one."""

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
        """As `Fetcher.get`."""


def display_url(url: str) -> str:
    """An address for people and the log: without the secrets that it may contain, on one line, and bounded."""
    return one_line(without_secrets(url))[:_SHOWN_CHARACTERS]
