"""Documents of the web that the store remembers for their readers, and their end (`ReadTx.documents`).

A reader is what fetches documents for a node, such as a mirror. Its name is the key of their rows.
"""

from collections.abc import Callable, Collection, Iterable

from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx

# The names of the readers of one kind that the store and the configuration have.
DocumentReaders = Callable[[ReadTx], Collection[str]]


def remove_unread_documents(tx: WriteTx, _context: Context, readers: Iterable[DocumentReaders]) -> None:
    """Removes the documents whose reader exists no more.

    It runs at the start of the service, when the store has what the configuration adds.
    """
    names = {name for readers_of in readers for name in readers_of(tx)}
    for reader in tx.document_readers() - names:
        for url in tx.documents(reader):
            tx.remove_document(reader, url)
