"""The look-ups that a request will make, so that a store can make those of a whole batch at once
(`store.base.Store`)."""

from typing import NamedTuple

from smartfeeds.core.position import Cursor


class Touch(NamedTuple):
    """A live node by name, the affiliation of a bare JID with it, items by id or sync id, the number of new items.

    `feed` is the feed of which `node` may name a view, "" if it can name none. `cursors` are the positions of a page.
    `quota_of` is the bare JID whose quotas the request counts against, "" if it counts nothing. `subscribes`: it is a
    subscription to the node, which counts; other requests that count are for a new node.

    A touch is a hint that saves round trips. A request that touches more, or less, has the same result.
    """

    node: str
    jid: str
    item_ids: tuple[str, ...] = ()
    new_items: int = 0
    feed: str = ""
    cursors: tuple[Cursor, ...] = ()
    quota_of: str = ""
    subscribes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of nodes."""
        return tuple(name for name in (self.node, self.feed) if name)

    @property
    def is_storable(self) -> bool:
        """Whether every database can store these texts: without NUL and lone surrogates. Other texts exist nowhere."""
        text = "".join((*self.names, self.jid, *self.item_ids))
        return "\0" not in text and (text.isascii() or text.encode("utf-8", "replace").decode() == text)
