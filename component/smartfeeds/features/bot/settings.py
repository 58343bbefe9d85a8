"""The section `[bot]`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from smartfeeds.app.config_types import BareJid, Count, FilePath, SettingsSection
from smartfeeds.core.feed_files import png_size

_OWN = Path(__file__).with_name("picture.png")
_PICTURE_BYTES = 32_768  # clients get it in one stanza, as text


class BotSettings(SettingsSection):
    """The chat bot."""

    enabled: bool = True
    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\s/@]+$")] = "feeds"
    rooms: tuple[BareJid, ...] = ()
    rooms_max: Count = 100
    messages_per_minute: Count = 30
    picture: FilePath | None = None

    @model_validator(mode="after")
    def _picture_is_shown(self) -> "BotSettings":
        picture = self.read_picture()
        if png_size(picture) == (0, 0):
            raise ValueError(f"picture {self.picture} is no PNG file; every client shows PNG")
        if len(picture) > _PICTURE_BYTES:
            raise ValueError(f"picture {self.picture} is too large; the limit is {_PICTURE_BYTES:,} bytes")
        return self

    def read_picture(self) -> bytes:
        """Returns the content of the picture. Raises ValueError if the file cannot be read."""
        try:
            return (self.picture or _OWN).read_bytes()
        except OSError as error:
            raise ValueError(f"cannot read picture {self.picture}: {error.strerror}") from None
