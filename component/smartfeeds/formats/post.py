"""Posts: what a person or a script publishes without a feed format, as an Atom entry (RFC 4287; XEP-0277 4.1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from smartfeeds.core.urls import harmless
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.entry import EntryLink, EntryText
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.xml import Element

TITLE_CHARACTERS = 140  # of a title that is made of the first line of a text
MAX_TAGS = 100
_WEB = re.compile(r"https?://[^/?#]", re.IGNORECASE)


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
    builder.add(atom.TITLE, " ".join(clean(post.title).split()))
    if post.content is not None and post.content.value.strip():
        builder.add(atom.CONTENT, clean(post.content.value), type="html" if post.content.is_markup else "")
    if post.link:
        builder.add_link("alternate", checked_address(post.link, "link"))
    for tag in post.tags:
        builder.add_category(clean(tag))
    for file in post.enclosures:
        add_file(builder, file, "attach")
    complete(builder.entry)
    return builder.entry


def add_file(builder: EntryBuilder, file: EntryLink, name: str) -> None:
    """Adds an enclosure. Raises FeedError(BAD_REQUEST) as `checked_file_address` does."""
    address = checked_file_address(file.href, name)
    builder.add_link("enclosure", address, clean(file.type), clean(file.title), file.length)


def complete(entry: Element) -> None:
    """Gives an entry without a title the first line of its text, as `entry_of` does. Raises FeedError(BAD_REQUEST) for
    an entry without text, link and file."""
    title, content = entry.find(atom.TITLE), entry.find(atom.CONTENT)
    if title is not None and (title.text or "").strip():
        return
    if title is None:
        title = etree.SubElement(entry, atom.TITLE)
    texts = [atom.text_of(entry, tag) for tag in (atom.CONTENT, atom.SUMMARY)]
    is_text = content is not None and content.get("type", "text") == "text"
    if is_text and content is not None:
        texts[0] = atom.string_of(content)
    links = [link.get("title") or link.get("type") or link.get("href") or "" for link in entry.iterchildren(atom.LINK)]
    title.text = first_line(next(filter(None, (*texts, *links)), ""))
    if not title.text:
        raise FeedError(Condition.BAD_REQUEST, "the entry is empty: it needs a text, a title, a link or a file")
    if is_text and content is not None and texts[0].strip() == title.text:
        entry.remove(content)


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


def checked_file_address(address: str, name: str) -> str:
    """The address of a file that everybody can load: of a web server. Raises FeedError(BAD_REQUEST)."""
    address = clean(address).strip()
    if not is_uri(address) or _WEB.match(address) is None:
        raise FeedError(
            Condition.BAD_REQUEST,
            f"{name}: {address[:80]!r} is not the address of a file on the web; it begins with https:// or http://",
        )
    return address
