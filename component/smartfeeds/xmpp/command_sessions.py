"""Sessions of ad-hoc commands (XEP-0050 section 3.3): ids that every process can check, and a small cache.

An id contains its creation time and a keyed digest of the requester, the address and the command, so no state is needed
to check it. An id grants no rights: each step sends its own requests to the service. The key and the short form of ids
bound the cache: users cannot create ids of their own for it.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hmac import compare_digest

from smartfeeds.core.options import FormFields
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

# A dialog may stay open for a day. Its last step checks again whether the data has changed meanwhile.
SESSION_S = 86_400
REMEMBERED = 1_024  # sessions
# The hidden fields of a form that is cached. A form with more must come back with the next request, because hidden
# fields repeat names and positions that the user chose.
FORM_BYTES = 4_096
_ID = re.compile(r"([0-9a-f]{1,12})-([0-9A-Za-z-]{1,64})-([0-9a-f]{16})", re.ASCII)
_UNKNOWN = "the session does not exist or belongs to another user; start again without a sessionid"


@dataclass(frozen=True, slots=True)
class StepForm:
    """The form that a session sent last: its step and its hidden fields."""

    step: int
    hidden: FormFields

    @property
    def size_bytes(self) -> int:
        """The size of the hidden fields."""
        return sum(len(text.encode()) for var, texts in self.hidden.items() for text in (var, *texts))


class CommandSessions:
    """Creates and checks ids. `now_us` returns the time in microseconds since the Unix epoch.

    Processes with the same `key` (`session_key`) accept each other's ids. The process caches the newest `remembered`
    sessions: whether they have ended, and the form that they sent last, for clients that go back without returning the
    form. Nothing depends on this cache for correctness.
    """

    def __init__(
        self, *, key: bytes, now_us: Callable[[], int], new_id: Callable[[], str], remembered: int = REMEMBERED
    ) -> None:
        self._key = key
        self._now_us = now_us
        self._new_id = new_id
        self._remembered = remembered
        self._known: OrderedDict[str, StepForm | None] = OrderedDict()  # None: the session has ended

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, *holder: str) -> str:
        """Returns a new id for a holder: the requester, the address and the command."""
        start = f"{self._now_us() // 1_000_000:x}-{self._new_id()}"
        return f"{start}-{self._digest(start, holder)}"

    def belongs_to(self, session: str, *holder: str) -> bool:
        """Returns whether an id was created for this holder."""
        match = _ID.fullmatch(session)
        return match is not None and compare_digest(match[3], self._digest(f"{match[1]}-{match[2]}", holder))

    def check(self, session: str, *holder: str) -> StepForm | None:
        """Returns the form that the session sent last, or None if it is not cached.

        Raises CommandError: BAD_SESSIONID for an id that is not this holder's, SESSION_EXPIRED for an ended session.
        """
        match = _ID.fullmatch(session)
        if match is None or not self.belongs_to(session, *holder):
            raise CommandError(CommandFault.BAD_SESSIONID, _UNKNOWN)
        age_s = self._now_us() // 1_000_000 - int(match[1], 16)
        # The clock of another process, or this one before a correction, may be ahead.
        if abs(age_s) > SESSION_S:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session has expired; start again without a sessionid")
        form = self._known.get(session)
        if form is None and session in self._known:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session has ended; start again without a sessionid")
        return form

    def remember(self, session: str, form: StepForm | None) -> None:
        """Records the form that the session sent, or None if it was completed or cancelled."""
        if form is not None and form.size_bytes > FORM_BYTES:
            self._known.pop(session, None)
            return
        self._known[session] = form
        self._known.move_to_end(session)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)

    def _digest(self, start: str, holder: tuple[str, ...]) -> str:
        text = "\n".join((start, *holder))
        return hashlib.blake2s(text.encode(), key=self._key, digest_size=8).hexdigest()


@lru_cache(maxsize=16)
def session_key(secret: str, domain: str) -> bytes:
    """Returns the key of the ids of a service, the same in all its processes and after a restart.

    Users see digests that were made with it, so scrypt protects a weak secret of the component from being guessed. That
    takes 50 ms, so the key is cached.
    """
    return hashlib.scrypt(secret.encode(), salt=f"command sessions of {domain}".encode(), n=2**14, r=8, p=1, dklen=32)
