"""What a write will look up, so that a store can read it for a whole group of writes at once (`store.base.Store`)."""

from typing import NamedTuple


class Touch(NamedTuple):
    """A live node by name, the affiliation of a bare JID with it, items by id or sync id, the number of new items.

    It is a hint that saves round trips. A write that touches more, or less, has the same result.
    """

    node: str
    jid: str
    item_ids: tuple[str, ...] = ()
    new_items: int = 0
