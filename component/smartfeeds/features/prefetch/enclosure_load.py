"""One load of an enclosure: request, response, file (PRE-015 to PRE-026).

The bytes go to a partial file as they come. An interrupted load is continued with a range if the server proves that the
file is still the same one.
"""

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from smartfeeds.core.feed_files import media_type_of
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import SmartfeedsError
from smartfeeds.features.polling.source import Reach
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch.downloads import (
    PAGE_BYTES,
    PARTIAL_CONTENT,
    RANGE_NOT_SATISFIABLE,
    Continuation,
    FileVersion,
    answered_type,
    continuation,
    has_provable_end,
    looks_like_page,
    most_bytes,
    range_headers,
    version_in,
)
from smartfeeds.features.prefetch.enclosures import verdict_on
from smartfeeds.features.prefetch.metrics import PREFETCH_BYTES
from smartfeeds.features.prefetch.queue import DueEnclosure, LoadEnd, LoadResult, begin_load, note_progress
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.formats.entry import EntryLink
from smartfeeds.net.fetch import FetchError, FetchLimits
from smartfeeds.net.limiter import HostLimits
from smartfeeds.service.feeds import FeedService

if TYPE_CHECKING:
    from smartfeeds.net.fetch_client import Stream

T = TypeVar("T")

PROGRESS_S: Final = 2
AT_ONCE: Final = 2  # loads in all, one a host (PRE-004)
LOAD_LIMITS: Final = HostLimits(at_once=AT_ONCE, at_once_per_host=1, per_s=1.0, burst=1)
# Podcasts are counted by chains of redirects (PRE-015). The window ends a load, and nothing else does while bytes come
# (PRE-026); event loops need a number.
DOWNLOAD_LIMITS: Final = FetchLimits(idle_s=60.0, total_s=30 * 86_400.0, redirects=10)
_EXPECTED: Final = frozenset({200, 203, PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE})
_NONE_LEFT: Final = frozenset({404, 410})
_TOO_MANY: Final = 429
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN: Final = FileVersion(None, "", "", "")
_IDENTITY: Final = frozenset({"", "identity"})


class StreamClient(Protocol):
    """The part of `net.clients.Fetcher` that loads use."""

    async def stream(
        self,
        url: str,
        headers: Mapping[str, str],
        expected: AbstractSet[int],
        receive: Callable[["Stream"], Awaitable[T]],
    ) -> T:
        """As `Fetcher.stream`."""


class LoadClients(NamedTuple):
    """The HTTP clients, in the order of `polling.source.Reach`."""

    public: StreamClient
    listed: StreamClient
    private: StreamClient


class PartFile(Protocol):
    """A partial file; see `enclosure_files.PartialFile`."""

    size_bytes: int

    async def write(self, data: bytes) -> bool:
        """Appends bytes. Returns whether they were handed to the disk."""

    async def clear(self) -> None:
        """Begins the file anew. It is empty on the disk when this returns."""


class MustEnd(Protocol):
    """Returns the reason why a load must end now, "" if it may continue."""

    def __call__(self, *, has_written: bool) -> Awaitable[str]:
        """`has_written`: bytes went to the disk since the last call."""


class Pace:
    """The rate of all loads together in bytes a second, 0 for any (PRE-009)."""

    def __init__(self, bytes_per_s: int, tools: SourceTools) -> None:
        self._bytes_per_s = bytes_per_s
        self._tools = tools
        self._free_us = 0

    async def spend(self, size_bytes: int) -> None:
        """Waits for as long as these bytes take at the rate."""
        if not self._bytes_per_s:
            return
        now_us = self._tools.now_us()
        self._free_us = max(self._free_us, now_us) + size_bytes * US_PER_S // self._bytes_per_s
        await self._tools.sleep((self._free_us - now_us) / US_PER_S)


class LoadError(SmartfeedsError):
    """A load has ended without a file. Without `keeps` its partial file is of no use."""

    def __init__(self, end: LoadEnd, reason: str, *, keeps: bool = False) -> None:
        super().__init__(reason)
        self.end = end
        self.keeps = keeps


