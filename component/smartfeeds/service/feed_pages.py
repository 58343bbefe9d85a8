"""Reads pages together with the data of their feed, for wires whose answers are documents (Smart Feeds, HTTP Pull).

The answer has no page if the caller has the current version already: most polls cost one look-up.
"""

from smartfeeds.core.model import AUDIENCE_CHANGE, Edge, Item, Node, Slice
from smartfeeds.core.options import AccessModel
from smartfeeds.core.page import PagePlan
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.view import BARE, SMART, View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, access_of, no_such_node, view_of
from smartfeeds.service.pulls import key_of, read_page
from smartfeeds.service.requests import FeedOrigin, FeedPage, Page, PullFeed
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.store.base import ReadTx


def pull_feed(tx: ReadTx, context: Context, request: PullFeed) -> FeedPage | IndexFirst:
    """One page of a view, and whether there is more on either side of it (A-10)."""
    located = locate_feed(tx, context, request)
    node, view = located.node, located.view
    located.check_read()
    # A feed with entries needs no reason for their number.
    fails = not node.live and any(origin.fails for origin in context.hooks.origins_of(tx, node.name))
    version = f"{version_of(node)}{'.fails' if fails else ''}"
    public = node.options.access_model is AccessModel.OPEN
    if version in request.known:
        return FeedPage(node, view, version, public)
    if view.filtered and (behind := index_first(tx, node, view)) is not None:
        return behind
    page_plan = context.policy.plan(request.page)
    items, result_set, more = read_page(tx, context, node, view, page_plan, look=True, brief=request.brief)
    # An item without content has no form that readers of documents understand. Its cursor stays in the result set.
    whole = tuple([item for item in items if not item.damaged])
    page = Page(request.node, whole, result_set, node.options.shows_publisher)
    outline = outline_of(tx, node.name) if request.outline else b""
    origins = origins_of(tx, context, node) if view.sync else ()
    if not items:
        return FeedPage(node, view, version, public, page, origins=origins, outline=outline, fails=fails)
    before = None
    if request.both_sides:
        edge = Edge(key_of(view.order, items[0]), items[0].item_no - 1)
        before = next(iter(tx.slice(node.node_no, Slice(view, 1, before=edge, newest=True))), None)
    return FeedPage(
        node,
        view,
        version,
        public,
        page,
        newer=_newer(tx, node, view, page_plan, items) if more is None else more,
        older=before is not None,
        before_us=None if before is None else key_of(view.order, before),
        origins=origins,
        local_files=context.hooks.local_files_of(tx, context, node, whole) if request.local else (),
        outline=outline,
    )


def outline_reader(node: str) -> str:
    """The name under which the store has the result of the `[[nno]]` section that fills a node (`ReadTx.documents`)."""
    return f"outline of {node}"


def outline_of(tx: ReadTx, node: str) -> bytes:
    """The result of the last round of the `[[nno]]` section that fills a node, as an NNO file; empty without one."""
    return next((document.content for document in tx.documents(outline_reader(node)).values()), b"")


def locate_feed(tx: ReadTx, context: Context, request: PullFeed) -> LocatedNode:
    """The node of exactly this name, and the view. Raises FeedError(ITEM_NOT_FOUND)."""
    node = tx.node(request.node)
    access = access_of(tx, context, node, request.actor) if node is not None else None
    if node is None or access is None or not (access.may_read or access.knows_node):
        raise no_such_node(tx, request.node)
    if not request.view:
        return LocatedNode(node, BARE if request.stock else SMART, access)
    view = view_of(node, request.view)
    if view is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this feed has no such parameter or value")
    return LocatedNode(node, view, access)


def origins_of(tx: ReadTx, context: Context, node: Node) -> tuple[FeedOrigin, ...]:
    """The feeds elsewhere that fill a node, for readers of sync data, who may follow them too (FS-021, SSE-015).

    An address with a secret of the operator is left out: without the secret it would lead nowhere.
    """
    origins = [
        FeedOrigin(origin.address, origin.title) for origin in context.hooks.origins_of(tx, node.name) if origin.visible
    ]
    return tuple(origin for origin in origins if without_secrets(origin.address) == origin.address)


def version_of(node: Node) -> str:
    """The version of all pages of a node: it changes with its items, its configuration and its readers, and not with
    its subscribers.

    Entity tags show it. The date of creation, which is public, distinguishes a node from a former one of this name; the
    number of the node would show how many nodes there are, closed ones included.
    """
    return f"{node.created_us}.{node.last_modified_us}.{node.audience // AUDIENCE_CHANGE}"


def _newer(tx: ReadTx, node: Node, view: View, page_plan: PagePlan, items: tuple[Item, ...]) -> bool:
    """Whether there are items behind the last one of a page that was read from the newer end."""
    if page_plan.before is None:
        return False
    after = Edge(key_of(view.order, items[-1]), items[-1].item_no)
    return bool(tx.slice(node.node_no, Slice(view, 1, after=after)))
