"""Terms as Erlang writes them with `~p`, and the payloads, nodes and items of ejabberd's mnesia."""

import re
from collections.abc import Iterable, Mapping

from smartfeeds.features.moving_in.erlang_terms import ErlangAtom, Term
from smartfeeds.features.moving_in.moved import MovedItem
from smartfeeds.formats.xml import Element

PRINTABLE = frozenset([8, 9, 10, 11, 12, 13, 27, *range(32, 127), *range(160, 256)])
ESCAPES = {8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 27: b"\\e", 34: b'\\"', 92: b"\\\\"}
HEADER = b"""{tables,[{pubsub_item,[{record_name,pubsub_item},
                       {attributes,[itemid,nodeidx,creation,modification,
                                    payload]}]},
         {pubsub_state,[{record_name,pubsub_state},
                        {attributes,[stateid,nodeidx,items,affiliation,
                                     subscriptions]}]},
         {pubsub_node,[{record_name,pubsub_node},
                       {attributes,[nodeid,id,parents,type,owners,options]}]}]}.
"""


def characters(data: bytes) -> bytes:
    return b"".join(ESCAPES.get(byte, bytes([byte])) for byte in data)


def text_of_term(term: Term) -> bytes:
    """The text of a term."""
    match term:
        case ErlangAtom():
            data = term.encode("latin-1")
            plain = re.fullmatch(rb"[a-z][\w@]*", data)
            return data if plain else b"'%b'" % characters(data).replace(b"'", b"\\'").replace(b'\\"', b'"')
        case bytes():
            if not term:
                return b"<<>>"
            if set(term) <= PRINTABLE:
                return b'<<"%b">>' % characters(term)
            return b"<<%b>>" % b",\n  ".join(str(byte).encode() for byte in term)
        case str():
            return b'"%b"' % characters(term.encode("latin-1"))
        case tuple():
            return b"{%b}" % b",\n ".join(map(text_of_term, term))
        case list():
            return b"[%b]" % b",".join(map(text_of_term, term))
        case _:
            return repr(term).encode()


def write_terms(terms: Iterable[Term]) -> bytes:
    """The text of a file of terms."""
    return b"".join(text_of_term(term) + b".\n" for term in terms)


def element_term(element: Element, namespace: str = "") -> Term:
    """An element as ejabberd stores it. Prefixes other than `xml` are not supported."""
    tag = str(element.tag)
    uri, _, name = tag.removeprefix("{").rpartition("}")
    attributes: list[Term] = [(b"xmlns", uri.encode())] if uri != namespace else []
    attributes += [
        (str(key).replace("{http://www.w3.org/XML/1998/namespace}", "xml:").encode(), str(value).encode())
        for key, value in element.attrib.items()
    ]
    children: list[Term] = [(ErlangAtom("xmlcdata"), element.text.encode())] if element.text else []
    for child in element:
        children.append(element_term(child, uri))
        if child.tail:
            children.append((ErlangAtom("xmlcdata"), child.tail.encode()))
    return (ErlangAtom("xmlel"), name.encode(), attributes, children)


def jid_term(jid: str) -> Term:
    bare, _, resource = jid.partition("/")
    local, _, domain = bare.rpartition("@")
    return (local.encode(), domain.encode(), resource.encode())


def time_term(time_us: int) -> Term:
    seconds, micro = divmod(time_us, 1_000_000)
    return (*divmod(seconds, 1_000_000), micro)


def node_term(host: str, name: str, number: int, options: Mapping[str, Term], owners: Iterable[str] = ()) -> Term:
    pairs: list[Term] = [(ErlangAtom(option), value) for option, value in options.items()]
    key = (host.encode(), name.encode())
    return (ErlangAtom("pubsub_node"), key, number, [], b"flat", [jid_term(owner) for owner in owners], pairs)


def state_term(jid: str, number: int, affiliation: str, states: Iterable[str]) -> Term:
    subscriptions: list[Term] = [(ErlangAtom(state), b"7034C4B016267") for state in states]
    return (
        ErlangAtom("pubsub_state"),
        (jid_term(jid), number),
        number,
        [b"i1"],
        ErlangAtom(affiliation),
        subscriptions,
    )


def item_term(number: int, item: MovedItem, payload: Element) -> Term:
    assert item.created_us is not None and item.modified_us is not None
    return (
        ErlangAtom("pubsub_item"),
        (item.id.encode(), number),
        number,
        (time_term(item.created_us), jid_term(item.publisher.partition("/")[0])),
        (time_term(item.modified_us), jid_term(item.publisher)),
        [element_term(payload)],
    )
