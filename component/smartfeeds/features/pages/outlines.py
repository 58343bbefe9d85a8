"""The outline of a feed as a page, on which people move its items (SSE 3.2). Programs use `PATCH` of an item.

The page works with the keyboard and without a script.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from smartfeeds.core.model import Item
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import OUTLINE, entry_path, feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.pages.article import may_edit
from smartfeeds.features.pages.frame import Frame, page_reply, writing_frame
from smartfeeds.formats.entry import read_entry
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.placing import GetOutline, MoveItem, OutlineShown
from smartfeeds.service.requests import Published
from smartfeeds.sync.moves import MoveStep
from smartfeeds.texts import N_

MOST_LINES = 1_000  # each with a form of four buttons
# What the buttons show and are called.
_BUTTONS = (
    (MoveStep.UP, "\u2191", N_("Move up")),
    (MoveStep.DOWN, "\u2193", N_("Move down")),
    (MoveStep.OUTDENT, "\u2190", N_("Move out")),
    (MoveStep.INDENT, "\u2192", N_("Move in")),
)
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


@dataclass(slots=True)
class _Line:
    """A line of the page: its item, whether the reader may move it, and the steps that are possible."""

    id: str
    title: str
    path: str
    anchor: str
    moves: bool
    can: set[MoveStep]
    lines: "list[_Line]" = field(default_factory=list)

    def can_step(self, step: str) -> bool:
        """Whether the button of a step does anything."""
        return MoveStep(step) in self.can


def outline_page(frame: Frame, answer: OutlineShown) -> bytes:
    """The page with the first `MOST_LINES` lines."""
    node = answer.node
    lines = [(level, answer.items[item_id]) for level, item_id in answer.lines[:MOST_LINES]]
    return frame.page(
        "outline.html",
        title=node.options.title or node.name,
        feed=feed_path(node.name),
        action=feed_path(node.name, folder=OUTLINE),
        lines=_tree(frame, node.name, lines),
        left_out=len(answer.lines) - len(lines),
        moves=frame.writing is not None and frame.writing.publish,
        buttons=[(step.value, sign, label) for step, sign, label in _BUTTONS],
    )


def anchor_of(item_id: str) -> str:
    """The fragment of the line of an item."""
    return f"line-{hashlib.sha256(item_id.encode()).hexdigest()[:12]}"


def _tree(frame: Frame, name: str, lines: Sequence[tuple[int, Item]]) -> list[_Line]:
    root: list[_Line] = []
    open_lists = [root]  # of each level
    for level, item in lines:
        title = read_entry(item).title.plain or item.id
        path, anchor = entry_path(name, item.id), anchor_of(item.id)
        line = _Line(item.id, title, path, anchor, may_edit(frame, item), set())
        del open_lists[level + 1 :]
        siblings = open_lists[level]
        if siblings:
            siblings[-1].can.add(MoveStep.DOWN)
            line.can |= {MoveStep.UP, MoveStep.INDENT}
        if level:
            line.can.add(MoveStep.OUTDENT)
        siblings.append(line)
        open_lists.append(line.lines)
    return root
