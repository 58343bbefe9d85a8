"""The complete feed is written no faster than it is read: what is in memory is a page."""

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.view import CREATED
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.complete import CompleteFeeds, is_complete
from smartfeeds.service.requests import FeedPage, Page, PullFeed, ResultSet

KEY_US = 1_767_225_600_000_000
PAGES = 40
NODE = Node(
    1, "notes", NodeKind.FEED, "a@b.example", KEY_US, NodeOptions(NodeKind.FEED), last_created_us=KEY_US + PAGES
)


class Reader:
    """Takes what is written a piece at a time, when it is told to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.may_take = asyncio.Semaphore(0)
        self.ended = False

    async def prepare(self, _request: web.BaseRequest) -> None:
        """The head of the answer."""

    def enable_chunked_encoding(self) -> None:
        """As aiohttp's."""

    async def write(self, data: bytes) -> None:
        """Returns when the reader has taken it."""
        await self.may_take.acquire()
        self.taken.append(data)

    async def write_eof(self) -> None:
        """The end of the answer."""
        self.ended = True


class Pulls:
    """A feed of PAGES pages with an item each, which counts what is read of it."""

    def __init__(self, fails_at: int = -1) -> None:
        self.asked: list[PullFeed] = []
        self._fails_at = fails_at

    async def __call__(self, request: PullFeed) -> FeedPage:
        number = len(self.asked)
        self.asked.append(request)
        if number == self._fails_at:
            raise FeedError(Condition.FORBIDDEN)
        payload = f'<entry xmlns="{ATOM_NS}"><id>urn:x:{number}</id></entry>'.encode()
        item = Item(number, f"i{number}", KEY_US + number, KEY_US + number, payload, "a@b.example")
        cursor = f"cursor:c{number}"
        page = Page("notes", (item,), ResultSet(PAGES, cursor, cursor, number), False)
        return FeedPage(NODE, CREATED, "v", True, page, newer=number < PAGES - 1)


def call() -> HttpCall:
    path = "/feeds/notes.atom?sync=true&max=all"
    path, _, query = path.partition("?")
    return HttpCall(make_mocked_request("GET", path), "127.0.0.1", "http://x", path, query, name="notes", suffix="atom")


async def begin(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> tuple[Reader, "asyncio.Task[Any]"]:
    reader = Reader()
    monkeypatch.setattr("smartfeeds.http.complete.web.StreamResponse", Mock(return_value=reader))
    complete = CompleteFeeds(pulls, Mock(), "feeds.example.org")
    return reader, asyncio.ensure_future(complete.get(call()))


async def turns() -> None:
    """Lets everything run that can; nothing here waits for a socket or a thread."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_page_is_read_when_the_one_before_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that stops reading stops the pulls: memory is bounded by a page, however long the feed is."""
    pulls = Pulls()
    reader, task = await begin(pulls, monkeypatch)
    for taken in range(PAGES):
        await turns()
        assert len(pulls.asked) == max(taken, 1), "the head, then a page each"
        reader.may_take.release()
    reader.may_take.release()
    reader.may_take.release()
    await task
    assert reader.ended and len(pulls.asked) == PAGES
    document = b"".join(reader.taken)
    assert document.endswith(b"</feed>\n") and document.count(b"<entry ") == PAGES


async def test_pages_are_asked_for_in_order_of_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items do not move in this order while the feed is read; each page begins behind the one before."""
    pulls = Pulls()
    reader, task = await begin(pulls, monkeypatch)
    for _ in range(PAGES + 2):
        reader.may_take.release()
    await task
    assert {request.view for request in pulls.asked} == {"order=created&sync=true"}
    after = [request.page.after for request in pulls.asked if request.page]
    assert after == [None, *(f"cursor:c{number}" for number in range(PAGES - 1))]


async def test_document_has_no_end_where_a_page_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The router breaks the connection, so that no reader takes the part for the whole document."""
    pulls = Pulls(fails_at=3)
    reader, task = await begin(pulls, monkeypatch)
    for _ in range(PAGES):
        reader.may_take.release()
    with pytest.raises(FeedError):
        await task
    assert not reader.ended and b"</feed>" not in b"".join(reader.taken)


@pytest.mark.parametrize(
    ("suffix", "query", "expected"),
    [
        ("atom", "sync=true&max=all", True),
        ("atom", "max=all", True),
        ("atom", "sync=true&max=10", False),
        ("rss", "sync=true&max=all", True),
        ("opml", "sync=true&max=all", True),
        ("jsonfeed", "sync=true&max=all", False),
        ("", "sync=true&max=all", False),
        ("atom", "q=max=all", False),
    ],
)
def test_only_documents_with_sync_data_are_whole_feeds(suffix: str, query: str, expected: bool) -> None:
    """[A-47] What else says max=all is refused where pages are made."""
    asked = HttpCall(make_mocked_request("GET", "/"), "", "http://x", "/feeds/notes", query, suffix=suffix)
    assert is_complete(asked) is expected
