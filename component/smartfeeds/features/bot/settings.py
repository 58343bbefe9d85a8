"""The section `[bot]`."""

from typing import Annotated

from pydantic import Field

from smartfeeds.app.config_types import BareJid, Count, SettingsSection


class BotSettings(SettingsSection):
    """The chat bot."""

    enabled: bool = True
    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\s/@]+$")] = "feeds"
    rooms: tuple[BareJid, ...] = ()
    rooms_max: Count = 100
    messages_per_minute: Count = 30
