"""The local addresses of enclosures beside the original ones, in documents for readers (RSS-036; PRE-034).

Pulls have the items as they were published: a mirror would store the additional links.
"""

from collections.abc import Iterable
from dataclasses import replace

from smartfeeds.core.model import Item
from smartfeeds.core.text import attribute
from smartfeeds.core.urls import ENCLOSURES, entry_path
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import enclosures_of
from smartfeeds.http import negotiation as n
from smartfeeds.service.requests import FeedPage, ItemShown
from smartfeeds.service.requests.items import LocalFile

# RSS keeps the enclosures of the item (PRE-034), and the others have no enclosures.
WITH_LOCAL = frozenset({n.HTML, n.ATOM, n.JSON_FEED})


def page_with_local(answer: FeedPage, site_url: str) -> FeedPage:
    """A page whose items have links to the local files too."""
    if not answer.local_files or answer.page is None:
        return answer
    items = tuple(_with_links(item, answer.local_files, site_url, answer.node.name) for item in answer.page.items)
    return replace(answer, page=replace(answer.page, items=items))


def item_with_local(answer: ItemShown, site_url: str) -> ItemShown:
    """An item with links to the local files too."""
    if not answer.local_files:
        return answer
    return replace(answer, item=_with_links(answer.item, answer.local_files, site_url, answer.node.name))


def _with_links(item: Item, files: Iterable[LocalFile], site_url: str, name: str) -> Item:
    """An item whose entry ends with a link for each local file. Its title is that of the original: readers of JSON Feed
    then know that both are the same (JSON Feed 1.1, attachments)."""
    own = [file for file in files if file.item_id == item.id]
    if not own:
        return item
    titles = {link.href: link.title for link in enclosures_of(item.payload)}
    links = "".join(
        f'<link xmlns="{ATOM_NS}" rel="enclosure"'
        f' href="{attribute(site_url + entry_path(name, file.file_id, ENCLOSURES))}"'
        f' type="{attribute(file.media_type)}" length="{file.size_bytes}"{_title(titles[file.url])}/>'
        for file in own
    )
    end = item.payload.rindex(b"</")
    return item._replace(payload=item.payload[:end] + links.encode() + item.payload[end:])


def _title(text: str) -> str:
    return f' title="{attribute(text)}"' if text else ""
