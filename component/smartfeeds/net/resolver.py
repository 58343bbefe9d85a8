"""Names of hosts and their IP addresses, remembered for some time.

Look-ups run in threads of their own. Strangers choose the names, and their name servers may answer slowly or never: in
the threads that the rest of the service uses, a few such names would stop everything. Names that were looked up before
have their own share of the threads, so new names never delay them.

The guard of `addresses` checks the address of every socket, so an address from memory opens no door.
"""

import socket
import time
from collections.abc import Callable
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

from smartfeeds.threads import OwnThreads

KEPT_S: Final = 60.0  # the resolver of the system does not return the time to live of a name
NEW_AT_ONCE: Final = 24  # look-ups of names that were never found
KNOWN_AT_ONCE: Final = 8
_SWEEP_NAMES: Final = 10_000  # in 11 MB

LookUp = Callable[[str, int, socket.AddressFamily], list[ResolveResult]]


def look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """The addresses of a host, from the system. Raises OSError if it has none."""
    try:
        infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:
        raise OSError(None, f"{host} is no name of a host") from None
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _type, protocol, _name, address in infos
    ]


class NameCache(AbstractResolver):
    """A resolver that remembers addresses for `kept_s` seconds.

    `inner` replaces the look-ups in threads by another resolver, `find` the function that runs in a thread. `clock`
    gives seconds that never go back.
    """

    def __init__(
        self,
        inner: AbstractResolver | None = None,
        *,
        kept_s: float = KEPT_S,
        find: LookUp = look_up,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._kept_s = kept_s
        self._find = find
        self._clock = clock
        self._for_new = OwnThreads(NEW_AT_ONCE)
        self._for_known = OwnThreads(KNOWN_AT_ONCE)
        self._known: dict[tuple[str, int, int], tuple[float, list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OSError if it has none."""
        key, now_s = (host, port, int(family)), self._clock()
        ends_s, results = self._known.get(key, (0.0, []))
        if results and now_s < ends_s:
            return results
        try:
            if self._inner is not None:
                results = await self._inner.resolve(host, port, family)
            else:
                threads = self._for_known if key in self._known else self._for_new
                results = await threads(self._find, host, port, family)
        except BaseException:
            # A name that fails, or that its caller gives up, loses its share.
            self._known.pop(key, None)
            raise
        if key not in self._known and len(self._known) >= _SWEEP_NAMES:
            # The older half. Which names are known matters longer than their addresses.
            self._known = dict(list(self._known.items())[_SWEEP_NAMES // 2 :])
        self._known.pop(key, None)
        self._known[key] = (now_s + self._kept_s, results)
        return results

    async def close(self) -> None:
        """Does nothing: an inner resolver belongs to its caller."""
