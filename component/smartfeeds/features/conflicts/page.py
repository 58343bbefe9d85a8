"""The conflicts of items as a page (FeedSync 3.4). It works without a script."""

from markupsafe import Markup

from smartfeeds.core.urls import CONFLICTS, entry_path, feed_path
from smartfeeds.features.conflicts.requests import ConflictedItem, ConflictList
from smartfeeds.features.pages.article import body_of, may_edit
from smartfeeds.features.pages.differences import Differences
from smartfeeds.features.pages.frame import Frame
from smartfeeds.formats.entry import Entry, TextKind, read_entry
from smartfeeds.formats.entry_form import fields_of


def conflicts_page(
    frame: Frame, name: str, conflict_list: ConflictList, next_path: str, *, single: bool, first: bool
) -> bytes:
    """The versions of items with conflicts side by side, each with a button that keeps it (FeedSync 3.4).

    With `single` the list is one item. `first`: the page is the first of its list. Items that the reader may not
    replace have no buttons.
    """
    total = len(conflict_list.entries) if conflict_list.result_set is None else conflict_list.result_set.count
    differences = Differences(frame.texts)
    return frame.page(
        "conflicts/templates/conflicts.html",
        name=name,
        title=conflict_list.title or name,
        feed=feed_path(name),
        all=entry_path(name, folder=CONFLICTS),
        alone=single,
        first=first,
        total=total,
        next_path=next_path,
        items=[
            {
                "anchor": f"e-{entry.item.item_no}",
                "path": entry_path(name, entry.item.id, CONFLICTS),
                "id": entry.item.id,
                "tags": entry.tags,
                "decides": may_edit(frame, entry.item),
                "combined": _combined(entry),
                "sides": _sides(frame, entry, differences),
            }
            for entry in conflict_list.entries
        ],
    )


def _combined(entry: ConflictedItem) -> dict[str, object]:
    """Returns the initial values of the form for a combined version: those of the first version that was not
    deleted."""
    live = [version for _, version in entry.versions if not version.deleted.on]
    if not live:
        return {"title": "", "text": "", "is_html": False}
    fields = fields_of(read_entry(entry.item._replace(payload=live[0].payload, deleted=False)))
    return {"title": fields.title, "text": fields.text, "is_html": fields.kind is TextKind.HTML}


def _sides(frame: Frame, entry: ConflictedItem, differences: Differences) -> list[dict[str, object]]:
    """The versions of an item. `top` is the last change of a version, with author and time.

    `title` and `changes` show the words in which a version differs from the first one. Differences in the text are
    shown without markup, and only if there are any.
    """
    sides: list[dict[str, object]] = []
    first: Entry | None = None
    for tag, version in entry.versions:
        content = read_entry(entry.item._replace(payload=version.payload, deleted=version.deleted.on))
        body = body_of(frame, content)
        markup = Markup(body.html)  # noqa: S704 - it was cleaned
        side = {"tag": tag, "top": version.top, "entry": content, "body": markup, "cut": body.cut}
        side |= {"title": content.title.plain, "changes": None}
        if first is None:
            first = content
        elif not first.deleted and not content.deleted:
            side["title"] = differences.highlighted(first.title.plain, content.title.plain)
            former, text = _text_of(first), _text_of(content)
            side["changes"] = differences.highlighted(former, text) if former != text else None
        sides.append(side)
    return sides


def _text_of(entry: Entry) -> str:
    """The text of an entry without markup, on one line."""
    text = entry.content or entry.summary
    return "" if text is None else text.plain
