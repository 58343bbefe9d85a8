"""Adds, changes and removes sources, and reads which are due (SRC-019, SRC-028 to SRC-030, SRC-083, SRC-084).

The store contains the sources, so that a running service and the command line see the same ones.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.model import NO_LIMIT, Node, Slice
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.view import BARE
from smartfeeds.core.web_address import address_key, host_spellings, read_address
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.polling import polls as polling
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.own_address import own_nodes
from smartfeeds.features.polling.source import REMOVED_LIST, HostPause, Source, SourceState, node_names_of
from smartfeeds.formats.atom import address_of_source
from smartfeeds.service.context import Context
from smartfeeds.service.feed_pages import version_of
from smartfeeds.store.base import ReadTx, WriteTx

SPREAD_S: Final = 600  # over which overdue sources and subscriptions are spread after a start (SRC-028, WS-137)
# So many items of a node are read to see whether a feed has filled it.
_ITEMS_COMPARED: Final = 20
_LIKE: Final = 0.8  # of an address that is suggested: all of them begin and end alike


class TooManySourcesError(FeedError):
    """A user has added as many sources as one may (SRC-084)."""

    __slots__ = ()

    def __init__(self, most: int) -> None:
        super().__init__(Condition.POLICY_VIOLATION, f"you have {most} sources; remove one first")


@dataclass(frozen=True, slots=True)
class DueSources:
    """The sources that are due, at most one a host; the time of the next one; the hosts that are paused; the lists that
    are nodes of this service, with the versions of their nodes, "" for a node that does not exist."""

    due: tuple[Source, ...]
    next_us: int | None
    pauses: Mapping[str, HostPause]
    own_lists: tuple[tuple[Source, str], ...] = ()


def add_source(tx: WriteTx, context: Context, source: Source) -> Source:
    """Stores a source and returns it with its number.

    Raises ConfigError if the node has a source of this feed, TooManySourcesError if its owner has too many.
    """
    for row in source_rows.sources_of(tx, source.node):
        if row.first_url == source.first_url or row.identity == source.identity:
            raise ConfigError(f"the node {source.node} has a source {row.first_url} already")
    if source.owner:
        tx.lock_quotas(source.owner)
        if source_rows.sources_by(tx, source.owner) >= context.policy.sources_per_jid:
            raise TooManySourcesError(context.policy.sources_per_jid)
    return replace(source, source_no=source_rows.add(tx, source))


def in_own_node(tx: ReadTx, source: Source, may_fill: Callable[[Node], bool]) -> Source:
    """The source in a node that no other feed fills: the node of this feed if it has one, else a new one.

    The name is made of the address. A node without a source is used if it is empty or has items of the feed, and if
    `may_fill` permits it. Raises ConfigError if all names of the address are taken, and what `may_fill` raises.
    """
    # All spellings of an address give these names. So the sources of its host, perhaps thousands, need not be read.
    by_name = {name: source_rows.sources_of(tx, name) for name in node_names_of(source)}
    for name, rows in by_name.items():
        if any(row.identity == source.identity for row in rows):
            return replace(source, node=name)
    for name, rows in by_name.items():
        node = None if rows else tx.node(name)
        if not rows and (node is None or (may_fill(node) and _has_items_of(tx, node, source))):
            return replace(source, node=name)
    raise ConfigError(f"the names that {source.first_url} gives a node are taken; choose a name")


def _has_items_of(tx: ReadTx, node: Node, source: Source) -> bool:
    """Whether a node is empty, or its newest items name the feed as their source."""
    items = tx.slice(node.node_no, Slice(BARE, _ITEMS_COMPARED, newest=True))
    # Items name no secrets, so they do not tell which of several secret addresses they came from.
    if without_secrets(source.first_url) != source.first_url:
        return not items
    keys = {address_key(address_of_source(item.payload)) for item in items}
    return not items or source.identity[0] in keys


def sources_of_feed(tx: ReadTx, url: str) -> list[Source]:
    """The sources that were added under an address or request it now, however it is spelled, by number."""
    return sources_of_feeds(tx, (url,))[url]


def sources_of_feeds(tx: ReadTx, urls: Collection[str]) -> dict[str, list[Source]]:
    """The sources of each address, as `sources_of_feed`. The cost grows with the sources of the hosts, and each host is
    read once."""
    hosts = {spelling for url in urls for spelling in host_spellings(url)}
    by_key: dict[str, list[Source]] = {}
    for row in source_rows.sources_on_hosts(tx, hosts):
        for key in {address_key(row.first_url), address_key(row.url)}:
            by_key.setdefault(key, []).append(row)
    return {url: by_key.get(address_key(url), []) for url in urls}


def sources_of_site(tx: ReadTx, url: str) -> list[Source]:
    """The sources of the operator whose feed says that it belongs to the site at an address, and is on its host.

    Other feeds could claim the sites of strangers. The cost is that of `sources_of_feed`.
    """
    key = address_key(url)
    host = key.partition("/")[0]
    return [
        row
        for row in source_rows.sources_on_hosts(tx, host_spellings(url))
        if not (row.owner or row.settings.list_no)
        # `sources_on_hosts` also finds hosts that only begin with this one.
        if address_key(row.progress.site) == key and address_key(row.url).partition("/")[0] == host
    ]


def find_source(tx: ReadTx, context: Context, text: str, node: str | None = None, own_url: str = "") -> Source:
    """The source with a number or an address, perhaps of a node. A list of this service has each spelling of its
    address (`own_nodes`). Raises ConfigError unless there is exactly one."""
    if text.isascii() and text.isdigit():
        matches = [source for source in [source_rows.source(tx, int(text[:18]))] if source is not None]
    else:
        domain = context.policy.domain
        lists = {xmpp_uri(domain, name) for name in own_nodes(text, domain, own_url)}
        matches = sources_of_feed(tx, read_address(text))
        matches = [source for source in matches if text in (source.first_url, source.url)] or matches
        matches = matches or [source for source in source_rows.sources(tx, 0, NO_LIMIT) if source.first_url in lists]
    matches = [source for source in matches if node in (None, source.node)]
    if len(matches) > 1:
        raise ConfigError(f"{len(matches)} nodes have a source {text}; add --node, or use the number of the source")
    if not matches:
        known = [] if text.isdigit() else [source.first_url for source in source_rows.sources(tx, 0, NO_LIMIT)]
        hint = did_you_mean(text, known, _LIKE) or "; smartfeeds source list shows all sources"
        raise ConfigError(f"there is no source {text}{hint}")
    return matches[0]


def remove_source(tx: WriteTx, _context: Context, source: Source) -> None:
    """Removes a source; the items remain, and so do the sources that a list has added.

    Raises ConfigError if it comes from the configuration.
    """
    if source.configured:
        raise ConfigError(
            f"the source {source.first_url} comes from the configuration; remove its [[source]] section and restart"
        )
    source_rows.remove(tx, source.source_no)
    for row in source_rows.sources_of_list(tx, source.source_no) if source.settings.is_list else ():
        source_rows.put(tx, replace(row, settings=replace(row.settings, list_no=REMOVED_LIST)))


def change_source(tx: WriteTx, context: Context, source: Source, change: Callable[[Source, int], Source]) -> Source:
    """Stores a source after a change at the time now, and returns it."""
    changed = change(source, context.now_us)
    source_rows.put(tx, changed)
    return changed


def poll_now(tx: WriteTx, context: Context, source: Source) -> Source:
    """Makes a source due. Raises ConfigError if it must not be polled now (SRC-030)."""
    refusal = polling.poll_refusal(source, source_rows.host_pause(tx, source.host), context.now_us)
    if refusal:
        raise ConfigError(f"the source {source.first_url} cannot be polled now: {refusal}")
    return change_source(tx, context, source, lambda source, now_us: replace(source, due_us=now_us))


def set_configured_sources(tx: WriteTx, _context: Context, sources: Sequence[Source]) -> None:
    """Stores the sources of the configuration. A source keeps its progress while its node and address stay."""
    configured = {(source.node, source.first_url): source for source in sources}
    rows = source_rows.sources(tx, 0, NO_LIMIT)
    by_number = {row.source_no: configured.pop((row.node, row.first_url), None) for row in rows}
    respelled = {(source.node, source.identity): source for source in configured.values()}
    for row in rows:
        source = by_number[row.source_no] or respelled.pop((row.node, row.identity), None)
        if source is not None and (not row.configured or row.settings != source.settings):
            source_rows.put(tx, replace(row, configured=True, settings=source.settings))
        elif source is None and row.configured:
            source_rows.remove(tx, row.source_no)
    for source in respelled.values():
        source_rows.add(tx, source)


def begin_polls(tx: WriteTx, context: Context) -> None:
    """Corrects due times after a start, or after the clock has jumped (SRC-028, SRC-029)."""
    source_rows.pull_back(tx, context.now_us)
    source_rows.spread_overdue(tx, context.now_us, SPREAD_S)


def read_due(tx: ReadTx, context: Context, limit: int) -> DueSources:
    """The sources to poll now."""
    pauses = {pause.host: pause for pause in source_rows.host_pauses(tx, context.now_us)}
    lists = [source for source in source_rows.own_lists(tx) if source.state is not SourceState.PAUSED]
    nodes = [tx.node(source.own_node) for source in lists]
    versions = ["" if node is None else version_of(node) for node in nodes]
    return DueSources(
        tuple(source_rows.due(tx, context.now_us, limit)),
        source_rows.next_due_us(tx),
        pauses,
        tuple(zip(lists, versions, strict=True)),
    )


def sharing_address(tx: ReadTx, _context: Context, source: Source) -> list[Source]:
    """The sources that one request serves: those of its address that ask for it in the same way (SRC-019)."""
    return [
        other
        for other in source_rows.sources_at(tx, source.url)
        if other.state is not SourceState.PAUSED and _way(other) == _way(source)
    ]


def _way(source: Source) -> tuple[object, ...]:
    settings = source.settings
    return settings.user, settings.password, settings.user_agent, source.reach
