"""The letters of other processes that this process has read, over several lock sessions (`store.lock_session`)."""

from datetime import datetime, timedelta
from typing import Final

# A letter has the time of its statement. It is committed, and its notice arrives, a little later.
OVERLAP: Final = timedelta(seconds=2)


class HeardLetters:
    """What the sessions of a process have read, one after the other. `at` is the time of the database until which
    everything was read, None before the first beat.

    No letter may be read twice: presence from before would replace what has arrived since.
    """

    def __init__(self) -> None:
        self.at: datetime | None = None
        self._letters: set[tuple[int, datetime]] = set()  # after `at`; a crash of the server begins the numbers anew

    def note_time(self, at: datetime) -> None:
        """Notes a beat."""
        # What was sent before the first beat is not for this process.
        self.at = at if self.at is None else max(self.at, at - OVERLAP)
        self._letters = {letter for letter in self._letters if letter[1] > self.at}

    def is_new(self, letter_no: int, sent: datetime) -> bool:
        """Whether a letter was not read before. It counts as read now."""
        is_new = (letter_no, sent) not in self._letters
        self._letters.add((letter_no, sent))
        return is_new
