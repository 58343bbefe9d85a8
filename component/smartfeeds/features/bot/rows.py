"""Persons and rooms that use the bot in SQL (`chat`)."""

from smartfeeds.features.bot.chat import ChatRow, dump_chat_settings, load_chat_settings
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_tables import Table

CHAT = Table("chat", "jid", "room, settings")


def to_chat(row: Row) -> ChatRow:
    """A user of the bot from the columns of CHAT. Raises one of `rows.DAMAGES`."""
    jid, room, settings = row
    return ChatRow(jid, bool(room), load_chat_settings(settings))


def chat(tx: ReadTx, jid: str) -> ChatRow | None:
    """Returns the settings of a person or room that uses the chat bot."""
    row = tx.db.row(f"{CHAT.select} WHERE jid = ?", (jid,))
    return to_chat(row) if row else None


def rooms(tx: ReadTx) -> list[ChatRow]:
    """Returns the rooms that the chat bot stays in, by JID. Their number is small."""
    return undamaged(CHAT, to_chat, tx.db.rows(f"{CHAT.select} WHERE room = 1 ORDER BY jid"))


def put(tx: WriteTx, row: ChatRow) -> None:
    """Stores the settings of a person or room, or replaces them."""
    tx.change(CHAT.replace, (row.jid, int(row.room), dump_chat_settings(row.settings)))


def remove(tx: WriteTx, jid: str) -> None:
    """Removes the settings of a person or room."""
    tx.change(CHAT.delete, (jid,))
