"""A memory of the newest items that resources have received a short time ago, so that they are not sent again."""

from collections import Counter, OrderedDict

from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S

# A client that goes offline and comes online again without a pause, or changes its capabilities to and fro, would
# otherwise receive a hundred times the bytes that it sends.
REPEAT_S = 60
# A contact could invent a resource for each presence. Also the greatest number of its resources that are stored.
RESOURCES_MAX = 32
ENTRIES_MAX = 20_000  # some 10 MB; the oldest is dropped, so a resource may receive an item again earlier


class LastItems:
    """The newest items that were sent in the last `REPEAT_S` seconds. Memory only."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        # By resource, node and version of the item: when it was sent. In the order of time.
        self._sent_us: OrderedDict[tuple[Jid, str, str, int], int] = OrderedDict()
        self._counts: Counter[tuple[Jid, str]] = Counter()  # by bare JID and node

    def admit(self, jid: Jid, node: str, item_id: str, modified_us: int, now_us: int) -> bool:
        """Returns whether the newest item of a node may be sent to a resource now, and stores that it was sent."""
        while self._sent_us and now_us - next(iter(self._sent_us.values())) >= REPEAT_S * US_PER_S:
            self._drop_oldest()
        key, group = (jid, node, item_id, modified_us), (jid.bare, node)
        if key in self._sent_us or self._counts[group] >= RESOURCES_MAX:
            return False
        self._sent_us[key] = now_us
        self._counts[group] += 1
        if len(self._sent_us) > self._entries_max:
            self._drop_oldest()
        return True

    def clear(self) -> None:
        """Forgets all items."""
        self._sent_us.clear()
        self._counts.clear()

    def _drop_oldest(self) -> None:
        (jid, node, _, _), _ = self._sent_us.popitem(last=False)
        group = (jid.bare, node)
        self._counts[group] -= 1
        if not self._counts[group]:
            del self._counts[group]
