"""Makes the addresses of feeds and items of this service: paths over HTTP and `xmpp:` URIs (SF-057).

A feed is at `/feeds/NAME/`; the parameters of a view follow as a query. Its documents are at `/feeds/NAME.SUFFIX`, such
as `/feeds/NAME.rss`. An item is at `/entries/NAME/ID`, its conflicts at `/conflicts/NAME/ID`; the id is one segment.
"""

import re
from functools import lru_cache
from urllib.parse import quote

FEEDS = "/feeds/"
HUB = "/hub"
# The doors of the cloud: the paths that living workstations know, or guess (rssCloud).
CLOUD_FORM = "/rsscloud/pleaseNotify"
CLOUD_RPC = "/RPC2"
CLOUD_SOAP = "/rsscloud/soap"
ENTRIES = "/entries/"
CONFLICTS = "/conflicts/"
ABOUT = "/about/"
DOCS = "/docs"
OPENAPI = "/openapi.json"
FILES = "/files/"
ENCLOSURES = "/enclosures/"
OPTIONS = "/options/"
EMBED = "/embed/"
MICROPUB = "/micropub/"
MEDIA = "/media/"
GUESTS = "/guests/"
IMAGES = "/images/"
STATIC = "/static/"
RIVER = "/"
SEARCH = "/search"
MANIFEST, OPENSEARCH, ROBOTS = "/manifest.webmanifest", "/opensearch.xml", "/robots.txt"
ADMIN = "/admin/"
# The folders of the administration with a page for each feed.
ADMIN_FEEDS, ADMIN_MEMBERS, ADMIN_SUBSCRIPTIONS = f"{ADMIN}feeds/", f"{ADMIN}members/", f"{ADMIN}subscriptions/"
OUTLINE = "/outline/"
WRITE = "/write/"
DELETE = "/delete/"
LOGIN = "/login"
NEXT = "next"  # the parameter of the sign-in with the path to return to
LOGIN_WAIT = "/login/wait"
LOGIN_BASIC = "/login-basic"  # browsers send the password to addresses in the same folder (RFC 7617 2.2)
ACCOUNT = "/account"
FOLLOW = "/follow"
THEME = "/theme"
PUSH = "/push/"  # callbacks of our subscriptions at hubs and clouds of other servers
# The characters beside letters and digits that RFC 3986 allows in a segment unescaped.
_SEGMENT = "!$'()*+,;=:@"
# The characters of an XMPP address that stay unescaped; an IPv6 address has brackets (RFC 5122 2.2).
_JID = "@/:[]"
# Most item ids need no percent-encoding (RFC 3986 2.3).
_UNRESERVED = re.compile(r"[A-Za-z0-9._~\-]*")
_DOTS = frozenset({"", ".", ".."})


# A browser that opens an address of these schemes may run its content with the rights of the page that shows the feed.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")
_ACTIVE = frozenset({"javascript", "vbscript", "livescript", "data"})
_IGNORED = re.compile(r"[\x00-\x20]+")  # browsers ignore these characters anywhere in an address


def harmless(address: str) -> str:
    """Returns the address, or an empty text if a browser may run its content."""
    scheme = _SCHEME.match(_IGNORED.sub("", address))
    return address if scheme is None or scheme[0].lower() not in _ACTIVE else ""


# Each page of a feed names a few addresses of it.
@lru_cache(1_024)
def feed_path(name: str, suffix: str = "", folder: str = FEEDS) -> str:
    """Returns the path of a feed, or of one of its documents. In the folder ABOUT it is that of its description."""
    return f"{folder}{_quoted(name)}{f'.{suffix}' if suffix else '/'}"


def hub_path(name: str) -> str:
    """Returns the path of the WebSub hub of a feed."""
    return f"{feed_path(name)}{HUB[1:]}/"


def list_path(suffix: str = "") -> str:
    """Returns the path of the list of all feeds, or of one of its documents (`/feeds.opml`)."""
    return f"/feeds.{suffix}" if suffix else FEEDS


def river_path(suffix: str = "") -> str:
    """Returns the path of the river of all feeds, or of one of its documents (`/river.atom`)."""
    return f"/river.{suffix}" if suffix else RIVER


def entry_path(name: str, item_id: str = "", folder: str = ENTRIES) -> str:
    """Returns the path of an item, or of all items of a feed. In the folder CONFLICTS it is that of their conflicts."""
    return f"{folder}{_quoted(name)}/{id_segment(item_id)}"


def id_segment(item_id: str) -> str:
    """Returns an item id as the last segment of a path."""
    # `quote` takes five times as long as the match, and pages call this for every item.
    return item_id if _UNRESERVED.fullmatch(item_id) else quote(item_id, safe=_SEGMENT)


def reply_path(name: str, item_id: str, feed: str = "") -> str:
    """Returns the path of the page to answer an item in the feed `name`. `feed` has the item if that is another one."""
    source = f"&of={quote(feed, safe='')}" if feed and feed != name else ""
    return f"{entry_path(name, folder=WRITE)}?reply={quote(item_id, safe='')}{source}"


def local_path(text: str) -> str:
    """Returns a path of this site with its query, or an empty text for anything else.

    A browser reads `//host`, `/\\host` and a path with control characters as the address of another host.
    """
    plain = text.isascii() and text.isprintable() and not set(text) & set("\\ #")
    return text if plain and text.startswith("/") and not text.startswith("//") else ""


def micropub_path(name: str) -> str:
    """Returns the path of the Micropub endpoint of a feed."""
    return f"{MICROPUB}{_quoted(name)}"


def media_path(name: str) -> str:
    """Returns the path to which Micropub clients send files for a feed."""
    return f"{MEDIA}{_quoted(name)}"


def xmpp_uri(service: str, node: str, item_id: str = "") -> str:
    """Returns the XMPP address of a feed or of an item (XEP-0060 12.22; RFC 5122; SF-085, SF-086).

    `node` may be the name of a view.
    """
    item = f";item={quote(item_id, safe='')}" if item_id else ""
    return f"xmpp:{quote(service, safe=_JID)}?;node={quote(node, safe='')}{item}"


def message_uri(jid: str, text: str) -> str:
    """Returns the address by which an XMPP client offers to send a message (XEP-0147)."""
    return f"xmpp:{quote(jid, safe=_JID)}?message;type=chat;body={quote(text, safe='')}"


def subscribe_uri(service: str, name: str, view: str = "") -> str:
    """Returns the address by which an XMPP client subscribes to a feed or to a view (XEP-0147)."""
    node = f"{name}{'&' if '?' in name else '?'}{view}" if view else name
    return f"xmpp:{quote(service, safe=_JID)}?pubsub;action=subscribe;node={quote(node, safe='')}"


# Every page names its feed in several addresses.
@lru_cache(1_024)
def _quoted(name: str) -> str:
    """Escapes a name. Its slashes stay, unless clients would normalise the path, as they do with `//` and `/../`."""
    segments = name.split("/")
    # The address of a feed whose name ends with /hub would be that of the hub of another feed.
    safe = _SEGMENT if segments[-1] == HUB[1:] or not _DOTS.isdisjoint(segments) else _SEGMENT + "/"
    text = quote(name, safe=safe)
    return text.replace(".", "%2E") if text in _DOTS else text
