"""Elements of XML as Erlang terms, the form in which ejabberd stores payloads in mnesia (IMP-025).

`{xmlel, NAME, [{ATTRIBUTE, VALUE}], [CHILD]}` is an element and `{xmlcdata, TEXT}` a text. Names have the prefixes that
the publisher wrote, and `xmlns` is an attribute like any other.
"""

import re
from collections.abc import Sequence

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.erlang_terms import Atom, Term

_ELEMENT, _TEXT = Atom("xmlel"), Atom("xmlcdata")
_NAME = re.compile(rb"[^\s<>&\"'=/]+")
_SPECIAL = re.compile(rb"[&<>\"\t\n\r]")
_REFERENCES = {
    b"&": b"&amp;",
    b"<": b"&lt;",
    b">": b"&gt;",
    b'"': b"&quot;",
    b"\t": b"&#9;",
    b"\n": b"&#10;",
    b"\r": b"&#13;",
}


class _EndTag(bytes):
    """The end of an element whose children come before it in the work."""


def xml_of(elements: Sequence[Term]) -> bytes:
    """Returns the elements and texts as XML, one after the other. Raises FeedError(INVALID_PAYLOAD) for other terms.

    The bytes of names, values and texts are not checked further. The parser that reads the result rejects characters
    that XML forbids.
    """
    pieces: list[bytes] = []
    work: list[Term] = list(reversed(elements))  # the next term is the last
    while work:
        term = work.pop()
        # Comparisons of types take a third of the time of patterns, and a payload has a hundred terms.
        if type(term) is _EndTag:
            pieces.append(term)
        elif type(term) is not tuple:
            raise _unreadable()
        elif len(term) == 2 and term[0] == _TEXT and type(term[1]) is bytes:
            pieces.append(_escaped(term[1]))
        elif len(term) == 4 and term[0] == _ELEMENT:
            _, name, attributes, children = term
            if type(name) is not bytes or type(attributes) is not list or type(children) is not list:
                raise _unreadable()
            start = b"<" + _checked(name) + b"".join(map(_attribute, attributes))
            if children:
                pieces.append(start + b">")
                work.append(_EndTag(b"</" + name + b">"))
                work.extend(reversed(children))
            else:
                pieces.append(start + b"/>")
        else:
            raise _unreadable()
    return b"".join(pieces)


def _attribute(term: Term) -> bytes:
    if type(term) is tuple and len(term) == 2:
        name, value = term
        if type(name) is bytes and type(value) is bytes:
            return b" " + _checked(name) + b'="' + _escaped(value) + b'"'
    raise _unreadable()


def _checked(name: bytes) -> bytes:
    if _NAME.fullmatch(name) is None:
        raise _unreadable()
    return name


def _escaped(text: bytes) -> bytes:
    # Line feeds and tabs are the same in a text, and differ from a blank in an attribute value only as references.
    return _SPECIAL.sub(lambda character: _REFERENCES[character[0]], text) if _SPECIAL.search(text) else text


def _unreadable() -> FeedError:
    return FeedError(Condition.INVALID_PAYLOAD, "the payload is no element of ejabberd (xmlel)")
