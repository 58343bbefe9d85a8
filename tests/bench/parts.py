"""The programs that share the machine during a benchmark: the CPU time of each, and which of them is the limit."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SATURATED = 0.9  # of the time that a part has at most; the rest is lost between its reads and writes
IDLE = 0.1  # of all cores; with less, the parts wait for a core
DISTURBED = 0.2  # of all cores; with more, other programs decide about the rate
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_OWN, _WITH_ENDED_CHILDREN = slice(11, 13), slice(11, 15)  # of the fields behind the name in /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the system. At most `threads` of its threads work at the same time, None: any number."""

    name: str
    read_cpu_s: Callable[[], float]
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds of each part during `seconds`, and the idle time of all cores."""

    parts: Sequence[Part]
    cpu_s: Mapping[str, float]
    seconds: float
    cores: int
    idle_s: float

    def cpu_us(self, operations: int) -> dict[str, float]:
        """The CPU time of each part for an operation, in microseconds."""
        return {name: used_s / max(1, operations) * 1e6 for name, used_s in self.cpu_s.items()}

    @property
    def limit(self) -> str:
        """The part that keeps the rate from growing, and the share of the cores that each part has used."""
        return f"limit: {self._limit()} ({self._shares()})"

    def _limit(self) -> str:
        if self.idle_s < IDLE * self._total_s:
            greatest = max(self.cpu_s, key=lambda name: self.cpu_s[name])
            if self._others_s > DISTURBED * self._total_s:
                return f"other programs on the {self.cores} cores; of these parts {greatest} uses most"
            return f"the {self.cores} cores, of which {greatest} uses most"
        for part in self.parts:
            if part.threads and self.cpu_s[part.name] >= SATURATED * part.threads * self.seconds:
                return f"{part.name}, which is busy all the time"
        return "waiting for the disk and for answers"

    def _shares(self) -> str:
        used_s = {**self.cpu_s, "other programs": self._others_s, "idle": self.idle_s}
        return ", ".join(f"{name} {value / self._total_s:.0%}" for name, value in used_s.items())

    @property
    def _total_s(self) -> float:
        return self.seconds * self.cores

    @property
    def _others_s(self) -> float:
        return max(0.0, self._total_s - self.idle_s - sum(self.cpu_s.values()))


class Meter:
    """Measures from its creation to `read`."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._before = self._now()

    def _now(self) -> tuple[float, float, dict[str, float]]:
        return time.perf_counter(), read_idle_s(), {part.name: part.read_cpu_s() for part in self._parts}

    def read(self) -> Usage:
        """The usage since the creation."""
        (began_s, idle_before_s, before), (ended_s, idle_after_s, after) = self._before, self._now()
        cpu_s = {name: after[name] - before[name] for name in after}
        return Usage(self._parts, cpu_s, ended_s - began_s, os.cpu_count() or 1, idle_after_s - idle_before_s)


def read_idle_s() -> float:
    """Seconds in which cores had nothing to do, or waited for the disk, since the start of the machine."""
    fields = Path("/proc/stat").read_text("ascii").split(maxsplit=6)
    return (int(fields[4]) + int(fields[5])) / _TICKS_PER_S


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children. Those that have ended count if the process has waited for them."""
    used_s = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        # A child that ends meanwhile counts with those that have ended, which are read after it.
        with suppress(FileNotFoundError, ProcessLookupError):
            used_s += _stat_s(int(child), _OWN)
    return used_s + _stat_s(pid, _WITH_ENDED_CHILDREN)


def _stat_s(pid: int, fields: slice) -> float:
    text = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2]
    return sum(map(int, text.split()[fields])) / _TICKS_PER_S
