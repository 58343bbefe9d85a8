"""The stanzas of a follower (XEP-0060 subscribe and items, XEP-0059, XEP-0131; golden.json `xmpp` and `shim`).

Incoming elements are matched without the namespace of their root, which is another one for clients and components.
"""

from xml.etree.ElementTree import Element, SubElement

from smartfeeds.client.change import Entry
from smartfeeds.client.errors import AnswerError, RequestError
from smartfeeds.client.events import GapSuspected, Input, NodeGone, PageReceived, Pull, PushReceived
from smartfeeds.client.payload import read_item
from smartfeeds.client.position import bare

PUBSUB = "http://jabber.org/protocol/pubsub"
EVENT = "http://jabber.org/protocol/pubsub#event"
RSM = "http://jabber.org/protocol/rsm"
SHIM = "http://jabber.org/protocol/shim"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
# What our component stream leaves of a stanza that it could not read; the rest of the namespace is random. A service
# that forges it gains nothing: it could as well send any other answer that is not a page.
CUT = "{urn:smartfeeds:0#cut-"
_MAX_NUMBER = 15  # digits
_REASON_CHARACTERS = 200


def subscribe(node: str, jid: str) -> Element:
    """The payload of a subscribe request."""
    pubsub = Element(f"{{{PUBSUB}}}pubsub")
    SubElement(pubsub, f"{{{PUBSUB}}}subscribe", {"node": node, "jid": jid})
    return pubsub


def unsubscribe(node: str, jid: str) -> Element:
    """The payload of an unsubscribe request."""
    pubsub = Element(f"{{{PUBSUB}}}pubsub")
    SubElement(pubsub, f"{{{PUBSUB}}}unsubscribe", {"node": node, "jid": jid})
    return pubsub


def pull(node: str, request: Pull) -> Element:
    """The payload of a request for a page (xep-map 3.1: rows 4, 6 and 9)."""
    pubsub = Element(f"{{{PUBSUB}}}pubsub")
    SubElement(pubsub, f"{{{PUBSUB}}}items", {"node": node})
    result_set = SubElement(pubsub, f"{{{RSM}}}set")
    SubElement(result_set, f"{{{RSM}}}max").text = str(request.max_items)
    if request.newest:
        SubElement(result_set, f"{{{RSM}}}before")
    elif request.after:
        SubElement(result_set, f"{{{RSM}}}after").text = f"cursor:{request.after}"
    return pubsub


def is_pending(reply: Element) -> bool:
    """Whether the answer to a subscribe request says that an owner has to approve it. Raises AnswerError."""
    _check_whole(reply)
    found = reply.find(f"{{{PUBSUB}}}pubsub/{{{PUBSUB}}}subscription")
    return found is not None and found.get("subscription") == "pending"


def read_page(reply: Element, request_no: int, node: str) -> PageReceived:
    """The answer to a request for a page of `node`.

    A page of a view has a result set, and says where it ends (SF-094); only nodes without parameters, which any service
    may have, go without. The count may be left out, where counting costs too much (XEP-0059 2.7). Raises AnswerError
    where this is no page: it must not be taken for an empty one.
    """
    _check_whole(reply)
    items = reply.find(f"{{{PUBSUB}}}pubsub/{{{PUBSUB}}}items")
    if items is None or items.get("node") != node:
        raise AnswerError("the answer is no page of this node")
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
        raise AnswerError("the answer has no result set that can be read, or does not say where it ends")
    return page


def _check_whole(reply: Element) -> None:
    cut = next((child for child in reply if child.tag.startswith(CUT)), None)
    if cut is not None:
        raise AnswerError(f"the answer was cut short: {(cut.text or 'no reason')[:_REASON_CHARACTERS]}")


def read_message(message: Element, node: str) -> Input | None:
    """What a notification means to a follower of `node`, or None where it says nothing to it."""
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
    if name in ("purge", "subscription"):
        return GapSuspected()
    return None


def _read_push(items: Element, message: Element) -> PushReceived:
    entries: list[Entry] = []
    for child in items:
        if child.tag == f"{{{EVENT}}}item":
            entries.append(read_item(child))
        elif child.tag == f"{{{EVENT}}}retract":
            entries.append(Entry(child.get("id", ""), deleted=True))
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
    """The error that a reply of type error holds."""
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
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER else None
