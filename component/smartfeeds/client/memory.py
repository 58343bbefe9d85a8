"""The bounded memory of a follower: versions that it delivered, and cursors that it passed."""

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from smartfeeds.client.change import ReceivedItem

# Cursors that are known to be at or before the follower's position. Late pushes carry one of them. A late push with a
# forgotten cursor costs a pull and nothing else. 4,096 cursors of 40 characters take 0.7 MB.
PASSED = 4_096
# Leading characters of a fingerprint that identify the item; the rest identifies the version. They are short, because a
# stored position has a fingerprint for each change beyond its cursor. If two items of a page agreed in them, one could
# be delivered twice, or as CHANGED in place of NEW, but none would be lost.
ID_MARK = 16


@dataclass(slots=True)
class DeliveredVersion:
    """The version of an item that was delivered last.

    `push_expected` is true if a pull brought the version, because its push may still arrive.
    """

    mark: str
    push_expected: bool


@dataclass(slots=True)
class FollowMemory:
    """The newest versions by item, and passed cursors. `limit` bounds the number of versions."""

    limit: int
    versions: OrderedDict[str, DeliveredVersion] = field(default_factory=OrderedDict)
    cursors: OrderedDict[str, None] = field(default_factory=OrderedDict)
    before: dict[str, DeliveredVersion] = field(default_factory=dict)  # versions known before the feed was read again

    def get(self, item_id: str) -> DeliveredVersion | None:
        """Returns the version of an item that was delivered last, if the memory still has it."""
        return self.versions.get(item_id) or self.before.get(item_id)

    def read_again(self) -> None:
        """Prepares to read the feed again from its beginning.

        Old versions come first then. They must not displace the newest versions, which come last, so the versions known
        so far move to `before`.
        """
        self.before = {**self.before, **self.versions}
        self.versions.clear()
        while len(self.before) > self.limit:
            del self.before[next(iter(self.before))]

    def keep(self, item_id: str, mark: str, *, push_expected: bool) -> None:
        """Adds a version, and drops the version that was added first if there are more than `limit`."""
        self.before.pop(item_id, None)
        self.versions[item_id] = DeliveredVersion(mark, push_expected)
        self.versions.move_to_end(item_id)
        if len(self.versions) > self.limit:
            self.versions.popitem(last=False)

    def expects(self, item_id: str, mark: str) -> bool:
        """Returns whether a push of exactly this version may still arrive."""
        version = self.get(item_id)
        return version is not None and version.mark == mark and version.push_expected

    def push_came(self, item_id: str, mark: str) -> None:
        """Records that the push of this version arrived or was superseded."""
        version = self.get(item_id)
        if version is not None and version.mark == mark:
            version.push_expected = False

    def pass_by(self, *cursors: str | None) -> None:
        """Records that these cursors are at or before the follower's position."""
        for cursor in cursors:
            if cursor:
                self.cursors[cursor] = None
                self.cursors.move_to_end(cursor)
        while len(self.cursors) > PASSED:
            self.cursors.popitem(last=False)


def fingerprint(entry: ReceivedItem) -> str:
    """Returns a text that identifies a version of an item; its first `ID_MARK` characters identify the item."""
    item = blake2b(entry.item_id.encode(), digest_size=ID_MARK // 2).hexdigest()
    return item + blake2b((b"-" if entry.deleted else b"+") + entry.payload, digest_size=16).hexdigest()
