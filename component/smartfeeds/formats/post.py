"""Posts: what a person or a script publishes without a feed format, as an Atom entry (RFC 4287; XEP-0277 4.1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from smartfeeds.core.text import wire_bytes
from smartfeeds.core.urls import harmless
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.entry import EntryLink, EntryText, ReplyReference
from smartfeeds.formats.entry_builder import EntryBuilder
from smartfeeds.formats.json_items import clean
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.titles import (
    LINE_CHARACTERS,
    Titled,
    file_name,
    shortened,
    split_html,
    split_text,
    title_of_html,
    title_of_text,
)
from smartfeeds.formats.xml import Element, canonical

MAX_TAGS = 100
_COMPLETION_BYTES = 1_024  # of a payload, for the id, the time and the author, which are added later
_WEB = re.compile(r"https?://[^/?#]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Post:
    """The fields of a post, all optional. `content` is plain text or HTML; `link` is the address that the title of the
    entry leads to. `markdown` is the text of which the HTML was made."""

    title: str = ""
    content: EntryText | None = None
    link: str = ""
    tags: tuple[str, ...] = ()
    enclosures: tuple[EntryLink, ...] = ()
    markdown: str = ""


def entry_of(post: Post) -> Element:
    """The atom:entry of a post.

    An entry needs a title. Without one it gets one from its content (`complete`). Raises FeedError(BAD_REQUEST) for an
    empty post and for an address that is none.
    """
    builder = EntryBuilder(0, "")
    builder.add(atom.TITLE, " ".join(clean(post.title).split()))
    if post.content is not None and post.content.value.strip():
        builder.add(atom.CONTENT, clean(post.content.value), type="html" if post.content.is_markup else "")
        add_markdown(builder.entry, post.markdown)
    if post.link:
        builder.add_link("alternate", checked_address(post.link, "link"))
    for tag in post.tags:
        builder.add_category(clean(tag))
    for file in post.enclosures:
        add_file(builder, file, "attach")
    complete(builder.entry)
    return builder.entry


def add_author(entry: Element, jid: str) -> None:
    """Names the author of an entry by a bare JID. An entry that names its authors already keeps them; "" names none."""
    if jid and entry.find(atom.AUTHOR) is None:
        person = etree.SubElement(entry, atom.AUTHOR)
        etree.SubElement(person, atom.NAME).text = jid.partition("@")[0]
        etree.SubElement(person, atom.URI).text = f"xmpp:{jid}"


def add_reply(entry: Element, answered: ReplyReference) -> None:
    """Makes an entry an answer to another one (RFC 4685 3)."""
    node = etree.SubElement(entry, atom.IN_REPLY_TO, nsmap={"thr": atom.THREAD_NS})
    node.set("ref", answered.ref)
    if answered.href:
        node.set("href", answered.href)


def add_markdown(entry: Element, markdown: str) -> None:
    """Stores the Markdown of which the HTML of an entry was made, so that an edit can continue with it.

    It is in the entry and not in a row of the store: there it stays with its version in every copy, backup and
    conflict, goes when the entry goes, and other editors know the element from RSS.
    """
    if markdown:
        etree.SubElement(entry, atom.MARKDOWN, nsmap={"source": atom.SOURCE_NS}).text = clean(markdown)


def fit_markdown(entry: Element, most_bytes: int) -> None:
    """Removes the Markdown of an entry that would be too large for its feed with it."""
    markdown = entry.find(atom.MARKDOWN)
    if markdown is not None and wire_bytes(canonical(entry)) > most_bytes - _COMPLETION_BYTES:
        entry.remove(markdown)


def markdown_of(entry: Element) -> str:
    """The Markdown of which the HTML of an entry was made, "" without it. The HTML may have been changed since."""
    return entry.findtext(atom.MARKDOWN) or ""


def add_file(builder: EntryBuilder, file: EntryLink, name: str) -> None:
    """Adds an enclosure. Raises FeedError(BAD_REQUEST) as `checked_file_address` does."""
    address = checked_file_address(file.href, name)
    builder.add_link("enclosure", address, clean(file.type), clean(file.title), file.length)


def complete(entry: Element, *, split: bool = True) -> None:
    """Gives an entry without a title the beginning of its text as the title (`formats.titles`).

    A first line that became the title leaves the content, unless `split` is false: then the content is the whole text
    of a note, which has no title in its own format. Raises FeedError(BAD_REQUEST) for an entry without text, link and
    file.
    """
    title, content = entry.find(atom.TITLE), entry.find(atom.CONTENT)
    if title is not None and (title.text or "").strip():
        return
    if title is None:
        title = etree.SubElement(entry, atom.TITLE)
    titled = Titled("", "") if content is None else _split(entry, content)
    if content is not None and titled.title:
        title.text = clean(titled.title)
        text = atom.string_of(content)
        if titled.text != text and (split or not titled.text):
            _set_content(entry, content, titled.text)
        elif titled.text != text:
            title.text = clean(made_title(text, is_markup=content.get("type", "text") != "text"))
        return
    links = [
        link.get("title") or file_name(link.get("href", "")) or link.get("href") or ""
        if link.get("rel") == "enclosure"
        else link.get("title") or link.get("type") or link.get("href") or ""
        for link in entry.iterchildren(atom.LINK)
    ]
    title.text = first_line(next(filter(None, (atom.text_of(entry, atom.SUMMARY), *links)), ""))
    if not title.text:
        raise FeedError(Condition.BAD_REQUEST, "the entry is empty: it needs a text, a title, a link or a file")


def _split(entry: Element, content: Element) -> Titled:
    """The title of a content, and the content below it."""
    kind, text = content.get("type", "text"), atom.string_of(content)
    if kind == "text":
        return split_text(text)
    if kind == "html":
        return split_html(text)
    return Titled(shortened(atom.text_of(entry, atom.CONTENT)), text)


def _set_content(entry: Element, content: Element, text: str) -> None:
    if text:
        content.text = text
    else:
        entry.remove(content)


def made_title(text: str, *, is_markup: bool) -> str:
    """The title that an entry with all of this text gets."""
    return title_of_html(text) if is_markup else title_of_text(text)


def first_line(text: str) -> str:
    """The first line of a text, cut to LINE_CHARACTERS."""
    line = " ".join(clean(text.strip().partition("\n")[0]).split())
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1].rstrip()}…"


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
