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
from smartfeeds.features.polling.own_address import own_path
from smartfeeds.json_form import JsonForm

# The shortest interval that an operator may choose.
LEAST_CHOSEN_S: Final = 300
MAX_URL_BYTES: Final = 2_048  # SRC-035
# The first poll goes back so many pages at most; their items are stored in one transaction.
MAX_HISTORY: Final = 100
# So many items of the first document are announced to subscribers of the node.
TOLD_AT_FIRST: Final = 10
_NODE_CHARACTERS: Final = 200
_DIGEST_LENGTHS: Final = (6, 12, 32)  # of names that are tried in turn, short ones first, if the plain one is taken
# The filters that compare what an entry contains; the others need the history of the item in its node.
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
    """The settings of a source, by its operator or owner (SRC-085).

    `every_s` fixes the interval; None lets the rhythm of the feed decide. `publisher` is the bare JID that publishes
    its items, "" the service itself. `user` and `password` are for HTTP Basic at the origin of the address.
    `user_agent` replaces that of the service. `allow_private` admits addresses in private networks. Of the items of
    the first document, `first_told` are announced to the subscribers of the node. With `ignore_skips` the hours and
    days that the feed skips do not count. `only` are filters of a view, such as `category=news`: items that do not
    match are left out; "" admits all. `ignore` has the names of elements, and of parameters of addresses after "?",
    whose change is no change of an item (SRC-072). The first poll goes back `history` pages (SRC-060). Without `push`
    the hub and the cloud of the feed are not used. With `prefetch` the enclosures of new items are loaded in advance,
    of the first document the newest `prefetch_first`. `prefetch_rules` replace those of the service (PRE-011).
    With `prefetch_hold` a new item is published when its enclosures have arrived.
    With `is_list` the document is a subscription list whose feeds become sources; `list_no` is the number of the list
    that has added the source, 0 for none.
    """

    every_s: int | None = None
    publisher: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    user_agent: str = ""
    allow_private: bool = False
    first_told: int = TOLD_AT_FIRST
    ignore_skips: bool = False
    only: str = ""
    ignore: tuple[str, ...] = ()
    history: int = 0
    push: bool = True
    prefetch: bool = False
    prefetch_first: int = 1
    prefetch_rules: tuple[str, ...] = ()
    prefetch_hold: bool = False
    is_list: bool = False
    list_no: int = 0


NO_SETTINGS: Final = SourceSettings()
SOURCE_SETTINGS: Final = JsonForm(SourceSettings, sparse=True)


@dataclass(frozen=True, slots=True)
class DocumentHints:
    """The hints of a document about the next request. `ttl_s` and `period_s` (RSS module "syndication") are seconds;
    None is absent. `base_us` is the phase of the period. `skip_hours` are hours of GMT, `skip_days` days of the week
    from Monday = 0 (RSS-032, A-138)."""

    ttl_s: int | None = None
    period_s: int | None = None
    base_us: int | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()


