"""The messages of webhooks: changes of a feed as JSON, with a signature (docs/recipes.md).

An item is that of a pull over HTTP, with its cursor and the cursor of the item before it in the view. A receiver that
stores the cursor of the last item sees by the next `previous_cursor` whether it has missed anything (SF-044, SF-049).
"""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.model import Item, Mark, Node
from smartfeeds.core.urls import feed_path
from smartfeeds.delivery.slices import newest_cursor, read_view_changes
from smartfeeds.features.webhook.settings import Webhook
from smartfeeds.formats.json_text import dump_json
from smartfeeds.formats.plain_activity import write_item
from smartfeeds.http.encode import is_comments
from smartfeeds.service.context import Context
from smartfeeds.service.pulls import cursor_of
from smartfeeds.service.steps import IndexFirst
from smartfeeds.store.base import ReadTx

SIGNATURE: Final = "X-Hub-Signature-256"
MESSAGE_BYTES: Final = 500_000  # of payloads in one message, unless one item has more


@dataclass(frozen=True, slots=True)
class WebhookBatch:
    """The next changes for a webhook. `cursors` are those of the items, behind the cursor of the item before them.

    `end` is the mark behind the changes, and `more` says that others may follow.
    """

    node: Node
    items: tuple[Item, ...]
    cursors: tuple[str, ...]
    end: Mark
    more: bool


def read_batch(
    tx: ReadTx, context: Context, node: Node, webhook: Webhook, mark: Mark, limit: int
) -> WebhookBatch | IndexFirst:
    """Returns the next changes above a mark."""
    view = webhook.view
    changes = read_view_changes(tx, context, node, view, mark, limit, MESSAGE_BYTES)
    if isinstance(changes, IndexFirst):
        return changes
    cursors: tuple[str, ...] = ()
    if changes.items:
        own = (cursor_of(tx, node.node_no, view.order, item) for item in changes.items)
        cursors = (newest_cursor(tx, node, view, mark), *own)
    return WebhookBatch(node, changes.items, cursors, changes.end, changes.more)


def write_message(batch: WebhookBatch, webhook: Webhook, site_url: str) -> bytes:
    """Returns the body of a message. `site_url` is the public address of this service, "" if it has none."""
    query = webhook.filter
    url = f"{site_url}{feed_path(batch.node.name)}" + (f"?{query}" if query else "")
    head = {
        "webhook": webhook.name,
        "feed": batch.node.name,
        "filter": query,
        **({"url": url} if site_url else {}),
        "count": len(batch.items),
        "previous_cursor": batch.cursors[0],
        "last_cursor": batch.cursors[-1],
    }
    return b'%b,"items":[%b]}' % (dump_json(head)[:-1], b",".join(_items(batch)))


def _items(batch: WebhookBatch) -> Iterator[bytes]:
    comments = is_comments(batch.node)
    for number, item in enumerate(batch.items):
        chain = dump_json({"cursor": batch.cursors[number + 1], "previous_cursor": batch.cursors[number]})
        yield b"%b,%b" % (write_item(item, comments=comments)[:-1], chain[1:])


def headers_of(body: bytes, secret: str) -> dict[str, str]:
    """Returns the headers of a message, with the signature of its bytes (RFC 2104) if there is a secret."""
    headers = {"Content-Type": "application/json"}
    if secret:
        headers[SIGNATURE] = f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"
    return headers
