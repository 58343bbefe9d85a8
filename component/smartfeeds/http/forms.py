"""The representations of feeds and of the list of feeds: those of the kernel, of formats, and of features.

A format of documents has a representation. A representation whose writer needs more than the items is a `FeedForm`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from smartfeeds.core.urls import list_path
from smartfeeds.formats.document_format import DocumentFormat
from smartfeeds.formats.feed_document import ItemDraft, SkippedItem
from smartfeeds.formats.json_text import JsonObject
from smartfeeds.formats.representation import Representation
from smartfeeds.http.encode import PageAddress
from smartfeeds.http.negotiation import ATOM, HTML, OF_FEED, OF_LIST, by_suffix
from smartfeeds.http.openapi_schemas import Schema, ref
from smartfeeds.service.requests import FeedPage

ReadJsonItem = Callable[[JsonObject], ItemDraft | SkippedItem]


@dataclass(frozen=True, slots=True)
class FeedForm:
    """A representation of a feed. `write` gets a page, its address and the time. `stored`: a document that a feature
    has stored with the node takes the place of the page."""

    representation: Representation
    write: Callable[[FeedPage, PageAddress, int], bytes]
    stored: bool = False


@dataclass(frozen=True, slots=True)
class FeedForms:
    """All representations. `documents` has the formats of documents for readers, `others` the other representations,
    and `lists` those of the list of feeds beside JSON, pages and OPML."""

    documents: Mapping[Representation, DocumentFormat]
    others: Mapping[Representation, FeedForm]
    lists: tuple[Representation, ...]
    of_feed: tuple[Representation, ...]
    suffixes: Mapping[str, Representation]
    linked: tuple[Representation, ...]

    @classmethod
    def of(
        cls, formats: Iterable[DocumentFormat], others: Iterable[FeedForm], lists: Iterable[Representation]
    ) -> "FeedForms":
        """Returns the representations of formats and of features."""
        documents = {each.representation: each for each in formats if each.representation is not None}
        by_form = {each.representation: each for each in others}
        every = (*OF_FEED, *(form for form in (*documents, *by_form) if form not in OF_FEED))
        return cls(
            documents,
            by_form,
            tuple(lists),
            tuple(form for form in every if form.accept_types),
            by_suffix(every),
            tuple(sorted((form for form in every if form.link), key=lambda form: form.link)),
        )

    def is_for_readers(self, form: Representation) -> bool:
        """Whether a representation is a document for readers whatever the request is. Atom may be a pull."""
        return form is not ATOM and (form is HTML or form in self.documents or form in self.others)

    def is_stored(self, form: Representation) -> bool:
        """Whether a document that is stored with the node takes the place of the page."""
        return form in self.others and self.others[form].stored

    @property
    def of_list(self) -> tuple[Representation, ...]:
        """The representations of the list of feeds."""
        return (*OF_LIST, *self.lists)

    @property
    def list_paths(self) -> Mapping[str, Representation]:
        """The paths of the list of feeds, each with its representation."""
        return {list_path(suffix): form for suffix, form in by_suffix(self.of_list).items()}

    @property
    def item_readers(self) -> Mapping[str, ReadJsonItem]:
        """The readers of an item that stands alone in JSON, by media type."""
        return {form.accept_types[0]: each.item for form, each in self.documents.items() if each.item is not None}

    @property
    def whole_feeds(self) -> frozenset[str]:
        """The media types of documents that somebody might take for items."""
        documents = [form for form, each in self.documents.items() if each.item is None and form is not ATOM]
        return frozenset(kind for form in (*documents, *self.others) for kind in form.accept_types)


def content_of(forms: Iterable[Representation]) -> dict[str, Schema]:
    """Returns the media types of representations with their schemas."""
    return {form.bare_type: ref(form.schema) if form.schema else {"type": "string"} for form in forms}
