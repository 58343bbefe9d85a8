"""Affiliations, and changes of lists of which a part was refused (XEP-0060 5.7, 8.8, 8.9)."""

from dataclasses import dataclass

from smartfeeds.core.model import Affiliation
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.requests.base import Answer, NodeRequest, Request, ResultSet
from smartfeeds.service.requests.subscriptions import SubscriptionList


@dataclass(frozen=True, slots=True)
class GetAffiliations(Request):
    """Lists affiliations in pages: those of the actor (XEP-0060 5.7), or with `owner` those of a node (8.9.1,
    XEP-0059)."""

    node: str | None = None
    owner: bool = False
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class AffiliationShown:
    """One entry; `node` is set in an entity's own list, `jid` in an owner's."""

    affiliation: Affiliation
    node: str = ""
    jid: str = ""


@dataclass(frozen=True, slots=True)
class AffiliationList(Answer):
    """Affiliations of an entity or, with `owner`, of a node."""

    node: str | None
    entries: tuple[AffiliationShown, ...]
    owner: bool = False
    result_set: ResultSet | None = None


@dataclass(frozen=True, slots=True)
class SetAffiliations(NodeRequest):
    """Changes affiliations of a node (XEP-0060 8.9.2). `entries` are pairs of a JID and an affiliation as written, or
    None."""

    entries: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class PartlyRefused(Answer):
    """The entries of a SetAffiliations or SetSubscriptions that were not applied; all others were (xep-map 89, 96)."""

    affiliations: AffiliationList | None = None
    subscriptions: SubscriptionList | None = None
