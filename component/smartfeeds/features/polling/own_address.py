"""Recognises the addresses of this service and its feeds in any spelling (SRC-082; RFC 3986 6.2)."""

from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.urls import ENTRIES, FEEDS
from smartfeeds.core.view import PARAMETERS
from smartfeeds.core.web_address import address_key, read_address

# Parameters of a document that leave out no item.
_WHOLE: Final = frozenset({"sync", "max", "order"})
_XMPP: Final = "xmpp:"


def own_path(url: str, own_url: str) -> str | None:
    """The path of an address below `own_url`, the address of this service, without the query. None: it is elsewhere.

    A service that is reached by http and https is one service, if both have their own port.
    """
    path, root = address_key(read_address(url)).partition("?")[0], address_key(own_url).rstrip("/")
    return path.removeprefix(root) if path and root and f"{path}/".startswith(f"{root}/") else None


def is_own(url: str, own_url: str) -> bool:
    """Whether an address is at or below `own_url`, the address of this service."""
    return own_path(url, own_url) is not None


def own_nodes(text: str, domain: str, own_url: str) -> tuple[str, ...]:
    """The names of nodes of this service that a text may mean, the exact one first.

    The text is an address over HTTP or XMPP, or the name itself; each may end like a document (`blogs.opml`). The
    result is empty for an address elsewhere, and for one of this service that is no feed.
    """
    text = text.strip()
    if text[: len(_XMPP)].lower() == _XMPP:
        try:
            address = parse_address(text, smart=False)
        except AddressError:
            return ()
        return (address.node,) if address.service == domain else ()
    if "://" not in text:
        return _names(text)
    path = own_path(text, own_url)
    if path is None or not path.startswith(FEEDS):
        return ()
    query = urlsplit(text).query
    if not {name for name, _value in parse_qsl(query, keep_blank_values=True)} <= _WHOLE:
        return (f"{unquote(path.removeprefix(FEEDS)).rstrip('/')}?{query}",)
    return _names(unquote(path.removeprefix(FEEDS)))


def feed_names(text: str, domain: str, own_url: str) -> tuple[str, ...] | None:
    """The names of feeds and views that an address of this service may mean, the exact one first; None for others.

    People follow what they read: the page of an entry means its feed, and a position in a feed does not count.
    """
    path = own_path(text, own_url)
    if path is None:
        is_xmpp = text.strip()[: len(_XMPP)].lower() == _XMPP
        return (own_nodes(text, domain, own_url) or None) if is_xmpp else None
    names: tuple[str, ...] = ()
    if path.startswith(FEEDS):
        names = _names(unquote(path.removeprefix(FEEDS)))
    elif path.startswith(ENTRIES):
        names = (unquote(path.removeprefix(ENTRIES).rpartition("/")[0]),)
    filters = PARAMETERS.keys() - _WHOLE
    fields = urlsplit(read_address(text)).query.split("&")
    view = "&".join(field for field in fields if unquote(field.partition("=")[0]) in filters)
    return tuple(f"{name}?{view}" if view else name for name in names if name)


def _names(text: str) -> tuple[str, ...]:
    name = text.rstrip("/")
    stem, dot, suffix = name.rpartition(".")
    return tuple(filter(None, (name, stem if dot and suffix.isalnum() and not text.endswith("/") else "")))
