"""The page of an entry: its whole content, its files, and links to the entries beside it.

A page loads nothing from other hosts: it shows the files of this site, and links to all others. Everything on it beside
the version of the item must be in `page_mark`, or its entity tag would be wrong.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import urlsplit

from markupsafe import Markup

from smartfeeds.core.model import Item, Node
from smartfeeds.core.urls import CONFLICTS, DELETE, ENCLOSURES, WRITE, entry_path, feed_path, reply_path, xmpp_uri
from smartfeeds.features.pages.answers import AnswerLink
from smartfeeds.features.pages.article import article, may_delete, may_edit, shown_body
from smartfeeds.features.pages.frame import Frame
from smartfeeds.features.pages.images import file_path
from smartfeeds.features.pages.river_requests import FeedEntry
from smartfeeds.features.pages.sanitise import WHOLE, link_of
from smartfeeds.formats.authorship import other_publisher
from smartfeeds.formats.entry import Entry, EntryLink, read_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http.conditions import representation_mark
from smartfeeds.http.negotiation import OF_ENTRY
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.replies import linked_node
from smartfeeds.service.requests import ItemShown

# Whoever may publish chooses the numbers of files and links of an entry.
_MAX_FILES = 20
_MAX_LINKS = 10
_TITLE_CHARACTERS = 80
_DESCRIPTION_CHARACTERS = 300  # search engines and previews of links show less
_PLAYED = ("audio", "video", "image")
_OTHER_RELS = ("via", "related")


@dataclass(frozen=True, slots=True)
class EntryFile:
    """An enclosure. `kind` is "audio", "video" or "image" if the page shows the file itself, else "". `picture` is the
    HTML for an image of another host."""

    link: EntryLink
    name: str
    kind: str
    picture: Markup


@dataclass(frozen=True, slots=True)
class Thread:
    """The answers on the page of an entry. `next_path` is the page with more of them, and `later` says that there are
    earlier ones. A reader who may answer gets a form with the address `action_path`, whose entry
    answers an item of the feed `of`. Other readers get the text `hint`, or a link to the entry at its own address
    `elsewhere`."""

    entries: tuple[FeedEntry, ...]
    total: int | None
    next_path: str = ""
    later: bool = False
    action_path: str = ""
    of: str = ""
    hint: str = ""
    elsewhere: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be shown."""
        return not (self.entries or self.later or self.action_path or self.hint or self.elsewhere)

    @property
    def mark(self) -> tuple[Hashable, ...]:
        """The versions of the answers, and everything beside them."""
        versions = tuple(
            (entry.node.name, entry.node.options.shows_publisher, entry.item.id, item_tag(entry.item))
            for entry in self.entries
        )
        form = self.action_path, self.of, self.hint, self.elsewhere
        return versions, self.total, self.next_path, self.later, *form

    def html(self, frame: Frame, node: Node) -> Markup:
        """The answers as articles, on the page of an entry of a node."""
        # The rights of the reader are those in the feed of the page.
        elsewhere = replace(frame, writing=None)
        return Markup("").join(
            Markup(article(frame if node.node_no == entry.node.node_no else elsewhere, entry.node, entry.item).html)  # noqa: S704 - a template has made it
            for entry in self.entries
        )


def page_mark(
    frame: Frame,
    site_url: str,
    answer: ItemShown,
    reply_node: str,
    answers: tuple[AnswerLink, ...],
    thread: Thread | None,
) -> str:
    """A hash of everything beside the version of the item that its page depends on."""
    node, item = answer.node, answer.item
    neighbours = [(entry.id, item_tag(entry)) if entry else None for entry in (answer.older, answer.newer)]
    options = node.options
    return representation_mark(
        frame,
        site_url,
        node.name,
        options.title,
        options.language,
        options.shows_publisher,
        item.id,
        item.conflicts,
        reply_node,
        answer.local_files,
        answers,
        None if thread is None else thread.mark,
        *neighbours,
    )


