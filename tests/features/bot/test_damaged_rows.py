"""Damaged rows of chats are found."""

import pytest

from smartfeeds.features.bot import BOT
from smartfeeds.features.bot.chat import ChatSettings, dump_chat_settings
from smartfeeds.store.rows import DAMAGES


def test_damaged_row_of_a_chat_is_found() -> None:
    (reader,) = BOT.row_readers()
    reader.read(("bob@b.example", 0, dump_chat_settings(ChatSettings())))
    with pytest.raises(DAMAGES):
        reader.read(("bob@b.example", 0, "[]"))
