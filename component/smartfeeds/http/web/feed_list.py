"""The list of feeds as a page."""

from collections.abc import Sequence

from smartfeeds.core.model import Node
from smartfeeds.core.options import AccessModel
from smartfeeds.core.urls import feed_path, list_path
from smartfeeds.http import negotiation as n
from smartfeeds.http.encode import is_feed, title_of
from smartfeeds.http.web.feed_page import offers
from smartfeeds.http.web.frame import Frame

_NNO, _OPML = list_path(n.NNO.suffix), list_path(n.OPML.suffix)


def feed_list(
    frame: Frame, nodes: Sequence[Node], site_url: str, next_url: str, previous_url: str, total: int
) -> bytes:
    """The feeds as a page. `total` counts all feeds. An address is "" if there is no such page."""
    return frame.page(
        "list.html",
        nodes=[
            {
                "node": node,
                "path": feed_path(node.name),
                "title": title_of(node),
                "description": node.options.description,
                "open": node.options.access_model is AccessModel.OPEN,
                "offers": offers(node.name, "")[:3] if is_feed(node) else (),
            }
            for node in nodes
        ],
        total=total,
        next_path=next_url.removeprefix(site_url),
        previous_path=previous_url.removeprefix(site_url),
        nno=_NNO,
        opml=_OPML,
    )
