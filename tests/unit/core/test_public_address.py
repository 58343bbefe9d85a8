"""Addresses without secrets."""

import pytest

from smartfeeds.core.public_address import without_secrets


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://a.example/?key=SECRET", "https://a.example/"),
        ("https://a.example/f?feed=rss2&api_key=SECRET&id=5", "https://a.example/f?feed=rss2&id=5"),
        ("https://a.example/f?X-Amz-Signature=SECRET", "https://a.example/f"),
        ("https://a.example/f?feed%5Ftoken=SECRET&a=b", "https://a.example/f?a=b"),
        ("https://me:SECRET@a.example:8443/f?os_password=SECRET", "https://a.example:8443/f"),
        ("https://a.example/?feed=rss2", "https://a.example/?feed=rss2"),
        ("https://a.example/?id=5&empty", "https://a.example/?id=5&empty"),
        ("urn:uuid:1", "urn:uuid:1"),
        ("http://[", "http://["),
    ],
)
def test_secrets_are_left_out_and_other_parameters_stay(url: str, public: str) -> None:
    assert without_secrets(url) == public
