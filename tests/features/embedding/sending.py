"""A feed to which guests may reply, and replies that are sent without a form."""

from itertools import count

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.features.embedding.requests import (
    DecideReplies,
    ListReplies,
    RepliesDecided,
    ReplyList,
    ReplyStored,
    SubmitReply,
)
from smartfeeds.service.answers import ask
from support.component import ALICE, DOMAIN, Component, bare
from support.world import jid

_IDS = count(0x1000_0000)


async def guest_feed(component: Component, node: str = "comments", user: str = ALICE) -> None:
    """Makes a feed of a user."""
    await component.create(user, node, title="Comments", guest_replies="approval")


async def submit(
    component: Component, text: str = "Good morning", name: str = "Mara", *, node: str = "comments", reply_id: str = ""
) -> str:
    """A guest sends a reply, whose id is returned."""
    reply_id = reply_id or f"{next(_IDS):08x}{0:016x}"
    request = SubmitReply(ANONYMOUS, DOMAIN, node, reply_id, name, text, "")
    await ask(component.app.handle, request, ReplyStored)
    return reply_id


async def waiting(component: Component) -> list[str]:
    """The ids of the replies that wait."""
    answer = await ask(component.app.handle, ListReplies(jid(bare(ALICE)), DOMAIN, "comments"), ReplyList)
    return [reply.reply_id for reply in answer.replies]


async def decide(component: Component, user: str = ALICE, **decision: tuple[str, ...]) -> None:
    """A user decides on a page: `approve` and `refuse` are ids of replies."""
    request = DecideReplies(jid(bare(user)), DOMAIN, "comments", **decision)  # type: ignore[arg-type]
    await ask(component.app.handle, request, RepliesDecided)
