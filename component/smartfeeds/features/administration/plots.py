"""Plots of the last 24 hours as SVG, and the same numbers as a table. The server draws them, without a script."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smartfeeds.recent import Sample
from smartfeeds.texts import N_

BARS: Final = 48  # half hours of a day
BAR_US: Final = 30 * 60 * 1_000_000
HEIGHT: Final = 120  # of the bars, in pixels; places along the time axis are percentages, so plots have any width
_STEP: Final = 100 / BARS
BAR_WIDTH: Final = 0.8 * _STEP
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
    """A bar of a plot: its place and size in the picture, and its value. `x` is a percentage."""

    x: float
    y: float
    height: float
    start_us: int
    value: float


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: the key, the name and the unit of its numbers, the greatest of them, the bars that are not empty, and the
    marks of both axes with their place."""

    key: str
    name: str
    unit: str
    most: float
    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, float], ...]
    ticks: tuple[tuple[float, int], ...]


_PER_BAR: Final = N_("in half an hour")
_VALUES: Final[tuple[tuple[str, str, str, Callable[[Bucket], float]], ...]] = (
    ("published", N_("Publishes"), _PER_BAR, lambda bucket: bucket.published),
    ("notified", N_("Notifications"), _PER_BAR, lambda bucket: bucket.notified),
    ("pulled", N_("Pulls"), _PER_BAR, lambda bucket: bucket.pulled),
    ("lag", N_("Longest lag in seconds"), N_("seconds"), lambda bucket: bucket.lag_s),
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
        (_percentage(place), bucket.start_us)
        for place, bucket in enumerate(buckets[:-6])
        if not bucket.start_us % _TICK_US
    )
    return [
        _plot(key, name, unit, [value(bucket) for bucket in buckets], buckets, ticks)
        for key, name, unit, value in _VALUES
    ]


def numbers_of(buckets: Sequence[Bucket]) -> list[tuple[int, list[float]]]:
    """Returns the rows of the table, the newest first: the start of a half hour, and a number for each plot."""
    return [(bucket.start_us, [value(bucket) for *_, value in _VALUES]) for bucket in reversed(buckets)]


def _plot(
    key: str,
    name: str,
    unit: str,
    values: Sequence[float],
    buckets: Sequence[Bucket],
    ticks: tuple[tuple[float, int], ...],
) -> Plot:
    most = max(values, default=0)
    top = axis_top(most)
    bars = [
        Bar(_percentage(place), round(HEIGHT - height, 1), height, buckets[place].start_us, value)
        for place, value in enumerate(values)
        # A small number among great ones must not disappear.
        if value > 0 and (height := round(max(2.0, HEIGHT * value / top), 1))
    ]
    marks = tuple((HEIGHT * (1 - share), int(top * share)) for share in (0, 0.5, 1))
    return Plot(key, name, unit, most, tuple(bars), marks, ticks)


def axis_top(most: float) -> int:
    """Returns the number at the top of an axis: 2, 4, 6, 8 or 10 times a power of ten, so that its half is whole."""
    power = 1
    while most > 10 * power:
        power *= 10
    return next(factor * power for factor in (2, 4, 6, 8, 10) if most <= factor * power)


def _percentage(place: int) -> float:
    return round(place * _STEP, 2)
