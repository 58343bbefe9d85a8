"""Sessions of ad-hoc commands (XEP-0050 section 3.3): ids that every process can check, and a small cache.

An id contains its creation time and a digest of the requester, the address and the command, so no state is needed to
check it. An id grants no rights: each step sends its own requests to the service.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2s

from smartfeeds.core.options import FormFields
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

# A dialog may stay open for a day. Its last step checks again whether the data has changed meanwhile.
SESSION_S = 86_400
REMEMBERED = 1_024  # sessions
_ID = re.compile(r"([0-9a-f]{1,12})-(.+)-([0-9a-f]{16})", re.ASCII)
_UNKNOWN = "the session does not exist or belongs to another user; start again without a sessionid"


@dataclass(frozen=True, slots=True)
class StepForm:
    """The form that a session sent last: its step and its hidden fields."""

    step: int
    hidden: FormFields


class CommandSessions:
    """Creates and checks ids. `now_us` returns the time in microseconds since the Unix epoch.

    The process caches the newest `remembered` sessions: whether they have ended, and the form that they sent last, for
    clients that go back without returning the form. Nothing depends on this cache for correctness.
    """

    def __init__(self, *, now_us: Callable[[], int], new_id: Callable[[], str], remembered: int = REMEMBERED) -> None:
        self._now_us = now_us
        self._new_id = new_id
        self._remembered = remembered
        self._known: OrderedDict[str, StepForm | None] = OrderedDict()  # None: the session has ended

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, *holder: str) -> str:
        """Returns a new id for a holder: the requester, the address and the command."""
        start = f"{self._now_us() // 1_000_000:x}-{self._new_id()}"
        return f"{start}-{_digest(start, holder)}"

    def belongs_to(self, session: str, *holder: str) -> bool:
        """Returns whether an id was created for this holder."""
        match = _ID.fullmatch(session)
        return match is not None and match[3] == _digest(f"{match[1]}-{match[2]}", holder)

    def check(self, session: str, *holder: str) -> StepForm | None:
        """Returns the form that the session sent last, or None if it is not cached.

        Raises CommandError: BAD_SESSIONID for an id that is not this holder's, SESSION_EXPIRED for an ended session.
        """
        match = _ID.fullmatch(session)
        if match is None or not self.belongs_to(session, *holder):
            raise CommandError(CommandFault.BAD_SESSIONID, _UNKNOWN)
        age_s = self._now_us() // 1_000_000 - int(match[1], 16)
        if age_s > SESSION_S:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session has expired; start again without a sessionid")
        form = self._known.get(session)
        if form is None and session in self._known:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session has ended; start again without a sessionid")
        return form

    def remember(self, session: str, form: StepForm | None) -> None:
        """Records the form that the session sent, or None if it was completed or cancelled."""
        self._known[session] = form
        self._known.move_to_end(session)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)


def _digest(start: str, holder: tuple[str, ...]) -> str:
    return blake2s("\n".join((start, *holder)).encode(), digest_size=8).hexdigest()
