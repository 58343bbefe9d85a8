"""Which item of a node an entry of a source is (SRC-069, SRC-070, SRC-073).

Feeds repeat ids, change them all at once, or give two entries the same one. The service therefore remembers each entry
that it has stored, and compares a document with what it remembers. All functions are pure.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

_WEB: Final = re.compile(r"^https?://(?:www\.)?", re.IGNORECASE)


class EntryPresence(Enum):
    """Whether the feed still has an entry (SRC-066, SRC-067)."""

    PRESENT = 0
    """It was in the last document, or the feed shows only its newest entries."""
    MISSED = 1
    """The last document of a complete feed did not have it."""
    RETRACTED = 2
    """The feed has retracted it."""


class EntryKey(NamedTuple):
    """What identifies an entry in a document: a digest of its id, and its link without what changes easily."""

    identity: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """An entry of a source that has an item. `entry_no` is 0 before it is stored. `digest` is that of the content."""

    key: EntryKey
    item_id: str
    digest: str = ""
    presence: EntryPresence = EntryPresence.PRESENT
    entry_no: int = 0


def link_key(link: str) -> str:
    """A link without scheme, www and slash at its end, which feeds change without meaning another page."""
    return _WEB.sub("", link).rstrip("/")


def assign_items(
    document: Sequence[EntryKey], known: Iterable[SourceEntry], new_id: Callable[[EntryKey], str]
) -> list[SourceEntry]:
    """The entry in the memory for each entry of a document, with the key that it has now; a new one if there is none.

    Two keys of the document differ. `known` are the remembered entries that have an identity or link of the document.
    A new entry gets its identity as item id. If another item has that id already, `new_id` makes one of the id and the
    link.
    """
    memory = _Memory(document, known)
    assigned = [memory.of_key(key) or memory.of_identity(key) for key in document]
    renames = [memory.of_link(key) if entry is None else None for key, entry in zip(document, assigned, strict=True)]
    # SRC-073: a few renames are new entries about old pages; many are a feed that changed all its ids.
    if 2 * sum(entry is not None for entry in renames) > len(document):
        assigned = [entry or rename for entry, rename in zip(assigned, renames, strict=True)]
    taken = {entry.item_id for entry in memory.entries}
    result = []
    for key, entry in zip(document, assigned, strict=True):
        if entry is not None:
            result.append(replace(entry, key=key))
            continue
        item_id = key.identity
        while item_id in taken:
            item_id = new_id(EntryKey(item_id, key.link))
        taken.add(item_id)
        result.append(SourceEntry(key, item_id))
    return result


class _Memory:
    """The remembered entries by the parts of their keys, and how often the document has each part."""

    def __init__(self, document: Sequence[EntryKey], known: Iterable[SourceEntry]) -> None:
        self.entries = list(known)
        self._identities = Counter(key.identity for key in document)
        self._links = Counter(key.link for key in document)
        self._by_key = {entry.key: entry for entry in self.entries}
        self._by_identity: dict[str, list[SourceEntry]] = {}
        self._by_link: dict[str, list[SourceEntry]] = {}
        for entry in self.entries:
            self._by_identity.setdefault(entry.key.identity, []).append(entry)
            self._by_link.setdefault(entry.key.link, []).append(entry)

    def of_key(self, key: EntryKey) -> SourceEntry | None:
        """The entry of this identity and link."""
        return self._by_key.get(key)

    def of_identity(self, key: EntryKey) -> SourceEntry | None:
        """The entry whose link has changed; none if several entries have this identity, now or before (SRC-070)."""
        entries = self._by_identity.get(key.identity, [])
        return entries[0] if len(entries) == 1 and self._identities[key.identity] == 1 else None

    def of_link(self, key: EntryKey) -> SourceEntry | None:
        """The only entry of this link, if the document does not have it under its own identity."""
        entries = self._by_link.get(key.link, [])
        if not key.link or len(entries) != 1 or self._links[key.link] != 1 or key.identity in self._by_identity:
            return None
        return entries[0] if entries[0].key.identity not in self._identities else None
