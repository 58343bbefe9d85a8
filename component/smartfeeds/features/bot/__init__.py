"""The bot: feeds in chats and rooms."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section, StoreSide

if TYPE_CHECKING:
    from smartfeeds.store.row_readers import RowReader


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.bot.settings import BotSettings

    return (Section("bot", BotSettings),)


def _store() -> StoreSide:
    from smartfeeds.features.bot.personal import HOOKS

    return StoreSide(hooks=HOOKS)


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.bot.rows import CHAT, to_chat
    from smartfeeds.store.row_readers import RowReader

    return (RowReader(CHAT, "jid", CHAT.columns, to_chat),)


def _run(host: Host) -> Running:
    from smartfeeds.features.bot.setup import run_bot

    return run_bot(host)


BOT = Feature(
    "bot",
    settings=_settings,
    store=_store,
    run=_run,
    row_readers=_row_readers,
)
