"""Addresses of feeds, for users of the client: `core.feed_address`."""

from smartfeeds.core.feed_address import DEFAULT_VIEW, AddressError, FeedAddress, parse_address

__all__ = ["DEFAULT_VIEW", "AddressError", "FeedAddress", "parse_address"]
