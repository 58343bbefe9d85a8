"""The page of the replies of guests that wait, with two buttons for each."""

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import GUESTS, entry_path, feed_path
from smartfeeds.features.embedding.files import frame_file_path
from smartfeeds.features.embedding.guests import MOST_WAITING, ReplyState, parse_place, reference_of
from smartfeeds.features.embedding.requests import (
    CountReplies,
    DecideReplies,
    ListReplies,
    RepliesDecided,
    ReplyCount,
    ReplyList,
)
from smartfeeds.features.pages.answers import answer_links
from smartfeeds.features.pages.frame import ReplyQueue, frame_of, page_reply
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import Handle, ask

_RIGHT = TokenScope.PUBLISH
_DECIDED = "decided"
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
        query = read_parameters(call.query, (_DECIDED,))
        domain, base_url = self._tools.domain, call.site_url
        request = ListReplies(call.actor, domain, call.name, base_url, query.get(_DECIDED, ""))
        answer = await ask(self._tools.handle, request, ReplyList)
        frame = frame_of(call)
        targets = {
            reply.reply_id: answer_links(
                frame.texts, filter(None, (reference_of(reply),)), domain, base_url, answer.answered
            )
            for reply in answer.replies
        }
        decided = answer.decided
        is_published = decided is not None and decided.state is ReplyState.APPROVED
        return call.zipped(
            page_reply(
                frame.page(
                    "embedding/templates/guests.html",
                    title=title_of(answer.node),
                    feed=feed_path(call.name),
                    style=frame_file_path("frame.css"),
                    here=feed_path(call.name, folder=GUESTS),
                    replies=answer.replies,
                    targets=targets,
                    decided=decided,
                    entry=entry_path(call.name, decided.item_id) if decided is not None and is_published else "",
                    most=MOST_WAITING,
                )
            )
        )

    async def decide(self, call: HttpCall) -> Reply:
        """Publishes or refuses what a button says. Raises FeedError."""
        fields = await self._tools.bodies.fields(call)
        approve, refuse = ((fields[name],) if name in fields else () for name in ("approve", "refuse"))
        last = parse_place(fields["refuse_all"]) if "refuse_all" in fields else None
        decision = DecideReplies(call.actor, self._tools.domain, call.name, approve, refuse, last, call.site_url)
        await ask(self._tools.perform, decision, RepliesDecided)
        # Of many that are refused at once the last one stands for all.
        reply_ids = (*approve, *refuse, *((last.reply_id,) if last else ()))
        query = f"?{write_query({_DECIDED: reply_ids[0]})}" if reply_ids else ""
        return call.see_other(f"{feed_path(call.name, folder=GUESTS)}{query}")
