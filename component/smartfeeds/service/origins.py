"""The feeds elsewhere that fill nodes, for subscription lists that other services may follow (SRC-083)."""

from dataclasses import dataclass

from smartfeeds.core.model import Node
from smartfeeds.service.context import Context, Origin, recipient_access
from smartfeeds.service.requests import Answer, Request
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetListedSources(Request):
    """The feeds that fill these nodes, which a list named before."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListedSources(Answer):
    """Feeds elsewhere for a subscription list."""

    sources: tuple[Origin, ...]


def listed_sources(tx: ReadTx, context: Context, request: GetListedSources) -> ListedSources:
    """The feeds that fill the nodes that the actor may read, those that a list may name."""
    sources = []
    for listed in request.nodes:
        node = tx.node(listed.name)
        access = None if node is None else recipient_access(tx, context, node, request.actor)
        if access is not None and access.sees_items:
            sources += [origin for origin in context.hooks.origins_of(tx, listed.name) if origin.listed]
    return ListedSources(tuple(sources))
