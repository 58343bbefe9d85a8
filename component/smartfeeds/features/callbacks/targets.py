"""Bounds on requests to hosts that strangers name: nobody shall use this service to knock on the doors of others.

Anybody can give one machine any number of names, so its IP address has a bound, too. That bound is higher, because
large providers serve many subscribers at one address.
"""

from collections.abc import Callable
from typing import Final

from smartfeeds.core.ip_addresses import network_of
from smartfeeds.core.limits import Rate, TokenBuckets
from smartfeeds.net.clients import CallbackClient

HOST_RATE: Final = Rate(per_s=5 / 60, burst=5)  # at most ten in any minute (WS-043)
ADDRESS_RATE: Final = Rate(per_s=30 / 60, burst=30)


class TargetRates:
    """Counts requests by the name and by the IP address of their host. `clock_s` gives seconds."""

    def __init__(self, client: CallbackClient, clock_s: Callable[[], float]) -> None:
        self._client = client
        self._hosts = TokenBuckets(HOST_RATE, clock=clock_s)
        self._addresses = TokenBuckets(ADDRESS_RATE, clock=clock_s)

    async def admits(self, host: str) -> bool:
        """Counts a request to a host, and returns True, unless there were too many."""
        if not self._hosts.has(host):
            return False
        # The client remembers the addresses until it connects.
        networks = {network_of(address) for address in await self._client.addresses_of(host)}
        if not self._hosts.has(host) or not all(map(self._addresses.has, networks)):
            return False
        self._hosts.take(host)
        for network in networks:
            self._addresses.take(network)
        return True
