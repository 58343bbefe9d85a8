"""The archive of nodes on the wire: queries, results, the form of the fields (XEP-0313, XEP-0431, XEP-0442).

A query has up to one page of results. They are bounded as a page of items is, and each result is a message of its own
before the response.
"""

from collections.abc import Callable, Iterator

from smartfeeds.core.filters import FILTERS
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.archive.requests import (
    AFTER_ID,
    BEFORE_ID,
    END,
    FULL_TEXT,
    IDS,
    START,
    WITH,
    ArchiveEnds,
    ArchivePage,
    GetArchiveEnds,
    QueryArchive,
)
from smartfeeds.service.requests import Request, local_part
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.calls import IncomingIq
from smartfeeds.xmpp.elements import Element, node_of, orders_of, result_set_of
from smartfeeds.xmpp.encode import attribute_bytes, encode_items, encode_result_set
from smartfeeds.xmpp.forms import FormField, encode_form, parse_submit
from smartfeeds.xmpp.side import Response, XmppSide, body_only

_FLIP = ns.tag(ns.MAM, "flip-page")
FEATURES = (ns.MAM, f"{ns.MAM}#extended", f"{ns.ORDER_BY}@{ns.MAM}")

# XEP-0313 4.1.5 forbids `<required/>`. A filter with several values is a list without choices.
_FIELDS = (
    FormField(WITH, "jid-single", (), "Publisher"),
    FormField(START, "text-single", (), "From this time on"),
    FormField(END, "text-single", (), "Up to this time"),
    FormField(BEFORE_ID, "text-single", (), "Before the result with this id"),
    FormField(AFTER_ID, "text-single", (), "After the result with this id"),
    FormField(IDS, "list-multi", (), "Results with these ids", datatype="xs:string", open=True),
    FormField(FULL_TEXT, "text-single", (), FILTERS["q"].text),
    *(
        FormField(row.name, "text-single", (), row.text)
        if row.index is None
        else FormField(row.name, "list-multi", (), row.text, datatype="xs:string", open=True)
        for row in FILTERS.values()
    ),
)
_FORM = f"<query xmlns='{ns.MAM}'>{encode_form('form', ns.MAM, _FIELDS)}</query>".encode()


def read_query(query: Element, actor: Jid, service: str) -> Request:
    """Returns the request of a `<query/>`. Raises FeedError."""
    node, query_id = _node(query, service), query.get("queryid")
    if query_id is not None and len(query_id.encode()) > MAX_ID_BYTES:
        # It is repeated in every result.
        raise FeedError(Condition.BAD_REQUEST, f"the queryid is too long; send up to {MAX_ID_BYTES} bytes")
    children = list(query.iterchildren("*"))
    return QueryArchive(
        actor,
        service,
        node,
        parse_submit(query, ns.MAM, required=False) or {},
        result_set_of(children),
        orders_of(children),
        query_id,
        any(child.tag == _FLIP for child in children),
    )


def read_metadata(metadata: Element, actor: Jid, service: str) -> Request:
    """Returns the request of a `<metadata/>`."""
    return GetArchiveEnds(actor, service, _node(metadata, service))


def read_form(_query: Element, _actor: Jid, _service: str) -> bytes:
    """Returns the form of the fields that queries may have. It is the same for every node."""
    return _FORM


def _node(element: Element, service: str) -> str | None:
    return node_of(element) or local_part(service)


def encode_fin(page: ArchivePage) -> bytes:
    """Returns the response that follows the results."""
    complete = b" complete='true'" if page.complete else b""
    return b"<fin xmlns='%b'%b>%b</fin>" % (ns.MAM.encode(), complete, encode_result_set(page.result_set))


def encode_ends(answer: ArchiveEnds) -> bytes:
    """Returns the archive metadata."""
    # An empty archive has no ends, and then the element is empty (XEP-0313 5).
    ends = "".join(
        f"<{name} id='{end.uid}' timestamp='{format_datetime(end.time_us)}'/>"
        for name, end in zip(("start", "end"), answer.ends, strict=False)
    )
    return f"<metadata xmlns='{ns.MAM}'>{ends}</metadata>".encode()


def encode_results(page: ArchivePage, iq: IncomingIq, message_ids: Iterator[str]) -> Iterator[bytes]:
    """Returns the messages with the results, in the form of notifications (XEP-0442 3)."""
    query_id = b" queryid='%b'" % attribute_bytes(page.query_id) if page.query_id is not None else b""
    service, node = attribute_bytes(iq.address.bare), attribute_bytes(page.node)
    for result in page.results:
        yield b"".join(
            (
                b"<message id='%b' from='%b' to='%b'>"
                % (attribute_bytes(next(message_ids)), iq.address.written, iq.sender.written),
                b"<result xmlns='%b'%b id='%b'>" % (ns.MAM.encode(), query_id, attribute_bytes(result.uid)),
                f"<forwarded xmlns='{ns.FORWARD}'>".encode(),
                f"<delay xmlns='{ns.DELAY}' stamp='{format_datetime(result.time_us)}'/>".encode(),
                b"<message xmlns='%b' type='%b' from='%b'>" % (ns.CLIENT.encode(), page.message_type.encode(), service),
                b"<event xmlns='%b'><items node='%b'>" % (ns.EVENT.encode(), node),
                encode_items((result.item,), show_publisher=page.show_publisher),
                b"</items></event></message></forwarded></result></message>",
            )
        )


def _encode_page(page: ArchivePage, iq: IncomingIq, new_id: Callable[[], str]) -> Response:
    return Response(encode_fin(page), before=tuple(encode_results(page, iq, iter(new_id, None))))


XMPP = XmppSide(
    readers={
        ("get", ns.tag(ns.MAM, "query")): read_form,
        ("set", ns.tag(ns.MAM, "query")): read_query,
        ("get", ns.tag(ns.MAM, "metadata")): read_metadata,
    },
    encoders={ArchivePage: _encode_page, ArchiveEnds: body_only(encode_ends)},
    features=FEATURES,
    node_features=FEATURES,
)
