"""The section `[[nno]]`."""

from typing import Annotated

from pydantic import Field

from smartfeeds.app.config_types import BareJid, SettingsSection, WebAddress


class NnoSettings(SettingsSection):
    """A node with the newest entries of many feeds, by their ESS files. The section may occur several times."""

    node: Annotated[str, Field(min_length=1)]
    urls: Annotated[tuple[WebAddress, ...], Field(min_length=1)]
    entries: Annotated[int, Field(ge=1, le=10_000)] = 50
    every_s: Annotated[float, Field(ge=60)] = 900.0
    owner: BareJid | None = None
    allow_private: bool = False
