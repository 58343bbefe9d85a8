"""The answers on the page of an entry: a flat list, oldest first.

An answer to an answer is not in the list. It is on the page of the answer, and the list has their number. So neither a
cycle of entries that answer each other nor a deep tree makes a page longer.
"""

from collections.abc import Sequence

from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import PublishModel
from smartfeeds.core.urls import WRITE, entry_path
from smartfeeds.features.pages.answers import AnswerLink, answer_links
from smartfeeds.features.pages.entry_page import Thread
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.reply_requests import GetReplies, Replies
from smartfeeds.features.pages.sanitise import link_of
from smartfeeds.formats.atom import derived_id, id_and_updated
from smartfeeds.formats.entry import read_entry, replies_of
from smartfeeds.http.queries import page_path
from smartfeeds.service.requests import ItemShown
from smartfeeds.texts import N_

REPLIES_PARAMETER = "replies"  # of the page of an entry: the place behind which its answers are shown
_HINTS = {
    PublishModel.OPEN: N_("Everybody who signs in may reply."),
    PublishModel.SUBSCRIBERS: N_("Subscribers of this feed may reply."),
    PublishModel.PUBLISHERS: N_("Publishers of this feed may reply."),
}


def thread_of(
    frame: Frame, domain: str, answer: ItemShown, request: GetReplies, replies: Replies, reply_node: str | None
) -> tuple[tuple[AnswerLink, ...], Thread | None]:
    """Links to what an item answers, and the answers to it, None without any. `domain` is that of the component.

    `reply_node` is the node in which the reader may answer, "" if there is none, None if nobody can answer here.
    """
    node, item = answer.node, answer.item
    if item.deleted:
        return (), None
    known = {reference: value for (_, reference), value in replies.answered.items()}
    answers = answer_links(frame.texts, replies_of(item.payload), domain, request.base_url, known)
    next_path = ""
    if replies.next is not None:
        next_path = page_path(entry_path(node.name, item.id), {}, **{REPLIES_PARAMETER: str(replies.next)})
    # In a feed that is filled from elsewhere nobody but its publishers ever answers.
    is_elsewhere = replies.from_elsewhere and node.options.publish_model is PublishModel.PUBLISHERS
    address = link_of(read_entry(item).alternate) if is_elsewhere else ""
    thread = Thread(
        replies.entries,
        replies.total,
        next_path,
        request.after is not None,
        entry_path(reply_node, folder=WRITE) if reply_node else "",
        node.name,
        "" if reply_node is None or address else _hint(frame, node, replies),
        address,
    )
    return answers, None if thread.is_empty else thread


def _hint(frame: Frame, node: Node, replies: Replies) -> str:
    """The text for a reader who may not answer."""
    model = node.options.publish_model
    # A signed-in reader without a form lacks a right and not a session. Under an entry of a blog that nobody else may
    # write in, and that nobody has answered, the hint would only raise the question.
    if (frame.reader and model is PublishModel.OPEN) or (model is PublishModel.PUBLISHERS and not replies.entries):
        return ""
    return frame.texts.say(_HINTS[model])


def ids_of(items: Sequence[Item]) -> dict[str, int]:
    """The numbers of items by the ids that answers name: the atom:id, and the id of the item. Reading them takes a
    while."""
    ids: dict[str, int] = {}
    for item in items:
        for text in (item.id, id_and_updated(item.payload)[0] or derived_id(item.id)):
            ids[text] = item.item_no
    return ids
