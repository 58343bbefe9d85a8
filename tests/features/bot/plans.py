"""The statements of the bot, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.bot import rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.store.base import WriteTx


def write(tx: WriteTx) -> None:
    rows.put(tx, ChatRow("a@x"))
    rows.remove(tx, "a@x")
