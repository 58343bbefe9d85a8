"""Persons and rooms that use the chat bot, in every store."""

from dataclasses import replace

from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import DAILY, ChatRow, ChatSettings, Digest, QuietHours
from smartfeeds.store.base import Store, WriteTx

PERSON = ChatRow(
    "alice@example.org", False, ChatSettings("de", "Europe/Berlin", QuietHours(1320, 420), Digest(DAILY, 480))
)
ROOM = ChatRow("club@rooms.example.org", True)


async def test_row_is_returned_as_it_was(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        chat_rows.put(tx, PERSON)
        chat_rows.put(tx, ROOM)

    await store.write(work)
    assert await store.read(lambda tx: chat_rows.chat(tx, PERSON.jid)) == PERSON
    assert await store.read(lambda tx: chat_rows.chat(tx, "nobody@example.org")) is None
    assert await store.read(lambda tx: chat_rows.rooms(tx)) == [ROOM]


async def test_row_is_replaced_and_removed(store: Store) -> None:
    other = replace(PERSON, settings=ChatSettings())
    await store.write(lambda tx: chat_rows.put(tx, PERSON))
    await store.write(lambda tx: chat_rows.put(tx, other))
    assert await store.read(lambda tx: chat_rows.chat(tx, PERSON.jid)) == other
    await store.write(lambda tx: chat_rows.remove(tx, PERSON.jid))
    assert await store.read(lambda tx: chat_rows.chat(tx, PERSON.jid)) is None
