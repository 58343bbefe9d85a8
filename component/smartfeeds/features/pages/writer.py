"""The pages of what the kernel serves: feeds, entries, the list of feeds and errors (`http.page_writer`)."""

import asyncio
from collections.abc import Hashable, Mapping

from smartfeeds.core.jid import Jid
from smartfeeds.core.token import ALL_FEEDS
from smartfeeds.core.urls import local_path
from smartfeeds.features.pages.entry_page import entry_page, page_mark
from smartfeeds.features.pages.feed_list import feed_list
from smartfeeds.features.pages.feed_page import FeedPageWriter
from smartfeeds.features.pages.feed_style import STYLED_HEADERS, style_language, with_style
from smartfeeds.features.pages.frame import (
    PAGE_HEADERS,
    EntryForms,
    Frame,
    feed_frame,
    frame_of,
    page_reply,
    writing_frame,
)
from smartfeeds.features.pages.problem_page import for_reader
from smartfeeds.features.pages.reply_requests import (
    NO_REPLY_CONTEXT,
    GetReplies,
    GetReplyContext,
    Replies,
    ReplyContext,
    parse_reply_place,
)
from smartfeeds.features.pages.river_requests import GetHeadlines, Headlines
from smartfeeds.features.pages.threads import REPLIES_PARAMETER, ids_of, thread_of
from smartfeeds.formats.representation import Representation
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import PageAddress, is_feed, items_of
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.http_errors import Problem
from smartfeeds.http.page_writer import ListPage
from smartfeeds.http.queries import read_value
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.requests import FeedPage, ItemShown

CACHE_BYTES = 4 * 1024 * 1024  # of pages of entries


class HtmlWriter:
    """Writes the pages. `handle` is the service, and `domain` its address. `forms` are the representations of feeds."""

    headers: Mapping[str, str] = PAGE_HEADERS
    style_headers: Mapping[str, str] = STYLED_HEADERS

    def __init__(self, handle: Handle, domain: str, forms: FeedForms) -> None:
        self._handle = handle
        self._domain = domain
        self._linked = forms.linked
        self._feeds = FeedPageWriter(domain, forms.linked)
        # By the entity tag, which changes with everything on the page, and whether the feed is public.
        self._entries: ByteCache[tuple[str, bool], Reply] = ByteCache(CACHE_BYTES)

    def offered(self, forms: tuple[Representation, ...]) -> tuple[Representation, ...]:
        """All of the representations."""
        return forms

    async def frame(self, call: HttpCall) -> Hashable:
        """The frame of a page of a feed, for a signed-in reader with what the reader may write. Raises FeedError."""
        return await feed_frame(call) if call.session_id else frame_of(call)

    async def beside(self, actor: Jid, answer: FeedPage, place: PageAddress) -> ReplyContext:
        """The answers around the items of a page, by one look-up for all of them. Raises FeedError."""
        items = tuple(item for item in items_of(answer) if not item.deleted)
        if not items or not is_feed(answer.node):
            return NO_REPLY_CONTEXT
        ids = await asyncio.to_thread(ids_of, items)
        request = GetReplyContext(actor, self._domain, answer.node.name, items, ids, place.site_url)
        return await ask(self._handle, request, ReplyContext)

    def feed(self, frame: Hashable, answer: FeedPage, place: PageAddress, beside: object) -> bytes:
        """A page of a feed."""
        # The kernel passes on what `frame` has returned, as the key of its cache, and what `beside` has returned.
        assert isinstance(frame, Frame)
        assert isinstance(beside, ReplyContext)
        return self._feeds.feed(frame, answer, place, beside)

    async def entry(self, call: HttpCall, answer: ItemShown, *, public: bool) -> Reply:
        """The page of an item or of its tombstone. It is made in a thread and cached. Raises FeedError."""
        frame, reply_node, forms = frame_of(call), "", call.parts.find(EntryForms)
        if call.session_id and not answer.item.deleted and forms is not None:
            frame = await writing_frame(call)
            reply_node = await forms.reply_node(call, answer.item)
        can_answer = forms is not None and is_feed(answer.node) and not answer.item.deleted
        after = read_value(call.query, REPLIES_PARAMETER)
        request = GetReplies(
            call.actor,
            self._domain,
            answer.node.name,
            answer.item,
            call.site_url,
            parse_reply_place(after) if after else None,
            only_here=call.token is not None and call.token.feed != ALL_FEEDS,
            asks_origin=can_answer and bool(call.session_id) and not reply_node,
        )
        replies = Replies() if answer.item.deleted else await ask(self._handle, request, Replies)
        answers, thread = await asyncio.to_thread(
            thread_of, frame, self._domain, answer, request, replies, reply_node if can_answer else None
        )
        tag = f"{item_tag(answer.item)}.{page_mark(frame, call.site_url, answer, reply_node, answers, thread)}"
        reply = self._entries.get((tag, public))
        if reply is None:
            body = await asyncio.to_thread(
                entry_page, frame, call.site_url, self._domain, answer, reply_node, answers, thread
            )
            reply = page_reply(body, {"ETag": f'"{tag}"', **access_headers(public=public, bearer=False)})
            # Most browsers want it compressed, and the reply keeps that form, too.
            self._entries.put((tag, public), reply, reply.size_bytes + len(body) // 2)
        return call.zipped(reply)

    async def feed_list(self, call: HttpCall, actor: Jid, page: ListPage) -> bytes:
        """A page of the list of feeds, with the newest entry of each."""
        answer = await ask(self._handle, GetHeadlines(actor, self._domain, tuple(page.nodes)), Headlines)
        return feed_list(frame_of(call), page, answer.items, self._linked)

    def problem(self, call: HttpCall, problem: Problem) -> Reply:
        """A problem as a page if the client prefers HTML to JSON, else the problem."""
        navigates = call.header("Sec-Fetch-Mode") == "navigate"
        # A form cannot be sent again by a link, so a sign-in leads back to the page that has the form.
        here = f"{call.path}{f'?{call.query}' if call.query else ''}" if call.method == "GET" else call.referer_path
        accept = call.header("Accept")
        return for_reader(frame_of(call), accept, problem, navigates=navigates, here=local_path(here))

    def style(self, call: HttpCall, form: Representation) -> str:
        """The language of the style sheet of a document for a browser, "" for other clients."""
        return style_language(call, form)

    def styled(self, document: bytes, site_url: str, style: str) -> bytes:
        """A document with the style sheet in a language."""
        return with_style(document, site_url, style)
