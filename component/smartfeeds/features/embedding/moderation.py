"""The page of the replies of guests that wait, with two buttons for each."""

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import GUESTS, feed_path
from smartfeeds.features.embedding.files import frame_file_path
from smartfeeds.features.embedding.guests import MOST_WAITING, parse_place
from smartfeeds.features.embedding.requests import (
    CountReplies,
    DecideReplies,
    ListReplies,
    RepliesDecided,
    ReplyCount,
    ReplyList,
)
from smartfeeds.features.pages.frame import ReplyQueue, frame_of, page_reply
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import Handle, ask

_RIGHT = TokenScope.PUBLISH
SHOW_GUESTS = page_for_people("guests", "The replies of guests that wait for approval", scope=_RIGHT)
DECIDE_GUESTS = page_for_people("guests-form", "Publishes or refuses replies of guests", form=True, scope=_RIGHT)


def reply_queue(handle: Handle, service: str) -> ReplyQueue:
    """Returns the part by which the page of a feed leads to this page. `service` is the address of the service."""

    async def count(call: HttpCall) -> int:
        return (await ask(handle, CountReplies(call.actor, service, call.name), ReplyCount)).count

    return ReplyQueue(count)


class Moderation:
    """Handles the page."""

    def __init__(self, tools: SiteTools) -> None:
        self._tools = tools

    async def show(self, call: HttpCall) -> Reply:
        """The page. Raises FeedError."""
        answer = await ask(self._tools.handle, ListReplies(call.actor, self._tools.domain, call.name), ReplyList)
        return call.zipped(
            page_reply(
                frame_of(call).page(
                    "embedding/templates/guests.html",
                    title=title_of(answer.node),
                    feed=feed_path(call.name),
                    style=frame_file_path("frame.css"),
                    here=feed_path(call.name, folder=GUESTS),
                    replies=answer.replies,
                    most=MOST_WAITING,
                )
            )
        )

    async def decide(self, call: HttpCall) -> Reply:
        """Publishes or refuses what a button says. Raises FeedError."""
        fields = await self._tools.bodies.fields(call)
        approve, refuse = ((fields[name],) if name in fields else () for name in ("approve", "refuse"))
        last = parse_place(fields["refuse_all"]) if "refuse_all" in fields else None
        decision = DecideReplies(call.actor, self._tools.domain, call.name, approve, refuse, last)
        await ask(self._tools.perform, decision, RepliesDecided)
        return call.see_other(feed_path(call.name, folder=GUESTS))
