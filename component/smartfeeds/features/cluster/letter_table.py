"""The table of letters between the processes on a PostgreSQL database (docs/scaling.md, "Links")."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

import psycopg

from smartfeeds.features.cluster.letter import EVERY_PROCESS

# A letter that was not read for so long is for a process that has ended. A process that was without a session reads the
# letters that were sent meanwhile.
LETTER_S: Final = 60.0
# A letter has the time of its statement. It is committed, and its notice arrives, a little later. What is read twice
# for this reason is sorted out by `HeardLetters.is_new`.
OVERLAP: Final = timedelta(seconds=2)

# Not logged: letters live for a second, and a crash of the server ends all sessions anyway.
CREATE_LETTERS: Final[LiteralString] = """
CREATE UNLOGGED TABLE IF NOT EXISTS letter (
  letter_no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body BYTEA NOT NULL,
  sent TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
)
"""
_ADD: Final[LiteralString] = "INSERT INTO letter (sender, recipient, body) VALUES (%s, %s, %s) RETURNING letter_no"
_READ: Final[LiteralString] = "SELECT body, sent FROM letter WHERE letter_no = %s"
_CLAIM: Final[LiteralString] = "DELETE FROM letter WHERE letter_no = %s RETURNING body, sent"
_IS_OLDER: Final[LiteralString] = "SELECT %s::timestamptz < clock_timestamp() - make_interval(secs => %s::float8)"
_READ_MISSED: Final[LiteralString] = """
SELECT letter_no, sent, body FROM letter WHERE recipient IN (%s, %s) AND sender <> %s AND sent > %s ORDER BY letter_no
"""
_REMOVE_OLD: Final[LiteralString] = (
    "DELETE FROM letter WHERE sent < clock_timestamp() - make_interval(secs => %s::float8)"
)


class HeardLetters:
    """The letters that the sessions of a process have read, one session after the other. `at` is the time of the
    database until which everything was read, None before the first beat.

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


class LetterTable:
    """The letters of the process `instance`. Every method raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], instance: str, heard: HeardLetters) -> None:
        self._connection = connection
        self._instance = instance
        self._heard = heard

    def add(self, recipient: str, body: bytes) -> int:
        """Stores a letter, and returns its number."""
        row = self._connection.execute(_ADD, (self._instance, recipient, body)).fetchone()
        assert row is not None
        return int(row[0])

    def read(self, letter_no: int, *, is_claimed: bool) -> bytes | None:
        """Returns a letter, None if it was read before. If it `is_claimed`, no other process gets it."""
        row = self._connection.execute(_CLAIM if is_claimed else _READ, (letter_no,)).fetchone()
        if row is None or not self._heard.is_new(letter_no, row[1]):
            return None
        return bytes(row[0])

    def read_missed(self, since: datetime) -> Sequence[bytes]:
        """Returns the letters that others have sent since this time, and that were not read before."""
        parameters = (self._instance, EVERY_PROCESS, self._instance, since)
        rows = self._connection.execute(_READ_MISSED, parameters).fetchall()
        return [bytes(body) for letter_no, sent, body in rows if self._heard.is_new(letter_no, sent)]

    def has_lost(self, since: datetime) -> bool:
        """Whether letters that were sent since this time may have been removed."""
        row = self._connection.execute(_IS_OLDER, (since, LETTER_S)).fetchone()
        assert row is not None
        return bool(row[0])

    def remove_old(self) -> None:
        """Removes letters that were not read in time."""
        self._connection.execute(_REMOVE_OLD, (LETTER_S,))
