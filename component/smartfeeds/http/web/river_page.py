"""The pages with entries of several feeds: the river and the search. Entries are cards with the beginning of the text.

A card of a search shows the part of the text where the words occur, and marks them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from smartfeeds.core.filters import FILTERS
from smartfeeds.core.model import Item, Node
from smartfeeds.core.text import cut
from smartfeeds.core.text import words as words_of
from smartfeeds.core.urls import SEARCH, entry_path, feed_path, list_path, river_path
from smartfeeds.core.view import View
from smartfeeds.formats.entry import Entry, EntryText, read_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http import negotiation as n
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.web.frame import Frame
from smartfeeds.service.river import ChangedNodes, River, SearchResult

CACHE_BYTES = 4 * 1024 * 1024
EXCERPT = 280  # characters of the text on a card
TITLE = 160
BEFORE_HIT = 60  # characters before the first word that a search found
# Of a text that is longer than this only the beginning is read: cards show little of it.
READ_CHARACTERS = 16_384
_WORD = re.compile(r"[^\W_]+")
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Card:
    """An entry as a card. `title` and `excerpt` are HTML, `path` is the page of the entry."""

    title: Markup
    excerpt: Markup
    path: str
    author: str
    issued_us: int
    modified_us: int
    edited: bool
    language: str
    feed_title: str
    feed_path: str


class RiverPages:
    """Writes the pages, and caches the cards of the entries that are read most. Used by one thread at a time."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._cards: ByteCache[tuple[int, str, str, int, int], Card] = ByteCache(cache_bytes)

    def river(
        self,
        frame: Frame,
        river: River,
        next_path: str,
        feeds: ChangedNodes,
        headlines: Mapping[str, Item],
        *,
        first: bool,
    ) -> bytes:
        """A page of the river; on the `first` one, `feeds` are beside it with their newest entries."""
        return frame.page(
            "river.html",
            cards=[self._card(entry.node, entry.item) for entry in river.entries],
            feeds=[
                {
                    "node": node,
                    "title": title_of(node),
                    "path": feed_path(node.name),
                    "headline": self._of(node, headlines),
                }
                for node in feeds.nodes
            ],
            total=feeds.total,
            first=first,
            next_path=next_path,
            atom=river_path(n.ATOM.suffix),
            nno=list_path(n.NNO.suffix),
            opml=list_path(n.OPML.suffix),
            search=SEARCH,
        )

    def search(self, frame: Frame, view: View, text: str, words: str, result: SearchResult, next_path: str) -> bytes:
        """A page of the search: `text` is its query string, `words` the value of `q`."""
        return frame.page(
            "search.html",
            feeds=[
                {
                    "title": title_of(hits.node),
                    "path": feed_path(hits.node.name),
                    "all_path": f"{feed_path(hits.node.name)}?{text}" if hits.more else "",
                    "cards": [make_card(hits.node, item, view.query) for item in hits.items],
                }
                for hits in result.feeds
            ],
            words=words,
            filters=[(name, ", ".join(sorted(values))) for name, values in view.filters if FILTERS[name].index],
            filtered=view.filtered,
            searched=result.searched,
            next_path=next_path,
            search=SEARCH,
        )

    def _of(self, node: Node, headlines: Mapping[str, Item]) -> Card | None:
        item = headlines.get(node.name)
        return None if item is None else self._card(node, item)

    def _card(self, node: Node, item: Item) -> Card:
        key = (node.node_no, node.name, title_of(node), item.item_no, item.modified_us)
        card = self._cards.get(key)
        if card is None:
            card = make_card(node, item)
            self._cards.put(key, card, 4 * (len(card.title) + len(card.excerpt) + len(card.path)))
        return card


def make_card(node: Node, item: Item, words: frozenset[str] = _NOTHING) -> Card:
    """An entry as a card; `words` are those of a search."""
    entry = read_entry(item)
    text = _text(entry)
    title = cut(entry.title.plain, TITLE)
    return Card(
        title=marked(title or cut(text, TITLE // 2), words),
        # Without a title the beginning of the text stands for it.
        excerpt=marked(_around(text, words, 0 if title else TITLE // 2 - 1), words),
        path=entry_path(node.name, item.id),
        author=", ".join(author.label for author in entry.authors[:3]),
        issued_us=entry.issued_us,
        modified_us=item.modified_us,
        edited=item.revision > 1,
        language=entry.language,
        feed_title=title_of(node),
        feed_path=feed_path(node.name),
    )


def marked(text: str, words: frozenset[str]) -> Markup:
    """A text as HTML with the words of a search marked."""
    parts: list[str] = []
    end = 0
    for match in _hits(text, words):
        parts += [escape(text[end : match.start()]), Markup("<mark>"), escape(match[0]), Markup("</mark>")]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _hits(text: str, words: frozenset[str]) -> list["re.Match[str]"]:
    """The words of a text that a search for `words` finds."""
    return [match for match in _WORD.finditer(text) if words_of(match[0]) & words] if words else []


def _around(text: str, words: frozenset[str], start: int) -> str:
    """The part of a text with the first hit of a search, or its beginning behind `start`."""
    hits = _hits(text, words)
    if hits and hits[0].end() > EXCERPT:
        start = max(hits[0].start() - BEFORE_HIT, start)
        start = text.find(" ", start, hits[0].start()) + 1 or start
    part = cut(text[start : start + EXCERPT + 1], EXCERPT)
    return f"\N{HORIZONTAL ELLIPSIS}{part}" if start and part else part


def _text(entry: Entry) -> str:
    """The beginning of the plain text of an entry: of the content, or of the summary if the content is empty."""
    for text in (entry.content, entry.summary):
        if isinstance(text, EntryText):
            plain = EntryText(text.kind, text.value[:READ_CHARACTERS]).plain
            if plain:
                return plain
    return ""
