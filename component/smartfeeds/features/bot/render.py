"""An item as plain text: its title, its author, its first lines, and links to the whole: to the original, and to the
page here."""

from collections.abc import Mapping
from dataclasses import dataclass

from smartfeeds.chat.commands import LINK_CHARACTERS, NAME_CHARACTERS, TITLE_CHARACTERS
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import AccessModel
from smartfeeds.core.text import cut
from smartfeeds.core.urls import entry_path, xmpp_uri
from smartfeeds.formats.authorship import other_publisher
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.titles import is_repeated
from smartfeeds.service.replies import AnsweredItems
from smartfeeds.texts import Texts

TEXT_CHARACTERS = 600  # of the text of an item in a message, whose link leads to the rest


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of the service. `http_base_url` is empty if it serves no HTTP."""

    domain: str
    http_base_url: str = ""

    def of_item(self, node: Node, item_id: str, alternate: str = "") -> tuple[str, ...]:
        """Returns the addresses of an item: the page that it names itself, such as that of the blog, then its page
        here; without both its XMPP address.

        Only the items of an open node have a page that everybody can read.
        """
        links = [alternate] if alternate.startswith(("https://", "http://")) else []
        if self.http_base_url and node.options.access_model is AccessModel.OPEN:
            links.append(f"{self.http_base_url}{entry_path(node.name, item_id)}")
        return tuple(dict.fromkeys(links)) or (xmpp_uri(self.domain, node.name, item_id),)

    def lasting(self, node: str, item_id: str) -> str:
        """Returns the address by which this service finds an item, whoever may read it: of its page, else its XMPP
        address."""
        return (
            f"{self.http_base_url}{entry_path(node, item_id)}"
            if self.http_base_url
            else xmpp_uri(self.domain, node, item_id)
        )


def feed_name(node: Node) -> str:
    """Returns the name of a feed for people: its title and, in parentheses, the name that commands need."""
    title, name = cut(node.options.title, NAME_CHARACTERS), cut(node.name, NAME_CHARACTERS)
    return f"{title} ({name})" if title and title != name else name


def render_item(texts: Texts, links: Links, node: Node, item: Item, *, edited: bool = False) -> str:
    """Returns an item as a message of its own. It parses the payload, which takes time if the payload is long."""
    entry = read_entry(item)
    title = cut(entry.title.plain, TITLE_CHARACTERS)
    body = next((text.plain for text in (entry.summary, entry.content) if text is not None and text.plain), "")
    # A title that was made of the text is not shown beside it.
    if is_repeated(entry.title.plain, body):
        headline, excerpt = cut(body, TEXT_CHARACTERS), ""
    else:
        headline = title or cut(body, TITLE_CHARACTERS) or cut(item.id, TITLE_CHARACTERS)
        excerpt = cut(body, TEXT_CHARACTERS)
    if edited:
        headline = texts.say("{title} (edited)", title=headline)
    author = next((cut(person.label, NAME_CHARACTERS) for person in entry.authors if person.label), "")
    source = feed_name(node)
    about = texts.say("{author} in {feed}", author=author, feed=source) if author else source
    if publisher := other_publisher(node, item, entry):
        about = texts.say("{about}, published by {publisher}", about=about, publisher=publisher)
    lines = [
        headline,
        about,
        excerpt if title else "",
        *(cut(link, LINK_CHARACTERS) for link in links.of_item(node, item.id, entry.alternate)),
    ]
    return "\n".join(line for line in lines if line)


def title_of_item(item: Item) -> str:
    """Returns the title of an item on one line (`Entry.label`)."""
    return read_entry(item).label(TITLE_CHARACTERS)


def answered_titles(answered: AnsweredItems) -> dict[int, str]:
    """Returns the titles of the items that others answer, by the numbers of those. A deleted item has none."""
    titles: dict[int, str] = {}
    for (item_no, _), value in answered.items():
        if not value.item.deleted:
            titles.setdefault(item_no, title_of_item(value.item))
    return titles


def quotation_of(title: str) -> str:
    """Returns the title of an answered item as the line above its answer."""
    return f"> {title}\n"


def render_line(texts: Texts, links: Links, node: Node, item: Item, answered: Mapping[int, str]) -> str:
    """Returns an item as one line and its link below, for lists. `answered` is that of `answered_titles`."""
    entry = read_entry(item)
    link = cut(links.of_item(node, item.id, entry.alternate)[0], LINK_CHARACTERS)
    title = entry.label(TITLE_CHARACTERS)
    if item.item_no in answered:
        title = texts.say("{title} (answers “{answered}”)", title=title, answered=answered[item.item_no])
    return f"- {title}\n  {link}"


def render_list(texts: Texts, links: Links, node: Node, items: list[Item], answered: Mapping[int, str]) -> str:
    """Returns several new items of one feed as one message."""
    head = texts.count(len(items), "{number} new item in {feed}", "{number} new items in {feed}", feed=feed_name(node))
    return "\n".join([head, *(render_line(texts, links, node, item, answered) for item in items)])