class EnclosureLoad:
    """A load of `due` into `part`. `must_end` returns why the load must end now, or ""."""

    def __init__(
        self,
        service: FeedService,
        due: DueEnclosure,
        part: PartFile,
        pace: Pace,
        now_us: Callable[[], int],
        must_end: MustEnd,
    ) -> None:
        self._service = service
        self._due = due
        self._part = part
        self._pace = pace
        self._now_us = now_us
        self._must_end = must_end
        row = due.enclosure
        self._version = FileVersion(row.total_bytes, row.etag, row.modified, row.condition)
        self._announced = row.media_type.partition(";")[0].strip().lower() or media_type_of(row.url.partition("?")[0])
        self._media_type = ""
        self._loaded_bytes = 0
        self._told_us = now_us()

    async def run(self, clients: LoadClients) -> LoadResult:
        """Loads the file. Failures are results. Raises StoreError if the file cannot be written."""
        began_us = self._now_us()
        result = await self._attempt(clients)
        return replace(
            result,
            media_type=self._media_type,
            size_bytes=self._part.size_bytes,
            loaded_bytes=self._loaded_bytes,
            seconds=(self._now_us() - began_us) / US_PER_S,
        )

    async def _attempt(self, clients: LoadClients) -> LoadResult:
        try:
            if not await self._request(clients):
                await self._begin_anew()
                if not await self._request(clients):
                    raise LoadError(LoadEnd.FAILED, "its server sends a part that nobody asked for")
        except LoadError as error:
            if not error.keeps:
                await self._begin_anew()
            return LoadResult(error.end, str(error))
        except FetchError as error:
            return _failure(error)
        return LoadResult(LoadEnd.ARRIVED)

    async def _request(self, clients: LoadClients) -> bool:
        """Makes a request and stores its body. Returns False if the response does not continue the partial file."""
        headers = range_headers(self._part.size_bytes, self._version.condition)
        try:
            return await clients.public.stream(self._due.enclosure.url, headers, _EXPECTED, self._receive)
        except FetchError as error:
            # A redirect of a public server never leads into a private network, whatever its source may reach.
            if self._due.reach is Reach.PUBLIC or not error.is_refused_at_first:
                raise
        client = clients[self._due.reach.value]
        return await client.stream(self._due.enclosure.url, headers, _EXPECTED, self._receive)

    async def _begin_anew(self) -> None:
        self._version = _UNKNOWN
        await self._part.clear()

    async def _receive(self, stream: "Stream") -> bool:
        version = version_in(stream.headers, stream.status)
        step = continuation(stream.status, stream.headers, self._part.size_bytes, self._version, version)
        if step is Continuation.AGAIN:
            return False
        # The file is emptied on the disk before the row gets the new version, and written after that. So a process that
        # is killed, or a power loss, leaves no bytes of another version than that of the row. An empty file asks for no
        # range.
        if step is Continuation.WHOLE:
            await self._part.clear()
        self._check_head(stream, version)
        self._version = version
        await self._service.write(
            partial(begin_load, enclosure_no=self._due.enclosure.enclosure_no, version=version), turn="prefetch"
        )
        await self._store_body(stream)
        if version.total_bytes is not None and self._part.size_bytes != version.total_bytes:
            raise LoadError(LoadEnd.FAILED, "ended early", keeps=self._part.size_bytes < version.total_bytes)
        return True

    def _check_head(self, stream: "Stream", version: FileVersion) -> None:
        """Raises LoadError for a response whose body is not wanted."""
        if stream.headers.get("Content-Encoding", "").strip().lower() not in _IDENTITY:
            raise LoadError(LoadEnd.FAILED, "its server compresses it, which was not asked for")
        if not has_provable_end(stream.headers):
            raise LoadError(LoadEnd.GIVEN_UP, "its server does not say where it ends")
        self._media_type = answered_type(stream.media_type, self._announced)
        self._check_type()
        total_bytes = version.total_bytes or 0
        if total_bytes > self._due.max_bytes:
            raise LoadError(
                LoadEnd.GIVEN_UP, f"its server sends {total_bytes} bytes; the limit is {self._due.max_bytes}"
            )
        if total_bytes > self._due.room_bytes:
            raise LoadError(LoadEnd.CUT, f"{self._due.limit} is reached", keeps=True)

    def _check_type(self) -> None:
        """The rules are for the type of the response too; a page in place of a file is none (PRE-024)."""
        row, settings = self._due.enclosure, self._service.policy.find(PrefetchSettings)
        assert settings is not None  # without the section nothing loads
        link = EntryLink("enclosure", row.url, self._media_type, length=row.length_bytes)
        is_page = self._media_type in _PAGES and self._announced not in _PAGES
        if is_page or all(verdict_on(settings, source, link).refusal for source in self._due.sources):
            raise LoadError(LoadEnd.FAILED, f"its server sends {self._media_type or 'an unknown type'}")

    async def _store_body(self, stream: "Stream") -> None:
        row, part = self._due.enclosure, self._part
        most = most_bytes(self._due.max_bytes, self._version.total_bytes, row.length_bytes)
        beginning = None if part.size_bytes else b""
        async for piece in stream.pieces():
            if part.size_bytes + len(piece) > most:
                raise LoadError(LoadEnd.GIVEN_UP, f"is larger than {most} bytes")
            if part.size_bytes + len(piece) > self._due.room_bytes:
                raise LoadError(LoadEnd.CUT, f"{self._due.limit} is reached", keeps=True)
            if beginning is not None:
                beginning = self._checked_beginning(beginning + piece)
            self._loaded_bytes += len(piece)
            PREFETCH_BYTES.inc(len(piece))
            has_written = await part.write(piece)
            await self._pace.spend(len(piece))
            await self._tell_progress()
            if reason := await self._must_end(has_written=has_written):
                raise LoadError(LoadEnd.CUT, reason, keeps=True)

    async def _tell_progress(self) -> None:
        """Stores the progress every few seconds, for lists (PRE-036)."""
        now_us = self._now_us()
        if not 0 <= now_us - self._told_us < PROGRESS_S * US_PER_S:
            self._told_us = now_us
            no, size_bytes = self._due.enclosure.enclosure_no, self._part.size_bytes
            await self._service.write(partial(note_progress, enclosure_no=no, size_bytes=size_bytes), turn="prefetch")

    def _checked_beginning(self, data: bytes) -> bytes | None:
        """The first bytes of a file, None once there are enough. Raises LoadError if they are those of a web page."""
        if self._media_type not in _PAGES and looks_like_page(data):
            raise LoadError(LoadEnd.FAILED, "its server sends a web page")
        return data if len(data) < PAGE_BYTES else None


def _failure(error: FetchError) -> LoadResult:
    """The result of a request that failed (PRE-025). The partial file stays."""
    if error.status in _NONE_LEFT:
        return LoadResult(LoadEnd.GIVEN_UP, error.reason)
    if error.status == _TOO_MANY or error.retry_after_s is not None:
        return LoadResult(LoadEnd.BUSY, error.reason, pause_s=error.retry_after_s)
    return LoadResult(LoadEnd.FAILED, error.reason)
