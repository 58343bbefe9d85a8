"""The erasure of a person's data: a job in the store, which continues after a crash, and its report.

The row has the JID until the job has ended. Afterwards it has a salted digest, by which `gdpr status` finds it.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from smartfeeds.json_form import JsonForm

KEEP_NODES: Final = ""
DELETE_NODES: Final = "delete"
LEFT_SHOWN: Final = 100  # items that a report names


class LeftReason(Enum):
    """The reason why an item still has the address."""

    MENTION = "an item of somebody else names the person"
    JOINED = "the address is joined to other text, and may be that of somebody else"


class ErasurePhase(Enum):
    """The phases in their order. A phase continues behind the `place` of the job."""

    NODES = "nodes"
    """Nodes that only the person owns are deleted or get another owner."""
    PEOPLE = "people"
    """Subscriptions, tokens, sessions, affiliations, contacts and what else is a row of the person."""
    ITEMS = "items"
    """Items of the person become tombstones, other items lose the person's name in their history."""
    FOLLOWERS = "followers"
    """The followers receive the deletions."""
    TEXTS = "texts"
    """Ids and other texts that name the person are replaced."""
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ErasureSettings:
    """The choices of the operator.

    `nodes` is DELETE_NODES, KEEP_NODES, or the bare JID of the next owner of the person's nodes. With `now` the job
    does not wait for followers. With `block` the JID stays blocked after the end.
    """

    nodes: str = KEEP_NODES
    now: bool = False
    block: bool = False


def merged_settings(former: ErasureSettings, later: ErasureSettings) -> ErasureSettings:
    """Returns the settings of an open job after the command was repeated: a choice is changed, but never forgotten."""
    return ErasureSettings(later.nodes or former.nodes, later.now or former.now, later.block or former.block)


@dataclass(frozen=True, slots=True)
class Erasure:
    """A job. `jid` is empty after the end. `counts` are numbers of rows by kind, `keys` the newest erasing key in
    microseconds by the number of the node.

    `left` are items that still have the address, by their numbers, `LEFT_SHOWN` at most; the counts have all. The
    report has no ids, because it stays in the store. `left_texts` are numbers of other texts, by table and column.
    """

    digest: bytes
    jid: str
    settings: ErasureSettings
    phase: ErasurePhase
    place: int
    started_us: int
    ended_us: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    keys: dict[int, int] = field(default_factory=dict)
    left: dict[int, LeftReason] = field(default_factory=dict)
    left_texts: dict[str, int] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the job has not ended."""
        return self.ended_us is None


ERASURE_REPORT: Final = JsonForm(Erasure, columns={"digest", "jid", "phase", "place", "started_us", "ended_us"})
