"""The items that `item list` and `search` show: those of a node or view, and their columns."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from smartfeeds.cli.offline import actor_of
from smartfeeds.core.model import Item
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import format_second

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

BRIEF: Final = ("id", "title", "modified")
CUT: Final = ("title",)


class NewestItems(NamedTuple):
    """The newest items of a node or view, the newest last, and the number of all, None if it is not counted."""

    items: list[Item]
    total: int | None


def item_row(item: Item) -> dict[str, Any]:
    """Return the columns of an item. An item without a title has its first words in place of it."""
    from smartfeeds.formats.atom import read_meta
    from smartfeeds.formats.entry import read_entry

    links = read_entry(item).links if item.payload else ()
    return {
        "id": item.id,
        "title": "(deleted)" if item.deleted else read_meta(item.payload).body,
        "modified": format_second(item.modified_us),
        "created": format_second(item.created_us),
        "publisher": item.publisher,
        "deleted": item.deleted,
        "link": next((link.href for link in links if link.rel == "alternate"), ""),
    }


def rest_notes(count: int, total: int | None) -> list[str]:
    """Return a sentence about the rest of a list of so many of all items, none if there is no rest."""
    if total is None:
        return [f"The newest {count:,} items, and there may be more; --max lists more."]
    return [f"The newest {count:,} of {total:,} items; --max lists more."] if total > count else []


async def newest_items(service: "FeedService", node: str, most: int, by: str | None = None) -> NewestItems:
    """Return the newest items of a node or view that the bare JID `by` may read, by default the operator; the newest
    last. Raises FeedError."""
    from smartfeeds.service.answers import ask
    from smartfeeds.service.requests import Page, Pull

    items: list[Item] = []
    before, total = "", None
    while len(items) < most:
        page = ResultSetRequest(max=str(min(most - len(items), service.policy.page_max)), before=before)
        answer = await ask(service.handle, Pull(actor_of(service, by), service.policy.domain, node, page=page), Page)
        items = [*answer.items, *items]
        if not answer.items or answer.result_set is None or not answer.result_set.first:
            return NewestItems(items, len(items))
        before, total = answer.result_set.first, answer.result_set.count
    return NewestItems(items, total)
