"""The section `[site]`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from smartfeeds.app.config_types import FilePath, SettingsSection
from smartfeeds.core.feed_files import LOGO_TYPES

_LOGO_BYTES = 262_144  # every page loads it


class SiteSettings(SettingsSection):
    """The look of the pages for browsers."""

    name: Annotated[str, Field(min_length=1, max_length=60)] = "Smart Feeds"
    accent: Annotated[str, Field(pattern="^(#[0-9a-fA-F]{6})?$")] = ""
    logo: FilePath | None = None
    images: Literal["off", "click", "on"] = "click"

    @model_validator(mode="after")
    def _logo_is_shown(self) -> "SiteSettings":
        if self.logo is not None:
            if self.logo.suffix.lower() not in LOGO_TYPES:
                raise ValueError(f"logo must be a file named *{' or *'.join(LOGO_TYPES)}, not {self.logo}")
            if len(self.read_logo()) > _LOGO_BYTES:
                raise ValueError(f"logo {self.logo} is too large; the limit is {_LOGO_BYTES:,} bytes")
        return self

    def read_logo(self) -> bytes:
        """Returns the content of the logo. Raises ValueError if the file cannot be read."""
        assert self.logo is not None  # the callers have checked it
        try:
            return self.logo.read_bytes()
        except OSError as error:
            raise ValueError(f"cannot read logo {self.logo}: {error.strerror}") from None
