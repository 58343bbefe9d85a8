"""Feeds, the list of feeds and errors as pages for a browser (ESS-024; XEP-0060, URI Query Types; XEP-0147).

Every page works without a script. The script of a feed's page listens to the event stream of the view and fetches each
change as an HTML page from here, so the content that it adds is sanitised too.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, unquote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from smartfeeds import __version__
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import AccessModel
from smartfeeds.core.times import EPOCH, format_datetime, format_t
from smartfeeds.core.urls import CONFLICTS, entry_path, feed_path, list_path, subscribe_uri
from smartfeeds.core.view import Order
from smartfeeds.formats.entry import Entry, EntryText, read_entry
from smartfeeds.formats.feed_details import load_details
from smartfeeds.formats.payload import Payload
from smartfeeds.http import negotiation as n
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.encode import PageAddress, is_feed, items_of, last_cursor, title_of, total_of
from smartfeeds.http.http_errors import Problem
from smartfeeds.http.replies import Reply
from smartfeeds.http.sanitise import LINK_REL, CleanHtml, clean, link_of
from smartfeeds.http.static import LOGIN, static_path
from smartfeeds.service.conflicts import ConflictedItem, ConflictList
from smartfeeds.service.requests import FeedPage
from smartfeeds.sync.markup import read_item

# A page runs only our own script and shows only pictures that it contains; no script may make markup of text.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; img-src 'self' data:; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
CACHE_BYTES = 8 * 1024 * 1024
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NNO, _OPML = list_path(n.NNO.suffix), list_path(n.OPML.suffix)
_CHOICE = (n.JSON, n.HTML)


_WORDS = {n.JSON: "ActivityStreams, with cursors", n.ESS: "times and checksums of the entries"}


class Pages:
    """Writes pages of feeds, and caches the entries that are read most. `domain` is that of the component."""

    def __init__(self, domain: str, cache_bytes: int = CACHE_BYTES) -> None:
        self._domain = domain
        self._articles: ByteCache[tuple[int, str, int, int, str, bool, bool], str] = ByteCache(cache_bytes)

    def feed(self, answer: FeedPage, place: PageAddress) -> bytes:
        """A page of a feed, the newest entry on top (ESS-024)."""
        node, query = answer.node, place.query
        view = f"?{query.view}" if query.view else ""
        path = feed_path(place.name)
        newest = query.since is None and query.until is None
        smart = is_feed(node)
        sync = answer.view.sync
        articles = [self._article(node, item, sync=sync) for item in reversed(items_of(answer))]
        details = load_details(node.options.details)
        # Pictures become links, as in entries: a page loads nothing from other hosts.
        pictures = dict.fromkeys((details.channel.icon, details.channel.logo))
        html = template("feed.html").render(
            title=title_of(node),
            node=node,
            description=node.options.description,
            language=node.options.language,
            details=details,
            pictures=[address for address in pictures if link_of(address)],
            path=path,
            here=f"{path}{view}",
            search=_search(query.view),
            filters=_filters(path, query.view),
            order=answer.view.order.value if answer.view.smart else "",
            filtered=answer.view.filtered,
            articles=Markup("".join(articles)),  # noqa: S704 - each was made by a template
            count=len(articles),
            total=total_of(answer) if answer.view.filtered else node.live,
            newest=newest,
            newer_path="" if newest else place.newer_url(answer).removeprefix(place.origin),
            older_path=place.previous_url(answer).removeprefix(place.origin),
            stream=f"{path}?{_changes(query.view)}" if smart else "",
            since=_since(answer, place),
            pages=place.page_url().removeprefix(place.origin),
            more=answer.newer,
            offers=_offers(place.name, view) if smart else (),
            nno=_NNO,
            subscribe=subscribe_uri(self._domain, place.name, query.view),
            domain=self._domain,
            name=f"{place.name}{view}",
        )
        return html.encode("utf-8", "replace")

    def _article(self, node: Node, item: Item, *, sync: bool) -> str:
        key = (node.node_no, node.name, item.item_no, item.modified_us, item.id, sync, item.left)
        html = self._articles.get(key)
        if html is None:
            html = article(node, item, sync=sync)
            self._articles.put(key, html, len(html.encode("utf-8", "replace")))
        return html


def article(node: Node, item: Item, *, sync: bool = False) -> str:
    """An item as an article element with the positions right before it in both orders (SF-032).

    With `sync` the payload has sync data, and the article shows the number of changes and the author of the last one.
    """
    payload = Payload(item.payload)
    shared = read_item(payload.root, payload=False) if sync else None
    entry = read_entry(item._replace(payload=payload))
    body = body_of(entry)
    return template("entry.html").render(
        entry=entry,
        anchor=f"e-{item.item_no}",
        before_modified=f"time:{format_t(item.modified_us - 1)}",
        before_created=f"time:{format_t(item.created_us - 1)}",
        path=feed_path(node.name),
        body=Markup(body.html),  # noqa: S704 - it was cleaned
        cut=body.cut,
        edited=item.revision > 1 and not item.deleted,
        modified_us=item.modified_us,
        history=None if shared is None else shared.version,
        conflicts=item.conflicts,
        conflicts_path=entry_path(node.name, item.id, CONFLICTS),
        links=[link for link in entry.links if link.rel in ("via", "related") and link_of(link.href)],
    )


def body_of(entry: Entry) -> CleanHtml:
    """The text under the title: the content, or the summary if the content is empty."""
    for text in (entry.content, entry.summary):
        if isinstance(text, EntryText) and (body := clean(text)).html.strip():
            return body
    return CleanHtml("", False)


def feed_list(nodes: Sequence[Node], origin: str, next_url: str, previous_url: str, total: int) -> bytes:
    """The feeds as a page. `total` counts all feeds. An address is "" if there is no such page."""
    html = template("list.html").render(
        nodes=[
            {
                "node": node,
                "path": feed_path(node.name),
                "title": title_of(node),
                "description": node.options.description,
                "open": node.options.access_model is AccessModel.OPEN,
                "offers": _offers(node.name, "")[:3] if is_feed(node) else (),
            }
            for node in nodes
        ],
        total=total,
        next_path=next_url.removeprefix(origin),
        previous_path=previous_url.removeprefix(origin),
        nno=_NNO,
        opml=_OPML,
    )
    return html.encode("utf-8", "replace")


def conflicts_page(name: str, conflict_list: ConflictList, next_path: str, *, single: bool, first: bool) -> bytes:
    """The versions of items with conflicts side by side, each with a button that keeps it (FeedSync 3.4).

    With `single` the list is one item. `first`: the page is the first of its list. The page has no script.
    """
    total = len(conflict_list.entries) if conflict_list.result_set is None else conflict_list.result_set.count
    html = template("conflicts.html").render(
        name=name,
        feed=feed_path(name),
        all=entry_path(name, folder=CONFLICTS),
        alone=single,
        first=first,
        total=total,
        next_path=next_path,
        items=[
            {
                "anchor": f"e-{one.item.item_no}",
                "path": entry_path(name, one.item.id, CONFLICTS),
                "id": one.item.id,
                "tags": one.tags,
                "sides": _sides(one),
            }
            for one in conflict_list.entries
        ],
    )
    return html.encode("utf-8", "replace")


def _sides(entry: ConflictedItem) -> list[dict[str, object]]:
    """The versions of an item. `top` is the last change of a version, with author and time."""
    sides: list[dict[str, object]] = []
    for tag, version in entry.versions:
        content = read_entry(entry.item._replace(payload=version.payload, deleted=version.deleted.on))
        body = body_of(content)
        markup = Markup(body.html)  # noqa: S704 - it was cleaned
        sides.append({"tag": tag, "top": version.top, "entry": content, "body": markup, "cut": body.cut})
    return sides


def problem(status: HTTPStatus, title: str, detail: str) -> bytes:
    """An error as a page."""
    html = template("problem.html").render(status=status.value, title=title, detail=detail, login=LOGIN)
    return html.encode("utf-8", "replace")


def for_reader(accept: str, reply: Reply) -> Reply:
    """A problem as a page if the client prefers HTML to JSON, and every other reply unchanged."""
    if not isinstance(reply, Problem) or not accept or n.choose(accept, _CHOICE) is not n.HTML:
        return reply
    body = problem(reply.status, reply.title, reply.detail)
    headers = {**reply.headers, "Content-Security-Policy": PAGE_POLICY, "Vary": "Accept"}
    return Reply(body, n.HTML.media_type, reply.status, headers)


def _offers(name: str, view: str) -> list[dict[str, str]]:
    """The links to the formats of a feed."""
    return [
        {
            "name": form.name,
            "media_type": form.bare_type,
            "path": f"{feed_path(name, form.suffix)}{view}",
            "words": _WORDS.get(form, "for feed readers"),
        }
        for form in n.LINKED
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


def _search(view: str) -> Mapping[str, object]:
    """The content of the search form: the words, and the other parameters."""
    pairs = parse_qsl(view, keep_blank_values=True)
    words = " ".join(value for name, value in pairs if name == "q")
    return {"words": words, "others": [(name, value) for name, value in pairs if name != "q"]}


def _filters(path: str, view: str) -> list[dict[str, str]]:
    """The filters of the view. `without` is the path of the page without the filter."""
    pairs = parse_qsl(view, keep_blank_values=True)
    filters = []
    for number, (name, value) in enumerate(pairs):
        if name not in ("q", "order"):
            rest = urlencode([*pairs[:number], *pairs[number + 1 :]])
            filters.append({"name": name, "value": value, "without": f"{path}?{rest}" if rest else path})
    return filters


def person_of(by: str) -> str:
    """An endpoint for people: the user and the service, or the text itself if it has another form (A-51)."""
    text = unquote(by, errors="replace")
    if not text.isprintable() or "\N{REPLACEMENT CHARACTER}" in text:
        return by
    service, _, name = text.partition("/")
    return f"{name} at {service}" if service and name else text or "somebody"


def _when(time_us: int) -> str:
    """A time in UTC, for readers whose browser does not run the script that shows local times."""
    moment = EPOCH + timedelta(microseconds=time_us)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC"


def _size(size_bytes: int) -> str:
    amount, unit = float(size_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1_000:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"


def _number(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _with(path: str, name: str, value: str) -> str:
    """The path of a feed's page with one parameter."""
    return f"{path}?{name}={quote(value, safe='')}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("smartfeeds.http", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        when=_when, stamp=format_datetime, size=_size, number=_number, link=link_of, filtered=_with, person=person_of
    )
    environment.globals.update(rel=LINK_REL, version=__version__, static=static_path)
    return environment


_ENVIRONMENT = _environment()
template = _ENVIRONMENT.get_template
