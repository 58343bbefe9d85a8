"""A feed as Atom, RSS 2.0 and 0.92, JSON Feed, ESS or OPML: its newest items, for readers that do not know cursors.

RSS-001, ESS-025, A-153.

The writers are those of `export` and `convert`. This module adds the addresses of the document. The newest item comes
first, so the link to the next document leads to older items.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from smartfeeds.formats.writers import WRITERS, FeedExport, Format
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
    return {form: partial(_write, form, format_, now_us) for form, format_ in _FORMATS.items()}


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
