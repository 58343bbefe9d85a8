"""Sources: feeds of other servers that fill nodes (SRC-006, SRC-015, SRC-037, SRC-047, SRC-078, SRC-085).

`polls` decides when a source is requested. Times are microseconds since the Unix epoch.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from typing import Final
from urllib.parse import unquote, urlsplit

from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.filters import FILTERS, LastChange
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.core.view import BARE, View, parse_view
from smartfeeds.core.web_address import DEFAULT_PORTS, address_key, ascii_host, normal_escapes, read_address
from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.polling.enclosure_rules import parse_rule
from smartfeeds.json_form import JsonForm

# The shortest interval that an operator may choose.
LEAST_CHOSEN_S: Final = 300
MAX_URL_BYTES: Final = 2_048  # SRC-035
# The older pages that the first poll may request. Their items are stored in one transaction.
MAX_HISTORY: Final = 100
# The items of the first document that are announced to the subscribers of the node.
TOLD_AT_FIRST: Final = 10
# In place of the number of a list: its author chose the address, which opens no network, also when the list is gone.
REMOVED_LIST: Final = -1
_NODE_CHARACTERS: Final = 200  # of a generated name, before its digest
# Another feed may have the plain name. Names with a longer and longer part of a digest are then tried in turn.
_DIGEST_LENGTHS: Final = (6, 12, 32)
# The filters that compare the content of an entry. The others need the history of the item in its node.
CONTENT_FILTERS: Final = frozenset(
    row.name
    for row in FILTERS.values()
    if row.index is None or not any(row.index.change("", change) for change in LastChange)
)


class SourceState(Enum):
    """The state of a source (SRC-047)."""

    POLLED = "polled"
    """It is requested at its interval."""
    WAITING = "waiting"
    """Its server has asked for a pause."""
    SLOWED = "slowed"
    """Its last requests failed, and the pauses grow."""
    STOPPED = "stopped"
    """The service has given it up; `due_us` is a last try each week, or None."""
    PAUSED = "paused"
    """An operator or owner has paused it."""


class Reach(Enum):
    """The addresses that requests for a source may connect to."""

    PUBLIC = 0
    """Public addresses: the source belongs to a user, who must not read from the networks of the operator."""
    LISTED = 1
    """Public addresses and `sources.allowed_networks`: the source is the operator's or an admin's."""
    EVERYWHERE = 2
    """All addresses, by the setting `allow_private`."""


class PushKind(Enum):
    """The kind of push that has announced changes of a source; polls are then rare (SRC-031)."""

    NONE = ""
    CLOUD = "cloud"
    HUB = "hub"


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The settings of a source, by its operator or owner (SRC-085). The names of the fields are in stored JSON."""

    every_s: int | None = None
    """The interval. None: the service derives it from the feed (`polls.interval_s`)."""
    publisher: str = ""
    """The bare JID that publishes the items, "" for the service itself."""
    user: str = ""
    """The name for HTTP Basic, which is sent to the origin of the address only."""
    password: str = field(default="", repr=False)
    user_agent: str = ""
    """Replaces that of the service."""
    allow_private: bool = False
    """Whether requests may connect to addresses in private networks."""
    first_told: int = TOLD_AT_FIRST
    """The number of items of the first document that are announced to the subscribers of the node."""
    ignore_skips: bool = False
    """Whether the source is also polled in the hours and days that the feed skips."""
    only: str = ""
    """Filters of a view, such as `category=news`, which select the items. "" selects all."""
    ignore: tuple[str, ...] = ()
    """Names of elements, and of parameters in the query of addresses. A change of these does not change an item
    (SRC-072)."""
    history: int = 0
    """The number of older pages that the first poll requests (SRC-060)."""
    push: bool = True
    """Whether the service uses the hub or the cloud of the feed."""
    prefetch: bool = False
    """Whether the enclosures of new items are loaded in advance."""
    prefetch_first: int = 1
    """The number of enclosures of the first document that are loaded, the newest ones."""
    prefetch_rules: tuple[str, ...] = ()
    """Replace the rules of the service (PRE-011)."""
    prefetch_hold: bool = False
    """Whether a new item is published only when its enclosures have arrived."""
    is_list: bool = False
    """Whether the document is a subscription list, whose feeds become sources."""
    list_no: int = 0
    """The number of the list that has added the source, 0 for none, `REMOVED_LIST` if it was removed."""


NO_SETTINGS: Final = SourceSettings()
SOURCE_SETTINGS: Final = JsonForm(SourceSettings, sparse=True)


@dataclass(frozen=True, slots=True)
class DocumentHints:
    """The hints of a document about the next request (RSS-032, A-138). None: the document has no such hint."""

    ttl_s: int | None = None
    period_s: int | None = None
    """The update period of the RSS module "syndication"."""
    base_us: int | None = None
    """A time at which a period begins."""
    skip_hours: tuple[int, ...] = ()
    """Hours of GMT."""
    skip_days: tuple[int, ...] = ()
    """Days of the week. Monday is 0."""


