"""The filters of views as one table: `FILTERS` (Smart Feeds, XMPP: parameters of a node name; SF-015, A-24).

A row gives the parameter name, how its values are read, which facets of an item it is compared with, its JSON schema
and its description. Parsing, the filter index, pulls, pushes, the OpenAPI document, service discovery and the table in
`docs/http.md` follow from the rows. A new filter is a new row, and a new schema that rebuilds the filter index if the
row reads facets that the index does not have yet (`store/upgrades/0037_sqlite.sql`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from operator import attrgetter

from smartfeeds.core.text import LANGUAGE_RANGE_PATTERN, MAX_LANGUAGE_CHARACTERS, is_language_range, words
from smartfeeds.errors import Condition, FeedError

MAX_FILTER_VALUES = 32
MAX_QUERY_WORDS = 32  # each word is a look-up of its own in the index
# The cost of folding and NFKC grows with the values. NFKC makes a word up to six times longer, so the canonical text of
# a view can have more bytes than a node name (1,023), and stored subscriptions with such texts must stay readable.
MAX_FILTER_BYTES = 8_192
MAX_CATEGORY_PARTS = 8  # each part adds two facets to an item

ParameterSchema = Mapping[str, object]


class LastChange(Enum):
    """The last change of an item, for the parameter `kind`."""

    NEW = "new"
    EDITED = "edited"
    DELETED = "deleted"

    __hash__ = object.__hash__  # that of Enum is a function of Python, and every publish hashes one


@dataclass(frozen=True, slots=True)
class EntryMeta:
    """The properties of an entry that filters and message bodies use, read by `formats.atom.read_meta`.

    `authors` are names, addresses and URIs; `replies_to` the references of thr:in-reply-to, and `replied_ids` the ids
    of items that these references state, as addresses do; `text` the plain text that is searched; `body` the title,
    else the summary (xep-map 180); `language` the tag that the entry declares, or inherited from its feed when it was
    imported.
    """

    authors: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    replies_to: frozenset[str] = frozenset()
    replied_ids: frozenset[str] = frozenset()
    text: str = ""
    body: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class FacetIndex:
    """A kind of facet: `kind` is its prefix in the filter index.

    `entry` reads the values from the content of an item. `change` reads them from its publisher and its last change; a
    deleted item has only these (SF-013).
    """

    kind: str
    entry: Callable[[EntryMeta], Iterable[str]] | None = None
    change: Callable[[str, LastChange], Iterable[str]] = lambda _publisher, _change: ()


@dataclass(frozen=True, slots=True)
class ViewFilter:
    """A row of the table.

    `parse` returns the values in their canonical spelling, or None if one is not valid, or raises
    FeedError(BAD_REQUEST) with the reason; callers use `read`, which limits what it parses. A version matches if it has
    one of the values in `index` or `second_index`; in a node that shows its publishers, `publisher_index` replaces
    `index`. A filter without an index compares the words of the text, which must all occur. `broad`: a single value can
    select most of a feed.
    """

    name: str
    text: str
    schema: ParameterSchema
    parse: Callable[[Sequence[str]], frozenset[str] | None]
    index: FacetIndex | None = None
    publisher_index: FacetIndex | None = None
    second_index: FacetIndex | None = None
    broad: bool = False

    def read(self, values: Sequence[str]) -> frozenset[str] | None:
        """Returns what `parse` returns, or None for more than MAX_FILTER_VALUES values or a value with U+0000.

        Raises FeedError(BAD_REQUEST) as `parse` does, and for values of more than MAX_FILTER_BYTES together, as written
        or in their canonical spelling. So `read` accepts all canonical spellings.
        """
        if len(values) > MAX_FILTER_VALUES or any("\0" in value for value in values):
            return None
        self._check_size(values)
        selected = self.parse(values)
        if selected is not None:
            self._check_size(self.write(selected))
        return selected

    def _check_size(self, values: Sequence[str]) -> None:
        size_bytes = sum(len(value.encode(errors="surrogatepass")) for value in values)
        if size_bytes > MAX_FILTER_BYTES:
            raise FeedError(
                Condition.BAD_REQUEST,
                f"the values of {self.name} have {size_bytes} bytes; the limit is {MAX_FILTER_BYTES}",
            )

    def facets(self, values: Iterable[str], *, publishers: bool) -> frozenset[str]:
        """Returns the facets of which a version must have one, or no facets for a filter by words."""
        index = self.publisher_index or self.index if publishers else self.index
        indexes = [each for each in (index, self.second_index) if each is not None]
        return frozenset(facet(each.kind, value) for value in values for each in indexes)

    def write(self, values: Iterable[str]) -> list[str]:
        """Returns the values as parameters of a canonical view."""
        return [" ".join(sorted(values))] if self.index is None else sorted(values)


def facet(kind: str, value: str) -> str:
    """Returns a facet, one comparable property of a version: its kind and the folded value."""
    return f"{kind}:{_known_fold(value) if len(value) <= _KNOWN_CHARACTERS else fold(value)}"


def fold(value: str) -> str:
    """Returns a text in the form that is compared. Folding twice changes nothing, so canonical views stay the same."""
    folded = value.strip().casefold()
    while folded.startswith("xmpp:"):
        folded = folded.removeprefix("xmpp:").strip()
    return folded


# Most items share their authors and categories. Longer values could fill the memory.
_KNOWN_CHARACTERS = 100
_known_fold = lru_cache(1_024)(fold)


def category_names(term: str) -> set[str]:
    """Returns the values that select a category: the term, and for a path each part and each parent path (A-139).

    Empty parts are left out. A URL is not a path, and a path with too many parts is selected by the whole term only.
    """
    if "/" not in term:
        return {term}
    parts = [part for part in term.split("/") if part.strip()]
    if "://" in term or len(parts) > MAX_CATEGORY_PARTS:
        return {term}
    return {term, *parts, *("/".join(parts[:count]) for count in range(1, len(parts) + 1))}


def _names_of_categories(entry: EntryMeta) -> Iterable[str]:
    return [name for term in entry.categories for name in (category_names(term) if "/" in term else (term,))]


_AUTHORS = attrgetter("authors")  # called for each publish, so no function of Python


def language_ranges(tag: str) -> list[str]:
    """Returns the language ranges that match a tag by basic filtering: the tag and its prefixes (RFC 4647 3.3.1)."""
    subtags = tag.split("-")
    return ["-".join(subtags[:count]) for count in range(1, len(subtags) + 1)] if tag else []


def _texts(values: Sequence[str]) -> frozenset[str] | None:
    folded = frozenset(map(fold, values))
    return None if "" in folded else folded


def _languages(values: Sequence[str]) -> frozenset[str] | None:
    return frozenset(map(fold, values)) if all(map(is_language_range, values)) else None


def _changes(values: Sequence[str]) -> frozenset[str] | None:
    return frozenset(values) if set(values) <= {change.value for change in LastChange} else None


def _words(values: Sequence[str]) -> frozenset[str] | None:
    text = " ".join(values).strip()
    query = words(text)
    # No words would select the whole feed, as an empty search field does; nobody who types a text expects that.
    if text and not query:
        raise FeedError(Condition.BAD_REQUEST, "q has no letters or digits to search for")
    return query if len(query) <= MAX_QUERY_WORDS else None


# Not blank, and without U+0000. U+001C to U+001F are blanks for Python, and not in every dialect of patterns.
_TEXT: ParameterSchema = {"type": "string", "pattern": r"^[^\u0000]*[^\s\u0000\u001c-\u001f\u0085][^\u0000]*$"}
# Nothing selects all items, as an empty search field does. Any other text needs a letter or a digit. In the dialect of
# JSON Schema (ECMA-262, 22.2) \w has only those of ASCII, so other characters are accepted whatever they are.
_QUERY: ParameterSchema = {"type": "string", "pattern": r"^\s*$|^[^\u0000]*([0-9A-Za-z]|[^\u0000-\u007f])[^\u0000]*$"}
# RFC 4647 2.1, without "*": the index has no facet for "any language".
_LANGUAGE_RANGE: ParameterSchema = {
    "type": "string",
    "pattern": f"^{LANGUAGE_RANGE_PATTERN}$",
    "maxLength": MAX_LANGUAGE_CHARACTERS,
}
_TEXTS: ParameterSchema = {"type": "array", "items": _TEXT, "maxItems": MAX_FILTER_VALUES}

_REFERENCES = FacetIndex("r", attrgetter("replies_to"))

FILTERS: Mapping[str, ViewFilter] = {
    row.name: row
    for row in (
        ViewFilter(
            "author",
            "items whose author or publisher has this name, address or URI; repeatable, any of them",
            _TEXTS,
            _texts,
            FacetIndex("a", _AUTHORS),
            # A facet of its own: a condition on two facets would sort all their items for every page.
            FacetIndex("p", _AUTHORS, lambda publisher, _: [publisher]),
        ),
        ViewFilter(
            "category",
            "items with this category, or with a category path that has this part; repeatable, any of them",
            _TEXTS,
            _texts,
            FacetIndex("c", _names_of_categories),
        ),
        ViewFilter(
            "in-reply-to",
            "items that reply to the item with this id or address; repeatable, any of them",
            _TEXTS,
            _texts,
            _REFERENCES,
            # A facet of its own: an id alone means an item of any feed, and an address that of one.
            second_index=FacetIndex("i", attrgetter("replied_ids")),
        ),
        ViewFilter(
            "kind",
            "new, edited or deleted: the last change of the item; repeatable, any of them",
            {"type": "array", "items": {"enum": [change.value for change in LastChange]}},
            _changes,
            FacetIndex("k", change=lambda _, change: [change.value]),
            broad=True,
        ),
        ViewFilter(
            "lang",
            "items in this language: en also selects en-GB (RFC 4647 basic filtering); repeatable, any of them",
            {"type": "array", "items": _LANGUAGE_RANGE, "maxItems": MAX_FILTER_VALUES},
            _languages,
            FacetIndex("l", lambda entry: language_ranges(entry.language) if entry.language else ()),
            broad=True,
        ),
        ViewFilter("q", "items whose text contains all these words; at least one letter or digit", _QUERY, _words),
    )
}
# The answers to one item are those that name one of its ids and addresses as it is. This row is no parameter.
REPLIES_BY_REFERENCE = "reference"
ROWS: Mapping[str, ViewFilter] = {
    **FILTERS,
    REPLIES_BY_REFERENCE: ViewFilter(REPLIES_BY_REFERENCE, "", _TEXTS, _texts, _REFERENCES),
}
_INDEXES = [
    index
    for row in FILTERS.values()
    for index in (row.index, row.publisher_index, row.second_index)
    if index is not None
]
_ENTRY_READERS = [(index.kind, index.entry) for index in _INDEXES if index.entry is not None]
_KNOWN_PUBLISHERS = 1_024  # most items are by few publishers


def entry_facets(entry: EntryMeta) -> frozenset[str]:
    """Returns the facets of a version that come from the content of the item."""
    # Loops: an entry is indexed for each publish, and a generator is a call for each of its values.
    facets: set[str] = set()
    for kind, read in _ENTRY_READERS:
        for value in read(entry):
            if value:
                facets.add(f"{kind}:{_known_fold(value) if len(value) <= _KNOWN_CHARACTERS else fold(value)}")
    return frozenset(facets)


@lru_cache(_KNOWN_PUBLISHERS)
def change_facets(publisher: str, change: LastChange) -> frozenset[str]:
    """Returns the facets of a version that come from its publisher and its last change."""
    return frozenset(
        facet(index.kind, value) for index in _INDEXES for value in index.change(publisher, change) if value
    )
