"""The page of the search over all feeds."""

from smartfeeds.core.filters import FILTERS
from smartfeeds.core.urls import feed_path
from smartfeeds.core.view import View
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.river_page import make_card
from smartfeeds.features.pages.river_requests import SearchResult
from smartfeeds.formats.feed_details import title_of


def search_page(frame: Frame, view: View, text: str, words: str, result: SearchResult, next_path: str) -> bytes:
    """A page of the search. `text` is its query string, `words` is the value of `q`."""
    return frame.page(
        "search.html",
        feeds=[
            {
                "title": title_of(hits.node),
                "path": feed_path(hits.node.name),
                "all_path": f"{feed_path(hits.node.name)}?{text}" if hits.more else "",
                "cards": [make_card(hits.node, item, view.query) for item in hits.items],
            }
            for hits in result.feeds
        ],
        words=words,
        filters=[(name, ", ".join(sorted(values))) for name, values in view.filters if FILTERS[name].index],
        filtered=view.filtered,
        searched=result.searched,
        next_path=next_path,
    )
