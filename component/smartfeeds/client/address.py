"""Feed addresses, re-exported from `core.feed_address` for users of the client."""

from smartfeeds.core.feed_address import DEFAULT_VIEW, AddressError, FeedAddress, parse_address

__all__ = ["DEFAULT_VIEW", "AddressError", "FeedAddress", "parse_address"]
