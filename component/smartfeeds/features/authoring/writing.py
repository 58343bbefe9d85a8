"""What a user may write in a node, for the pages that show buttons and forms. Every change checks the rights again."""

from dataclasses import dataclass

from smartfeeds.core.access import Access
from smartfeeds.core.model import Node
from smartfeeds.service.context import Context, locate_for
from smartfeeds.service.requests import Answer, NodeRequest
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetWriting(NodeRequest):
    """What the actor may write in a node."""


@dataclass(frozen=True, slots=True)
class WritingShown(Answer):
    """The node and the rights of the actor in it."""

    node: Node
    access: Access


def get_writing(tx: ReadTx, context: Context, request: GetWriting) -> WritingShown:
    """Reads the rights of an actor in a node. Raises FeedError as `locate_for` does."""
    located = locate_for(tx, context, request.node, request.actor)
    return WritingShown(located.node, located.access)


USE_CASES = UseCases(reads={GetWriting: ("get_writing", get_writing)})
