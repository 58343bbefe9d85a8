"""Sessions of ad-hoc commands (XEP-0050 3.3): ids that any process can check, and a little memory that is a help.

An id tells when it was made, and for whom, where and for which command, so nothing is kept for it to be right or wrong.
It gives no rights: every step asks the service anew.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2s

from smartfeeds.core.options import FormFields
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

SESSION_S = 86_400  # how long a dialog may lie open; what it would change is checked anyway
REMEMBERED = 1_024
_ID = re.compile(r"([0-9a-f]{1,12})-(.+)-([0-9a-f]{16})", re.ASCII)
_UNKNOWN = "there is no such session of yours here: begin again without a sessionid"


@dataclass(frozen=True, slots=True)
class Shown:
    """The form that a session showed last: of which step, and what it carried hidden."""

    step: int
    hidden: FormFields


class Sessions:
    """Makes and checks ids. `now_us` is the time in microseconds since the Unix epoch.

    The newest `remembered` sessions of this process are known more closely: which have ended, and which form the others
    showed last, for clients that go back without sending it along. Nothing goes wrong where that is forgotten.
    """

    def __init__(self, *, now_us: Callable[[], int], new_id: Callable[[], str], remembered: int = REMEMBERED) -> None:
        self._now_us = now_us
        self._new_id = new_id
        self._remembered = remembered
        self._known: OrderedDict[str, Shown | None] = OrderedDict()  # None: it has ended

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, *holder: str) -> str:
        """A new id for this holder: who asks, at which address, for which command."""
        start = f"{self._now_us() // 1_000_000:x}-{self._new_id()}"
        return f"{start}-{_digest(start, holder)}"

    def check(self, session: str, *holder: str) -> Shown | None:
        """The form it showed last, None where that is not known any more.

        Raises CommandError: BAD_SESSIONID for what is no id of this holder, SESSION_EXPIRED for one that has ended.
        """
        match = _ID.fullmatch(session)
        if match is None or match[3] != _digest(f"{match[1]}-{match[2]}", holder):
            raise CommandError(CommandFault.BAD_SESSIONID, _UNKNOWN)
        age_s = self._now_us() // 1_000_000 - int(match[1], 16)
        if age_s > SESSION_S:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session is too old: begin again without a sessionid")
        shown = self._known.get(session)
        if shown is None and session in self._known:
            raise CommandError(CommandFault.SESSION_EXPIRED, "the session is over: begin again without a sessionid")
        return shown

    def show(self, session: str, shown: Shown) -> None:
        """The session goes on with this form."""
        self._keep(session, shown)

    def end(self, session: str) -> None:
        """The session is completed or cancelled."""
        self._keep(session, None)

    def _keep(self, session: str, shown: Shown | None) -> None:
        self._known[session] = shown
        self._known.move_to_end(session)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)


def _digest(start: str, holder: tuple[str, ...]) -> str:
    return blake2s("\n".join((start, *holder)).encode(), digest_size=8).hexdigest()
