"""Damaged rows of chats are found."""

import pytest

from smartfeeds.features.bot import BOT
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import ChatRow, ChatSettings, dump_chat_settings
from smartfeeds.store.base import WriteTx
from smartfeeds.store.rows import DAMAGES
from support.component import Starter
from support.damaged_rows import DamagedTable, check_damage
from support.web import WebStarter


def test_damaged_row_of_a_chat_is_found() -> None:
    (reader,) = BOT.row_readers()
    reader.read(("bob@b.example", 0, dump_chat_settings(ChatSettings())))
    with pytest.raises(DAMAGES):
        reader.read(("bob@b.example", 0, "[]"))


def add_room(tx: WriteTx, name: str) -> None:
    chat_rows.put(tx, ChatRow(f"{name}@rooms.example.org", True))


CHAT = DamagedTable("chat", chat_rows.rooms, add_room, first="jid LIKE 'bad%'")
CHAT_DAMAGES = [("settings", "'{'"), ("settings", "'{}'"), ("settings", """'{"quiet":7}'""")]


@pytest.mark.parametrize(("column", "value"), CHAT_DAMAGES)
async def test_damaged_chat_stops_no_others(start: Starter, start_web: WebStarter, column: str, value: str) -> None:
    await check_damage(start, start_web, CHAT, column, value, bot={"enabled": False})
