"""Embedding: a feed in a frame on another web site, by a script of one line, and replies of guests there."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, ServiceSide, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.embedding.routes import EmbeddingHandlers
    from smartfeeds.http.side import HttpSide
    from smartfeeds.store.row_readers import RowReader


def _store() -> StoreSide:
    from smartfeeds.features.embedding.requests import HOOKS, USE_CASES

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.embedding.adhoc import XMPP
    from smartfeeds.features.embedding.chat import CHAT
    from smartfeeds.features.embedding.resources import MODERATION

    return ServiceSide(xmpp=XMPP, chat=CHAT, resources=(MODERATION,))


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.embedding.rows import GUEST_REPLY, to_reply
    from smartfeeds.store.row_readers import RowReader

    return (RowReader(GUEST_REPLY, "reply_id", GUEST_REPLY.columns, to_reply),)


def _run(host: Host) -> Running:
    from smartfeeds.features.embedding.setup import run_embedding

    return run_embedding(host)


def _http() -> "HttpSide[EmbeddingHandlers]":
    from smartfeeds.features.embedding.routes import HTTP

    return HTTP


EMBEDDING = Feature(
    "embedding",
    needs=("pages",),
    store=_store,
    service=_service,
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
