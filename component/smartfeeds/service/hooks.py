"""The hooks of features in the use cases of the kernel, which run in its transactions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from smartfeeds.core.model import Item, Node
from smartfeeds.service import personal
from smartfeeds.service.personal import Personal, PersonalData
from smartfeeds.service.requests.items import LocalFile
from smartfeeds.store.base import ReadTx, WriteTx

if TYPE_CHECKING:
    from smartfeeds.service.context import Context

H = TypeVar("H")


class Origin(NamedTuple):
    """A feed elsewhere that fills a node: its address, and its title if it is known.

    The ids of its items are made of `first_address` and their own ids (`formats.atom.digest_id`); empty: they are the
    ids of the items. Readers of the node do not see an origin that is not `visible`. A subscription list names those
    that are `listed`, for others to follow. `quiet_us` are the first and the last key of the items that came with its
    first document: people are not told of each of them.
    """

    address: str
    title: str = ""
    first_address: str = ""
    visible: bool = True
    listed: bool = False
    quiet_us: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of the kernel or of a feature, or of all of them joined.

    `node_removed` is called in the transaction in which a node loses its name, and `item_erased` in that in which the
    item of a person is erased, with the former item. `origins` returns the feeds elsewhere that fill a node of this
    name. `local_files` returns the files of items of a node that the service has loaded. `personal` are the tables,
    and the data of persons in them. `of_features` are hooks that a feature has for others, by their type.
    """

    node_removed: tuple[Callable[[WriteTx, "Context", Node], None], ...] = ()
    item_erased: tuple[Callable[[WriteTx, "Context", Node, Item], None], ...] = ()
    origins: tuple[Callable[[ReadTx, str], Iterable[Origin]], ...] = ()
    local_files: tuple[Callable[[ReadTx, "Context", Node, tuple[Item, ...]], Iterable[LocalFile]], ...] = ()
    personal: tuple[Personal, ...] = ()
    of_features: tuple[object, ...] = ()

    def __or__(self, others: "Hooks") -> "Hooks":
        """These hooks, and others behind them."""
        return Hooks(
            self.node_removed + others.node_removed,
            self.item_erased + others.item_erased,
            self.origins + others.origins,
            self.local_files + others.local_files,
            self.personal + others.personal,
            self.of_features + others.of_features,
        )

    @property
    def personal_data(self) -> PersonalData:
        """The data of persons in all tables."""
        return PersonalData(self.personal)

    def origins_of(self, tx: ReadTx, node: str) -> list[Origin]:
        """Returns the feeds elsewhere that fill a node."""
        return [origin for find in self.origins for origin in find(tx, node)]

    def local_files_of(
        self, tx: ReadTx, context: "Context", node: Node, items: tuple[Item, ...]
    ) -> tuple[LocalFile, ...]:
        """Returns the files of items that the service has loaded."""
        return tuple(file for find in self.local_files for file in find(tx, context, node, items))

    def of(self, kind: type[H]) -> list[H]:
        """Returns the hooks that features have brought for another one, those of this type."""
        return [hook for hook in self.of_features if isinstance(hook, kind)]


NO_HOOKS: Final = Hooks()
KERNEL: Final = Hooks(personal=(personal.KERNEL,))
