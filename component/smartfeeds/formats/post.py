"""Posts: what a person or a script publishes without a feed format, as an Atom entry (RFC 4287; XEP-0277 4.1)."""

from collections.abc import Iterable
from dataclasses import dataclass

from smartfeeds.core.urls import harmless
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.entry import EntryLink, EntryText, TextKind
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.xml import Element

TITLE_CHARACTERS = 140  # of a title that is made of the first line of a text
MAX_TAGS = 100


@dataclass(frozen=True, slots=True)
class Post:
    """The fields of a post, all optional. `content` is plain text or HTML; `link` is the address that the title of the
    entry leads to."""

    title: str = ""
    content: EntryText | None = None
    link: str = ""
    tags: tuple[str, ...] = ()
    enclosures: tuple[EntryLink, ...] = ()


def entry_of(post: Post) -> Element:
    """The atom:entry of a post.

    An entry needs a title. Without one the first line of the content becomes the title, and a content of one line is
    not repeated. Raises FeedError(BAD_REQUEST) for an empty post and for an address that is none.
    """
    builder = EntryBuilder(0, "")
    title, content = titled(post)
    builder.add(atom.TITLE, title)
    if content is not None:
        add_content(builder, content)
    if post.link:
        builder.add_link("alternate", checked_address(post.link, "link"))
    for tag in post.tags:
        builder.add_category(clean(tag))
    for file in post.enclosures:
        builder.add_link(
            "enclosure", checked_address(file.href, "attach"), clean(file.type), clean(file.title), file.length
        )
    return builder.entry


def add_content(builder: EntryBuilder, content: EntryText) -> None:
    """Adds an atom:content."""
    kind = "html" if content.is_markup else ""
    builder.add(atom.CONTENT, clean(content.value), type=kind)


def titled(post: Post) -> tuple[str, EntryText | None]:
    """The title and the content of the entry. Raises FeedError(BAD_REQUEST) for a post without text, link and file."""
    title, content = " ".join(clean(post.title).split()), post.content
    if content is not None and not content.value.strip():
        content = None
    if title:
        return title, content
    if content is not None:
        title = first_line(content.value if content.kind is TextKind.TEXT else content.plain)
        is_whole = content.kind is TextKind.TEXT and content.value.strip() == title
        return title, None if is_whole else content
    title = next((file.title or file.type or file.href for file in post.enclosures), post.link)
    if not title:
        raise FeedError(Condition.BAD_REQUEST, "the post is empty: send a text, a title, a link or a file")
    return clean(title), None


def first_line(text: str) -> str:
    """The first line of a text, cut to TITLE_CHARACTERS."""
    line = " ".join(clean(text.strip().partition("\n")[0]).split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1].rstrip()}…"


def split_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags from lists that are separated by commas, each tag once. Raises FeedError(BAD_REQUEST) for too many."""
    tags = tuple(dict.fromkeys(tag.strip() for text in texts for tag in text.split(",") if tag.strip()))
    if len(tags) > MAX_TAGS:
        raise FeedError(Condition.BAD_REQUEST, f"tags: {len(tags)} of them; an entry has at most {MAX_TAGS}")
    return tags


def checked_address(address: str, name: str) -> str:
    """An absolute address that a browser does not run. Raises FeedError(BAD_REQUEST); `name` is that of the field."""
    address = clean(address).strip()
    if not is_uri(address) or not harmless(address):
        raise FeedError(
            Condition.BAD_REQUEST, f"{name}: {address[:80]!r} is no web address; write it with https:// in front"
        )
    return address
