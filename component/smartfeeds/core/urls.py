"""Addresses of feeds and items: paths over HTTP (Smart Feeds, Feed Requirements; SF-057) and `xmpp:` URIs.

A feed is at `/feeds/NAME/`; its base URL is that with the view's parameters. Without the last slash and with a suffix
the same path is a document (`/feeds/NAME.rss`). An item is at `/entries/NAME/ID`, the conflicts that it has at
`/conflicts/NAME/ID`; the id is always one segment.
"""

import re
from urllib.parse import quote

FEEDS = "/feeds/"
ENTRIES = "/entries/"
CONFLICTS = "/conflicts/"
# What RFC 3986 allows in a segment beside letters and digits; "%" and "?" never stand for themselves.
_SEGMENT = "!$'()*+,;=:@"
# What stays of an XMPP address; an IPv6 one stands in brackets (RFC 5122 2.2).
_JID = "@/:[]"
_DOTS = frozenset({"", ".", ".."})


# A reader that opens such an address may run what is in it, as if the site that shows the feed had written it.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")
_ACTIVE = frozenset({"javascript", "vbscript", "livescript", "data"})
_IGNORED = re.compile(r"[\x00-\x20]+")  # browsers read past these, wherever they stand


def harmless(address: str) -> str:
    """The address; an empty text in the place of one that holds what might be run."""
    scheme = _SCHEME.match(_IGNORED.sub("", address))
    return address if scheme is None or scheme[0].lower() not in _ACTIVE else ""


def feed_path(name: str, suffix: str = "") -> str:
    """The path of a feed, or of a document of it."""
    return f"{FEEDS}{_quoted(name)}{f'.{suffix}' if suffix else '/'}"


def list_path(suffix: str = "") -> str:
    """The path of the list of all feeds, or of a document of it (`/feeds.opml`)."""
    return f"/feeds.{suffix}" if suffix else FEEDS


def entry_path(name: str, item_id: str = "", folder: str = ENTRIES) -> str:
    """The path of an item, or of all items of a feed; in the folder CONFLICTS, of their conflicts."""
    return f"{folder}{_quoted(name)}/{quote(item_id, safe=_SEGMENT)}"


def xmpp_uri(service: str, node: str, item_id: str = "") -> str:
    """The address of a feed, or of an item of it, over XMPP (XEP-0060 12.22; RFC 5122; SF-085, SF-086).

    A node with a view is a feed too.
    """
    item = f";item={quote(item_id, safe='')}" if item_id else ""
    return f"xmpp:{quote(service, safe=_JID)}?;node={quote(node, safe='')}{item}"


def subscribe_uri(service: str, name: str, view: str = "") -> str:
    """The address by which an XMPP client subscribes to a feed, or to a view of it (XEP-0147)."""
    node = f"{name}{'&' if '?' in name else '?'}{view}" if view else name
    return f"xmpp:{quote(service, safe=_JID)}?pubsub;action=subscribe;node={quote(node, safe='')}"


def _quoted(name: str) -> str:
    """The slashes of a name stay, unless a path with them would be read as another one."""
    safe = _SEGMENT if any(segment in _DOTS for segment in name.split("/")) else _SEGMENT + "/"
    text = quote(name, safe=safe)
    return text.replace(".", "%2E") if text in _DOTS else text
