"""The rows of bearer tokens in SQL."""

from smartfeeds.core.tokens import SCOPES, Token
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites

_COLUMNS = "token_id, digest, jid, scope, feed, label, created_us, expires_us"


def _to_token(row: Row) -> Token:
    token_id, digest, jid, scope, *rest = row
    return Token(token_id, digest, jid, SCOPES[scope], *rest)


class TokenReads(NodeReads):
    """The part of ReadTx for tokens."""

    def token(self, token_id: str) -> Token | None:
        row = self._db.row(f"SELECT {_COLUMNS} FROM token WHERE token_id = ?", (token_id,))
        return _to_token(row) if row else None

    def tokens(self, after: str, limit: int) -> list[Token]:
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM token WHERE token_id > ? ORDER BY token_id LIMIT ?", (after, limit)
        )
        return [_to_token(row) for row in rows]


class TokenWrites(NodeWrites, TokenReads):
    """The part of WriteTx for tokens."""

    def add_token(self, token: Token) -> None:
        self.changes += 1
        scope, ends = token.scope.text, token.expires_us
        self._db.run(
            f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (token.token_id, token.digest, token.jid, scope, token.feed, token.label, token.created_us, ends),
        )

    def remove_token(self, token_id: str) -> None:
        self.changes += 1
        self._db.run("DELETE FROM token WHERE token_id = ?", (token_id,))
