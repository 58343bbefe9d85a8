"""Plots of the last 24 hours as SVG, and the same numbers as a table. The server draws them, without a script."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smartfeeds.recent import Sample
from smartfeeds.texts import N_

BARS: Final = 48  # half hours of a day
BAR_US: Final = 30 * 60 * 1_000_000
WIDTH, HEIGHT = 720, 96  # of the bars, in the units of the picture
_STEP: Final = WIDTH // BARS
_GAP: Final = 3
_TICK_US: Final = 4 * 3_600_000_000  # between two marks of the time axis


@dataclass(frozen=True, slots=True)
class Bucket:
    """Half an hour from `start_us` on: what happened in it, and the longest lag in seconds."""

    start_us: int
    published: int = 0
    notified: int = 0
    pulled: int = 0
    lag_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a plot: its place and size in the picture, and its value."""

    x: int
    y: float
    height: float
    start_us: int
    value: float


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: the key and the name of its numbers, the greatest of them, the bars that are not empty, and the marks of
    the time axis with their place."""

    key: str
    name: str
    most: float
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[int, int], ...]


_VALUES: Final[tuple[tuple[str, str, Callable[[Bucket], float]], ...]] = (
    ("published", N_("Publishes"), lambda bucket: bucket.published),
    ("notified", N_("Notifications"), lambda bucket: bucket.notified),
    ("pulled", N_("Pulls"), lambda bucket: bucket.pulled),
    ("lag", N_("Longest lag in seconds"), lambda bucket: bucket.lag_s),
)


def buckets_of(history: Sequence[Sample], now_us: int) -> list[Bucket]:
    """Returns the half hours of the last 24 hours, oldest first; the last one has begun. Other samples are left out:
    after a step of the clock their times mean nothing."""
    first_us = (now_us // BAR_US - BARS + 1) * BAR_US
    parts: list[list[Sample]] = [[] for _ in range(BARS)]
    for sample in history:
        # A sample has the time of its end, so one at the full half hour belongs to the half hour before.
        place = (sample.time_us - 1 - first_us) // BAR_US
        if 0 <= place < BARS:
            parts[place].append(sample)
    return [
        Bucket(
            first_us + place * BAR_US,
            int(sum(sample.counts.published for sample in samples)),
            int(sum(sample.counts.notified for sample in samples)),
            int(sum(sample.counts.pulled for sample in samples)),
            round(max((sample.lag_s for sample in samples), default=0.0), 1),
        )
        for place, samples in enumerate(parts)
    ]


def plots_of(buckets: Sequence[Bucket]) -> list[Plot]:
    """Returns one plot for each number of the buckets."""
    ticks = tuple(
        # A mark at the right edge would have no room for its text.
        (place * _STEP, bucket.start_us)
        for place, bucket in enumerate(buckets[:-2])
        if not bucket.start_us % _TICK_US
    )
    return [_plot(key, name, [value(bucket) for bucket in buckets], buckets, ticks) for key, name, value in _VALUES]


def _plot(
    key: str, name: str, values: Sequence[float], buckets: Sequence[Bucket], ticks: tuple[tuple[int, int], ...]
) -> Plot:
    most = max(values, default=0)
    bars = [
        Bar(place * _STEP, HEIGHT - height, height, buckets[place].start_us, value)
        for place, value in enumerate(values)
        # A small number among great ones must not disappear.
        if value > 0 and (height := round(max(2.0, HEIGHT * value / most), 1))
    ]
    return Plot(key, name, most, tuple(bars), ticks)


BAR_WIDTH: Final = _STEP - _GAP
