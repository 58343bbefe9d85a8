"""The numbers of answers to several items, from the filter index."""

from collections import Counter
from collections.abc import Mapping

from smartfeeds.core.filters import facet
from smartfeeds.store.base import ReadTx
from smartfeeds.store.rows import digest, placeholders

_KIND = "r"  # of the facets of `in-reply-to` (`core.filters.FILTERS`)


def count_replies(tx: ReadTx, node_no: int, ids: Mapping[str, int]) -> Mapping[int, int]:
    """Returns the number of answers by the number of the item, without items that have none. One statement, whose cost
    grows with the answers. `ids` are the numbers of the items by what answers name: no answer names two ids of an item.

    Bit 0 of the states is the present version. A deleted answer has no facets of its content.
    """
    numbers = {digest(facet(_KIND, text)): item_no for text, item_no in ids.items()}
    if not numbers:
        return {}
    rows = tx.db.rows(
        "SELECT facet, count(*) FROM facet"
        f" WHERE node_no = ? AND facet IN ({placeholders(numbers)}) AND states & 1 <> 0 GROUP BY facet",
        (node_no, *numbers),
    )
    counts: Counter[int] = Counter()
    for value, count in rows:
        counts[numbers[bytes(value)]] += count
    return counts
