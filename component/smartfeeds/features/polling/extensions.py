"""The hooks of other features in polling (`Hooks.of_features`): steps of an import, and subscribers at hubs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smartfeeds.core.model import Node
from smartfeeds.features.polling.source import Reach, Source
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.service.context import Context
from smartfeeds.service.importing import ImportCounts
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class ImportSteps:
    """The steps of a poll or push, in its transaction. `begin` publishes items that were held back, and `take` returns
    those of new items that are published now, oldest first. `held` returns the payloads of items that are held back, by
    id, for the number of a source.
    """

    begin: Callable[[WriteTx, Context, Source], ImportCounts]
    take: Callable[[WriteTx, Context, Source, Node, Sequence[ImportedItem]], list[ImportedItem]]
    held: Callable[[ReadTx, int], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class PushOwners:
    """The owners of one kind. `reach` returns the networks in which the feed of an owner may be, by its name; None if
    there is none of this name."""

    reach: Callable[[ReadTx, str], Reach | None]
