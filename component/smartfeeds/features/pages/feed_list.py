"""The list of feeds as a page."""

from collections.abc import Mapping

from smartfeeds.core.model import Item
from smartfeeds.core.options import AccessModel
from smartfeeds.core.urls import feed_path, list_path
from smartfeeds.features.pages.feed_page import offers
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.river_page import make_card
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.representation import Representation
from smartfeeds.http.encode import is_feed
from smartfeeds.http.page_writer import ListPage

_NNO, _OPML = list_path("nno"), list_path("opml")


def feed_list(frame: Frame, page: ListPage, headlines: Mapping[str, Item], linked: tuple[Representation, ...]) -> bytes:
    """The feeds as a page. `headlines` are their newest entries by name."""
    return frame.page(
        "list.html",
        feeds=[
            {
                "node": node,
                "path": feed_path(node.name),
                "title": title_of(node),
                "description": node.options.description,
                "open": node.options.access_model is AccessModel.OPEN,
                "offers": offers(node.name, "", linked)[:3] if is_feed(node) else (),
                "headline": make_card(node, headlines[node.name]) if node.name in headlines else None,
            }
            for node in page.nodes
        ],
        page=page,
        nno=_NNO,
        opml=_OPML,
    )
