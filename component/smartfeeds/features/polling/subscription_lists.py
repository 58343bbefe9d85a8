"""Subscription lists: sources made of a list that is polled (SRC-083).

A list may be a feed of this service, with outlines in a node, whoever has edited them. It is read as another service
reads it: from the outline with sync data that the feed publishes (SSE-002). So a list here and the same list elsewhere
have the same sources.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NO_LIMIT, Edge, Node, NodeKind, Slice
from smartfeeds.core.text import counted
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.validators import Validators
from smartfeeds.core.view import SHARED
from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.own_address import is_own, own_nodes
from smartfeeds.features.polling.polls import UNLISTED, resumed, unlisted
from smartfeeds.features.polling.source import Source, SourceSettings, SourceState, new_source
from smartfeeds.features.polling.source_lists import read_source_list
from smartfeeds.features.polling.sources import add_source, in_own_node
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.net.fetch import FetchError, FetchResponse
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.service.feed_pages import version_of
from smartfeeds.service.placing import MAX_OUTLINE
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.document_writer import SharedOutline

# The sources of a list, including those that it does not name any more: a foreign server chooses their number.
MAX_LISTED: Final = 1_000
_CHUNK: Final = 256
_OK, _NOT_MODIFIED = 200, 304


def follow_list(tx: WriteTx, context: Context, row: Source, urls: Sequence[str]) -> str:
    """Applies a list: a new address becomes a source, and the source of an address that is gone is paused until the
    list names it again. Only sources that this list has added are changed.

    The sources get the settings of the list without its password. Returns why feeds were left out, "" if none were.
    """
    members = {member.identity: member for member in rows.sources_of_list(tx, row.source_no)}
    # The password is for the server of the list (SRC-015).
    settings = replace(row.settings, is_list=False, list_no=row.source_no, user="", password="")
    listed, refusals = set(), []
    for url in urls:
        try:
            source = new_source(row.node or row.url, url, context.now_us, settings, owner=row.owner)
            listed.add(source.identity)
            if source.identity not in members:
                source = source if row.node else in_own_node(tx, source, partial(_left_out, source))
                members |= _added(tx, context, source, len(members))
        except (ConfigError, FeedError) as error:
            refusals.append(str(error))
    for identity, member in members.items():
        if identity not in listed and member.state is not SourceState.PAUSED:
            rows.put(tx, unlisted(member, context.now_us))
        elif identity in listed and member.reason == UNLISTED:
            rows.put(tx, resumed(member, context.now_us))
    return f"{counted(len(refusals), 'feed')} left out: {refusals[0]}" if refusals else ""


def _added(tx: WriteTx, context: Context, source: Source, members: int) -> dict[tuple[str, str], Source]:
    """The new source by its identity; nothing if the node has this feed already. Raises ConfigError or FeedError."""
    if any(row.identity == source.identity for row in rows.sources_of(tx, source.node)):
        return {}
    if members >= MAX_LISTED:
        raise ConfigError(f"the list has added {MAX_LISTED} sources, which is the limit; remove some of them")
    return {source.identity: add_source(tx, context, source)}


def _left_out(source: Source, node: Node) -> bool:
    """Otherwise the author of the list could write to each node whose name an address can have."""
    raise ConfigError(f"the node {node.name} exists; add {source.first_url} yourself")


@dataclass(frozen=True, slots=True)
class OwnList:
    """The list at an address of this service. `version` changes with the node, "" if there is none. `problem` is why
    the list cannot be read, "" if it can. `outline` is None if the list has the version that the reader knows."""

    url: str
    version: str
    problem: str = ""
    outline: bytes | None = None

    def response(self) -> FetchResponse:
        """The list as the server of a list elsewhere would send it. Raises FetchError."""
        if self.problem:
            raise FetchError(self.url, self.problem)
        status = _NOT_MODIFIED if self.outline is None else _OK
        return FetchResponse(self.url, status, self.outline or b"", validators=Validators(self.url, self.version))


def read_own_list(tx: ReadTx, context: Context, source: Source, known_version: str = "") -> OwnList:
    """The list that a source follows, as the user reads it who has added the source."""
    node = tx.node(source.own_node)
    if node is None:
        return OwnList(source.url, "", f"there is no node {source.own_node}")
    owner = parse_jid(source.owner)
    error = None if owner is None else recipient_access(tx, context, node, owner).reading_error
    problem = f"{source.owner} may not read the node {node.name}" if error is not None else _problem(node)
    if problem or version_of(node) == known_version:
        return OwnList(source.url, version_of(node), problem)
    return OwnList(source.url, version_of(node), outline=_outline(tx, context, node))


def _problem(node: Node) -> str:
    """Returns the reason why the items of a node cannot be outlines, whatever they contain; "" if they can."""
    if node.kind is not NodeKind.FEED:
        return f"the node {node.name} is no feed, so its items are no outlines"
    if node.total > MAX_OUTLINE:
        return f"the node {node.name} has {node.total} items; a list has up to {MAX_OUTLINE}"
    return ""


def _outline(tx: ReadTx, context: Context, node: Node) -> bytes:
    document = SharedOutline(FeedHead("", node.options.title or node.name, max(node.last_modified_us, 0)))
    after = None
    while chunk := tx.slice(node.node_no, Slice(SHARED, _CHUNK, after)):
        document.add(item_in_view(context, node, SHARED, item) for item in chunk)
        after = Edge(chunk[-1].modified_us, chunk[-1].item_no)
    return document.end()


def add_list(
    tx: WriteTx, context: Context, text: str, node: str, settings: SourceSettings, own_url: str = ""
) -> Source:
    """Stores the source that follows the list at an address, or in the node of this name. Raises ConfigError."""
    listed = _list_node(tx, context, text, own_url)
    if listed is not None and listed.name == node:
        raise ConfigError(f"the node {node} is the list; the entries of its feeds need another node")
    url = text if listed is None else xmpp_uri(context.policy.domain, listed.name)
    return add_source(tx, context, new_source(node, url, context.now_us, settings))


def _list_node(tx: ReadTx, context: Context, text: str, own_url: str) -> Node | None:
    """The node of this service that is the list, None for an address elsewhere. Raises ConfigError for a node that is
    no list: its source would only fail."""
    names = own_nodes(text, context.policy.domain, own_url)
    node = next(filter(None, map(tx.node, names)), None)
    if node is None:
        is_here = is_own(text, own_url) or (bool(names) and ":" in text)
        if is_here and any("?" in name for name in names):
            raise ConfigError(f"{text} is a view of a feed; follow the feed itself, without parameters")
        if is_here:
            raise ConfigError(f"{text} is an address of this service, and no feed is there")
        if names and not {"/", "."}.intersection(text):
            raise ConfigError(f"there is no node {text}; choose a node, or an address that starts with http://")
        if text.lower().startswith("xmpp:"):
            raise ConfigError(f"{text} is no feed of this service; mirror it, and follow the node of the mirror")
        return None
    problem = _problem(node)
    if problem:
        raise ConfigError(problem)
    if not read_source_list(_outline(tx, context, node), ""):
        items = f"{counted(node.live, 'item')}, none of which is a feed" if node.live else "no items"
        raise ConfigError(f"the node {node.name} is no subscription list: it has {items}; import a list into it first")
    return node


def adopt_own_lists(tx: WriteTx, context: Context, own_url: str) -> None:
    """Gives lists of this service that were added under a web address the address of their node. The cost grows with
    the number of sources."""
    for source in rows.sources(tx, 0, NO_LIMIT):
        names = own_nodes(source.url, context.policy.domain, own_url) if source.settings.is_list else ()
        node = next(filter(None, map(tx.node, names)), None)
        if node is not None and not source.own_node:
            # A source that is paused has no due time.
            due_us = None if source.due_us is None else context.now_us
            rows.put(tx, replace(source, url=xmpp_uri(context.policy.domain, node.name), due_us=due_us))
