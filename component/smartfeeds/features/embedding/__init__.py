"""Embedding: a feed in a frame on another web site, by a script of one line."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.features.embedding.routes import EmbeddingHandlers
    from smartfeeds.http.side import HttpSide


def _http() -> "HttpSide[EmbeddingHandlers]":
    from smartfeeds.features.embedding.routes import HTTP

    return HTTP


EMBEDDING = Feature("embedding", needs=("pages",), http=_http)
