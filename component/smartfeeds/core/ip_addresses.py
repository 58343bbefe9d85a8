"""IP addresses as texts: which networks have them, and which of them one client may choose from."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Returns the networks of settings, which have been checked."""
    return tuple(map(ip_network, texts))


@lru_cache(1_024)  # a request asks several times about the address of its client
def plain_address(text: str) -> Address | None:
    """Returns the IP address in a text without its interface, an IPv4-mapped IPv6 address as the IPv4 address. None for
    any other text."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_within(text: str, networks: Sequence[Network]) -> bool:
    """Whether a text is an address of one of the networks."""
    address = plain_address(text)
    return address is not None and any(address in network for network in networks)


@lru_cache(10_000)  # of the clients that have a connection: it is counted when it begins and when it ends
def network_of(address: str) -> str:
    """Returns an IPv4 address as it is, and the /64 of an IPv6 address (RFC 6177); any other text as it is.

    The host part of an IPv6 address is free to choose, so a bound on single addresses bounds nothing.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return address if ip.version == 4 else str(ip_network((ip, 64), strict=False))
