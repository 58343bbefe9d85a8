"""Addresses of feeds: `xmpp:feeds.example?;node=comments` (XEP-0060 12.22, RFC 5122; SF-085, SF-086).

A follower needs a view with deletions. A bare node has none, so its address stands for the Smart view of the node,
which is the node with parameters.
"""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.errors import ConfigError

SMART_VIEW = "order=modified"
_HELP = (
    "write it as xmpp:SERVICE?;node=NODE, for example xmpp:feeds.example?;node=comments "
    "or xmpp:feeds.example?;node=comments%3Forder=created, in quotes on the command line"
)


class AddressError(ConfigError, ValueError):
    """A text is not the address of a feed. The message says how to write an address."""


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """The address of a feed: its service, and the node with its parameters."""

    service: str
    node: str

    def __str__(self) -> str:
        return xmpp_uri(self.service, self.node)


def parse_address(text: str, *, smart: bool = True) -> FeedAddress:
    """Reads an `xmpp:` address. Raises AddressError.

    The node may be percent-encoded or not. With `smart`, a node without parameters gets those of its Smart view.
    """
    scheme, colon, rest = text.strip().partition(":")
    if not colon or scheme.lower() != "xmpp":
        raise AddressError(f"{text!r} is not the address of a feed; {_HELP}")
    service, question, query = rest.partition("?")
    jid = parse_jid(unquote(service))
    if jid is None:
        raise AddressError(f"{unquote(service)!r} is not an XMPP address; {_HELP}")
    node = _node_of(query) if question else ""
    if not node:
        raise AddressError(f"{text!r} has no node; {_HELP}")
    if not is_xml_text(node):
        raise AddressError(f"the node in {text!r} has characters that XML forbids; {_HELP}")
    if smart and "?" not in node:
        node = f"{node}?{SMART_VIEW}"
    return FeedAddress(str(jid), node)


class ItemAddress(NamedTuple):
    """The address of an item: its service, its node and its id."""

    service: str
    node: str
    item_id: str


def parse_item_address(text: str) -> ItemAddress | None:
    """Reads the `xmpp:` address of an item (XEP-0060 12.22), None for any other text."""
    scheme, _, rest = text.strip().partition(":")
    service, _, query = rest.partition("?")
    if scheme.lower() != "xmpp" or not query:
        return None
    jid = parse_jid(unquote(service))
    node, item_id = _value_of(query, "node"), _value_of(query, "item")
    return ItemAddress(str(jid), node, item_id) if jid is not None and node and item_id else None


def _node_of(query: str) -> str:
    return _value_of(query, "node")


def _value_of(query: str, name: str) -> str:
    """Returns a value in the query of an address, "" if there is none or if its escapes are not UTF-8."""
    for pair in query.split(";"):
        key, _, value = pair.partition("=")
        if key == name:
            try:
                return unquote(value, errors="strict")
            except UnicodeDecodeError:
                return ""
    return ""
