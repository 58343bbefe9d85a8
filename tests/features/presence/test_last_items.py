"""The same newest item is not sent to a resource again at once."""

from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.presence.last_items import REPEAT_S, RESOURCES_MAX, LastItems

PHONE, DESK = Jid("bob", "x", "phone"), Jid("bob", "x", "desk")
LATER_US = REPEAT_S * US_PER_S


def test_item_is_sent_again_after_a_minute() -> None:
    items = LastItems()
    assert [items.admit(PHONE, "news", "one", 1, now_us) for now_us in (0, LATER_US - 1, LATER_US)] == [
        True,
        False,
        True,
    ]


def test_other_items_nodes_and_resources_are_sent_at_once() -> None:
    items = LastItems()
    for jid, node, item_id, modified_us in (
        (PHONE, "news", "one", 1),
        (PHONE, "news", "one", 2),
        (PHONE, "news", "two", 2),
        (PHONE, "mood", "one", 1),
        (DESK, "news", "one", 1),
    ):
        assert items.admit(jid, node, item_id, modified_us, 0)
    items.clear()
    assert items.admit(PHONE, "news", "one", 1, 0)


def test_invented_resources_are_bounded() -> None:
    """Otherwise a new resource for each presence would receive the item each time."""
    items = LastItems()
    resources = [Jid("bob", "x", f"r{number}") for number in range(2 * RESOURCES_MAX)]
    assert sum(items.admit(jid, "news", "one", 1, 0) for jid in resources) == RESOURCES_MAX
    assert items.admit(Jid("eve", "x", "r"), "news", "one", 1, 0)
    assert items.admit(PHONE, "news", "one", 1, LATER_US)


def test_memory_is_bounded() -> None:
    items = LastItems(entries_max=3)
    for number in range(10):
        assert items.admit(PHONE, f"n{number}", "one", 1, 0)
    assert (len(items._sent_us), len(items._counts)) == (3, 3)
    assert items.admit(PHONE, "n0", "one", 1, LATER_US)
    assert (len(items._sent_us), len(items._counts)) == (1, 1)
