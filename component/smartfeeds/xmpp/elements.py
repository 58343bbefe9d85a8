"""Reads the parts that many requests share: node names, item ids, result sets (XEP-0059), orders (XEP-0413).

See xep-map 3.1 row 22, 55 and 208.
"""

from collections.abc import Iterable

from lxml import etree

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import OrderBy
from smartfeeds.xmpp.namespaces import ORDER_BY, RSM, tag

Element = etree._Element

# A character has at most four bytes in UTF-8, so a text with this many characters needs no encoding to be checked.
_SURELY_SHORT = MAX_ID_BYTES // 4
TRUE = frozenset({"true", "1"})

SET = tag(RSM, "set")
ORDER = tag(ORDER_BY, "order")
_SET_FIELDS = {tag(RSM, name): name for name in ("max", "after", "before", "index")}
_DESCENDING = {None: False, "false": False, "0": False, "true": True, "1": True}


def node_of(element: Element) -> str | None:
    """Returns the node attribute, or None if it is absent.

    Raises FeedError: NODEID_REQUIRED for an empty name, BAD_REQUEST for a name above 1023 bytes (XEP-0060 section 4.1).
    """
    node = element.get("node")
    if node is None or 0 < len(node) <= _SURELY_SHORT:
        return node
    if not node:
        raise FeedError(Condition.NODEID_REQUIRED, "the node name is empty; name a node")
    return _bounded(node, "the node name")


def item_id_of(item: Element) -> str | None:
    """Returns the id attribute, None if it is absent or empty, as in the example of XEP-0346 3.3. Raises
    FeedError(BAD_REQUEST) for an id above 1023 bytes."""
    item_id = item.get("id") or None
    if item_id is None or len(item_id) <= _SURELY_SHORT:
        return item_id
    return _bounded(item_id, "the item id")


def _bounded(text: str, what: str) -> str:
    if len(text.encode()) > MAX_ID_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"{what} has {len(text.encode())} bytes; send 1 to {MAX_ID_BYTES} bytes")
    return text


def only(elements: Iterable[Element], name: str) -> Element | None:
    """Returns the element with this tag, or None. Raises FeedError(BAD_REQUEST) if it occurs more than once."""
    match = None
    for element in elements:
        if element.tag == name:
            if match is not None:
                raise FeedError(Condition.BAD_REQUEST, f"{name.rpartition('}')[2]} occurs twice")
            match = element
    return match


def result_set_of(elements: Iterable[Element]) -> ResultSetRequest | None:
    """Returns the result set among the elements, or None. Raises FeedError(BAD_REQUEST) for repeated parts (row 22)."""
    result_set = only(elements, SET)
    if result_set is None:
        return None
    fields: dict[str, str] = {}
    for child in result_set.iterchildren("*"):
        name = _SET_FIELDS.get(child.tag)
        if name is None:
            continue
        if name in fields:
            raise FeedError(Condition.BAD_REQUEST, f"{name} occurs twice in the result set")
        fields[name] = child.text or ""
    return ResultSetRequest(**fields)


def orders_of(elements: Iterable[Element]) -> tuple[OrderBy, ...]:
    """Returns the requested orders, the most significant first (XEP-0413). Raises FeedError(BAD_REQUEST)."""
    orders = []
    for element in elements:
        if element.tag == ORDER:
            by, descending = element.get("by"), _DESCENDING.get(element.get("desc"))
            if not by or descending is None:
                raise FeedError(Condition.BAD_REQUEST, "invalid order: `by` is required, `desc` must be true or false")
            orders.append(OrderBy(by, descending))
    return tuple(orders)
