"""A subscriber of a synchronised feed, written from the specifications alone: FeedSync 1.0.2, sections 3, 4.1 and 4.2,
and SSE 0.91, section 2.

It uses nothing of the project. It knows no cursors, pages or entity tags, only the address of one document.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from lxml import etree

FEEDSYNC = "http://feedsync.org/2007/feedsync"
SSE = "https://www.microsoft.com/schemas/rss/sse"
# Follows a link of a document. Returns its bytes.
Fetch = Callable[[str], Awaitable[bytes]]
Bound = str | datetime


class State(NamedTuple):
    """The values that winner picking compares (FeedSync 3, SSE 4.4), and whether the item is deleted."""

    updates: int
    when: str | datetime
    by: str
    deleted: bool


@dataclass(frozen=True)
class Document:
    """A document as the specifications describe it. A bound is None if sx:sharing does not have both."""

    items: dict[str, State]
    since: Bound | None
    until: Bound | None
    complete: str


def read(body: bytes) -> Document:
    """Reads Atom, RSS 2.0 or OPML with the sync data of either specification."""
    root = etree.fromstring(body)
    items = {}
    for sync in root.iter(f"{{{FEEDSYNC}}}sync", f"{{{SSE}}}sync"):
        # A conflict is a version inside the sync data of its item.
        if not any("sync" in etree.QName(parent).localname for parent in sync.iterancestors()):
            items[sync.get("id", "")] = _state(sync)
    sharing = next(root.iter(f"{{{FEEDSYNC}}}sharing", f"{{{SSE}}}sharing"), None)
    if sharing is None:
        return Document(items, None, None, "")
    namespace = etree.QName(sharing).namespace
    links = [link.get("link", "") for link in sharing if link.get("type") == "complete"]
    texts = sharing.get("since"), sharing.get("until")
    bounds: list[Bound | None] = [None, None]
    if all(texts):
        # FeedSync compares texts by code point, SSE has dates of RFC 822.
        bounds = [text if namespace == FEEDSYNC else parsedate_to_datetime(text or "") for text in texts]
    return Document(items, bounds[0], bounds[1], links[0] if links else "")


def _state(sync: etree._Element) -> State:
    deleted = sync.get("deleted") == "true"
    history = next(node for node in sync if etree.QName(node).localname == "history")
    when, by = history.get("when", ""), history.get("by", "")
    if etree.QName(sync).namespace == SSE:
        return State(int(sync.get("version", "")), parsedate_to_datetime(when), by, deleted)
    return State(int(sync.get("updates", "")), when, by, deleted)


@dataclass
class LiteralSubscriber:
    """An endpoint that publishes nothing. `until` is the cached value of section 4.1.

    4.1.1 step 4 says "the subscribed feed" after the complete feed was read in step 2. `caches_complete`: this
    subscriber takes it for the document that it read last, else for the one at `address`.
    """

    address: str
    fetch: Fetch
    caches_complete: bool = True
    until: Bound | None = None
    items: dict[str, State] = field(default_factory=dict)
    has_read: bool = False
    complete_reads: int = 0

    async def read(self) -> None:
        """Consumes the feed, for the first time or again."""
        if self.has_read:
            await self._again(read(await self.fetch(self.address)))
        else:
            await self._first(read(await self.fetch(self.address)))
        self.has_read = True

    async def _first(self, document: Document) -> None:
        """4.1.1 from step 2."""
        subscribed = document
        hops = 0
        while document.complete:
            hops += 1
            assert hops < 3, "the complete feed leads to another one"
            self.complete_reads += 1
            document = read(await self.fetch(document.complete))
        self._merge(document)
        self._cache(document if self.caches_complete else subscribed)

    async def _again(self, document: Document) -> None:
        """4.1.2 from step 2."""
        if document.since is not None and self.until is not None and _is_greater(document.since, self.until):
            # Nothing here was created or updated by this endpoint.
            self.items.clear()
            await self._first(document)
            return
        self._cache(document)
        self._merge(document)

    def _cache(self, document: Document) -> None:
        if document.until is not None:
            self.until = document.until

    def _merge(self, document: Document) -> None:
        """3.3 without conflicts, because one endpoint publishes."""
        for sync_id, state in document.items.items():
            known = self.items.get(sync_id)
            if known is None or _key(state) > _key(known):
                self.items[sync_id] = state


def _key(state: State) -> tuple[int, str | datetime, str]:
    return state.updates, state.when, state.by


def _is_greater(since: Bound, until: Bound) -> bool:
    # Dates of SSE and texts of FeedSync do not compare: the feed has changed its form.
    return type(since) is type(until) and since > until  # type: ignore[operator]
