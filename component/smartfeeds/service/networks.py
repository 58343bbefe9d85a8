"""Network addresses of one client, for bounds on what one client may use."""

from functools import lru_cache
from ipaddress import ip_address, ip_network


@lru_cache(10_000)
def network_of(address: str) -> str:
    """Returns an IPv4 address as it is, and the /64 of an IPv6 address (RFC 6177); any other text as it is.

    The host part of an IPv6 address is free to choose, so a bound on single addresses bounds nothing.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return address if ip.version == 4 else str(ip_network((ip, 64), strict=False))
