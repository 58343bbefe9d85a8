"""The replies of guests that wait, as a list for programs and chat clients."""

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import format_second
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding.guests import GuestReply
from smartfeeds.features.embedding.requests import DecideReplies, ListReplies, RepliesDecided, ReplyList
from smartfeeds.http.openapi_schemas import COUNT, TAGS, exactly, ref
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    ActionRoute,
    Caller,
    Column,
    Fields,
    ListAnswer,
    Resource,
)


async def _read(caller: Caller, _page: ResultSetRequest, _narrow: bool) -> ListAnswer[GuestReply]:
    answer = await caller.ask(ListReplies(caller.actor, caller.service, caller.node), ReplyList)
    return ListAnswer(answer.replies)


async def _decide(caller: Caller, fields: Fields) -> ActionResult:
    approve, refuse = _ids(fields, "approve"), _ids(fields, "refuse")
    answer = await caller.ask(DecideReplies(caller.actor, caller.service, caller.node, approve, refuse), RepliesDecided)
    return ActionResult(body={"approved": answer.approved, "refused": answer.refused})


def _ids(fields: Fields, name: str) -> tuple[str, ...]:
    ids = fields.get(name, [])
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise FeedError(Condition.BAD_REQUEST, f"{name}: an array of ids of replies")
    return tuple(ids)


MODERATION: Resource[GuestReply] = Resource(
    "moderation",
    "reply",
    (
        Column("id", lambda reply: reply.reply_id, "ID", "code"),
        Column("name", lambda reply: reply.name, "Name"),
        Column("text", lambda reply: reply.text, "Text"),
        Column("inReplyTo", lambda reply: reply.target, "In reply to"),
        Column("created", lambda reply: format_second(reply.created_us), "Created", "time"),
    ),
    empty="No reply of a guest waits.",
    read=_read,
    of_node=True,
    summary="The replies of guests that wait for approval",
    actions=(
        Action(
            "decide",
            _decide,
            route=ActionRoute(
                "POST",
                "decideReplies",
                "Publishes replies of guests, and refuses others",
                members=("approve", "refuse"),
                body="ReplyDecision",
                answers={200: ref("RepliesDecided")},
                errors=(409,),
            ),
        ),
    ),
)
SCHEMAS = {
    "ReplyDecision": {
        "type": "object",
        "properties": {
            "approve": {**TAGS, "description": "ids of replies to publish"},
            "refuse": {**TAGS, "description": "ids of replies to refuse"},
        },
        "additionalProperties": False,
    },
    "RepliesDecided": exactly({"approved": COUNT, "refused": COUNT}),
}
