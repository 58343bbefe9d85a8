"""Elements of XML as Erlang terms, the form in which ejabberd stores payloads in mnesia (IMP-025).

`{xmlel, NAME, [{ATTRIBUTE, VALUE}], [CHILD]}` is an element and `{xmlcdata, TEXT}` a text. Names have the prefixes that
the publisher wrote, and `xmlns` is an attribute like any other. The text of the terms becomes XML without terms in
between: a payload has a hundred of them, and most of the time of a move would go into them.
"""

import re
from functools import lru_cache

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.erlang_terms import BINARY, MAX_TERM_DEPTH, binary_of
from smartfeeds.formats.xml import checked_name

# Before 3.11.5, Python does not return to the end of the last repetition if a possessive group fails in its middle
# (gh-106052). So such groups are greedy here: nothing behind them fails, or their number is bounded.
_MOST_PAIRS = 128  # as `xml.MAX_ATTRIBUTES`
_BINARY = rb"<<(" + BINARY + rb")>>"
_PAIR = re.compile(rb"\s*+\{\s*+" + _BINARY + rb"\s*+,\s*+" + _BINARY + rb"\s*+\}\s*+(,?+)")
_PAIRS = rb"(?:\s*+\{\s*+<<" + BINARY + rb">>\s*+,\s*+<<" + BINARY + rb">>\s*+\}\s*+,?+){0,%d}" % _MOST_PAIRS
# A comma, the beginning of an element, a text, and the end of a list and of the element around it: all that stand next
# to each other. Most elements have one text, and are one part.
_PART = re.compile(
    rb"\s*+(?:(,)\s*+)?"
    rb"(?:(\{\s*+xmlel\s*+,\s*+<<" + BINARY + rb">>\s*+,\s*+\[" + _PAIRS + rb"\s*+\])\s*+,\s*+\[\s*+)?"
    rb"(?:\{\s*+xmlcdata\s*+,\s*+" + _BINARY + rb"\s*+\}\s*+)?"
    rb"(?:(\])(\s*+\})?)?"
)
_END = 4  # the group of the end of a list
_HEAD = re.compile(rb"\{\s*+xmlel\s*+,\s*+" + _BINARY + rb"\s*+,\s*+\[")
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
# The items of a feed begin most of their elements with the same bytes, which are remembered up to this length.
_REMEMBERED_BYTES = 500


def xml_of(data: bytes, start: int = 0) -> bytes:
    """Returns the elements and texts of a list as XML, one after the other. `start` is the offset of the list, after
    which only blanks and the end of the tuple around it may follow.

    The bytes of names, values and texts are not checked further. The parser that reads the result rejects characters
    that XML forbids. Raises FeedError(INVALID_PAYLOAD) for other terms, and beyond the bound of `erlang_terms`.
    """
    pieces: list[bytes] = []
    ends: list[bytes] = []  # the end tags of the open elements
    position = data.find(b"[", start) + 1
    if not position or data[start : position - 1].strip():
        raise _unreadable()
    is_comma_due = False  # a comma follows every element and text but the last
    while (match := _PART.match(data, position)) is not None:
        comma, head, text, end, end_of_element = match.groups()
        is_value = head is not None or text is not None
        if (comma is not None) != (is_comma_due and is_value) or not (is_value or end):
            raise _unreadable()
        position = match.end()
        is_comma_due = end is not None or text is not None
        if head is not None:
            if len(ends) == MAX_TERM_DEPTH // 2:  # an element is two terms deep
                raise FeedError(Condition.INVALID_PAYLOAD, f"the payload is nested deeper than {len(ends)} levels")
            start_tag, end_tag = _remembered_tags(head) if len(head) <= _REMEMBERED_BYTES else _tags(head)
            pieces.append(start_tag)
            ends.append(end_tag)
        if text is not None:
            pieces.append(_escaped(_binary(text)))
        if end is not None:
            if not ends:
                if data[match.end(_END) :].strip() not in (b"", b"}"):
                    break
                return b"".join(pieces)
            if end_of_element is None:
                break
            pieces.append(ends.pop())
    raise _unreadable()


def _tags(head: bytes) -> tuple[bytes, bytes]:
    """The start tag and the end tag of an element, from the beginning of its term."""
    match = _HEAD.match(head)
    assert match is not None  # `_PART` has matched it
    name = _name(match[1])
    pieces = [b"<", name]
    position, comma = match.end(), True
    while (pair := _PAIR.match(head, position)) is not None:
        if not comma:
            raise _unreadable()
        pieces += (b" ", _name(pair[1]), b'="', _escaped(_binary(pair[2])), b'"')
        position, comma = pair.end(), bool(pair[3])
    if comma and position != match.end():
        raise _unreadable()
    return b"".join((*pieces, b">")), b"</%b>" % name


# At most about 1 MB, because longer heads are not remembered.
_remembered_tags = lru_cache(maxsize=1_000)(_tags)


def _binary(token: bytes) -> bytes:
    # Most are one string without an escape.
    if b"\\" not in token and token.startswith(b'"') and token.find(b'"', 1) == len(token) - 1:
        return token[1:-1]
    try:
        return binary_of(token)
    except (ValueError, OverflowError):
        raise _unreadable() from None


def _name(token: bytes) -> bytes:
    name = _binary(token)
    # Bytes that are no UTF-8 are replaced for this check only. The parser of the result rejects them.
    checked_name(name.decode(errors="replace"))
    return name


def _escaped(text: bytes) -> bytes:
    # Line feeds and tabs are the same in a text, and differ from a blank in an attribute value only as references.
    return _SPECIAL.sub(lambda character: _REFERENCES[character[0]], text) if _SPECIAL.search(text) else text


def _unreadable() -> FeedError:
    return FeedError(Condition.INVALID_PAYLOAD, "the payload is no element of ejabberd (xmlel)")
