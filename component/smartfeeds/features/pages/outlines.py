"""The outline of a feed as a page, on which people move its items (SSE 3.2). Programs use `PATCH` of an item."""

import asyncio

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import OUTLINE, feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.pages.frame import page_reply, writing_frame
from smartfeeds.features.pages.outline_page import MOST_LINES, anchor_of, outline_page
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.placing import GetOutline, MoveItem, OutlineShown
from smartfeeds.service.requests import Published
from smartfeeds.sync.moves import MoveStep

# For people who may edit: it reads the whole outline, which costs much more than a page of the feed.
OUTLINE_PAGE = page_for_people("outlinePage", "The outline of a feed", scope=TokenScope.PUBLISH)
OUTLINE_MOVE = page_for_people("outlineMove", "Moves an item by a step", form=True, scope=TokenScope.PUBLISH)


class Outlines:
    """Handles the page. `service` is the address of the service; `change` performs a request even if the client
    disconnects."""

    def __init__(self, handle: Handle, change: Handle, service: str, bodies: BodyReader) -> None:
        self._handle = handle
        self._change = change
        self._service = service
        self._bodies = bodies

    async def show(self, call: HttpCall) -> Reply:
        """The outline, with buttons for those who may move its items. Raises FeedError."""
        read_parameters(call.query, ())
        answer = await ask(self._handle, GetOutline(call.actor, self._service, call.name, MOST_LINES), OutlineShown)
        frame = await writing_frame(call)
        return call.zipped(page_reply(await asyncio.to_thread(outline_page, frame, answer)))

    async def move(self, call: HttpCall) -> Reply:
        """Moves an item, and leads back to its line, where the reader may press the next button. Raises FeedError."""
        fields = await self._bodies.fields(call)
        try:
            step = MoveStep(fields.get("step", ""))
        except ValueError:
            raise FeedError(Condition.BAD_REQUEST, "a move is one of the buttons of the page") from None
        item_id = fields.get("id", "")
        await ask(self._change, MoveItem(call.actor, self._service, call.name, item_id, step), Published)
        return call.see_other(f"{feed_path(call.name, folder=OUTLINE)}#{anchor_of(item_id)}")
