"""Adds, changes and removes sources, and reads which are due (SRC-019, SRC-028 to SRC-030, SRC-083, SRC-084).

The store contains the sources, so that a running service and the command line see the same ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core import polling
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.own_address import own_nodes
from smartfeeds.core.sources import HostPause, Source, SourceState
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.service.context import Context
from smartfeeds.service.documents import version_of
from smartfeeds.store.base import ReadTx, WriteTx

SPREAD_S: Final = 600


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

    Raises ConfigError if the node has a source of this address, FeedError if its owner has too many.
    """
    if tx.source_of(source.node, source.first_url) is not None:
        raise ConfigError(f"the node {source.node} has a source {source.first_url} already")
    if source.owner:
        tx.lock_quotas(source.owner)
        if tx.sources_by(source.owner) >= context.policy.sources_per_jid:
            raise FeedError(
                Condition.POLICY_VIOLATION, f"you have {context.policy.sources_per_jid} sources; remove one first"
            )
    return replace(source, source_no=tx.add_source(source))


def find_source(tx: ReadTx, context: Context, text: str, node: str | None = None, own_url: str = "") -> Source:
    """The source with a number or an address, perhaps of a node. A list of this service has each spelling of its
    address (`own_nodes`). Raises ConfigError unless there is exactly one."""
    if text.isascii() and text.isdigit():
        matches = [source for source in [tx.source(int(text[:18]))] if source is not None]
    else:
        domain = context.policy.domain
        urls = {text, *(xmpp_uri(domain, name) for name in own_nodes(text, domain, own_url))}
        matches = [source for source in tx.sources(0, NO_LIMIT) if not urls.isdisjoint((source.first_url, source.url))]
    matches = [source for source in matches if node in (None, source.node)]
    if len(matches) > 1:
        raise ConfigError(f"{len(matches)} nodes have a source {text}; add --node, or use the number of the source")
    if not matches:
        raise ConfigError(f"there is no source {text}; smartfeeds source list shows all sources")
    return matches[0]


def remove_source(tx: WriteTx, _context: Context, source: Source) -> None:
    """Removes a source; the items remain, and so do the sources that a list has added.

    Raises ConfigError if it comes from the configuration.
    """
    if source.configured:
        raise ConfigError(
            f"the source {source.first_url} comes from the configuration; remove its [[source]] section and restart"
        )
    tx.remove_source(source.source_no)
    for row in tx.sources_of_list(source.source_no) if source.settings.is_list else ():
        tx.put_source(replace(row, settings=replace(row.settings, list_no=0)))


def change_source(tx: WriteTx, context: Context, source: Source, change: Callable[[Source, int], Source]) -> Source:
    """Stores a source after a change at the time now, and returns it."""
    changed = change(source, context.now_us)
    tx.put_source(changed)
    return changed


def poll_now(tx: WriteTx, context: Context, source: Source) -> Source:
    """Makes a source due. Raises ConfigError if it must not be polled now (SRC-030)."""
    refusal = polling.poll_refusal(source, tx.host_pause(source.host), context.now_us)
    if refusal:
        raise ConfigError(f"the source {source.first_url} cannot be polled now: {refusal}")
    return change_source(tx, context, source, lambda source, now_us: replace(source, due_us=now_us))


def set_configured_sources(tx: WriteTx, _context: Context, sources: Sequence[Source]) -> None:
    """Stores the sources of the configuration. A source keeps its progress while its node and address stay."""
    configured = {(source.node, source.first_url): source for source in sources}
    for row in tx.sources(0, NO_LIMIT):
        source = configured.pop((row.node, row.first_url), None)
        if source is not None and (not row.configured or row.settings != source.settings):
            tx.put_source(replace(row, configured=True, settings=source.settings))
        elif source is None and row.configured:
            tx.remove_source(row.source_no)
    for source in configured.values():
        tx.add_source(source)


def begin_polls(tx: WriteTx, context: Context) -> None:
    """Corrects due times after a start, or after the clock has jumped (SRC-028, SRC-029)."""
    tx.pull_back_sources(context.now_us)
    tx.spread_overdue_sources(context.now_us, SPREAD_S)


def read_due(tx: ReadTx, context: Context, limit: int) -> DueSources:
    """The sources to poll now."""
    pauses = {pause.host: pause for pause in tx.host_pauses(context.now_us)}
    lists = [source for source in tx.own_lists() if source.state is not SourceState.PAUSED]
    nodes = [tx.node(source.own_node) for source in lists]
    versions = ["" if node is None else version_of(node) for node in nodes]
    return DueSources(
        tuple(tx.sources_due(context.now_us, limit)),
        tx.next_source_due_us(),
        pauses,
        tuple(zip(lists, versions, strict=True)),
    )


def sharing_address(tx: ReadTx, _context: Context, source: Source) -> list[Source]:
    """The sources that one request serves: those of its address that ask for it in the same way (SRC-019)."""
    return [
        other
        for other in tx.sources_at(source.url)
        if other.state is not SourceState.PAUSED and _way(other) == _way(source)
    ]


def _way(source: Source) -> tuple[object, ...]:
    settings = source.settings
    return settings.user, settings.password, settings.user_agent, source.reach
