"""Conflicts as a page: the versions of an item side by side, each with a button that keeps it (FeedSync 3.4).

The page has no script. The content of a version is sanitised as on every page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from smartfeeds.core.urls import CONFLICTS, entry_path, feed_path
from smartfeeds.formats.entry import Entry, read_entry
from smartfeeds.http.pages import body_of, template
from smartfeeds.service.conflicts import ConflictedItem, ConflictList
from smartfeeds.sync.record import HistoryRecord


@dataclass(frozen=True, slots=True)
class ConflictVersion:
    """One version of an item. `body` is sanitised; `top` is its last change, with author and time."""

    tag: str
    top: HistoryRecord
    entry: Entry
    body: Markup
    cut: bool


def conflicts_page(name: str, conflict_list: ConflictList, next_path: str, *, single: bool, first: bool) -> bytes:
    """The conflicts of a feed, or with `single` those of one item. `first`: the page is the first of its list."""
    total = len(conflict_list.entries) if conflict_list.result_set is None else conflict_list.result_set.count
    html = template("conflicts.html").render(
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
                "sides": _sides(one),
            }
            for one in conflict_list.entries
        ],
    )
    return html.encode("utf-8", "replace")


def _sides(one: ConflictedItem) -> Sequence[ConflictVersion]:
    sides = []
    for tag, version in one.versions:
        entry = read_entry(one.item._replace(payload=version.payload, deleted=version.deleted.on))
        body = body_of(entry)
        sides.append(ConflictVersion(tag, version.top, entry, Markup(body.html), body.cut))  # noqa: S704 - it was cleaned
    return sides
