"""Lists and descriptions of nodes (XEP-0030, XEP-0060 5)."""

from dataclasses import dataclass

from smartfeeds.core.model import Node
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import View
from smartfeeds.service.requests.base import Answer, Request, ResultSet


@dataclass(frozen=True, slots=True)
class GetNodeInfo(Request):
    """Asks for disco#info of a node or a Smart view (XEP-0030)."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeInfo(Answer):
    """The description of a node. Owners, publishers and subscribers are only filled if it is `readable` (xep-map 34).

    If it is not `described`, the response has its name, type and access model, and for users who may ask for membership
    (`is_joinable`) its contacts; `node` holds nothing else.
    """

    name: str
    node: Node
    view: View
    readable: bool
    owners: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()
    subscribers: int = 0
    described: bool = True
    is_joinable: bool = False


@dataclass(frozen=True, slots=True)
class GetNodes(Request):
    """Asks for disco#items of the service, or of a feed at its address, in pages (XEP-0030, XEP-0059, XEP-0462)."""

    page: ResultSetRequest | None = None
    included_types: tuple[str, ...] | None = None
    excluded_types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeList(Answer):
    """Nodes by name."""

    nodes: tuple[Node, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class GetItemIds(Request):
    """Asks for disco#items of a node (XEP-0030)."""

    node: str
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class ItemIds(Answer):
    """The ids of live items (xep-map 40, 41)."""

    node: str
    ids: tuple[str, ...]
    result_set: ResultSet | None
