"""Pages with what the feed says of itself, for wires whose answers are documents (Smart Feeds, HTTP Pull)."""

from smartfeeds.core.access import AccessModel
from smartfeeds.core.model import Edge, Item, Node, Slice
from smartfeeds.core.options import shows_publisher
from smartfeeds.core.page import plan
from smartfeeds.core.view import Order, View
from smartfeeds.service.context import Context, access_model, locate
from smartfeeds.service.pulls import check_readable, key_of, read_page
from smartfeeds.service.requests import FeedPage, Page, PullFeed
from smartfeeds.store.base import ReadTx


def pull_feed(tx: ReadTx, context: Context, request: PullFeed) -> FeedPage:
    """One page of a view, and whether there is more on either side of it (A-10)."""
    located = locate(tx, request.node)
    node, view = located.node, located.view
    check_readable(tx, context, node, request.actor)
    version = version_of(node)
    public = access_model(node) is AccessModel.OPEN
    if version in request.known:
        return FeedPage(node, view, version, public)
    policy = context.policy
    wanted = plan(request.page, request.max_items, page_default=policy.page_default, page_max=policy.page_max)
    items, result_set = read_page(tx, context, node, view, wanted)
    page = Page(request.node or "", items, result_set, shows_publisher(node.kind, node.options))
    if not items:
        return FeedPage(node, view, version, public, page)
    return FeedPage(
        node,
        view,
        version,
        public,
        page,
        newer=_newer(tx, node, view, items[-1]),
        older=result_set.index != 0 and _older(tx, node, view, items[0]),
    )


def version_of(node: Node) -> str:
    """What every page of a node depends on: its last change, its configuration and who may read it."""
    return f"{node.node_no}.{node.last_modified_us}.{node.audience}"


def _newer(tx: ReadTx, node: Node, view: View, last: Item) -> bool:
    key_us = key_of(view.order, last)
    if key_us == _newest_key(node, view):
        return False
    return bool(tx.slice(node.node_no, Slice(view, 1, after=Edge(key_us, last.item_no))))


def _newest_key(node: Node, view: View) -> int:
    return node.last_modified_us if view.order is Order.MODIFIED else node.last_created_us


def _older(tx: ReadTx, node: Node, view: View, first: Item) -> bool:
    edge = Edge(key_of(view.order, first), first.item_no - 1)
    return bool(tx.slice(node.node_no, Slice(view, 1, before=edge, newest=True)))
