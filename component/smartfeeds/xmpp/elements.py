"""What many requests share when they are read: node names, ids, result sets, orders (xep-map 3.1 row 22, 55, 208)."""

from collections.abc import Iterable

from lxml import etree

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import OrderBy
from smartfeeds.xmpp.namespaces import ORDER_BY, RSM, tag

Element = etree._Element

# No character takes more than four bytes.
_SURELY_SHORT = MAX_ID_BYTES // 4
TRUE = frozenset({"true", "1"})

SET = tag(RSM, "set")
ORDER = tag(ORDER_BY, "order")
_SET_FIELDS = {tag(RSM, name): name for name in ("max", "after", "before", "index")}
_DESCENDING = {None: False, "false": False, "0": False, "true": True, "1": True}


def node_of(element: Element) -> str | None:
    """The node attribute, None where it is absent.

    Raises FeedError: NODEID_REQUIRED for an empty name, BAD_REQUEST for one of more than 1023 bytes.
    """
    node = element.get("node")
    if node is None or 0 < len(node) <= _SURELY_SHORT:
        return node
    if not node:
        raise FeedError(Condition.NODEID_REQUIRED, "a node name is not empty")
    return _bounded(node, "a node name")


def item_id_of(item: Element) -> str | None:
    """The id attribute, None where it is absent. Raises FeedError(BAD_REQUEST) unless it has 1 to 1023 bytes."""
    item_id = item.get("id")
    if item_id is None or 0 < len(item_id) <= _SURELY_SHORT:
        return item_id
    return _bounded(item_id, "an item id")


def _bounded(text: str, what: str) -> str:
    if not 0 < len(text.encode()) <= MAX_ID_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"{what} has 1 to {MAX_ID_BYTES} bytes")
    return text


def only(elements: Iterable[Element], name: str) -> Element | None:
    """The one element of this tag, or None. Raises FeedError(BAD_REQUEST) where there are more."""
    found = None
    for element in elements:
        if element.tag == name:
            if found is not None:
                raise FeedError(Condition.BAD_REQUEST, f"{name.rpartition('}')[2]} occurs twice")
            found = element
    return found


def result_set_of(elements: Iterable[Element]) -> ResultSetRequest | None:
    """The result set among these elements, or None. Raises FeedError(BAD_REQUEST) for anything twice (row 22)."""
    found = only(elements, SET)
    if found is None:
        return None
    fields: dict[str, str] = {}
    for child in found.iterchildren("*"):
        name = _SET_FIELDS.get(child.tag)
        if name is None:
            continue
        if name in fields:
            raise FeedError(Condition.BAD_REQUEST, f"{name} occurs twice in the result set")
        fields[name] = child.text or ""
    return ResultSetRequest(**fields)


def orders_of(elements: Iterable[Element]) -> tuple[OrderBy, ...]:
    """The orders asked for, the most significant first (XEP-0413). Raises FeedError(BAD_REQUEST)."""
    orders = []
    for element in elements:
        if element.tag == ORDER:
            by, descending = element.get("by"), _DESCENDING.get(element.get("desc"))
            if not by or descending is None:
                raise FeedError(Condition.BAD_REQUEST, "an order has `by`, and `desc` is true or false")
            orders.append(OrderBy(by, descending))
    return tuple(orders)
