"""The rest of a request that is done in several transactions, so that the writes of others can run in between.

`FeedService.handle` runs a continuation as it runs a request, until there is an answer. None is ever read from a wire.
"""

from dataclasses import dataclass

from smartfeeds.core.model import Affiliation
from smartfeeds.service.requests import AffiliationShown, Request


@dataclass(frozen=True, slots=True)
class PurgeOn(Request):
    """The rest of a purge: the items of a node up to a key of its modified order."""

    node_no: int
    up_to_us: int


@dataclass(frozen=True, slots=True)
class ApplyAffiliations(Request):
    """The rest of a SetAffiliations: bare addresses, and the entries that were refused."""

    node: str | None
    entries: tuple[tuple[str, Affiliation], ...]
    refused: tuple[AffiliationShown, ...] = ()
