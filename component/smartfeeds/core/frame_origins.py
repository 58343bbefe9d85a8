"""Origins of web sites that may show a feed in a frame (RFC 6454; Content Security Policy Level 3, `frame-ancestors`).

An origin in its normal form is safe in a policy: it consists of a scheme, a name and a port, and has no character that
ends a source or a directive.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from smartfeeds.core.web_address import DEFAULT_PORTS, ascii_host

MAX_ORIGINS: Final = 20
# The longest name of the DNS, with scheme and port.
MAX_ORIGIN_CHARACTERS: Final = 253 + len("https://:65535")
_LABEL: Final = r"[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1"})
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")  # browsers read a name as an IPv4 address if its last label is one
_PORT: Final = re.compile(r".*:([0-9]{1,5})")


def read_origin(text: str) -> str:
    """Returns the normal form of an origin: lower case, without the default port and a slash at its end, and its host
    as it is in the DNS. Raises ValueError with the reason for any other text."""
    text = text.strip()
    try:
        if not text or len(text) > MAX_ORIGIN_CHARACTERS or not text.isprintable() or " " in text:
            raise ValueError
        parts = urlsplit(text)
        host, port = ascii_host(parts), parts.port
    except ValueError:
        raise ValueError("a site is an origin such as https://blog.example") from None
    scheme = parts.scheme
    if scheme not in DEFAULT_PORTS or not host:
        raise ValueError("a site is an origin such as https://blog.example")
    if "*" in host:
        raise ValueError("a site has no wildcard; name each site")
    if "@" in parts.netloc or parts.path not in ("", "/") or "?" in text or "#" in text:
        raise ValueError("a site is scheme, name and port alone, without a path and without a user")
    if len(host) > 253 or _HOST.fullmatch(host) is None or not _is_port(parts.netloc, port):
        raise ValueError("the name or the port of the site is not valid; browsers know no IPv6 address here")
    if host not in _LOOPBACK:
        if _NUMBER.fullmatch(host.rpartition(".")[2]):
            raise ValueError("a site has a name, not an address; browsers accept only 127.0.0.1")
        if scheme != "https":
            raise ValueError("a site begins with https://; only localhost and 127.0.0.1 may have http://")
    return f"{scheme}://{host}" if port in (None, DEFAULT_PORTS[scheme]) else f"{scheme}://{host}:{port}"


def _is_port(netloc: str, port: int | None) -> bool:
    """Whether what follows the host is nothing, or a port in digits of ASCII."""
    if port is None:
        return not netloc.endswith(":")
    match = _PORT.fullmatch(netloc)
    return match is not None and match[1].isascii() and port > 0
