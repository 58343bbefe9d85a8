"""An item as an article: the part that the page of a feed and the page of an entry share."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple

from markupsafe import Markup

from smartfeeds.core.feed_files import SHOWN_TYPES
from smartfeeds.core.model import Item, Node
from smartfeeds.core.text import attribute
from smartfeeds.core.times import format_t
from smartfeeds.core.urls import CONFLICTS, DELETE, ENCLOSURES, WRITE, entry_path, feed_path, reply_path
from smartfeeds.features.pages.answers import AnswerLink
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.highlight import mark_html, mark_text, snippet
from smartfeeds.features.pages.images import file_path
from smartfeeds.features.pages.sanitise import SHORT, CleanHtml, TextLimits, clean, link_of
from smartfeeds.formats.authorship import other_publisher
from smartfeeds.formats.entry import NO_TEXT, Entry, EntryLink, EntryText, TextKind, read_entry
from smartfeeds.formats.payload import Payload
from smartfeeds.formats.titles import is_repeated, unmarked, without_heading
from smartfeeds.sync.markup import read_item

# A text is clamped if it is about longer than the twelve lines that style.css shows of it.
_LONG_CHARACTERS = 1_000
_LONG_LINES = 12
_LINE_END = re.compile(r"<(?:br|/p|/li|/pre|/h[1-6]|/tr|/dd|/dt|img|/figure)\b|\n")
_TAG = re.compile(r"<[^>]*>")
_MAX_PICTURES = 4  # of the files of an entry; its own page has the others
_BEGINNING_CHARACTERS = 4_096  # of a text, with its tags, in which the title is looked for


class Beside(NamedTuple):
    """The parts of an article about other entries: links to those that the item answers, and the number of answers."""

    answers: tuple[AnswerLink, ...] = ()
    replies: int = 0


NOTHING_BESIDE = Beside()


class TitleUse(Enum):
    """The place of a title on a page."""

    HEADING = auto()  # above the text
    BEGINNING = auto()  # the text begins with it
    TEXT = auto()  # it is the text of an answer
    NONE = auto()  # there is no title


class ShownBody(NamedTuple):
    """The text of an entry as HTML, whether it is only the beginning, and whether the title is a heading above it."""

    html: str
    cut: bool
    has_heading: bool


class Article(NamedTuple):
    """An item as HTML, and the names of its authors and the terms of its categories."""

    html: str
    authors: tuple[str, ...]
    categories: tuple[str, ...]


def article(
    frame: Frame,
    node: Node,
    item: Item,
    *,
    sync: bool = False,
    search: AbstractSet[str] = frozenset(),
    local: str = ENCLOSURES,
    beside: Beside = NOTHING_BESIDE,
) -> Article:
    """An item as an article element with the positions right before it in both orders (SF-032).

    The addresses of enclosures at this service begin with `local`. With `sync` the payload has sync data, and the
    article shows the number of changes and the author of the last one. The words of `search` are marked. If all of them
    are below the part of a text that a page shows, a snippet has them. `beside` is what other entries say about it.
    """
    payload = Payload(item.payload)
    shared = read_item(payload.root, payload=False) if sync else None
    entry = read_entry(item._replace(payload=payload))
    body = shown_body(frame, entry)
    text = mark_html(body.html, search) if search else body.html
    long = _is_long(body.html)
    before, mark, _ = text.partition("<mark>")
    hidden = bool(search) and (long or body.cut) and (not mark or _is_long(before))
    html = frame.render(
        "article.html",
        entry=entry,
        publisher=other_publisher(node, item, entry),
        local=local,
        anchor=f"e-{item.item_no}",
        before_modified=f"time:{format_t(item.modified_us - 1)}",
        before_created=f"time:{format_t(item.created_us - 1)}",
        path=feed_path(node.name),
        own_path=entry_path(node.name, item.id),
        heading=Markup(mark_text(entry.title.plain, search)),  # noqa: S704 - it was escaped
        body=Markup(text),  # noqa: S704 - it was cleaned
        long=long,
        snippet=Markup(hit_of(entry, search) if hidden else ""),  # noqa: S704 - it was escaped
        cut=body.cut,
        edited=item.revision > 1 and not item.deleted,
        modified_us=item.modified_us,
        history=None if shared is None else shared.version,
        conflicts=item.conflicts,
        conflicts_path=entry_path(node.name, item.id, CONFLICTS),
        edit_path=entry_path(node.name, item.id, WRITE) if may_edit(frame, item) else "",
        delete_path=entry_path(node.name, item.id, DELETE) if may_delete(frame, item) else "",
        reply_path=reply_path(node.name, item.id) if frame.writing is not None and frame.writing.publish else "",
        has_heading=body.has_heading,
        answers=beside.answers,
        replies=beside.replies,
        pictures=pictures_of(frame, entry.enclosures)[:_MAX_PICTURES],
        links=[link for link in entry.links if link.rel in ("via", "related") and link_of(link.href)],
    )
    authors = tuple(author.label for author in entry.authors[:10])
    return Article(html, authors, tuple(tag.term for tag in entry.categories[:20]))


def title_use(entry: Entry, text: EntryText | None) -> TitleUse:
    """The use of the title of an entry whose page shows this text, None for no text.

    `formats.titles` and other programs make titles of the beginning of a text, for lists. Nobody should read it twice,
    and an answer should not shout. Screen readers get each title as a heading.
    """
    title = entry.title.plain
    start = NO_TEXT if text is None else EntryText(text.kind, text.value[:_BEGINNING_CHARACTERS])
    if not title:
        return TitleUse.NONE
    if not start.plain:
        return TitleUse.TEXT if entry.replies_to else TitleUse.HEADING
    is_beginning = is_repeated(title, start.plain) or (
        not start.is_markup and is_repeated(title, unmarked(start.value))
    )
    return TitleUse.BEGINNING if is_beginning else TitleUse.HEADING


def _is_long(html: str) -> bool:
    """Whether a text has more than about twelve lines."""
    return len(_TAG.sub("", html)) > _LONG_CHARACTERS or len(_LINE_END.findall(html)) > _LONG_LINES


def hit_of(entry: Entry, search: AbstractSet[str]) -> str:
    """The part of the texts of an entry that has a word of a search, as HTML, "" without one."""
    if not search:
        return ""
    return next((hit for text in shown_texts(entry) if (hit := snippet(text.plain, search))), "")


def pictures_of(frame: Frame, files: Sequence[EntryLink]) -> list[tuple[str, str]]:
    """The images among files that this service stores: path and name of each."""
    images = [file for file in files if file.type.lower() in SHOWN_TYPES and file.type.lower().startswith("image/")]
    return [(path, file.title) for file in images if (path := file_path(file.href, frame.site_url))]


def may_edit(frame: Frame, item: Item) -> bool:
    """Whether the page shows the reader a link to edit an item. The use case checks the rights again."""
    writing = frame.writing
    return writing is not None and writing.publish and (writing.edit_any or item.publisher == frame.reader)


def may_delete(frame: Frame, item: Item) -> bool:
    """Whether the page shows the reader a link to delete an item."""
    writing = frame.writing
    return writing is not None and (writing.delete_any or item.publisher == frame.reader)


def shown_body(frame: Frame, entry: Entry, limits: TextLimits = SHORT) -> ShownBody:
    """The text of an entry, as far as the title does not stand above it."""
    text, body = _text_of(frame, entry, shown_texts(entry), limits)
    use = title_use(entry, text)
    title = clean(EntryText(TextKind.TEXT, entry.title.plain)).html if use is TitleUse.TEXT else ""
    return ShownBody(f"<p>{title}</p>{body.html}" if title else body.html, body.cut, use is TitleUse.HEADING)


def shown_texts(entry: Entry) -> Iterator[EntryText]:
    """The content and the summary of an entry, without a heading that only repeats the title."""
    for text in filter(None, (entry.content, entry.summary)):
        yield replace(text, value=without_heading(text.value, entry.title.plain)) if text.is_markup else text


def body_of(frame: Frame, entry: Entry, limits: TextLimits = SHORT) -> CleanHtml:
    """The text under the title: the content, or the summary if the content is empty. A picture of the entry is above a
    text that has none."""
    return _text_of(frame, entry, filter(None, (entry.content, entry.summary)), limits)[1]


def _text_of(
    frame: Frame, entry: Entry, texts: Iterable[EntryText], limits: TextLimits
) -> tuple[EntryText | None, CleanHtml]:
    """The first text that is not empty, and its HTML."""
    limits = limits.below(entry.title.plain)
    picture = f'<p><img src="{attribute(entry.picture)}" alt=""></p>' if entry.picture else ""
    image = clean(EntryText(TextKind.HTML, picture), frame.image, limits).html if picture else ""
    for text in texts:
        if (body := clean(text, frame.image, limits)).html.strip():
            return text, body if "<img" in text.value.lower() else CleanHtml(image + body.html, body.cut)
    return None, CleanHtml(image, False)
