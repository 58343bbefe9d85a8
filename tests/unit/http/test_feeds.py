"""Updates for held pulls and event streams, and the pages that are made in a thread."""

import threading
from collections.abc import Hashable

import pytest

from smartfeeds.app.site import feed_forms
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.token import ALL_FEEDS, Token, TokenScope
from smartfeeds.core.view import SMART
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.representation import Representation
from smartfeeds.http.encode import Encoder, FeedLinks, PageAddress
from smartfeeds.http.feeds import FeedRequest, Feeds, FeedWriting
from smartfeeds.http.negotiation import HTML, JSON, RSS
from smartfeeds.http.page_writer import NoPages
from smartfeeds.http.queries import FeedQuery
from smartfeeds.service.requests import FeedPage, Page, PullFeed, ResultSet

KEY_US = 1_767_225_600_000_000
ALICE = Jid("alice", "example.org")
NODE = Node(1, "notes", NodeKind.FEED, str(ALICE), KEY_US, NodeOptions(NodeKind.FEED))
ITEM = Item(1, "a", KEY_US, KEY_US, f'<entry xmlns="{ATOM_NS}"><id>urn:x:a</id></entry>'.encode(), str(ALICE))


async def test_credential_that_ends_while_the_page_is_read_gets_no_page() -> None:
    """[SF-110] Somebody may end a session and publish before the page is read: the check comes after the page."""
    valid = True

    async def pull(_request: PullFeed) -> FeedPage:
        nonlocal valid
        valid = False
        cursor = "cursor:1_0_00000000"
        return FeedPage(NODE, SMART, "v", False, Page("notes", (ITEM,), ResultSet(1, cursor, cursor, 0), False))

    async def authenticate(_credential: str) -> Token:
        if not valid:
            raise FeedError(Condition.NOT_AUTHORIZED, "the session has ended")
        return Token("", b"", str(ALICE), TokenScope.READ, ALL_FEEDS, "", KEY_US)

    feeds = Feeds(
        pull,
        authenticate,
        "feeds.example.org",
        FeedWriting(Encoder(), feed_forms(), {}, NoPages(), FeedLinks()),
        poll_default_s=55,
        poll_max_s=120,
    )
    place = PageAddress("https://feeds.example.org", "notes", FeedQuery())
    request = FeedRequest(place, JSON, ALICE, document=False, reader=False, zipped=False, credential="sfs_1")

    update = await feeds.update(request)

    assert update is not None
    assert (update.reply.status, update.cursor) == (401, "")
    assert b"urn:x:a" not in update.reply.body


@pytest.mark.parametrize("form", [HTML, RSS])
async def test_documents_and_pages_are_made_in_a_thread(form: Representation) -> None:
    """The HTML of hostile entries takes a second to read. The service answers other requests meanwhile."""
    threads: list[threading.Thread] = []

    async def pull(_request: PullFeed) -> FeedPage:
        cursor = "cursor:1_0_00000000"
        return FeedPage(NODE, SMART, "v", True, Page("notes", (ITEM,), ResultSet(1, cursor, cursor, 0), False))

    async def authenticate(_credential: str) -> Token:
        raise AssertionError

    class Pages(NoPages):
        async def beside(self, _actor: Jid, _answer: FeedPage, _place: PageAddress) -> None:
            """Nothing."""

        def feed(self, _frame: Hashable, answer: FeedPage, place: PageAddress, _beside: object) -> bytes:
            return write(answer, place)

    def write(_page: FeedPage, _place: PageAddress) -> bytes:
        threads.append(threading.current_thread())
        return b"page"

    feeds = Feeds(
        pull,
        authenticate,
        "feeds.example.org",
        FeedWriting(Encoder(), feed_forms(), {RSS: write}, Pages(), FeedLinks()),
        poll_default_s=55,
        poll_max_s=120,
    )
    place = PageAddress("https://feeds.example.org", "notes", FeedQuery())
    request = FeedRequest(place, form, ALICE, document=True, reader=True, zipped=False)

    update = await feeds.update(request)

    assert update is not None
    assert update.reply.body == b"page"
    assert threads
    assert threading.current_thread() not in threads
