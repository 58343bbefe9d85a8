"""Memory of the versions of items that the other side of a mirror has, so that they are not sent back to it."""

import hashlib
from collections import OrderedDict
from typing import Final

from smartfeeds.formats.xml import Element, names_and_texts, parse_payload
from smartfeeds.service.publishing import FEED_ITEMS

KNOWN: Final = 20_000  # versions that all mirrors of a process remember together: some 5 MB


class PeerMemory:
    """Memory for all mirrors of a process: beyond `limit` versions the one seen longest ago is forgotten."""

    def __init__(self, limit: int = KNOWN) -> None:
        self.limit = limit
        self.versions: OrderedDict[tuple[Peer, str], bytes] = OrderedDict()  # by peer and sync id


class Peer:
    """The version of each item that the other side last sent or received, while it is remembered; see `digest`.

    It keeps changes from being sent back to where they came from. A version that is forgotten is sent once more at
    worst, which changes nothing there.
    """

    def __init__(self, memory: PeerMemory) -> None:
        self._memory = memory

    def note(self, sync_id: str, version: bytes) -> None:
        """Records that the other side has this version."""
        versions = self._memory.versions
        versions[self, sync_id] = version
        versions.move_to_end((self, sync_id))
        if len(versions) > self._memory.limit:
            versions.popitem(last=False)

    def has(self, sync_id: str, version: bytes) -> bool:
        """Whether it is known to have just this version."""
        return self._memory.versions.get((self, sync_id)) == version


def digest(root: Element) -> bytes:
    """The digest of a version of an item: of its content and its sync data, without the prefixes of namespaces.

    `root` is the item with its sx:sync. The history alone is not enough, because twins have the same one (A-59).
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in names_and_texts(root):
        hasher.update(repr(part).encode())
    return hasher.digest()


def tells_of_feed(item_id: str, payload: bytes) -> bool:
    """Whether an item describes the feed itself (XEP-0277), which is each service's own. Raises FeedError."""
    return item_id in FEED_ITEMS and parse_payload(payload).tag == FEED_ITEMS[item_id]
