"""What views filter by in a plain Atom entry, read without a tree.

An entry is plain if all its elements are of Atom without a prefix, and only its persons have children. Nearly all
entries are, and a tree with its walk would take four times as long. `atom.read_meta` reads all others, and the tests
compare both.
"""

import re

from smartfeeds.core.filters import EntryMeta
from smartfeeds.formats.plain import html_text

BODY_CHARACTERS = 1_000  # a body is for reading in a chat, and goes out beside the whole payload
_START, _END = b'<entry xmlns="http://www.w3.org/2005/Atom">', b"</entry>"
# A person, another child without children, and any other markup, which no plain entry has. In canonical form ">" may
# occur in the value of an attribute, but neither "<" nor a quotation mark.
_CHILD = re.compile(
    r"<(author|contributor)>((?:<(?:name|uri|email)>[^<]*</(?:name|uri|email)>)*)</\1>"
    r'|<([a-z]+)((?: [^\s=<>]+="[^"<]*")*)>([^<]*)</\3>'
    r"|(<)"
)
_PART = re.compile(r">([^<]*)</")
_TERM = re.compile(r' term="([^"]*)"')
_TYPE = re.compile(r' type="([^"]*)"')
# The references of canonical form, the ampersand last: it may be the start of what looks like another reference.
_REFERENCES = (
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&#x9;", "\t"),
    ("&#xA;", "\n"),
    ("&#xD;", "\r"),
    ("&amp;", "&"),
)
_HTML = frozenset({"html", "text/html"})


def read_plain_entry(payload: bytes, *, texts: bool = True) -> EntryMeta | None:
    """Returns what `atom.read_meta` returns for the canonical bytes of a plain entry, None for anything else. Without
    `texts` the text and the body stay empty.
    """
    if not (payload.startswith(_START) and payload.endswith(_END)) or payload.find(b"xmlns", len(_START)) >= 0:
        return None
    try:
        inner = payload[len(_START) : -len(_END)].decode()
    except UnicodeDecodeError:  # of a damaged database
        return None
    values = {"title": "", "summary": "", "content": ""}
    unread = set(values) if texts else set()
    authors: set[str] = set()
    categories: set[str] = set()
    for person, parts, tag, attributes, text, other in _CHILD.findall(inner):
        if other:
            return None
        if tag in unread:
            text = _value(text) if "&" in text else text
            unread.discard(tag)
            kind = _TYPE.search(attributes) if attributes else None
            if kind is None or (name := kind[1].strip().lower()) == "text":
                values[tag] = " ".join(text.split())
            elif name in _HTML:
                values[tag] = html_text(text)
            else:
                return None
        elif tag == "category":
            for term in _TERM.findall(attributes):
                categories.add((_value(term) if "&" in term else term).strip())
        elif person == "author":
            for part in _PART.findall(parts):
                authors.add(" ".join((_value(part) if "&" in part else part).split()))
    authors.discard("")
    categories.discard("")
    return EntryMeta(
        authors=frozenset(authors),
        categories=frozenset(categories),
        text="\n".join(filter(None, values.values())),
        body=(values["title"] or values["summary"])[:BODY_CHARACTERS],
    )


def _value(text: str) -> str:
    for reference, character in _REFERENCES:
        text = text.replace(reference, character)
    return text
