"""The local addresses of enclosures in documents for readers (RSS-036; PRE-034).

Pulls, and documents with sync data, have the items as they were published: others store or merge these bytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from smartfeeds.core.model import Item
from smartfeeds.core.urls import ENCLOSURES, entry_path
from smartfeeds.features.prefetch.local_enclosures import Alternative, with_local
from smartfeeds.formats.entry import EntryLink
from smartfeeds.formats.representation import Representation
from smartfeeds.http.encode import LocalFiles
from smartfeeds.service.requests import FeedPage, ItemShown
from smartfeeds.service.requests.items import LocalFile

# The suffixes of documents for readers that have enclosures, and the form of the original address there.
WITH_LOCAL: Final[Mapping[str, Alternative]] = {
    "html": Alternative.LINK,
    "atom": Alternative.LINK,
    "jsonfeed": Alternative.LINK,
    "rss": Alternative.ELEMENT,
    "rss092": Alternative.ELEMENT,
}


def page_with_local(answer: FeedPage, site_url: str, form: Representation) -> FeedPage:
    """A page whose items have the local files, and the original ones as alternatives."""
    if not answer.local_files or answer.page is None:
        return answer
    items = tuple(
        _with_links(item, answer.local_files, site_url, answer.node.name, WITH_LOCAL[form.suffix])
        for item in answer.page.items
    )
    return replace(answer, page=replace(answer.page, items=items))


def item_with_local(answer: ItemShown, site_url: str) -> ItemShown:
    """An item with the local files, for its page."""
    if not answer.local_files:
        return answer
    item = _with_links(answer.item, answer.local_files, site_url, answer.node.name, Alternative.LINK)
    return replace(answer, item=item)


def _with_links(item: Item, files: Iterable[LocalFile], site_url: str, name: str, alternative: Alternative) -> Item:
    copies = {
        file.url: EntryLink(
            "enclosure",
            site_url + entry_path(name, file.file_id, ENCLOSURES),
            file.media_type,
            length=file.size_bytes,
        )
        for file in files
        if file.item_id == item.id
    }
    return item._replace(payload=with_local(item.payload, copies, alternative)) if copies else item


LOCAL: Final = LocalFiles(lambda form: form.suffix in WITH_LOCAL, page_with_local, item_with_local)
