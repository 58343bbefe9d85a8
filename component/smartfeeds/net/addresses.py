"""The IP addresses that a request may connect to: strangers must not reach the operator's own network through us.

The check reads the address of the socket when the socket is made. A name that resolves to another address the second
time (DNS rebinding) therefore gains nothing.
"""

import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from smartfeeds.core.ip_addresses import Address, Network, is_within

EVERYWHERE: Final[tuple[Network, ...]] = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            # Networks that `ipaddress` of some Python versions calls global (IANA special-purpose address registries).
            # And 6to4, whose relays are deprecated (RFC 7526): an address leads to any IPv4 address.
            "192.0.0.0/24",
            "192.88.99.0/24",
            "64:ff9b:1::/48",
            "100::/64",
            "2002::/16",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
            # A global address that machines in Azure reach inside their host: it serves keys of the machine.
            "168.63.129.16/32",
        ),
    )
)
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291 section 2.5.5.1
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052 section 2.1


class RefusedAddressError(PermissionError):
    """The address is private, loopback, link-local, multicast or reserved, and not allowed."""

    def __init__(self) -> None:
        super().__init__("its address is not public")


def is_public(text: str) -> bool:
    """Whether this IP address, and the IPv4 address that it may contain, belong to the open Internet.

    IPv4-mapped addresses do not, because no server has a reason to publish one.
    """
    address = _parsed(text)
    if address is None:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    carried = list(_carried(address))
    # Networks without IPv4 reach all of IPv4 by NAT64, so the inner address decides.
    return all(map(_is_global, carried if address.version == 6 and address in _NAT64 else [address, *carried]))


def may_connect(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether this IP address may be connected to: it is public, or in one of the `allowed` networks."""
    return is_within(text, allowed) or is_public(text)


def is_private(url: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether the host of an address, as it is written, may not be connected to. Other names are not resolved: they may
    lead to a private network nevertheless."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 section 6.3
        host = "127.0.0.1"
    elif _parsed(host) is None:
        # Shorter spellings, such as 127.1 and 0x7f.1, which clients read as addresses.
        try:
            host = socket.inet_ntoa(socket.inet_aton(host))
        except (OSError, UnicodeError):
            return False
    return not may_connect(host, allowed)


def guarded_socket(info: tuple[Any, ...], allowed: Sequence[Network]) -> socket.socket:
    """A socket for one result of getaddrinfo. Raises RefusedAddressError before it makes one."""
    family, kind, protocol, _name, address = info
    if not may_connect(str(address[0]), allowed):
        raise RefusedAddressError
    return socket.socket(family, kind, protocol)


def _parsed(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_global(address: Address) -> bool:
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address.version == network.version and address in network for network in _NOT_PUBLIC)


def _carried(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to by translation or tunnel."""
    if isinstance(address, IPv4Address):
        return
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or address in _COMPATIBLE:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
