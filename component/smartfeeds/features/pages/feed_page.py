"""The page of a feed (ESS-024; XEP-0060, URI Query Types; XEP-0147).

The page works without a script. Its script listens to the event stream of the view and fetches each change as an HTML
page from here, so the content that it adds is sanitised too.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup

from smartfeeds.chat.grammar import quote
from smartfeeds.core.model import Item, Node
from smartfeeds.core.text import words
from smartfeeds.core.times import format_t
from smartfeeds.core.urls import (
    ENCLOSURES,
    GUESTS,
    OUTLINE,
    WRITE,
    entry_path,
    feed_path,
    list_path,
    message_uri,
    subscribe_uri,
)
from smartfeeds.core.view import Order
from smartfeeds.features.pages.answers import links_of_item
from smartfeeds.features.pages.article import NOTHING_BESIDE, Article, Beside, article, may_delete, may_edit
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.reply_requests import NO_REPLY_CONTEXT, ReplyContext
from smartfeeds.features.pages.sanitise import link_of
from smartfeeds.formats.feed_details import load_details, title_of
from smartfeeds.formats.representation import Representation
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.encode import PageAddress, is_feed, items_of, last_cursor, total_of
from smartfeeds.http.negotiation import ATOM
from smartfeeds.service.requests import FeedPage
from smartfeeds.texts import N_

CACHE_BYTES = 4 * 1024 * 1024
_NNO = list_path("nno")
_WORDS = {"json": N_("ActivityStreams, with cursors"), "ess": N_("times and checksums of the entries")}
_RAIL = 20  # authors and categories beside the entries


class FeedPageWriter:
    """Writes pages of feeds, and caches the entries that are read most. `domain` is that of the component,
    `linked` are the formats that a page links to."""

    def __init__(self, domain: str, linked: tuple[Representation, ...], cache_bytes: int = CACHE_BYTES) -> None:
        self._domain = domain
        self._linked = linked
        self._articles: ByteCache[tuple[object, ...], Article] = ByteCache(cache_bytes)

    def feed(
        self, frame: Frame, answer: FeedPage, place: PageAddress, context: ReplyContext = NO_REPLY_CONTEXT
    ) -> bytes:
        """A page of a feed, the newest entry on top (ESS-024)."""
        node, query = answer.node, place.query
        view = f"?{query.view}" if query.view else ""
        path = feed_path(place.name)
        newest = query.since is None and query.until is None
        smart = is_feed(node)
        subscribe, name = subscribe_uri(self._domain, place.name, query.view), f"{place.name}{view}"
        # Few clients know the address of a subscription, and all know that of a message (XEP-0147).
        chat = message_uri(self._domain, f"subscribe {quote(name)}") if frame.chat else ""
        sync = answer.view.sync
        search = _search(query.view)
        marks = words(search.words)
        local = f"{place.site_url}{ENCLOSURES}"
        besides = self._besides(frame, answer, place.site_url, context)
        articles = [
            self._article(frame, node, item, local, marks, besides.get(item.item_no, NOTHING_BESIDE), sync=sync)
            for item in reversed(items_of(answer))
        ]
        details = load_details(node.options.details)
        # Pictures become links, as in entries: a page loads nothing from other hosts.
        pictures = dict.fromkeys((details.channel.icon, details.channel.logo))
        return frame.page(
            "feed.html",
            title=title_of(node),
            node=node,
            description=node.options.description,
            language=node.options.language,
            details=details,
            pictures=[address for address in pictures if link_of(address)],
            path=path,
            write_path=entry_path(node.name, folder=WRITE),
            guests_path=feed_path(node.name, folder=GUESTS),
            outline_path=feed_path(node.name, folder=OUTLINE),
            here=f"{path}{view}",
            search=search,
            filters=_filters(path, query.view),
            order=answer.view.order.value if answer.view.smart else "",
            filtered=answer.view.filtered,
            articles=Markup("".join(each.html for each in articles)),  # noqa: S704 - each was made by a template
            authors=_most(name for each in articles for name in each.authors),
            categories=_most(term for each in articles for term in each.categories),
            count=len(articles),
            fails=answer.fails,
            total=total_of(answer) if answer.view.filtered else node.live,
            newest=newest,
            newer_path="" if newest else place.newer_url(answer).removeprefix(place.site_url),
            older_path=place.previous_url(answer).removeprefix(place.site_url),
            stream=f"{path}?{_changes(query.view)}" if smart else "",
            since=_since(answer, place),
            pages=place.page_url().removeprefix(place.site_url),
            more=answer.newer,
            offers=offers(place.name, view, self._linked) if smart else (),
            hub=place.hub_url if smart else "",
            self_url=place.base_url,
            nno=_NNO,
            address=f"{place.site_url}{feed_path(place.name, ATOM.suffix)}{view}",
            subscribe=subscribe,
            chat=chat,
            code=_code(chat or subscribe) if smart else "",
            domain=self._domain,
            name=name,
        )

    def _besides(self, frame: Frame, answer: FeedPage, site_url: str, context: ReplyContext) -> dict[int, Beside]:
        """The parts of articles about other entries, by the numbers of the items that have such parts."""
        besides = {item_no: Beside(replies=count) for item_no, count in context.counts.items()}
        for item in items_of(answer):
            if item.deleted:
                continue
            if links := links_of_item(frame.texts, item, context.answered, self._domain, site_url):
                besides[item.item_no] = besides.get(item.item_no, NOTHING_BESIDE)._replace(answers=links)
        return besides

    def _article(
        self,
        frame: Frame,
        node: Node,
        item: Item,
        local: str,
        search: AbstractSet[str],
        beside: Beside,
        *,
        sync: bool,
    ) -> Article:
        # An article is never invalidated: a change of anything in the key makes another one.
        key: tuple[object, ...] = (frame.language, node.node_no, node.name, item.item_no, item.modified_us, item.id)
        # Of the reader, an article shows only what the reader may do with the entry.
        key += (
            node.options.shows_publisher,
            sync,
            search,
            beside,
            item.left,
            frame.site_url,
            hash(item.payload),  # it has links to local files, which come and go
            frame.writing and frame.writing.publish,
            may_edit(frame, item),
            may_delete(frame, item),
        )
        made = self._articles.get(key)
        if made is None:
            made = article(frame, node, item, sync=sync, search=search, local=local, beside=beside)
            self._articles.put(key, made, len(made.html.encode("utf-8", "replace")))
        return made


def offers(name: str, view: str, linked: Iterable[Representation]) -> list[dict[str, str]]:
    """The links to the formats of a feed."""
    return [
        {
            "name": form.name,
            "media_type": form.bare_type,
            "path": f"{feed_path(name, form.suffix)}{view}",
            "words": _WORDS.get(form.suffix, N_("for feed readers")),
        }
        for form in linked
    ]


def _changes(view: str) -> str:
    """The query of the view with every change of the items that a view shows."""
    pairs = [pair for pair in parse_qsl(view, keep_blank_values=True) if pair[0] != "order"]
    return urlencode([*pairs, ("order", Order.MODIFIED.value)])


def _since(answer: FeedPage, place: PageAddress) -> str:
    """The position behind this page: the last item of a page of changes, or the last change of the feed."""
    last = last_cursor(answer, place.query)
    if place.query.since is not None and last:
        return f"cursor:{last}"
    return f"time:{format_t(answer.node.last_modified_us + 1)}"


class Search(NamedTuple):
    """The content of the search form: the words, and the other parameters of the view."""

    words: str
    others: list[tuple[str, str]]


def _search(view: str) -> Search:
    pairs = parse_qsl(view, keep_blank_values=True)
    text = " ".join(value for name, value in pairs if name == "q")
    return Search(text, [(name, value) for name, value in pairs if name != "q"])


def _most(values: Iterable[str]) -> list[str]:
    """The most frequent values, the most frequent first."""
    return [value for value, _ in Counter(values).most_common(_RAIL)]


# Making a code takes 7 ms. It depends on the address alone.
@lru_cache(256)
def _code(address: str) -> Markup:
    """The QR code of an address as an SVG element, "" if the address is too long for one."""
    import segno  # with the first page

    try:
        code = segno.make_qr(address, error="m")
    except segno.DataOverflowError:
        return Markup("")
    svg = code.svg_inline(scale=4, border=4, light="#fff", omitsize=True)
    return Markup(svg)  # noqa: S704 - segno writes numbers and colours


def _filters(path: str, view: str) -> list[dict[str, str]]:
    """The filters of the view. `without` is the path of the page without the filter."""
    pairs = parse_qsl(view, keep_blank_values=True)
    filters = []
    for number, (name, value) in enumerate(pairs):
        if name not in ("q", "order"):
            rest = urlencode([*pairs[:number], *pairs[number + 1 :]])
            filters.append({"name": name, "value": value, "without": f"{path}?{rest}" if rest else path})
    return filters
