"""The lists of administration in pages of rows, for JSON and for the pages of the web administration.

Each list is one request of `service/`, which checks the rights of the actor.
"""

from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.features.accounts.listing import ListTokens, TokenList, token_row
from smartfeeds.features.administration.listing import (
    Row,
    enclosure_row,
    mirror_state_row,
    node_row,
)
from smartfeeds.features.mirrors.requests import ListMirrors, MirrorList
from smartfeeds.features.prefetch.requests import EnclosureList, ListEnclosures
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.managed_nodes import ListManagedNodes, ManagedNodes
from smartfeeds.service.requests import (
    AffiliationList,
    Answer,
    GetAffiliations,
    GetNodeSubscriptions,
    Request,
    ResultSet,
    SubscriptionList,
)
from smartfeeds.service.resources import RowPage


@dataclass(frozen=True, slots=True)
class RowList:
    """A list that is read in pages with result sets. `ask` makes the request of a page from the actor, the service and
    the name of a node, and `rows` reads the response, which is of the type `kind`."""

    ask: Callable[[Jid, str, str, ResultSetRequest], Request]
    kind: type[Answer]
    rows: Callable[..., tuple[list[Row], ResultSet | None]]


NODES = RowList(
    lambda actor, service, _name, page: ListManagedNodes(actor, service, page),
    ManagedNodes,
    lambda answer: ([node_row(summary) for summary in answer.entries], answer.result_set),
)
MEMBERS = RowList(
    lambda actor, service, name, page: GetAffiliations(actor, service, name, True, page),
    AffiliationList,
    lambda answer: (
        [{"jid": entry.jid, "affiliation": entry.affiliation.value} for entry in answer.entries],
        answer.result_set,
    ),
)
SUBSCRIPTIONS = RowList(
    GetNodeSubscriptions,
    SubscriptionList,
    lambda answer: ([{"jid": entry.jid} for entry in answer.entries], answer.result_set),
)
TOKENS = RowList(
    lambda actor, service, _name, page: ListTokens(actor, service, page),
    TokenList,
    lambda answer: ([token_row(token, answer.now_us) for token in answer.tokens], answer.result_set),
)
ENCLOSURES = RowList(
    lambda actor, service, _name, page: ListEnclosures(actor, service, page),
    EnclosureList,
    lambda answer: (
        [enclosure_row(status, status.enclosure.partial_bytes) for status in answer.statuses],
        answer.result_set,
    ),
)
MIRRORS = RowList(
    lambda actor, service, _name, page: ListMirrors(actor, service, page=page),
    MirrorList,
    lambda answer: ([mirror_state_row(status) for status in answer.statuses], answer.result_set),
)


async def read_rows(
    handle: Handle, rows: RowList, actor: Jid, service: str, name: str, most: int, after: str
) -> RowPage:
    """Returns a page of at most `most` rows behind a position, "" for the first page. Raises FeedError."""

    async def read(count: int, position: str) -> tuple[list[Row], ResultSet | None]:
        request = rows.ask(actor, service, name, ResultSetRequest(str(count), position or None))
        return rows.rows(await ask(handle, request, rows.kind))

    page, result_set = await read(most, after)
    last = "" if result_set is None else result_set.last or ""
    # The service may cut a page short, so only a further request shows whether there are more rows.
    more = bool(last) and bool((await read(1, last))[0])
    return RowPage(tuple(page), None if result_set is None else result_set.count, last if more else "")
