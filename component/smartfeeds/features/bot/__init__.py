"""The bot: feeds in chats and rooms."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.store.row_readers import RowReader


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.bot.rows import to_chat
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_tables import CHAT

    return (RowReader(CHAT, "jid", CHAT.columns, to_chat),)


BOT = Feature("bot", row_readers=_row_readers)
