"""A feed as a document in any format: its newest items, for readers without cursors (RSS-001, A-153).

The writers are those of `export` and `convert`. This module adds the addresses of the document. The newest item comes
first, so the link to the next document leads to older items.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from smartfeeds.formats.document_format import DocumentFormat, FeedExport
from smartfeeds.formats.representation import Representation
from smartfeeds.http.encode import PageAddress, Write, first_cursor, head_of, items_of, sharing_of
from smartfeeds.http.forms import FeedForm, FeedForms
from smartfeeds.http.negotiation import ATOM, OPML, RSS
from smartfeeds.service.requests import FeedPage
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.document_writer import DOCUMENTS

# The documents that carry sync data; Atom with sync data is a pull.
SHARED: Mapping[Representation, FeedFormat] = {RSS: FeedFormat.RSS, OPML: FeedFormat.OPML}


def document_writers(forms: FeedForms, now_us: Callable[[], int]) -> Mapping[Representation, Write]:
    """A writer for each representation. `now_us` returns microseconds, for the build time of an ESS file."""
    writers: dict[Representation, Write] = {
        form: partial(_write, form, each, now_us) for form, each in forms.documents.items()
    }
    return writers | {form: partial(_write_other, each, now_us) for form, each in forms.others.items()}


def _write_other(form: FeedForm, now_us: Callable[[], int], answer: FeedPage, place: PageAddress) -> bytes:
    return form.write(answer, place, now_us())


def _write(
    form: Representation, format_: DocumentFormat, now_us: Callable[[], int], answer: FeedPage, place: PageAddress
) -> bytes:
    first = first_cursor(answer)
    older = place.page_url(form.suffix, until=f"cursor:{first}") if answer.older and first else ""
    head = replace(
        head_of(answer, place),
        link=place.base_url,
        self_link=place.document_url(form.own_suffix),
        next_link=older,
        for_readers=True,
    )
    items = items_of(answer)
    if answer.view.sync:
        return DOCUMENTS[SHARED[form]](head, sharing_of(answer, place, form.suffix)).whole(items)
    # Atom prescribes no order; the other writers sort the items as their format requires.
    return b"".join(format_.write(FeedExport(head, items[::-1] if form is ATOM else items, now_us())))
