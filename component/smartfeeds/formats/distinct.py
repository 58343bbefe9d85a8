"""Entries of one id: versions of one entry, or different entries of a feed without ids (SRC-069, SRC-070, A-124).

Entries are compared by their links and by their words.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from smartfeeds.core.times import format_datetime, parse_datetime
from smartfeeds.formats import atom
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.payload import Payload
from smartfeeds.formats.xml import Element, new_element, parse_stored

DIGEST_CHARACTERS: Final = 32  # 128 bits, because the memory of a source has one for each entry
# Two entries of one id may be two versions of one.
_LEAST_WITHOUT_IDS: Final = 3
_NO_TIME: Final = -(2**63)
_TEXTS: Final = (atom.TITLE, atom.SUMMARY, atom.CONTENT)
WEB: Final = re.compile(r"^https?://(?:www\.)?", re.IGNORECASE)


class EntryWords(NamedTuple):
    """The words of an entry: title and text, or digests of them, and the time of publication. "" and None are
    unknown."""

    title: str = ""
    text: str = ""
    published_us: int | None = None


NO_WORDS: Final = EntryWords()


class ComparedEntry(Protocol):
    """An entry of a document. `link` is `link_key` of its page."""

    @property
    def item(self) -> ImportedItem: ...

    @property
    def link(self) -> str: ...

    @property
    def words(self) -> EntryWords: ...


class _Entry(NamedTuple):
    """The simplest `ComparedEntry`."""

    item: ImportedItem
    link: str
    words: EntryWords


def link_key(link: str) -> str:
    """A link without scheme, www and slash at its end, which feeds change without meaning another page."""
    return WEB.sub("", link).rstrip("/")


def page_of(root: Element) -> str:
    """The address of the page of an entry, "" if it has none."""
    links = root.iterchildren(atom.LINK)
    return next((link.get("href", "").strip() for link in links if link.get("rel", "alternate") == "alternate"), "")


def words_in(root: Element) -> EntryWords:
    """The title of an entry, a digest of its text or else of its enclosures, and the time of its publication."""
    title, *texts = [
        "" if (node := root.find(tag)) is None else " ".join(atom.string_of(node).split()) for tag in _TEXTS
    ]
    published = root.findtext(atom.PUBLISHED)
    # An episode without a text is told apart by its file.
    files = [link.get("href", "") for link in root.iterchildren(atom.LINK) if link.get("rel") == "enclosure"]
    text = "\n".join(filter(None, texts)) or "\n".join(files)
    digest = sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS] if text else ""
    return EntryWords(title, digest, parse_datetime(published) if published else None)


def places_of(group: Sequence[ComparedEntry]) -> set[int]:
    """The places of those entries of one identity, oldest first, that are no older version of another one."""
    # A later place is newer, except where times say otherwise.
    newest, *others = sorted(range(len(group)), key=lambda place: (_time_us(group[place].item), place), reverse=True)
    comparison = _Comparison(group)
    comparison.add(group[newest])
    different = {newest}
    for place in others:
        if not group[newest].item.deleted and not comparison.is_known(group[place]):
            comparison.add(group[place])
            different.add(place)
    return different


def told_apart(items: Sequence[ImportedItem]) -> dict[int, ImportedItem]:
    """The entries among items of a document that have one id, oldest first, by their places (SRC-069).

    If they have no id, but one link or an id that is no id, each of several entries gets an id of that link or id and
    of its own words, the same one in each document with several of them. A document that is read once may be a history
    with several versions of an entry, so more than the titles must differ (A-124). Empty if only the newest counts.
    """
    group = [_compared(item) for item in items]
    parts = [{entry.link for entry in group}, {entry.words.text for entry in group}]
    if _Comparison(group).has_id or not (items[0].by_link or len(group) in map(len, parts)):
        return {}
    different = places_of(group)
    if len(different) == 1:
        return {place: items[place] for place in different}
    uses = Counter(group[place].words[:2] for place in different)
    apart: dict[int, ImportedItem] = {}
    for place in sorted(different):
        item, words = items[place], group[place].words
        date = str(words.published_us) if uses[words[:2]] > 1 else ""
        own_id = digest_id(item.id, *words[:2], *filter(None, [date]))
        payload = item.payload if item.deleted else rewritten(item.payload, (), own_id, None)
        apart[place] = replace(item, id=own_id, payload=payload)
    return apart


def _compared(item: ImportedItem) -> "_Entry":
    root = parse_stored(item.payload)
    return _Entry(item, link_key(page_of(root)), words_in(root))


def _time_us(item: ImportedItem) -> int:
    return _NO_TIME if item.time_us is None else item.time_us


class _Comparison:
    """Compares the entries of one identity.

    An id tells entries apart if it is one (`has_id`): three entries with one id and three titles do not have ids.
    Entries with the same id are versions of one entry, unless link and words differ, or both title and text. Entries
    without an id are the same if their words and dates are.
    """

    def __init__(self, group: Iterable[ComparedEntry]) -> None:
        entries = [entry for entry in group if not entry.item.deleted]
        titles = {entry.words.title for entry in entries} - {""}
        self.has_id = not entries[:1] or not (
            entries[0].item.by_link or len(titles) == len(entries) >= _LEAST_WITHOUT_IDS
        )
        self._count = 0
        self._links: set[str] = set()
        self._parts: set[tuple[str, str, str]] = set()
        self._dates: dict[tuple[str, str], set[int | None]] = {}

    def add(self, entry: ComparedEntry) -> None:
        """Adds an entry to those that are known."""
        title, text, published_us = entry.words
        self._count += 1
        self._links.add(entry.link)
        self._parts |= {(entry.link, "title", title), (entry.link, "text", text)}
        self._dates.setdefault((title, text), set()).add(published_us)

    def is_known(self, entry: ComparedEntry) -> bool:
        """Whether a known entry is the same one."""
        title, text, published_us = entry.words
        if entry.item.deleted:
            return self._count > 0
        dates = self._dates.get((title, text))
        if not self.has_id:
            return dates is not None and (None in dates or published_us is None or published_us in dates)
        if dates is not None or entry.link not in self._links:
            return dates is not None
        parts = {(entry.link, "title", title), (entry.link, "text", text)}
        return not (title and text) or not parts.isdisjoint(self._parts)


def rewritten(payload: bytes, drop: Collection[str], atom_id: str, updated_us: int | None) -> Payload:
    """The entry without some elements, and with another atom:id and atom:updated unless these are empty."""
    root = parse_stored(payload)
    for child in list(root.iterchildren(*drop)) if drop else []:
        root.remove(child)
    values = [(atom.ID, atom_id), (atom.UPDATED, "" if updated_us is None else format_datetime(updated_us))]
    for tag, text in values:
        if text:
            node = root.find(tag)
            if node is None:
                node = new_element(tag, {None: atom.ATOM_NS})
                root.insert(0, node)
            node.text = text
    return Payload.of(root)
