"""Topics: the addresses of our feeds that others may ask to be told of (WebSub section 5.1; rssCloud).

A topic is the base URL of a feed, which is pushed as Atom, or one of its documents that feed readers follow. Several
spellings name the same topic (WS-008).
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from smartfeeds.app.formats import FORMATS
from smartfeeds.core.urls import FEEDS, feed_path
from smartfeeds.core.view import BARE, SMART, View, canonical, parse_view
from smartfeeds.errors import FeedError

# The documents that say where their hub is, and so are topics. The others name no hub.
_DOCUMENTS = [each.representation for each in FORMATS.values() if each.representation is not None]
TOPIC_SUFFIXES = tuple(form.suffix for form in _DOCUMENTS if form.has_hub and form.self_suffix is None)
OTHER_SUFFIXES = ("json", "nno", *(form.suffix for form in _DOCUMENTS if form.suffix not in TOPIC_SUFFIXES))
_SUFFIX = re.compile(rf"(.+)\.({'|'.join((*TOPIC_SUFFIXES, *OTHER_SUFFIXES))})", re.DOTALL)
_DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_TOPIC_BYTES = 2_048


class TopicError(ValueError):
    """The address is no topic of this service. The text says why, after the words "hub.topic" or the like."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A feed, or its document with a suffix, in a view. `query` is the query string of the view as it was written."""

    name: str
    suffix: str
    query: str

    @property
    def view(self) -> View:
        """The view. Without parameters the base URL shows every change, and a document shows the bare node."""
        view = parse_view(self.query) if self.query else BARE if self.suffix else SMART
        assert view is not None  # `read_topic` refuses other queries
        return view

    @property
    def view_text(self) -> str:
        """The canonical text of the view."""
        return canonical(self.view)

    def url(self, site_url: str) -> str:
        """The address of the topic, the same for all its spellings, except that parameters are as written."""
        return f"{site_url}{feed_path(self.name, self.suffix)}{f'?{self.query}' if self.query else ''}"


def origin_of(url: str) -> tuple[str, int | None] | None:
    """Returns host and port of a web address, None as the port if it is the default one; None for no web address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    return host.rstrip("."), None if port == _DEFAULT_PORTS[parts.scheme] else port


def is_below(url: str, base_url: str) -> bool:
    """Returns whether an address belongs to the site at `base_url`, over http or https."""
    origin = origin_of(url)
    path = urlsplit(base_url).path.rstrip("/")
    return origin is not None and origin == origin_of(base_url) and f"{urlsplit(url).path}/".startswith(f"{path}/")


def read_topic(text: str, base_url: str) -> Topic:
    """Returns the topic that an address names at the site at `base_url`, whose documents can be pushed.

    Whether the feed exists is not checked. Raises TopicError.
    """
    topic = read_document_address(text, base_url)
    if topic.suffix in OTHER_SUFFIXES:
        raise TopicError(
            f"is a document that is not pushed; use the feed itself or one of .{', .'.join(TOPIC_SUFFIXES)}"
        )
    if topic.suffix not in ("", "atom") and topic.view.sync:
        raise TopicError("has sync data, which are pushed as Atom only; use the feed itself")
    return topic


def read_document_address(text: str, base_url: str) -> Topic:
    """Returns the feed and the document that an address names, whatever document it is; otherwise as `read_topic`.

    A cloud sends no content, so it can notify of each of them. Raises TopicError.
    """
    if len(text.encode()) > MAX_TOPIC_BYTES:
        raise TopicError(f"is longer than {MAX_TOPIC_BYTES} bytes")
    if "#" in text:
        raise TopicError("has a fragment; leave out the part after #")
    if not is_below(text, base_url):
        raise TopicError(f"is not an address of this service; its feeds are below {base_url}{FEEDS}")
    parts = urlsplit(text)
    path = parts.path.removeprefix(urlsplit(base_url).path.rstrip("/"))
    if not path.startswith(FEEDS) or path == FEEDS:
        raise TopicError(f"is not the address of a feed; feeds are below {base_url}{FEEDS}")
    name, suffix = path.removeprefix(FEEDS), ""
    if name.endswith("/"):
        name = name.removesuffix("/")
    elif (match := _SUFFIX.fullmatch(name)) is not None:
        name, suffix = match[1], match[2]
    try:
        if parts.query and parse_view(parts.query) is None:
            raise TopicError("has a parameter or value that feeds do not have")
        return Topic(unquote(name, errors="strict"), suffix, parts.query)
    except FeedError as error:
        # A position belongs to one page, and a search without words selects nothing.
        raise TopicError(f"has a parameter that topics cannot have: {error.text}") from None
    except UnicodeDecodeError:
        raise TopicError("is not in UTF-8") from None
