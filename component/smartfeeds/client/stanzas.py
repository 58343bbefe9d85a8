"""The stanzas of a follower: subscribe and items (XEP-0060), result sets (XEP-0059), headers (XEP-0131).

The namespace of a stanza's root element differs between clients and components, so incoming stanzas are matched without
it.
"""

from xml.etree.ElementTree import Element, SubElement

from smartfeeds.client.change import ReceivedItem
from smartfeeds.client.errors import AnswerError, RequestError
from smartfeeds.client.events import GapSuspected, Input, NodeGone, PageReceived, PageRequest, PushReceived
from smartfeeds.client.payload import read_item
from smartfeeds.client.position import bare

PUBSUB = "http://jabber.org/protocol/pubsub"
EVENT = "http://jabber.org/protocol/pubsub#event"
RSM = "http://jabber.org/protocol/rsm"
SHIM = "http://jabber.org/protocol/shim"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
# Prefix of the element that our component stream puts in place of the payload of a stanza that it could not parse; the
# rest of the namespace is random. A service that forges it gains nothing, because any invalid response has this effect.
CUT = "{urn:smartfeeds:0#cut-"
_MAX_DIGITS = 15  # a count with more digits is not plausible, and int() of a long text is slow
_REASON_CHARACTERS = 200  # of a reason that came from another service


def request(action: str, **attributes: str) -> Element:
    """Returns the payload of a request: a `pubsub` element with the element of the action, such as `subscribe`."""
    pubsub = Element(f"{{{PUBSUB}}}pubsub")
    SubElement(pubsub, f"{{{PUBSUB}}}{action}", attributes)
    return pubsub


def pull(node: str, page: PageRequest) -> Element:
    """Returns the payload of a request for a page (xep-map 3.1: rows 4, 6 and 9)."""
    pubsub = request("items", node=node)
    result_set = SubElement(pubsub, f"{{{RSM}}}set")
    SubElement(result_set, f"{{{RSM}}}max").text = str(page.max_items)
    if page.newest:
        SubElement(result_set, f"{{{RSM}}}before")
    elif page.after:
        SubElement(result_set, f"{{{RSM}}}after").text = f"cursor:{page.after}"
    return pubsub


def is_pending(reply: Element) -> bool:
    """Returns whether the subscription waits for the approval of an owner. Raises AnswerError."""
    _check_whole(reply)
    subscription = reply.find(f"{{{PUBSUB}}}pubsub/{{{PUBSUB}}}subscription")
    return subscription is not None and subscription.get("subscription") == "pending"


def read_page(reply: Element, request_no: int, node: str) -> PageReceived:
    """Reads the response to a request for a page of `node`.

    A page of a view has a result set with the cursor of its last item (SF-094). Nodes without parameters, which any
    pubsub service may have, need none. The count is optional (XEP-0059 section 2.7). Raises AnswerError if the response
    is not a page: an unreadable response must not be mistaken for an empty page, because that would prove completeness.
    """
    _check_whole(reply)
    items = reply.find(f"{{{PUBSUB}}}pubsub/{{{PUBSUB}}}items")
    if items is None or items.get("node") != node:
        raise AnswerError(f"the response is not a page of {node}")
    entries = tuple(read_item(item) for item in items.iterfind(f"{{{PUBSUB}}}item"))
    result_set = reply.find(f"{{{PUBSUB}}}pubsub/{{{RSM}}}set")
    first, last, count = (
        None if result_set is None else result_set.find(f"{{{RSM}}}{name}") for name in ("first", "last", "count")
    )
    page = PageReceived(
        request_no,
        entries,
        _cursor(first),
        _cursor(last),
        _number(None if first is None else first.get("index")),
        _number(None if count is None else count.text),
    )
    unreadable = result_set is None or (count is not None and page.count is None)
    if "?" in node and (unreadable or (entries and page.last is None)):
        raise AnswerError("the response has no readable result set, or no cursor of its last item")
    return page


def _check_whole(reply: Element) -> None:
    cut = next((child for child in reply if child.tag.startswith(CUT)), None)
    if cut is not None:
        raise AnswerError(f"the response was truncated: {(cut.text or 'no reason')[:_REASON_CHARACTERS]}")


def read_message(message: Element, node: str) -> Input | None:
    """Returns the event that a notification means to a follower of `node`, or None if it concerns something else."""
    event = message.find(f"{{{EVENT}}}event")
    if event is None or message.get("type") == "error":
        return None
    for child in event:
        if child.get("node") == node and child.tag.startswith(f"{{{EVENT}}}"):
            return _read_event(child.tag.partition("}")[2], child, message)
    return None


def _read_event(name: str, child: Element, message: Element) -> Input | None:
    if name == "items":
        return _read_push(child, message)
    if name == "delete":
        return NodeGone()
    # After a purge no notification names the deleted items, and a new state of the subscription may mean its end.
    if name in ("purge", "subscription"):
        return GapSuspected()
    return None


def _read_push(items: Element, message: Element) -> PushReceived:
    entries: list[ReceivedItem] = []
    for child in items:
        if child.tag == f"{{{EVENT}}}item":
            entries.append(read_item(child))
        elif child.tag == f"{{{EVENT}}}retract":
            entries.append(ReceivedItem(child.get("id", ""), deleted=True))
    headers: dict[str, str] = {}
    for header in message.findall(f"{{{SHIM}}}headers/{{{SHIM}}}header"):
        headers.setdefault(header.get("name", ""), (header.text or "").strip())
    return PushReceived(
        tuple(entries),
        bare(headers.get("PreviousCursor", "")) or None,
        bare(headers.get("LastCursor", "")) or None,
        _number(headers.get("TotalItems")),
    )


def read_error(reply: Element) -> RequestError:
    """Returns the error in a response of type error."""
    error = next((child for child in reply if child.tag.endswith("}error")), None)
    condition, text = "undefined-condition", ""
    for child in error if error is not None else ():
        namespace, _, name = child.tag.removeprefix("{").rpartition("}")
        if namespace == STANZAS and name == "text":
            text = child.text or ""
        elif namespace == STANZAS:
            condition = name
    return RequestError(condition, error.get("type", "cancel") if error is not None else "cancel", text)


def _cursor(element: Element | None) -> str | None:
    return None if element is None else bare((element.text or "").strip()) or None


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None