NO_HINTS: Final = DocumentHints()


@dataclass(frozen=True, slots=True)
class Moved:
    """The target of permanent redirects, and the time since which every response has named it (SRC-034)."""

    url: str
    since_us: int


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The state of a source between two requests. The names of the fields are in stored JSON."""

    validators: Validators = NO_VALIDATORS
    failures: int = 0
    """The number of failed requests in a row."""
    failing_us: int | None = None
    """The time of the first of these failures."""
    said: bool = False
    """Whether the log has a warning about these failures."""
    gone_us: int | None = None
    """The time of the first 410."""
    moved: Moved | None = None
    former_urls: tuple[str, ...] = ()
    """The addresses before permanent redirects, the last one first."""
    hints: DocumentHints = NO_HINTS
    fresh_s: int | None = None
    """The hint in the headers of the last response."""
    times_us: tuple[int, ...] | None = None
    """The times of the newest items, newest first."""
    full_us: int | None = None
    """The time of the last document that was read."""
    push: PushKind = PushKind.NONE
    title: str = ""
    """The title of the feed."""
    described: Mapping[str, str] = field(default_factory=dict)
    """Digests of the options of the node that the feed has set."""
    is_page: bool = False
    """Whether the last document that was read was a web page."""
    gaps: int = 0
    """The number of documents in a row that had no item of the document before."""
    halvings: int = 0
    """The number of times that the interval was halved because of gaps (SRC-065)."""
    archives: tuple[str, ...] = ()
    """The archive documents that were read, the last one first (SRC-061)."""
    quiet_us: tuple[int, int] | None = None
    """The first and the last key of those items of the first document that are not announced (SRC-057)."""
    site: str = ""
    """The address of the site that the feed belongs to, as the feed says."""


SOURCE_PROGRESS: Final = JsonForm(SourceProgress, sparse=True)


@dataclass(frozen=True, slots=True)
class Source:
    """A feed or subscription list of another server, and the node that it fills. A time is None if it has not come."""

    source_no: int
    node: str
    first_url: str
    """The address under which the source was added. It identifies the source in its node, and ids of items derive from
    it (SRC-037)."""
    url: str
    """The address that is requested."""
    configured: bool
    """Whether the source comes from the configuration."""
    owner: str
    """The bare JID of the user who added it, "" for an operator."""
    created_us: int
    state: SourceState
    reason: str
    """The reason for the state, such as the last failure."""
    since_us: int
    """The time of the last change of `state` or `reason`."""
    due_us: int | None
    """The time of the next request, None if there will be none."""
    polled_us: int | None = None
    """The time of the last request."""
    good_us: int | None = None
    """The time of the last good answer."""
    settings: SourceSettings = NO_SETTINGS
    progress: SourceProgress = SourceProgress()

    @property
    def reach(self) -> Reach:
        """The addresses that requests for the source, its hubs and its older pages may connect to."""
        if self.settings.allow_private:
            return Reach.EVERYWHERE
        # Users and the authors of lists choose addresses that the operator has not seen.
        return Reach.PUBLIC if self.owner or self.settings.list_no else Reach.LISTED

    @property
    def state_word(self) -> str:
        """The state as lists show it: `new` until the first answer (SRC-047)."""
        is_new = self.state is SourceState.POLLED and self.polled_us is None
        return "new" if is_new else self.state.value

    @property
    def is_failing(self) -> bool:
        """Whether nothing comes from it at the moment, for whatever reason."""
        return self.state is not SourceState.POLLED

    @property
    def own_node(self) -> str:
        """The node of this service from which a list is read, "" for an address on the web."""
        try:
            return parse_address(self.url, smart=False).node
        except AddressError:
            return ""

    @property
    def identity(self) -> tuple[str, str]:
        """The key that all sources of a feed share: its first address, and the user for HTTP Basic. A server may send
        other users another feed."""
        return address_key(self.first_url), self.settings.user

    @property
    def is_listed(self) -> bool:
        """Whether the public list of sources has it, which other services may follow (SRC-083).

        A paused source, and an address that can be a secret of the operator, are not listed. Nor are sources that come
        from a list: two services that follow each other's list would keep each other's sources for ever.
        """
        settings = self.settings
        is_secret = bool(settings.user) or settings.allow_private or without_secrets(self.url) != self.url
        is_followed = settings.is_list or settings.list_no > 0
        return not is_secret and not is_followed and self.state is not SourceState.PAUSED

    @property
    def host(self) -> str:
        """The host and port of requests, to which a `HostPause` applies (SRC-041)."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True)
class HostPause:
    """A host that has refused requests as too many. It gets no request before `until_us`.

    `count` is the number of refusals in a row that named no time.
    """

    host: str
    until_us: int
    count: int = 0


