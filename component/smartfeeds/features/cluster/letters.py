"""Letters between the processes on a database: a bounded queue of those to send, and a reader for each topic."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from smartfeeds.delivery.letters import Letters, LetterTopic
from smartfeeds.errors import StoreError
from smartfeeds.features.cluster.letter import EVERY_PROCESS, split_letter, write_letter

# Letters that wait for the database. It may be away, a stranger may send stanzas faster than it stores them, and a
# process that connects receives the presence of all contacts at once.
WAITING_BYTES = 67_108_864
LETTER_BYTES = 500  # of a letter beside its body
# A letter is of use for so long. The database has letters for the same time, for processes that come back.
LIFE_S = 60.0
RETRY_S = 0.5  # a session that was lost is replaced with the next beat, a second later

_log = structlog.get_logger()


class Letterbox(Letters):
    """Posts the letters of this process in their order, and passes on those that arrive.

    `send` sends one letter to a process, or raises StoreError; then it is repeated. `has_others` returns whether there
    are other processes. `clock` returns seconds.
    """

    def __init__(
        self,
        send: Callable[[str, bytes], Awaitable[object]],
        has_others: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._send = send
        self._has_others = has_others
        self._clock = clock
        self._sleep = sleep
        self._readers: dict[LetterTopic, Callable[[bytes], object]] = {}
        self._greetings: list[Callable[[], object]] = []
        self._waiting: deque[tuple[float, str, bytes]] = deque()
        self._waiting_bytes = 0
        self._work: asyncio.Task[None] | None = None
        self._is_closing = False
        self._lost = 0
        self._reason = ""

    def has_others(self) -> bool:
        """Returns whether there are other processes."""
        return self._has_others()

    def read(self, topic: LetterTopic, reader: Callable[[bytes], object]) -> None:
        """Passes the bodies of a topic to this reader."""
        self._readers[topic] = reader

    def greet(self, work: Callable[[], object]) -> None:
        """Calls `work` when another process has started, which lacks what was shared before."""
        self._greetings.append(work)

    def note_joined(self) -> None:
        """Another process has started."""
        for work in self._greetings:
            work()

    def share(self, topic: LetterTopic, body: bytes) -> None:
        """Sends a letter to all other processes."""
        self.post(EVERY_PROCESS, write_letter(topic, body))

    def post(self, recipient: str, letter: bytes) -> bool:
        """Sends a letter soon, and returns True. Drops it if too many bytes wait, or if this process is alone."""
        if not self.has_others():
            return False
        size_bytes = len(letter) + LETTER_BYTES
        if self._waiting_bytes + size_bytes > WAITING_BYTES:
            self._note_lost(f"{self._waiting_bytes:,} bytes of letters wait for the database")
            return False
        self._waiting_bytes += size_bytes
        self._waiting.append((self._clock(), recipient, letter))
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._send_all(), name="letters")
        return True

    def receive(self, letter: bytes) -> None:
        """Passes a letter to the reader of its topic."""
        topic, body = split_letter(letter)
        reader = self._readers.get(topic)
        if reader is not None:
            reader(body)

    async def close(self) -> None:
        """Sends the letters that wait, each once: a database that is away must not delay the stop."""
        self._is_closing = True
        if self._work is not None:
            await asyncio.gather(self._work, return_exceptions=True)

    async def _send_all(self) -> None:
        # One after the other: presence that arrives in another order means something else.
        while self._waiting:
            posted_s, recipient, letter = self._waiting[0]
            try:
                await self._send(recipient, letter)
            except StoreError as error:
                if not self._is_closing and self._clock() < posted_s + LIFE_S:
                    await self._sleep(RETRY_S)
                    continue
                self._note_lost(str(error))
            except Exception as error:  # noqa: BLE001 - one letter must not hold up those behind it
                _log.exception("letter_failed", reason=repr(error))
            self._waiting.popleft()
            self._waiting_bytes -= len(letter) + LETTER_BYTES
        if self._lost:
            # One line for all of them: they are lost together, because the database does not answer.
            _log.error("letters_lost", letters=self._lost, reason=self._reason)
            self._lost = 0

    def _note_lost(self, reason: str) -> None:
        self._lost += 1
        self._reason = reason
