"""The section `[prefetch]`: enclosures that are loaded in advance (docs/webfeeds-prefetch.md)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from smartfeeds.app.config_types import Count, FilePath, SettingsSection
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.enclosure_rules import parse_rule
from smartfeeds.features.polling.settings import SourceSection
from smartfeeds.features.prefetch.enclosure import PrefetchPlan
from smartfeeds.features.prefetch.windows import parse_window

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings

_DAY_US = 86_400 * US_PER_S


def _checked(parse: Callable[[str], object]) -> AfterValidator:
    """Checks a text by reading it."""

    def check(text: str) -> str:
        try:
            parse(text)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return text

    return AfterValidator(check)


def _zone(text: str) -> str:
    try:
        return text if not text else ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f'must be a time zone such as "Europe/Prague", or empty, not "{text}"') from None


WindowText = Annotated[str, _checked(parse_window)]
RuleText = Annotated[str, _checked(parse_rule)]
ZoneName = Annotated[str, AfterValidator(_zone)]


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


def plan_in(settings: "Settings") -> PrefetchPlan | None:
    """Returns the plan for loads, None without a folder (PRE-036)."""
    section = settings.section(PrefetchSettings)
    return None if section.folder is None else section.to_plan()


def check_prefetch(settings: "Settings") -> None:
    """Checks that what is loaded in advance is served at a public address (PRE-036). Raises ValueError."""
    folder = settings.section(PrefetchSettings).folder
    if folder is not None and not (settings.http.listen and settings.http.base_url):
        raise ValueError("prefetch.folder needs http.listen and http.base_url; set them, or remove the folder")
    sources = [section.url for section in settings.sections(SourceSection) if section.prefetch]
    if sources and folder is None:
        raise ValueError(f"the source {sources[0]} has prefetch, which needs prefetch.folder; set a folder")
