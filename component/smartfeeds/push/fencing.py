"""A sender that stops when this process may have lost its feeds to another process (TOP-042)."""

from collections.abc import Callable, Iterable

from smartfeeds.delivery.deliverer import StanzaSender
from smartfeeds.errors import LinkError


class FencedSender:
    """Sends over `wire` while `is_current` returns True (`delivery.deliverer.StanzaSender`).

    The database fences marks, but not bytes on the way to the XMPP server: a process that was asleep checks the age of
    its last beat before each write. `sent` counts the stanzas since the start.
    """

    def __init__(self, wire: StanzaSender, is_current: Callable[[], bool]) -> None:
        self._wire = wire
        self._is_current = is_current
        self.sent = 0

    @property
    def online(self) -> bool:
        """Whether stanzas may be sent now."""
        return self._wire.online and self._is_current()

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        """Sends whole stanzas and returns how many. Raises LinkError."""
        if not self._is_current():
            raise LinkError("the lock session of this process is silent; another process may deliver its feeds")
        count = await self._wire.notify(stanzas)
        self.sent += count
        return count