NO_HINTS: Final = DocumentHints()


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """The feed at an address that a person has named: its address and its title. `problem` is the reason why it cannot
    be followed, "" if it can. `is_silent`: no response came."""

    url: str
    title: str = ""
    problem: str = ""
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """The target of permanent redirects, and since when every answer has named it (SRC-034)."""

    url: str
    since_us: int


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The state of a source between two requests.

    `failures` counts failed requests in a row since `failing_us`; `said` is set once the operator was told. `gone_us`
    is the time of the first 410. `former_urls` are the addresses before permanent redirects, the last one first.
    `fresh_s` is the hint of the last response, `times_us` are the times of the newest items, newest first. `full_us`
    is the time of the last document that was read. `title` is the feed's, `described` has digests of what the node's
    configuration got from the feed. `is_page`: that document was a web page. `gaps` counts documents in a row without
    an item of the one before, `halvings` how often the interval was halved for that (SRC-065). `archives` are the
    archive documents that were read, the last one first (SRC-061). `quiet_us` are the first and the last key of the
    items of the first document that no person is told of (SRC-057), None if there are none.
    """

    validators: Validators = NO_VALIDATORS
    failures: int = 0
    failing_us: int | None = None
    said: bool = False
    gone_us: int | None = None
    moved: Moved | None = None
    former_urls: tuple[str, ...] = ()
    hints: DocumentHints = NO_HINTS
    fresh_s: int | None = None
    times_us: tuple[int, ...] | None = None
    full_us: int | None = None
    push: PushKind = PushKind.NONE
    title: str = ""
    described: Mapping[str, str] = field(default_factory=dict)
    is_page: bool = False
    gaps: int = 0
    halvings: int = 0
    archives: tuple[str, ...] = ()
    quiet_us: tuple[int, int] | None = None


SOURCE_PROGRESS: Final = JsonForm(SourceProgress, sparse=True)


@dataclass(frozen=True, slots=True)
class Source:
    """A feed or subscription list of another server, and the node that it fills.

    `first_url` is the address under which it was added: it identifies the source in its node, and item ids are made of
    it (SRC-037). `url` is the address that is requested. `configured` sources come from the configuration. `owner` is
    the bare JID of the user who added it, "" for an operator. `since_us` is the time of the last change of state or
    reason, `polled_us` that of the last request, `good_us` that of the last good answer; None is never. `due_us` is
    the time of the next request, None if there is none.
    """

    source_no: int
    node: str
    first_url: str
    url: str
    configured: bool
    owner: str
    created_us: int
    state: SourceState
    reason: str
    since_us: int
    due_us: int | None
    polled_us: int | None = None
    good_us: int | None = None
    settings: SourceSettings = NO_SETTINGS
    progress: SourceProgress = SourceProgress()

    @property
    def reach(self) -> Reach:
        """The addresses that requests for it may connect to, those for its hubs and older pages included."""
        if self.settings.allow_private:
            return Reach.EVERYWHERE
        # Users and the authors of lists choose addresses that the operator has not seen.
        return Reach.PUBLIC if self.owner or self.settings.list_no else Reach.LISTED

    @property
    def state_word(self) -> str:
        """The state for people: `new` until the first answer (SRC-047)."""
        is_new = self.state is SourceState.POLLED and self.polled_us is None
        return "new" if is_new else self.state.value

    @property
    def own_node(self) -> str:
        """The node of this service that is the list, "" for an address on the web."""
        try:
            return parse_address(self.url, smart=False).node
        except AddressError:
            return ""

    @property
    def identity(self) -> tuple[str, str]:
        """The key that all sources of one feed share: the address under which it was added, and the user, whose feed
        may differ from that of others."""
        return address_key(self.first_url), self.settings.user

    @property
    def is_listed(self) -> bool:
        """Whether other services may follow it: the list of the own sources names it (SRC-083).

        An address that can be a secret of the operator is left out, and a paused source. Sources of a list that is
        followed are left out, too: two services that follow each other would keep each other's sources for ever.
        """
        settings = self.settings
        is_secret = bool(settings.user) or settings.allow_private or without_secrets(self.url) != self.url
        is_followed = settings.is_list or settings.list_no > 0
        return not is_secret and not is_followed and self.state is not SourceState.PAUSED

    @property
    def host(self) -> str:
        """The host and port that is requested; pauses are for it (SRC-041)."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True)
class HostPause:
    """A host that refused requests as too many: no request before `until_us`. `count` are refusals in a row without a
    time of their own."""

    host: str
    until_us: int
    count: int = 0


def host_of(url: str) -> str:
    """The host and port of an address; "" if it has none."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return f"{(parts.hostname or '').lower()}:{port}"


def held_reader(source_no: int) -> str:
    """The name under which the store has the items that a source holds back (`features.prefetch.held_items`)."""
    return f"held of source {source_no}"


def publisher_of(source: "Source", domain: str) -> Jid:
    """The address that publishes the items of a source (SRC-077)."""
    return parse_jid(source.settings.publisher or domain) or Jid("", domain)


def node_names_of(source: Source) -> Iterator[str]:
    """Names for the node of a source, always the same ones: host and path, without www and an ending such as .xml.

    Other addresses may have the first name too, so the other names end with a part of a digest of the address.
    """
    parts = urlsplit(source.first_url)
    folder, _, file = normal_escapes(parts.path).rstrip("/").rpartition("/")
    stem = file.rpartition(".")[0] or file
    place = "/".join(filter(None, (ascii_host(parts).removeprefix("www."), folder.strip("/"), stem)))
    name = re.sub(r"[^0-9A-Za-z./_-]+", "-", place)[:_NODE_CHARACTERS]
    yield name
    digest = sha256("\n".join(source.identity).encode()).hexdigest()
    yield from (f"{name}-{digest[:length]}" for length in _DIGEST_LENGTHS)


def is_own(url: str, own_url: str) -> bool:
    """Whether an address is a feed of the service that serves its feeds at `own_url` (SRC-082)."""
    return own_path(url, own_url) is not None


def new_source(
    node: str,
    url: str,
    now_us: int,
    settings: SourceSettings | None = None,
    *,
    owner: str = "",
    configured: bool = False,
) -> Source:
    """A source that is due now. A name and password in the address become settings (SRC-015). Raises ConfigError.

    A list has no node of its own if each of its feeds gets one. It may have the XMPP address of a node.
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
    """The view whose filters select the items of a source. Raises ConfigError for anything but filters of content."""
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
    """The address without name and password, the name, the password. Raises ConfigError."""
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
