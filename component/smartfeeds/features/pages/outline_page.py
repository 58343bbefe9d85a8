"""The outline of a feed as a page. It works with the keyboard and without a script."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from smartfeeds.core.model import Item
from smartfeeds.core.urls import OUTLINE, entry_path, feed_path
from smartfeeds.features.pages.article import may_edit
from smartfeeds.features.pages.frame import Frame
from smartfeeds.formats.entry import read_entry
from smartfeeds.service.placing import OutlineShown
from smartfeeds.sync.moves import MoveStep
from smartfeeds.texts import N_

MOST_LINES = 1_000
# What the buttons show and are called.
_BUTTONS = (
    (MoveStep.UP, "\u2191", N_("Move up")),
    (MoveStep.DOWN, "\u2193", N_("Move down")),
    (MoveStep.OUTDENT, "\u2190", N_("Move out")),
    (MoveStep.INDENT, "\u2192", N_("Move in")),
)


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
