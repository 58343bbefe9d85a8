"""The bot: feeds in chats and rooms."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.store.row_readers import RowReader


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.bot.rows import CHAT, to_chat
    from smartfeeds.store.row_readers import RowReader

    return (RowReader(CHAT, "jid", CHAT.columns, to_chat),)


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.bot.settings import BotSettings

    return (Section("bot", BotSettings),)


def _run(host: Host) -> Running:
    from smartfeeds.features.bot.setup import run_bot

    return run_bot(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.bot.personal import HOOKS

    return HOOKS


BOT = Feature("bot", row_readers=_row_readers, settings=_settings, run=_run, hooks=_hooks)