def host_of(url: str) -> str:
    """The host and port of an address; "" if it has none."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return f"{(parts.hostname or '').lower()}:{port}"


def held_reader(source_no: int) -> str:
    """The reader of the documents that have the items which a source holds back (`features.prefetch.held_items`).

    It is here because `rows` removes these documents with the source, and polling works without prefetch.
    """
    return f"held of source {source_no}"


def publisher_of(source: "Source", domain: str) -> Jid:
    """The address that publishes the items of a source (SRC-077)."""
    return parse_jid(source.settings.publisher or domain) or Jid("", domain)


def node_names_of(source: Source) -> Iterator[str]:
    """Yields names for the node of a source: its host and path without `www.` and an ending such as `.xml`.

    The names are always the same, so a source that was removed and is added again returns to its node. The first name
    may be that of another feed too, such as one with another query. All others end with a part of a digest.
    """
    name = _name_of(source.first_url)
    yield name
    digest = sha256("\n".join(source.identity).encode()).hexdigest()
    yield from (f"{name}-{digest[:length]}" for length in _DIGEST_LENGTHS)


def is_made_for(node: str, url: str) -> bool:
    """Whether a node has a name that the feed at an address gives it."""
    return re.fullmatch(rf"{re.escape(_name_of(url))}(-[0-9a-f]+)?", node) is not None


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    folder, _, file = normal_escapes(parts.path).rstrip("/").rpartition("/")
    stem = file.rpartition(".")[0] or file
    place = "/".join(filter(None, (ascii_host(parts).removeprefix("www."), folder.strip("/"), stem)))
    return re.sub(r"[^0-9A-Za-z./_-]+", "-", place)[:_NODE_CHARACTERS]


def new_source(
    node: str,
    url: str,
    now_us: int,
    settings: SourceSettings | None = None,
    *,
    owner: str = "",
    configured: bool = False,
) -> Source:
    """Returns a source that is due now. Raises ConfigError for settings that cannot be used together.

    A name and password in the address become settings (SRC-015). `node` is "" for a list each of whose feeds gets a
    node of its own. The address of a list may be that of a node, `xmpp:SERVICE?;node=NODE`.
    """
    settings = settings or NO_SETTINGS
    is_node = settings.is_list and url.startswith("xmpp:")
    url, user, password = (url, "", "") if is_node else _without_login(url)
    if user:
        settings = replace(settings, user=user, password=password)
    if not node and not settings.is_list:
        raise ConfigError("a source needs the name of a node")
    if settings.every_s is not None and settings.every_s < LEAST_CHOSEN_S:
        raise ConfigError(f"the interval is {settings.every_s} seconds; choose {LEAST_CHOSEN_S} or more")
    if not 0 <= settings.history <= MAX_HISTORY:
        raise ConfigError(f"the number of history pages is {settings.history}; choose 0 to {MAX_HISTORY}")
    filter_of(settings.only)
    for rule in settings.prefetch_rules:
        parse_rule(rule)
    check_hold(settings)
    if settings.prefetch_first < 0:
        raise ConfigError(f"the number of first enclosures is {settings.prefetch_first}; choose 0 or more")
    if settings.first_told < 0:
        raise ConfigError(f"the number of first items is {settings.first_told}; choose 0 or more")
    return Source(
        0,
        node,
        url,
        url,
        configured=configured,
        owner=owner,
        created_us=now_us,
        state=SourceState.POLLED,
        reason="",
        since_us=now_us,
        due_us=now_us,
        settings=settings,
    )


def check_hold(settings: SourceSettings) -> None:
    """Raises ConfigError for settings that hold items back for enclosures that are never loaded."""
    if settings.prefetch_hold and not settings.prefetch:
        raise ConfigError("items can be held back only for enclosures that are loaded; switch prefetch on, too")


def filter_of(query: str) -> View:
    """Returns the view whose filters select the items of a source. Raises ConfigError if it has anything else."""
    try:
        view = parse_view(query) if query else BARE
    except FeedError as error:
        raise ConfigError(f"the filter {query!r} cannot be used: {error.text}") from None
    names = {name for name, _values in view.filters} if view is not None else set()
    if view is None or (query and not names) or not names <= CONTENT_FILTERS:
        allowed = ", ".join(sorted(CONTENT_FILTERS))
        raise ConfigError(f"the filter {query!r} cannot be used; use parameters of views: {allowed}")
    return view


def _without_login(text: str) -> tuple[str, str, str]:
    """Returns the address without its name and password, the name, and the password. Raises ConfigError."""
    url = read_address(text)
    if not url:
        raise ConfigError(f"{text.strip()[:200]!r} is not the address of a web page or feed (https://HOST/PATH)")
    if len(url.encode()) > MAX_URL_BYTES:
        raise ConfigError(f"the address is longer than {MAX_URL_BYTES} bytes")
    netloc = urlsplit(url).netloc
    if "@" not in netloc:
        return url, "", ""
    login, _, place = netloc.rpartition("@")
    user, _, password = login.partition(":")
    return url.replace(netloc, place, 1), unquote(user), unquote(password)
