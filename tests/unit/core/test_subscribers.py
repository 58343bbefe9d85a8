"""The subscriber behind a network address."""

import pytest

from smartfeeds.core.subscribers import subscriber_of


@pytest.mark.parametrize(
    ("address", "subscriber"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff::2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("local", "local"),
    ],
)
def test_ipv6_address_stands_for_its_network(address: str, subscriber: str) -> None:
    assert subscriber_of(address) == subscriber
