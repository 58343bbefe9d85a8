"""Documents of the web that the store remembers: their readers, and their end.

A reader is a configuration section or a mirror that fetches documents. Its name is the key of their rows.
"""

from collections.abc import Collection
from typing import Final

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.source import held_reader
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx

ACCEPT_FEED: Final = "application/atom+xml, application/rss+xml, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"


def mirror_reader(node: str) -> str:
    """The reader of the feeds that mirrors bring into a node."""
    return f"mirror of {node}"


def ess_reader(node: str) -> str:
    """The reader of the ESS files of an `[[nno]]` section."""
    return f"ess of {node}"


def feeds_reader(node: str) -> str:
    """The reader of the feeds that an `[[nno]]` section finds in ESS files."""
    return f"feeds of {node}"


def remove_unread_documents(tx: WriteTx, _context: Context, others: Collection[str]) -> None:
    """Removes the documents whose reader exists no more. `others` are readers beside mirrors and sources.

    It runs at the start of the service, when the store has the mirrors of the configuration.
    """
    readers = {mirror_reader(row.mirror.node) for row in stored_mirrors.mirrors(tx)}
    readers |= {held_reader(source.source_no) for source in rows.sources(tx, 0, NO_LIMIT)}
    for reader in tx.document_readers() - readers - set(others):
        for url in tx.documents(reader):
            tx.remove_document(reader, url)
