"""What goes between the two sides of a mirror, and which of it the other side is known to have."""

import hashlib
from collections import OrderedDict
from itertools import count
from typing import Final

from smartfeeds.formats.atom import FEED
from smartfeeds.formats.xml import Element, names_and_texts, parse_payload
from smartfeeds.service.publishing import FEED_METADATA_ID

KNOWN: Final = 20_000  # versions that all mirrors of a process remember together


class Peers:
    """Memory for all mirrors of a process: beyond `limit` versions the one seen longest ago is forgotten."""

    def __init__(self, limit: int = KNOWN) -> None:
        self.limit = limit
        self._numbers = count()
        self._versions: OrderedDict[tuple[int, str], bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._versions)

    def new(self) -> "Peer":
        """The other side of one more mirror, of which nothing is known."""
        return Peer(self, next(self._numbers))

    def note(self, number: int, sync_id: str, version: bytes) -> None:
        """The other side with this number has that version of an item."""
        self._versions[number, sync_id] = version
        self._versions.move_to_end((number, sync_id))
        if len(self._versions) > self.limit:
            self._versions.popitem(last=False)

    def version(self, number: int, sync_id: str) -> bytes | None:
        """Which version it was last seen to have."""
        return self._versions.get((number, sync_id))


class Peer:
    """Which version of an item the other side was last seen to have, as far as it is remembered; see `digest`.

    It keeps changes from being sent back to where they came from. What is forgotten is sent once more at worst, which
    changes nothing there.
    """

    def __init__(self, peers: Peers, number: int) -> None:
        self._peers = peers
        self._number = number

    def note(self, sync_id: str, version: bytes) -> None:
        """The other side has this version."""
        self._peers.note(self._number, sync_id, version)

    def has(self, sync_id: str, version: bytes) -> bool:
        """Whether it is known to have just this version."""
        return self._peers.version(self._number, sync_id) == version


def digest(root: Element) -> bytes:
    """What tells versions of an item apart: its content and its sync data, whatever prefixes servers have chosen.

    `root` is the item with its sx:sync. The history alone does not tell: twins have the same one (A-59).
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in names_and_texts(root):
        hasher.update(repr(part).encode())
    return hasher.digest()


def tells_of_feed(item_id: str, payload: bytes) -> bool:
    """Whether an item is what a feed says of itself (XEP-0277), which is each service's own. Raises FeedError."""
    return item_id == FEED_METADATA_ID and parse_payload(payload).tag == FEED
