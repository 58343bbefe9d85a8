"""The metrics of mirrors."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class MirrorReading:
    """The state of one direction (in or out) of a mirror. The counts start when the mirror is added."""

    mirror: str
    direction: str
    lag_s: Annotated[
        float,
        "smartfeeds_mirror_lag_seconds",
        "Seconds since the oldest change of a mirror started to wait or to fail, or 0 if no change is waiting",
    ]
    in_step: Annotated[
        bool, "smartfeeds_mirror_in_step", "1 while no change is known to be missing, rejected items included, else 0"
    ]
    changes: Annotated[int, "smartfeeds_mirror_changes_total", "Changes that a mirror received or sent"]
    refused: Annotated[int, "smartfeeds_mirror_refused_total", "Items that the mirror or the remote feed rejected"]
    conflicts: Annotated[
        int, "smartfeeds_mirror_conflicts_total", "Received changes that conflicted with a local change"
    ]
