"""What a follower remembers, within bounds: the versions it has handed over, and cursors that it has passed."""

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from smartfeeds.client.change import Entry

PASSED = 4_096  # cursors known to lie at or before L
ID_MARK = 16


@dataclass(slots=True)
class Version:
    """What was last handed over of an item. `push_expected`: it was pulled, so its push may still be on the way."""

    mark: str
    push_expected: bool


@dataclass(slots=True)
class Memory:
    """A bounded memory of what lies behind: the newest versions by item, and passed cursors."""

    limit: int
    versions: OrderedDict[str, Version] = field(default_factory=OrderedDict)
    cursors: OrderedDict[str, None] = field(default_factory=OrderedDict)
    before: dict[str, Version] = field(default_factory=dict)  # while the feed is read again

    def get(self, item_id: str) -> Version | None:
        """What was last handed over of an item, as far as it is remembered."""
        return self.versions.get(item_id) or self.before.get(item_id)

    def read_again(self) -> None:
        """Old versions, read again first, must not push out the newest ones, which come last."""
        self.before = {**self.before, **self.versions}
        self.versions.clear()
        while len(self.before) > self.limit:
            del self.before[next(iter(self.before))]

    def keep(self, item_id: str, mark: str, *, push_expected: bool) -> None:
        """Remembers a version; the one that was kept longest ago is forgotten for it."""
        self.before.pop(item_id, None)
        self.versions[item_id] = Version(mark, push_expected)
        self.versions.move_to_end(item_id)
        if len(self.versions) > self.limit:
            self.versions.popitem(last=False)

    def expects(self, item_id: str, mark: str) -> bool:
        """Whether a push of just this version may still be on its way."""
        version = self.get(item_id)
        return version is not None and version.mark == mark and version.push_expected

    def push_came(self, item_id: str, mark: str) -> None:
        """Says that the push of this version is not to be expected any more."""
        version = self.get(item_id)
        if version is not None and version.mark == mark:
            version.push_expected = False

    def pass_by(self, *cursors: str | None) -> None:
        """Remembers that these cursors lie at or before L."""
        for cursor in cursors:
            if cursor:
                self.cursors[cursor] = None
                self.cursors.move_to_end(cursor)
        while len(self.cursors) > PASSED:
            self.cursors.popitem(last=False)


def fingerprint(entry: Entry) -> str:
    """A text that tells one version of an item from every other; its first `ID_MARK` characters name the item."""
    item = blake2b(entry.item_id.encode(), digest_size=8).hexdigest()
    return item + blake2b((b"-" if entry.deleted else b"+") + entry.payload, digest_size=16).hexdigest()
