"""Matches the entries of a source with the items of a node (SRC-069, SRC-070, SRC-073).

Feeds repeat ids, change them all at once, or have none. The service therefore remembers each entry that it has stored,
and compares a document with what it remembers. All functions are pure.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeVar

from smartfeeds.formats.distinct import NO_WORDS, WEB, EntryWords

_STARTS: Final = ("http://", "https://", "http://www.", "https://www.")
_SEPARATOR: Final = "\n"  # no link contains one
# So many remembered entries of one link are compared by their words, the newest ones; their items must be read.
_COMPARED: Final = 1_000

K = TypeVar("K")
V = TypeVar("V")


class EntryPresence(Enum):
    """Whether the feed still has an entry (SRC-066, SRC-067)."""

    PRESENT = 0
    """It was in the last document, or the feed shows only its newest entries."""
    MISSED = 1
    """The last document of a complete feed did not have it."""
    RETRACTED = 2
    """The feed has retracted it."""


class EntryKey(NamedTuple):
    """The identity of an entry in a document: a digest of its id, and its link without what changes easily.

    Entries whose ids and links are equal are told apart by their words. In the memory all of them but the first have
    the id of their item behind the link.
    """

    identity: str
    link: str = ""

    @property
    def page(self) -> "EntryKey":
        """The key with the link alone."""
        return EntryKey(self.identity, self.link.partition(_SEPARATOR)[0])


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """An entry of a document. `digest` is that of its content. `by_link`: it has no id, so its identity is its link.
    `is_home`: its link is that of the whole feed or site, which names no single entry. `respelt`: the identities that
    it has if its id is an address with the other scheme, or with or without www."""

    key: EntryKey
    digest: str = ""
    words: EntryWords = NO_WORDS
    by_link: bool = False
    is_home: bool = False
    respelt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """An entry of a source that has an item. `entry_no` is 0 before it is stored. `digest` is that of the content."""

    key: EntryKey
    item_id: str
    digest: str = ""
    presence: EntryPresence = EntryPresence.PRESENT
    entry_no: int = 0


# The words of remembered entries, None for those whose items are not in the node any more.
WordsOf = Callable[[Sequence[SourceEntry]], Sequence[EntryWords | None]]


class NewId(Protocol):
    """Makes an item id of texts, always the same one of the same texts."""

    def __call__(self, *parts: str) -> str: ...


def respellings(text: str) -> list[str]:
    """The address with the other scheme, and with or without www; none if the text is no web address."""
    place = WEB.sub("", text)
    return [] if place == text else [start + place for start in _STARTS if start + place != text]


def assign_items(
    document: Sequence[DocumentEntry], known: Iterable[SourceEntry], words_of: WordsOf, new_id: NewId
) -> list[SourceEntry]:
    """The entry in the memory for each entry of a document, with the key that it has now; a new one if there is none.

    No two entries of the document get the same one. `known` are the remembered entries that have an identity or link of
    the document. A new entry gets its identity as item id. If another item has that id already, or other entries have
    the same identity and link, `new_id` makes one of the identity and of what tells the entries apart.
    """
    memory = _Memory(document, known)
    assigned: list[SourceEntry | None] = [None] * len(document)
    moved: list[tuple[int, SourceEntry]] = []
    shared: set[int] = set()
    for key, places in memory.places.items():
        remembered = memory.of_page(key)
        if len(places) == 1 and len(remembered) < 2 and not document[places[0]].by_link:
            assigned[places[0]] = remembered[0] if remembered else None
            elsewhere = None if remembered else memory.of_identity(key)
            moved += [] if elsewhere is None else [(places[0], elsewhere)]
            continue
        is_shared = len(places) > 1 or len(remembered) > 1 or document[places[0]].is_home
        shared.update(places if is_shared or remembered else ())
        for place, entry in _Page(document, places, remembered, is_shared=is_shared).matches(words_of).items():
            assigned[place] = entry
    for (place, entry), words in zip(moved, words_of([entry for _, entry in moved]) if moved else (), strict=True):
        # An id that a feed has for all its entries is none: link and words say that this is another entry.
        if words is None or {*_agreement(document[place].words, words)} - {None} != {False}:
            assigned[place] = entry
    for place, entry in _renames(document, assigned, memory, words_of):
        assigned[place] = entry
    return _completed(document, assigned, memory.entries, shared, new_id)


def _completed(
    document: Sequence[DocumentEntry],
    assigned: Sequence[SourceEntry | None],
    known: Sequence[SourceEntry],
    shared: Collection[int],
    new_id: NewId,
) -> list[SourceEntry]:
    """The entries with the keys that they have now, and new ones with the ids of their items."""
    taken = {entry.item_id for entry in known}
    keys = {entry.key for entry in known}
    result = []
    for place, (arrived, entry) in enumerate(zip(document, assigned, strict=True)):
        if entry is not None:
            mark = entry.key.link.partition(_SEPARATOR)[1:]
            result.append(replace(entry, key=EntryKey(arrived.key.identity, "".join((arrived.key.link, *mark)))))
            continue
        item_id, key = arrived.key.identity, arrived.key
        if place in shared:
            # The item gets the same id after the memory was lost, whichever of the entries comes first then.
            item_id = new_id(item_id, *(arrived.words[:2] if any(arrived.words[:2]) else (arrived.digest,)))
        while item_id in taken:
            item_id = new_id(item_id, key.link)
        if key in keys:
            key = EntryKey(key.identity, f"{key.link}{_SEPARATOR}{item_id}")
        taken.add(item_id)
        keys.add(key)
        result.append(SourceEntry(key, item_id))
    return result


class _Page:
    """The entries of a document with one identity and link, and the remembered ones.

    An entry with the same content is the same one. An entry that has changed is the same one if it has the same words,
    or if it continues the only remembered entry that has its title or its text. Any other entry is new, so no item is
    overwritten by another one. `is_shared`: the link is known to be that of several entries.
    """

    def __init__(
        self,
        document: Sequence[DocumentEntry],
        places: Sequence[int],
        remembered: Sequence[SourceEntry],
        *,
        is_shared: bool,
    ) -> None:
        self._document = document
        self._places = places
        self._remembered = remembered
        self._is_shared = is_shared
        self._free = set(remembered)
        self._matches: dict[int, SourceEntry] = {}

    def matches(self, words_of: WordsOf) -> dict[int, SourceEntry]:
        """The remembered entries by the places of the entries that they are."""
        self._match_content()
        if self._free and self._rest:
            # The words are read only if something has changed.
            compared = self._remembered[-_COMPARED:]
            words = dict(zip(compared, words_of(compared), strict=True))
            known = {entry: entry_words for entry, entry_words in words.items() if entry_words is not None}
            if self._is_shared:
                self._match_words(known)
                self._match_part(known, lambda words: words.title)
                self._match_part(known, lambda words: words.text)
            elif compared[0] not in known or is_version(self._words(self._rest[0]), known[compared[0]]):
                self._match(self._rest[0], compared[0])
        return self._matches

    @property
    def _rest(self) -> list[int]:
        return [place for place in self._places if place not in self._matches]

    def _words(self, place: int) -> EntryWords:
        return self._document[place].words

    def _match(self, place: int, entry: SourceEntry) -> None:
        self._matches[place] = entry
        self._free.remove(entry)

    def _match_content(self) -> None:
        by_digest = _listed((entry.digest, entry) for entry in self._remembered if entry.digest)
        for place in self._places:
            entries = by_digest.get(self._document[place].digest)
            if entries:
                self._match(place, entries.pop(0))

    def _match_words(self, known: Mapping[SourceEntry, EntryWords]) -> None:
        """Entries with the same words and other dates are the same if the feed has dated all its entries anew."""
        has_new_dates = not self._matches
        by_words = _listed((words[:2], entry) for entry, words in known.items() if entry in self._free)
        for words, places in _listed((self._words(place)[:2], place) for place in self._rest).items():
            for place, entry in zip(places, by_words.get(words, ()) if any(words) else (), strict=False):
                if has_new_dates or _agreement(self._words(place), known[entry])[2] is not False:
                    self._match(place, entry)

    def _match_part(self, known: Mapping[SourceEntry, EntryWords], part_of: Callable[[EntryWords], str]) -> None:
        uses = Counter(part_of(self._words(place)) for place in self._places)
        by_part = _listed((part_of(words), entry) for entry, words in known.items())
        for place in self._rest:
            words = self._words(place)
            part = part_of(words)
            entries = by_part.get(part, [])
            is_only = part and uses[part] == 1 and len(entries) == 1 and entries[0] in self._free
            if is_only and _is_version_among_others(words, known[entries[0]]):
                self._match(place, entries[0])


def _renames(
    document: Sequence[DocumentEntry], assigned: Sequence[SourceEntry | None], memory: "_Memory", words_of: WordsOf
) -> list[tuple[int, SourceEntry]]:
    """Returns the remembered entries that have new ids. A few new ids are new entries about old pages; many are a feed
    that has changed all its ids (SRC-073). An id with another scheme is that of the same entry in any case."""
    renames = [
        (place, entry)
        for place, (arrived, known) in enumerate(zip(document, assigned, strict=True))
        if known is None and (entry := memory.of_respelt(arrived) or memory.of_link(arrived.key)) is not None
    ]
    if 2 * len(renames) <= len(document):
        renames = [(place, entry) for place, entry in renames if entry.key.identity in document[place].respelt]
    words = words_of([entry for _place, entry in renames]) if renames else ()
    return [
        rename
        for rename, known in zip(renames, words, strict=True)
        if known is None or _is_rename(document[rename[0]], known)
    ]


def _is_rename(one: DocumentEntry, known: EntryWords) -> bool:
    """Whether an entry with a new id is the remembered one of its link. The ids say that they differ, so that something
    else must be equal."""
    if True not in _agreement(one.words, known):
        return False
    return _is_version_among_others(one.words, known) if one.is_home else is_version(one.words, known)


def is_version(one: EntryWords, known: EntryWords) -> bool:
    """Whether the only entry of a link is a later version of the only one that is remembered."""
    title, text, date = _agreement(one, known)
    if title is False and text is False:
        return date is True
    return bool(title or text) or date is not False


def _is_version_among_others(one: EntryWords, known: EntryWords) -> bool:
    """The same of an entry whose link is that of other entries too."""
    title, text, date = _agreement(one, known)
    if title is False:
        return text is True and date is True
    return bool(title or text) and date is not False


def _agreement(one: EntryWords, known: EntryWords) -> list[bool | None]:
    """Whether title, text and date are equal, None for what one of the two does not have."""
    pairs = zip(one, known, strict=True)
    return [None if ours in ("", None) or theirs in ("", None) else ours == theirs for ours, theirs in pairs]


def _listed(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    lists: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        lists[key].append(value)
    return lists


class _Memory:
    """The remembered entries by the parts of their keys, and the places in the document that have each part."""

    def __init__(self, document: Sequence[DocumentEntry], known: Iterable[SourceEntry]) -> None:
        self.entries = list(known)
        self.places = _listed((entry.key, place) for place, entry in enumerate(document))
        self._identities = Counter(entry.key.identity for entry in document)
        self._links = Counter(entry.key.link for entry in document)
        self._by_page = _listed((entry.key.page, entry) for entry in self.entries)
        self._by_identity = _listed((entry.key.identity, entry) for entry in self.entries)
        self._by_link = _listed((entry.key.page.link, entry) for entry in self.entries)

    def of_page(self, key: EntryKey) -> list[SourceEntry]:
        """The entries of this identity and link."""
        return self._by_page.get(key, [])

    def of_identity(self, key: EntryKey) -> SourceEntry | None:
        """The entry whose link has changed; none if several entries have this identity, now or before (SRC-070)."""
        entries = self._by_identity.get(key.identity, [])
        return entries[0] if len(entries) == 1 and self._identities[key.identity] == 1 else None

    def of_respelt(self, one: DocumentEntry) -> SourceEntry | None:
        """The only entry that has the id with another scheme, and that the document does not have any more."""
        entries = [entry for identity in one.respelt for entry in self._by_identity.get(identity, [])]
        is_only = len(entries) == 1 and self._identities[one.key.identity] == 1
        return entries[0] if is_only and entries[0].key.identity not in self._identities else None

    def of_link(self, key: EntryKey) -> SourceEntry | None:
        """The only entry of this link, if the document does not have it under its own identity."""
        entries = self._by_link.get(key.link, [])
        if not key.link or len(entries) != 1 or self._links[key.link] != 1 or key.identity in self._by_identity:
            return None
        return entries[0] if entries[0].key.identity not in self._identities else None
