"""IP addresses as texts, and the network that one client has."""

import pytest

from smartfeeds.core.ip_addresses import network_of, plain_address


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


@pytest.mark.parametrize("text", ["", "1.2.3", "1.2.3.4.5", "localhost", "::g", "1.2.3.4/8", " 1.2.3.4", "٣.2.3.4"])
def test_what_is_no_address(text: str) -> None:
    assert plain_address(text) is None
