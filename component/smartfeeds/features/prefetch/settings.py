"""The section `[prefetch]`: enclosures that are loaded in advance (docs/webfeeds-prefetch.md)."""

from collections.abc import Callable
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from smartfeeds.app.config_types import Count, FilePath, SettingsSection
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.enclosure_rules import Rule, parse_rule
from smartfeeds.features.polling.settings import SourceSection
from smartfeeds.features.prefetch.windows import DailyWindow, Span, current_span, next_open_us, parse_window

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
    """Enclosures that are loaded in advance (PRE-002, PRE-009, PRE-011, PRE-014, PRE-030). Without a folder none is
    loaded."""

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

    @cached_property
    def parsed_rules(self) -> tuple[Rule, ...]:
        """The rules for sources that have none of their own."""
        return tuple(map(parse_rule, self.rules))

    @cached_property
    def _times(self) -> tuple[tuple[DailyWindow, ...], tzinfo | None]:
        return tuple(map(parse_window, self.windows)), ZoneInfo(self.zone) if self.zone else None

    @property
    def keep_us(self) -> int:
        """The time for which a file is stored, in microseconds."""
        return self.keep_days * _DAY_US

    @property
    def least_free(self) -> float:
        """The share of the disk that stays free."""
        return self.least_free_percent / 100

    def span_at(self, now_us: int) -> Span | None:
        """Returns the span of a window that is open at a time, None if none is."""
        return current_span(*self._times, now_us)

    def next_open_us(self, now_us: int) -> int | None:
        """Returns when the next window opens, None without windows."""
        return next_open_us(*self._times, now_us)


def prefetch_of(settings: "Settings") -> PrefetchSettings | None:
    """Returns the section, None without a folder (PRE-036)."""
    section = settings.section(PrefetchSettings)
    return None if section.folder is None else section


def check_prefetch(settings: "Settings") -> None:
    """Checks that what is loaded in advance is served at a public address (PRE-036). Raises ValueError."""
    folder = settings.section(PrefetchSettings).folder
    if folder is not None and not (settings.http.listen and settings.http.base_url):
        raise ValueError("prefetch.folder needs http.listen and http.base_url; set them, or remove the folder")
    sources = [section.url for section in settings.sections(SourceSection) if section.prefetch]
    if sources and folder is None:
        raise ValueError(f"the source {sources[0]} has prefetch, which needs prefetch.folder; set a folder")
