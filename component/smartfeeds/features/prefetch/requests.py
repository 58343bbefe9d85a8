"""Administration of enclosures by requests: owners list those of their nodes, admins all (PRE-036)."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from smartfeeds.core.model import ALL_NUMBERS, NO_LIMIT, Affiliation
from smartfeeds.features.prefetch.enclosure import EnclosureState
from smartfeeds.features.prefetch.enclosures import EnclosureStatus, enclosure_statuses
from smartfeeds.features.prefetch.local_files import GetEnclosure, get_enclosure
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.paged_lists import listed_bytes, listing_of, page_of
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx


class ListedEnclosure(NamedTuple):
    """An enclosure, and the size of its partial file."""

    status: EnclosureStatus
    part_bytes: int

    @property
    def size_bytes(self) -> int:
        """The number of bytes that are loaded."""
        enclosure = self.status.enclosure
        has_arrived = enclosure.state is EnclosureState.ARRIVED
        return (enclosure.length_bytes or 0) if has_arrived else self.part_bytes

    @property
    def total_bytes(self) -> int:
        """Its length, 0 if it is unknown."""
        enclosure = self.status.enclosure
        has_arrived = enclosure.state is EnclosureState.ARRIVED
        return (enclosure.length_bytes if has_arrived else enclosure.total_bytes or enclosure.length_bytes) or 0

    @property
    def percent(self) -> int:
        """Its progress."""
        return min(100, 100 * self.size_bytes // self.total_bytes) if self.total_bytes else 0


@dataclass(frozen=True, slots=True)
class ListEnclosures(ListRequest):
    """The enclosures of the nodes that the actor manages, by number."""


def list_enclosures(tx: ReadTx, context: Context, request: ListEnclosures) -> ListAnswer[ListedEnclosure]:
    """Enclosures with their state. The cost grows with the number of all enclosures."""
    rows = enclosure_statuses(tx, context, 0, NO_LIMIT)
    if not is_admin(context.policy, request.actor):
        owned = tx.affiliations_of(request.actor.bare_text, ALL_NUMBERS, kind=Affiliation.OWNER)
        names = {node.name for node, _ in owned}
        rows = [row for row in rows if row.node in names]
    listing = listing_of(rows, lambda row: listed_bytes(row.node, row.enclosure.url))
    page_rows, result_set = page_of(listing, request.page, context.policy)
    return ListAnswer([ListedEnclosure(row, row.enclosure.partial_bytes) for row in page_rows], result_set)


USE_CASES: Final = UseCases(
    reads={
        GetEnclosure: ("get_enclosure", get_enclosure),
        ListEnclosures: ("list_enclosures", list_enclosures),
    }
)
