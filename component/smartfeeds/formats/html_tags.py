"""The tags of an HTML text and their attributes, as the tokenizer of the HTML standard reads them (HTML 13.2.5).

Only where tags begin and end is read, not what they mean. Each character is looked at once, however broken the text is.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_COMMENT = "<!--"
_OPENING = re.compile(r"<!--|</?[A-Za-z][^ \t\n\f\r/>]*")
# HTML 13.2.5.32 to 13.2.5.39. A name and a quoted value may hold "<", a value without quotes may hold quotes. A quote
# without its end reaches to the end of the text. Not possessive: before Python 3.11.5 such groups matched too much.
_ATTRIBUTE = re.compile(
    r"""[ \t\n\f\r/]*(?P<name>=?[^ \t\n\f\r/>=]+|=)"""
    r"""(?:[ \t\n\f\r]*=[ \t\n\f\r]*(?P<value>"(?P<double>[^"]*)(?:"|\Z)|'(?P<single>[^']*)(?:'|\Z)|[^ \t\n\f\r>]*))?"""
)
_TAG_END = re.compile(r"[ \t\n\f\r/]*>")
# In these elements "<" begins nothing but their own end tag (HTML 13.2.5.2 and 13.2.5.3).
_RAW_END = {
    name: re.compile(rf"(?=</{name}[ \t\n\f\r/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


class Tag(NamedTuple):
    """A start tag or an end tag: where it begins and ends in the text, and its attributes with the groups `name`,
    `value`, `double` and `single`. A tag that is not `closed` by ">" reaches to the end of the text."""

    start: int
    end: int
    closed: bool
    is_start: bool
    attributes: list[re.Match[str]]


def tags_of(text: str) -> Iterator[Tag]:
    """The tags of an HTML text outside of comments and scripts."""
    end = 0
    while opening := _OPENING.search(text, end):
        if opening[0] == _COMMENT:
            # "<!-->" is a whole comment.
            end = text.find("-->", opening.end() - 2)
            if end < 0:
                return
            continue
        end = opening.end()
        attributes = []
        while attribute := _ATTRIBUTE.match(text, end):
            attributes.append(attribute)
            end = attribute.end()
        close = _TAG_END.match(text, end)
        end = close.end() if close else len(text)
        yield Tag(opening.start(), end, close is not None, opening[0][1] != "/", attributes)
        if raw_end := _RAW_END.get(opening[0][1:].lower()):
            content_end = raw_end.search(text, end)
            end = content_end.start() if content_end else len(text)
