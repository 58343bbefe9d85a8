"""Subscription lists: sources made of a list that is polled, and the list of the own sources (SRC-083)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from smartfeeds.core.model import Node
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.text import counted
from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.polls import UNLISTED, resumed, unlisted
from smartfeeds.features.polling.source import Source, SourceState, new_source
from smartfeeds.features.polling.sources import add_source, in_own_node
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx

# The sources of a list, including those that it does not name any more: a foreign server chooses their number.
MAX_LISTED: Final = 1_000


def is_shared(source: Source) -> bool:
    """Whether other services may follow a source: a list of the own sources names it.

    An address that can be a secret of the operator is left out, and a paused source. Sources of a list that is followed
    are left out, too: two services that follow each other would keep each other's sources for ever.
    """
    settings = source.settings
    is_secret = bool(settings.user) or settings.allow_private or without_secrets(source.url) != source.url
    is_followed = settings.is_list or settings.list_no > 0
    return not is_secret and not is_followed and source.state is not SourceState.PAUSED


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
