"""The fields of a post beside its body: headers and query parameters with the names of ntfy, and the same in forms.

A header may hold UTF-8 or encoded words (RFC 2047).
"""

import re
from collections.abc import Iterable, Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from types import MappingProxyType
from typing import NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.authentication import FORM_TOKEN
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.operations import Parameter
from smartfeeds.http.queries import read_fields

MAX_FIELDS = 64
_TEXT = {"type": "string"}
_ENCODED_WORD = re.compile(r"=\?[^?\s]+\?[BbQq]\?[^?\s]*\?=")
_YES = frozenset({"1", "true", "yes"})
_NO = frozenset({"", "0", "false", "no"})


class PostField(NamedTuple):
    """A field: the headers that have it, its names in a query and in a form, and what it is."""

    headers: tuple[str, ...]
    names: tuple[str, ...]
    text: str


TITLE, TAGS, LINK, CONTENT, ATTACH, FILENAME, MARKDOWN = (
    "title", "tags", "link", "content", "attach", "filename", "markdown",
)  # fmt: skip
CONTENT_HTML = "content_html"
FIELDS: Mapping[str, PostField] = MappingProxyType(
    {
        TITLE: PostField(("Title", "X-Title"), ("title", "t", "ti"), "the title of the entry"),
        TAGS: PostField(("Tags", "X-Tags", "Tag", "X-Tag"), ("tags", "tag", "ta"), "categories, separated by commas"),
        LINK: PostField(("Click", "X-Click"), ("link", "click", "url"), "the address that the title leads to"),
        CONTENT: PostField(
            ("Message", "X-Message"), ("content", "message", "m"), "the text, if the body is a file or empty"
        ),
        ATTACH: PostField(("Attach", "X-Attach"), ("attach", "a"), "the address of a file elsewhere, https or http"),
        FILENAME: PostField(
            ("Filename", "X-Filename"), ("filename", "file", "f"), "the name of the file that the body is"
        ),
        MARKDOWN: PostField(("Markdown", "X-Markdown"), ("markdown", "md"), "true if the text is Markdown"),
    }
)
# Names in a form. The one-letter and two-letter names of ntfy are for query strings only: "a=b" is a text.
_FORM_NAMES = {name: field for field, row in FIELDS.items() for name in row.names if len(name) > 2} | {
    CONTENT_HTML: CONTENT_HTML
}
# The parameters for the OpenAPI document: the first header and the first name of each field.
POST_PARAMETERS = tuple(
    Parameter(name, _TEXT, row.text, place)
    for row in FIELDS.values()
    for name, place in ((row.headers[0], "header"), (row.names[0], "query"))
)

Fields = Mapping[str, tuple[str, ...]]


def fields_of_call(call: HttpCall) -> dict[str, str]:
    """The fields in headers, else in the query string. Other headers and parameters are ignored.

    Raises FeedError(BAD_REQUEST) for a value that cannot be read.
    """
    parameters = dict(read_fields(call.query, MAX_FIELDS)) if call.query else {}
    fields: dict[str, str] = {}
    for field, row in FIELDS.items():
        header = next((name for name in row.headers if call.header(name)), "")
        if header:
            fields[field] = _header_text(header, call.header(header))
        elif name := next((name for name in row.names if name in parameters), ""):
            fields[field] = parameters[name]
    return fields


def _header_text(name: str, value: str) -> str:
    """The text of a header: UTF-8, or encoded words."""
    fault = ""
    try:
        value.encode()  # aiohttp decodes what is not UTF-8 to surrogates
        return str(make_header(decode_header(value))) if _ENCODED_WORD.search(value) else value
    except UnicodeEncodeError:
        fault = "is not UTF-8"
    except (UnicodeDecodeError, HeaderParseError, LookupError, ValueError):
        fault = "has an encoded word (RFC 2047) that cannot be decoded"
    raise FeedError(Condition.BAD_REQUEST, f"the header {name} {fault}; send it in UTF-8 or as a query parameter")


def read_form(text: str) -> Fields | None:
    """The fields of a URL-encoded body, None if the body is no form but a text.

    It is a form if it consists of `name=value` pairs and one of the names is a field. Raises FeedError(BAD_REQUEST) for
    a form that has other names too.
    """
    parts = text.strip().split("&")
    if len(parts) > MAX_FIELDS or not all("=" in part for part in parts):
        return None
    if not any(part.partition("=")[0] in _FORM_NAMES for part in parts):
        return None
    return known_fields(read_fields(text.strip(), MAX_FIELDS))


def known_fields(pairs: Iterable[tuple[str, str]]) -> Fields:
    """The values of each field of a form, in their order. Raises FeedError(BAD_REQUEST) for another name."""
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        if name == FORM_TOKEN:
            continue
        field = _FORM_NAMES.get(name.removesuffix("[]"))
        if field is None:
            known = ", ".join((*FIELDS, CONTENT_HTML))
            advice = answer_advice(name) or "; a text is sent as text/plain"
            raise FeedError(Condition.BAD_REQUEST, f"{name[:40]!r} is no field of a post: there are {known}{advice}")
        fields[field] = (*fields.get(field, ()), value)
    return fields


def answer_advice(name: str) -> str:
    """The end of an error about a field with this name: how to answer an entry, "" if the name is about something
    else."""
    if "reply" not in name.lower() and "replies" not in name.lower():
        return ""
    return "; to answer an entry, publish Atom with thr:in-reply-to, or send in-reply-to by Micropub"


def single(fields: Fields, name: str) -> str:
    """The value of a field that may occur once. Raises FeedError(BAD_REQUEST)."""
    values = fields.get(name, ())
    if len(values) > 1:
        raise FeedError(Condition.BAD_REQUEST, f"{name} must not be repeated")
    return values[0] if values else ""


def is_set(name: str, value: str) -> bool:
    """The value of a field that is true or false. Raises FeedError(BAD_REQUEST)."""
    text = value.strip().lower()
    if text not in _YES | _NO:
        raise FeedError(Condition.BAD_REQUEST, f"{name}: {value[:40]!r} is neither true nor false")
    return text in _YES
