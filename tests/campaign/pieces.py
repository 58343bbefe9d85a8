"""What all campaigns share: a task, pieces with a seed and a history of their own, and their sum."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from campaign.checker import Verdict, judge
from campaign.history import History


@dataclass(frozen=True, slots=True)
class Task:
    """What a campaign is asked to do: `count` faults from `seed`, with its files in `folder`.

    `defect` names a defect of `campaign.defects` for a negative control. No piece begins after `until_s`, on the
    monotonic clock.
    """

    seed: int
    count: int
    folder: Path
    defect: str = ""
    variant: str = ""
    until_s: float = math.inf

    def pieces(self, size: int) -> Iterable[tuple[int, int, Path]]:
        """Yields seed, number of faults and folder of each piece."""
        for number, start in enumerate(range(0, self.count, size)):
            if time.monotonic() >= self.until_s:
                return
            yield self.seed + number, min(size, self.count - start), self.folder / str(self.seed + number)

    def history(self, folder: Path) -> History:
        """The history of a piece."""
        return History(folder / "history.jsonl", time.monotonic)


@dataclass(frozen=True, slots=True)
class Piece:
    """The result of a piece. `problems` are findings beside those of the checker; `notes` are further numbers."""

    seed: int
    faults: int
    history: Path
    verdict: Verdict
    problems: tuple[str, ...] = ()
    notes: Counter[str] = field(default_factory=Counter)


Campaign = Callable[[Task], AsyncIterator[Piece]]


def judged(
    seed: int, faults: int, history: History, problems: Iterable[str] = (), notes: Counter[str] | None = None
) -> Piece:
    """The piece of a history that has ended."""
    return Piece(seed, faults, history.path, judge(history.events), tuple(problems), notes or Counter())


@dataclass(slots=True)
class Total:
    """The sum of pieces."""

    faults: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, piece: Piece) -> None:
        """Adds a piece."""
        self.faults += piece.faults
        self.counts += piece.verdict.counts + piece.notes
        self.findings += [f"seed {piece.seed}: {problem}" for problem in piece.problems]
        self.findings += [
            f"seed {piece.seed}: {finding.rule}: {finding.text} (operation {finding.op})"
            for finding in piece.verdict.findings
        ]
        for fault, seconds in piece.verdict.recoveries.items():
            self.recoveries[fault] += seconds


def log_problems(said: str) -> list[str]:
    """The problems that a log of the service shows: errors of ours, which faults must not cause."""
    return [f"the log has {word}" for word in ("Traceback", "request_failed") if word in said]
