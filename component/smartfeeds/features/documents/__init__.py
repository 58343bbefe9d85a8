"""Documents in other formats than those of the kernel: RSS 0.92, JSON Feed, ESS and NNO; and `smartfeeds convert`."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.features.documents.http import NnoLists
    from smartfeeds.formats.document_format import DocumentFormat
    from smartfeeds.http.side import HttpSide


def _documents() -> "tuple[DocumentFormat, ...]":
    from smartfeeds.features.documents.formats import FORMATS

    return FORMATS


def _http() -> "HttpSide[NnoLists]":
    from smartfeeds.features.documents.http import HTTP

    return HTTP


DOCUMENTS = Feature(
    "documents", commands={"convert": "smartfeeds.features.documents.command"}, http=_http, documents=_documents
)
