"""What another feature does with the items that a source brings (`Hooks.of_features`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smartfeeds.core.model import Node
from smartfeeds.features.polling.source import Source
from smartfeeds.formats.items import ImportedItem
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
