"""The network that one client has."""

import pytest

from smartfeeds.service.networks import network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff::2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("local", "local"),
    ],
)
def test_ipv6_address_stands_for_its_network(address: str, network: str) -> None:
    assert network_of(address) == network
