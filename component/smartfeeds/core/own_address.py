"""Addresses of this service, in all spellings that a person may type or a document may have (SRC-082; RFC 3986 6.2)."""

from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.urls import FEEDS

# Parameters of a document that leave out no item.
_WHOLE: Final = frozenset({"sync", "max", "order"})
_PORTS: Final = {"http": 80, "https": 443}
_DEFAULT: Final = 0  # stands for the port of the scheme
_XMPP: Final = "xmpp:"


def own_path(url: str, own_url: str) -> str | None:
    """The path of an address below `own_url`, the address of this service, without the query. None: it is elsewhere.

    A service that is reached by http and https is one service, if both have their own port.
    """
    parts, own = _split(url), _split(own_url)
    if parts is None or own is None or _place(parts) != _place(own):
        return None
    root = own.path.rstrip("/")
    return parts.path.removeprefix(root) if f"{parts.path}/".startswith(f"{root}/") else None


def own_nodes(text: str, domain: str, own_url: str) -> tuple[str, ...]:
    """The names that a feed of this service may have to which a text leads, the exact one first.

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


def _names(text: str) -> tuple[str, ...]:
    name = text.rstrip("/")
    stem, dot, suffix = name.rpartition(".")
    return tuple(filter(None, (name, stem if dot and suffix.isalnum() and not text.endswith("/") else "")))


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 - raises ValueError for a port that is none
    except ValueError:
        return None
    return parts if parts.scheme in _PORTS and parts.hostname else None


def _place(parts: SplitResult) -> tuple[str, int]:
    """The host and the port, which is `_DEFAULT` if it is that of the scheme."""
    port = parts.port or _DEFAULT
    return _ascii((parts.hostname or "").removesuffix(".")), _DEFAULT if port == _PORTS[parts.scheme] else port


def _ascii(host: str) -> str:
    """A host as DNS has it (RFC 5891), unchanged if it has no such form."""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
