"""The bot: feeds in chats and rooms."""

from smartfeeds.app.feature import Feature

BOT = Feature("bot")
