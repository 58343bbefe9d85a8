"""Redirects, documents that were fetched, and the look-up of a bearer token in SQL.

No other table refers to these.
"""

from smartfeeds.core.token import SCOPES, Token
from smartfeeds.core.validators import KnownDocument, Validators
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tables import DOCUMENT, REDIRECT, TOKEN


def to_token(row: Row) -> Token:
    """A token from the columns of TOKEN. Raises KeyError."""
    token_id, digest, jid, scope, *rest = row
    return Token(token_id, digest, jid, SCOPES[scope], *rest)


class RecordReads(NodeReads):
    """The part of ReadTx for redirects, documents and a token."""

    def token(self, token_id: str) -> Token | None:
        """Returns the bearer token with this id, even if it has expired."""
        row = self.db.row(f"{TOKEN.select} WHERE token_id = ?", (token_id,))
        return to_token(row) if row else None

    def redirect(self, name: str) -> str | None:
        """Returns the new address of the node that had this name."""
        row = self.db.row("SELECT uri FROM redirect WHERE name = ?", (name,))
        return str(row[0]) if row else None

    def redirects_by(self, creator: str) -> int:
        """Returns the number of redirects of nodes that this bare JID created."""
        return self.number("SELECT count(*) FROM redirect WHERE creator = ?", (creator,))

    def document_readers(self) -> set[str]:
        """Returns the readers that have documents."""
        return {reader for (reader,) in self.db.rows("SELECT DISTINCT reader FROM document")}

    def documents(self, reader: str) -> dict[str, KnownDocument]:
        """Returns the documents that a reader has processed, by the address that it requests."""
        rows = self.db.rows(f"{DOCUMENT.select} WHERE reader = ?", (reader,))
        return {
            url: KnownDocument(Validators(source_url, etag, last_modified), content)
            for _, url, source_url, etag, last_modified, content in rows
        }


class RecordWrites(NodeWrites, RecordReads):
    """The part of WriteTx for redirects and documents."""

    def put_redirect(self, name: str, uri: str, creator: str) -> None:
        """Stores the new address of a deleted node."""
        self._ahead.unused_names.discard(name)
        self.change(REDIRECT.replace, (name, uri, creator))

    def remove_redirect(self, name: str) -> None:
        """Removes the redirect from a name."""
        self.change(REDIRECT.delete, (name,))

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        """Stores a document that a reader has processed, or replaces the document of this address."""
        validators = document.validators
        values = (reader, url, validators.url, validators.etag, validators.last_modified, document.content)
        self.change(DOCUMENT.replace, values)

    def remove_document(self, reader: str, url: str) -> None:
        """Removes a document that a reader no longer requests."""
        self.change(DOCUMENT.delete, (reader, url))
