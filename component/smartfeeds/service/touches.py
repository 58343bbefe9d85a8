"""What the store can look up ahead for a request (`core.touches`)."""

from smartfeeds.core.cursor import Cursor
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.position import cursors_in
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import split_name
from smartfeeds.service import requests as r

# Ids of one request, and items of a group: the look-up of a batch with many requests stays short.
MOST_ITEMS = 100
_MAY_NAME_NODE = r.GetNodeInfo | r.GetItemIds | r.GetSubscriptions | r.GetAffiliations
_COUNTED = r.CreateNode | r.EnsureNode | r.Subscribe


def touch_of(request: r.Request) -> Touch | None:
    """Returns what a request will look up, None if it is not about one node and counts against no quota."""
    if isinstance(request, r.PullFeed):
        feed = request.node if request.view else ""
        return Touch(request.node, request.actor.bare_text, feed=feed, cursors=_cursors(request.page))
    jid = request.actor.bare_text
    quota_of = jid if isinstance(request, _COUNTED) else ""
    if not isinstance(request, r.NodeRequest | _MAY_NAME_NODE) or not request.node:
        return Touch("", jid, quota_of=quota_of) if quota_of else None
    split = split_name(request.node) if "?" in request.node or "%" in request.node else None
    feed = "" if split is None else split[0]
    item_ids: tuple[str, ...] = ()
    cursors: tuple[Cursor, ...] = ()
    if isinstance(request, r.Pull):
        cursors = _cursors(request.page)
        item_ids = request.item_ids if len(request.item_ids) <= MOST_ITEMS else ()
    elif isinstance(request, r.Publish | r.Retract | r.GetItem):
        item_ids = (request.item_id,) if request.item_id else ()
    return Touch(request.node, jid, item_ids, int(isinstance(request, r.Publish)), feed, cursors, quota_of)


def _cursors(page: ResultSetRequest | None) -> tuple[Cursor, ...]:
    """Returns the cursors of a page. The use case reads the positions again, and refuses what is none."""
    texts = [text for text in (page.after, page.before) if text] if page is not None else []
    cursors = [cursor for text in texts for cursor in cursors_in(text)]
    return tuple(cursor for cursor in cursors if cursor.checksum and cursor.offset < MOST_ITEMS)
