"""Stored values: what their defaults say."""

from smartfeeds.core.filters import EntryMeta
from smartfeeds.core.model import Item, Node, NodeKind, NodeState, Slice
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.view import BARE


def test_node_new_has_given_out_no_keys_and_holds_nothing() -> None:
    node = Node(1, "n", NodeKind.FEED, "a@x", 5, NodeOptions(NodeKind.FEED))

    assert (node.state, node.total, node.live) == (NodeState.LIVE, 0, 0)
    assert (node.last_modified_us, node.last_created_us, node.audience) == (-1, -1, 0)


def test_item_new_is_live_and_in_its_first_revision() -> None:
    item = Item(0, "a", 1, 1, b"", "")

    assert (item.deleted, item.revision, item.notify) == (False, 1, False)


def test_slice_default_reads_from_the_oldest_without_bounds() -> None:
    wanted = Slice(BARE, 10)

    assert (wanted.after, wanted.before, wanted.newest, wanted.offset) == (None, None, False, 0)


def test_entry_meta_of_nothing_is_empty() -> None:
    assert EntryMeta() == EntryMeta(frozenset(), frozenset(), frozenset(), frozenset(), "", "", "")
