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
        match work.pop():
            case _EndTag() as tag:
                pieces.append(tag)
            case (tag, bytes(text)) if tag == _TEXT:
                pieces.append(_escaped(text))
            case (tag, bytes(name), list(attributes), list(children)) if tag == _ELEMENT and _NAME.fullmatch(name):
                start = b"<%b%b" % (name, b"".join(map(_attribute, attributes)))
                if children:
                    pieces.append(start + b">")
                    work.append(_EndTag(b"</%b>" % name))
                    work.extend(reversed(children))
                else:
                    pieces.append(start + b"/>")
            case _:
                raise _unreadable()
    return b"".join(pieces)


def _attribute(term: Term) -> bytes:
    match term:
        case (bytes(name), bytes(value)) if _NAME.fullmatch(name):
            return b' %b="%b"' % (name, _escaped(value))
    raise _unreadable()


def _escaped(text: bytes) -> bytes:
    # Line feeds and tabs are the same in a text, and differ from a blank in an attribute value only as references.
    return _SPECIAL.sub(lambda character: _REFERENCES[character[0]], text)


def _unreadable() -> FeedError:
    return FeedError(Condition.INVALID_PAYLOAD, "the payload is no element of ejabberd (xmlel)")