def entry_page(
    frame: Frame,
    site_url: str,
    domain: str,
    answer: ItemShown,
    reply_node: str = "",
    answers: tuple[AnswerLink, ...] = (),
    thread: Thread | None = None,
) -> bytes:
    """The page of an item, or of its tombstone. `domain` is that of the component. `reply_node` is the node in which
    the reader may answer the item, "" if there is none. `answers` are links to what the item answers, and `thread` are
    the answers to it.

    The page of a text with many nested elements takes up to 0.4 s.
    """
    node, item = answer.node, answer.item
    entry = read_entry(item)
    body = shown_body(frame, entry, WHOLE)
    path = entry_path(node.name, item.id)
    files = _files(frame, entry, site_url)
    return frame.page(
        "entry.html",
        entry=entry,
        publisher=other_publisher(node, item, entry),
        title=title_of_entry(entry),
        description=_description(entry),
        body=Markup(body.html),  # noqa: S704 - it was cleaned
        cut=body.cut,
        files=files,
        local=f"{site_url}{ENCLOSURES}",
        image=next((file.link.href for file in files if file.kind == "image"), ""),
        comments=[
            (link.title, address) for link in _linked(entry, "replies") if (address := _page(frame, domain, link))
        ],
        links=_linked(entry, *_OTHER_RELS),
        edited=item.revision > 1 and not item.deleted,
        modified_us=item.modified_us,
        conflicts=item.conflicts,
        conflicts_path=entry_path(node.name, item.id, CONFLICTS),
        edit_path=entry_path(node.name, item.id, WRITE) if may_edit(frame, item) else "",
        delete_path=entry_path(node.name, item.id, DELETE) if may_delete(frame, item) else "",
        reply_path=reply_path(reply_node, item.id, node.name) if reply_node else "",
        has_heading=body.has_heading,
        answers=answers,
        thread=thread,
        replies="" if thread is None else thread.html(frame, node),
        path=path,
        url=f"{site_url}{path}",
        forms=[(form.name, form.bare_type, f"{path}.{form.suffix}") for form in OF_ENTRY],
        xmpp=xmpp_uri(domain, node.name, item.id),
        feed_title=title_of(node),
        feed=feed_path(node.name),
        older=_neighbour(node.name, answer.older),
        newer=_neighbour(node.name, answer.newer),
    )


def title_of_entry(entry: Entry) -> str:
    """The title of an entry; without one, the first words of its text, or its id."""
    return entry.title.plain or _shortened(_plain_text(entry), _TITLE_CHARACTERS) or entry.item_id


def _plain_text(entry: Entry) -> str:
    return next((text.plain for text in (entry.summary, entry.content) if text is not None and text.plain), "")


def _description(entry: Entry) -> str:
    return _shortened(_plain_text(entry), _DESCRIPTION_CHARACTERS)


def _shortened(text: str, most: int) -> str:
    """The first words of a text, with an ellipsis if there are more."""
    if len(text) <= most:
        return text
    return f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def _files(frame: Frame, entry: Entry, site_url: str) -> list[EntryFile]:
    """The enclosures. A page loads nothing from other hosts, so it shows only files of this site themselves, and images
    as the operator allows."""
    files = []
    for link in entry.enclosures[:_MAX_FILES]:
        if link_of(link.href):
            name = link.title or urlsplit(link.href).path.rstrip("/").rpartition("/")[2] or link.href
            kind = link.type.partition("/")[0].lower()
            # Only files, because browsers would request any other path of this site for the reader, such as a sign-in.
            is_own = bool(file_path(link.href, site_url))
            picture = "" if is_own or kind != "image" else frame.image(escape(link.href), escape(name), False)
            # The frame escapes nothing, and gets escaped texts.
            files.append(EntryFile(link, name, kind if is_own and kind in _PLAYED else "", Markup(picture)))  # noqa: S704
    return files


def _linked(entry: Entry, *rels: str) -> list[EntryLink]:
    return [link for link in entry.links if link.rel in rels and link_of(link.href)][:_MAX_LINKS]


def _page(frame: Frame, domain: str, link: EntryLink) -> str:
    """The address of the comments that a link leads to: of a feed of this service the path of its page."""
    node = linked_node(domain, link)
    return f"{frame.base}{feed_path(node)}" if node else link.href


def _neighbour(name: str, item: Item | None) -> dict[str, str] | None:
    if item is None:
        return None
    return {"path": entry_path(name, item.id), "title": title_of_entry(read_entry(item))}
