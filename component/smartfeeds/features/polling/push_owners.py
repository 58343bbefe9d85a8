"""What subscribes at hubs beside sources, such as mirrors (`Hooks.of_features`)."""

from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.features.polling.source import Reach
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class PushOwners:
    """The owners of one kind. `reach` returns the networks in which the feed of an owner may be, by its name; None if
    there is none of this name."""

    reach: Callable[[ReadTx, str], Reach | None]
