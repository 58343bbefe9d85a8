"""The texts of notices between the processes on a database (docs/scaling.md, "Notices").

A notice names the process that sends it, so that this process ignores its own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from smartfeeds.features.cluster.letter import ANY_PROCESS, EVERY_PROCESS

# PostgreSQL refuses a payload of 8,000 bytes.
PAYLOAD_BYTES: Final = 7_900
_MANY: Final = "*"
# Of a number of a node or of a letter. Every role that may connect to the database can send notices, and Python raises
# ValueError for a text with thousands of digits.
_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class SessionEvents:
    """The callbacks of the session with the other processes, called in the event loop.

    `on_changed` receives changed nodes, None if there are too many for a notice. `on_lost` receives the reason of the
    end. `on_joined`: another process has started. `on_missed`: letters may be lost, because the process was without a
    session for too long.
    """

    on_changed: Callable[[Collection[int] | None], object]
    on_letter: Callable[[bytes], object]
    on_lost: Callable[[str], object]
    on_joined: Callable[[], object] = lambda: None
    on_missed: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """Nodes that another process has changed, None if there were too many."""

    node_nos: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class LetterNotice:
    """The number of a letter for this process. `is_claimed`: only the process that removes it reads it."""

    letter_no: int
    is_claimed: bool = False


@dataclass(frozen=True, slots=True)
class JoinNotice:
    """Another process has started."""


def join_text(instance: str) -> str:
    """Returns the notice of a process that has started."""
    return f"{instance} joined"


def change_text(instance: str, node_nos: Collection[int]) -> str:
    """Returns the notice of changed nodes."""
    text = f"{instance} changed {','.join(map(str, sorted(node_nos)))}"
    return text if len(text) <= PAYLOAD_BYTES else f"{instance} changed {_MANY}"


def letter_text(instance: str, recipient: str, letter_no: int) -> str:
    """Returns the notice of a letter to the process `recipient`, to EVERY_PROCESS or to ANY_PROCESS."""
    return f"{instance} letter {recipient} {letter_no}"


def read_notice(text: str, instance: str) -> ChangeNotice | LetterNotice | JoinNotice | None:
    """Returns what a notice means for the process `instance`; None if it is not for it, or not of this form."""
    match text.split(" "):
        case [sender, *_] if sender == instance:
            return None
        case [_, "joined"]:
            return JoinNotice()
        case [_, "changed", numbers]:
            if numbers == _MANY:
                return ChangeNotice(None)
            parts = numbers.split(",")
            return ChangeNotice(tuple(map(int, parts))) if all(map(_is_number, parts)) else None
        case [_, "letter", recipient, number] if _is_number(number):
            is_mine = recipient in (instance, EVERY_PROCESS, ANY_PROCESS)
            return LetterNotice(int(number), is_claimed=recipient == ANY_PROCESS) if is_mine else None
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS
