"""The page of the river, and cards: entries of several feeds with the beginning of their text.

A card of a search shows the part of the text where the words occur, and marks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from smartfeeds.core.model import Item, Node
from smartfeeds.core.text import cut
from smartfeeds.core.urls import entry_path, feed_path, list_path, river_path
from smartfeeds.features.pages.answers import AnswerLink, links_of_item
from smartfeeds.features.pages.article import TitleUse, hit_of, shown_texts, title_use
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.highlight import beginning, mark_text, snippet
from smartfeeds.features.pages.river_requests import River
from smartfeeds.features.pages.sanitise import link_of
from smartfeeds.formats.authorship import other_publisher
from smartfeeds.formats.entry import Entry, EntryText, read_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.negotiation import ATOM
from smartfeeds.service.discovery import ChangedNodes

CACHE_BYTES = 2 * 1024 * 1024
TITLE = 160  # characters of a title on a card
# Of a text that is longer than this only the beginning is read, unless a search found words below it: cards show
# little of the text, and reading one with many tags takes 50 ms.
READ_CHARACTERS = 16_384
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Card:
    """An entry as a card. `title` and `excerpt` are HTML, `path` is the page of the entry, and `original` the page that
    it is about, "" if there is none. Without `has_heading` the title is for screen readers alone. `publisher` is that
    of `formats.authorship`."""

    title: Markup
    has_heading: bool
    excerpt: Markup
    path: str
    original: str
    author: str
    publisher: str
    issued_us: int
    modified_us: int
    edited: bool
    language: str
    feed_title: str
    feed_path: str
    answers: tuple[AnswerLink, ...] = ()


@dataclass(frozen=True, slots=True)
class RiverPlace:
    """The address of the site and of the next page of the river, "" without one. `first`: the page is the first one."""

    site_url: str
    next_path: str
    first: bool


class RiverPages:
    """Writes the pages, and caches the cards of the entries that are read most. Used by one thread at a time. `domain`
    is that of the component."""

    def __init__(self, domain: str, cache_bytes: int = CACHE_BYTES) -> None:
        self._domain = domain
        self._cards: ByteCache[tuple[object, ...], Card] = ByteCache(cache_bytes)

    def river(
        self,
        frame: Frame,
        river: River,
        place: RiverPlace,
        feeds: ChangedNodes,
        headlines: Mapping[str, Item],
    ) -> bytes:
        """A page of the river; on the first one, `feeds` are beside it with their newest entries."""
        return frame.page(
            "river.html",
            cards=[
                self._card(
                    entry.node,
                    entry.item,
                    links_of_item(frame.texts, entry.item, river.answered, self._domain, place.site_url),
                )
                for entry in river.entries
            ],
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
            first=place.first,
            next_path=place.next_path,
            atom=river_path(ATOM.suffix),
            nno=list_path("nno"),
            opml=list_path("opml"),
        )

    def _of(self, node: Node, headlines: Mapping[str, Item]) -> Card | None:
        item = headlines.get(node.name)
        return None if item is None else self._card(node, item)

    def _card(self, node: Node, item: Item, answers: tuple[AnswerLink, ...] = ()) -> Card:
        shows_publisher = node.options.shows_publisher
        key = (node.node_no, node.name, title_of(node), shows_publisher, item.item_no, item.modified_us, answers)
        card = self._cards.get(key)
        if card is None:
            card = make_card(node, item, answers=answers)
            self._cards.put(key, card, 4 * sum(map(len, (card.title, card.excerpt, card.path, card.original))))
        return card


def make_card(node: Node, item: Item, words: frozenset[str] = _NOTHING, answers: tuple[AnswerLink, ...] = ()) -> Card:
    """An entry as a card; `words` are those of a search, and `answers` are links to what the entry answers."""
    entry = read_entry(item)
    text = _text(entry)
    plain = "" if text is None else text.plain
    title = cut(entry.title.plain, TITLE)
    use = title_use(entry, text)
    if use is TitleUse.TEXT:
        plain = title
    excerpt = snippet(plain, words) or hit_of(entry, words) or beginning(plain)
    return Card(
        title=Markup(mark_text(title or cut(plain, TITLE // 2), words)),  # noqa: S704 - it was escaped
        has_heading=use is TitleUse.HEADING or not excerpt,
        excerpt=Markup(excerpt),  # noqa: S704 - it was escaped
        path=entry_path(node.name, item.id),
        original=link_of(entry.alternate),
        author=", ".join(author.label for author in entry.authors[:3]),
        publisher=other_publisher(node, item, entry),
        issued_us=entry.issued_us,
        modified_us=item.modified_us,
        edited=item.revision > 1,
        language=entry.language,
        feed_title=title_of(node),
        feed_path=feed_path(node.name),
        answers=answers,
    )


def _text(entry: Entry) -> EntryText | None:
    """The beginning of the text of an entry that has words: of the content, else of the summary."""
    starts = (EntryText(text.kind, text.value[:READ_CHARACTERS]) for text in shown_texts(entry))
    return next((start for start in starts if start.plain), None)
