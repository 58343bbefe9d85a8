"""The numbers of answers to several items, from the filter index."""

from collections.abc import Sequence

from smartfeeds.core.filters import facet
from smartfeeds.store.base import ReadTx
from smartfeeds.store.rows import digest, placeholders

_KIND = "r"  # of the facets of `in-reply-to` (`core.filters.FILTERS`)


def count_replies(tx: ReadTx, node_no: int, ids: Sequence[str]) -> dict[str, int]:
    """Returns the number of answers that name each of these ids, without ids that none names. One statement, whose cost
    grows with the answers.

    Bit 0 of the states is the present version. A deleted answer has no facets of its content.
    """
    texts = {digest(facet(_KIND, text)): text for text in ids}
    if not texts:
        return {}
    rows = tx.db.rows(
        "SELECT facet, count(*) FROM facet"
        f" WHERE node_no = ? AND facet IN ({placeholders(texts)}) AND states & 1 <> 0 GROUP BY facet",
        (node_no, *texts),
    )
    return {texts[bytes(value)]: count for value, count in rows}
