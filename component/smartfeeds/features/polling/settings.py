"""The section `[[source]]`."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from smartfeeds.app.config_types import BareJid, SettingsSection, WebAddress
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.source import (
    LEAST_CHOSEN_S,
    MAX_HISTORY,
    TOLD_AT_FIRST,
    Source,
    SourceSettings,
    new_source,
)

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings


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


def check_sources(settings: "Settings") -> None:
    """Checks that each source has one section. Raises ValueError."""
    sources = [section.to_source(0) for section in settings.sections(SourceSection)]
    if len({(source.node, source.first_url) for source in sources}) < len(sources):
        raise ValueError("two [[source]] sections have the same node and address; remove one of them")
