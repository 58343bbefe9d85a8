"""Sections of the configuration that may occur several times: `[[mirror]]`, `[[source]]`."""

from typing import Annotated

from pydantic import Field, model_validator

from smartfeeds.app.config_types import BareJid, SettingsSection, WebAddress
from smartfeeds.errors import ConfigError
from smartfeeds.features.mirrors.mirror import EVERY_S, Direction, Mirror, make_mirror
from smartfeeds.features.polling.source import (
    LEAST_CHOSEN_S,
    MAX_HISTORY,
    TOLD_AT_FIRST,
    Source,
    SourceSettings,
    new_source,
)


class MirrorSettings(SettingsSection):
    """A node that is synchronised with a feed elsewhere. The section may occur several times."""

    node: str
    address: str
    name: str = ""
    direction: Direction = Direction.IN
    owner: BareJid | None = None
    every_s: float = EVERY_S
    own_edits: bool = False
    allow_private: bool = False

    def to_mirror(self) -> Mirror:
        """Returns the mirror that this section describes. Raises ConfigError."""
        return make_mirror(**(self.model_dump() | {"owner": self.owner or ""}))

    @model_validator(mode="after")
    def _check_mirror(self) -> "MirrorSettings":
        try:
            self.to_mirror()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


class SourceSection(SettingsSection):
    """A feed of another server that fills a node. The section may occur several times."""

    url: WebAddress
    node: Annotated[str, Field(min_length=1)]
    every_s: Annotated[int, Field(ge=LEAST_CHOSEN_S)] | None = None
    publisher: BareJid | None = None
    user: str = ""
    password: str = ""
    user_agent: Annotated[str, Field(max_length=200, pattern=r"^[\x20-\x7e]*$")] = ""
    allow_private: bool = False
    first_told: Annotated[int, Field(ge=0)] = TOLD_AT_FIRST
    ignore_skips: bool = False
    ignore: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    history: Annotated[int, Field(ge=0, le=MAX_HISTORY)] = 0
    only: str = ""
    push: bool = True
    prefetch: bool = False
    prefetch_first: Annotated[int, Field(ge=0)] = 1
    prefetch_rules: tuple[str, ...] = ()
    prefetch_hold: bool = False

    def to_source(self, now_us: int) -> Source:
        """Returns the source that this section describes. Raises ConfigError."""
        settings = self.model_dump(exclude={"url", "node"}) | {"publisher": self.publisher or ""}
        return new_source(self.node, self.url, now_us, SourceSettings(**settings), configured=True)

    @model_validator(mode="after")
    def _check_source(self) -> "SourceSection":
        try:
            self.to_source(0)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self
