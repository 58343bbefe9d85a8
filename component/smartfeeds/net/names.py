"""Names of hosts and their IP addresses, remembered for a minute.

The client needs the address of a host before it waits for a turn, and again when it connects. One look-up serves both.
The guard of `addresses` checks the address of every socket, so an address from memory opens no door.
"""

import socket
import time
from collections.abc import Callable
from typing import Final

from aiohttp import DefaultResolver
from aiohttp.abc import AbstractResolver, ResolveResult

KEPT_S: Final = 60.0
_SWEEP_NAMES: Final = 10_000


class NameCache(AbstractResolver):
    """A resolver that asks another one, by default that of aiohttp. `clock` gives seconds that never go back."""

    def __init__(self, inner: AbstractResolver | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_own = inner is None
        self._inner = DefaultResolver() if inner is None else inner
        self._clock = clock
        self._known: dict[tuple[str, int, int], tuple[float, list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OSError if it has none."""
        key, now_s = (host, port, int(family)), self._clock()
        ends_s, results = self._known.get(key, (0.0, []))
        if now_s < ends_s:
            return results
        results = await self._inner.resolve(host, port, family)
        if len(self._known) >= _SWEEP_NAMES:
            self._known = {name: known for name, known in self._known.items() if known[0] > now_s}
        self._known[key] = (now_s + KEPT_S, results)
        return results

    async def close(self) -> None:
        """Closes the resolver of aiohttp; one that was passed belongs to its caller."""
        if self._is_own:
            await self._inner.close()
