"""Documents that were fetched from the web, in SQL."""

from smartfeeds.core.validators import KnownDocument, Validators
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites


class DocumentReads(NodeReads):
    """The part of ReadTx that is about fetched documents."""

    def documents(self, reader: str) -> dict[str, KnownDocument]:
        rows = self._db.rows(
            "SELECT url, source_url, etag, last_modified, content FROM document WHERE reader = ?", (reader,)
        )
        return {
            url: KnownDocument(Validators(source_url, etag, last_modified), content)
            for url, source_url, etag, last_modified, content in rows
        }


class DocumentWrites(NodeWrites, DocumentReads):
    """The part of WriteTx that is about fetched documents."""

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        self.changes += 1
        known = document.validators
        self._db.run(
            "INSERT OR REPLACE INTO document (reader, url, source_url, etag, last_modified, content)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (reader, url, known.url, known.etag, known.last_modified, document.content),
        )

    def remove_document(self, reader: str, url: str) -> None:
        self.changes += 1
        self._db.run("DELETE FROM document WHERE reader = ? AND url = ?", (reader, url))
