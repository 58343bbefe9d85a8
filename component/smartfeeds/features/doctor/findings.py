"""The results of the checks of `smartfeeds doctor`."""

from dataclasses import dataclass
from enum import Enum


class CheckState(Enum):
    """The result of a check. Only FIX makes the command fail."""

    OK = "ok"
    NOTE = "note"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, and advice if something should be changed."""

    check: str
    state: CheckState
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """The name of a check in the table, with a method for each result."""

    name: str

    def ok(self, text: str) -> Finding:
        """Return a finding that needs no attention."""
        return Finding(self.name, CheckState.OK, text)

    def note(self, text: str, advice: str = "") -> Finding:
        """Return a finding that the operator should know of."""
        return Finding(self.name, CheckState.NOTE, text, advice)

    def fix(self, text: str, advice: str = "") -> Finding:
        """Return a finding that the operator must act on."""
        return Finding(self.name, CheckState.FIX, text, advice)
