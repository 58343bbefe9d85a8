"""The history of a campaign: every operation of every client, and every fault, as JSON lines [CAM-030] [CAM-081].

A client writes a line before it sends a request, and a line with the outcome. `UNKNOWN` is the outcome of a request
without an answer: the service may have executed it. All campaigns write this format, and `checker` reads it.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from types import TracebackType

DIGEST_DIGITS = 16
DELETED = ""  # the digest of a deleted item


class Kind(StrEnum):
    """What an event describes."""

    PUBLISH = "publish"
    RETRACT = "retract"
    WALK = "walk"  # all pages of a feed while nobody writes
    PAGE = "page"  # one page of a follower
    PUSH = "push"  # one notification
    HOLD = "hold"  # ownership of a shard by a process of the service
    FAULT = "fault"
    HIT = "hit"  # a fault hits a process of the service, or ends: its notifications may be repeated


class Status(StrEnum):
    """The state of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"  # the service refused the request or never received it
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Shown:
    """An item as a reader got it. `key_us` is its position in modified order."""

    item: str
    digest: str
    key_us: int


@dataclass(frozen=True, slots=True)
class Event:
    """One line. `at_s` is the monotonic clock of the campaign; `op` connects an invocation with its outcome.

    `item` and `digest` belong to writes, `shown` and `total` to reads. `key_us` is the key of the answer: of the
    written version, of the last item of a page, or of a notification. `previous_us` is the key before: the position of
    a follower before the page, or PreviousCursor of a notification. `complete` means that no newer items existed.
    `life` counts the connections of the service. `note` is the name of a fault, or the process that sent a
    notification.
    """

    at_s: float
    process: str
    kind: Kind
    status: Status
    op: int = 0
    node: str = ""
    item: str = ""
    digest: str = ""
    key_us: int = 0
    previous_us: int = 0
    shown: tuple[Shown, ...] = ()
    total: int = -1
    complete: bool = False
    created: bool = False
    life: int = 0
    note: str = ""

    def to_line(self) -> str:
        """Returns the event as JSON without its default values."""
        values: dict[str, object] = {"at_s": round(self.at_s, 6)}
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                values[name] = (
                    [[shown.item, shown.digest, shown.key_us] for shown in value] if name == "shown" else value
                )
        return json.dumps(values, separators=(",", ":"))


_DEFAULTS: dict[str, object] = {
    **dict.fromkeys(("process", "kind", "status")),
    **dict.fromkeys(("op", "key_us", "previous_us", "life"), 0),
    **dict.fromkeys(("node", "item", "digest", "note"), ""),
    **dict.fromkeys(("complete", "created"), False),
    "shown": (),
    "total": -1,
}


def read_line(line: str) -> Event:
    """Reads one line of a history. Raises ValueError, TypeError or KeyError if it is none."""
    values = json.loads(line)
    return Event(
        **{
            **values,
            "kind": Kind(values["kind"]),
            "status": Status(values["status"]),
            "shown": tuple(Shown(*shown) for shown in values.get("shown", ())),
        }
    )


def read_history(path: Path) -> list[Event]:
    """Reads a history file."""
    with path.open(encoding="utf-8") as lines:
        return [read_line(line) for line in lines]


def digest_of(*texts: str) -> str:
    """Returns the digest of a payload, which is never that of a deleted item."""
    return sha256("\0".join(texts).encode()).hexdigest()[:DIGEST_DIGITS]


class History:
    """Writes the history of a run and keeps it for the checker. A context manager.

    Each line is handed to the operating system before the request is sent. The campaign kills the service, not itself,
    so the lines need no sync of the disk.
    """

    def __init__(self, path: Path, clock_s: Callable[[], float]) -> None:
        self.path = path
        self.events: list[Event] = []
        self._clock_s = clock_s
        self._ops: Iterator[int] = itertools.count(1)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def note(self, process: str, kind: Kind, status: Status, **values: object) -> Event:
        """Adds an event at this moment."""
        event = Event(self._clock_s(), process, kind, status, **values)  # type: ignore[arg-type]
        self.events.append(event)
        self._file.write(event.to_line() + "\n")
        self._file.flush()
        return event

    def invoke(self, process: str, kind: Kind, node: str, item: str = "", digest: str = "") -> Event:
        """Adds the invocation of an operation."""
        return self.note(process, kind, Status.INVOKE, op=next(self._ops), node=node, item=item, digest=digest)

    def complete(self, call: Event, status: Status, **values: object) -> Event:
        """Adds the outcome of an operation."""
        same = {"op": call.op, "node": call.node, "item": call.item, "digest": call.digest}
        return self.note(call.process, call.kind, status, **{**same, **values})

    def fault(self, name: str) -> Event:
        """Adds a fault."""
        return self.note("fault", Kind.FAULT, Status.OK, note=name)

    def hit(self, process: str) -> Event:
        """Adds the moment at which a fault hits a process of several, or ends."""
        return self.note(process, Kind.HIT, Status.OK)
