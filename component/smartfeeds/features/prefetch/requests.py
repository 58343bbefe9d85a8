"""Administration of enclosures by requests: owners list those of their nodes, admins all (PRE-036)."""

from dataclasses import dataclass
from typing import Final

from smartfeeds.core.model import ALL_NUMBERS, NO_LIMIT, Affiliation
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.features.prefetch.enclosures import EnclosureStatus, enclosure_statuses
from smartfeeds.features.prefetch.local_files import GetEnclosure, get_enclosure
from smartfeeds.service.context import Context, is_admin
from smartfeeds.service.lists import listed_bytes, listing_of, page_of
from smartfeeds.service.requests import Answer, Request, ResultSet
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class ListEnclosures(Request):
    """The enclosures of the nodes that the actor manages."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class EnclosureList(Answer):
    """Enclosures by number."""

    statuses: tuple[EnclosureStatus, ...]
    result_set: ResultSet | None


def list_enclosures(tx: ReadTx, context: Context, request: ListEnclosures) -> EnclosureList:
    """Enclosures with their state. The cost grows with the number of all enclosures."""
    rows = enclosure_statuses(tx, context, 0, NO_LIMIT)
    if not is_admin(context.policy, request.actor):
        owned = tx.affiliations_of(request.actor.bare_text, ALL_NUMBERS, kind=Affiliation.OWNER)
        names = {node.name for node, _ in owned}
        rows = [row for row in rows if row.node in names]
    listing = listing_of(rows, lambda row: listed_bytes(row.node, row.enclosure.url))
    page_rows, result_set = page_of(listing, request.page, context.policy)
    return EnclosureList(tuple(page_rows), result_set)


USE_CASES: Final = UseCases(
    reads={
        GetEnclosure: ("get_enclosure", get_enclosure),
        ListEnclosures: ("list_enclosures", list_enclosures),
    }
)
