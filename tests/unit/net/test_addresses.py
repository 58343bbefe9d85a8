"""Which addresses strangers may lead us to."""

from ipaddress import ip_network

import pytest

from smartfeeds.net.addresses import EVERYWHERE, RefusedAddressError, guarded_socket, is_public, may_connect

PRIVATE = {
    "127.0.0.1": "loopback",
    "127.255.0.9": "loopback",
    "0.0.0.0": "this host",
    "10.0.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.169.254": "link-local, the data of cloud machines",
    "100.64.0.1": "shared by carriers",
    "192.0.0.8": "protocol assignments",
    "192.0.0.192": "protocol assignments, the data of cloud machines",
    "168.63.129.16": "the data of cloud machines",
    "64:ff9b::a83f:8110": "translated data of cloud machines",
    "192.0.2.1": "documentation",
    "198.18.0.1": "benchmarks",
    "224.0.0.251": "multicast",
    "239.1.1.1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local with its interface",
    "fc00::1": "unique local",
    "fd12:3456::1": "unique local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "3fff:fff::1": "documentation",
    "100::1": "discard",
    "::ffff:127.0.0.1": "IPv4-mapped loopback",
    "::ffff:93.184.216.34": "IPv4-mapped",
    "::127.0.0.1": "IPv4-compatible",
    "64:ff9b::7f00:1": "translated loopback",
    "64:ff9b::a9fe:a9fe": "translated link-local",
    "64:ff9b:1::1": "local translation",
    "2002:7f00:1::1": "6to4 of loopback",
    "2002:c0a8:101::1": "6to4 of private",
    "2002:808:808::1": "6to4",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
    "example.org": "no address",
    "": "no address",
}


@pytest.mark.parametrize("address", PRIVATE, ids=lambda address: f"{address} {PRIVATE[address]}")
def test_address_that_is_not_public_is_refused(address):
    assert not is_public(address)
    assert not may_connect(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_address_is_fine(address):
    assert is_public(address)
    assert may_connect(address)


@pytest.mark.parametrize(
    ("address", "network", "may"),
    [
        ("192.168.1.7", "192.168.1.0/24", True),
        ("192.168.2.7", "192.168.1.0/24", False),
        ("::ffff:192.168.1.7", "192.168.1.0/24", True),
        ("::ffff:192.168.2.7", "192.168.1.0/24", False),
        ("fd00::7", "fd00::/8", True),
        ("fd00::7", "0.0.0.0/0", False),
        ("nonsense", "0.0.0.0/0", False),
    ],
)
def test_network_that_is_allowed_is_open(address, network, may):
    assert may_connect(address, [ip_network(network)]) is may


def test_everywhere_is_everywhere():
    assert all(may_connect(address, EVERYWHERE) for address in PRIVATE if "." in address[:4] or ":" in address)


def test_socket_is_not_even_made():
    with pytest.raises(RefusedAddressError):
        guarded_socket((2, 1, 6, "", ("127.0.0.1", 80)), ())
    with guarded_socket((2, 1, 6, "", ("127.0.0.1", 80)), EVERYWHERE) as made:
        assert made.family == 2
