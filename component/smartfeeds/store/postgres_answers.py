"""Limits the time for which a connection to PostgreSQL waits for an answer, and ends the connection after it.

The server enforces `statement_timeout`, and the kernel of the server acknowledges what a stopped server receives. So
neither helps when the server hangs, and the thread of the connection would wait for ever. Another thread shuts the
socket down instead, and the statement fails as with a connection that was lost.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Collection

# Longer than any statement that is in order: a statement waits for a lock for 20 s (`postgres_session`).
ANSWER_S = 60.0
# While the service ends. The service manager kills it after 20 s (config/smartfeeds.service).
ENDING_ANSWER_S = 5.0
LONGEST_PAUSE_S = 1.0


class AnswerSocket:
    """The socket of a connection. A `with` statement surrounds each wait for an answer; it does not nest."""

    def __init__(self) -> None:
        self._guard = threading.Lock()  # of the socket, which one thread closes while another one may shut it down
        self._socket: socket.socket | None = None
        self._asked_s: float | None = None

    def attach(self, file_no: int) -> None:
        """Sets the socket to that of a new connection. A former one is closed."""
        # A descriptor of its own: that of the connection may be another file after the thread has closed it.
        duplicate = socket.socket(fileno=os.dup(file_no))
        self.close()
        with self._guard:
            self._socket = duplicate

    def close(self) -> None:
        """Closes the descriptor. The connection stays open."""
        with self._guard:
            duplicate, self._socket = self._socket, None
            if duplicate is not None:
                duplicate.close()

    def __enter__(self) -> None:
        self._asked_s = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._asked_s = None

    @property
    def silence_s(self) -> float:
        """The time for which the connection has waited for an answer, 0 if it waits for none."""
        asked_s = self._asked_s  # read once: the thread of the connection may set it to None at any time
        return 0.0 if asked_s is None else time.monotonic() - asked_s

    def shut_down(self) -> None:
        """Ends the connection from any thread: its statement fails at once."""
        with self._guard, contextlib.suppress(OSError):  # the connection ended meanwhile
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


class AnswerLimit:
    """The time that all connections of a store wait for an answer: `limit_s`, in seconds.

    While the service ends the time is short, and the first failure ends all connections: otherwise each step of the end
    would wait anew.
    """

    def __init__(self, limit_s: float = ANSWER_S) -> None:
        self.limit_s = limit_s
        self._is_ending = False
        self.is_over = False
        """Whether no connection may be opened any more."""

    @property
    def pause_s(self) -> float:
        """The pause between two calls of `enforce`."""
        return min(self.limit_s / 4, LONGEST_PAUSE_S)

    def shorten(self) -> None:
        """The service ends."""
        self.limit_s = min(self.limit_s, ENDING_ANSWER_S)
        self._is_ending = True

    def note_failure(self) -> None:
        """A connection was ended or could not be opened."""
        self.is_over = self._is_ending

    def enforce(self, sockets: Collection[AnswerSocket]) -> float:
        """Shuts the sockets down whose answer is overdue. Returns the longest silence in seconds, 0 if none was."""
        overdue = [answer for answer in sockets if answer.silence_s > self.limit_s]
        if not overdue:
            return 0.0
        silence_s = max(answer.silence_s for answer in overdue)
        self.note_failure()
        for answer in sockets if self.is_over else overdue:
            answer.shut_down()
        return silence_s
