"""The section `[prefetch]`: enclosures that are loaded in advance (docs/webfeeds-prefetch.md)."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from smartfeeds.app.config_types import Count, FilePath, RuleText, SettingsSection, WindowText, ZoneName
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.prefetch.enclosure import PrefetchPlan, parse_rule
from smartfeeds.features.prefetch.windows import parse_window

_DAY_US = 86_400 * US_PER_S


class PrefetchSettings(SettingsSection):
    """Enclosures that are loaded in advance. Without a folder none is loaded."""

    folder: FilePath | None = None
    windows: tuple[WindowText, ...] = ("02:00-04:00",)
    zone: ZoneName = ""
    rules: tuple[RuleText, ...] = ("yes type=audio/*", "yes type=video/*")
    unknown_length: bool = True
    unknown_type: bool = False
    file_bytes: Count = 200_000_000
    source_bytes_per_night: Count = 1_000_000_000
    total_bytes: Count = 10_000_000_000
    files_per_source: Count = 20
    keep_days: Count = 30
    least_free_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    bytes_per_s: Annotated[int, Field(ge=0)] = 0

    def to_plan(self) -> PrefetchPlan:
        """Returns the settings as values."""
        return PrefetchPlan(
            windows=tuple(map(parse_window, self.windows)),
            zone=ZoneInfo(self.zone) if self.zone else None,
            rules=tuple(map(parse_rule, self.rules)),
            unknown_length=self.unknown_length,
            unknown_type=self.unknown_type,
            file_bytes=self.file_bytes,
            night_bytes=self.source_bytes_per_night,
            total_bytes=self.total_bytes,
            per_source=self.files_per_source,
            keep_us=self.keep_days * _DAY_US,
            least_free=self.least_free_percent / 100,
            bytes_per_s=self.bytes_per_s,
        )
