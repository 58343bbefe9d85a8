"""A feed as Atom, RSS 2.0 and 0.92, JSON Feed, ESS, NNO or OPML: its newest items, for readers without cursors.

RSS-001, ESS-025, A-153.

The writers are those of `export` and `convert`. This module adds the addresses of the document. The newest item comes
first, so the link to the next document leads to older items.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from smartfeeds.core.model import Item
from smartfeeds.core.page import parse_number
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.documents.ess import NnoEntry, read_nno, write_nno
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.links import is_absolute
from smartfeeds.formats.writers import WRITERS, FeedExport, Format, nno_entry
from smartfeeds.http import negotiation as n
from smartfeeds.http.encode import PageAddress, first_cursor, head_of, items_of, sharing_of
from smartfeeds.http.feeds import Write
from smartfeeds.http.negotiation import Representation
from smartfeeds.service.requests import FeedPage
from smartfeeds.sync.documents import FeedFormat
from smartfeeds.sync.publishing import DOCUMENTS

_FORMATS: Mapping[Representation, Format] = {
    n.ATOM: WRITERS["atom"],
    n.RSS: WRITERS["rss"],
    n.RSS_092: WRITERS["rss092"],
    n.JSON_FEED: WRITERS["jsonfeed"],
    n.ESS: WRITERS["ess"],
    n.OPML: WRITERS["opml"],
}


# The documents that carry sync data; Atom with sync data is a pull.
SHARED: Mapping[Representation, FeedFormat] = {n.RSS: FeedFormat.RSS, n.OPML: FeedFormat.OPML}


def document_writers(now_us: Callable[[], int]) -> Mapping[Representation, Write]:
    """A writer for each representation. `now_us` returns microseconds, for the build time of an ESS file."""
    writers: dict[Representation, Write] = {
        form: partial(_write, form, format_, now_us) for form, format_ in _FORMATS.items()
    }
    return writers | {n.NNO: partial(_write_nno, now_us)}


def _write_nno(now_us: Callable[[], int], answer: FeedPage, place: PageAddress) -> bytes:
    """The entries with the feeds that they come from (ESS-017, ESS-023). For a node that an `[[nno]]` section fills it
    is the result of the section; `max` cuts it.
    """
    if answer.outline:
        result = read_nno(answer.outline)
        count = None if place.query.max is None else parse_number(place.query.max, "max")
        return write_nno(result.entries[:count], result.build_s * US_PER_S).data
    own_url = place.document_url(n.RSS.suffix)
    return write_nno((_entry_of(item, own_url) for item in items_of(answer) if not item.deleted), now_us()).data


def _entry_of(item: Item, own_url: str) -> NnoEntry:
    entry = read_entry(item)
    source = entry.source.href if entry.source is not None and is_absolute(entry.source.href) else own_url
    return nno_entry(source, entry)


def _write(
    form: Representation, format_: Format, now_us: Callable[[], int], answer: FeedPage, place: PageAddress
) -> bytes:
    first = first_cursor(answer)
    older = place.page_url(form.suffix, until=f"cursor:{first}") if answer.older and first else ""
    head = replace(
        head_of(answer, place),
        link=place.base_url,
        self_link=place.document_url(n.self_suffix(form)),
        next_link=older,
        for_readers=True,
    )
    items = items_of(answer)
    if answer.view.sync:
        return DOCUMENTS[SHARED[form]](head, sharing_of(answer, place, form.suffix)).whole(items)
    # Atom prescribes no order; the other writers sort the items as their format requires.
    return b"".join(format_.write(FeedExport(head, items[::-1] if form is n.ATOM else items, now_us())))
