"""The conflicts of items as a page (FeedSync 3.4). It works without a script."""

from markupsafe import Markup

from smartfeeds.core.urls import CONFLICTS, entry_path, feed_path
from smartfeeds.formats.entry import read_entry
from smartfeeds.http.web.article import body_of
from smartfeeds.http.web.frame import Frame
from smartfeeds.service.conflicts import ConflictedItem, ConflictList


def conflicts_page(
    frame: Frame, name: str, conflict_list: ConflictList, next_path: str, *, single: bool, first: bool
) -> bytes:
    """The versions of items with conflicts side by side, each with a button that keeps it (FeedSync 3.4).

    With `single` the list is one item. `first`: the page is the first of its list. The page has no script.
    """
    total = len(conflict_list.entries) if conflict_list.result_set is None else conflict_list.result_set.count
    return frame.page(
        "conflicts.html",
        name=name,
        feed=feed_path(name),
        all=entry_path(name, folder=CONFLICTS),
        alone=single,
        first=first,
        total=total,
        next_path=next_path,
        items=[
            {
                "anchor": f"e-{one.item.item_no}",
                "path": entry_path(name, one.item.id, CONFLICTS),
                "id": one.item.id,
                "tags": one.tags,
                "sides": _sides(frame, one),
            }
            for one in conflict_list.entries
        ],
    )


def _sides(frame: Frame, entry: ConflictedItem) -> list[dict[str, object]]:
    """The versions of an item. `top` is the last change of a version, with author and time."""
    sides: list[dict[str, object]] = []
    for tag, version in entry.versions:
        content = read_entry(entry.item._replace(payload=version.payload, deleted=version.deleted.on))
        body = body_of(frame, content)
        markup = Markup(body.html)  # noqa: S704 - it was cleaned
        sides.append({"tag": tag, "top": version.top, "entry": content, "body": markup, "cut": body.cut})
    return sides
