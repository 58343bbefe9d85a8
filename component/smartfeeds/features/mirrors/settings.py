"""The section `[[mirror]]`."""

from typing import TYPE_CHECKING

from pydantic import model_validator

from smartfeeds.app.config_types import BareJid, SettingsSection
from smartfeeds.errors import ConfigError
from smartfeeds.features.mirrors.mirror import EVERY_S, Direction, Mirror, check_elsewhere, make_mirror

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings


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


def check_mirrors(settings: "Settings") -> None:
    """Checks the mirrors beside each other and beside the service. Raises ValueError."""
    mirrors = [section.to_mirror() for section in settings.sections(MirrorSettings)]
    for mirror in mirrors:
        try:
            check_elsewhere(mirror, settings.component.jid)
        except ConfigError as error:
            raise ValueError(str(error)) from None
    for what, values in (
        ("node and address", {(mirror.node, mirror.address) for mirror in mirrors}),
        ("name", {mirror.name for mirror in mirrors}),
    ):
        if len(values) < len(mirrors):
            raise ValueError(f"two [[mirror]] sections have the same {what}; remove one of them or rename it")
