"""Bearer tokens, sessions, mirrors, redirects, fetched documents and users of the chat bot in SQL.

No other table refers to these.
"""

from smartfeeds.core.token import SCOPES, Token
from smartfeeds.core.validators import KnownDocument, Validators
from smartfeeds.features.accounts.session import Session
from smartfeeds.features.bot.chat import ChatRow, dump_chat_settings, load_chat_settings
from smartfeeds.features.mirrors.mirror import MirrorRow, dump_settings, dump_states, load_settings, load_states
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tables import CHAT, DOCUMENT, MIRROR, REDIRECT, SESSION, TOKEN


def to_token(row: Row) -> Token:
    """A token from the columns of TOKEN. Raises KeyError."""
    token_id, digest, jid, scope, *rest = row
    return Token(token_id, digest, jid, SCOPES[scope], *rest)


def to_session(row: Row) -> Session:
    """A session from the columns of SESSION. Raises KeyError."""
    session_id, digest, jid, scope, *rest = row
    return Session(session_id, digest, jid, SCOPES[scope], *rest)


def to_mirror(row: Row) -> MirrorRow:
    """A mirror from the columns of MIRROR. Raises one of `rows.DAMAGES`."""
    name, configured, settings, state = row
    return MirrorRow(load_settings(name, settings), bool(configured), load_states(state))


def to_chat(row: Row) -> ChatRow:
    """A user of the bot from the columns of CHAT. Raises one of `rows.DAMAGES`."""
    jid, room, settings = row
    return ChatRow(jid, bool(room), load_chat_settings(settings))


class RecordReads(NodeReads):
    """The part of ReadTx for tokens, sessions, mirrors, redirects, documents and users of the chat bot."""

    def token(self, token_id: str) -> Token | None:
        """Returns the bearer token with this id, even if it has expired."""
        row = self.db.row(f"{TOKEN.select} WHERE token_id = ?", (token_id,))
        return to_token(row) if row else None

    def tokens(self, after: str, limit: int) -> list[Token]:
        """Returns bearer tokens by id."""
        statement = f"{TOKEN.select} WHERE token_id > ? ORDER BY token_id LIMIT ?"
        return self.values(TOKEN, to_token, statement, (after,), limit)

    def tokens_of(self, jid: str) -> list[Token]:
        """Returns the bearer tokens of a bare JID, oldest first. The cost grows with the result."""
        rows = self.db.rows(f"{TOKEN.select} WHERE jid = ? ORDER BY created_us, token_id", (jid,))
        return undamaged(TOKEN, to_token, rows)

    def session(self, session_id: str) -> Session | None:
        """Returns the session with this id, even if it has ended."""
        row = self.db.row(f"{SESSION.select} WHERE session_id = ?", (session_id,))
        return to_session(row) if row else None

    def sessions_of(self, jid: str) -> list[Session]:
        """Returns the sessions of a bare JID, the one that was used last at the end. The cost grows with the result."""
        rows = self.db.rows(f"{SESSION.select} WHERE jid = ? ORDER BY seen_us, session_id", (jid,))
        return undamaged(SESSION, to_session, rows)

    def ended_sessions(self, now_us: int, limit: int) -> list[str]:
        """Returns the ids of the first sessions that have ended by this time."""
        rows = self.db.rows(
            "SELECT session_id FROM session WHERE expires_us <= ? ORDER BY expires_us LIMIT ?", (now_us, limit)
        )
        return [str(row[0]) for row in rows]

    def mirror(self, name: str) -> MirrorRow | None:
        """Returns the mirror with this name."""
        row = self.db.row(f"{MIRROR.select} WHERE name = ?", (name,))
        return to_mirror(row) if row else None

    def mirrors(self) -> list[MirrorRow]:
        """Returns all mirrors by name. Their number is small."""
        return undamaged(MIRROR, to_mirror, self.db.rows(f"{MIRROR.select} ORDER BY name"))

    def redirect(self, name: str) -> str | None:
        """Returns the new address of the node that had this name."""
        row = self.db.row("SELECT uri FROM redirect WHERE name = ?", (name,))
        return str(row[0]) if row else None

    def redirects_by(self, creator: str) -> int:
        """Returns the number of redirects of nodes that this bare JID created."""
        return self.number("SELECT count(*) FROM redirect WHERE creator = ?", (creator,))

    def chat(self, jid: str) -> ChatRow | None:
        """Returns the settings of a person or room that uses the chat bot."""
        row = self.db.row(f"{CHAT.select} WHERE jid = ?", (jid,))
        return to_chat(row) if row else None

    def chat_rooms(self) -> list[ChatRow]:
        """Returns the rooms that the chat bot stays in, by JID. Their number is small."""
        return undamaged(CHAT, to_chat, self.db.rows(f"{CHAT.select} WHERE room = 1 ORDER BY jid"))

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
    """The part of WriteTx for tokens, sessions, mirrors, redirects, documents and users of the chat bot."""

    def add_token(self, token: Token) -> None:
        """Stores a new bearer token. Raises StoreError if its id exists."""
        scope, ends = token.scope.text, token.expires_us
        values = (token.token_id, token.digest, token.jid, scope, token.feed, token.label, token.created_us, ends)
        self.change(TOKEN.insert, values)

    def remove_token(self, token_id: str) -> None:
        """Removes a bearer token, and the sessions of users who signed in with it."""
        self.change(TOKEN.delete, (token_id,))
        self.change("DELETE FROM session WHERE token_id = ?", (token_id,))

    def put_session(self, session: Session) -> None:
        """Stores a session, or replaces it."""
        s = session
        scope, times = s.scope.text, (s.created_us, s.seen_us, s.expires_us, s.limit_us)
        values = (s.session_id, s.digest, s.jid, scope, s.feed, s.token_id, s.label, *times)
        self.change(SESSION.replace, values)

    def remove_session(self, session_id: str) -> None:
        """Removes a session."""
        self.change(SESSION.delete, (session_id,))

    def put_mirror(self, row: MirrorRow) -> None:
        """Stores a mirror, or replaces the mirror with its name."""
        values = (row.mirror.name, int(row.configured), dump_settings(row.mirror), dump_states(row.states))
        self.change(MIRROR.replace, values)

    def remove_mirror(self, name: str) -> None:
        """Removes a mirror. The items that it received remain."""
        self.change(MIRROR.delete, (name,))

    def put_redirect(self, name: str, uri: str, creator: str) -> None:
        """Stores the new address of a deleted node."""
        self.change(REDIRECT.replace, (name, uri, creator))

    def remove_redirect(self, name: str) -> None:
        """Removes the redirect from a name."""
        self.change(REDIRECT.delete, (name,))

    def put_chat(self, row: ChatRow) -> None:
        """Stores the settings of a person or room, or replaces them."""
        self.change(CHAT.replace, (row.jid, int(row.room), dump_chat_settings(row.settings)))

    def remove_chat(self, jid: str) -> None:
        """Removes the settings of a person or room."""
        self.change(CHAT.delete, (jid,))

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        """Stores a document that a reader has processed, or replaces the document of this address."""
        validators = document.validators
        values = (reader, url, validators.url, validators.etag, validators.last_modified, document.content)
        self.change(DOCUMENT.replace, values)

    def remove_document(self, reader: str, url: str) -> None:
        """Removes a document that a reader no longer requests."""
        self.change(DOCUMENT.delete, (reader, url))
